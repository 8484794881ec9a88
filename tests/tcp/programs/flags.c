// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Flags of send() and recv(), and transfers of no length.
 */
#include "tcp_calls.h"

/* Looking does not take. */
static void peek__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	char bytes[100];

	SAME(recv(fd, bytes, 10, MSG_PEEK | MSG_WAITALL), 10);
	EXPECT(tcp_filled(bytes, 10, 0));
	SAME(recv(fd, bytes, 4, MSG_PEEK), 4);
	tcp_receive(fd, 4, 0);
	SAME(recv(fd, bytes, sizeof(bytes), MSG_PEEK), 6);
	EXPECT(tcp_filled(bytes, 6, 4));
	SAME(recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT), 6);
	FAILS(recv(fd, bytes, 1, MSG_PEEK | MSG_DONTWAIT), EAGAIN);
	tcp_tell(end);
	SAME(recv(fd, bytes, 1, MSG_PEEK), 0);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void peek__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_send(fd, 10, 0);
	tcp_await(end);
	tcp_close(fd);
}

/* MSG_WAITALL waits for all, however it comes, and takes less at the end only. */
static void waitall__server(struct tcp_end *end)
{
	static char bytes[300000];
	int fd = tcp_accept_one(end);

	SAME(recv(fd, bytes, 1000, MSG_WAITALL), 1000);
	EXPECT(tcp_filled(bytes, 1000, 0));
	tcp_tell(end);
	SAME(recv(fd, bytes, sizeof(bytes), MSG_WAITALL), sizeof(bytes));
	EXPECT(tcp_filled(bytes, sizeof(bytes), 5));
	SAME(recv(fd, bytes, 100, MSG_WAITALL), 7);
	SAME(recv(fd, bytes, 100, MSG_WAITALL), 0);
	tcp_close(fd);
}

static void waitall__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	for (size_t i = 0; i < 1000; i += 100) {
		tcp_send(fd, 100, i);
		usleep(500);
	}
	tcp_await(end);
	tcp_send(fd, 300000, 5);
	tcp_send(fd, 7, 0);
	tcp_close(fd);
}

/* MSG_DONTWAIT on a socket that blocks. */
static void dontwait__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	char byte;

	FAILS(recv(fd, &byte, 1, MSG_DONTWAIT), EAGAIN);
	tcp_send_full(fd);
	SAME(tcp_ask(fd, POLLOUT), 0);
	SAME(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	tcp_tell(end);
	MUST(shutdown(fd, SHUT_WR));
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void dontwait__client(struct tcp_end *end)
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
	EXPECT(all > 0);
	tcp_close(fd);
}

/* MSG_TRUNC throws bytes of a stream away, and needs no buffer. */
static void trunc__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);

	SAME(recv(fd, NULL, 1000, MSG_TRUNC | MSG_WAITALL), 1000);
	tcp_receive(fd, 500, 1000);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void trunc__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_send(fd, 1500, 0);
	tcp_close(fd);
}

/* MSG_TRUNC with MSG_PEEK counts bytes and leaves them there, and needs no buffer either. */
static void measured__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);

	SAME(recv(fd, NULL, 5000, MSG_PEEK | MSG_TRUNC), 100);
	SAME(recv(fd, NULL, 40, MSG_PEEK | MSG_TRUNC), 40);
	tcp_receive(fd, 100, 0);
	tcp_tell(end);
	tcp_expect_eof(fd);
	SAME(recv(fd, NULL, 40, MSG_PEEK | MSG_TRUNC), 0);
	tcp_close(fd);
}

static void measured__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_send(fd, 100, 0);
	tcp_await(end);
	tcp_close(fd);
}

/* MSG_MORE holds bytes back for a while, and loses none. */
static void more__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);

	tcp_receive(fd, 110, 0);
	tcp_send(fd, 1, 0);
	tcp_receive(fd, 50, 110);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void more__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	char bytes[160];

	tcp_fill(bytes, sizeof(bytes), 0);
	for (size_t i = 0; i < 100; i += 10)
		SAME(send(fd, bytes + i, 10, MSG_MORE), 10);
	SAME(send(fd, bytes + 100, 10, 0), 10);
	tcp_receive(fd, 1, 0);
	/* The end of the stream pushes what was held back. */
	SAME(send(fd, bytes + 110, 50, MSG_MORE), 50);
	tcp_close(fd);
}

/* The queue of errors is another one than that of bytes, and empty. */
static void error_queue__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	char byte;

	SAME(tcp_poll(fd, POLLIN), POLLIN);
	FAILS(recv(fd, &byte, 1, MSG_ERRQUEUE), EAGAIN);
	tcp_receive(fd, 10, 0);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void error_queue__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_send(fd, 10, 0);
	tcp_close(fd);
}

/* Nothing is sent and nothing received by transfers of no length. */
static void no_length__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	char byte;

	SAME(send(fd, "", 0, 0), 0);
	SAME(write(fd, "", 0), 0);
	SAME(recv(fd, &byte, 0, MSG_DONTWAIT) <= 0, 1);
	tcp_tell(end);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void no_length__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	char byte;

	tcp_await(end);
	FAILS(recv(fd, &byte, 1, MSG_DONTWAIT), EAGAIN);
	tcp_close(fd);
}

/* Addresses that are not the program's give EFAULT and harm nothing. */
static void bad_address__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);

	FAILS(recv(fd, (void *)8, 10, 0), EFAULT);
	tcp_receive(fd, 10, 0);
	tcp_close(fd);
}

static void bad_address__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	FAILS(send(fd, (void *)8, 10, MSG_NOSIGNAL), EFAULT);
	tcp_send(fd, 10, 0);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

/* No address at all gives EFAULT, too. */
static void no_address__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), waiting = 0;
	/* The compiler need not know. */
	void *volatile nowhere = NULL;
	struct iovec iov = { .iov_len = 10 };
	struct msghdr message = { .msg_iovlen = 1 };

	while (waiting < 10)
		MUST(ioctl(fd, FIONREAD, &waiting));
	FAILS(recv(fd, nowhere, 10, 0), EFAULT);
	FAILS(read(fd, nowhere, 10), EFAULT);
	FAILS(readv(fd, &iov, 1), EFAULT);
	FAILS(recvmsg(fd, nowhere, 0), EFAULT);
	FAILS(recvmsg(fd, &message, 0), EFAULT);
	tcp_receive(fd, 10, 0);
	tcp_close(fd);
}

static void no_address__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	void *volatile nowhere = NULL;
	struct iovec iov = { .iov_len = 10 };
	struct msghdr message = { .msg_iovlen = 1 };

	FAILS(send(fd, nowhere, 10, MSG_NOSIGNAL), EFAULT);
	FAILS(write(fd, nowhere, 10), EFAULT);
	FAILS(writev(fd, &iov, 1), EFAULT);
	FAILS(sendmsg(fd, nowhere, 0), EFAULT);
	FAILS(sendmsg(fd, &message, 0), EFAULT);
	SAME(send(fd, nowhere, 0, 0), 0);
	tcp_send(fd, 10, 0);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

const struct tcp_case tcp_flag_cases[] = {
	TCP_CASE(peek),
	TCP_CASE(waitall),
	TCP_CASE(dontwait),
	TCP_CASE(trunc),
	TCP_CASE(measured),
	TCP_CASE(more),
	TCP_CASE(no_length),
	TCP_CASE(bad_address),
	TCP_CASE(error_queue),
	TCP_CASE(no_address),
	{ 0 },
};
