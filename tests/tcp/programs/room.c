// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * How many bytes a connection takes while nobody reads them: at least what programs send at once
 * without looking how many were taken, and not many more than SO_SNDBUF says.
 */
#include <linux/sockios.h>
#include "tcp_calls.h"

/* SO_SNDBUF of a new socket, which the buffer of a connection is not smaller than. */
#define AT_ONCE 16384
#define SMALL 4096
/* Bytes that may wait in such a buffer: the kernel counts what it needs for them, too, and takes a
 * whole packet when there is any room. */
#define NOT_MANY 32768
#define PIECE 1000
/* ms without room after which there is none. */
#define FULL_MS 200

/* Both ends send before either reads. */
static void exchange(struct tcp_end *end, int fd)
{
	tcp_tell(end);
	tcp_await(end);
	tcp_receive(fd, AT_ONCE, 0);
	tcp_greet(fd);
	tcp_close(fd);
}

static void send_at_once(struct tcp_end *end, int fd)
{
	char bytes[AT_ONCE];

	tcp_fill(bytes, sizeof(bytes), 0);
	SAME(send(fd, bytes, sizeof(bytes), MSG_DONTWAIT), AT_ONCE);
	exchange(end, fd);
}

static void room_at_once__server(struct tcp_end *end)
{
	send_at_once(end, tcp_accept_one(end));
}

static void room_at_once__client(struct tcp_end *end)
{
	send_at_once(end, tcp_connect(end));
}

/* The same in many pieces, by vectors. */
static void send_pieces(struct tcp_end *end, int fd)
{
	char bytes[512];
	struct iovec halves[2] = { { bytes, 100 }, { bytes + 100, 412 } };

	tcp_nonblocking(fd, true);
	for (size_t at = 0; at < AT_ONCE; at += sizeof(bytes)) {
		tcp_fill(bytes, sizeof(bytes), at);
		SAME(writev(fd, halves, 2), sizeof(bytes));
	}
	tcp_nonblocking(fd, false);
	exchange(end, fd);
}

static void room_in_pieces__server(struct tcp_end *end)
{
	send_pieces(end, tcp_accept_one(end));
}

static void room_in_pieces__client(struct tcp_end *end)
{
	send_pieces(end, tcp_connect(end));
}

/* ---- SO_SNDBUF ---- */

/* The reader sleeps until the writer has filled all, and reads that. */
static void read_later(struct tcp_end *end, int fd)
{
	uint32_t many;

	tcp_await(end);
	SAME(recv(fd, &many, sizeof(many), MSG_PEEK | MSG_WAITALL), sizeof(many));
	tcp_tell(end);
	tcp_await(end);
	tcp_echo(fd);
}

/* Send until there is no room any more; returns how many bytes. */
static size_t fill_all(int fd)
{
	struct pollfd room = { .fd = fd, .events = POLLOUT };
	char bytes[PIECE];
	size_t all = 0;
	ssize_t sent;

	while (MUST(poll(&room, 1, FULL_MS))) {
		tcp_fill(bytes, sizeof(bytes), all);
		sent = send(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (sent < 0)
			SAME(errno, EAGAIN);
		else
			all += (size_t)sent;
	}
	return all;
}

static void fill_it(struct tcp_end *end, int fd)
{
	size_t all = fill_all(fd);
	int waiting = 0;

	MUST(ioctl(fd, SIOCOUTQ, &waiting));
	if (waiting > NOT_MANY)
		WRONG("in a small buffer %d bytes wait", waiting);
	EXPECT(all >= SMALL);
	tcp_tell(end);
	tcp_await(end);
	/* They come back, which makes room for the next ones. */
	tcp_tell(end);
	tcp_receive(fd, all, 0);
	EXPECT(tcp_poll(fd, POLLOUT) & POLLOUT);
	tcp_send(fd, 1000, all);
	MUST(shutdown(fd, SHUT_WR));
	tcp_receive(fd, 1000, all);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

/* Who asks before he writes a little is told to go on, until as much waits as programs rely on. */
#define USUAL 65536

#define room_by_poll__server room_limited__server

static void room_by_poll__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	size_t all = fill_all(fd);

	if (all < USUAL)
		WRONG("of small pieces %zu bytes are taken", all);
	tcp_tell(end);
	tcp_await(end);
	tcp_tell(end);
	tcp_receive(fd, all, 0);
	tcp_close(fd);
}

static void room_limited__server(struct tcp_end *end)
{
	read_later(end, tcp_accept_one(end));
}

static void room_limited__client(struct tcp_end *end)
{
	int fd = tcp_socket(end);

	tcp_set(fd, SOL_SOCKET, SO_SNDBUF, SMALL);
	MUST(connect(fd, &end->address.any, end->length));
	fill_it(end, fd);
}

#define room_limited_open__server room_limited__server

static void room_limited_open__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_set(fd, SOL_SOCKET, SO_SNDBUF, SMALL);
	fill_it(end, fd);
}

/* An accepted connection has it from its listener. */
static void room_limited_listener__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4), fd;

	tcp_set(listener, SOL_SOCKET, SO_SNDBUF, SMALL);
	tcp_ready();
	fd = tcp_accept(listener);
	SAME(tcp_get(fd, SOL_SOCKET, SO_SNDBUF), 2 * SMALL);
	fill_it(end, fd);
}

static void room_limited_listener__client(struct tcp_end *end)
{
	read_later(end, tcp_connect(end));
}

/* A child sets it, and its parent has it, too. */
#define room_limited_fork__server room_limited__server

static void room_limited_fork__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	pid_t child = (pid_t)MUST(fork());

	if (!child) {
		tcp_set(fd, SOL_SOCKET, SO_SNDBUF, SMALL);
		_exit(0);
	}
	tcp_child_ended(child);
	fill_it(end, fd);
}

/* ---- TCP_NOTSENT_LOWAT ---- */

#define room_unsent__server room_limited__server

/* What the peer's window leaves over is soon as much as may wait. */
static void room_unsent__client(struct tcp_end *end)
{
	int fd = tcp_socket(end);

	tcp_set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, 2 * SMALL);
	MUST(connect(fd, &end->address.any, end->length));
	fill_it(end, fd);
}

const struct tcp_case tcp_room_cases[] = {
	TCP_CASE(room_at_once),
	TCP_CASE(room_in_pieces),
	TCP_CASE(room_by_poll),
	TCP_CASE(room_limited),
	TCP_CASE(room_limited_open),
	TCP_CASE(room_limited_listener),
	TCP_CASE(room_limited_fork),
	TCP_CASE(room_unsent),
	{ 0 },
};
