// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * How connections end without order: resets, and writing to nobody.
 */
#include "tcp_calls.h"

static volatile sig_atomic_t pipes;

static void count_pipe(int number)
{
	(void)number;
	pipes++;
}

static void abort_by_linger(int fd)
{
	struct linger linger = { .l_onoff = 1, .l_linger = 0 };

	MUST(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	tcp_close(fd);
}

/* SO_LINGER of 0 s makes close() a reset. */
static void reset_by_linger__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	char byte;

	tcp_greet(fd);
	FAILS(recv(fd, &byte, 1, 0), ECONNRESET);
	/* The error is told once. */
	tcp_expect_eof(fd);
	FAILS(send(fd, "x", 1, MSG_NOSIGNAL), EPIPE);
	SAME(tcp_ask(fd, POLLIN | POLLOUT) & POLLHUP, POLLHUP);
	tcp_close(fd);
}

static void reset_by_linger__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_greet(fd);
	abort_by_linger(fd);
}

/* A reset is seen by poll() before anything is read, and by SO_ERROR. */
static void reset_polled__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);

	tcp_greet(fd);
	/* The error is there a moment before the rest. */
	while (tcp_poll(fd, 0) != (POLLERR | POLLHUP))
		;
	SAME(tcp_ask(fd, POLLIN | POLLRDHUP),
	     POLLIN | POLLRDHUP | POLLERR | POLLHUP);
	SAME(tcp_get(fd, SOL_SOCKET, SO_ERROR), ECONNRESET);
	SAME(tcp_get(fd, SOL_SOCKET, SO_ERROR), 0);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

#define reset_polled__client reset_by_linger__client

/* Bytes that had arrived before the reset are still there, the error comes after them. */
static void reset_after_data__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), waiting = 0;
	char byte;

	while (waiting < 1000)
		MUST(ioctl(fd, FIONREAD, &waiting));
	tcp_tell(end);
	EXPECT(tcp_poll(fd, 0) & POLLHUP);
	tcp_receive(fd, 1000, 0);
	FAILS(recv(fd, &byte, 1, 0), ECONNRESET);
	tcp_close(fd);
}

static void reset_after_data__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_send(fd, 1000, 0);
	tcp_await(end);
	abort_by_linger(fd);
}

/* Closing with bytes unread tells the peer that they were lost. */
static void close_unread__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), waiting = 0;

	while (waiting < 1000)
		MUST(ioctl(fd, FIONREAD, &waiting));
	tcp_close(fd);
}

static void close_unread__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	char byte;

	tcp_send(fd, 1000, 0);
	FAILS(recv(fd, &byte, 1, 0), ECONNRESET);
	tcp_close(fd);
}

/* Bytes for somebody who has closed bring a reset, then there is no pipe. */
static void send_to_closed__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);

	tcp_greet(fd);
	tcp_close(fd);
	tcp_tell(end);
	tcp_await(end);
}

static void send_to_closed__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_greet(fd);
	tcp_await(end);
	tcp_expect_eof(fd);
	SAME(send(fd, "x", 1, MSG_NOSIGNAL), 1);
	EXPECT(tcp_poll(fd, 0) & POLLHUP);
	FAILS(send(fd, "x", 1, MSG_NOSIGNAL), EPIPE);
	FAILS(send(fd, "x", 1, MSG_NOSIGNAL), EPIPE);
	tcp_close(fd);
	tcp_tell(end);
}

/* EPIPE comes with SIGPIPE unless it is not wanted. */
static void broken_pipe__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);

	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void broken_pipe__client(struct tcp_end *end)
{
	struct sigaction action = { .sa_handler = count_pipe };
	int fd = tcp_connect(end), status;
	pid_t child;

	MUST(sigaction(SIGPIPE, &action, NULL));
	MUST(shutdown(fd, SHUT_WR));
	FAILS(send(fd, "x", 1, MSG_NOSIGNAL), EPIPE);
	SAME(pipes, 0);
	FAILS(send(fd, "x", 1, 0), EPIPE);
	SAME(pipes, 1);
	FAILS(write(fd, "x", 1), EPIPE);
	SAME(pipes, 2);
	signal(SIGPIPE, SIG_IGN);
	FAILS(write(fd, "x", 1), EPIPE);
	child = (pid_t)MUST(fork());
	if (!child) {
		signal(SIGPIPE, SIG_DFL);
		status = (int)write(fd, "x", 1);
		_exit(status < 0);
	}
	SAME(waitpid(child, &status, 0), child);
	EXPECT(WIFSIGNALED(status));
	SAME(WTERMSIG(status), SIGPIPE);
	tcp_close(fd);
}

/* A reset while the sender waits for room ends its wait. */
static void reset_while_sending__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);

	tcp_await(end);
	abort_by_linger(fd);
}

static void reset_while_sending__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	char bytes[4096] = { 0 };
	ssize_t sent;

	tcp_send_full(fd);
	tcp_tell(end);
	do
		sent = send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL);
	while (sent > 0);
	SAME(sent, -1);
	EXPECT(errno == ECONNRESET || errno == EPIPE);
	tcp_close(fd);
}

/* The connections of reset_while_taken, and the bytes that each of them is given at once. */
#define TAKEN_TIMES 100
#define TAKEN 9000

/* A fresh connection takes a few thousand bytes whole, also if the peer ends it after the first. A
 * program that does not look how many were taken would go on, and be ended by SIGPIPE. */
static void reset_while_taken__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 16);
	char byte;

	tcp_ready();
	for (int i = 0; i < TAKEN_TIMES; i++) {
		int fd = tcp_accept(listener);

		SAME(recv(fd, &byte, 1, 0), 1);
		tcp_close(fd);
	}
	tcp_close(listener);
}

static void reset_while_taken__client(struct tcp_end *end)
{
	char bytes[TAKEN];

	tcp_fill(bytes, sizeof(bytes), 0);
	/* None is closed before the end, so that each has memory of its own to wait for. */
	for (int i = 0; i < TAKEN_TIMES; i++)
		SAME(send(tcp_connect(end), bytes, sizeof(bytes), MSG_NOSIGNAL),
		     TAKEN);
}

const struct tcp_case tcp_reset_cases[] = {
	TCP_CASE(reset_by_linger),
	TCP_CASE(reset_polled),
	TCP_CASE(reset_after_data),
	TCP_CASE(close_unread),
	TCP_CASE(send_to_closed),
	TCP_CASE(broken_pipe),
	TCP_CASE(reset_while_sending),
	TCP_CASE(reset_while_taken),
	{ 0 },
};
