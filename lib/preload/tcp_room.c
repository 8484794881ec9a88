// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * How many bytes a stream takes at once. Its send buffer begins small, and homad makes it larger
 * when it is full. A program that does not wait for its peer expects that a fresh connection takes
 * some ten thousand bytes, as the kernel's does, and some programs never look how many were taken.
 * So such a call waits until homad has made the buffer larger, which is a matter of memory and not
 * of the peer. homad says if it will not (homa_stream_slot.tx_stays). If the peer ends the
 * connection meanwhile, the call returns as if all bytes had been taken: the kernel takes them
 * before it hears of the end, and loses them then.
 *
 * SO_SNDBUF, where the program has set it, is the most that the buffer takes; TCP_NOTSENT_LOWAT is
 * the most of that which homad has not sent once.
 */
#include <pthread.h>
#include "pl_signals.h"
#include "real.h"
#include "stream_fork.h"
#include "tcp.h"

/* The longest time that a call waits for a larger buffer, in ns. */
#define GROWS_NS 50000000
/* After a wait in vain the process does not wait for this time, in ns: homad is too busy. */
#define VAIN_NS 1000000000
/* The bytes that the kernel takes of a fresh connection whose peer reads none of them. */
#define USUAL 65536
/* A bit of SO_BUF_LOCK, which Linux has since 5.14: SO_SNDBUF was set. */
#define SEND_IS_SET 1
#define BUF_LOCK 72

/* Until when no call of this process waits, a time of homa_pl_now(). It is atomic. */
static int64_t vain_until;

void homa_pl_tcp_limit(struct homa_pl_sock *s)
{
	if (!s->tcp->stream || s->tcp->listens)
		return;
	homa_stream_limit_send(s->tcp->last, s->tcp->send_most);
	homa_stream_limit_unsent(s->tcp->last, s->tcp->unsent_most);
}

uint32_t homa_pl_tcp_send_buffer(int fd)
{
	int bits = 0, bytes = 0;
	socklen_t size = sizeof(int);

	if (HOMA_PL_REAL(getsockopt)(fd, SOL_SOCKET, BUF_LOCK, &bits, &size) ||
	    !(bits & SEND_IS_SET) ||
	    HOMA_PL_REAL(getsockopt)(fd, SOL_SOCKET, SO_SNDBUF, &bytes, &size))
		return 0;
	return bytes > 0 ? (uint32_t)bytes : 0;
}

/* Is there room, or will there be none without the peer? */
static bool is_over(void *arg)
{
	struct homa_stream *stream = arg;

	return homa_stream_writable(stream) || homa_stream_error(stream) ||
	       !homa_stream_send_grows(stream);
}

bool homa_pl_tcp_await_growth(struct homa_pl_sock *s)
{
	struct homa_stream *stream = s->tcp->last;
	int64_t now = homa_pl_now(), until = now + GROWS_NS;
	int cancel = homa_pl_signals.cancel;
	struct homa_pl_waits waits = { .ready = is_over, .arg = stream };
	struct pollfd fds[1];

	if (!homa_stream_send_grows(stream) ||
	    now < __atomic_load_n(&vain_until, __ATOMIC_RELAXED))
		return homa_stream_writable(stream) > 0;
	/* A thread that is cancelled would not tell how many bytes were taken. */
	homa_pl_signals.cancel = PTHREAD_CANCEL_DISABLE;
	do
		homa_pl_pump();
	while (!is_over(stream) && homa_pl_now() < until &&
	       homa_pl_sleep(fds, 0, until, NULL, &waits) > 0);
	homa_pl_signals.cancel = cancel;
	if (!is_over(stream) && homa_pl_now() >= until)
		__atomic_store_n(&vain_until, until + VAIN_NS, __ATOMIC_RELAXED);
	return homa_stream_writable(stream) > 0;
}

bool homa_pl_tcp_had_room(const struct homa_pl_sock *s, size_t bytes)
{
	return homa_stream_error(s->tcp->last) && bytes <= USUAL &&
	       (!s->tcp->send_most || bytes <= s->tcp->send_most) &&
	       homa_stream_send_is_first(s->tcp->last);
}
