// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What the kernel's set has of the sockets that a program watches, and what epoll_ctl() refuses as
 * the kernel does.
 *
 * With EPOLLONESHOT a socket is told once until it is armed anew. If homad and the kernel told of
 * it, as of a listener, or the kernel before and homad after connect(), each would tell once. So
 * the kernel's set does not tell the program of such a socket. It tells us (tcp_spot.c), at each
 * edge, and who has heard that asks the kernel's socket when it looks at the stream. All that is
 * told of the socket is told in one place then.
 *
 * The kernel knows an entry of its set by file and number. When the program closes a duplicate of a
 * socket the number may become another file's, and the entry, which stays, could not be changed. So
 * it gets a descriptor of this library before.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
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

/* The descriptor by which the kernel's set has the watch. -1 if its number is another file's. */
static int descriptor(const struct homa_pl_watch *w)
{
	if (w->own_fd >= 0)
		return w->own_fd;
	return homa_pl_table_get(w->fd) == w->sock ? w->fd : -1;
}

void homa_pl_watch_end(struct homa_pl_watch *w)
{
	homa_pl_spot_leave(w);
	homa_pl_once_end(w);
	homa_pl_close_own_fd(w->own_fd);
	w->own_fd = -1;
}

static bool is_closed(int fd)
{
	socklen_t size = 1;
	uint8_t state;

	return !HOMA_PL_REAL(getsockopt)(fd, IPPROTO_TCP, TCP_INFO, &state,
					 &size) &&
	       state == TCP_CLOSE;
}

/* Can homad tell of the socket, now or later, and the kernel, too? */
static bool has_both_ways(const struct homa_pl_watch *w)
{
	const struct homa_pl_tcp *tcp = w->sock->tcp;

	if (tcp->stream)
		return tcp->listens;
	return !tcp->kernels && !tcp->forked && is_closed(descriptor(w));
}

/* Does only this process tell of the socket, which both ways make ready, and once? */
static bool tells_once(const struct homa_pl_watch *w)
{
	return (w->event.events & EPOLLONESHOT) && !w->set->ear.shared &&
	       has_both_ways(w);
}

/* Only sockets for which something can come from the kernel are in the kernel's set. */
static bool belongs_there(const struct homa_pl_sock *s)
{
	return !s->tcp->stream || s->tcp->listens;
}

/* What the kernel's set gets of the watch; false: nothing, because the program was told once. */
static bool event_for(struct homa_pl_watch *w, struct epoll_event *event)
{
	*event = w->event;
	if (tells_once(w) && homa_pl_spot_take(w)) {
		event->events =
			w->off ? 0 : event->events & ~(uint32_t)EPOLLONESHOT;
		event->events |= EPOLLET;
		event->data.ptr = w->spot;
		return true;
	}
	homa_pl_spot_leave(w);
	return !homa_pl_once_was_told(w);
}

/* Put the watch into the kernel's set, or change what is there. Another process that has the set,
 * too, may have done either before. */
static bool put(const struct homa_pl_watch *w, int epfd, struct epoll_event *event)
{
	int first = w->kernels ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
	int other = w->kernels ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;

	if (!HOMA_PL_REAL(epoll_ctl)(epfd, first, descriptor(w), event))
		return true;
	return (errno == EEXIST || errno == ENOENT) &&
	       !HOMA_PL_REAL(epoll_ctl)(epfd, other, descriptor(w), event);
}

void homa_pl_watch_tell_kernel(struct homa_pl_watch *w, int epfd)
{
	bool there = belongs_there(w->sock);
	struct epoll_event event;

	/* The kernel takes no changes of such an entry, and this one is as it was. */
	if (there && w->kernels && (w->event.events & EPOLLEXCLUSIVE))
		return;
	if (event_for(w, &event) && there)
		w->kernels = put(w, epfd, &event);
	else
		homa_pl_watch_leave(w, epfd);
}

void homa_pl_watch_leave(struct homa_pl_watch *w, int epfd)
{
	struct epoll_event event = { 0 };

	if (w->kernels)
		w->kernels = HOMA_PL_REAL(epoll_ctl)(epfd, EPOLL_CTL_DEL,
						     descriptor(w), &event);
}

void homa_pl_watch_keep(struct homa_pl_watch *w, int epfd)
{
	int fd;

	/* Of others the kernel alone tells, or it knows alone what was told. */
	if (!w->kernels || w->own_fd >= 0 || w->set->ear.shared ||
	    !has_both_ways(w) || (!w->spot && (w->event.events & EPOLLONESHOT)))
		return;
	fd = homa_pl_own_fd(HOMA_PL_REAL(fcntl)(w->fd, F_DUPFD_CLOEXEC, 0));
	if (fd < 0)
		return;
	homa_pl_watch_leave(w, epfd);
	w->own_fd = fd;
	homa_pl_watch_tell_kernel(w, epfd);
}

uint32_t homa_pl_watch_kernels(const struct homa_pl_watch *w)
{
	struct pollfd asked = { .fd = descriptor(w),
				.events = (short)(w->event.events & 0xffff) };

	if (HOMA_PL_REAL(poll)(&asked, 1, 0) <= 0)
		return 0;
	return (uint32_t)(unsigned short)asked.revents;
}
