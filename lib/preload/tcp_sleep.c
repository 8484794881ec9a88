// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Sleeping. A thread that sleeps is on a list before it looks for the last time, so no news is
 * missed. It sleeps in epoll_wait() on a set of its own, in ppoll() on that set and descriptors of
 * the program, or in a set of the program's (tcp_epoll_wait.c). Who wakes up takes homad's news
 * before anything else: it may be the only one who was woken.
 */
#include <errno.h>
#include <pthread.h>
#include "internal.h"
#include "pl_signals.h"
#include "preload_sock.h"
#include "stream_fork.h"
#include "tcp.h"
#include "tcp_ready.h"
#include "tcp_sleep.h"
#include "real.h"

#define HOMAD \
	2u /* the data of events of homad's descriptor in a thread's own set */
#define OWN_EVENTS 2 /* the most events of a thread's own set */
/* A time that nobody waits for, in s. */
#define NEVER_S 1000000000

/* With initial-exec nothing is allocated when a signal handler is the first to look. */
static __thread struct {
	/* The thread's own set, or -1. */
	int epfd;
	/* Its ear. */
	struct homa_pl_ear ear;
	/* The value of homa_pl_generation in the process that made @epfd. */
	unsigned int generation;
	/* The thread's place in the list. */
	struct homa_pl_sleeper sleeper;
	/* How long the kernel shall wait. A handler that runs before it does makes it 0. */
	struct timespec wait;
	/* A handler has rung the bell, which was not heard yet. */
	bool interrupted;
} own __attribute__((tls_model("initial-exec"))) = { .epfd = -1 };

/* ---- a thread's own set ---- */

static pthread_key_t at_end;

static void part(void)
{
	homa_pl_tcp_lock();
	homa_pl_part(&own.sleeper);
	homa_pl_tcp_unlock();
}

/* Take a thread that ends out of the list, and close its set. */
static void close_own(void *arg)
{
	(void)arg;
	if (own.generation == homa_pl_generation) {
		part();
		homa_pl_close_own_fd(own.epfd);
	}
	own.sleeper.joined = false;
	own.epfd = -1;
}

static void make_key(void)
{
	pthread_key_create(&at_end, close_own);
}

int homa_pl_sleeper_fd(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int fd, rc;

	if (HOMA_PL_LIKELY(own.epfd >= 0 && own.generation == homa_pl_generation))
		return own.epfd;
	fd = homa_pl_own_fd(HOMA_PL_REAL(epoll_create1)(EPOLL_CLOEXEC));
	if (fd < 0)
		return -errno;
	homa_pl_tcp_lock();
	rc = homa_pl_add_bell(fd);
	homa_pl_tcp_unlock();
	if (rc) {
		homa_pl_close_own_fd(fd);
		return rc;
	}
	own.epfd = fd;
	own.generation = homa_pl_generation;
	own.ear = (struct homa_pl_ear){ .open = false };
	own.sleeper.joined = own.interrupted = false;
	pthread_once(&once, make_key);
	pthread_setspecific(at_end, &own);
	return fd;
}

/* ---- handlers and cancellation ---- */

/* The kernel has said that it has no epoll_pwait2(). It is atomic. */
static bool no_pwait2;

/* Kernels before 5.11 and C libraries before 2.35 know whole milliseconds only. */
static bool knows_only_ms(void)
{
	return !HOMA_PL_REAL(epoll_pwait2) ||
	       __atomic_load_n(&no_pwait2, __ATOMIC_RELAXED);
}

/* A handler is about to run, and may not come back. The thread does not sleep any more. */
static void is_interrupted(void)
{
	own.wait = (struct timespec){ 0, 0 };
	if (!own.sleeper.joined)
		return;
	homa_pl_hold();
	homa_pl_pump_for(NULL, &own.sleeper);
	if (!own.sleeper.set) {
		own.interrupted = true;
		homa_pl_ring(own.epfd);
	} else if (knows_only_ms()) {
		/* The kernel has a copy of the time. */
		homa_pl_set_nudge(own.sleeper.set);
	}
	part();
	homa_pl_unhold();
}

static void is_cancelled(void *depth)
{
	homa_pl_hold_again(*(const unsigned int *)depth);
	homa_pl_pump_for(NULL, &own.sleeper);
	part();
}

/* What a sleep returns that ended with @rc, if handlers have run in it or just before it. */
static int after_signals(int rc, unsigned int ran, unsigned int ran_hard)
{
	if (homa_pl_signals.ran == ran)
		return rc;
	return homa_pl_signals.ran_hard == ran_hard ? -HOMA_PL_RESTART : -EINTR;
}

/* ---- the kernel's part ---- */

/* Times are rounded up. */
static int wait_for_ms(int epfd, struct epoll_event *events, int max,
		       const struct timespec *wait, const sigset_t *mask)
{
	int ms = wait->tv_sec > 1000000 ?
			 1000000000 :
			 (int)(wait->tv_sec * 1000 +
			       (wait->tv_nsec + 999999) / 1000000);

	return HOMA_PL_REAL(epoll_pwait)(epfd, events, max, ms, mask);
}

int homa_pl_kernel_wait(int epfd, struct epoll_event *events, int max,
			const struct timespec *wait, const sigset_t *mask)
{
	int n;

	if (!knows_only_ms()) {
		n = HOMA_PL_REAL(epoll_pwait2)(epfd, events, max, wait, mask);
		if (n >= 0 || errno != ENOSYS)
			return n;
		__atomic_store_n(&no_pwait2, true, __ATOMIC_RELAXED);
	}
	return wait_for_ms(epfd, events, max, wait, mask);
}

/* The time from now until @until, as the kernel takes it. */
static void set_wait(int64_t until)
{
	int64_t left = until - homa_pl_now();

	left = left > 0 ? left : 0;
	own.wait.tv_sec = until == INT64_MAX ? NEVER_S : left / 1000000000;
	own.wait.tv_nsec = until == INT64_MAX ? 0 : left % 1000000000;
}

/** struct own_sleep - a sleep that is none in a set of the program's */
struct own_sleep {
	/* @n descriptors of the program's, with room for one more. */
	struct pollfd *fds;
	nfds_t n;
	/* The thread sleeps in ppoll(): there are some of them, or that is needed. */
	bool any;
	/* The mask as for ppoll(). */
	const sigset_t *mask;
	/* The bell was heard. */
	bool heard_bell;
};

/* Take homad's descriptor and the bell out of @events; homad has ended if its descriptor has. */
static void hear(struct own_sleep *sleep, const struct epoll_event *events, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		if (homa_pl_is_bell(&events[i]))
			sleep->heard_bell = true;
		else if (events[i].events & (EPOLLHUP | EPOLLERR))
			homa_pl_hung_up();
	}
}

/* Sleep in the kernel. Only here the thread may be cancelled. */
static int sleep_or_cancel(struct own_sleep *sleep)
{
	struct epoll_event events[OWN_EVENTS];
	unsigned int depth = homa_pl_signals.depth;
	int rc;

	pthread_cleanup_push(is_cancelled, &depth);
	homa_pl_let_signals(is_interrupted);
	if (sleep->any) {
		sleep->fds[sleep->n] =
			(struct pollfd){ .fd = own.epfd, .events = POLLIN };
		rc = HOMA_PL_REAL(ppoll)(sleep->fds, sleep->n + 1, &own.wait,
					 sleep->mask);
	} else {
		rc = homa_pl_kernel_wait(own.epfd, events, OWN_EVENTS,
					 &own.wait, sleep->mask);
	}
	rc = rc < 0 ? -errno : rc;
	homa_pl_hold_again(depth);
	pthread_cleanup_pop(0);
	if (rc > 0 && !sleep->any)
		hear(sleep, events, rc);
	return rc;
}

/* Is one of the program's descriptors ready? */
static bool any_ready(const struct own_sleep *sleep)
{
	nfds_t i;

	for (i = 0; sleep->any && i < sleep->n; i++)
		if (sleep->fds[i].fd >= 0 && sleep->fds[i].revents)
			return true;
	return false;
}

/* ---- sleeping ---- */

static bool is_ready(const struct homa_pl_waits *waits)
{
	return waits->ready && waits->ready(waits->arg);
}

/* The sleep has ended with @rc. Take homad's news; true if the thread shall sleep on, as nothing is
 * for it. */
static bool sleep_on(const struct own_sleep *sleep,
		     const struct homa_pl_waits *waits, int rc)
{
	bool vain;

	homa_pl_pump_for(NULL, &own.sleeper);
	if (rc <= 0 || !waits->ready || any_ready(sleep))
		return false;
	vain = !waits->ready(waits->arg);
	homa_pl_tcp_lock();
	/* After the bell the caller looks itself; a homad that has ended would signal for ever. */
	vain &= own.sleeper.joined && !own.sleeper.rung && homa_pl_news_fd() >= 0;
	if (own.sleeper.joined && !own.sleeper.rung)
		homa_pl_in_vain(&own.sleeper, vain);
	homa_pl_tcp_unlock();
	return vain;
}

static void join(const struct own_sleep *sleep, const struct homa_pl_waits *waits)
{
	homa_pl_tcp_lock();
	homa_pl_part(&own.sleeper);
	own.sleeper = (struct homa_pl_sleeper){
		.epfd = own.epfd,
		.ear = &own.ear,
		.data.u64 = HOMAD,
		.nudge_fd = -1,
		.polls = sleep->any,
		.concerned = waits->concerned,
		.arg = waits->arg,
	};
	if (own.interrupted)
		homa_pl_silence(own.epfd);
	own.interrupted = false;
	homa_pl_join(&own.sleeper);
	homa_pl_tcp_unlock();
}

static void leave(const struct own_sleep *sleep)
{
	homa_pl_tcp_lock();
	homa_pl_part(&own.sleeper);
	if ((own.sleeper.rung || own.interrupted) && !sleep->heard_bell)
		homa_pl_silence(own.epfd);
	own.interrupted = false;
	homa_pl_tcp_unlock();
}

/* Take out what is no descriptor: the kernel takes no more entries than there may be descriptors,
 * and gets one of ours, too. Returns how many are left. */
static nfds_t without_gaps(struct pollfd *fds, nfds_t n)
{
	nfds_t i, left = 0;

	for (i = 0; i < n; i++)
		if (fds[i].fd >= 0)
			fds[left++] = fds[i];
	return left;
}

int homa_pl_sleep(struct pollfd *fds, nfds_t n, int64_t until,
		  const sigset_t *mask, const struct homa_pl_waits *waits)
{
	struct own_sleep sleep = { .fds = fds, .mask = mask };
	unsigned int ran = homa_pl_signals.ran,
		     ran_hard = homa_pl_signals.ran_hard;
	/* A call that goes on after a signal leaves no error behind. */
	int error = errno, rc = homa_pl_sleeper_fd();

	if (rc < 0)
		return rc;
	sleep.n = without_gaps(fds, n);
	/* Of a call that does not wait only ppoll() lets signals in. */
	sleep.any = sleep.n || (mask && until <= homa_pl_now());
	join(&sleep, waits);
	do {
		rc = 1;
		set_wait(until);
		if (!homa_pl_may_sleep() || is_ready(waits))
			break;
		rc = sleep_or_cancel(&sleep);
		rc = after_signals(rc > 0 ? 1 : rc, ran, ran_hard);
	} while (sleep_on(&sleep, waits, rc));
	leave(&sleep);
	errno = error;
	return rc;
}

/* ---- in a set of the program's ---- */

void homa_pl_enter_set(struct homa_pl_set *set, int epfd)
{
	homa_pl_part(&own.sleeper);
	own.sleeper = (struct homa_pl_sleeper){
		.epfd = epfd,
		.ear = &set->ear,
		.data.ptr = &set->homad_cookie,
		.set = set,
		.nudge_fd = set->nudge_fd,
	};
	homa_pl_join(&own.sleeper);
}

void homa_pl_leave_set(const struct homa_pl_set *set)
{
	homa_pl_pump_for(set, &own.sleeper);
	part();
}

void homa_pl_set_in_vain(bool vain)
{
	homa_pl_in_vain(&own.sleeper, vain);
}

int homa_pl_wait_in_set(int epfd, struct epoll_event *events, int max,
			int64_t until, const sigset_t *mask)
{
	int n;

	set_wait(until);
	homa_pl_let_signals(is_interrupted);
	n = homa_pl_kernel_wait(epfd, events, max, &own.wait, mask);
	return n < 0 ? -errno : n;
}
