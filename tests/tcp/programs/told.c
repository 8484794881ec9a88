// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What a connection tells of itself in the course of its life: its state, its peer, bytes that
 * wait; and what it says to numbers that make no sense.
 */
#include <time.h>
#include <linux/errqueue.h>
#include <linux/sockios.h>
#include <sys/select.h>
#include "tcp_calls.h"

static int state_of(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t length = sizeof(info);

	MUST(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length));
	return info.tcpi_state;
}

static void await_state(int fd, int state)
{
	for (int i = 0; state_of(fd) != state && i < TCP_PATIENCE; i++)
		usleep(1000);
	SAME(state_of(fd), state);
}

static int peer_of(int fd)
{
	union tcp_address name;
	socklen_t length = sizeof(name);

	return getpeername(fd, &name.any, &length);
}

/* The states of who ends first, and of who ends last. */
static void states__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4), fd;

	SAME(state_of(listener), TCP_LISTEN);
	FAILS(peer_of(listener), ENOTCONN);
	tcp_ready();
	fd = tcp_accept(listener);
	SAME(state_of(fd), TCP_ESTABLISHED);
	tcp_await(end);
	MUST(shutdown(fd, SHUT_WR));
	await_state(fd, TCP_FIN_WAIT2);
	SAME(peer_of(fd), 0);
	MUST(shutdown(fd, SHUT_WR));
	tcp_tell(end);
	tcp_expect_eof(fd);
	await_state(fd, TCP_CLOSE);
	FAILS(peer_of(fd), ENOTCONN);
	FAILS(shutdown(fd, SHUT_WR), ENOTCONN);
	tcp_close(fd);
	tcp_tell(end);
	/* The next one is reset. */
	fd = tcp_accept(listener);
	tcp_await(end);
	SAME(peer_of(fd), 0);
	tcp_tell(end);
	SAME(tcp_poll(fd, POLLIN) & POLLERR, POLLERR);
	SAME(state_of(fd), TCP_CLOSE);
	FAILS(peer_of(fd), ENOTCONN);
	FAILS(shutdown(fd, SHUT_RDWR), ENOTCONN);
	SAME(tcp_get(fd, SOL_SOCKET, SO_ERROR), ECONNRESET);
	tcp_close(fd);
	tcp_close(listener);
}

static void states__client(struct tcp_end *end)
{
	struct linger now = { .l_onoff = 1 };
	int fd = tcp_socket(end);

	SAME(state_of(fd), TCP_CLOSE);
	FAILS(peer_of(fd), ENOTCONN);
	MUST(connect(fd, &end->address.any, end->length));
	SAME(state_of(fd), TCP_ESTABLISHED);
	tcp_tell(end);
	tcp_await(end);
	await_state(fd, TCP_CLOSE_WAIT);
	SAME(peer_of(fd), 0);
	MUST(shutdown(fd, SHUT_WR));
	tcp_await(end);
	await_state(fd, TCP_CLOSE);
	FAILS(peer_of(fd), ENOTCONN);
	tcp_close(fd);
	fd = tcp_connect(end);
	MUST(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)));
	tcp_tell(end);
	tcp_await(end);
	tcp_close(fd);
}

static void state_of_begin__server(struct tcp_end *end)
{
	tcp_echo(tcp_accept_one(end));
}

/* A host that does not answer is asked for a while. */
static void state_of_begin__client(struct tcp_end *end)
{
	union tcp_address nobody = end->address;
	int fd = tcp_connect(end), other = tcp_socket(end), waiting = 1;
	unsigned char *last = nobody.any.sa_family == AF_INET ?
				      (unsigned char *)&nobody.v4.sin_addr + 3 :
				      nobody.v6.sin6_addr.s6_addr + 15;

	*last = 77;
	tcp_nonblocking(other, true);
	FAILS(connect(other, &nobody.any, end->length), EINPROGRESS);
	SAME(state_of(other), TCP_SYN_SENT);
	FAILS(peer_of(other), ENOTCONN);
	MUST(ioctl(other, SIOCOUTQ, &waiting));
	SAME(waiting, 0);
	tcp_close(other);
	tcp_greet(fd);
	tcp_close(fd);
}

/* SIOCOUTQ counts the bytes that the peer does not have. */
static void unsent_bytes__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4), fd, waiting = 1;

	FAILS(ioctl(listener, SIOCOUTQ, &waiting), EINVAL);
	FAILS(ioctl(listener, FIONREAD, &waiting), EINVAL);
	tcp_ready();
	fd = tcp_accept(listener);
	tcp_await(end);
	while (MUST(recv(fd, NULL, 1 << 20, MSG_TRUNC)) > 0)
		;
	tcp_tell(end);
	tcp_close(fd);
	tcp_close(listener);
}

static void unsent_bytes__client(struct tcp_end *end)
{
	int fd = tcp_connect(end), waiting = 1;
	size_t sent;

	MUST(ioctl(fd, SIOCOUTQ, &waiting));
	SAME(waiting, 0);
	sent = tcp_send_full(fd);
	MUST(ioctl(fd, SIOCOUTQ, &waiting));
	EXPECT(waiting > 0);
	EXPECT((size_t)waiting <= sent);
	MUST(ioctl(fd, SIOCOUTQNSD, &waiting));
	EXPECT(waiting >= 0);
	EXPECT((size_t)waiting <= sent);
	tcp_tell(end);
	MUST(shutdown(fd, SHUT_WR));
	tcp_await(end);
	do
		MUST(ioctl(fd, SIOCOUTQ, &waiting));
	while (waiting > 0);
	SAME(waiting, 0);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

/* ---- lengths and times below zero ---- */

static void lengths_wrong__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4), fd;
	struct sockaddr_in6 name;
	socklen_t length = (socklen_t)-1;

	tcp_ready();
	FAILS(accept(listener, (struct sockaddr *)&name, &length), EINVAL);
	fd = tcp_accept(listener);
	tcp_echo(fd);
	tcp_close(listener);
}

static void lengths_wrong__client(struct tcp_end *end)
{
	/* The server fails to accept this one, and it ends. */
	int first = tcp_connect(end), fd = tcp_connect(end), value = 1;
	static volatile socklen_t below = (socklen_t)-1;
	struct sockaddr_in6 name;
	struct tcp_info info;
	socklen_t length = below;
	char byte;

	tcp_expect_eof(first);
	FAILS(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, below), EINVAL);
	FAILS(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &value, below), EINVAL);
	FAILS(getsockopt(fd, SOL_SOCKET, SO_ERROR, &value, &length), EINVAL);
	FAILS(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length), EINVAL);
	FAILS(getpeername(fd, (struct sockaddr *)&name, &length), EINVAL);
	FAILS(getsockname(fd, (struct sockaddr *)&name, &length), EINVAL);
	SAME(length, below);
	value = -1;
	MUST(setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &value, sizeof(value)));
	value = 1;
	tcp_set(fd, SOL_SOCKET, SO_RCVLOWAT, 1);
	/* A length without an address is not looked at, nor is one after a failure. */
	FAILS(recvfrom(fd, &byte, 1, MSG_DONTWAIT, (struct sockaddr *)&name,
		       &length),
	      EAGAIN);
	SAME(length, below);
	tcp_send(fd, 3, 7);
	SAME(recvfrom(fd, &byte, 1, 0, NULL, &length), 1);
	SAME(length, below);
	FAILS(recvfrom(fd, &byte, 1, 0, (struct sockaddr *)&name, &length),
	      EINVAL);
	length = sizeof(name);
	SAME(recvfrom(fd, &byte, 1, 0, (struct sockaddr *)&name, &length), 1);
	SAME(length, 0);
	tcp_close(first);
	tcp_close(fd);
}

static void times_wrong__server(struct tcp_end *end)
{
	tcp_echo(tcp_accept_one(end));
}

static void times_wrong__client(struct tcp_end *end)
{
	static struct timespec wrong[] = { { -1, 0 },
					   { 0, -1 },
					   { 0, 1000000000 } };
	int fd = tcp_connect(end), set = (int)MUST(epoll_create1(0));
	struct pollfd entry = { .fd = fd, .events = POLLIN };
	struct timeval time = { .tv_usec = -1 };
	struct epoll_event event = { .events = EPOLLIN };
	struct mmsghdr message = { 0 };
	fd_set in;

	MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
	FD_ZERO(&in);
	FD_SET(fd, &in);
	for (int i = 0; i < 3; i++) {
		FAILS(ppoll(&entry, 1, &wrong[i], NULL), EINVAL);
		FAILS(pselect(fd + 1, &in, NULL, NULL, &wrong[i], NULL), EINVAL);
		FAILS(epoll_pwait2(set, &event, 1, &wrong[i], NULL), EINVAL);
		FAILS(recvmmsg(fd, &message, 1, 0, &wrong[i]), EINVAL);
	}
	FAILS(select(fd + 1, &in, NULL, NULL, &time), EINVAL);
	FAILS(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)), EDOM);
	FAILS(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time)), EDOM);
	SAME(poll(&entry, 1, 0), 0);
	tcp_greet(fd);
	/* More than there is time. */
	tcp_send(fd, 1, 0);
	wrong[0] = (struct timespec){ .tv_sec = INT64_MAX };
	SAME(ppoll(&entry, 1, &wrong[0], NULL), 1);
	SAME(epoll_pwait2(set, &event, 1, &wrong[0], NULL), 1);
	tcp_receive(fd, 1, 0);
	tcp_close(set);
	tcp_close(fd);
}

/* ---- short times ---- */

#define epoll_short__server times_wrong__server

/* A set with a socket in it waits for as long as it is told and not for a millisecond. That may
 * last longer on a busy machine, but not each time. */
static void epoll_short__client(struct tcp_end *end)
{
	const struct timespec tenth = { .tv_nsec = 100000 };
	int fd = tcp_connect(end), set = (int)MUST(epoll_create1(0));
	struct epoll_event event = { .events = EPOLLIN };
	struct timespec before, after;
	long shortest = 1000000000, ns;

	MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
	for (int i = 0; i < 2000 && shortest > 900000; i++) {
		clock_gettime(CLOCK_MONOTONIC, &before);
		SAME(epoll_pwait2(set, &event, 1, &tenth, NULL), 0);
		clock_gettime(CLOCK_MONOTONIC, &after);
		ns = (after.tv_sec - before.tv_sec) * 1000000000 +
		     after.tv_nsec - before.tv_nsec;
		shortest = ns < shortest ? ns : shortest;
	}
	EXPECT(shortest >= 100000);
	EXPECT(shortest <= 900000);
	tcp_greet(fd);
	tcp_close(set);
	tcp_close(fd);
}

/* ---- descriptors ---- */

static void copies_wrong__server(struct tcp_end *end)
{
	tcp_echo(tcp_accept_one(end));
}

static void copies_wrong__client(struct tcp_end *end)
{
	int fd = tcp_connect(end), other = (int)MUST(open("/dev/null", O_RDONLY));
	static volatile int large = 1 << 30, below = -1;
	char byte;

	FAILS(dup2(fd, below), EBADF);
	FAILS(dup2(fd, large), EBADF);
	FAILS(dup2(below, fd), EBADF);
	FAILS(dup2(999, fd), EBADF);
	SAME(dup2(fd, fd), fd);
	FAILS(dup3(fd, below, 0), EBADF);
	FAILS(dup3(fd, fd, 0), EINVAL);
	FAILS(dup3(fd, other, O_NONBLOCK), EINVAL);
	FAILS(fcntl(fd, F_DUPFD, below), EINVAL);
	FAILS(fcntl(fd, F_DUPFD, large), EINVAL);
	FAILS(fcntl(fd, F_DUPFD_CLOEXEC, below), EINVAL);
	tcp_greet(fd);
	/* Nothing was lost: the last one ends the connection. */
	SAME(dup2(other, fd), fd);
	SAME(read(fd, &byte, 1), 0);
	tcp_close(other);
	tcp_close(fd);
}

/* ---- without copies, and out of turn ---- */

#define PIECE 100000

/* Either the queue of errors tells when the bytes may be used again, or there is no such thing. */
static void send_in_place(int fd, size_t position)
{
	static char bytes[PIECE];
	union {
		char room[128];
		struct cmsghdr align;
	} control;
	struct msghdr message = { .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	struct sock_extended_err *told;
	int on = 1;

	tcp_fill(bytes, sizeof(bytes), position);
	if (setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof(on))) {
		SAME(errno, EOPNOTSUPP);
		SAME(tcp_get(fd, SOL_SOCKET, SO_ZEROCOPY), 0);
		tcp_send(fd, sizeof(bytes), position);
		return;
	}
	SAME(tcp_get(fd, SOL_SOCKET, SO_ZEROCOPY), 1);
	SAME(send(fd, bytes, sizeof(bytes), MSG_ZEROCOPY), sizeof(bytes));
	for (int i = 0; recvmsg(fd, &message, MSG_ERRQUEUE) < 0; i++) {
		SAME(errno, EAGAIN);
		EXPECT(i < TCP_PATIENCE);
		usleep(1000);
	}
	EXPECT(CMSG_FIRSTHDR(&message));
	told = (struct sock_extended_err *)CMSG_DATA(CMSG_FIRSTHDR(&message));
	SAME(told->ee_origin, SO_EE_ORIGIN_ZEROCOPY);
}

static void zero_copy__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);

	send_in_place(fd, 0);
	tcp_receive(fd, PIECE, 0);
	tcp_receive(fd, PIECE, PIECE);
	tcp_close(fd);
}

static void zero_copy__client(struct tcp_end *end)
{
	int fd = tcp_socket(end), on = 1;

	/* Before there is a connection it is always possible. */
	MUST(setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof(on)));
	MUST(connect(fd, &end->address.any, end->length));
	send_in_place(fd, 0);
	tcp_receive(fd, PIECE, 0);
	send_in_place(fd, PIECE);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

/* A byte out of turn is not among the others. */
static void out_of_turn__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	char byte;

	FAILS(recv(fd, &byte, 1, MSG_OOB), EINVAL);
	tcp_tell(end);
	tcp_receive(fd, 20, 0);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void out_of_turn__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_await(end);
	tcp_send(fd, 10, 0);
	SAME(send(fd, "!", 1, MSG_OOB), 1);
	tcp_send(fd, 10, 10);
	tcp_close(fd);
}

const struct tcp_case tcp_told_cases[] = {
	TCP_CASE(states),	TCP_CASE(state_of_begin),
	TCP_CASE(unsent_bytes), TCP_CASE(lengths_wrong),
	TCP_CASE(times_wrong),	TCP_CASE(epoll_short),
	TCP_CASE(copies_wrong), TCP_CASE(zero_copy),
	TCP_CASE(out_of_turn),	{ 0 },
};
