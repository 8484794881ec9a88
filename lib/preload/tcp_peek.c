// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * SO_PEEK_OFF. While it is set, a look at bytes (MSG_PEEK) begins so many bytes behind the next one
 * to be read, and the next look begins where this one has ended. What is read comes off the offset,
 * down to 0. The kernel's socket has only the value that the program has set last.
 */
#include "stream_fork.h"
#include "tcp.h"
#include "tcp_common.h"

void homa_pl_tcp_peek_move(struct homa_pl_sock *s, ssize_t by)
{
	int64_t to;

	homa_pl_tcp_change(s);
	to = s->tcp->peek_off + (int64_t)by;
	/* The program may have turned it off meanwhile. */
	if (s->tcp->peek_off >= 0)
		s->tcp->peek_off = to < 0	  ? 0 :
				   to > INT32_MAX ? INT32_MAX :
						    (int32_t)to;
	homa_pl_tcp_changed(s);
}

/* Count what has arrived behind the offset @from, @most bytes at most (MSG_TRUNC). */
static ssize_t measure(struct homa_stream *stream, size_t from, size_t most)
{
	struct iovec piece[2];
	char byte;
	struct iovec one = { &byte, 1 };
	ssize_t rc = homa_stream_peek_at(stream, &one, 1, from);
	size_t all;

	if (rc <= 0)
		return rc;
	all = homa_stream_arrived(stream, piece);
	/* Another process may have read some meanwhile. */
	all = all > from ? all - from : 1;
	return (ssize_t)(all < most ? all : most);
}

ssize_t homa_pl_tcp_peek(struct homa_pl_sock *s, const struct iovec *iov, int n,
			 size_t most, bool counts)
{
	struct homa_stream *stream = s->tcp->last;
	size_t from = s->tcp->peek_off > 0 ? (size_t)s->tcp->peek_off : 0;

	return counts ? measure(stream, from, most) :
			homa_stream_peek_at(stream, iov, n, from);
}
