// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Waiting in epoll sets with TCP sockets in them (tcp_epoll.c). Streams are looked at first. The
 * kernel's set, in which is what the kernel tells of, is asked by a system call.
 */
#include <errno.h>
#include "internal.h"
#include "pl_signals.h"
#include "tcp.h"
#include "tcp_ready.h"
#include "tcp_sleep.h"
#include "real.h"

/* The times for which the kernel, which had nothing to tell, is not asked again while streams are
 * ready, in ns: if the set has none but streams and listeners in it, and if it has others. New
 * connections by the kernel may wait a little longer than bytes. */
#define ASKED_NS 50000
#define ASKED_OTHERS_NS 10000
/* Our own descriptors in the kernel's set: of nudges, of homad's signals, and of a set in sets. */
#define OWN_IN_SET 3

/* Wake another thread that sleeps in the set for what is left: what this one has not taken, and
 * what may be ready still. The kernel does the same. */
static void tell_others(struct homa_pl_set *set)
{
	if (set->first)
		homa_pl_set_nudge(set);
}

/* Write what the stream is ready for to @event; false if it is not. */
static bool tell(struct homa_pl_watch *w, struct epoll_event *event)
{
	uint32_t got = homa_pl_ready_events(w);

	if (!got || !homa_pl_once_tell(w))
		return false;
	event->events = got;
	event->data = w->event.data;
	return true;
}

/* Write the events of at most @max streams that are ready; returns how many. */
static int collect(struct homa_pl_set *set, struct epoll_event *events, int max)
{
	struct homa_pl_watch *w, *again = NULL, **end = &again;
	int n = 0;

	while (n < max && (w = homa_pl_ready_take(set))) {
		if (!tell(w, &events[n]))
			continue;
		n++;
		if (!(w->event.events & (EPOLLONESHOT | EPOLLET))) {
			*end = w;
			w->of_ready = NULL;
			end = &w->of_ready;
		}
	}
	/* Level triggered streams go behind the others, to be looked at again. */
	while (again) {
		w = again;
		again = again->of_ready;
		w->ready = true;
		w->of_ready = NULL;
		*set->last = w;
		set->last = &w->of_ready;
	}
	tell_others(set);
	homa_pl_set_tell(set, false);
	return n;
}

/** struct ours - what our own descriptors in the kernel's set have told */
struct ours {
	/* Another thread has nudged. */
	bool nudged;
	/* homad has signalled. */
	bool signalled;
};

/* Take the events that are for us out; returns how many are left. */
static int strip(const struct homa_pl_set *set, struct epoll_event *events,
		 int n, struct ours *ours)
{
	int i, left = 0;

	for (i = 0; i < n; i++) {
		const char *is = events[i].data.ptr;

		if (is == &set->homad_cookie &&
		    (events[i].events & (EPOLLHUP | EPOLLERR)))
			homa_pl_hung_up();
		if (is == &set->cookie)
			ours->nudged = true;
		else if (is == &set->homad_cookie)
			ours->signalled = true;
		else if (is != &set->ready_cookie)
			events[left++] = events[i];
	}
	return left;
}

/* Put in place of the kernel's events that have marks of ours what the program is told of the
 * sockets; returns how many events are left. They are not in the list then, so none is told
 * twice. */
static int tell_marked(struct homa_pl_set *set, struct epoll_event *events, int n)
{
	struct homa_pl_watch *w;
	int i, left = 0;

	homa_pl_tcp_lock();
	for (i = 0; i < n; i++) {
		if (!homa_pl_spot_is(set, events[i].data.ptr, &w)) {
			events[left++] = events[i];
		} else if (w && w->spot) {
			homa_pl_ready_remove(w);
			left += tell(w, &events[left]);
		}
	}
	homa_pl_tcp_unlock();
	return left;
}

/* What is left of the kernel's @n events. */
static int without_ours(struct homa_pl_set *set, struct epoll_event *events,
			int n, struct ours *ours)
{
	uint64_t count;

	n = strip(set, events, n, ours);
	if (!HOMA_PL_LIKELY(!__atomic_load_n(&set->spots, __ATOMIC_ACQUIRE)))
		n = tell_marked(set, events, n);
	if (ours->nudged &&
	    HOMA_PL_REAL(read)(set->nudge_fd, &count, sizeof(count)) < 0)
		return n; /* The event was another one's, or another thread has read it. */
	return n;
}

/* Ask the kernel's set, and do not wait. Who takes homad's signal out of it takes the news. If our
 * own descriptors are all that there was room for, the kernel has put them behind the others, so it
 * is asked again. */
static int kernel_events(struct homa_pl_set *set, int epfd,
			 struct epoll_event *events, int max,
			 const sigset_t *mask)
{
	const struct timespec now = { 0, 0 };
	struct ours ours = { .nudged = false };
	int told, n, tries = OWN_IN_SET;

	do {
		told = homa_pl_kernel_wait(epfd, events, max, &now, mask);
		if (told < 0)
			return -errno;
		n = without_ours(set, events, told, &ours);
	} while (!n && told == max && tries--);
	if (ours.signalled)
		homa_pl_pump();
	return n;
}

/** struct set_sleep - a thread that sleeps in a set */
struct set_sleep {
	/* The socket of the set, which the call holds. */
	struct homa_pl_sock *sock;
	/* The depth in which signals were held before. */
	unsigned int depth;
};

/* The thread was cancelled in its sleep. */
static void is_cancelled(void *arg)
{
	struct set_sleep *sleep = arg;

	homa_pl_hold_again(sleep->depth);
	homa_pl_leave_set(NULL);
	homa_pl_put(sleep->sock);
}

/* Enter the set. Returns until when the thread may sleep there, @until or 0. */
static int64_t enter(struct homa_pl_set *set, int epfd, int64_t until)
{
	bool go;

	homa_pl_tcp_lock();
	homa_pl_enter_set(set, epfd);
	homa_pl_sets_tell();
	go = !set->first;
	homa_pl_tcp_unlock();
	return go && homa_pl_may_sleep() ? until : 0;
}

/* Note that the kernel has had @n events to tell now. */
static void note_asked(struct homa_pl_set *set, int n)
{
	__atomic_store_n(&set->asked_at, n ? 0 : homa_pl_now(), __ATOMIC_RELAXED);
}

/* Sleep in the set, which the thread has entered, until @until (ns) at most. Returns the number of
 * the kernel's events, or an error. @signalled becomes true if homad's signal has ended it. */
static int sleep_in(struct homa_pl_sock *s, int epfd, struct epoll_event *events,
		    int max, int64_t until, const sigset_t *mask, bool *signalled)
{
	struct set_sleep sleep = { s, homa_pl_signals.depth };
	struct homa_pl_set *set = s->set;
	unsigned int ran = homa_pl_signals.ran;
	struct ours ours = { .nudged = false };
	/* Events that have come go before a signal, and leave no error behind. */
	int error = errno, n, told;

	pthread_cleanup_push(is_cancelled, &sleep);
	told = n = homa_pl_wait_in_set(epfd, events, max, until, mask);
	homa_pl_hold_again(sleep.depth);
	pthread_cleanup_pop(0);
	if (n > 0)
		n = without_ours(set, events, n, &ours);
	/* If there was no room for more than ours, the kernel may have more to tell. */
	note_asked(set, told == max ? told : n);
	homa_pl_leave_set(set);
	*signalled = ours.signalled;
	/* The signal may have come before the kernel was called. */
	if (!n && homa_pl_signals.ran != ran)
		n = -EINTR;
	errno = error;
	return n;
}

/* Let the kernel tell first, of at most half of the events, if streams were all that was told last
 * time: they may always be ready. Returns how many events there are. */
static int kernels_turn(struct homa_pl_set *set, int epfd,
			struct epoll_event *events, int max)
{
	int n = 0;

	if (__atomic_exchange_n(&set->kernel_waits, false, __ATOMIC_RELAXED))
		n = kernel_events(set, epfd, events, (max + 1) / 2, NULL);
	return n > 0 ? n : 0;
}

/* Look at the streams of the set, after all news was taken. @signalled: homad's signal has woken
 * this thread before. Returns how many events there are behind the first @n. */
static int look(struct homa_pl_set *set, struct epoll_event *events, int n,
		int max, bool signalled)
{
	int more = 0;

	homa_pl_tcp_lock();
	homa_pl_sets_tell();
	if (n < max)
		more = collect(set, events + n, max - n);
	else
		tell_others(set);
	if (signalled)
		homa_pl_set_in_vain(!more);
	homa_pl_tcp_unlock();
	return more;
}

/* Was the kernel asked just now, in vain? To ask it is a system call, which costs as much as all
 * else that a program does for a short message, and where streams are always ready there would be
 * one for each look at them. */
static bool was_asked(const struct homa_pl_set *set)
{
	int64_t at = __atomic_load_n(&set->asked_at, __ATOMIC_RELAXED);
	bool others = __atomic_load_n(&set->others, __ATOMIC_RELAXED);

	return at && homa_pl_now() - at < (others ? ASKED_OTHERS_NS : ASKED_NS);
}

/* Ask the kernel for at most @max events. */
static int ask(struct homa_pl_set *set, int epfd, struct epoll_event *events,
	       int max, const sigset_t *mask)
{
	int n = kernel_events(set, epfd, events, max, mask);

	note_asked(set, n);
	return n;
}

static int wait_in(struct homa_pl_sock *s, int epfd, struct epoll_event *events,
		   int max, int64_t until, const sigset_t *mask)
{
	struct homa_pl_set *set = s->set;
	bool asked, slept = false, signalled = false;
	int n, more, ended = 0;

	for (;;) {
		n = kernels_turn(set, epfd, events, max);
		asked = n > 0;
		if (!slept)
			homa_pl_pump_for(set, NULL);
		n += look(set, events, n, max, signalled);
		if (asked)
			return n;
		if (n == max) {
			__atomic_store_n(&set->kernel_waits, true,
					 __ATOMIC_RELAXED);
			return n;
		}
		/* Who does not wait may look only once. */
		if (n && until && was_asked(set))
			return n;
		more = 0;
		/* Who may sleep asks the kernel by that. */
		if (n || ended || until <= homa_pl_now())
			more = ask(set, epfd, events + n, max - n,
				   n ? NULL : mask);
		if (more > 0 || n)
			return n + (more > 0 ? more : 0);
		if (more < 0 || ended || until <= homa_pl_now())
			return ended ? ended : more;
		more = sleep_in(s, epfd, events, max, enter(set, epfd, until),
				mask, &signalled);
		slept = true;
		if (more > 0)
			break;
		/* Events that have come are returned before EINTR. */
		ended = more;
	}
	/* News that this thread has taken is for others, who sleep. */
	homa_pl_tcp_lock();
	tell_others(set);
	homa_pl_tcp_unlock();
	return more;
}

int homa_pl_tcp_epoll_wait(struct homa_pl_sock *s, int epfd,
			   struct epoll_event *events, int max, int64_t until,
			   const sigset_t *mask)
{
	if (max <= 0 || !events)
		return max <= 0 ? -EINVAL : -EFAULT;
	return wait_in(s, epfd, events, max, until, mask);
}
