// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * epoll sets: who is told when few events are asked for, what epoll_ctl() refuses, duplicates of
 * sets.
 */
#include <sys/resource.h>
#include "tcp_calls.h"

#define TURNS 100

static int new_set(void)
{
	return (int)MUST(epoll_create1(EPOLL_CLOEXEC));
}

static void control(int set, int operation, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	MUST(epoll_ctl(set, operation, fd, &event));
}

static void greet__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_greet(fd);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

/* A connection that is always ready does not keep a pipe from its turn. */
static void sets_fair__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), set = new_set(), ends[2];
	int of_pipe = 0, of_connection = 0;

	MUST(pipe(ends));
	control(set, EPOLL_CTL_ADD, fd, EPOLLIN);
	control(set, EPOLL_CTL_ADD, ends[0], EPOLLIN);
	SAME(write(ends[1], "", 1), 1);
	SAME(tcp_poll(fd, POLLIN), POLLIN);
	for (int i = 0; i < TURNS; i++) {
		struct epoll_event event;

		SAME(epoll_wait(set, &event, 1, TCP_PATIENCE), 1);
		of_pipe += event.data.fd == ends[0];
		of_connection += event.data.fd == fd;
	}
	EXPECT(of_pipe > TURNS / 10);
	EXPECT(of_connection > TURNS / 10);
	tcp_greet(fd);
	tcp_close(fd);
}

#define sets_fair__client greet__client

const struct tcp_case tcp_set_cases[] = {
	TCP_CASE(sets_fair),
	{ 0 },
};
