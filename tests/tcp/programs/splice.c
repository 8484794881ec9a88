// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* splice(): bytes go between a socket and a pipe, as proxies move them. */
#include "tcp_calls.h"

#define LENGTH 500000u
#define ROOM 65536u

/* Splice all of one descriptor to the other, of which one is a pipe, until the first ends. */
static size_t splice_all(int from, int to, unsigned int flags)
{
	size_t all = 0;
	ssize_t moved;

	while ((moved = MUST(splice(from, NULL, to, NULL, ROOM, flags))) > 0)
		all += (size_t)moved;
	return all;
}

/* Pipe to socket, while another process fills the pipe; the end of the pipe is 0. */
static void splice_from_pipe__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);

	tcp_receive(fd, LENGTH, 0);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static pid_t fill_pipe(const int ends[2])
{
	static char bytes[LENGTH];
	pid_t child = (pid_t)MUST(fork());
	size_t done = 0;

	if (child)
		return child;
	tcp_close(ends[0]);
	tcp_fill(bytes, LENGTH, 0);
	while (done < LENGTH) {
		size_t some = LENGTH - done < 7001 ? LENGTH - done : 7001;

		done += (size_t)MUST(write(ends[1], bytes + done, some));
	}
	_exit(0);
}

static void splice_from_pipe__client(struct tcp_end *end)
{
	int fd = tcp_connect(end), ends[2];
	pid_t child;

	MUST(pipe(ends));
	child = fill_pipe(ends);
	tcp_close(ends[1]);
	SAME(splice_all(ends[0], fd, SPLICE_F_MOVE | SPLICE_F_MORE), LENGTH);
	tcp_child_ended(child);
	tcp_close(fd);
}

/* A proxy: what comes by one connection goes back by itself, through a pipe. */
static void splice_proxy__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), ends[2];
	ssize_t moved;

	MUST(pipe(ends));
	while ((moved = MUST(splice(fd, NULL, ends[1], NULL, 1 << 20, 0))) > 0)
		while (moved > 0) {
			ssize_t out = splice(ends[0], NULL, fd, NULL,
					     (size_t)moved, 0);

			EXPECT(out > 0);
			moved -= out;
		}
	tcp_close(fd);
}

static void splice_proxy__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	pid_t child = (pid_t)MUST(fork());

	if (!child) {
		tcp_send(fd, LENGTH, 0);
		MUST(shutdown(fd, SHUT_WR));
		_exit(0);
	}
	tcp_receive(fd, LENGTH, 0);
	tcp_expect_eof(fd);
	tcp_child_ended(child);
	tcp_close(fd);
}

/* Nobody waits: neither for bytes, nor for room in the pipe, nor for room in the socket. */
static void splice_nonblocking__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), ends[2];
	static char bytes[ROOM];
	size_t all = 0, took;

	MUST(pipe2(ends, O_NONBLOCK));
	tcp_nonblocking(fd, true);
	FAILS(splice(fd, NULL, ends[1], NULL, ROOM, 0), EAGAIN);
	FAILS(splice(fd, NULL, ends[1], NULL, ROOM, SPLICE_F_NONBLOCK), EAGAIN);
	FAILS(splice(ends[0], NULL, fd, NULL, ROOM, 0), EAGAIN);
	tcp_tell(end);
	/* The pipe gets full; what it has no room for stays in the socket. */
	for (took = 0; took < 4096;) {
		ssize_t moved;

		EXPECT(tcp_poll(fd, POLLIN) & POLLIN);
		moved = splice(fd, NULL, ends[1], NULL, 1 << 20, 0);
		EXPECT(moved > 0);
		took += (size_t)moved;
	}
	while (tcp_ask(ends[1], POLLOUT) & POLLOUT) {
		EXPECT(tcp_poll(fd, POLLIN) & POLLIN);
		EXPECT(splice(fd, NULL, ends[1], NULL, 1 << 20, 0) > 0);
	}
	FAILS(splice(fd, NULL, ends[1], NULL, ROOM, 0), EAGAIN);
	FAILS(splice(fd, NULL, ends[1], NULL, ROOM, SPLICE_F_NONBLOCK), EAGAIN);
	tcp_tell(end);
	while (all < LENGTH) {
		ssize_t got = read(ends[0], bytes, sizeof(bytes));

		if (got > 0) {
			EXPECT(tcp_filled(bytes, (size_t)got, all));
			all += (size_t)got;
			continue;
		}
		SAME(errno, EAGAIN);
		EXPECT(tcp_poll(fd, POLLIN) & POLLIN);
		EXPECT(splice(fd, NULL, ends[1], NULL, ROOM, 0) > 0);
	}
	EXPECT(tcp_poll(fd, POLLIN) & POLLIN);
	SAME(splice(fd, NULL, ends[1], NULL, ROOM, 0), 0);
	tcp_close(fd);
}

static void splice_nonblocking__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_await(end);
	tcp_send(fd, LENGTH, 0);
	tcp_await(end);
	tcp_close(fd);
}

/* A socket without room takes what it has room for; the rest stays in the pipe. */
static void splice_full__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	size_t all;

	tcp_await(end);
	SAME(recv(fd, &all, sizeof(all), MSG_WAITALL), sizeof(all));
	tcp_receive(fd, all, 0);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void splice_full__client(struct tcp_end *end)
{
	int fd = tcp_connect(end), ends[2], full = 0;
	static char bytes[4096];
	size_t in = 0, out = 0, all = (size_t)24 << 20;

	MUST(pipe(ends));
	tcp_nonblocking(ends[1], true);
	SAME(send(fd, &all, sizeof(all), 0), sizeof(all));
	tcp_nonblocking(fd, true);
	while (out < all) {
		size_t some = all - in < sizeof(bytes) ? all - in : sizeof(bytes);
		ssize_t moved = 0;

		tcp_fill(bytes, some, in);
		if (some)
			moved = write(ends[1], bytes, some);
		in += moved > 0 ? (size_t)moved : 0;
		if (moved > 0 && in < all)
			continue;
		moved = splice(ends[0], NULL, fd, NULL, ROOM, 0);
		if (moved > 0) {
			out += (size_t)moved;
			continue;
		}
		SAME(errno, EAGAIN);
		if (!full++)
			tcp_tell(end);
		EXPECT(tcp_poll(fd, POLLOUT) & POLLOUT);
	}
	EXPECT(full);
	tcp_close(fd);
}

/* What cannot be, and ends: a broken connection, a pipe that nobody reads. */
static void splice_wrong__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), ends[2], other[2];
	off_t at = 0;

	MUST(pipe(ends));
	MUST(pipe(other));
	SAME(splice(fd, NULL, ends[1], NULL, 0, 0), 0);
	FAILS(splice(fd, NULL, ends[1], NULL, 10, 1u << 20), EINVAL);
	FAILS(splice(fd, NULL, fd, NULL, 10, 0), EINVAL);
	FAILS(splice(fd, &at, ends[1], NULL, 10, 0), EINVAL);
	FAILS(splice(fd, NULL, ends[1], &at, 10, 0), ESPIPE);
	FAILS(splice(ends[0], &at, fd, NULL, 10, 0), ESPIPE);
	FAILS(splice(ends[0], NULL, fd, &at, 10, 0), EINVAL);
	FAILS(splice(fd, NULL, ends[0], NULL, 10, 0), EBADF);
	FAILS(splice(ends[1], NULL, fd, NULL, 10, 0), EBADF);
	FAILS(splice(fd, NULL, 999, NULL, 10, 0), EBADF);
	FAILS(splice(999, NULL, fd, NULL, 10, 0), EBADF);
	FAILS(tee(fd, ends[1], 10, 0), EINVAL);
	FAILS(tee(ends[0], fd, 10, 0), EINVAL);
	/* Of these nothing was taken. */
	tcp_receive(fd, 100, 0);
	signal(SIGPIPE, SIG_IGN);
	tcp_close(other[0]);
	tcp_send(fd, 1, 0);
	EXPECT(tcp_poll(fd, POLLIN) & POLLIN);
	FAILS(splice(fd, NULL, other[1], NULL, 10, 0), EPIPE);
	tcp_receive(fd, 10, 0);
	SAME(write(ends[1], "0123456789", 10), 10);
	MUST(shutdown(fd, SHUT_WR));
	FAILS(splice(ends[0], NULL, fd, NULL, 10, 0), EPIPE);
	tcp_close(ends[1]);
	tcp_close(fd);
}

static void splice_wrong__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_send(fd, 100, 0);
	tcp_receive(fd, 1, 0);
	tcp_send(fd, 10, 0);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

const struct tcp_case tcp_splice_cases[] = {
	TCP_CASE(splice_from_pipe),   TCP_CASE(splice_proxy),
	TCP_CASE(splice_nonblocking), TCP_CASE(splice_full),
	TCP_CASE(splice_wrong),	      { 0 },
};
