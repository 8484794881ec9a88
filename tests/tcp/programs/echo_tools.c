// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include "echo.h"

int echo_must(int result, const char *what)
{
	if (result < 0) {
		perror(what);
		exit(1);
	}
	return result;
}

static struct addrinfo *look_up(const char *address, const char *port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_NUMERICHOST };
	struct addrinfo *found;
	int error = getaddrinfo(address, port, &hints, &found);

	if (error) {
		fprintf(stderr, "%s: %s\n", address, gai_strerror(error));
		exit(1);
	}
	return found;
}

int echo_listen(const char *address, const char *port, int flags)
{
	struct addrinfo *at = look_up(address, port);
	int fd = echo_must(socket(at->ai_family, SOCK_STREAM | flags, 0),
			   "socket");
	int one = 1;

	echo_must(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)),
		  "SO_REUSEADDR");
	echo_must(bind(fd, at->ai_addr, at->ai_addrlen), "bind");
	echo_must(listen(fd, 256), "listen");
	freeaddrinfo(at);
	return fd;
}

int echo_connect(const char *address, const char *port)
{
	struct addrinfo *at = look_up(address, port);
	int fd = echo_must(socket(at->ai_family, SOCK_STREAM, 0), "socket");

	echo_must(connect(fd, at->ai_addr, at->ai_addrlen), "connect");
	freeaddrinfo(at);
	return fd;
}

void echo_nonblocking(int fd)
{
	int flags = echo_must(fcntl(fd, F_GETFL), "F_GETFL");

	echo_must(fcntl(fd, F_SETFL, flags | O_NONBLOCK), "F_SETFL");
}

unsigned char echo_byte(size_t stream, size_t position)
{
	return (unsigned char)((stream * 31 + position) % 251);
}
