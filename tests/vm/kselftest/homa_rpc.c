// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * RPCs over Homa, whose bytes are checked; homa.sh runs it.
 *
 *	homa_rpc serve 4|6 PORT			echoes requests until it is killed
 *	homa_rpc call 4|6 ADDRESS PORT LENGTH	one RPC; 0 if the response is the request
 *	homa_rpc error 4|6 ADDRESS PORT		one RPC that must fail; prints its errno
 *	homa_rpc bind 4|6 PORT			0 if the port can be bound, else its errno
 *	homa_rpc there				0 if there are Homa sockets
 *
 * It waits for nothing longer than the caller's time-out.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "homa_socket.h"

#define REGION (64UL * HOMA_BPAGE_SIZE)

static char *region;
static unsigned char request[HOMA_MAX_MESSAGE_LENGTH];

union name {
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;
};

static _Noreturn void fail(const char *what)
{
	int err = errno;

	fprintf(stderr, "homa_rpc: %s: %s\n", what, strerror(err));
	exit(err > 0 && err < 256 ? err : 255);
}

static int homa_socket(int family)
{
	int fd = socket(family, SOCK_DGRAM, IPPROTO_HOMA);

	if (fd < 0)
		fail("socket");
	return fd;
}

/* Gives the socket memory for the messages that it receives. */
static void give_region(int fd)
{
	struct homa_rcvbuf_args args = { .length = REGION };

	region = mmap(NULL, REGION, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (region == MAP_FAILED)
		fail("mmap");
	args.start = (uintptr_t)region;
	if (setsockopt(fd, IPPROTO_HOMA, SO_HOMA_RCVBUF, &args, sizeof(args)))
		fail("SO_HOMA_RCVBUF");
}

static socklen_t name_of(union name *name, int family, const char *address,
			 int port)
{
	memset(name, 0, sizeof(*name));
	if (family == AF_INET) {
		name->in4.sin_family = AF_INET;
		name->in4.sin_port = htons((uint16_t)port);
		if (address && !inet_pton(AF_INET, address, &name->in4.sin_addr))
			fail("address");
		return sizeof(name->in4);
	}
	name->in6.sin6_family = AF_INET6;
	name->in6.sin6_port = htons((uint16_t)port);
	if (address && !inet_pton(AF_INET6, address, &name->in6.sin6_addr))
		fail("address");
	return sizeof(name->in6);
}

static int bound(int family, int port)
{
	int fd = homa_socket(family);
	union name name;
	socklen_t size = name_of(&name, family, NULL, port);

	if (bind(fd, (struct sockaddr *)&name, size))
		fail("bind");
	return fd;
}

/* The pieces of a message in the region; returns their number. */
static int pieces(const struct homa_recvmsg_args *args, size_t length,
		  struct iovec *iov)
{
	unsigned int i;

	for (i = 0; i < args->num_bpages; i++) {
		size_t n = length < HOMA_BPAGE_SIZE ? length : HOMA_BPAGE_SIZE;

		iov[i].iov_base = region + args->bpage_offsets[i];
		iov[i].iov_len = n;
		length -= n;
	}
	return (int)i;
}

static void serve(int family, int port)
{
	int fd = bound(family, port);
	struct homa_recvmsg_args args = { 0 };

	give_region(fd);
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		struct iovec iov[HOMA_MAX_BPAGES];
		struct homa_sendmsg_args reply = { 0 };
		union name from;
		struct msghdr in = { .msg_name = &from,
				     .msg_namelen = sizeof(from),
				     .msg_control = &args,
				     .msg_controllen = sizeof(args) };
		struct msghdr out = { .msg_name = &from, .msg_iov = iov };
		ssize_t n;

		/* This gives the pages of the request before back, too. */
		args.id = 0;
		n = recvmsg(fd, &in, 0);
		if (n < 0)
			fail("recvmsg");
		reply.id = args.id;
		out.msg_namelen = in.msg_namelen;
		out.msg_iovlen = (size_t)pieces(&args, (size_t)n, iov);
		out.msg_control = &reply;
		if (sendmsg(fd, &out, 0))
			fail("response");
	}
}

/* Sends a request and waits for the response; returns its length, or -1. */
static ssize_t call(int family, const char *address, int port, size_t length,
		    struct homa_recvmsg_args *args)
{
	struct homa_sendmsg_args send = { .completion_cookie = 4711 };
	struct iovec iov = { request, length };
	union name to, from;
	struct msghdr out = { .msg_name = &to,
			      .msg_namelen = name_of(&to, family, address, port),
			      .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &send };
	struct msghdr in = { .msg_name = &from,
			     .msg_namelen = sizeof(from),
			     .msg_control = args,
			     .msg_controllen = sizeof(*args) };
	int fd = homa_socket(family);
	ssize_t n;

	give_region(fd);
	if (sendmsg(fd, &out, 0))
		fail("request");
	n = recvmsg(fd, &in, 0);
	if (args->id != send.id || args->completion_cookie != 4711) {
		fprintf(stderr, "homa_rpc: another RPC than the request's\n");
		exit(255);
	}
	return n;
}

static int checked_call(int family, const char *address, int port, size_t length)
{
	struct homa_recvmsg_args args = { 0 };
	struct iovec iov[HOMA_MAX_BPAGES];
	unsigned char *at = request;
	size_t i;
	int k, n;

	if (!length || length > sizeof(request))
		return 255;
	for (i = 0; i < length; i++)
		request[i] = (unsigned char)(i * 7 + (i >> 8) + length);
	if (call(family, address, port, length, &args) != (ssize_t)length)
		fail("response");
	n = pieces(&args, length, iov);
	for (k = 0; k < n; at += iov[k].iov_len, k++)
		if (memcmp(at, iov[k].iov_base, iov[k].iov_len)) {
			fprintf(stderr, "homa_rpc: wrong bytes in page %d\n", k);
			return 255;
		}
	return 0;
}

static int failing_call(int family, const char *address, int port)
{
	struct homa_recvmsg_args args = { 0 };

	if (call(family, address, port, 100, &args) >= 0) {
		fprintf(stderr, "homa_rpc: the RPC did not fail\n");
		return 255;
	}
	printf("%d\n", errno);
	return 0;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	int family = argc > 2 && *argv[2] == '6' ? AF_INET6 : AF_INET;

	if (!strcmp(how, "there"))
		return homa_socket(AF_INET) < 0;
	if (!strcmp(how, "serve") && argc == 4)
		serve(family, atoi(argv[3]));
	if (!strcmp(how, "bind") && argc == 4)
		return bound(family, atoi(argv[3])) < 0;
	if (!strcmp(how, "call") && argc == 6)
		return checked_call(family, argv[3], atoi(argv[4]),
				    strtoul(argv[5], NULL, 10));
	if (!strcmp(how, "error") && argc == 5)
		return failing_call(family, argv[3], atoi(argv[4]));
	fprintf(stderr, "homa_rpc: see homa_rpc.c for its arguments\n");
	return 255;
}
