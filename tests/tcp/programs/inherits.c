// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What accepted sockets have from their listener.
 */
#include "tcp_calls.h"

static const struct {
	/* The option, as for setsockopt(). */
	int level, name;
	/* What it is set to. */
	int value;
} inherited[] = {
	{ IPPROTO_TCP, TCP_LINGER2, 20 },
	{ IPPROTO_TCP, TCP_SYNCNT, 3 },
	{ IPPROTO_TCP, TCP_NOTSENT_LOWAT, 16384 },
	{ SOL_SOCKET, SO_OOBINLINE, 1 },
	{ SOL_SOCKET, SO_REUSEPORT, 1 },
	/* The kernel tells twice the value. */
	{ SOL_SOCKET, SO_RCVBUF, 50000 },
	{ SOL_SOCKET, SO_SNDBUF, 60000 },
};

#define NUM_INHERITED ((int)(sizeof(inherited) / sizeof(*inherited)))

/* Those that were not set the kernel may choose anew for a connection. */
static void check_inherited(int listener, int fd, int num_set)
{
	for (int i = 0; i < num_set; i++) {
		int level = inherited[i].level, name = inherited[i].name;

		if (tcp_get(fd, level, name) != tcp_get(listener, level, name))
			WRONG("option %d of level %d is %d and not the listener's %d",
			      name, level, tcp_get(fd, level, name),
			      tcp_get(listener, level, name));
	}
}

/* Accepted sockets begin with the options that the listener has then. */
static void accept_inherits_now__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, NUM_INHERITED), fd;

	tcp_ready();
	for (int i = 0; i <= NUM_INHERITED; i++) {
		fd = tcp_accept(listener);
		check_inherited(listener, fd, i);
		if (i < NUM_INHERITED)
			tcp_set(listener, inherited[i].level, inherited[i].name,
				inherited[i].value);
		tcp_greet(fd);
		tcp_close(fd);
	}
}

static void accept_inherits_now__client(struct tcp_end *end)
{
	for (int i = 0; i <= NUM_INHERITED; i++) {
		int fd = tcp_connect(end);

		tcp_greet(fd);
		tcp_expect_eof(fd);
		tcp_close(fd);
	}
}

/* Accepted sockets begin with the listener's options. */
static void accept_inherits__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4), fd;
	struct linger linger = { .l_onoff = 1, .l_linger = 5 };
	socklen_t length = sizeof(linger);

	tcp_set(listener, IPPROTO_TCP, TCP_NODELAY, 1);
	tcp_set(listener, SOL_SOCKET, SO_KEEPALIVE, 1);
	tcp_set(listener, IPPROTO_TCP, TCP_KEEPIDLE, 77);
	MUST(setsockopt(listener, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	tcp_ready();
	fd = tcp_accept(listener);
	SAME(tcp_get(fd, IPPROTO_TCP, TCP_NODELAY), 1);
	SAME(tcp_get(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
	SAME(tcp_get(fd, IPPROTO_TCP, TCP_KEEPIDLE), 77);
	SAME(tcp_get(fd, SOL_SOCKET, SO_REUSEADDR), 1);
	memset(&linger, 0, sizeof(linger));
	MUST(getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &length));
	SAME(linger.l_linger, 5);
	tcp_echo(fd);
}

static void accept_inherits__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_greet(fd);
	tcp_close(fd);
}

const struct tcp_case tcp_inherit_cases[] = {
	TCP_CASE(accept_inherits),
	TCP_CASE(accept_inherits_now),
	{ 0 },
};
