// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A client that waits for its responses in each of the ways in which a socket can have
 * its network card polled (SO_BUSY_POLL):
 *
 *	busy HOW IP PORT USECS		prints the socket's SO_INCOMING_NAPI_ID
 *
 * HOW: wait (recvmsg() that waits), private (the same, for one RPC by its id), once
 * (recvmsg() that must not wait, again and again), poll and epoll (recvmsg() that must
 * not wait, when the socket is readable). USECS is given to SO_BUSY_POLL; -1: it is left
 * as it is. The server echoes.
 */
#include <sched.h>
#include <sys/epoll.h>
#include "guest.h"

#define RPCS 50
#define SIZE 8

static int epoll_fd = -1;

static void wait_readable(const struct sock *s, bool by_epoll)
{
	struct pollfd p = { .fd = s->fd, .events = POLLIN };
	struct epoll_event e = { .events = EPOLLIN };

	if (!by_epoll) {
		CHECK(poll(&p, 1, -1) == 1, "poll");
		return;
	}
	/* The socket has a NAPI context by now, which the set is told when it is added. */
	if (epoll_fd < 0) {
		epoll_fd = epoll_create1(0);
		CHECK(epoll_fd >= 0, "epoll");
		CHECK(!epoll_ctl(epoll_fd, EPOLL_CTL_ADD, s->fd, &e), "epoll");
	}
	CHECK(epoll_wait(epoll_fd, &e, 1, -1) == 1, "epoll");
}

static ssize_t get(struct sock *s, const char *how, uint64_t id)
{
	ssize_t n;

	if (!strcmp(how, "private"))
		return receive(s, id, 0);
	if (!strcmp(how, "wait"))
		return receive(s, 0, 0);
	if (strcmp(how, "once"))
		wait_readable(s, !strcmp(how, "epoll"));
	do {
		n = receive(s, 0, MSG_DONTWAIT);
		CHECK(n >= 0 || errno == EAGAIN, "recvmsg");
	} while (n < 0 && !sched_yield());
	return n;
}

int main(int argc, char **argv)
{
	struct sock s = open_sock(AF_INET, 0);
	unsigned char buf[SIZE];
	unsigned int i, flags;
	socklen_t size = sizeof(i);
	union address to;
	int usecs;

	CHECK(argc == 5, "busy HOW IP PORT USECS");
	to = address(AF_INET, argv[2], atoi(argv[3]));
	usecs = atoi(argv[4]);
	if (usecs >= 0)
		CHECK(!setsockopt(s.fd, SOL_SOCKET, SO_BUSY_POLL, &usecs,
				  sizeof(usecs)),
		      "SO_BUSY_POLL");
	flags = strcmp(argv[1], "private") ? 0 : HOMA_SENDMSG_PRIVATE;
	for (i = 0; i < RPCS; i++) {
		uint64_t id;

		fill(buf, SIZE, i);
		id = request(&s, &to, buf, SIZE, 0, flags);
		/* The first response tells where packets come from. */
		CHECK(get(&s, i || flags ? argv[1] : "wait", id) == SIZE,
		      "response %u", i);
		verify(&s, SIZE, i);
	}
	CHECK(!getsockopt(s.fd, SOL_SOCKET, SO_INCOMING_NAPI_ID, &i, &size),
	      "SO_INCOMING_NAPI_ID");
	printf("%u\n", i);
	return 0;
}
