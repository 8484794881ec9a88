// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* How far the connection of a socket has come: asked for, or open. */
#include <errno.h>
#include <pthread.h>
#include <time.h>
#include "tcp.h"

bool homa_pl_tcp_is_open(struct homa_stream *stream)
{
	struct homa_stream_facts facts = { .size = sizeof(facts) };

	return homa_stream_facts(stream, &facts) != -ENOTCONN;
}

void homa_pl_tcp_await_begin(const struct homa_pl_tcp *tcp)
{
	const struct timespec pause = { .tv_nsec = 50000 };
	int cancel, error = errno, tries = 2000;

	/* The caller has a reference of the socket, and may be no point of cancellation. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	while (__atomic_load_n(&tcp->begins, __ATOMIC_ACQUIRE) && tries--)
		nanosleep(&pause, NULL);
	pthread_setcancelstate(cancel, NULL);
	errno = error;
}
