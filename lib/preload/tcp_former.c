// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Sockets that are the kernel's again, because their connection failed or the program has dissolved
 * it. Other threads may be in calls that began before and go on with homad's stream: each of them
 * has a reference of the socket. So a stream is freed when no other call has one.
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include "internal.h"
#include "preload_sock.h"
#include "stream_fork.h"
#include "tcp.h"

/* Sleeps of 50 us for which dissolving a connection waits for calls of other threads. */
#define TURNS 200

/** struct homa_pl_former - a stream that the socket had before. Guarded by: homa_pl_tcp_lock() */
struct homa_pl_former {
	/* The one before it, or NULL. */
	struct homa_pl_former *next;
	/* The stream. */
	struct homa_stream *stream;
};

/* Is the caller's the only call that uses the socket? A call that begins later finds what the
 * caller has stored before. */
static bool is_alone(const struct homa_pl_sock *s)
{
	uint32_t refs, descriptors = 0;
	int fd = -1;

	/* This is a handler that has interrupted a call which may have the lock. */
	if (homa_pl_enter())
		return false;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	/* Under this lock no descriptor comes, and one that goes has its reference longer. */
	homa_pl_lock_fds();
	while ((fd = homa_pl_table_next(fd + 1)) >= 0)
		descriptors += homa_pl_table_get(fd) == s;
	refs = __atomic_load_n(&s->refs, __ATOMIC_SEQ_CST);
	homa_pl_unlock_fds();
	homa_pl_leave();
	return refs == descriptors + 1;
}

/* Other threads that sleep for the socket are woken, and their calls end soon. A handler that has
 * interrupted such a sleep would wait for itself. */
static void await_others(const struct homa_pl_sock *s)
{
	const struct timespec pause = { .tv_nsec = 50000 };
	int turns = TURNS;

	while (!is_alone(s) && turns--)
		nanosleep(&pause, NULL);
}

void homa_pl_tcp_free_formers(struct homa_pl_tcp *tcp)
{
	struct homa_pl_former *former, *next;

	homa_pl_tcp_lock();
	former = tcp->formers;
	tcp->formers = NULL;
	homa_pl_tcp_unlock();
	for (; former; former = next) {
		next = former->next;
		homa_stream_abort(former->stream);
		free(former);
	}
}

void homa_pl_tcp_retire(struct homa_pl_sock *s, struct homa_stream *stream)
{
	struct homa_pl_former *former = malloc(sizeof(*former));

	/* Without memory the stream is there until the process ends. */
	if (former) {
		former->stream = stream;
		homa_pl_tcp_lock();
		former->next = s->tcp->formers;
		s->tcp->formers = former;
		homa_pl_tcp_unlock();
	}
	if (is_alone(s))
		homa_pl_tcp_free_formers(s->tcp);
}

void homa_pl_tcp_give_back(struct homa_pl_sock *s, struct homa_stream *stream)
{
	struct homa_stream_facts facts = { .size = sizeof(facts) };
	struct homa_pl_tcp *tcp = s->tcp;
	bool first;

	homa_pl_tcp_lock();
	/* Several threads may hear that the connection has failed. */
	first = tcp->stream == stream;
	if (first) {
		homa_stream_set_user(stream, NULL);
		__atomic_store_n(&tcp->stream, NULL, __ATOMIC_RELEASE);
		tcp->connecting = tcp->open = tcp->error_told = false;
		tcp->common = false;
		tcp->shut_read = tcp->shut_write = tcp->peer_first = false;
	}
	homa_pl_tcp_unlock();
	if (!first) {
		/* This was the call for which another thread's could not free the stream. */
		if (is_alone(s))
			homa_pl_tcp_free_formers(tcp);
		return;
	}
	homa_pl_tell(s);
	if (homa_stream_facts(stream, &facts) != -ENOTCONN)
		await_others(s);
	homa_pl_tcp_retire(s, stream);
	homa_pl_tcp_moved(s);
}
