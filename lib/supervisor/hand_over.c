// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The pair of UNIX sockets of which the program gets one end. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
#include "supervisor.h"

int homa_sv_pair(struct homa_sv_sock *s, bool nonblocking)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
		       ends))
		return -errno;
	if (!nonblocking)
		fcntl(ends[1], F_SETFL, 0);
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
