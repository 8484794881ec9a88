// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * One thread ends the connection of a socket, or opens it, while others use the socket.
 */
#include <stdatomic.h>
#include "tcp_calls.h"

/* Connections that are refused while others look. */
#define REFUSED 300
/* Times that two threads end a listener. */
#define ENDINGS 100
/* Threads that look. */
#define LOOKERS 3

/* A socket, and whether its threads go on. */
struct used {
	int fd;
	atomic_bool over;
};

/* What such calls say depends on when they are made, but they come back. */
static void *use(void *argument)
{
	struct used *used = argument;
	struct pollfd look = { .fd = used->fd, .events = POLLIN | POLLOUT };
	union tcp_address name;
	char byte = 0;

	while (!used->over) {
		socklen_t length = sizeof(name);
		int waiting;

		poll(&look, 1, 0);
		recv(used->fd, &byte, 1, MSG_DONTWAIT);
		send(used->fd, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
		ioctl(used->fd, FIONREAD, &waiting);
		getpeername(used->fd, &name.any, &length);
		tcp_get(used->fd, IPPROTO_TCP, TCP_NODELAY);
	}
	return NULL;
}

static void refused_while_used__server(struct tcp_end *end)
{
	tcp_echo_later(end);
}

/* A connection is refused, again and again, while threads use its socket. It connects at last. */
static void refused_while_used__client(struct tcp_end *end)
{
	struct used used = { .fd = tcp_socket(end) };
	pthread_t threads[LOOKERS];
	int i;

	for (i = 0; i < LOOKERS; i++)
		SAME(pthread_create(&threads[i], NULL, use, &used), 0);
	for (i = 0; i < REFUSED; i++)
		SAME(connect(used.fd, &end->address.any, end->length), -1);
	used.over = true;
	for (i = 0; i < LOOKERS; i++)
		SAME(pthread_join(threads[i], NULL), 0);
	/* The last error may not have been told. */
	tcp_get(used.fd, SOL_SOCKET, SO_ERROR);
	tcp_tell(end);
	tcp_await(end);
	MUST(connect(used.fd, &end->address.any, end->length));
	tcp_greet(used.fd);
	tcp_close(used.fd);
}

static void dissolved_while_read__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	char byte;

	tcp_greet(fd);
	FAILS(recv(fd, &byte, 1, 0), ECONNRESET);
	tcp_close(fd);
}

static void *receive_one(void *argument)
{
	struct used *used = argument;
	char byte;

	EXPECT(recv(used->fd, &byte, 1, 0) <= 0);
	used->over = true;
	return NULL;
}

/* A connection is dissolved while a thread waits for its bytes: that ends the wait. */
static void dissolved_while_read__client(struct tcp_end *end)
{
	struct sockaddr nobody = { .sa_family = AF_UNSPEC };
	struct used used = { .fd = tcp_connect(end) };
	pthread_t thread;

	tcp_greet(used.fd);
	SAME(pthread_create(&thread, NULL, receive_one, &used), 0);
	usleep(20000);
	MUST(connect(used.fd, &nobody, sizeof(nobody)));
	SAME(pthread_join(thread, NULL), 0);
	EXPECT(used.over);
	tcp_close(used.fd);
}

/* A listener, and two threads that end it at once. */
struct ended {
	int listener;
	pthread_barrier_t both;
};

static void *end_it(void *argument)
{
	struct sockaddr nobody = { .sa_family = AF_UNSPEC };
	struct ended *ended = argument;

	for (int i = 0; i < ENDINGS; i++) {
		pthread_barrier_wait(&ended->both);
		MUST(connect(ended->listener, &nobody, sizeof(nobody)));
		pthread_barrier_wait(&ended->both);
	}
	return NULL;
}

static void dissolved_twice__server(struct tcp_end *end)
{
	struct ended ended = { .listener = tcp_bound(end) };
	pthread_t other;

	SAME(pthread_barrier_init(&ended.both, NULL, 2), 0);
	SAME(pthread_create(&other, NULL, end_it, &ended), 0);
	for (int i = 0; i < ENDINGS; i++) {
		struct sockaddr nobody = { .sa_family = AF_UNSPEC };

		MUST(listen(ended.listener, 4));
		pthread_barrier_wait(&ended.both);
		MUST(connect(ended.listener, &nobody, sizeof(nobody)));
		pthread_barrier_wait(&ended.both);
	}
	SAME(pthread_join(other, NULL), 0);
	MUST(listen(ended.listener, 4));
	tcp_ready();
	tcp_echo(tcp_accept(ended.listener));
	tcp_close(ended.listener);
}

static void dissolved_twice__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_greet(fd);
	tcp_close(fd);
}

const struct tcp_case tcp_race_cases[] = {
	TCP_CASE(refused_while_used),
	TCP_CASE(dissolved_while_read),
	TCP_CASE(dissolved_twice),
	{ 0 },
};
