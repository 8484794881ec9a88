// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Urgent bytes as programs know them: MSG_OOB, POLLPRI, SIOCATMARK. lib/stream/urgent.c has where
 * they are. */
#include <errno.h>
#include "hook.h"
#include "tcp.h"
#include "tcp_common.h"

bool homa_pl_tcp_inlines(int fd)
{
	socklen_t size = sizeof(int);
	int on = 0;

	return !HOMA_PL_REAL(getsockopt)(fd, SOL_SOCKET, SO_OOBINLINE, &on,
					 &size) &&
	       on;
}

ssize_t homa_pl_tcp_recv_urgent(struct homa_pl_sock *s, const struct iovec *iov,
				int n, int flags)
{
	char byte;
	int i, rc;

	homa_pl_tcp_fetch(s);
	if (s->tcp->inlines)
		return -EINVAL;
	pthread_mutex_lock(&s->reading);
	rc = homa_stream_give_urgent(s->tcp->last, &byte, flags & MSG_PEEK);
	pthread_mutex_unlock(&s->reading);
	for (i = 0; rc == 1 && i < n; i++) {
		if (!iov[i].iov_len)
			continue;
		if (!(flags & MSG_TRUNC))
			*(char *)iov[i].iov_base = byte;
		return 1;
	}
	/* There was no room for it. */
	return rc == 1 ? 0 : rc;
}

int homa_pl_tcp_urgent_ready(struct homa_pl_sock *s, unsigned int *bits)
{
	struct homa_stream *stream = s->tcp->last;
	struct homa_stream_mark mark;
	struct iovec piece[2];

	if (!homa_stream_mark(stream, &mark))
		return 0;
	/* An urgent byte alone is nothing to read. */
	if (!mark.ahead && mark.here && !s->tcp->inlines &&
	    homa_stream_arrived(stream, piece) < 2)
		*bits &= ~(unsigned int)HOMA_STREAM_IN;
	return mark.here && !mark.given ? POLLPRI : 0;
}

size_t homa_pl_tcp_unmarked(struct homa_pl_sock *s, size_t unread)
{
	struct homa_stream_mark mark;

	if (s->tcp->inlines || !homa_stream_mark(s->tcp->last, &mark) ||
	    !mark.here)
		return unread;
	return mark.ahead < unread ? mark.ahead : unread;
}

int homa_pl_tcp_at_mark(struct homa_pl_sock *s, int *out)
{
	struct homa_stream_mark mark;

	if (s->tcp->listens)
		return -EINVAL;
	*out = homa_stream_mark(s->tcp->last, &mark) && !mark.ahead;
	return 0;
}
