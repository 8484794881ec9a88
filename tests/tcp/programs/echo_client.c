// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Connections to an echo server, each with its own stream, every byte of which is looked at:
 *
 *	tcp_echo_client ADDRESS PORT threads|poll|epoll CONNECTIONS BYTES
 *
 * "threads" blocks, a thread for each connection; the others do not, in one thread. Prints "ok".
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "echo.h"

#define MOST 256
#define PIECE 5000
/* Bytes on their way at most, so that a server that blocks does not wait for us. */
#define AHEAD 20000

static struct stream {
	int fd;
	size_t number, sent, received;
} streams[MOST];

static const char *address, *port;
static size_t length;

static void look(struct stream *s, const unsigned char *bytes, ssize_t got)
{
	echo_must((int)got, "read");
	if (got == 0) {
		fprintf(stderr, "stream %zu ended at %zu of %zu\n", s->number,
			s->received, length);
		exit(1);
	}
	for (ssize_t i = 0; i < got; i++, s->received++)
		if (bytes[i] != echo_byte(s->number, s->received)) {
			fprintf(stderr, "stream %zu: wrong byte at %zu\n",
				s->number, s->received);
			exit(1);
		}
}

/* Send one piece, of which perhaps not all goes. */
static ssize_t say(struct stream *s)
{
	unsigned char bytes[PIECE];
	size_t left = length - s->sent;
	ssize_t sent;

	left = left < PIECE ? left : PIECE;
	for (size_t i = 0; i < left; i++)
		bytes[i] = echo_byte(s->number, s->sent + i);
	sent = send(s->fd, bytes, left, MSG_NOSIGNAL);
	if (sent > 0)
		s->sent += (size_t)sent;
	return sent;
}

static void finish(struct stream *s)
{
	char byte;

	if (shutdown(s->fd, SHUT_WR)) {
		perror("shutdown");
		exit(1);
	}
	while (read(s->fd, &byte, 1) < 0 && errno == EAGAIN)
		poll(&(struct pollfd){ .fd = s->fd, .events = POLLIN }, 1, -1);
	close(s->fd);
}

static void *block(void *argument)
{
	struct stream *s = argument;
	unsigned char bytes[PIECE];

	s->fd = echo_connect(address, port);
	while (s->received < length) {
		while (s->sent < length && s->sent - s->received < AHEAD)
			echo_must((int)say(s), "send");
		look(s, bytes, read(s->fd, bytes, sizeof(bytes)));
	}
	finish(s);
	return NULL;
}

static bool may_send(const struct stream *s)
{
	return s->sent < length && s->sent - s->received < AHEAD;
}

/* Move what can be moved without waiting; true when all has come back. */
static bool turn(struct stream *s)
{
	unsigned char bytes[PIECE];
	ssize_t n = 1;

	while (may_send(s) && (n = say(s)) > 0)
		;
	if (n < 0 && errno != EAGAIN)
		echo_must(-1, "send");
	n = read(s->fd, bytes, sizeof(bytes));
	if (n < 0 && errno == EAGAIN)
		return false;
	look(s, bytes, n);
	return s->received == length;
}

static void run_poll(size_t count)
{
	struct pollfd entries[MOST];
	size_t open = count;

	for (size_t i = 0; i < count; i++)
		entries[i].fd = streams[i].fd;
	while (open > 0) {
		for (size_t i = 0; i < count; i++)
			entries[i].events = may_send(&streams[i]) ?
						    POLLIN | POLLOUT :
						    POLLIN;
		echo_must(poll(entries, count, -1), "poll");
		for (size_t i = 0; i < count; i++)
			if (entries[i].fd >= 0 && entries[i].revents &&
			    turn(&streams[i])) {
				finish(&streams[i]);
				entries[i].fd = -1;
				open--;
			}
	}
}

static void run_epoll(size_t count)
{
	int set = echo_must(epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
	struct epoll_event events[16];
	size_t open = count;

	for (size_t i = 0; i < count; i++) {
		events[0].events = EPOLLIN | EPOLLOUT;
		events[0].data.ptr = &streams[i];
		echo_must(epoll_ctl(set, EPOLL_CTL_ADD, streams[i].fd, events),
			  "epoll_ctl");
	}
	while (open > 0) {
		int ready =
			echo_must(epoll_wait(set, events, 16, -1), "epoll_wait");

		for (int i = 0; i < ready; i++) {
			struct stream *s = events[i].data.ptr;

			if (turn(s)) {
				finish(s);
				open--;
				continue;
			}
			events[i].events =
				may_send(s) ? EPOLLIN | EPOLLOUT : EPOLLIN;
			echo_must(epoll_ctl(set, EPOLL_CTL_MOD, s->fd, &events[i]),
				  "epoll_ctl");
		}
	}
}

int main(int argc, char **argv)
{
	pthread_t threads[MOST];
	size_t count = argc == 6 ? (size_t)atoi(argv[4]) : 0;
	bool blocks;

	if (count < 1 || count > MOST) {
		fprintf(stderr,
			"usage: tcp_echo_client ADDRESS PORT HOW CONNECTIONS BYTES\n");
		return 2;
	}
	address = argv[1];
	port = argv[2];
	blocks = !strcmp(argv[3], "threads");
	length = (size_t)atol(argv[5]);
	for (size_t i = 0; i < count; i++) {
		streams[i].number = i;
		if (blocks) {
			if (pthread_create(&threads[i], NULL, block, &streams[i]))
				return 1;
			continue;
		}
		streams[i].fd = echo_connect(address, port);
		echo_nonblocking(streams[i].fd);
	}
	if (!strcmp(argv[3], "poll"))
		run_poll(count);
	else if (!strcmp(argv[3], "epoll"))
		run_epoll(count);
	for (size_t i = 0; blocks && i < count; i++)
		pthread_join(threads[i], NULL);
	printf("ok\n");
	return 0;
}
