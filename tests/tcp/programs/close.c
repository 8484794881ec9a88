// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * How connections end in order: each direction by itself, both at once, all bytes before the end.
 */
#include "tcp_calls.h"

/* The client ends its direction first; the server's answer comes after that. */
static void half_close__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);

	tcp_receive(fd, 5000, 0);
	tcp_expect_eof(fd);
	tcp_expect_eof(fd);
	tcp_send(fd, 300000, 1);
	tcp_close(fd);
}

static void half_close__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_send(fd, 5000, 0);
	MUST(shutdown(fd, SHUT_WR));
	FAILS(send(fd, "x", 1, MSG_NOSIGNAL), EPIPE);
	tcp_receive(fd, 300000, 1);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

/* The server ends its direction first, and still receives. */
static void half_close_by_server__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);

	MUST(shutdown(fd, SHUT_WR));
	tcp_receive(fd, 300000, 1);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void half_close_by_server__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_expect_eof(fd);
	tcp_send(fd, 300000, 1);
	tcp_close(fd);
}

/* Who does not want to receive reads an end at once, and may send. */
static void shutdown_read__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);

	MUST(shutdown(fd, SHUT_RD));
	tcp_expect_eof(fd);
	SAME(tcp_poll(fd, POLLIN | POLLRDHUP), POLLIN | POLLRDHUP);
	tcp_send(fd, 1000, 0);
	tcp_close(fd);
}

static void shutdown_read__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_receive(fd, 1000, 0);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void shutdown_both__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);

	tcp_greet(fd);
	MUST(shutdown(fd, SHUT_RDWR));
	tcp_expect_eof(fd);
	FAILS(send(fd, "x", 1, MSG_NOSIGNAL), EPIPE);
	SAME(tcp_poll(fd, POLLIN) & (POLLIN | POLLHUP), POLLIN | POLLHUP);
	tcp_close(fd);
}

static void shutdown_both__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_greet(fd);
	tcp_expect_eof(fd);
	FAILS(shutdown(fd, 3), EINVAL);
	tcp_close(fd);
}

/* Both ends close at the same time. */
static void close_both_at_once__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);

	tcp_greet(fd);
	tcp_tell(end);
	tcp_await(end);
	MUST(shutdown(fd, SHUT_WR));
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void close_both_at_once__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_greet(fd);
	tcp_tell(end);
	tcp_await(end);
	MUST(shutdown(fd, SHUT_WR));
	tcp_expect_eof(fd);
	tcp_close(fd);
}

/* Whoever sends much and closes at once loses nothing. */
static void eof_order__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);

	tcp_await(end);
	tcp_receive(fd, 100000, 3);
	tcp_expect_eof(fd);
	SAME(tcp_ask(fd, POLLIN | POLLRDHUP) & (POLLIN | POLLRDHUP),
	     POLLIN | POLLRDHUP);
	tcp_close(fd);
}

static void eof_order__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_send(fd, 100000, 3);
	tcp_close(fd);
	tcp_tell(end);
}

/* The process is gone before its bytes are. */
static void exit_after_send__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);

	tcp_await(end);
	tcp_receive(fd, 200000, 3);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void exit_after_send__client(struct tcp_end *end)
{
	pid_t child = (pid_t)MUST(fork());

	if (!child) {
		int fd = tcp_connect(end);

		tcp_send(fd, 200000, 3);
		_exit(0);
	}
	/* Its end is not waited for before the server reads: the buffers may be smaller. */
	tcp_tell(end);
	tcp_child_ended(child);
}

/* close() with SO_LINGER waits until the peer has everything. */
static void linger__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);

	tcp_receive(fd, 100000, 0);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void linger__client(struct tcp_end *end)
{
	struct linger linger = { .l_onoff = 1, .l_linger = 30 }, told = { 0 };
	socklen_t length = sizeof(told);
	int fd = tcp_connect(end);

	MUST(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	MUST(getsockopt(fd, SOL_SOCKET, SO_LINGER, &told, &length));
	SAME(told.l_onoff, 1);
	SAME(told.l_linger, 30);
	tcp_send(fd, 100000, 0);
	tcp_close(fd);
}

const struct tcp_case tcp_close_cases[] = {
	TCP_CASE(half_close),
	TCP_CASE(half_close_by_server),
	TCP_CASE(shutdown_read),
	TCP_CASE(shutdown_both),
	TCP_CASE(close_both_at_once),
	TCP_CASE(eof_order),
	TCP_CASE(exit_after_send),
	TCP_CASE(linger),
	{ 0 },
};
