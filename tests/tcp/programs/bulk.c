// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Much at once, little at a time, and readers that sleep.
 */
#include "tcp_calls.h"

#define MEGA10 10000000
#define SMALL 20000

/* Both directions at once by one thread, each byte looked at. */
static void both_ways(int fd)
{
	size_t sent = 0, received = 0;
	static char bytes[100000];

	tcp_nonblocking(fd, true);
	while (sent < MEGA10 || received < MEGA10) {
		short now = tcp_poll(fd, (short)(POLLIN |
						 (sent < MEGA10 ? POLLOUT : 0)));

		if (now & POLLOUT && sent < MEGA10) {
			size_t want = MEGA10 - sent < sizeof(bytes) ?
					      MEGA10 - sent :
					      sizeof(bytes);

			tcp_fill(bytes, want, sent);
			sent += (size_t)MUST(send(fd, bytes, want, MSG_NOSIGNAL));
		}
		if (now & POLLIN) {
			size_t got =
				(size_t)MUST(recv(fd, bytes, sizeof(bytes), 0));

			EXPECT(got > 0 && "the stream ended too early");
			EXPECT(tcp_filled(bytes, got, received));
			received += got;
		}
	}
	SAME(received, MEGA10);
	tcp_nonblocking(fd, false);
	MUST(shutdown(fd, SHUT_WR));
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void bulk_both_ways__server(struct tcp_end *end)
{
	both_ways(tcp_accept_one(end));
}

static void bulk_both_ways__client(struct tcp_end *end)
{
	both_ways(tcp_connect(end));
}

/* One byte in each call, with and without Nagle's algorithm. */
static void small_writes__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);

	tcp_receive(fd, SMALL, 0);
	tcp_send(fd, 1, 0);
	tcp_receive(fd, SMALL, 0);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void small_writes__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	for (size_t i = 0; i < SMALL; i++)
		tcp_send(fd, 1, i);
	tcp_receive(fd, 1, 0);
	tcp_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	for (size_t i = 0; i < SMALL; i++)
		tcp_send(fd, 1, i);
	tcp_close(fd);
}

static void small_reads__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);

	for (size_t i = 0; i < SMALL; i++)
		tcp_receive(fd, 1, i);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void small_reads__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_send(fd, SMALL, 0);
	tcp_close(fd);
}

/* The reader sleeps until the window is closed, and longer; then all comes. */
static void zero_window__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	size_t sent = tcp_send_full(fd);

	/* What fills the window now is sent from the queue meanwhile. */
	usleep(300000);
	for (ssize_t more; sent < TCP_MUCH; sent += (size_t)more) {
		char byte;

		tcp_fill(&byte, 1, sent);
		more = send(fd, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (more < 0)
			break;
	}
	SAME(errno, EAGAIN);
	tcp_tell(end);
	tcp_send(fd, 1000000, sent);
	tcp_close(fd);
}

static void zero_window__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	static char bytes[65536];
	size_t all = 0;
	ssize_t got;

	tcp_await(end);
	while ((got = MUST(recv(fd, bytes, sizeof(bytes), 0))) > 0) {
		EXPECT(tcp_filled(bytes, (size_t)got, all));
		all += (size_t)got;
	}
	EXPECT(all > 1000000);
	tcp_close(fd);
}

/* Both ends send before either reads, as much as the buffers take. */
static void both_full__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);

	tcp_send_full(fd);
	tcp_tell(end);
	tcp_await(end);
	MUST(shutdown(fd, SHUT_WR));
	while (MUST(recv(fd, NULL, 1 << 20, MSG_TRUNC)) > 0)
		;
	tcp_close(fd);
}

static void both_full__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_send_full(fd);
	tcp_tell(end);
	tcp_await(end);
	MUST(shutdown(fd, SHUT_WR));
	while (MUST(recv(fd, NULL, 1 << 20, MSG_TRUNC)) > 0)
		;
	tcp_close(fd);
}

const struct tcp_case tcp_bulk_cases[] = {
	TCP_CASE(bulk_both_ways), TCP_CASE(small_writes), TCP_CASE(small_reads),
	TCP_CASE(zero_window),	  TCP_CASE(both_full),	  { 0 },
};
