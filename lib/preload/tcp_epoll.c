// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Epoll sets with TCP sockets in them. The set is the kernel's, and has what is the
 * kernel's in it; streams are watched here. A stream with news goes into the ready lists
 * of the sets that watch it, and stays there, with level triggering, as long as it is
 * found ready. To sleep is the kernel's again: in its set there are two descriptors more,
 * homad's and one by which other threads of this process say that a list has grown.
 * tcp_ready.c has the lists, and tells sets in which a set is.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include "internal.h"
#include "pl_signals.h"
#include "tcp.h"
#include "tcp_ready.h"
#include "tcp_sleep.h"
#include "real.h"

static int real_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	return HOMA_PL_REAL(epoll_ctl)(epfd, op, fd, event) ? -errno : 0;
}

/* Put all watches of a socket into ready lists. The caller has the lock. */
static void news_of(struct homa_pl_sock *s, const struct homa_pl_set *looks)
{
	struct homa_pl_watch *w;

	for (w = s->tcp ? s->tcp->watches : NULL; w; w = w->of_sock)
		homa_pl_ready_put(w, looks);
}

/* ---- sets and watches ---- */

/* All sets; under the lock. */
static struct homa_pl_set *all_sets;

static void forget(struct homa_pl_watch *w)
{
	struct homa_pl_watch **at;

	homa_pl_ready_remove(w);
	homa_pl_watch_end(w);
	for (at = &w->set->watches; *at != w; at = &(*at)->of_set)
		;
	*at = w->of_set;
	for (at = &w->sock->tcp->watches; *at != w; at = &(*at)->of_sock)
		;
	*at = w->of_sock;
	free(w);
}

static void drop_set(struct homa_pl_sock *s)
{
	struct homa_pl_set **at;

	homa_pl_tcp_lock();
	while (s->set->watches)
		forget(s->set->watches);
	homa_pl_set_is_single(s->set);
	for (at = &all_sets; *at != s->set; at = &(*at)->next_set)
		;
	*at = s->set->next_set;
	homa_pl_tcp_unlock();
	homa_pl_close_own_fd(s->set->nudge_fd);
	homa_pl_spots_free(s->set);
	free(s->set);
	s->set = NULL;
}

static void fill(struct homa_pl_sock *s, void *arg)
{
	s->set = arg;
	s->drop = drop_set;
	homa_pl_tcp_lock();
	s->set->next_set = all_sets;
	all_sets = s->set;
	homa_pl_tcp_unlock();
}

/* A descriptor of the set @of; -1 if the program has just closed the last one. */
static int descriptor_of(const struct homa_pl_set *of)
{
	const struct homa_pl_sock *s = homa_pl_table_get(of->epfd);
	int fd = of->epfd;

	/* The program may have duplicated it, and closed the first one. */
	if (HOMA_PL_LIKELY(s && s->set == of))
		return fd;
	fd = -1;
	while ((fd = homa_pl_table_next(fd + 1)) >= 0) {
		s = homa_pl_table_get(fd);
		if (s && s->set == of)
			break;
	}
	return fd;
}

/* Before a fork() the sets become such as both processes may have: what homad tells the one may not
 * be taken by the other. */
static void share_all(void)
{
	struct homa_pl_set *set;
	struct homa_pl_watch *w;
	int epfd;

	for (set = all_sets; set; set = set->next_set) {
		bool open = set->ear.open && !set->ear.shared;

		set->ear.shared = true;
		homa_pl_once_share(set);
		epfd = open || set->spots ? descriptor_of(set) : -1;
		for (w = set->watches; epfd >= 0 && set->spots && w; w = w->of_set)
			if (w->spot)
				homa_pl_watch_tell_kernel(w, epfd);
		if (epfd < 0 || !open)
			continue;
		homa_pl_ear_close(&set->ear, epfd);
		homa_pl_ear_open(&set->ear, epfd,
				 (epoll_data_t){ .ptr = &set->homad_cookie });
	}
}

static struct homa_pl_sock *new_set(int epfd)
{
	struct homa_pl_set *set = calloc(1, sizeof(*set));
	struct homa_pl_sock *s = NULL;
	struct epoll_event event = { .events = EPOLLIN };

	if (!set)
		return NULL;
	set->last = &set->first;
	set->epfd = epfd;
	set->ready_fd = -1;
	set->nudge_fd = homa_pl_own_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	event.data.ptr = &set->cookie;
	if (set->nudge_fd >= 0 &&
	    !real_ctl(epfd, EPOLL_CTL_ADD, set->nudge_fd, &event))
		s = homa_pl_adopt(epfd, AF_UNSPEC, 0, fill, set);
	if (s) {
		/* The table has one reference, the caller another, as from homa_pl_find(). */
		__atomic_fetch_add(&s->refs, 1, __ATOMIC_RELAXED);
		homa_pl_hold();
		homa_pl_on_news(news_of);
		homa_pl_on_fork(share_all);
		return s;
	}
	homa_pl_close_own_fd(set->nudge_fd);
	free(set);
	return NULL;
}

void homa_pl_tcp_epoll_new(int epfd)
{
	struct homa_pl_sock *s = homa_pl_streams() ? new_set(epfd) : NULL;

	if (s)
		homa_pl_put(s);
}

/* Find the watch among those of the socket: the descriptor's number may have been another
 * socket's, and a socket is in few sets, while a set has many sockets. */
static struct homa_pl_watch *find_watch(const struct homa_pl_sock *s,
					const struct homa_pl_set *set, int fd)
{
	struct homa_pl_watch *w = s->tcp->watches;

	while (w && (w->set != set || w->fd != fd))
		w = w->of_sock;
	return w;
}

static int add(struct homa_pl_sock *s, struct homa_pl_set *set, int fd,
	       const struct epoll_event *event)
{
	struct homa_pl_watch *w;

	if (find_watch(s, set, fd))
		return -EEXIST;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->sock = s;
	w->set = set;
	w->fd = fd;
	w->own_fd = -1;
	w->event = *event;
	w->of_set = set->watches;
	set->watches = w;
	w->of_sock = s->tcp->watches;
	s->tcp->watches = w;
	return 0;
}

static int change(struct homa_pl_sock *s, struct homa_pl_set *set, int epfd,
		  int op, int fd, const struct epoll_event *event)
{
	struct homa_pl_watch *w = find_watch(s, set, fd);
	int rc = homa_pl_watch_wrong(op, event, w);

	if (rc)
		return rc;
	if (op == EPOLL_CTL_ADD)
		rc = add(s, set, fd, event);
	else if (!w)
		rc = -ENOENT;
	if (rc)
		return rc;
	w = find_watch(s, set, fd);
	if (op == EPOLL_CTL_DEL) {
		homa_pl_watch_leave(w, epfd);
		forget(w);
		return 0;
	}
	w->event = *event;
	homa_pl_once_arm(w);
	homa_pl_watch_tell_kernel(w, epfd);
	/* A thread that waits will look whether the stream is ready. */
	if (s->tcp->stream)
		homa_pl_ready_put(w, NULL);
	return 0;
}

/* The set of @epfd with a reference; it is made if there is none. NULL if @epfd is another file. */
static struct homa_pl_sock *find_set(int epfd)
{
	struct homa_pl_sock *set = homa_pl_find(epfd);

	if (!set)
		set = new_set(epfd);
	if (set && !set->set) {
		homa_pl_put(set);
		return NULL;
	}
	return set;
}

/* Do epoll_ctl() where @epfd is no set, or there is no memory or descriptor for one of ours. The
 * kernel's set gets no stream, of which it would tell what is not so. */
static int without_set(const struct homa_pl_sock *s, int epfd, int op, int fd,
		       struct epoll_event *event)
{
	int rc;

	if (!s->tcp->stream)
		return real_ctl(epfd, op, fd, event);
	/* The kernel says what is wrong with @epfd; if nothing is, that @fd is not there. */
	rc = real_ctl(epfd, EPOLL_CTL_DEL, fd, NULL);
	if (rc && rc != -ENOENT)
		return rc;
	return op == EPOLL_CTL_ADD ? -ENOMEM : -ENOENT;
}

int homa_pl_tcp_epoll_ctl(struct homa_pl_sock *s, int epfd, int op, int fd,
			  struct epoll_event *event)
{
	struct homa_pl_sock *set;
	int rc;

	if (op != EPOLL_CTL_DEL && !event)
		return -EFAULT;
	set = find_set(epfd);
	if (!set)
		return without_set(s, epfd, op, fd, event);
	homa_pl_tcp_lock();
	rc = change(s, set->set, epfd, op, fd, event);
	homa_pl_tcp_unlock();
	homa_pl_put(set);
	return rc;
}

int homa_pl_tcp_epoll_nest(struct homa_pl_sock *s, int epfd, int op, int fd,
			   struct epoll_event *event)
{
	struct homa_pl_sock *outer = op == EPOLL_CTL_ADD ? find_set(epfd) : NULL;
	int rc = outer ? homa_pl_set_is_nested(s->set, fd) : 0;

	if (outer)
		homa_pl_put(outer);
	return rc ? rc : real_ctl(epfd, op, fd, event);
}

void homa_pl_tcp_moved(struct homa_pl_sock *s)
{
	struct homa_pl_watch *w;

	homa_pl_tcp_lock();
	for (w = s->tcp->watches; w; w = w->of_sock) {
		homa_pl_watch_tell_kernel(w, descriptor_of(w->set));
		homa_pl_ready_put(w, NULL);
	}
	homa_pl_tcp_unlock();
}

void homa_pl_tcp_leaves(struct homa_pl_sock *s, int fd)
{
	struct homa_pl_watch *w;

	/* The table and the caller have a reference each. */
	if (HOMA_PL_LIKELY(!s->tcp->watches) ||
	    __atomic_load_n(&s->refs, __ATOMIC_RELAXED) <= 2)
		return;
	homa_pl_tcp_lock();
	for (w = s->tcp->watches; w; w = w->of_sock)
		if (w->fd == fd)
			homa_pl_watch_keep(w, descriptor_of(w->set));
	homa_pl_tcp_unlock();
}

void homa_pl_tcp_unwatch(struct homa_pl_sock *s)
{
	homa_pl_tcp_lock();
	while (s->tcp->watches)
		forget(s->tcp->watches);
	homa_pl_tcp_unlock();
}

/* ---- waiting ---- */

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

/* Ask the kernel's set, and do not wait. Who takes homad's signal out of it takes the news. */
static int kernel_events(struct homa_pl_set *set, int epfd,
			 struct epoll_event *events, int max,
			 const sigset_t *mask)
{
	const struct timespec now = { 0, 0 };
	struct ours ours = { .nudged = false };
	int n = homa_pl_kernel_wait(epfd, events, max, &now, mask);

	if (n < 0)
		return -errno;
	n = without_ours(set, events, n, &ours);
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
	int error = errno, n;

	pthread_cleanup_push(is_cancelled, &sleep);
	n = homa_pl_wait_in_set(epfd, events, max, until, mask);
	homa_pl_hold_again(sleep.depth);
	pthread_cleanup_pop(0);
	if (n > 0)
		n = without_ours(set, events, n, &ours);
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
		more = 0;
		/* Who may sleep asks the kernel by that. */
		if (n || ended || until <= homa_pl_now())
			more = kernel_events(set, epfd, events + n, max - n,
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
