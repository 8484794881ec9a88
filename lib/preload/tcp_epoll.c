// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Epoll sets with TCP sockets in them. The set is the kernel's, and has what is the
 * kernel's in it; streams are watched here. A stream with news goes into the ready lists
 * of the sets that watch it, and stays there, with level triggering, as long as it is
 * found ready. To sleep is the kernel's again: in its set there are two descriptors more,
 * homad's and one by which other threads of this process say that a list has grown.
 * tcp_ready.c has the lists, and tells sets in which a set is. tcp_epoll_wait.c waits.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include "internal.h"
#include "pl_signals.h"
#include "tcp.h"
#include "tcp_ready.h"
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

/* The program has put something into the kernel's set of which the kernel alone tells. */
static void has_others(struct homa_pl_set *set)
{
	__atomic_store_n(&set->others, true, __ATOMIC_RELAXED);
	/* It may be ready. */
	__atomic_store_n(&set->asked_at, 0, __ATOMIC_RELAXED);
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
	__atomic_store_n(&set->asked_at, 0, __ATOMIC_RELAXED);
	if (w->kernels && !s->tcp->listens)
		has_others(set);
	/* A thread that waits will look whether the stream is ready. */
	if (s->tcp->stream)
		homa_pl_ready_put(w, NULL);
	return 0;
}

/* The set of @epfd with a reference; it is made if there is none. NULL if @epfd is another file. */
static struct homa_pl_sock *find_set(int epfd)
{
	struct homa_pl_sock *set = homa_pl_find(epfd);

	if (!set) {
		set = new_set(epfd);
		/* Nobody has seen what else is in it. */
		if (set)
			has_others(set->set);
	}
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

void homa_pl_tcp_epoll_other(int epfd)
{
	struct homa_pl_sock *set = homa_pl_find(epfd);

	if (set && set->set)
		has_others(set->set);
	if (set)
		homa_pl_put(set);
}

int homa_pl_tcp_epoll_nest(struct homa_pl_sock *s, int epfd, int op, int fd,
			   struct epoll_event *event)
{
	struct homa_pl_sock *outer = op == EPOLL_CTL_ADD ? find_set(epfd) : NULL;
	int rc = outer ? homa_pl_set_is_nested(s->set, fd) : 0;

	if (outer) {
		has_others(outer->set);
		homa_pl_put(outer);
	}
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
