// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Listeners: flags and options of what they accept, their queue, their end.
 */
#include <sys/resource.h>
#include "tcp_calls.h"

#define COUNT 8

/* Connect COUNT times, and talk on each when all are there. */
static void several__client(struct tcp_end *end)
{
	int fds[COUNT];

	for (int i = 0; i < COUNT; i++)
		fds[i] = tcp_connect(end);
	for (int i = 0; i < COUNT; i++)
		tcp_greet(fds[i]);
	for (int i = 0; i < COUNT; i++)
		tcp_close(fds[i]);
}

static void accept_flags__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, COUNT);

	tcp_nonblocking(listener, true);
	tcp_ready();
	for (int i = 0; i < COUNT; i++) {
		int flags = (i & 1 ? SOCK_NONBLOCK : 0) |
			    (i & 2 ? SOCK_CLOEXEC : 0),
		    fd;

		SAME(tcp_poll(listener, POLLIN), POLLIN);
		fd = i < 4 ? accept4(listener, NULL, NULL, flags) :
			     accept(listener, NULL, NULL);
		MUST(fd);
		/* accept() takes neither flag from the listener. */
		SAME(fcntl(fd, F_GETFL) & O_NONBLOCK,
		     i < 4 && i & 1 ? O_NONBLOCK : 0);
		SAME(fcntl(fd, F_GETFD), i < 4 && i & 2 ? FD_CLOEXEC : 0);
		SAME(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDWR);
		tcp_nonblocking(fd, false);
		tcp_greet(fd);
		tcp_close(fd);
	}
	FAILS(accept4(listener, NULL, NULL, 12345), EINVAL);
}

#define accept_flags__client several__client

static void accept_nonblocking__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4), fd;

	tcp_nonblocking(listener, true);
	FAILS(accept(listener, NULL, NULL), EAGAIN);
	SAME(tcp_ask(listener, POLLIN | POLLOUT), 0);
	tcp_ready();
	SAME(tcp_poll(listener, POLLIN), POLLIN);
	fd = tcp_accept(listener);
	FAILS(accept(listener, NULL, NULL), EAGAIN);
	SAME(tcp_ask(listener, POLLIN), 0);
	tcp_echo(fd);
}

static void accept_nonblocking__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_greet(fd);
	tcp_close(fd);
}

/* SO_RCVTIMEO bounds accept(). */
static void accept_timeout__server(struct tcp_end *end)
{
	struct timeval time = { .tv_usec = 30000 };
	int listener = tcp_listening(end, 4), fd;

	MUST(setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)));
	FAILS(accept(listener, NULL, NULL), EAGAIN);
	time = (struct timeval){ 0 };
	MUST(setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)));
	tcp_ready();
	errno = 0;
	fd = tcp_accept(listener);
	/* That there was none at first is no error. */
	SAME(errno, 0);
	tcp_echo(fd);
}

#define accept_timeout__client accept_nonblocking__client

/* Connections are complete before anybody accepts them, in the order of connect(). */
static void backlog__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, COUNT);

	tcp_ready();
	tcp_await(end);
	for (int i = 0; i < COUNT; i++) {
		int fd = tcp_accept(listener);

		tcp_receive(fd, 10, (size_t)i);
		tcp_send(fd, 10, (size_t)i);
		tcp_expect_eof(fd);
		tcp_close(fd);
	}
}

static void backlog__client(struct tcp_end *end)
{
	int fds[COUNT];

	for (int i = 0; i < COUNT; i++) {
		fds[i] = tcp_connect(end);
		tcp_send(fds[i], 10, (size_t)i);
	}
	tcp_tell(end);
	for (int i = 0; i < COUNT; i++) {
		tcp_receive(fds[i], 10, (size_t)i);
		tcp_close(fds[i]);
	}
}

/* What a client said before it went away is there when it is accepted. */
static void accept_after_close__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4), fd;

	tcp_ready();
	tcp_await(end);
	fd = tcp_accept(listener);
	tcp_receive(fd, 1000, 0);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void accept_after_close__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_send(fd, 1000, 0);
	tcp_close(fd);
	tcp_tell(end);
}

/* Without a free descriptor accept() fails, and takes the connection later. */
static void accept_without_descriptor__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4);
	struct rlimit before, now;
	int last;

	tcp_ready();
	tcp_await(end);
	MUST(getrlimit(RLIMIT_NOFILE, &before));
	last = (int)MUST(dup(listener));
	tcp_close(last);
	now = before;
	now.rlim_cur = (rlim_t)last;
	MUST(setrlimit(RLIMIT_NOFILE, &now));
	FAILS(accept(listener, NULL, NULL), EMFILE);
	FAILS(socket(AF_INET, SOCK_STREAM, 0), EMFILE);
	SAME(tcp_poll(listener, POLLIN), POLLIN);
	MUST(setrlimit(RLIMIT_NOFILE, &before));
	tcp_echo(tcp_accept(listener));
}

static void accept_without_descriptor__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_tell(end);
	tcp_greet(fd);
	tcp_close(fd);
}

/* Who closes a listener resets what nobody accepted. */
static void listener_closed__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4);

	tcp_ready();
	tcp_await(end);
	tcp_close(listener);
	tcp_tell(end);
	tcp_await(end);
}

static void listener_closed__client(struct tcp_end *end)
{
	int fd = tcp_connect(end), other;
	char byte;

	tcp_tell(end);
	FAILS(recv(fd, &byte, 1, 0), ECONNRESET);
	tcp_await(end);
	other = tcp_socket(end);
	FAILS(connect(other, &end->address.any, end->length), ECONNREFUSED);
	tcp_close(fd);
	tcp_tell(end);
}

/* Connections outlive their listener, and the port can be bound again beside them. */
static void listen_again__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4), first, second;

	tcp_ready();
	first = tcp_accept(listener);
	tcp_close(listener);
	listener = tcp_listening(end, 4);
	tcp_send(first, 1, 0);
	second = tcp_accept(listener);
	tcp_greet(second);
	tcp_greet(first);
	/* The server ends the connection, which is then in TIME_WAIT; that hinders nobody. */
	tcp_close(second);
	tcp_close(first);
	tcp_close(listener);
	tcp_await(end);
	listener = tcp_listening(end, 4);
	tcp_tell(end);
	tcp_echo(tcp_accept(listener));
}

static void listen_again__client(struct tcp_end *end)
{
	int first = tcp_connect(end), second;

	tcp_receive(first, 1, 0);
	second = tcp_connect(end);
	tcp_greet(second);
	tcp_greet(first);
	tcp_expect_eof(first);
	tcp_expect_eof(second);
	tcp_close(first);
	tcp_close(second);
	tcp_tell(end);
	tcp_await(end);
	first = tcp_connect(end);
	tcp_greet(first);
	tcp_close(first);
}

/* Two listeners share a port, and together get all connections. */
static void reuseport__server(struct tcp_end *end)
{
	struct pollfd listeners[2];
	int got[2] = { 0 };

	for (int i = 0; i < 2; i++) {
		listeners[i] = (struct pollfd){ .fd = tcp_socket(end),
						.events = POLLIN };
		tcp_set(listeners[i].fd, SOL_SOCKET, SO_REUSEPORT, 1);
		MUST(bind(listeners[i].fd, &end->address.any, end->length));
		MUST(listen(listeners[i].fd, 64));
	}
	tcp_ready();
	while (got[0] + got[1] < 40) {
		EXPECT(poll(listeners, 2, TCP_PATIENCE) > 0);
		for (int i = 0; i < 2; i++) {
			if (!listeners[i].revents)
				continue;
			tcp_echo(tcp_accept(listeners[i].fd));
			got[i]++;
		}
	}
	EXPECT(got[0] > 0);
	EXPECT(got[1] > 0);
}

static void reuseport__client(struct tcp_end *end)
{
	for (int i = 0; i < 40; i++) {
		int fd = tcp_connect(end);

		tcp_greet(fd);
		MUST(shutdown(fd, SHUT_WR));
		tcp_expect_eof(fd);
		tcp_close(fd);
	}
}

/* A process with a listener of its own at the port; it writes its number for each connection. */
static pid_t worker(struct tcp_end *end, int number, int to)
{
	pid_t child = (pid_t)MUST(fork());
	char byte = (char)number;
	int listener, fd;

	if (child)
		return child;
	listener = tcp_socket(end);
	tcp_set(listener, SOL_SOCKET, SO_REUSEPORT, 1);
	MUST(bind(listener, &end->address.any, end->length));
	MUST(listen(listener, 64));
	/* It listens. */
	SAME(write(to, "\377", 1), 1);
	for (;;) {
		fd = tcp_accept(listener);
		SAME(write(to, &byte, 1), 1);
		tcp_echo(fd);
	}
}

/* Count what the workers write, until @num bytes have come. */
static void count_served(int from, int num, int served[4])
{
	signed char byte;

	memset(served, 0, 4 * sizeof(*served));
	while (num--) {
		SAME(read(from, &byte, 1), 1);
		served[byte & 3]++;
	}
}

/* Several processes listen at a port, each by its own socket. When one is killed, the others get
 * all that comes. */
static void reuseport_workers__server(struct tcp_end *end)
{
	int ends[2], served[4];
	pid_t workers[3];

	MUST(pipe(ends));
	for (int i = 0; i < 3; i++)
		workers[i] = worker(end, i, ends[1]);
	count_served(ends[0], 3, served);
	SAME(served[3], 3);
	tcp_ready();
	count_served(ends[0], 60, served);
	for (int i = 0; i < 3; i++)
		EXPECT(served[i] > 0);
	tcp_await(end);
	MUST(kill(workers[0], SIGKILL));
	SAME(waitpid(workers[0], NULL, 0), workers[0]);
	tcp_tell(end);
	tcp_await(end);
	for (int i = 1; i < 3; i++) {
		MUST(kill(workers[i], SIGKILL));
		SAME(waitpid(workers[i], NULL, 0), workers[i]);
	}
}

/* Use a connection; false if it was reset, which may be before the first byte is sent. */
static bool is_served(struct tcp_end *end)
{
	int fd = tcp_connect(end), got;
	char byte = 'x';

	got = (int)send(fd, &byte, 1, MSG_NOSIGNAL);
	if (got > 0)
		got = (int)recv(fd, &byte, 1, 0);
	if (got < 0)
		EXPECT(errno == ECONNRESET || errno == EPIPE);
	tcp_close(fd);
	return got == 1;
}

static void reuseport_workers__client(struct tcp_end *end)
{
	int served = 0;

	for (int i = 0; i < 60; i++)
		EXPECT(is_served(end));
	tcp_tell(end);
	tcp_await(end);
	/* What comes for the killed one before anybody has noticed its end is reset. */
	for (int i = 0; i < 1000 && served < 40; i++) {
		served = is_served(end) ? served + 1 : 0;
		if (!served)
			usleep(20000);
	}
	SAME(served, 40);
	tcp_tell(end);
}

/* A listener that closes resets what it has not accepted, and the others go on. */
static void reuseport_closed__server(struct tcp_end *end)
{
	struct pollfd fds[2] = { { .events = POLLIN }, { .events = POLLIN } };
	int listeners[2], own = 0;

	for (int i = 0; i < 2; i++) {
		listeners[i] = tcp_socket(end);
		tcp_set(listeners[i], SOL_SOCKET, SO_REUSEPORT, 1);
		MUST(bind(listeners[i], &end->address.any, end->length));
		MUST(listen(listeners[i], 64));
	}
	tcp_ready();
	tcp_await(end);
	tcp_close(listeners[0]);
	tcp_tell(end);
	fds[0].fd = listeners[1];
	fds[1].fd = end->sync;
	/* Connections that the client has opened may still be on their way here. It says when it
	 * knows what became of each. */
	for (;;) {
		EXPECT(poll(fds, 2, TCP_PATIENCE) > 0);
		if (!fds[0].revents)
			break;
		tcp_echo(tcp_accept(listeners[1]));
		own++;
	}
	tcp_await(end);
	EXPECT(own > 0);
	EXPECT(own < 40);
	tcp_tell(end);
	for (int i = 0; i < 10; i++)
		tcp_echo(tcp_accept(listeners[1]));
}

static void reuseport_closed__client(struct tcp_end *end)
{
	int fds[40], reset = 0;
	char byte;

	for (int i = 0; i < 40; i++) {
		fds[i] = tcp_connect(end);
		tcp_send(fds[i], 1, 0);
		MUST(shutdown(fds[i], SHUT_WR));
	}
	tcp_tell(end);
	tcp_await(end);
	for (int i = 0; i < 40; i++) {
		long got = recv(fds[i], &byte, 1, 0);

		if (got < 0)
			SAME(errno, ECONNRESET);
		reset += got < 0;
		tcp_close(fds[i]);
	}
	EXPECT(reset > 0);
	EXPECT(reset < 40);
	tcp_tell(end);
	tcp_await(end);
	for (int i = 0; i < 10; i++) {
		fds[i] = tcp_connect(end);
		tcp_greet(fds[i]);
		MUST(shutdown(fds[i], SHUT_WR));
		tcp_expect_eof(fds[i]);
		tcp_close(fds[i]);
	}
}

/* A listener for all addresses is told which of them was meant. */
static void listen_anywhere__server(struct tcp_end *end)
{
	union tcp_address any = end->address, own;
	socklen_t length = sizeof(own);
	int listener = tcp_socket(end), fd;

	memset(&any.v4.sin_addr, 0,
	       any.any.sa_family == AF_INET ? sizeof(any.v4.sin_addr) : 0);
	if (any.any.sa_family == AF_INET6)
		any.v6.sin6_addr = in6addr_any;
	MUST(bind(listener, &any.any, end->length));
	MUST(listen(listener, 4));
	tcp_ready();
	fd = tcp_accept(listener);
	MUST(getsockname(fd, &own.any, &length));
	SAME(length, end->length);
	SAME(memcmp(&own, &end->address, 8), 0);
	tcp_echo(fd);
}

#define listen_anywhere__client accept_nonblocking__client

/* A listener for all IPv6 addresses serves IPv4, too, whose addresses it sees in IPv6's form. */
static void dual_stack__server(struct tcp_end *end)
{
	union tcp_address any = { .v6 = { .sin6_family = AF_INET6 } }, peer;
	bool v4 = end->address.any.sa_family == AF_INET;
	socklen_t length = sizeof(peer);
	int listener = (int)MUST(socket(AF_INET6, SOCK_STREAM, 0)), fd;

	any.v6.sin6_port = end->address.v4.sin_port;
	tcp_set(listener, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	MUST(bind(listener, &any.any, sizeof(any.v6)));
	MUST(listen(listener, 4));
	tcp_ready();
	fd = (int)MUST(accept(listener, &peer.any, &length));
	SAME(length, sizeof(peer.v6));
	SAME(peer.any.sa_family, AF_INET6);
	SAME(IN6_IS_ADDR_V4MAPPED(&peer.v6.sin6_addr) != 0, v4);
	MUST(getsockname(fd, &peer.any, &length));
	SAME(IN6_IS_ADDR_V4MAPPED(&peer.v6.sin6_addr) != 0, v4);
	SAME(tcp_get(fd, SOL_SOCKET, SO_DOMAIN), AF_INET6);
	tcp_echo(fd);
}

/* An IPv6 socket connects to an IPv4 address in that form. */
static void dual_stack__client(struct tcp_end *end)
{
	union tcp_address to = end->address;
	int fd = (int)MUST(socket(AF_INET6, SOCK_STREAM, 0));

	if (to.any.sa_family == AF_INET) {
		to.v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6,
					       .sin6_port =
						       end->address.v4.sin_port };
		to.v6.sin6_addr.s6_addr32[2] = htonl(0xffff);
		to.v6.sin6_addr.s6_addr32[3] = end->address.v4.sin_addr.s_addr;
	}
	MUST(connect(fd, &to.any, sizeof(to.v6)));
	tcp_greet(fd);
	tcp_close(fd);
}

/* With TCP_DEFER_ACCEPT a connection is accepted once there are bytes. */
static void defer_accept__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4), fd;

	tcp_set(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, 30);
	EXPECT(tcp_get(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT) >= 30);
	tcp_ready();
	fd = tcp_accept(listener);
	tcp_nonblocking(fd, true);
	tcp_receive(fd, 1, 7);
	tcp_nonblocking(fd, false);
	tcp_send(fd, 1, 7);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

/* Long after it has connected, so that accept() would not find the byte by chance. */
static void defer_accept__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	usleep(300000);
	tcp_greet(fd);
	tcp_close(fd);
}

const struct tcp_case tcp_accept_cases[] = {
	TCP_CASE(accept_flags),
	TCP_CASE(accept_nonblocking),
	TCP_CASE(accept_timeout),
	TCP_CASE(backlog),
	TCP_CASE(accept_after_close),
	TCP_CASE(accept_without_descriptor),
	TCP_CASE(listener_closed),
	TCP_CASE(listen_again),
	TCP_CASE(reuseport),
	TCP_CASE(listen_anywhere),
	TCP_CASE(dual_stack),
	TCP_CASE(reuseport_workers),
	TCP_CASE(reuseport_closed),
	TCP_CASE(defer_accept),
	{ 0 },
};
