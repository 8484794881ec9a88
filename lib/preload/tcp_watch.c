// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What the kernel's set has of the sockets that a program watches, and what epoll_ctl() refuses as
 * the kernel does. Connections come to a listener by homad and by the kernel, and with EPOLLONESHOT
 * both would tell once. So the kernel's set does not tell the program of such a listener. It tells
 * us, at each edge, and who has heard that asks the kernel's socket when it looks at the stream.
 * All that is told of the listener is told in one place then, once until it is armed anew.
 */
#include <errno.h>
#include <poll.h>
#include "internal.h"
#include "preload_sock.h"
#include "tcp_common.h"
#include "tcp_ready.h"
#include "real.h"

/* All that epoll_ctl() takes together with EPOLLEXCLUSIVE. */
#define WITH_EXCLUSIVE                                                   \
	((uint32_t)(EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLET | \
		    EPOLLWAKEUP | EPOLLEXCLUSIVE))

int homa_pl_watch_wrong(int op, const struct epoll_event *event,
			const struct homa_pl_watch *w)
{
	if (op == EPOLL_CTL_DEL)
		return 0;
	if (op != EPOLL_CTL_ADD && op != EPOLL_CTL_MOD)
		return -EINVAL;
	if (op == EPOLL_CTL_MOD && w && (w->event.events & EPOLLEXCLUSIVE))
		return -EINVAL;
	if (!(event->events & EPOLLEXCLUSIVE))
		return 0;
	return op == EPOLL_CTL_MOD || (event->events & ~WITH_EXCLUSIVE) ?
		       -EINVAL :
		       0;
}

void homa_pl_watch_end(struct homa_pl_watch *w)
{
	struct homa_pl_watch **at = &w->set->both;

	if (HOMA_PL_LIKELY(!w->both))
		return;
	while (*at != w)
		at = &(*at)->of_both;
	*at = w->of_both;
	w->both = false;
}

/* Does only this process tell of the socket, which both ways make ready, and once? */
static bool tells_once(const struct homa_pl_watch *w)
{
	return (w->event.events & EPOLLONESHOT) && w->sock->tcp->stream &&
	       w->sock->tcp->listens && !w->set->ear.shared;
}

static void begin_both(struct homa_pl_watch *w, struct epoll_event *event)
{
	w->both = true;
	w->of_both = w->set->both;
	w->set->both = w;
	event->events = (event->events & ~(uint32_t)EPOLLONESHOT) | EPOLLET;
	event->data.ptr = &w->set->both_cookie;
}

/* Only sockets for which something can come from the kernel are in the kernel's set. */
static bool belongs_there(const struct homa_pl_sock *s)
{
	return !s->tcp->stream || s->tcp->listens;
}

void homa_pl_watch_tell_kernel(struct homa_pl_watch *w, int epfd)
{
	struct epoll_event event = w->event;
	int op = w->kernels ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
	bool there = belongs_there(w->sock);

	/* The kernel takes no changes of such an entry, and this one is as it was. */
	if (there && w->kernels && (event.events & EPOLLEXCLUSIVE))
		return;
	if (w->off)
		event.events = EPOLLONESHOT;
	homa_pl_watch_end(w);
	if (tells_once(w))
		begin_both(w, &event);
	if (there)
		w->kernels = !HOMA_PL_REAL(epoll_ctl)(epfd, op, w->fd, &event);
	else if (w->kernels)
		w->kernels = HOMA_PL_REAL(epoll_ctl)(epfd, EPOLL_CTL_DEL, w->fd,
						     &event);
}

uint32_t homa_pl_watch_kernels(const struct homa_pl_watch *w)
{
	struct pollfd asked = { .fd = w->fd,
				.events = (short)(w->event.events & 0xffff) };

	/* The number may be another file's, if the socket was duplicated before. */
	if (homa_pl_table_get(w->fd) != w->sock ||
	    HOMA_PL_REAL(poll)(&asked, 1, 0) <= 0)
		return 0;
	return (uint32_t)(unsigned short)asked.revents;
}
