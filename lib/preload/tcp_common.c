// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What is of a connection and not of a process: O_NONBLOCK, shutdown() and the options that
 * decide how calls wait. With the kernel all processes that have a socket have these
 * together. A connection that was given to another process once has them in memory that both
 * share, and the fields of struct homa_pl_sock and struct homa_pl_tcp are copies, which each
 * call fetches anew. Changes are made under homa_pl_tcp_lock(), which fork() takes, too.
 *
 * A listener has the kernel's socket, whose open file description all these processes have. It
 * never blocks in the kernel, so that whether the program wants it to is kept there in a flag that
 * means nothing to a socket.
 */
#include <fcntl.h>
#include <sys/time.h>
#include "real.h"
#include "stream_fork.h"
#include "tcp_common.h"

#define WANTS_NONBLOCK O_APPEND
#define NONBLOCK 1u
#define SHUT_READ 2u
#define SHUT_WRITE 4u
#define IS_V6 8u
#define INLINES 16u
#define ALL_OPTIONS                                                       \
	(HOMA_STREAM_NODELAY | HOMA_STREAM_CORK | HOMA_STREAM_KEEPALIVE | \
	 HOMA_STREAM_RESET)

/* struct common - the shared memory of a connection. Processes that share it trust each other, so
 * what they can do by wrong values is what they can do anyway; they do no harm to this one. */
struct common {
	/* A set of NONBLOCK, SHUT_READ, SHUT_WRITE and INLINES, and of IS_V6 if it is an AF_INET6
	 * socket. */
	uint32_t flags;
	/* The others are as in struct homa_pl_sock and struct homa_pl_tcp. */
	uint32_t options;
	/* The bytes of SO_RCVLOWAT. */
	uint64_t least;
	/* Times in ns. */
	int64_t rcvtimeo, sndtimeo, linger;
	/* The bytes of SO_SNDBUF, 0 if it was not set. */
	uint32_t send_most;
	/* The value of SO_PEEK_OFF and 1, so that 0 says that it was not set: libraries of before
	 * do not write it. */
	uint32_t peek_off;
	/* The bytes of TCP_NOTSENT_LOWAT, 0 if it was not set, as libraries of before leave it. */
	uint32_t unsent_most;
};

_Static_assert(sizeof(struct common) <= 64, "homa_stream_common()");

static int64_t time_of(const int64_t *word)
{
	int64_t time = __atomic_load_n(word, __ATOMIC_RELAXED);

	return time < -1 ? -1 : time;
}

void homa_pl_tcp_fetch_common(struct homa_pl_sock *s)
{
	const struct common *common = homa_stream_common(s->tcp->last);
	struct homa_pl_tcp *tcp = s->tcp;
	uint32_t flags;

	if (!common)
		return;
	flags = __atomic_load_n(&common->flags, __ATOMIC_ACQUIRE);
	s->status = flags & NONBLOCK ? O_NONBLOCK : 0;
	s->rcvtimeo = time_of(&common->rcvtimeo);
	s->sndtimeo = time_of(&common->sndtimeo);
	tcp->shut_read = flags & SHUT_READ;
	tcp->shut_write = flags & SHUT_WRITE;
	tcp->inlines = flags & INLINES;
	tcp->options = __atomic_load_n(&common->options, __ATOMIC_RELAXED) &
		       ALL_OPTIONS;
	tcp->least = __atomic_load_n(&common->least, __ATOMIC_RELAXED);
	tcp->linger = time_of(&common->linger);
	tcp->send_most = __atomic_load_n(&common->send_most, __ATOMIC_RELAXED);
	tcp->peek_off =
		(int32_t)(__atomic_load_n(&common->peek_off, __ATOMIC_RELAXED) -
			  1);
	tcp->unsent_most =
		__atomic_load_n(&common->unsent_most, __ATOMIC_RELAXED);
	homa_stream_limit_send(tcp->last, tcp->send_most);
	homa_stream_limit_unsent(tcp->last, tcp->unsent_most);
}

static void store(const struct homa_pl_sock *s, struct common *common)
{
	const struct homa_pl_tcp *tcp = s->tcp;
	uint32_t flags = s->status & O_NONBLOCK ? NONBLOCK : 0;

	flags |= tcp->shut_read ? SHUT_READ : 0;
	flags |= tcp->shut_write ? SHUT_WRITE : 0;
	flags |= tcp->inlines ? INLINES : 0;
	flags |= s->family == AF_INET6 ? IS_V6 : 0;
	__atomic_store_n(&common->options, tcp->options, __ATOMIC_RELAXED);
	__atomic_store_n(&common->least, tcp->least, __ATOMIC_RELAXED);
	__atomic_store_n(&common->rcvtimeo, s->rcvtimeo, __ATOMIC_RELAXED);
	__atomic_store_n(&common->sndtimeo, s->sndtimeo, __ATOMIC_RELAXED);
	__atomic_store_n(&common->linger, tcp->linger, __ATOMIC_RELAXED);
	__atomic_store_n(&common->send_most, tcp->send_most, __ATOMIC_RELAXED);
	__atomic_store_n(&common->peek_off, (uint32_t)tcp->peek_off + 1,
			 __ATOMIC_RELAXED);
	__atomic_store_n(&common->unsent_most, tcp->unsent_most,
			 __ATOMIC_RELAXED);
	__atomic_store_n(&common->flags, flags, __ATOMIC_RELEASE);
}

void homa_pl_tcp_store_common(struct homa_pl_sock *s)
{
	struct common *common = homa_stream_common(s->tcp->last);

	if (common)
		store(s, common);
}

void homa_pl_tcp_fetch_listener(struct homa_pl_sock *s)
{
	int flags = HOMA_PL_REAL(fcntl)(s->tcp->fd, F_GETFL);
	struct timeval limit;
	socklen_t size = sizeof(limit);

	if (flags < 0)
		return;
	s->status = flags & WANTS_NONBLOCK ? O_NONBLOCK : 0;
	if (!HOMA_PL_REAL(getsockopt)(s->tcp->fd, SOL_SOCKET, SO_RCVTIMEO,
				      &limit, &size))
		s->rcvtimeo = limit.tv_sec || limit.tv_usec ?
				      limit.tv_sec * 1000000000ll +
					      limit.tv_usec * 1000ll :
				      -1;
}

bool homa_pl_tcp_seems_nonblocking(const struct homa_pl_sock *s, int fd)
{
	int flags = HOMA_PL_REAL(fcntl)(fd, F_GETFL);

	return flags >= 0 && !(s->status & O_NONBLOCK) &&
	       (flags & (O_NONBLOCK | WANTS_NONBLOCK)) == O_NONBLOCK;
}

void homa_pl_tcp_store_listener(const struct homa_pl_sock *s)
{
	int flags = HOMA_PL_REAL(fcntl)(s->tcp->fd, F_GETFL);

	if (flags < 0)
		return;
	flags = (flags & ~WANTS_NONBLOCK) | O_NONBLOCK |
		(s->status & O_NONBLOCK ? WANTS_NONBLOCK : 0);
	HOMA_PL_REAL(fcntl)(s->tcp->fd, F_SETFL, flags);
}

void homa_pl_tcp_leave_listener(const struct homa_pl_sock *s)
{
	int flags = HOMA_PL_REAL(fcntl)(s->tcp->fd, F_GETFL);

	if (flags < 0)
		return;
	if (!(flags & WANTS_NONBLOCK))
		flags &= ~O_NONBLOCK;
	HOMA_PL_REAL(fcntl)(s->tcp->fd, F_SETFL, flags & ~WANTS_NONBLOCK);
}

void homa_pl_tcp_share(struct homa_stream *stream)
{
	struct homa_pl_sock *s = homa_stream_user(stream);
	struct common *common = homa_stream_common(stream);

	if (!s || !common || s->tcp->stream != stream || s->tcp->common)
		return;
	store(s, common);
	s->tcp->common = true;
}

int homa_pl_tcp_family(const struct homa_stream *stream)
{
	const struct common *common = homa_stream_common(stream);

	return common && (__atomic_load_n(&common->flags, __ATOMIC_ACQUIRE) &
			  IS_V6) ?
		       AF_INET6 :
		       AF_INET;
}

void homa_pl_tcp_share_all(struct homa_streams *ctx)
{
	homa_streams_each(ctx, homa_pl_tcp_share);
}
