// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A server that sends back what it gets:
 *
 *	tcp_echo_server ADDRESS PORT threads|fork|poll|select|epoll|edge|oneshot|nested
 *
 * It prints "ready" and serves until it is killed. "threads" and "fork" block, the others wait for
 * all connections at once; "oneshot" arms each anew, "nested" has the connections in a set within a
 * set. What the peer's window does not take waits in the connection's own buffer.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>
#include "echo.h"

#define CONNECTIONS 1000

/* A connection that does not block, by its descriptor. */
static struct connection {
	bool open;
	size_t begin, end; /* what of `bytes` is to be sent back */
	char bytes[16384];
} connections[CONNECTIONS];

static int listener, highest;

static void *serve(void *argument)
{
	int fd = (int)(intptr_t)argument;
	char bytes[16384];
	ssize_t got;

	while ((got = read(fd, bytes, sizeof(bytes))) > 0)
		for (ssize_t done = 0, sent; done < got; done += sent)
			sent = echo_must((int)write(fd, bytes + done,
						    (size_t)(got - done)),
					 "write");
	echo_must((int)got, "read");
	close(fd);
	return NULL;
}

static void run_threads(void)
{
	for (;;) {
		int fd = echo_must(accept(listener, NULL, NULL), "accept");
		pthread_t thread;

		if (pthread_create(&thread, NULL, serve, (void *)(intptr_t)fd))
			exit(1);
		pthread_detach(thread);
	}
}

static void run_fork(void)
{
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int fd = echo_must(accept(listener, NULL, NULL), "accept");

		if (echo_must(fork(), "fork") == 0) {
			close(listener);
			serve((void *)(intptr_t)fd);
			_exit(0);
		}
		close(fd);
	}
}

/* Take new connections until there is none; the last one's descriptor, or -1. */
static int take(void (*added)(int fd))
{
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
		if (fd >= CONNECTIONS)
			exit(1);
		memset(&connections[fd], 0, sizeof(connections[fd]));
		connections[fd].open = true;
		highest = fd > highest ? fd : highest;
		if (added)
			added(fd);
	}
	if (errno != EAGAIN)
		echo_must(fd, "accept4");
	return fd;
}

static bool blocked(ssize_t result, const char *what)
{
	if (result < 0 && errno == EAGAIN)
		return true;
	echo_must((int)result, what);
	return false;
}

/* Move bytes until the socket would block, which edges ask for; closes at the end. */
static void turn(int fd)
{
	struct connection *c = &connections[fd];

	for (;;) {
		ssize_t n;

		while (c->begin < c->end) {
			n = write(fd, c->bytes + c->begin, c->end - c->begin);
			if (blocked(n, "write"))
				return;
			c->begin += (size_t)n;
		}
		n = read(fd, c->bytes, sizeof(c->bytes));
		if (blocked(n, "read"))
			return;
		if (n == 0) {
			c->open = false;
			close(fd);
			return;
		}
		c->begin = 0;
		c->end = (size_t)n;
	}
}

static bool waits_to_send(int fd)
{
	return connections[fd].begin < connections[fd].end;
}

static void run_poll(void)
{
	static struct pollfd entries[CONNECTIONS];

	for (;;) {
		nfds_t count = 1;

		entries[0] = (struct pollfd){ .fd = listener, .events = POLLIN };
		for (int fd = 0; fd <= highest; fd++)
			if (connections[fd].open)
				entries[count++] = (struct pollfd){
					.fd = fd,
					.events = waits_to_send(fd) ? POLLOUT :
								      POLLIN
				};
		echo_must(poll(entries, count, -1), "poll");
		for (nfds_t i = 1; i < count; i++)
			if (entries[i].revents)
				turn(entries[i].fd);
		if (entries[0].revents)
			take(NULL);
	}
}

static void run_select(void)
{
	for (;;) {
		fd_set in, out;

		FD_ZERO(&in);
		FD_ZERO(&out);
		FD_SET(listener, &in);
		for (int fd = 0; fd <= highest; fd++)
			if (connections[fd].open)
				FD_SET(fd, waits_to_send(fd) ? &out : &in);
		echo_must(select(highest + 1, &in, &out, NULL, NULL), "select");
		for (int fd = 0; fd <= highest; fd++)
			if (connections[fd].open &&
			    (FD_ISSET(fd, &in) || FD_ISSET(fd, &out)))
				turn(fd);
		if (FD_ISSET(listener, &in))
			take(NULL);
	}
}

static int set;
static uint32_t flags;

/* What is awaited: one direction at a time, except by edges, which come but once. */
static uint32_t awaited(int fd)
{
	if (fd == listener)
		return EPOLLIN;
	if (flags & EPOLLET)
		return EPOLLIN | EPOLLOUT | EPOLLET;
	return (waits_to_send(fd) ? EPOLLOUT : EPOLLIN) | flags;
}

static void change(int operation, int fd)
{
	struct epoll_event event = { .events = awaited(fd), .data.fd = fd };

	echo_must(epoll_ctl(set, operation, fd, &event), "epoll_ctl");
}

static void add(int fd)
{
	change(EPOLL_CTL_ADD, fd);
}

static void run_epoll(uint32_t how, bool nested)
{
	struct epoll_event events[64];
	int outer;

	flags = how;
	set = echo_must(epoll_create1(0), "epoll_create1");
	outer = nested ? echo_must(epoll_create1(0), "epoll_create1") : set;
	add(listener);
	if (nested) {
		events[0] = (struct epoll_event){ .events = EPOLLIN,
						  .data.fd = set };
		echo_must(epoll_ctl(outer, EPOLL_CTL_ADD, set, events),
			  "epoll_ctl");
	}
	for (;;) {
		int count;

		if (nested)
			echo_must(epoll_wait(outer, events, 1, -1), "epoll_wait");
		count = echo_must(epoll_wait(set, events, 64, nested ? 0 : -1),
				  "epoll_wait");
		for (int i = 0; i < count; i++) {
			if (events[i].data.fd == listener) {
				take(add);
				continue;
			}
			turn(events[i].data.fd);
			if (connections[events[i].data.fd].open &&
			    !(flags & EPOLLET))
				change(EPOLL_CTL_MOD, events[i].data.fd);
		}
	}
}

int main(int argc, char **argv)
{
	const char *how = argc == 4 ? argv[3] : "";
	bool blocks = !strcmp(how, "threads") || !strcmp(how, "fork");

	if (argc != 4) {
		fprintf(stderr, "usage: tcp_echo_server ADDRESS PORT HOW\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	listener = echo_listen(argv[1], argv[2], blocks ? 0 : SOCK_NONBLOCK);
	highest = listener;
	printf("ready\n");
	fflush(stdout);
	if (!strcmp(how, "threads"))
		run_threads();
	else if (!strcmp(how, "fork"))
		run_fork();
	else if (!strcmp(how, "poll"))
		run_poll();
	else if (!strcmp(how, "select"))
		run_select();
	else if (!strcmp(how, "epoll") || !strcmp(how, "nested"))
		run_epoll(0, *how == 'n');
	else if (!strcmp(how, "edge"))
		run_epoll(EPOLLET, false);
	else if (!strcmp(how, "oneshot"))
		run_epoll(EPOLLONESHOT, false);
	fprintf(stderr, "tcp_echo_server: no way is called %s\n", how);
	return 2;
}
