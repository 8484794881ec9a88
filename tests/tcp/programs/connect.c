// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Opening a connection: blocking and not, refused, twice, and what the names of sockets are.
 */
#include <ifaddrs.h>
#include <net/if.h>
#include "tcp_calls.h"

static void echo_one(struct tcp_end *end)
{
	tcp_echo(tcp_accept_one(end));
}

#define echo__server echo_one

static void echo__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_send(fd, 1000, 0);
	tcp_receive(fd, 1000, 0);
	MUST(shutdown(fd, SHUT_WR));
	tcp_expect_eof(fd);
	tcp_close(fd);
}

/* A port that is bound but does not listen refuses, each time. */
static void connect_refused__server(struct tcp_end *end)
{
	int fd = tcp_bound(end);

	tcp_ready();
	tcp_await(end);
	tcp_close(fd);
}

static void connect_refused__client(struct tcp_end *end)
{
	int fd = tcp_socket(end);

	FAILS(connect(fd, &end->address.any, end->length), ECONNREFUSED);
	FAILS(connect(fd, &end->address.any, end->length), ECONNREFUSED);
	SAME(tcp_get(fd, SOL_SOCKET, SO_ERROR), 0);
	tcp_close(fd);
	tcp_tell(end);
}

/* The same socket connects once somebody listens. */
static void connect_after_refusal__server(struct tcp_end *end)
{
	tcp_echo_later(end);
}

static void connect_after_refusal__client(struct tcp_end *end)
{
	int fd = tcp_socket(end);

	FAILS(connect(fd, &end->address.any, end->length), ECONNREFUSED);
	tcp_tell(end);
	tcp_await(end);
	MUST(connect(fd, &end->address.any, end->length));
	tcp_greet(fd);
	tcp_close(fd);
}

#define connect_nonblocking__server echo_one

static void connect_nonblocking__client(struct tcp_end *end)
{
	int fd = (int)MUST(socket(end->address.any.sa_family,
				  SOCK_STREAM | SOCK_NONBLOCK, 0));

	FAILS(connect(fd, &end->address.any, end->length), EINPROGRESS);
	SAME(tcp_poll(fd, POLLOUT), POLLOUT);
	SAME(tcp_get(fd, SOL_SOCKET, SO_ERROR), 0);
	/* The next call tells of the success, the one after that of the connection. */
	MUST(connect(fd, &end->address.any, end->length));
	FAILS(connect(fd, &end->address.any, end->length), EISCONN);
	tcp_nonblocking(fd, false);
	tcp_greet(fd);
	tcp_close(fd);
}

#define connect_nonblocking_epoll__server echo_one

static void connect_nonblocking_epoll__client(struct tcp_end *end)
{
	struct epoll_event event = { .events = EPOLLOUT | EPOLLIN | EPOLLET,
				     .data.u64 = 77 };
	int fd = (int)MUST(socket(end->address.any.sa_family,
				  SOCK_STREAM | SOCK_NONBLOCK, 0));
	int set = (int)MUST(epoll_create1(0));

	FAILS(connect(fd, &end->address.any, end->length), EINPROGRESS);
	MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
	SAME(epoll_wait(set, &event, 1, TCP_PATIENCE), 1);
	SAME(event.events, EPOLLOUT);
	SAME(event.data.u64, 77);
	SAME(tcp_get(fd, SOL_SOCKET, SO_ERROR), 0);
	tcp_close(set);
	tcp_nonblocking(fd, false);
	tcp_greet(fd);
	tcp_close(fd);
}

#define connect_nonblocking_refused__server connect_refused__server

static void connect_nonblocking_refused__client(struct tcp_end *end)
{
	int fd = (int)MUST(socket(end->address.any.sa_family,
				  SOCK_STREAM | SOCK_NONBLOCK, 0));

	FAILS(connect(fd, &end->address.any, end->length), EINPROGRESS);
	SAME(tcp_poll(fd, POLLOUT) & (POLLOUT | POLLERR | POLLHUP),
	     POLLOUT | POLLERR | POLLHUP);
	SAME(tcp_get(fd, SOL_SOCKET, SO_ERROR), ECONNREFUSED);
	SAME(tcp_get(fd, SOL_SOCKET, SO_ERROR), 0);
	tcp_close(fd);
	tcp_tell(end);
}

#define connect_twice__server echo_one

static void connect_twice__client(struct tcp_end *end)
{
	union tcp_address any = { .any.sa_family = end->address.any.sa_family };
	int fd = tcp_connect(end);

	FAILS(connect(fd, &end->address.any, end->length), EISCONN);
	FAILS(listen(fd, 1), EINVAL);
	FAILS(bind(fd, &any.any, end->length), EINVAL);
	FAILS(accept(fd, NULL, NULL), EINVAL);
	tcp_greet(fd);
	tcp_close(fd);
}

/* Who chose a port before connecting comes from that port. */
static void connect_bound__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4);
	union tcp_address from;
	socklen_t length = sizeof(from);
	in_port_t port;
	int fd;

	tcp_ready();
	fd = (int)MUST(accept(listener, &from.any, &length));
	SAME(recv(fd, &port, sizeof(port), MSG_WAITALL), sizeof(port));
	SAME(from.v4.sin_port, port);
	tcp_close(fd);
}

static void connect_bound__client(struct tcp_end *end)
{
	union tcp_address own = { .any.sa_family = end->address.any.sa_family };
	union tcp_address after;
	socklen_t length = sizeof(own);
	int fd = tcp_socket(end);

	MUST(bind(fd, &own.any, end->length));
	MUST(getsockname(fd, &own.any, &length));
	EXPECT(own.v4.sin_port != 0);
	MUST(connect(fd, &end->address.any, end->length));
	length = sizeof(after);
	MUST(getsockname(fd, &after.any, &length));
	SAME(after.v4.sin_port, own.v4.sin_port);
	SAME(send(fd, &own.v4.sin_port, sizeof(in_port_t), 0), sizeof(in_port_t));
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static bool same_address(const union tcp_address *a, const union tcp_address *b)
{
	if (a->any.sa_family != b->any.sa_family ||
	    a->v4.sin_port != b->v4.sin_port)
		return false;
	if (a->any.sa_family == AF_INET)
		return a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
	return !memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr,
		       sizeof(a->v6.sin6_addr));
}

/* Each end tells the other what it takes the two addresses for. */
static void exchange_names(const struct tcp_end *end, int fd)
{
	union tcp_address own, peer, told;
	socklen_t length = sizeof(own);

	memset(&own, 0, sizeof(own));
	memset(&peer, 0, sizeof(peer));
	MUST(getsockname(fd, &own.any, &length));
	SAME(length, end->length);
	length = sizeof(peer);
	MUST(getpeername(fd, &peer.any, &length));
	SAME(length, end->length);
	SAME(send(fd, &own, sizeof(own), 0), sizeof(own));
	SAME(recv(fd, &told, sizeof(told), MSG_WAITALL), sizeof(told));
	EXPECT(same_address(&told, &peer));
	EXPECT(same_address(&end->address, end->server ? &own : &peer));
}

static void names__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4);
	union tcp_address from, peer;
	socklen_t length = sizeof(from);
	int fd;

	FAILS(getpeername(listener, &peer.any, &length), ENOTCONN);
	MUST(getsockname(listener, &from.any, &length));
	EXPECT(same_address(&from, &end->address));
	tcp_ready();
	length = sizeof(from);
	fd = (int)MUST(accept(listener, &from.any, &length));
	SAME(length, end->length);
	MUST(getpeername(fd, &peer.any, &length));
	EXPECT(same_address(&from, &peer));
	exchange_names(end, fd);
	/* Too short a buffer takes what fits, and the whole length is told. */
	length = 2;
	memset(&peer, 0, sizeof(peer));
	MUST(getpeername(fd, &peer.any, &length));
	SAME(length, end->length);
	SAME(peer.any.sa_family, end->address.any.sa_family);
	SAME(peer.v4.sin_port, 0);
	tcp_close(fd);
}

static void names__client(struct tcp_end *end)
{
	union tcp_address peer;
	socklen_t length = sizeof(peer);
	int fd = tcp_socket(end);

	FAILS(getpeername(fd, &peer.any, &length), ENOTCONN);
	MUST(connect(fd, &end->address.any, end->length));
	exchange_names(end, fd);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

/* Calls on sockets that have no peer; nothing is sent. */
static void not_connected__server(struct tcp_end *end)
{
	int fd = tcp_socket(end);
	char byte = 0;

	FAILS(recv(fd, &byte, 1, 0), ENOTCONN);
	FAILS(send(fd, &byte, 1, MSG_NOSIGNAL), EPIPE);
	FAILS(shutdown(fd, SHUT_WR), ENOTCONN);
	FAILS(accept(fd, NULL, NULL), EINVAL);
	SAME(tcp_ask(fd, POLLIN | POLLOUT), POLLOUT | POLLHUP);
	tcp_close(fd);
	tcp_ready();
}

static void not_connected__client(struct tcp_end *end)
{
	int fd = tcp_socket(end);
	char bytes[8];

	FAILS(connect(fd, &end->address.any, 1), EINVAL);
	FAILS(read(fd, bytes, sizeof(bytes)), ENOTCONN);
	tcp_close(fd);
	FAILS(connect(fd, &end->address.any, end->length), EBADF);
	FAILS(send(fd, bytes, 1, 0), EBADF);
}

/* A listener does not connect, and its address is taken. */
static void listener_is_no_connection__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4);
	int other = tcp_socket(end);
	char byte = 0;

	FAILS(connect(listener, &end->address.any, end->length), EISCONN);
	FAILS(recv(listener, &byte, 1, 0), ENOTCONN);
	FAILS(send(listener, &byte, 1, MSG_NOSIGNAL), EPIPE);
	FAILS(bind(other, &end->address.any, end->length), EADDRINUSE);
	tcp_close(other);
	MUST(listen(listener, 8));
	tcp_ready();
	tcp_echo(tcp_accept(listener));
}

#define listener_is_no_connection__client echo__client

/* connect() to "no address" forgets a connection, and the socket connects anew. */
static void connect_anew__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4);
	char byte;
	int fd;

	tcp_ready();
	fd = tcp_accept(listener);
	tcp_greet(fd);
	FAILS(recv(fd, &byte, 1, 0), ECONNRESET);
	tcp_close(fd);
	tcp_echo(tcp_accept(listener));
}

static void connect_anew__client(struct tcp_end *end)
{
	struct sockaddr nobody = { .sa_family = AF_UNSPEC };
	int fd = tcp_connect(end);

	tcp_greet(fd);
	MUST(connect(fd, &nobody, sizeof(nobody)));
	MUST(connect(fd, &end->address.any, end->length));
	tcp_greet(fd);
	tcp_close(fd);
}

/* bind() may choose an address and leave the port to connect(). */
static void connect_from_address__server(struct tcp_end *end)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = end->address.v4.sin_port };
	struct sockaddr_in from = { .sin_family = AF_INET,
				    .sin_addr = { htonl(0x7f000002) } },
			   peer;
	int listener = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
	int fd = (int)MUST(socket(AF_INET, SOCK_STREAM, 0)), other;
	socklen_t length = sizeof(peer);

	tcp_set(listener, SOL_SOCKET, SO_REUSEADDR, 1);
	MUST(bind(listener, (struct sockaddr *)&to, sizeof(to)));
	MUST(listen(listener, 4));
	tcp_set(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
	MUST(bind(fd, (struct sockaddr *)&from, sizeof(from)));
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	MUST(connect(fd, (struct sockaddr *)&to, sizeof(to)));
	other = (int)MUST(accept(listener, (struct sockaddr *)&peer, &length));
	SAME(peer.sin_addr.s_addr, from.sin_addr.s_addr);
	length = sizeof(peer);
	MUST(getsockname(fd, (struct sockaddr *)&peer, &length));
	SAME(peer.sin_addr.s_addr, from.sin_addr.s_addr);
	tcp_close(fd);
	tcp_close(other);
	tcp_close(listener);
	tcp_echo(tcp_accept_one(end));
}

static void connect_from_address__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_greet(fd);
	tcp_close(fd);
}

/* A socket of IPv6 alone reaches no address of IPv4, in whatever form. */
#define connect_v6_only__server echo__server

static void connect_v6_only__client(struct tcp_end *end)
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6,
				   .sin6_port = end->address.v4.sin_port };
	int fd = (int)MUST(socket(AF_INET6, SOCK_STREAM, 0));

	to.sin6_addr.s6_addr[10] = to.sin6_addr.s6_addr[11] = 0xff;
	if (end->address.any.sa_family == AF_INET)
		memcpy(to.sin6_addr.s6_addr + 12, &end->address.v4.sin_addr, 4);
	else
		to.sin6_addr.s6_addr[12] = 127;
	tcp_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	FAILS(connect(fd, (struct sockaddr *)&to, sizeof(to)), ENETUNREACH);
	tcp_close(fd);
	fd = tcp_connect(end);
	tcp_greet(fd);
	tcp_close(fd);
}

struct opening {
	const struct tcp_end *end;
	int fd, error;
	pid_t thread;
};

/* Connect to an address that nobody has. */
static void *open_one(void *argument)
{
	struct opening *o = argument;
	union tcp_address nobody = o->end->address;

	if (nobody.any.sa_family == AF_INET)
		nobody.v4.sin_addr.s_addr ^= htonl(0x40);
	else
		nobody.v6.sin6_addr.s6_addr[15] ^= 0x40;
	o->thread = gettid();
	o->error = connect(o->fd, &nobody.any, o->end->length) ? errno : 0;
	return NULL;
}

/* A thread waits in connect(), which shutdown() ends; then the socket connects to the server. */
static void shut_down_waiting(struct tcp_end *end, struct opening *o)
{
	pthread_t thread;

	o->thread = 0;
	SAME(pthread_create(&thread, NULL, open_one, o), 0);
	while (!__atomic_load_n(&o->thread, __ATOMIC_RELAXED))
		usleep(1000);
	tcp_await_sleep(o->thread);
	MUST(shutdown(o->fd, SHUT_WR));
	SAME(pthread_join(thread, NULL), 0);
	SAME(o->error, ECONNRESET);
	MUST(connect(o->fd, &end->address.any, end->length));
	tcp_greet(o->fd);
	tcp_close(o->fd);
}

#define connect_shut_down__server echo__server

/* shutdown() ends a connect() that waits. */
static void connect_shut_down__client(struct tcp_end *end)
{
	struct opening o = { .end = end, .fd = tcp_socket(end) };

	shut_down_waiting(end, &o);
}

#define connect_again_waits__server echo__server

/* connect() waits for a connection that is being opened already, if the socket may wait by now: so
 * does one that is called again after a signal. */
static void connect_again_waits__client(struct tcp_end *end)
{
	struct opening o = { .end = end, .fd = tcp_socket(end) };

	tcp_nonblocking(o.fd, true);
	open_one(&o);
	SAME(o.error, EINPROGRESS);
	open_one(&o);
	SAME(o.error, EALREADY);
	tcp_nonblocking(o.fd, false);
	shut_down_waiting(end, &o);
}

/* The first device but the loopback one, and this host's link-local address there. */
static void link_of(struct sockaddr_in6 *own)
{
	struct ifaddrs *all, *one;

	MUST(getifaddrs(&all));
	for (one = all; one; one = one->ifa_next) {
		if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET6)
			continue;
		memcpy(own, one->ifa_addr, sizeof(*own));
		if (IN6_IS_ADDR_LINKLOCAL(&own->sin6_addr) &&
		    strcmp(one->ifa_name, "lo") != 0)
			break;
	}
	EXPECT(one);
	own->sin6_scope_id = if_nametoindex(one->ifa_name);
	freeifaddrs(all);
}

/* Names of link-local addresses say at which device. */
static void connect_link_local__server(struct tcp_end *end)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6,
				   .sin6_port = end->address.v4.sin_port };
	struct sockaddr_in6 own, peer;
	int listener = (int)MUST(socket(AF_INET6, SOCK_STREAM, 0)), fd;
	socklen_t length = sizeof(peer);

	link_of(&own);
	tcp_set(listener, SOL_SOCKET, SO_REUSEADDR, 1);
	MUST(bind(listener, (struct sockaddr *)&at, sizeof(at)));
	MUST(listen(listener, 4));
	tcp_ready();
	tcp_tell(end);
	SAME(write(end->sync, &own.sin6_addr, 16), 16);
	fd = (int)MUST(accept(listener, (struct sockaddr *)&peer, &length));
	EXPECT(IN6_IS_ADDR_LINKLOCAL(&peer.sin6_addr));
	SAME(peer.sin6_scope_id, own.sin6_scope_id);
	tcp_greet(fd);
	tcp_close(fd);
	tcp_close(listener);
}

static void connect_link_local__client(struct tcp_end *end)
{
	struct sockaddr_in6 to, name;
	int fd = (int)MUST(socket(AF_INET6, SOCK_STREAM, 0));
	socklen_t length = sizeof(name);

	link_of(&to);
	to.sin6_port = end->address.v4.sin_port;
	tcp_await(end);
	SAME(read(end->sync, &to.sin6_addr, 16), 16);
	MUST(connect(fd, (struct sockaddr *)&to, sizeof(to)));
	MUST(getsockname(fd, (struct sockaddr *)&name, &length));
	SAME(name.sin6_scope_id, to.sin6_scope_id);
	MUST(getpeername(fd, (struct sockaddr *)&name, &length));
	SAME(name.sin6_scope_id, to.sin6_scope_id);
	tcp_greet(fd);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

const struct tcp_case tcp_connect_cases[] = {
	TCP_CASE(echo),
	TCP_CASE(connect_refused),
	TCP_CASE(connect_after_refusal),
	TCP_CASE(connect_nonblocking),
	TCP_CASE(connect_nonblocking_epoll),
	TCP_CASE(connect_nonblocking_refused),
	TCP_CASE(connect_twice),
	TCP_CASE(connect_bound),
	TCP_CASE(connect_anew),
	TCP_CASE(connect_from_address),
	TCP_CASE(connect_v6_only),
	TCP_CASE(connect_shut_down),
	TCP_CASE(connect_again_waits),
	TCP_CASE(connect_link_local),
	TCP_CASE(names),
	TCP_CASE(not_connected),
	TCP_CASE(listener_is_no_connection),
	{ 0 },
};
