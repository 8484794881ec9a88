// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Options of sockets: what is set is told again, and what they do.
 */
#include <linux/sockios.h>
#include "tcp_calls.h"

static void serve_echo(struct tcp_end *end)
{
	tcp_echo(tcp_accept_one(end));
}

static void end_echo(int fd)
{
	tcp_greet(fd);
	MUST(shutdown(fd, SHUT_WR));
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static const struct {
	int level, name, value;
} settable[] = {
	{ IPPROTO_TCP, TCP_NODELAY, 1 },
	{ IPPROTO_TCP, TCP_NODELAY, 0 },
	{ IPPROTO_TCP, TCP_CORK, 1 },
	{ IPPROTO_TCP, TCP_CORK, 0 },
	{ IPPROTO_TCP, TCP_USER_TIMEOUT, 5000 },
	{ IPPROTO_TCP, TCP_KEEPIDLE, 30 },
	{ IPPROTO_TCP, TCP_KEEPINTVL, 10 },
	{ IPPROTO_TCP, TCP_KEEPCNT, 4 },
	{ IPPROTO_TCP, TCP_QUICKACK, 1 },
	{ IPPROTO_TCP, TCP_SYNCNT, 3 },
	{ IPPROTO_TCP, TCP_LINGER2, 20 },
	{ IPPROTO_TCP, TCP_NOTSENT_LOWAT, 16384 },
	{ SOL_SOCKET, SO_KEEPALIVE, 1 },
	{ SOL_SOCKET, SO_REUSEADDR, 1 },
	{ SOL_SOCKET, SO_REUSEPORT, 1 },
	{ SOL_SOCKET, SO_OOBINLINE, 1 },
	{ SOL_SOCKET, SO_RCVLOWAT, 100 },
	{ SOL_SOCKET, SO_PRIORITY, 3 },
	{ SOL_SOCKET, SO_DONTROUTE, 0 },
	{ SOL_SOCKET, SO_TIMESTAMP, 0 },
};

static void check_settable(int fd)
{
	for (size_t i = 0; i < sizeof(settable) / sizeof(*settable); i++) {
		tcp_set(fd, settable[i].level, settable[i].name,
			settable[i].value);
		if (tcp_get(fd, settable[i].level, settable[i].name) !=
		    settable[i].value)
			WRONG("option %d of level %d is not %d", settable[i].name,
			      settable[i].level, settable[i].value);
	}
}

#define options_told__server serve_echo

/* Before and after connect(). */
static void options_told__client(struct tcp_end *end)
{
	int fd = tcp_socket(end);

	check_settable(fd);
	MUST(connect(fd, &end->address.any, end->length));
	check_settable(fd);
	tcp_set(fd, SOL_SOCKET, SO_RCVLOWAT, 1);
	end_echo(fd);
}

#define options_wrong__server serve_echo

static void options_wrong__client(struct tcp_end *end)
{
	int fd = tcp_connect(end), value = 1;
	socklen_t length = sizeof(value);

	FAILS(setsockopt(fd, IPPROTO_TCP, 9999, &value, sizeof(value)),
	      ENOPROTOOPT);
	FAILS(getsockopt(fd, IPPROTO_TCP, 9999, &value, &length), ENOPROTOOPT);
	FAILS(setsockopt(fd, SOL_SOCKET, 9999, &value, sizeof(value)),
	      ENOPROTOOPT);
	FAILS(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, 1), EINVAL);
	FAILS(setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, 1), EINVAL);
	FAILS(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, NULL, sizeof(value)),
	      EFAULT);
	value = 0;
	FAILS(setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &value, sizeof(value)),
	      EINVAL);
	FAILS(setsockopt(fd, SOL_SOCKET, SO_ERROR, &value, sizeof(value)),
	      ENOPROTOOPT);
	/* A shorter buffer gets what fits. */
	length = 1;
	tcp_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	MUST(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &length));
	SAME(length, 1);
	SAME(*(char *)&value, 1);
	end_echo(fd);
}

/* What a socket says about itself. */
static void options_identity__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4), fd;

	SAME(tcp_get(listener, SOL_SOCKET, SO_ACCEPTCONN), 1);
	tcp_ready();
	fd = tcp_accept(listener);
	SAME(tcp_get(fd, SOL_SOCKET, SO_ACCEPTCONN), 0);
	SAME(tcp_get(fd, SOL_SOCKET, SO_TYPE), SOCK_STREAM);
	SAME(tcp_get(fd, SOL_SOCKET, SO_DOMAIN), end->address.any.sa_family);
	SAME(tcp_get(fd, SOL_SOCKET, SO_PROTOCOL), IPPROTO_TCP);
	SAME(tcp_get(fd, SOL_SOCKET, SO_ERROR), 0);
	tcp_echo(fd);
}

static void options_identity__client(struct tcp_end *end)
{
	int fd = tcp_socket(end);

	SAME(tcp_get(fd, SOL_SOCKET, SO_TYPE), SOCK_STREAM);
	SAME(tcp_get(fd, SOL_SOCKET, SO_PROTOCOL), IPPROTO_TCP);
	SAME(tcp_get(fd, SOL_SOCKET, SO_ACCEPTCONN), 0);
	MUST(connect(fd, &end->address.any, end->length));
	end_echo(fd);
}

#define maxseg__server serve_echo

static void maxseg__client(struct tcp_end *end)
{
	int fd = tcp_socket(end), size;

	tcp_set(fd, IPPROTO_TCP, TCP_MAXSEG, 700);
	MUST(connect(fd, &end->address.any, end->length));
	size = tcp_get(fd, IPPROTO_TCP, TCP_MAXSEG);
	EXPECT(size >= 500);
	EXPECT(size <= 700);
	tcp_send(fd, 20000, 0);
	tcp_receive(fd, 20000, 0);
	end_echo(fd);
}

#define tcp_info__server serve_echo

static void tcp_info__client(struct tcp_end *end)
{
	struct tcp_info info = { 0 };
	socklen_t length = sizeof(info);
	int fd = tcp_socket(end);

	MUST(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length));
	SAME(info.tcpi_state, TCP_CLOSE);
	MUST(connect(fd, &end->address.any, end->length));
	tcp_greet(fd);
	length = sizeof(info);
	MUST(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length));
	EXPECT(length >= 100);
	SAME(info.tcpi_state, TCP_ESTABLISHED);
	EXPECT(info.tcpi_snd_mss >= 500);
	EXPECT(info.tcpi_snd_cwnd > 0);
	EXPECT(info.tcpi_rtt > 0);
	MUST(shutdown(fd, SHUT_WR));
	tcp_expect_eof(fd);
	tcp_close(fd);
}

#define buffer_sizes__server serve_echo

/* Linux doubles what is asked for, and a buffer keeps its size. */
static void buffer_sizes__client(struct tcp_end *end)
{
	int fd = tcp_socket(end);

	tcp_set(fd, SOL_SOCKET, SO_RCVBUF, 20000);
	tcp_set(fd, SOL_SOCKET, SO_SNDBUF, 30000);
	SAME(tcp_get(fd, SOL_SOCKET, SO_RCVBUF), 40000);
	SAME(tcp_get(fd, SOL_SOCKET, SO_SNDBUF), 60000);
	MUST(connect(fd, &end->address.any, end->length));
	SAME(tcp_get(fd, SOL_SOCKET, SO_RCVBUF), 40000);
	tcp_send(fd, 50000, 0);
	tcp_receive(fd, 50000, 0);
	end_echo(fd);
}

/* FIONREAD counts what can be read, SIOCOUTQ what the peer has not acknowledged. */
static void waiting_bytes__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), waiting = 0;

	while (waiting < 5000)
		MUST(ioctl(fd, FIONREAD, &waiting));
	SAME(waiting, 5000);
	tcp_receive(fd, 1000, 0);
	MUST(ioctl(fd, FIONREAD, &waiting));
	SAME(waiting, 4000);
	tcp_receive(fd, 4000, 1000);
	MUST(ioctl(fd, FIONREAD, &waiting));
	SAME(waiting, 0);
	tcp_tell(end);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void waiting_bytes__client(struct tcp_end *end)
{
	int fd = tcp_connect(end), waiting = 1;

	tcp_send(fd, 5000, 0);
	tcp_await(end);
	while (waiting > 0)
		MUST(ioctl(fd, SIOCOUTQ, &waiting));
	tcp_close(fd);
}

/* Bytes under a cork come when it is pulled. */
static void cork__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);

	tcp_receive(fd, 300, 0);
	tcp_send(fd, 1, 0);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void cork__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_set(fd, IPPROTO_TCP, TCP_CORK, 1);
	tcp_send(fd, 100, 0);
	tcp_send(fd, 100, 100);
	tcp_send(fd, 100, 200);
	tcp_set(fd, IPPROTO_TCP, TCP_CORK, 0);
	tcp_receive(fd, 1, 0);
	tcp_close(fd);
}

/* Below SO_RCVLOWAT a socket is not readable, and recv() waits. */
static void receive_low_water__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), waiting = 0;
	char bytes[200];

	tcp_set(fd, SOL_SOCKET, SO_RCVLOWAT, 100);
	while (waiting < 50)
		MUST(ioctl(fd, FIONREAD, &waiting));
	SAME(tcp_ask(fd, POLLIN), 0);
	tcp_tell(end);
	SAME(tcp_poll(fd, POLLIN), POLLIN);
	SAME(recv(fd, bytes, sizeof(bytes), 0), 120);
	EXPECT(tcp_filled(bytes, 120, 0));
	tcp_tell(end);
	EXPECT(tcp_poll(fd, POLLIN) & POLLIN);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void receive_low_water__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_send(fd, 50, 0);
	tcp_await(end);
	tcp_send(fd, 70, 50);
	tcp_await(end);
	tcp_close(fd);
}

static void send_until_full(int fd)
{
	static const char bytes[65536];
	ssize_t sent;

	do {
		sent = send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL);
	} while (sent > 0);
	SAME(errno, EAGAIN);
}

/* Times after which calls give up are told again, and bound recv() and send(). */
static void timeouts__server(struct tcp_end *end)
{
	struct timeval time = { .tv_sec = 2, .tv_usec = 500000 }, told = { 0 };
	int fd = tcp_accept_one(end);
	socklen_t length = sizeof(told);
	char byte;

	MUST(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)));
	MUST(getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &told, &length));
	SAME(told.tv_sec, 2);
	/* A kernel whose clock ticks 250 times a second has no finer time. */
	EXPECT(told.tv_usec >= 500000);
	EXPECT(told.tv_usec < 520000);
	time = (struct timeval){ .tv_usec = 20000 };
	MUST(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)));
	MUST(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time)));
	FAILS(recv(fd, &byte, 1, 0), EAGAIN);
	time = (struct timeval){ .tv_usec = 1000000 };
	FAILS(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)), EDOM);
	/* Less than no time is no time. */
	time = (struct timeval){ .tv_sec = -1 };
	MUST(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)));
	FAILS(recv(fd, &byte, 1, 0), EAGAIN);
	tcp_send_full(fd);
	send_until_full(fd);
	time = (struct timeval){ .tv_sec = -1 };
	MUST(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time)));
	send_until_full(fd);
	tcp_tell(end);
	time = (struct timeval){ 0 };
	MUST(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)));
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void timeouts__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_await(end);
	MUST(shutdown(fd, SHUT_WR));
	while (MUST(recv(fd, NULL, 1 << 20, MSG_TRUNC)) > 0)
		;
	tcp_close(fd);
}

#define nonblocking_ways__server serve_echo

/* O_NONBLOCK, FIONBIO and SOCK_NONBLOCK are one thing. */
static void nonblocking_ways__client(struct tcp_end *end)
{
	int fd = tcp_connect(end), on = 1;
	char byte;

	MUST(ioctl(fd, FIONBIO, &on));
	SAME(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	FAILS(recv(fd, &byte, 1, 0), EAGAIN);
	FAILS(read(fd, &byte, 1), EAGAIN);
	on = 0;
	MUST(ioctl(fd, FIONBIO, &on));
	SAME(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	tcp_nonblocking(fd, true);
	FAILS(recv(fd, &byte, 1, 0), EAGAIN);
	tcp_nonblocking(fd, false);
	end_echo(fd);
}

/* The service class goes with the connection, and congestion control has a name. */
#define network_options__server serve_echo

static void network_options__client(struct tcp_end *end)
{
	bool v6 = end->address.any.sa_family == AF_INET6;
	int level = v6 ? IPPROTO_IPV6 : IPPROTO_IP,
	    name = v6 ? IPV6_TCLASS : IP_TOS;
	int fd = tcp_connect(end);
	char text[64] = "";
	socklen_t length = sizeof(text);

	tcp_set(fd, level, name, 0x10);
	SAME(tcp_get(fd, level, name), 0x10);
	MUST(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, text, &length));
	EXPECT(*text);
	FAILS(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "nosuch", 6), ENOENT);
	end_echo(fd);
}

/* The MTU of the way to the peer, as a socket of UDP has it. */
static int way_mtu(const union tcp_address *to, socklen_t length)
{
	bool v6 = to->any.sa_family == AF_INET6;
	int fd = (int)MUST(socket(to->any.sa_family, SOCK_DGRAM, 0)), mtu;

	MUST(connect(fd, &to->any, length));
	mtu = v6 ? tcp_get(fd, IPPROTO_IPV6, IPV6_MTU) :
		   tcp_get(fd, IPPROTO_IP, IP_MTU);
	tcp_close(fd);
	return mtu;
}

/* A connection knows its path's MTU, and a socket without one does not. */
static void path_mtu_of(const struct tcp_end *end, int fd)
{
	bool v6 = end->address.any.sa_family == AF_INET6;
	union tcp_address peer;
	socklen_t length = sizeof(peer);
	int level = v6 ? IPPROTO_IPV6 : IPPROTO_IP, name = v6 ? IPV6_MTU : IP_MTU;
	unsigned char byte;

	MUST(getpeername(fd, &peer.any, &length));
	SAME(tcp_get(fd, level, name), way_mtu(&peer, length));
	length = 0;
	MUST(getsockopt(fd, level, name, &byte, &length));
	SAME(length, 0);
}

static void path_mtu__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);

	path_mtu_of(end, fd);
	tcp_echo(fd);
}

static void path_mtu__client(struct tcp_end *end)
{
	int fd = tcp_socket(end), mtu;
	socklen_t length = sizeof(mtu);

	FAILS(getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &length), ENOTCONN);
	MUST(connect(fd, &end->address.any, end->length));
	path_mtu_of(end, fd);
	end_echo(fd);
}

static void peek_offset__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);

	tcp_send(fd, 100, 0);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

/* Look at @length bytes, which are those from @position of the stream on; then SO_PEEK_OFF is
 * @after. */
static void peek(int fd, size_t length, size_t position, int after)
{
	char bytes[100];

	SAME(recv(fd, bytes, length, MSG_PEEK), (long long)length);
	EXPECT(tcp_filled(bytes, length, position));
	SAME(tcp_get(fd, SOL_SOCKET, SO_PEEK_OFF), after);
}

static void peek_about(int fd)
{
	char bytes[500];

	peek(fd, 100, 0, 100);
	FAILS(recv(fd, bytes, 1, MSG_PEEK | MSG_DONTWAIT), EAGAIN);
	tcp_set(fd, SOL_SOCKET, SO_PEEK_OFF, 10);
	peek(fd, 20, 10, 30);
	peek(fd, 20, 30, 50);
	/* What is read comes off. */
	tcp_receive(fd, 15, 0);
	SAME(tcp_get(fd, SOL_SOCKET, SO_PEEK_OFF), 35);
	SAME(recv(fd, bytes, 0, 0), 0);
	SAME(tcp_get(fd, SOL_SOCKET, SO_PEEK_OFF), 35);
	peek(fd, 5, 50, 40);
	SAME(recv(fd, bytes, sizeof(bytes), MSG_PEEK | MSG_TRUNC), 45);
	SAME(tcp_get(fd, SOL_SOCKET, SO_PEEK_OFF), 85);
	tcp_set(fd, SOL_SOCKET, SO_PEEK_OFF, -1);
	peek(fd, 5, 15, -1);
	peek(fd, 5, 15, -1);
	tcp_receive(fd, 85, 15);
}

/* SO_PEEK_OFF, which Linux has for TCP since 6.9. */
static void peek_offset__client(struct tcp_end *end)
{
	int fd = tcp_connect(end), begin = 0;
	char bytes[100];

	SAME(recv(fd, bytes, 100, MSG_PEEK | MSG_WAITALL), 100);
	if (setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &begin, sizeof(begin))) {
		SAME(errno, EOPNOTSUPP);
		tcp_receive(fd, 100, 0);
	} else {
		peek_about(fd);
	}
	MUST(shutdown(fd, SHUT_WR));
	tcp_expect_eof(fd);
	tcp_close(fd);
}

const struct tcp_case tcp_option_cases[] = {
	TCP_CASE(options_told),
	TCP_CASE(options_wrong),
	TCP_CASE(options_identity),
	TCP_CASE(maxseg),
	TCP_CASE(tcp_info),
	TCP_CASE(buffer_sizes),
	TCP_CASE(waiting_bytes),
	TCP_CASE(cork),
	TCP_CASE(receive_low_water),
	TCP_CASE(timeouts),
	TCP_CASE(nonblocking_ways),
	TCP_CASE(network_options),
	TCP_CASE(path_mtu),
	TCP_CASE(peek_offset),
	{ 0 },
};
