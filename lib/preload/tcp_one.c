// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Waiting for one socket, as calls that block do. */
#include <errno.h>
#include <pthread.h>
#include "pl_signals.h"
#include "stream_fork.h"
#include "tcp.h"
#include "tcp_common.h"

/* The time after which a buffer that has not grown is taken to keep its size, in ns. */
#define GROWS_NS 50000000

static bool is_ready(void *arg)
{
	const struct homa_pl_wanted *w = arg;
	struct homa_stream *stream = w->s->tcp->last;
	unsigned int ready = homa_stream_ready(stream) & w->bits;

	if (!w->s->tcp->stream)
		return true;
	/* Another thread or process may have shut it down. */
	homa_pl_tcp_fetch(w->s);
	if ((w->s->tcp->shut_read && (w->bits & HOMA_STREAM_IN)) ||
	    (w->s->tcp->shut_write && (w->bits & HOMA_STREAM_OUT)))
		return true;
	if (ready != HOMA_STREAM_IN || w->least <= 1)
		return ready;
	return homa_pl_tcp_has(stream, w->least);
}

static bool is_concerned(const void *arg, struct homa_pl_sock *const *told, int n)
{
	const struct homa_pl_wanted *w = arg;
	int i;

	for (i = 0; i < n; i++)
		if (told[i] == w->s)
			return true;
	return false;
}

static void put(void *s)
{
	homa_pl_put(s);
}

/* Sleep. A thread that is cancelled meanwhile drops its reference to the socket. */
static int sleep_with(struct homa_pl_wanted *w, struct pollfd *fds, nfds_t n,
		      int64_t until)
{
	struct homa_pl_waits waits = { is_ready, is_concerned, w };
	int rc;

	pthread_cleanup_push(put, w->s);
	rc = homa_pl_sleep(fds, n, until, NULL, &waits);
	pthread_cleanup_pop(0);
	return rc;
}

/** struct growing - a buffer that is full with less than is wanted, and may grow */
struct growing {
	/* The bytes that had arrived when it was looked at last. */
	size_t bytes;
	/* When they are given up waiting for: the buffer does not grow. */
	int64_t until;
};

/* When to look again whether more bytes have come, at @until at the latest; 0 if none will. */
static int64_t look_again(const struct homa_pl_wanted *w, struct growing *g,
			  int64_t until)
{
	struct iovec piece[2];
	size_t bytes;

	if (w->least <= 1 || !homa_stream_is_full(w->s->tcp->last))
		return until;
	bytes = homa_stream_arrived(w->s->tcp->last, piece);
	if (bytes != g->bytes)
		*g = (struct growing){ bytes, homa_pl_now() + GROWS_NS };
	else if (homa_pl_now() >= g->until)
		return 0;
	return g->until < until ? g->until : until;
}

int homa_pl_wait_once(struct homa_pl_wanted *w, int64_t until)
{
	const struct homa_pl_tcp *tcp = w->s->tcp;
	struct growing growing = { .bytes = 0 };
	struct pollfd fds[2];
	int64_t look;
	nfds_t n = 0;
	int rc;

	/* The end of homad does not end a listener's wait, as it goes on with the kernel. */
	if (tcp->listens)
		fds[n++] = (struct pollfd){ .fd = tcp->fd, .events = POLLIN };
	else
		w->bits |= HOMA_STREAM_ERROR;
	for (;;) {
		homa_pl_pump();
		/* Another thread has found that the connection failed, or has dissolved it. */
		if (!__atomic_load_n(&tcp->stream, __ATOMIC_ACQUIRE))
			return -ECONNABORTED;
		if (is_ready(w))
			return 0;
		if (until != INT64_MAX && homa_pl_now() >= until)
			return -EAGAIN;
		look = look_again(w, &growing, until);
		if (!look)
			return 0;
		rc = sleep_with(w, fds, n, look);
		if (rc >= 0 && n && fds[0].revents)
			return 0;
		if (rc >= 0)
			continue;
		/* What has come goes before a signal. */
		homa_pl_pump();
		return is_ready(w) ? 0 : rc;
	}
}

int homa_pl_wait_for(struct homa_pl_sock *s, unsigned int bits, int64_t until)
{
	struct homa_pl_wanted w = { s, bits, 0 };
	int rc;

	do
		rc = homa_pl_wait_once(&w, until);
	while (rc == -HOMA_PL_RESTART && until == INT64_MAX);
	/* With a time limit every signal ends the wait. */
	return rc == -HOMA_PL_RESTART ? -EINTR : rc;
}
