// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Hooks of the calls that wait for descriptors. The kernel does the waiting,
 * as the descriptors are real; what is left for us:
 *
 *	* the descriptor of a Homa socket is made one that tells of messages
 *	  when it is waited for the first time (homa_pl_arm());
 *	* a Homa socket is always writable, but libhoma's descriptor may not be;
 *	* after fork(), a child may have to wait for its parent's port to become
 *	  free, which nothing tells: waiting is cut into slices then.
 */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include "hook.h"
#include "tcp.h"

/* The longest slice of a wait, in ns, while a port still belongs to the parent process. */
#define SLICE_NS 20000000
/* Lists with more descriptors are compared with the limit of open files. */
#define MANY 1000
#define OUT_EVENTS (POLLOUT | POLLWRNORM | POLLWRBAND)

/* Prepare a Homa socket to be waited for; false if @fd is none. @no_out becomes true if hooks have
 * to say that it is writable. */
static bool prepare(int fd, bool *no_out)
{
	struct homa_pl_sock *s = homa_pl_find(fd);
	int old = errno, cancel;

	if (!s)
		return false;
	if (s->tcp || s->set) {
		homa_pl_put(s);
		return false;
	}
	if (!homa_pl_begin(s, &cancel)) {
		homa_pl_arm(s, false);
		homa_pl_end(cancel);
	}
	*no_out = s->no_out;
	homa_pl_put(s);
	errno = old;
	return true;
}

static struct timespec *to_timespec(int64_t ns, struct timespec *ts)
{
	ts->tv_sec = ns / 1000000000;
	ts->tv_nsec = ns % 1000000000;
	return ns < 0 ? NULL : ts;
}

static int64_t from_timespec(const struct timespec *ts)
{
	if (!ts)
		return -1;
	if (ts->tv_sec > INT64_MAX / 2000000000)
		return -1;
	return ts->tv_sec * 1000000000ll + ts->tv_nsec;
}

/*
 * Shorten @ns (-1: for ever) to the next slice. @until is the time at which the whole wait
 * ends, in ns; 0 before the first slice. Returns true if this is not the last slice.
 */
static bool slice(int64_t *ns, int64_t *until)
{
	int64_t now;

	if (HOMA_PL_LIKELY(!homa_pl_missing_ports))
		return false;
	homa_pl_claim_ports();
	now = homa_pl_now();
	if (!*until)
		*until = *ns < 0 ? INT64_MAX : now + *ns;
	*ns = *until > now ? *until - now : 0;
	if (*ns <= SLICE_NS)
		return false;
	*ns = SLICE_NS;
	return true;
}

/* The time at which a wait of @ns ends, in ns; INT64_MAX if @ns is -1, for ever. */
static int64_t deadline(int64_t ns)
{
	int64_t now = ns > 0 ? homa_pl_now() : 0;

	return ns < 0 || ns > INT64_MAX - now ? INT64_MAX : now + ns;
}

/* ---- poll ---- */

/* Prepare all Homa sockets; true if one is to be writable that the kernel does not know as such. */
static bool prepare_poll(struct pollfd *fds, nfds_t n)
{
	bool no_out, any = false;
	nfds_t i;

	for (i = 0; i < n; i++)
		if (prepare(fds[i].fd, &no_out) && no_out &&
		    (fds[i].events & OUT_EVENTS))
			any = true;
	return any;
}

static int add_writable(struct pollfd *fds, nfds_t n, int count)
{
	bool no_out;
	nfds_t i;

	for (i = 0; i < n; i++) {
		if (!(fds[i].events & OUT_EVENTS) ||
		    !prepare(fds[i].fd, &no_out) || !no_out)
			continue;
		count += !fds[i].revents;
		fds[i].revents |= (short)(fds[i].events & OUT_EVENTS);
	}
	return count;
}

/* Are these more descriptors than there can be? Then the kernel shall return the error. */
static bool too_many(nfds_t n)
{
	struct rlimit most;

	return n > MANY && (n > INT_MAX || getrlimit(RLIMIT_NOFILE, &most) ||
			    n > most.rlim_cur);
}

static int poll_ns(struct pollfd *fds, nfds_t n, int64_t ns, const sigset_t *mask)
{
	struct timespec ts;
	int64_t until = 0;
	bool more;
	int rc;

	if (too_many(n))
		return HOMA_PL_REAL(ppoll)(fds, n, to_timespec(ns, &ts), mask);
	if (homa_pl_tcp_any(fds, n)) {
		prepare_poll(fds, n);
		rc = homa_pl_tcp_poll(fds, n, deadline(ns), mask);
		if (rc >= 0)
			return rc;
		errno = -rc;
		return -1;
	}
	if (prepare_poll(fds, n)) {
		rc = HOMA_PL_REAL(ppoll)(fds, n, to_timespec(0, &ts), mask);
		return rc < 0 ? rc : add_writable(fds, n, rc);
	}
	do {
		more = slice(&ns, &until);
		rc = HOMA_PL_REAL(ppoll)(fds, n, to_timespec(ns, &ts), mask);
	} while (more && !rc);
	return rc;
}

static int64_t from_ms(int ms)
{
	return ms < 0 ? -1 : ms * 1000000ll;
}

HOMA_PL_HOOK int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	if (HOMA_PL_LIKELY(!homa_pl_live) || !fds)
		return HOMA_PL_REAL(poll)(fds, n, timeout);
	return poll_ns(fds, n, from_ms(timeout), NULL);
}

HOMA_PL_HOOK int ppoll(struct pollfd *fds, nfds_t n,
		       const struct timespec *timeout, const sigset_t *mask)
{
	if (HOMA_PL_LIKELY(!homa_pl_live) || !fds || !homa_pl_is_time(timeout))
		return HOMA_PL_REAL(ppoll)(fds, n, timeout, mask);
	return poll_ns(fds, n, from_timespec(timeout), mask);
}

HOMA_PL_HOOK int __poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t room)
{
	if (HOMA_PL_LIKELY(!homa_pl_live) || room / sizeof(*fds) < n)
		return HOMA_PL_REAL(__poll_chk)(fds, n, timeout, room);
	return poll(fds, n, timeout);
}

HOMA_PL_HOOK int __ppoll_chk(struct pollfd *fds, nfds_t n,
			     const struct timespec *timeout,
			     const sigset_t *mask, size_t room)
{
	if (HOMA_PL_LIKELY(!homa_pl_live) || room / sizeof(*fds) < n)
		return HOMA_PL_REAL(__ppoll_chk)(fds, n, timeout, mask, room);
	return ppoll(fds, n, timeout, mask);
}

/* ---- select ---- */

/* Move Homa sockets that only hooks know to be writable from @writes to @ours; true if any. */
static bool prepare_select(int n, const fd_set *reads, fd_set *writes,
			   fd_set *ours)
{
	int fd = homa_pl_table_next(0);
	bool no_out, any = false;

	FD_ZERO(ours);
	for (; fd >= 0 && fd < n && fd < FD_SETSIZE;
	     fd = homa_pl_table_next(fd + 1)) {
		bool out = writes && FD_ISSET(fd, writes);

		if (!out && !(reads && FD_ISSET(fd, reads)))
			continue;
		if (!prepare(fd, &no_out) || !no_out || !out)
			continue;
		FD_CLR(fd, writes);
		FD_SET(fd, ours);
		any = true;
	}
	return any;
}

static int give_writable(int n, fd_set *writes, const fd_set *ours)
{
	int fd, count = 0;

	for (fd = 0; fd < n && fd < FD_SETSIZE; fd++) {
		if (!FD_ISSET(fd, ours))
			continue;
		FD_SET(fd, writes);
		count++;
	}
	return count;
}

static bool any_stream(int n, const fd_set *reads, const fd_set *writes,
		       const fd_set *excepts)
{
	struct pollfd one = { 0 };
	int fd = homa_pl_table_next(0);

	for (; fd >= 0 && fd < n; fd = homa_pl_table_next(fd + 1)) {
		one.fd = fd;
		if (((reads && FD_ISSET(fd, reads)) ||
		     (writes && FD_ISSET(fd, writes)) ||
		     (excepts && FD_ISSET(fd, excepts))) &&
		    homa_pl_tcp_any(&one, 1))
			return true;
	}
	return false;
}

static int select_ns(int n, fd_set *reads, fd_set *writes, fd_set *excepts,
		     int64_t ns, const sigset_t *mask)
{
	fd_set ours, kept[3];
	fd_set *sets[3] = { reads, writes, excepts };
	struct timespec ts;
	int64_t until = 0;
	bool more;
	int i, rc;

	if (any_stream(n, reads, writes, excepts)) {
		rc = homa_pl_tcp_select(n, reads, writes, excepts, deadline(ns),
					mask);
		if (rc >= 0)
			return rc;
		errno = -rc;
		return -1;
	}
	if (prepare_select(n, reads, writes, &ours)) {
		rc = HOMA_PL_REAL(pselect)(n, reads, writes, excepts,
					   to_timespec(0, &ts), mask);
		return rc < 0 ? rc : rc + give_writable(n, writes, &ours);
	}
	more = slice(&ns, &until);
	if (HOMA_PL_LIKELY(!more) || n > FD_SETSIZE)
		return HOMA_PL_REAL(pselect)(n, reads, writes, excepts,
					     to_timespec(ns, &ts), mask);
	/* A slice that ends empties the sets, so they are kept. */
	for (i = 0; i < 3; i++)
		if (sets[i])
			kept[i] = *sets[i];
	for (;;) {
		rc = HOMA_PL_REAL(pselect)(n, reads, writes, excepts,
					   to_timespec(ns, &ts), mask);
		if (rc || !more)
			return rc;
		more = slice(&ns, &until);
		for (i = 0; i < 3; i++)
			if (sets[i])
				*sets[i] = kept[i];
	}
}

HOMA_PL_HOOK int select(int n, fd_set *reads, fd_set *writes, fd_set *excepts,
			struct timeval *timeout)
{
	int64_t begin, rest, ns = -1;
	int rc;

	if (HOMA_PL_LIKELY(!homa_pl_live))
		return HOMA_PL_REAL(select)(n, reads, writes, excepts, timeout);
	if (!timeout)
		return select_ns(n, reads, writes, excepts, -1, NULL);
	if (timeout->tv_sec < 0 || timeout->tv_usec < 0) {
		errno = EINVAL;
		return -1;
	}
	if (timeout->tv_sec < INT64_MAX / 2000000000)
		ns = timeout->tv_sec * 1000000000ll + timeout->tv_usec * 1000ll;
	begin = homa_pl_now();
	rc = select_ns(n, reads, writes, excepts, ns, NULL);
	/* Linux tells what is left of the time. */
	rest = ns - (homa_pl_now() - begin);
	rest = rest > 0 ? rest : 0;
	timeout->tv_sec = rest / 1000000000;
	timeout->tv_usec = rest % 1000000000 / 1000;
	return rc;
}

HOMA_PL_HOOK int pselect(int n, fd_set *reads, fd_set *writes, fd_set *excepts,
			 const struct timespec *timeout, const sigset_t *mask)
{
	if (HOMA_PL_LIKELY(!homa_pl_live) || !homa_pl_is_time(timeout))
		return HOMA_PL_REAL(pselect)(n, reads, writes, excepts, timeout,
					     mask);
	return select_ns(n, reads, writes, excepts, from_timespec(timeout), mask);
}
