// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Many connections, one after the other and at once.
 */
#include "tcp_calls.h"

#define SHORT 1000
#define AT_ONCE 64

static void short_connections__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 64);

	tcp_ready();
	for (int i = 0; i < SHORT; i++)
		tcp_echo(tcp_accept(listener));
}

static void short_connections__client(struct tcp_end *end)
{
	for (size_t i = 0; i < SHORT; i++) {
		int fd = tcp_connect(end);

		tcp_send(fd, 64, i);
		tcp_receive(fd, 64, i);
		tcp_close(fd);
	}
}

/* The client closes first or the server does, in turn: either end keeps the memory of it. */
static void closed_by_server__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 64);

	tcp_ready();
	for (size_t i = 0; i < SHORT / 4; i++) {
		int fd = tcp_accept(listener);

		tcp_receive(fd, 64, i);
		tcp_send(fd, 64, i);
		tcp_close(fd);
	}
}

static void closed_by_server__client(struct tcp_end *end)
{
	for (size_t i = 0; i < SHORT / 4; i++) {
		int fd = tcp_connect(end);

		tcp_send(fd, 64, i);
		tcp_receive(fd, 64, i);
		tcp_expect_eof(fd);
		tcp_close(fd);
	}
}

static void *echo(void *argument)
{
	tcp_echo((int)(intptr_t)argument);
	return NULL;
}

static void at_once__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, AT_ONCE);
	pthread_t threads[AT_ONCE];

	tcp_ready();
	for (int i = 0; i < AT_ONCE; i++) {
		intptr_t fd = tcp_accept(listener);

		SAME(pthread_create(&threads[i], NULL, echo, (void *)fd), 0);
	}
	for (int i = 0; i < AT_ONCE; i++)
		SAME(pthread_join(threads[i], NULL), 0);
}

/* All are open before any is used; then all have bytes on their way. */
static void at_once__client(struct tcp_end *end)
{
	int fds[AT_ONCE];

	for (int i = 0; i < AT_ONCE; i++)
		fds[i] = tcp_connect(end);
	for (size_t round = 0; round < 20; round++) {
		for (size_t i = 0; i < AT_ONCE; i++)
			tcp_send(fds[i], 2000, i + 2000 * round);
		for (size_t i = 0; i < AT_ONCE; i++)
			tcp_receive(fds[i], 2000, i + 2000 * round);
	}
	for (int i = 0; i < AT_ONCE; i++)
		tcp_close(fds[i]);
}

/* Non-blocking connects go on side by side. */
static void connect_at_once__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 2 * AT_ONCE);

	tcp_ready();
	for (int i = 0; i < AT_ONCE; i++)
		tcp_echo(tcp_accept(listener));
}

static void connect_at_once__client(struct tcp_end *end)
{
	struct pollfd entries[AT_ONCE];
	int family = end->address.any.sa_family, left = AT_ONCE;

	for (int i = 0; i < AT_ONCE; i++) {
		entries[i].fd =
			(int)MUST(socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0));
		entries[i].events = POLLOUT;
		FAILS(connect(entries[i].fd, &end->address.any, end->length),
		      EINPROGRESS);
	}
	while (left > 0) {
		EXPECT(poll(entries, AT_ONCE, TCP_PATIENCE) > 0);
		for (int i = 0; i < AT_ONCE; i++) {
			if (entries[i].fd < 0 || !entries[i].revents)
				continue;
			SAME(tcp_get(entries[i].fd, SOL_SOCKET, SO_ERROR), 0);
			tcp_close(entries[i].fd);
			entries[i].fd = -1;
			left--;
		}
	}
	SAME(left, 0);
}

const struct tcp_case tcp_many_cases[] = {
	TCP_CASE(short_connections),
	TCP_CASE(closed_by_server),
	TCP_CASE(at_once),
	TCP_CASE(connect_at_once),
	{ 0 },
};
