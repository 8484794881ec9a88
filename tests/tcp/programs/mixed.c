// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Waiting for connections and other things at once: pipes, counters, timers, Unix sockets.
 */
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/timerfd.h>
#include "tcp_calls.h"

enum { STREAM, PIPE, COUNTER, TIMER, LOCAL, KINDS };

/* One descriptor of each kind to be read, and for some the one that makes it readable. */
struct kinds {
	int in[KINDS], pipe, local;
};

static void open_kinds(struct kinds *k, int stream)
{
	int pair[2];

	k->in[STREAM] = stream;
	MUST(pipe(pair));
	k->in[PIPE] = pair[0];
	k->pipe = pair[1];
	k->in[COUNTER] = (int)MUST(eventfd(0, EFD_NONBLOCK));
	k->in[TIMER] = (int)MUST(timerfd_create(CLOCK_MONOTONIC, 0));
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	k->in[LOCAL] = pair[0];
	k->local = pair[1];
}

/* Make one kind readable; the stream by the client. */
static void make_ready(struct tcp_end *end, struct kinds *k, int kind)
{
	struct itimerspec soon = { .it_value.tv_nsec = 1000 };
	uint64_t one = 1;

	if (kind == STREAM)
		tcp_tell(end);
	else if (kind == PIPE)
		SAME(write(k->pipe, "abcdefgh", 8), 8);
	else if (kind == COUNTER)
		SAME(write(k->in[COUNTER], &one, 8), 8);
	else if (kind == TIMER)
		MUST(timerfd_settime(k->in[TIMER], 0, &soon, NULL));
	else
		SAME(write(k->local, "abcdefgh", 8), 8);
}

static void drain(struct kinds *k, int kind)
{
	char bytes[8];

	if (kind == STREAM)
		tcp_receive(k->in[kind], 8, 0);
	else
		SAME(read(k->in[kind], bytes, 8), 8);
}

static void eights__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	for (int i = 0; i < 2; i++) {
		tcp_await(end);
		tcp_send(fd, 8, 0);
	}
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void mixed_epoll__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), set = (int)MUST(epoll_create1(0));
	struct epoll_event events[KINDS + 1];
	struct kinds k;

	open_kinds(&k, fd);
	for (int i = 0; i < KINDS; i++) {
		struct epoll_event event = { .events = EPOLLIN,
					     .data.u64 = 1000 + (uint64_t)i };

		MUST(epoll_ctl(set, EPOLL_CTL_ADD, k.in[i], &event));
	}
	for (int i = 0; i < KINDS; i++) {
		make_ready(end, &k, i);
		SAME(epoll_wait(set, events, KINDS + 1, TCP_PATIENCE), 1);
		SAME(events[0].data.u64, 1000 + i);
		drain(&k, i);
		SAME(epoll_wait(set, events, 1, 0), 0);
	}
	for (int i = 0; i < KINDS; i++) {
		make_ready(end, &k, i);
		SAME(tcp_poll(k.in[i], POLLIN), POLLIN);
	}
	SAME(epoll_wait(set, events, KINDS + 1, TCP_PATIENCE), KINDS);
	tcp_close(set);
	drain(&k, STREAM);
	tcp_close(fd);
}

#define mixed_epoll__client eights__client

static void mixed_poll__server(struct tcp_end *end)
{
	struct pollfd entries[KINDS];
	int fd = tcp_accept_one(end);
	struct kinds k;

	open_kinds(&k, fd);
	for (int i = 0; i < KINDS; i++)
		entries[i] = (struct pollfd){ .fd = k.in[i], .events = POLLIN };
	SAME(poll(entries, KINDS, 0), 0);
	for (int i = 0; i < KINDS; i++) {
		make_ready(end, &k, i);
		SAME(poll(entries, KINDS, TCP_PATIENCE), 1);
		for (int j = 0; j < KINDS; j++)
			SAME(entries[j].revents, i == j ? POLLIN : 0);
		drain(&k, i);
	}
	tcp_tell(end);
	SAME(poll(entries, KINDS, TCP_PATIENCE), 1);
	drain(&k, STREAM);
	tcp_close(fd);
}

#define mixed_poll__client eights__client

static void mixed_select__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), highest = 0;
	struct kinds k;
	fd_set in;

	open_kinds(&k, fd);
	for (int i = 0; i < KINDS; i++)
		highest = k.in[i] > highest ? k.in[i] : highest;
	for (int i = 0; i < KINDS; i++) {
		FD_ZERO(&in);
		for (int j = 0; j < KINDS; j++)
			FD_SET(k.in[j], &in);
		make_ready(end, &k, i);
		SAME(select(highest + 1, &in, NULL, NULL, NULL), 1);
		EXPECT(FD_ISSET(k.in[i], &in));
		drain(&k, i);
	}
	tcp_tell(end);
	drain(&k, STREAM);
	tcp_close(fd);
}

#define mixed_select__client eights__client

/* A listener and its connections in one set, with a pipe that ends it all: every event loop. */
static void mixed_loop__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 16),
	    set = (int)MUST(epoll_create1(0)), stop[2], open = 0;
	struct epoll_event event = { .events = EPOLLIN };
	bool stopped = false;

	MUST(pipe(stop));
	event.data.fd = listener;
	MUST(epoll_ctl(set, EPOLL_CTL_ADD, listener, &event));
	event.data.fd = stop[0];
	MUST(epoll_ctl(set, EPOLL_CTL_ADD, stop[0], &event));
	tcp_ready();
	for (int closed = 0; !stopped;) {
		char bytes[4096];
		ssize_t got;

		SAME(epoll_wait(set, &event, 1, TCP_PATIENCE), 1);
		if (event.data.fd == stop[0]) {
			stopped = true;
		} else if (event.data.fd == listener) {
			event.data.fd = tcp_accept(listener);
			event.events = EPOLLIN;
			MUST(epoll_ctl(set, EPOLL_CTL_ADD, event.data.fd, &event));
			open++;
		} else if ((got = MUST(read(event.data.fd, bytes,
					    sizeof(bytes)))) > 0) {
			SAME(write(event.data.fd, bytes, (size_t)got), got);
		} else {
			tcp_close(event.data.fd);
			if (++closed == 10)
				SAME(write(stop[1], "", 1), 1);
		}
	}
	SAME(open, 10);
}

static void mixed_loop__client(struct tcp_end *end)
{
	int fds[10];

	for (int i = 0; i < 10; i++) {
		fds[i] = tcp_connect(end);
		tcp_send(fds[i], 1000, (size_t)i);
	}
	for (int i = 9; i >= 0; i--) {
		tcp_receive(fds[i], 1000, (size_t)i);
		tcp_close(fds[i]);
	}
}

const struct tcp_case tcp_mixed_cases[] = {
	TCP_CASE(mixed_epoll),
	TCP_CASE(mixed_poll),
	TCP_CASE(mixed_select),
	TCP_CASE(mixed_loop),
	{ 0 },
};
