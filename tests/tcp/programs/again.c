// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What sockets say while they are being connected, and what a second connect() or listen() does.
 */
#include "tcp_calls.h"

static void serve_echo(struct tcp_end *end)
{
	tcp_echo(tcp_accept_one(end));
}

/* A connection by which the server ends. */
static void end_server(const struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_greet(fd);
	tcp_close(fd);
}

static int nonblocking_socket(const struct tcp_end *end)
{
	return (int)MUST(socket(end->address.any.sa_family,
				SOCK_STREAM | SOCK_NONBLOCK, 0));
}

/* An address beside the server's that nobody has. */
static union tcp_address nobody(const struct tcp_end *end)
{
	union tcp_address address = end->address;

	if (address.any.sa_family == AF_INET)
		address.v4.sin_addr.s_addr ^= htonl(0x40);
	else
		address.v6.sin6_addr.s6_addr[15] ^= 0x40;
	return address;
}

/* The address from which this host sends to @to. */
static union tcp_address source_for(const union tcp_address *to, socklen_t length)
{
	int fd = (int)MUST(socket(to->any.sa_family, SOCK_DGRAM, 0));
	union tcp_address from;

	memset(&from, 0, sizeof(from));
	MUST(connect(fd, &to->any, length));
	MUST(getsockname(fd, &from.any, &length));
	tcp_close(fd);
	return from;
}

#define name_while_opening__server serve_echo

/* The SYN has a source, which getsockname() tells, and no peer has answered yet. */
static void name_while_opening__client(struct tcp_end *end)
{
	union tcp_address to = nobody(end), name, from;
	socklen_t length = sizeof(name);
	int fd = nonblocking_socket(end);

	memset(&name, 0, sizeof(name));
	FAILS(connect(fd, &to.any, end->length), EINPROGRESS);
	MUST(getsockname(fd, &name.any, &length));
	SAME(length, end->length);
	from = source_for(&to, end->length);
	SAME(name.any.sa_family, from.any.sa_family);
	EXPECT(name.v4.sin_port != 0);
	if (from.any.sa_family == AF_INET)
		SAME(name.v4.sin_addr.s_addr, from.v4.sin_addr.s_addr);
	else
		EXPECT(IN6_ARE_ADDR_EQUAL(&name.v6.sin6_addr, &from.v6.sin6_addr));
	length = sizeof(name);
	FAILS(getpeername(fd, &name.any, &length), ENOTCONN);
	tcp_close(fd);
	end_server(end);
}

/* A thread that waits in connect(). */
struct opening {
	const union tcp_address *to;
	socklen_t length;
	int fd;
	pid_t thread;
};

static void *open_it(void *arg)
{
	struct opening *o = arg;

	__atomic_store_n(&o->thread, gettid(), __ATOMIC_RELEASE);
	connect(o->fd, &o->to->any, o->length);
	return NULL;
}

#define name_while_waiting__server serve_echo

/* The same in another thread than the one that waits for the connection. */
static void name_while_waiting__client(struct tcp_end *end)
{
	union tcp_address to = nobody(end), name, from;
	struct opening o = { .to = &to, .length = end->length };
	socklen_t length = sizeof(name);
	pthread_t thread;

	o.fd = tcp_socket(end);
	SAME(pthread_create(&thread, NULL, open_it, &o), 0);
	while (!__atomic_load_n(&o.thread, __ATOMIC_ACQUIRE))
		usleep(1000);
	tcp_await_sleep(o.thread);
	memset(&name, 0, sizeof(name));
	MUST(getsockname(o.fd, &name.any, &length));
	SAME(length, end->length);
	from = source_for(&to, end->length);
	EXPECT(name.v4.sin_port != 0);
	if (from.any.sa_family == AF_INET)
		SAME(name.v4.sin_addr.s_addr, from.v4.sin_addr.s_addr);
	else
		EXPECT(IN6_ARE_ADDR_EQUAL(&name.v6.sin6_addr, &from.v6.sin6_addr));
	/* The end of the process is that of the thread, too. */
	end_server(end);
}

#define refusal_told__server tcp_echo_later

/* If a program has heard by SO_ERROR why a connection failed, the next connect() only says that it
 * did, and the one after that connects. */
static void refusal_told__client(struct tcp_end *end)
{
	int fd = nonblocking_socket(end);

	FAILS(connect(fd, &end->address.any, end->length), EINPROGRESS);
	tcp_poll(fd, POLLOUT);
	SAME(tcp_get(fd, SOL_SOCKET, SO_ERROR), ECONNREFUSED);
	FAILS(connect(fd, &end->address.any, end->length), ECONNABORTED);
	tcp_tell(end);
	tcp_await(end);
	FAILS(connect(fd, &end->address.any, end->length), EINPROGRESS);
	SAME(tcp_poll(fd, POLLOUT), POLLOUT);
	MUST(connect(fd, &end->address.any, end->length));
	FAILS(connect(fd, &end->address.any, end->length), EISCONN);
	tcp_nonblocking(fd, false);
	tcp_greet(fd);
	tcp_close(fd);
}

#define refusal_untold__server tcp_echo_later

/* If it has not, connect() says why, and the next one connects. */
static void refusal_untold__client(struct tcp_end *end)
{
	int fd = nonblocking_socket(end);

	FAILS(connect(fd, &end->address.any, end->length), EINPROGRESS);
	tcp_poll(fd, POLLOUT);
	FAILS(connect(fd, &end->address.any, end->length), ECONNREFUSED);
	tcp_tell(end);
	tcp_await(end);
	tcp_nonblocking(fd, false);
	MUST(connect(fd, &end->address.any, end->length));
	tcp_greet(fd);
	tcp_close(fd);
}

static void connect_over__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);

	FAILS(connect(fd, &end->address.any, end->length), EISCONN);
	tcp_greet(fd);
	tcp_close(fd);
}

/* A socket whose connection has ended is connected until it is told to forget that. */
static void connect_over__client(struct tcp_end *end)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	int fd = tcp_connect(end);

	tcp_greet(fd);
	tcp_expect_eof(fd);
	FAILS(connect(fd, &end->address.any, end->length), EISCONN);
	MUST(shutdown(fd, SHUT_WR));
	FAILS(connect(fd, &end->address.any, end->length), EISCONN);
	MUST(connect(fd, &none, sizeof(none)));
	FAILS(send(fd, "", 1, MSG_NOSIGNAL), EPIPE);
	tcp_close(fd);
}

static void connect_reset__server(struct tcp_end *end)
{
	struct linger at_once = { .l_onoff = 1 };
	int fd = tcp_accept_one(end);

	tcp_greet(fd);
	MUST(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)));
	tcp_close(fd);
}

/* So is one whose connection was reset. */
static void connect_reset__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	char byte;

	tcp_greet(fd);
	FAILS(recv(fd, &byte, 1, 0), ECONNRESET);
	FAILS(connect(fd, &end->address.any, end->length), EISCONN);
	tcp_close(fd);
}

#define connect_no_address__server serve_echo

/* What is no address is said to be none, whatever the socket's state is. */
static void connect_no_address__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	char large[200] = { 0 };

	memcpy(large, &end->address, end->length);
	FAILS(connect(fd, NULL, end->length), EFAULT);
	FAILS(connect(fd, &end->address.any, 1), EINVAL);
	FAILS(connect(fd, (struct sockaddr *)large, sizeof(large)), EINVAL);
	FAILS(connect(fd, &end->address.any, end->length), EISCONN);
	tcp_greet(fd);
	tcp_close(fd);
}

/* connect() to "no address" ends listening, and the socket may listen again. */
static void listener_dissolved__server(struct tcp_end *end)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	int listener = tcp_listening(end, 4);

	FAILS(connect(listener, &end->address.any, end->length), EISCONN);
	MUST(connect(listener, &none, sizeof(none)));
	FAILS(accept(listener, NULL, NULL), EINVAL);
	SAME(tcp_get(listener, SOL_SOCKET, SO_ACCEPTCONN), 0);
	MUST(listen(listener, 4));
	tcp_ready();
	tcp_echo(tcp_accept(listener));
	tcp_close(listener);
}

static void listener_dissolved__client(struct tcp_end *end)
{
	end_server(end);
}

/* A socket that has ceased to listen may connect. */
static void listener_connects__server(struct tcp_end *end)
{
	union tcp_address to = end->address;
	socklen_t length = sizeof(to);
	int listener = tcp_listening(end, 4), other = tcp_socket(end);

	to.v4.sin_port = 0;
	MUST(bind(other, &to.any, end->length));
	MUST(getsockname(other, &to.any, &length));
	MUST(shutdown(listener, SHUT_RDWR));
	FAILS(connect(listener, &to.any, end->length), ECONNREFUSED);
	tcp_close(listener);
	tcp_close(other);
	serve_echo(end);
}

static void listener_connects__client(struct tcp_end *end)
{
	end_server(end);
}

enum { AT_ONCE = 12 };

/* A second listen() makes room for more. */
static void listen_more__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 1), fds[AT_ONCE], i;

	MUST(listen(listener, 64));
	tcp_ready();
	tcp_await(end);
	for (i = 0; i < AT_ONCE; i++)
		fds[i] = tcp_accept(listener);
	for (i = 0; i < AT_ONCE; i++) {
		tcp_greet(fds[i]);
		tcp_close(fds[i]);
	}
	tcp_close(listener);
}

static void listen_more__client(struct tcp_end *end)
{
	int fds[AT_ONCE], i;

	for (i = 0; i < AT_ONCE; i++) {
		fds[i] = nonblocking_socket(end);
		FAILS(connect(fds[i], &end->address.any, end->length),
		      EINPROGRESS);
	}
	for (i = 0; i < AT_ONCE; i++) {
		SAME(tcp_poll(fds[i], POLLOUT), POLLOUT);
		SAME(tcp_get(fds[i], SOL_SOCKET, SO_ERROR), 0);
		tcp_nonblocking(fds[i], false);
	}
	tcp_tell(end);
	for (i = 0; i < AT_ONCE; i++) {
		tcp_greet(fds[i]);
		tcp_close(fds[i]);
	}
}

const struct tcp_case tcp_again_cases[] = {
	TCP_CASE(name_while_opening),
	TCP_CASE(name_while_waiting),
	TCP_CASE(refusal_told),
	TCP_CASE(refusal_untold),
	TCP_CASE(connect_over),
	TCP_CASE(connect_reset),
	TCP_CASE(connect_no_address),
	TCP_CASE(listener_dissolved),
	TCP_CASE(listener_connects),
	TCP_CASE(listen_more),
	{ 0 },
};
