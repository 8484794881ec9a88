// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The pair of UNIX sockets of which the program gets one end. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
#include "supervisor.h"

/* Their family stands in an option of the program's end that it cannot reach. */
#define PRIORITY_V4 4
#define PRIORITY_V6 6

int homa_sv_pair_family(int theirs)
{
	struct ucred maker = { 0 };
	socklen_t size = sizeof(maker);

	if (getsockopt(theirs, SOL_SOCKET, SO_PEERCRED, &maker, &size) ||
	    maker.pid != getpid())
		return 0;
	switch (homa_sv_number(theirs, SOL_SOCKET, SO_PRIORITY, 0)) {
	case PRIORITY_V4:
		return AF_INET;
	case PRIORITY_V6:
		return AF_INET6;
	default:
		return 0;
	}
}

int homa_sv_pair(struct homa_sv_sock *s, bool nonblocking)
{
	int priority = s->family == AF_INET6 ? PRIORITY_V6 : PRIORITY_V4;
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
		       ends))
		return -errno;
	if (!nonblocking)
		fcntl(ends[1], F_SETFL, 0);
	setsockopt(ends[1], SOL_SOCKET, SO_PRIORITY, &priority, sizeof(priority));
	s->end = ends[0];
	s->may_read = s->may_write = true;
	return ends[1];
}

/* The kernel says of a UNIX socket that it can be written to while a quarter of its buffer is used,
 * or less. */
void homa_sv_fill(struct homa_sv_sock *s, int theirs)
{
	static const u8 nothing[4096];
	u32 wanted =
		(u32)homa_sv_number(theirs, SOL_SOCKET, SO_SNDBUF, 212992) / 4 +
		1;
	ssize_t n;

	while (s->junk < wanted) {
		n = send(theirs, nothing, sizeof(nothing),
			 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n <= 0)
			break;
		s->junk += (u32)n;
	}
}

static void copy_timeout(int to, int from, int name)
{
	struct timeval limit;
	socklen_t size = sizeof(limit);

	if (!getsockopt(from, SOL_SOCKET, name, &limit, &size) &&
	    (limit.tv_sec || limit.tv_usec))
		setsockopt(to, SOL_SOCKET, name, &limit, size);
}

int homa_sv_replace(struct homa_supervisor *sv, struct homa_sv_sock *s,
		    const struct homa_sv_call *call, int fd, int like, bool fill)
{
	int flags = fcntl(like, F_GETFL);
	int theirs = homa_sv_pair(s, flags >= 0 && (flags & O_NONBLOCK));
	int least, rc;

	if (theirs < 0)
		return theirs;
	copy_timeout(theirs, like, SO_RCVTIMEO);
	copy_timeout(theirs, like, SO_SNDTIMEO);
	least = homa_sv_number(like, SOL_SOCKET, SO_RCVLOWAT, 1);
	if (least != 1)
		setsockopt(theirs, SOL_SOCKET, SO_RCVLOWAT, &least,
			   sizeof(least));
	if (fill)
		homa_sv_fill(s, theirs);
	rc = homa_sv_watch(sv, s, s->end, false);
	if (!rc)
		rc = homa_sv_put(sv, call, theirs, fd, s->cookie);
	if (rc) {
		close(s->end);
		s->end = -1;
		s->junk = 0;
	} else {
		s->owner = call->thread;
		s->owner_fd = fd;
		homa_sv_rename(sv, s, homa_sv_cookie(theirs));
	}
	close(theirs);
	return rc;
}
