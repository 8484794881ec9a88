// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Who is woken. homad signals once, to the process, whatever it has to tell; the thread that wakes
 * up takes all and wakes the others whom it concerns. So one thread shall wake up, and best the
 * one whom it concerns. Three rules see to that:
 *
 *	* homad's descriptor lies in the epoll sets in which threads sleep, with EPOLLEXCLUSIVE:
 *	  of the sets in which somebody sleeps the kernel wakes the first, in the order in which the
 *	  descriptor was put there. Who comes back from there, for whatever reason, takes the news
 *	  before anything else, so the signal is never lost.
 *	* A thread that is woken in vain several times in a row goes to the end of that order. So
 *	  the first ones are threads for which something comes.
 *	* Threads in ppoll() have no such order. Of them one hears homad's signal, and only if no
 *	  thread sleeps in a set: its own set, which it polls, has the descriptor then. Others put
 *	  it there and take it out while the thread sleeps.
 *
 * A thread's own set has the bell in it, too: an eventfd of all threads that is always readable,
 * and for which a set waits only when somebody rings there.
 */
#include <errno.h>
#include <sys/eventfd.h>
#include "internal.h"
#include "preload_sock.h"
#include "tcp_ready.h"
#include "tcp_sleepers.h"
#include "real.h"

#define BELL \
	1u /* the data of the bell's events; those of homad's descriptor have other */

static struct homa_pl_sleeper *sleepers;
/* The number of those that watch. */
static unsigned int watchers;
/* The one that hears homad's signal because nobody watches; or NULL. */
static struct homa_pl_sleeper *reserve;
/* homad's descriptor; -1 if there is none. It is atomic. */
static int homad_fd = -1;
/* The bell; -1 before the first thread sleeps. A child of fork() goes on with it. */
static int bell_fd = -1;

/* ---- ears ---- */

void homa_pl_hear_by(int fd)
{
	__atomic_store_n(&homad_fd, fd, __ATOMIC_RELAXED);
}

void homa_pl_ear_close(struct homa_pl_ear *ear, int epfd)
{
	struct epoll_event event = { 0 };

	/* A child of fork() leaves its parent's descriptor alone. The program may have closed the
	 * set. */
	if (ear->open && ear->generation == homa_pl_generation &&
	    HOMA_PL_REAL(epoll_ctl)(epfd, EPOLL_CTL_DEL, ear->fd, &event))
		ear->vain = 0;
	ear->open = false;
}

bool homa_pl_ear_open(struct homa_pl_ear *ear, int epfd, epoll_data_t data)
{
	struct epoll_event event = { .events = EPOLLIN, .data = data };
	int fd = __atomic_load_n(&homad_fd, __ATOMIC_RELAXED);

	if (HOMA_PL_LIKELY(ear->open && ear->fd == fd &&
			   ear->generation == homa_pl_generation))
		return true;
	homa_pl_ear_close(ear, epfd);
	if (fd < 0)
		return false;
	if (!ear->shared)
		event.events |= EPOLLET | EPOLLEXCLUSIVE;
	ear->fd = fd;
	ear->generation = homa_pl_generation;
	ear->vain = 0;
	ear->open = !HOMA_PL_REAL(epoll_ctl)(epfd, EPOLL_CTL_ADD, fd, &event);
	return ear->open;
}

/* ---- the bell ---- */

static int control_bell(int epfd, int op, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.u64 = BELL };

	return HOMA_PL_REAL(epoll_ctl)(epfd, op, bell_fd, &event) ? -errno : 0;
}

int homa_pl_add_bell(int epfd)
{
	if (bell_fd < 0)
		bell_fd = homa_pl_own_fd(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
	if (bell_fd < 0)
		return -errno;
	return control_bell(epfd, EPOLL_CTL_ADD, 0);
}

void homa_pl_ring(int epfd)
{
	control_bell(epfd, EPOLL_CTL_MOD, EPOLLIN | EPOLLONESHOT);
}

void homa_pl_silence(int epfd)
{
	control_bell(epfd, EPOLL_CTL_MOD, 0);
}

bool homa_pl_is_bell(const struct epoll_event *event)
{
	return event->data.u64 == BELL;
}

/* ---- the list ---- */

/* See to it that one who polls hears homad's signal exactly if nobody watches. */
static void settle(void)
{
	struct homa_pl_sleeper *s;

	if (watchers && reserve) {
		homa_pl_ear_close(reserve->ear, reserve->epfd);
		reserve = NULL;
	}
	for (s = sleepers; s && !watchers && !reserve; s = s->next)
		if (!s->watches && homa_pl_ear_open(s->ear, s->epfd, s->data))
			reserve = s;
}

/* Who polls and has heard homad's signal until it woke up does so again, and another one has only
 * stood in for it. */
static void take_back(struct homa_pl_sleeper *s)
{
	if (watchers) {
		homa_pl_ear_close(s->ear, s->epfd);
	} else if (reserve && s->ear->open &&
		   s->ear->generation == homa_pl_generation) {
		homa_pl_ear_close(reserve->ear, reserve->epfd);
		reserve = s;
	}
}

void homa_pl_join(struct homa_pl_sleeper *s)
{
	homa_pl_part(s);
	s->joined = true;
	s->rung = false;
	s->watches = !s->polls && homa_pl_ear_open(s->ear, s->epfd, s->data);
	if (s->polls)
		take_back(s);
	watchers += s->watches;
	if (s->set)
		s->set->sleepers++;
	s->next = sleepers;
	sleepers = s;
	settle();
}

void homa_pl_part(struct homa_pl_sleeper *s)
{
	struct homa_pl_sleeper **at = &sleepers;

	if (!s->joined)
		return;
	s->joined = false;
	while (*at && *at != s)
		at = &(*at)->next;
	/* A child of fork() has none of its parent's list. */
	if (!*at)
		return;
	*at = s->next;
	watchers -= s->watches;
	s->watches = false;
	if (reserve == s)
		reserve = NULL;
	/* If the program polls the set, it must not seem ready by homad's descriptor. */
	if (s->set && !--s->set->sleepers && s->set->polled)
		homa_pl_ear_close(s->ear, s->epfd);
	settle();
}

/* Another one that polls hears homad's signal from now on, if there is one. */
static void pass_on(struct homa_pl_sleeper *from)
{
	struct homa_pl_sleeper *s;

	for (s = sleepers; s; s = s->next)
		if (s != from && !s->watches &&
		    homa_pl_ear_open(s->ear, s->epfd, s->data))
			break;
	if (!s)
		return;
	homa_pl_ear_close(from->ear, from->epfd);
	reserve = s;
}

void homa_pl_in_vain(struct homa_pl_sleeper *s, bool vain)
{
	s->ear->vain = vain ? s->ear->vain + 1 : 0;
	if (s->ear->vain < HOMA_PL_MANY_VAIN)
		return;
	s->ear->vain = 0;
	if (reserve == s) {
		pass_on(s);
	} else if (watchers > s->watches) {
		/* It comes to the end of the kernel's order. */
		homa_pl_ear_close(s->ear, s->epfd);
		if (!homa_pl_ear_open(s->ear, s->epfd, s->data) && s->watches) {
			s->watches = false;
			watchers--;
			settle();
		}
	}
}

static void wake(struct homa_pl_sleeper *s)
{
	uint64_t one = 1;

	if (!s->set) {
		if (!s->rung)
			homa_pl_ring(s->epfd);
		s->rung = true;
	} else if (HOMA_PL_REAL(write)(s->nudge_fd, &one, sizeof(one)) < 0) {
		return; /* The counter is full, so the descriptor is readable. */
	}
}

void homa_pl_wake_for(struct homa_pl_sock *const *told, int n,
		      const struct homa_pl_sleeper *self)
{
	struct homa_pl_sleeper *s;

	for (s = sleepers; s; s = s->next)
		if (s != self &&
		    (n < 0 || (!s->set && (!s->concerned ||
					   s->concerned(s->arg, told, n)))))
			wake(s);
}

bool homa_pl_anybody_sleeps(void)
{
	return sleepers;
}

void homa_pl_no_sleepers(void)
{
	sleepers = reserve = NULL;
	watchers = 0;
}
