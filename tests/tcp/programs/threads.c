// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * One socket and several threads: listening here, accepting there, closing what another waits on.
 */
#include <semaphore.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include "tcp_calls.h"

#define CONNECTIONS 30

/* A thread that waits on a socket, and what came of it. */
struct waiter {
	int fd;
	_Atomic pid_t thread;
	ssize_t result;
	int error;
	char byte;
};

static void *receive_one(void *argument)
{
	struct waiter *w = argument;

	w->thread = gettid();
	w->result = recv(w->fd, &w->byte, 1, 0);
	w->error = errno;
	return NULL;
}

static void *accept_one(void *argument)
{
	struct waiter *w = argument;

	w->thread = gettid();
	w->result = accept(w->fd, NULL, NULL);
	w->error = errno;
	return NULL;
}

static pthread_t begin(void *(*what)(void *), struct waiter *w)
{
	pthread_t thread;

	SAME(pthread_create(&thread, NULL, what, w), 0);
	while (!w->thread)
		usleep(1000);
	tcp_await_sleep(w->thread);
	return thread;
}

/* close() does not wake who waits in recv(): the socket lives on until that call returns. */
static void close_in_recv__server(struct tcp_end *end)
{
	struct waiter w = { .fd = tcp_accept_one(end) };
	pthread_t thread = begin(receive_one, &w);

	tcp_close(w.fd);
	tcp_tell(end);
	SAME(pthread_join(thread, NULL), 0);
	SAME(w.result, 1);
	EXPECT(tcp_filled(&w.byte, 1, 9));
}

static void close_in_recv__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_await(end);
	tcp_send(fd, 1, 9);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

/* shutdown() does wake it. */
static void shutdown_in_recv__server(struct tcp_end *end)
{
	struct waiter w = { .fd = tcp_accept_one(end), .result = -2 };
	pthread_t thread = begin(receive_one, &w);

	MUST(shutdown(w.fd, SHUT_RDWR));
	SAME(pthread_join(thread, NULL), 0);
	SAME(w.result, 0);
	tcp_close(w.fd);
}

static void shutdown_in_recv__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_expect_eof(fd);
	tcp_close(fd);
}

/* shutdown() of a listener ends accept() and frees the port. */
static void shutdown_in_accept__server(struct tcp_end *end)
{
	struct waiter w = { .fd = tcp_listening(end, 4), .result = -2 };
	pthread_t thread = begin(accept_one, &w);

	MUST(shutdown(w.fd, SHUT_RD));
	SAME(pthread_join(thread, NULL), 0);
	SAME(w.result, -1);
	SAME(w.error, EINVAL);
	tcp_ready();
	tcp_await(end);
	MUST(listen(w.fd, 4));
	tcp_tell(end);
	tcp_echo(tcp_accept(w.fd));
}

static void shutdown_in_accept__client(struct tcp_end *end)
{
	int fd = tcp_socket(end);

	FAILS(connect(fd, &end->address.any, end->length), ECONNREFUSED);
	tcp_tell(end);
	tcp_await(end);
	MUST(connect(fd, &end->address.any, end->length));
	tcp_greet(fd);
	tcp_close(fd);
}

struct acceptors {
	int listener;
	atomic_int left;
	sem_t done;
};

static void *accept_many(void *argument)
{
	struct acceptors *a = argument;

	while (a->left-- > 0) {
		tcp_echo(tcp_accept(a->listener));
		sem_post(&a->done);
	}
	return NULL;
}

static void *listen_elsewhere(void *argument)
{
	MUST(listen(*(int *)argument, 64));
	return NULL;
}

/* One thread listens, three others accept, and each serves what it accepted. */
static void accept_in_threads__server(struct tcp_end *end)
{
	struct acceptors a = { .listener = tcp_bound(end), .left = CONNECTIONS };
	pthread_t threads[3], other;

	MUST(sem_init(&a.done, 0, 0));
	SAME(pthread_create(&other, NULL, listen_elsewhere, &a.listener), 0);
	SAME(pthread_join(other, NULL), 0);
	for (int i = 0; i < 3; i++)
		SAME(pthread_create(&threads[i], NULL, accept_many, &a), 0);
	tcp_ready();
	for (int i = 0; i < CONNECTIONS; i++)
		MUST(sem_wait(&a.done));
	for (int i = 0; i < 3; i++)
		SAME(pthread_join(threads[i], NULL), 0);
}

static void accept_in_threads__client(struct tcp_end *end)
{
	for (int i = 0; i < CONNECTIONS; i++) {
		int fd = tcp_connect(end);

		tcp_greet(fd);
		MUST(shutdown(fd, SHUT_WR));
		tcp_expect_eof(fd);
		tcp_close(fd);
	}
}

static void *send_much(void *argument)
{
	tcp_send(*(int *)argument, 2000000, 0);
	return NULL;
}

/* One thread sends while another receives on the same socket. */
static void two_directions__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	pthread_t thread;

	SAME(pthread_create(&thread, NULL, send_much, &fd), 0);
	tcp_receive(fd, 2000000, 0);
	SAME(pthread_join(thread, NULL), 0);
	MUST(shutdown(fd, SHUT_WR));
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void two_directions__server(struct tcp_end *end)
{
	tcp_echo(tcp_accept_one(end));
}

/* Two threads wait on one socket: each byte is given to one of them. */
static void two_receivers__server(struct tcp_end *end)
{
	struct waiter w[2] = { 0 };
	pthread_t threads[2];

	w[0].fd = w[1].fd = tcp_accept_one(end);
	for (int i = 0; i < 2; i++)
		threads[i] = begin(receive_one, &w[i]);
	tcp_tell(end);
	for (int i = 0; i < 2; i++) {
		SAME(pthread_join(threads[i], NULL), 0);
		SAME(w[i].result, 1);
	}
	SAME(w[0].byte + w[1].byte, 1);
	tcp_expect_eof(w[0].fd);
	tcp_close(w[0].fd);
}

static void two_receivers__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_await(end);
	tcp_send(fd, 1, 0);
	tcp_send(fd, 1, 1);
	tcp_close(fd);
}

#define CROWD 8
#define CROWD_BYTES 3000000

struct share {
	int fd;
	size_t bytes;
};

static void *send_share(void *argument)
{
	char piece[1000];

	memset(piece, 'x', sizeof(piece));
	for (size_t done = 0; done < CROWD_BYTES;) {
		size_t left = CROWD_BYTES - done, some = 1 + done % 100;

		done += (size_t)MUST(send(*(int *)argument, piece,
					  some < left ? some : left, 0));
	}
	return NULL;
}

static void *receive_share(void *argument)
{
	struct share *share = argument;
	char piece[700];
	ssize_t got;

	while ((got = MUST(recv(share->fd, piece, sizeof(piece), 0))) > 0)
		share->bytes += (size_t)got;
	return NULL;
}

/* Several threads send on one socket, and several receive: no byte is lost, none comes twice. */
static void crowd__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	pthread_t threads[CROWD];

	for (int i = 0; i < CROWD; i++)
		SAME(pthread_create(&threads[i], NULL, send_share, &fd), 0);
	for (int i = 0; i < CROWD; i++)
		SAME(pthread_join(threads[i], NULL), 0);
	MUST(shutdown(fd, SHUT_WR));
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void crowd__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	struct share share[CROWD] = { 0 };
	pthread_t threads[CROWD];
	size_t bytes = 0;

	for (int i = 0; i < CROWD; i++) {
		share[i].fd = fd;
		SAME(pthread_create(&threads[i], NULL, receive_share, &share[i]),
		     0);
	}
	for (int i = 0; i < CROWD; i++) {
		SAME(pthread_join(threads[i], NULL), 0);
		bytes += share[i].bytes;
	}
	SAME(bytes, CROWD * CROWD_BYTES);
	tcp_close(fd);
}

/* Each thread that waited leaves nothing behind: no descriptor more than before. */
static void thread_descriptors__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), first, last;

	tcp_tell(end);
	first = (int)MUST(dup(fd));
	tcp_close(first);
	for (int i = 0; i < 20; i++) {
		struct waiter w = { .fd = fd };
		pthread_t thread = begin(receive_one, &w);

		tcp_tell(end);
		SAME(pthread_join(thread, NULL), 0);
		SAME(w.result, 1);
	}
	last = (int)MUST(dup(fd));
	SAME(last, first);
	tcp_close(last);
	tcp_close(fd);
}

static void thread_descriptors__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_await(end);
	for (int i = 0; i < 20; i++) {
		tcp_await(end);
		tcp_send(fd, 1, 0);
	}
	tcp_expect_eof(fd);
	tcp_close(fd);
}

/* shutdown() for reading alone wakes who reads, though the peer says nothing. */
static void shutdown_reading__server(struct tcp_end *end)
{
	struct waiter w = { .fd = tcp_accept_one(end), .result = -2 };
	pthread_t thread = begin(receive_one, &w);

	MUST(shutdown(w.fd, SHUT_RD));
	SAME(pthread_join(thread, NULL), 0);
	SAME(w.result, 0);
	tcp_tell(end);
	tcp_close(w.fd);
}

static void shutdown_reading__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_await(end);
	tcp_close(fd);
}

static void *poll_one(void *argument)
{
	struct waiter *w = argument;
	struct pollfd entry = { .fd = w->fd, .events = POLLIN };

	w->thread = gettid();
	w->result = poll(&entry, 1, -1);
	w->error = entry.revents;
	return NULL;
}

/* The same for who waits in poll(), and shutdown() for writing. */
static void shutdown_in_poll__server(struct tcp_end *end)
{
	struct waiter w = { .fd = tcp_accept_one(end), .result = -2 };
	pthread_t thread = begin(poll_one, &w);

	MUST(shutdown(w.fd, SHUT_RD));
	SAME(pthread_join(thread, NULL), 0);
	SAME(w.result, 1);
	EXPECT(w.error & POLLIN);
	tcp_tell(end);
	tcp_close(w.fd);
}

#define shutdown_in_poll__client shutdown_reading__client

static void *send_for_ever(void *argument)
{
	struct waiter *w = argument;
	static char piece[65536];

	w->thread = gettid();
	do
		w->result = send(w->fd, piece, sizeof(piece), MSG_NOSIGNAL);
	while (w->result > 0);
	w->error = errno;
	return NULL;
}

static void shutdown_in_send__server(struct tcp_end *end)
{
	struct waiter w = { .fd = tcp_accept_one(end), .result = -2 };
	pthread_t thread = begin(send_for_ever, &w);

	MUST(shutdown(w.fd, SHUT_WR));
	SAME(pthread_join(thread, NULL), 0);
	SAME(w.error, EPIPE);
	tcp_tell(end);
	tcp_close(w.fd);
}

#define shutdown_in_send__client shutdown_reading__client

/* A thread can be cancelled while it waits, and the socket goes on. */
static void cancelled__server(struct tcp_end *end)
{
	struct waiter w = { .fd = tcp_accept_one(end) };
	pthread_t thread = begin(receive_one, &w);
	void *result;

	SAME(pthread_cancel(thread), 0);
	SAME(pthread_join(thread, &result), 0);
	EXPECT(result == PTHREAD_CANCELED);
	tcp_tell(end);
	/* Nothing of that thread holds it: the peer hears of its end. */
	tcp_greet(w.fd);
	tcp_close(w.fd);
	tcp_await(end);
}

static void cancelled__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_await(end);
	tcp_greet(fd);
	tcp_expect_eof(fd);
	tcp_close(fd);
	tcp_tell(end);
}

static void *wait_in_set(void *arg)
{
	struct waiter *w = arg;
	struct epoll_event event;

	w->thread = gettid();
	w->result = epoll_wait(w->fd, &event, 1, -1);
	return NULL;
}

/* A thread can be cancelled while it waits in a set, and other threads wait in it as before. */
static void cancelled_in_epoll__server(struct tcp_end *end)
{
	struct epoll_event event = { .events = EPOLLIN };
	int i, fd = tcp_accept_one(end), set = MUST(epoll_create1(0));
	struct waiter w = { .fd = set }, other = { .fd = set, .result = -2 };
	pthread_t thread;
	void *result;

	MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
	for (i = 0; i < 3; i++) {
		w.thread = 0;
		thread = begin(wait_in_set, &w);
		SAME(pthread_cancel(thread), 0);
		SAME(pthread_join(thread, &result), 0);
		EXPECT(result == PTHREAD_CANCELED);
	}
	thread = begin(wait_in_set, &other);
	tcp_tell(end);
	SAME(pthread_join(thread, NULL), 0);
	SAME(other.result, 1);
	tcp_greet(fd);
	MUST(close(set));
	tcp_close(fd);
	tcp_await(end);
}

#define cancelled_in_epoll__client cancelled__client

/* ---- one socket, connected by several ---- */

#define CONNECTORS 3
#define ROUNDS_OF_CONNECT 40

struct connector {
	const struct tcp_end *end;
	pthread_barrier_t *begin;
	int fd, error;
};

static void *connect_it(void *argument)
{
	struct connector *c = argument;

	pthread_barrier_wait(c->begin);
	c->error =
		connect(c->fd, &c->end->address.any, c->end->length) ? errno : 0;
	return NULL;
}

static void thread_connects__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 100);

	tcp_ready();
	for (int i = 0; i < ROUNDS_OF_CONNECT; i++)
		tcp_echo(tcp_accept(listener));
	tcp_await(end);
	/* There was one connection for each socket. */
	SAME(tcp_ask(listener, POLLIN), 0);
	tcp_close(listener);
}

static void thread_connects__client(struct tcp_end *end)
{
	struct connector each[CONNECTORS];
	pthread_t thread[CONNECTORS];
	pthread_barrier_t begin;

	SAME(pthread_barrier_init(&begin, NULL, CONNECTORS), 0);
	for (int round = 0; round < ROUNDS_OF_CONNECT; round++) {
		int fd = tcp_socket(end), good = 0;

		for (int i = 0; i < CONNECTORS; i++) {
			each[i] = (struct connector){ end, &begin, fd, 0 };
			SAME(pthread_create(&thread[i], NULL, connect_it,
					    &each[i]),
			     0);
		}
		for (int i = 0; i < CONNECTORS; i++) {
			SAME(pthread_join(thread[i], NULL), 0);
			EXPECT(!each[i].error || each[i].error == EISCONN ||
			       each[i].error == EALREADY);
			good += !each[i].error;
		}
		EXPECT(good >= 1);
		tcp_talk(fd);
	}
	tcp_tell(end);
}

/* A connection that another thread asks for is this one's too, even if its connect() has not
 * returned when the peer has accepted and ended it. */
static void thread_learns__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4);

	tcp_ready();
	for (int i = 0; i < ROUNDS_OF_CONNECT; i++) {
		tcp_close(tcp_accept(listener));
		tcp_tell(end);
	}
	tcp_close(listener);
}

static void thread_learns__client(struct tcp_end *end)
{
	pthread_barrier_t begin;
	pthread_t thread;
	char byte;

	SAME(pthread_barrier_init(&begin, NULL, 1), 0);
	for (int i = 0; i < ROUNDS_OF_CONNECT; i++) {
		struct connector one = { end, &begin, tcp_socket(end), 0 };
		struct pollfd ask = { .fd = one.fd, .events = POLLIN };

		SAME(pthread_create(&thread, NULL, connect_it, &one), 0);
		tcp_await(end);
		SAME(poll(&ask, 1, -1), 1);
		SAME(recv(one.fd, &byte, 1, 0), 0);
		SAME(pthread_join(thread, NULL), 0);
		SAME(one.error, 0);
		tcp_close(one.fd);
	}
}

const struct tcp_case tcp_thread_cases[] = {
	TCP_CASE(close_in_recv),
	TCP_CASE(shutdown_in_recv),
	TCP_CASE(shutdown_in_accept),
	TCP_CASE(accept_in_threads),
	TCP_CASE(two_directions),
	TCP_CASE(two_receivers),
	TCP_CASE(crowd),
	TCP_CASE(thread_descriptors),
	TCP_CASE(shutdown_reading),
	TCP_CASE(shutdown_in_poll),
	TCP_CASE(shutdown_in_send),
	TCP_CASE(cancelled),
	TCP_CASE(cancelled_in_epoll),
	TCP_CASE(thread_connects),
	TCP_CASE(thread_learns),
	{ 0 },
};
