// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Urgent bytes: MSG_OOB, SO_OOBINLINE, SIOCATMARK, POLLPRI. */
#include <sys/select.h>
#include "tcp_calls.h"

static void await_urgent(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLPRI };

	SAME(poll(&p, 1, TCP_PATIENCE), 1);
	SAME(p.revents, POLLPRI);
}

static void await_count(int fd, int bytes)
{
	int waiting = 0;

	while (waiting < bytes)
		MUST(ioctl(fd, FIONREAD, &waiting));
	SAME(waiting, bytes);
}

static int ready_for(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	MUST(poll(&p, 1, 0));
	return p.revents;
}

/* Sends "abc", an urgent '!' and "def", and waits for the end. */
static void send_seven(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_await(end);
	SAME(send(fd, "abc!", 4, MSG_OOB), 4);
	SAME(send(fd, "def", 3, 0), 3);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

/* ---- taken out of the stream ---- */

static void urgent_apart__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	char bytes[10];

	FAILS(recv(fd, bytes, 1, MSG_OOB), EINVAL);
	SAME(sockatmark(fd), 0);
	tcp_tell(end);
	await_urgent(fd);
	await_count(fd, 3);
	SAME(ready_for(fd, POLLIN | POLLPRI), POLLIN | POLLPRI);
	SAME(sockatmark(fd), 0);
	SAME(recv(fd, bytes, 10, MSG_PEEK), 3);
	SAME(read(fd, bytes, 10), 3);
	EXPECT(!memcmp(bytes, "abc", 3));
	SAME(sockatmark(fd), 1);
	SAME(recv(fd, bytes, 10, MSG_OOB | MSG_PEEK), 1);
	SAME(recv(fd, bytes, 10, MSG_OOB), 1);
	SAME(bytes[0], '!');
	FAILS(recv(fd, bytes, 10, MSG_OOB), EINVAL);
	SAME(ready_for(fd, POLLPRI), 0);
	SAME(sockatmark(fd), 1);
	SAME(recv(fd, bytes, 3, MSG_WAITALL), 3);
	EXPECT(!memcmp(bytes, "def", 3));
	SAME(sockatmark(fd), 0);
	tcp_close(fd);
}

static void urgent_apart__client(struct tcp_end *end)
{
	send_seven(end);
}

/* ---- left where it is ---- */

static void urgent_inline__server(struct tcp_end *end)
{
	int fd, listener = tcp_listening(end, 5), on = 1;
	char bytes[10];

	MUST(setsockopt(listener, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on)));
	tcp_ready();
	fd = tcp_accept(listener);
	tcp_tell(end);
	await_count(fd, 7);
	SAME(ready_for(fd, POLLIN | POLLPRI), POLLIN | POLLPRI);
	FAILS(recv(fd, bytes, 1, MSG_OOB), EINVAL);
	SAME(read(fd, bytes, 10), 3);
	SAME(sockatmark(fd), 1);
	SAME(read(fd, bytes, 10), 4);
	EXPECT(!memcmp(bytes, "!def", 4));
	SAME(sockatmark(fd), 0);
	SAME(ready_for(fd, POLLIN | POLLPRI), 0);
	tcp_close(fd);
	tcp_close(listener);
}

static void urgent_inline__client(struct tcp_end *end)
{
	send_seven(end);
}

/* ---- one after the other ---- */

static void urgent_newer__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	char bytes[10];

	tcp_tell(end);
	tcp_await(end);
	await_urgent(fd);
	await_count(fd, 5);
	/* The older one is a byte like all others now. */
	SAME(recv(fd, bytes, 1, MSG_OOB), 1);
	SAME(bytes[0], '2');
	SAME(read(fd, bytes, 10), 5);
	EXPECT(!memcmp(bytes, "ab1cd", 5));
	tcp_tell(end);
	/* It was given, and is left out. */
	SAME(read(fd, bytes, 10), 2);
	EXPECT(!memcmp(bytes, "ef", 2));
	/* One that nobody fetches is lost for who reads past it. */
	tcp_tell(end);
	await_urgent(fd);
	SAME(ready_for(fd, POLLIN), 0);
	SAME(recv(fd, bytes, 10, MSG_DONTWAIT), -1);
	SAME(errno, EAGAIN);
	FAILS(recv(fd, bytes, 10, MSG_OOB), EINVAL);
	tcp_tell(end);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void urgent_newer__client(struct tcp_end *end)
{
	int fd = tcp_connect(end), unsent = 1;

	tcp_await(end);
	SAME(send(fd, "ab1", 3, MSG_OOB), 3);
	SAME(send(fd, "cd2", 3, MSG_OOB), 3);
	while (unsent)
		MUST(ioctl(fd, TIOCOUTQ, &unsent));
	tcp_tell(end);
	tcp_await(end);
	SAME(send(fd, "ef", 2, 0), 2);
	tcp_await(end);
	SAME(send(fd, "3", 1, MSG_OOB), 1);
	tcp_await(end);
	MUST(shutdown(fd, SHUT_WR));
	tcp_expect_eof(fd);
	tcp_close(fd);
}

/* ---- many bytes before it ---- */

#define MANY 300000

static void urgent_far__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), on = 1;

	/* A long send may make several bytes urgent, one after the other. */
	MUST(setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on)));
	tcp_tell(end);
	tcp_receive(fd, MANY - 1, 0);
	await_urgent(fd);
	SAME(sockatmark(fd), 1);
	tcp_receive(fd, 1, MANY - 1);
	SAME(sockatmark(fd), 0);
	tcp_receive(fd, 1000, 0);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void urgent_far__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	char *bytes = malloc(MANY);

	EXPECT(bytes);
	tcp_await(end);
	tcp_fill(bytes, MANY, 0);
	SAME(send(fd, bytes, MANY, MSG_OOB), MANY);
	tcp_send(fd, 1000, 0);
	MUST(shutdown(fd, SHUT_WR));
	tcp_expect_eof(fd);
	tcp_close(fd);
	free(bytes);
}

/* ---- who waits for it ---- */

static void urgent_told__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), set = (int)MUST(epoll_create1(0));
	struct epoll_event event = { .events = EPOLLPRI, .data.fd = fd };
	struct timeval wait = { .tv_sec = TCP_PATIENCE / 1000 };
	fd_set excepts;
	char bytes[10];

	MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
	tcp_tell(end);
	SAME(epoll_wait(set, &event, 1, TCP_PATIENCE), 1);
	SAME(event.events, EPOLLPRI);
	FD_ZERO(&excepts);
	FD_SET(fd, &excepts);
	SAME(select(fd + 1, NULL, NULL, &excepts, &wait), 1);
	EXPECT(FD_ISSET(fd, &excepts));
	SAME(recv(fd, bytes, 1, MSG_OOB), 1);
	SAME(epoll_wait(set, &event, 1, 0), 0);
	/* No read goes on past the mark. */
	SAME(recv(fd, bytes, 6, MSG_WAITALL), 3);
	EXPECT(!memcmp(bytes, "abc", 3));
	SAME(recv(fd, bytes, 3, MSG_WAITALL), 3);
	EXPECT(!memcmp(bytes, "def", 3));
	tcp_close(set);
	tcp_close(fd);
}

static void urgent_told__client(struct tcp_end *end)
{
	send_seven(end);
}

/* recvmsg() says that it is urgent. */
static void urgent_flags__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	char byte = 0;
	struct iovec one = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &one, .msg_iovlen = 1 };

	tcp_tell(end);
	await_urgent(fd);
	SAME(recvmsg(fd, &msg, MSG_OOB | MSG_PEEK), 1);
	SAME(msg.msg_flags & (MSG_OOB | MSG_TRUNC), MSG_OOB);
	SAME(byte, '!');
	msg.msg_iovlen = 0;
	SAME(recvmsg(fd, &msg, MSG_OOB), 0);
	SAME(msg.msg_flags & (MSG_OOB | MSG_TRUNC), MSG_OOB | MSG_TRUNC);
	FAILS(recv(fd, &byte, 1, MSG_OOB), EINVAL);
	/* It is not unread. */
	FAILS(recv(fd, &byte, 1, MSG_DONTWAIT), EAGAIN);
	tcp_close(fd);
}

static void urgent_flags__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_await(end);
	SAME(send(fd, "!", 1, MSG_OOB), 1);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

/* ---- signals ---- */

static volatile sig_atomic_t urgent_signals, news_signals;

static void count_signal(int number)
{
	if (number == SIGURG)
		urgent_signals++;
	else
		news_signals++;
}

/* The process is signalled although it calls nothing. */
static void await_signal(volatile sig_atomic_t *count)
{
	int ms = 0;

	while (!*count) {
		EXPECT(ms++ < TCP_PATIENCE);
		usleep(1000);
	}
}

static void urgent_signal__server(struct tcp_end *end)
{
	struct sigaction action = { .sa_handler = count_signal,
				    .sa_flags = SA_RESTART };
	int fd = tcp_accept_one(end);
	char bytes[10];

	MUST(sigaction(SIGURG, &action, NULL));
	MUST(sigaction(SIGIO, &action, NULL));
	MUST(fcntl(fd, F_SETOWN, getpid()));
	SAME(fcntl(fd, F_GETOWN), getpid());
	tcp_tell(end);
	await_signal(&urgent_signals);
	SAME(recv(fd, bytes, 1, MSG_OOB), 1);
	SAME(bytes[0], '!');
	SAME(urgent_signals, 1);
	SAME(news_signals, 0);
	SAME(recv(fd, bytes, 6, MSG_WAITALL), 3);
	SAME(recv(fd, bytes, 3, MSG_WAITALL), 3);
	SAME(urgent_signals, 1);
	tcp_close(fd);
}

static void urgent_signal__client(struct tcp_end *end)
{
	send_seven(end);
}

static void async_signal__server(struct tcp_end *end)
{
	struct sigaction action = { .sa_handler = count_signal,
				    .sa_flags = SA_RESTART };
	int listener = tcp_listening(end, 5), fd, flags;
	char bytes[10];

	MUST(sigaction(SIGIO, &action, NULL));
	MUST(fcntl(listener, F_SETOWN, getpid()));
	flags = (int)MUST(fcntl(listener, F_GETFL));
	MUST(fcntl(listener, F_SETFL, flags | O_ASYNC));
	SAME(fcntl(listener, F_GETFL) & O_ASYNC, O_ASYNC);
	tcp_ready();
	await_signal(&news_signals);
	fd = tcp_accept(listener);
	MUST(fcntl(fd, F_SETOWN, getpid()));
	flags = (int)MUST(fcntl(fd, F_GETFL));
	MUST(fcntl(fd, F_SETFL, flags | O_ASYNC | O_NONBLOCK));
	FAILS(read(fd, bytes, 10), EAGAIN);
	news_signals = 0;
	tcp_tell(end);
	for (flags = 0; flags < 3;) {
		await_signal(&news_signals);
		news_signals = 0;
		if (read(fd, bytes, 1) == 1)
			news_signals = ++flags < 3;
	}
	tcp_close(fd);
	tcp_close(listener);
}

static void async_signal__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_await(end);
	SAME(send(fd, "abc", 3, 0), 3);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

const struct tcp_case tcp_urgent_cases[] = {
	TCP_CASE(urgent_apart),
	TCP_CASE(urgent_inline),
	TCP_CASE(urgent_newer),
	TCP_CASE(urgent_far),
	TCP_CASE(urgent_told),
	TCP_CASE(urgent_flags),
	TCP_CASE(urgent_signal),
	TCP_CASE(async_signal),
	{ 0 },
};
