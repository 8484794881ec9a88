// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Hooks of epoll. Waiting is the kernel's; what is registered is the socket's
 * readiness descriptor, and if that cannot say that the socket is writable,
 * beside it one that always is, with the same data. With EPOLLET libhoma
 * signals every message, not only the first of several.
 */
#include <fcntl.h>
#include <limits.h>
#include "hook.h"
#include "preload_sock.h"
#include "pl_signals.h"
#include "tcp.h"

#define OUT_EVENTS (EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND)
/* The longest slice of a wait, in ms, while a port still belongs to the parent process. */
#define SLICE_MS 20

static int epoll_real(int epfd, int op, int fd, struct epoll_event *event)
{
	return HOMA_PL_REAL(epoll_ctl)(epfd, op, fd, event) ? -errno : 0;
}

/* Keep the descriptor that is always writable in the set exactly if @event asks for output. */
static int register_out(struct homa_pl_sock *s, int epfd, int op,
			const struct epoll_event *event)
{
	struct epoll_event out = { 0 };
	int rc, fd;

	if (op == EPOLL_CTL_DEL || !(event->events & OUT_EVENTS)) {
		if (s->out_fd >= 0 && op != EPOLL_CTL_ADD)
			epoll_real(epfd, EPOLL_CTL_DEL, s->out_fd, &out);
		return 0;
	}
	homa_pl_lock_fds();
	if (s->out_fd < 0) {
		fd = homa_pl_placeholder(true);
		s->out_fd = fd < 0 ? -1 : fd;
	}
	homa_pl_unlock_fds();
	out.events = event->events & (OUT_EVENTS | EPOLLET | EPOLLONESHOT);
	out.data = event->data;
	rc = epoll_real(epfd, EPOLL_CTL_MOD, s->out_fd, &out);
	return rc == -ENOENT ? epoll_real(epfd, EPOLL_CTL_ADD, s->out_fd, &out) :
			       rc;
}

static int control(struct homa_pl_sock *s, int epfd, int op, int fd,
		   struct epoll_event *event)
{
	int rc = 0;

	if (op != EPOLL_CTL_DEL) {
		if (!event)
			return -EFAULT;
		rc = homa_pl_arm(s, event->events & EPOLLET);
	}
	if (!rc)
		rc = epoll_real(epfd, op, fd, event);
	if (!rc && s->no_out)
		rc = register_out(s, epfd, op, event);
	return rc;
}

static int made(int epfd)
{
	int before = errno;

	if (epfd >= 0 && homa_pl_tcp_wanted(AF_INET, SOCK_STREAM, 0)) {
		homa_pl_hold();
		homa_pl_tcp_epoll_new(epfd);
		homa_pl_unhold();
	}
	errno = before;
	return epfd;
}

HOMA_PL_HOOK int epoll_create(int size)
{
	return made(HOMA_PL_REAL(epoll_create)(size));
}

HOMA_PL_HOOK int epoll_create1(int flags)
{
	return made(HOMA_PL_REAL(epoll_create1)(flags));
}

HOMA_PL_HOOK int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	struct homa_pl_sock *s = homa_pl_find(fd);
	int rc, cancel;

	if ((!s || (!s->tcp && !s->set)) && op != EPOLL_CTL_DEL)
		homa_pl_tcp_epoll_other(epfd);
	if (!s)
		return HOMA_PL_REAL(epoll_ctl)(epfd, op, fd, event);
	if (s->tcp)
		return (int)homa_pl_result(s, homa_pl_tcp_epoll_ctl(s, epfd, op,
								    fd, event));
	if (s->set)
		return (int)homa_pl_result(s, homa_pl_tcp_epoll_nest(s, epfd, op,
								     fd, event));
	rc = homa_pl_begin(s, &cancel);
	if (!rc) {
		rc = control(s, epfd, op, fd, event);
		homa_pl_end(cancel);
	}
	return (int)homa_pl_result(s, rc);
}

/* Wait for @ns (-1: for ever) in slices, and look for the parent's port after each. */
static int wait_sliced(int epfd, struct epoll_event *events, int max,
		       int64_t ns, const sigset_t *mask)
{
	int64_t until = ns < 0 ? INT64_MAX : homa_pl_now() + ns;
	int rc, ms;

	do {
		int64_t left = until - homa_pl_now();

		homa_pl_claim_ports();
		ms = SLICE_MS;
		if (left < SLICE_MS * 1000000ll)
			ms = left > 0 ? (int)((left + 999999) / 1000000) : 0;
		rc = HOMA_PL_REAL(epoll_pwait)(epfd, events, max, ms, mask);
	} while (!rc && homa_pl_now() < until);
	return rc;
}

static int64_t from_ms(int ms)
{
	return ms < 0 ? -1 : ms * 1000000ll;
}

/* Returns whether @s, which was found and may be NULL, is an epoll set with TCP sockets. If
 * it is not, the reference to @s is dropped. */
static bool has_streams(struct homa_pl_sock *s)
{
	if (s && s->set)
		return true;
	if (s)
		homa_pl_put(s);
	return false;
}

static int wait_streams(struct homa_pl_sock *s, int epfd,
			struct epoll_event *events, int max, int64_t ns,
			const sigset_t *mask)
{
	int64_t now = ns > 0 ? homa_pl_now() : 0;
	int64_t until = ns < 0 || ns > INT64_MAX - now ? INT64_MAX : now + ns;

	return (int)homa_pl_result(s, homa_pl_tcp_epoll_wait(s, epfd, events,
							     max, until, mask));
}

HOMA_PL_HOOK int epoll_wait(int epfd, struct epoll_event *events, int max,
			    int timeout)
{
	struct homa_pl_sock *s = homa_pl_find_or_cancel(epfd);

	if (has_streams(s))
		return wait_streams(s, epfd, events, max, from_ms(timeout), NULL);
	if (HOMA_PL_LIKELY(!homa_pl_missing_ports))
		return HOMA_PL_REAL(epoll_wait)(epfd, events, max, timeout);
	return wait_sliced(epfd, events, max, from_ms(timeout), NULL);
}

HOMA_PL_HOOK int epoll_pwait(int epfd, struct epoll_event *events, int max,
			     int timeout, const sigset_t *mask)
{
	struct homa_pl_sock *s = homa_pl_find_or_cancel(epfd);

	if (has_streams(s))
		return wait_streams(s, epfd, events, max, from_ms(timeout), mask);
	if (HOMA_PL_LIKELY(!homa_pl_missing_ports))
		return HOMA_PL_REAL(epoll_pwait)(epfd, events, max, timeout,
						 mask);
	return wait_sliced(epfd, events, max, from_ms(timeout), mask);
}

HOMA_PL_HOOK int epoll_pwait2(int epfd, struct epoll_event *events, int max,
			      const struct timespec *timeout,
			      const sigset_t *mask)
{
	struct homa_pl_sock *s = homa_pl_find_or_cancel(epfd);
	int64_t ns = -1;

	if (timeout && timeout->tv_sec < INT64_MAX / 2000000000)
		ns = timeout->tv_sec * 1000000000ll + timeout->tv_nsec;
	if (!homa_pl_is_time(timeout)) {
		if (s)
			homa_pl_put(s);
		errno = EINVAL;
		return -1;
	}
	if (has_streams(s))
		return wait_streams(s, epfd, events, max, ns, mask);
	if (HOMA_PL_LIKELY(!homa_pl_missing_ports)) {
		if (HOMA_PL_REAL(epoll_pwait2))
			return HOMA_PL_REAL(epoll_pwait2)(epfd, events, max,
							  timeout, mask);
		errno = ENOSYS;
		return -1;
	}
	return wait_sliced(epfd, events, max, ns, mask);
}
