/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The list of transports, and what several of them share: framing, addresses,
 * waiting with nanosecond timeouts.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "bench_transport.h"

const struct bench_transport *const bench_transports[] = {
#ifdef HAVE_LIBHOMA
	&bench_homa,
#endif
	&bench_tcp,  &bench_tcp_pool,	 &bench_udp,
	&bench_unix, &bench_unix_packet, NULL,
};

static uint8_t payload_room[BENCH_HEADROOM + BENCH_MAX_MESSAGE]
	__attribute__((aligned(64)));
uint8_t *const bench_payload = payload_room + BENCH_HEADROOM;

const struct bench_transport *bench_transport_find(const char *name)
{
	size_t i;

	for (i = 0; bench_transports[i]; i++)
		if (strcmp(bench_transports[i]->name, name) == 0)
			return bench_transports[i];
	return NULL;
}

uint8_t *bench_frame_put(const struct bench_frame *frame)
{
	uint32_t words[3] = { htonl(frame->length), htonl(frame->cookie),
			      htonl(frame->response) };

	memcpy(bench_payload - BENCH_FRAME_BYTES, words, sizeof(words));
	return bench_payload - BENCH_FRAME_BYTES;
}

bool bench_frame_get(struct bench_frame *frame, const uint8_t *bytes)
{
	uint32_t words[3];

	memcpy(words, bytes, sizeof(words));
	frame->length = ntohl(words[0]);
	frame->cookie = ntohl(words[1]);
	frame->response = ntohl(words[2]);
	return frame->length >= 1 && frame->length <= BENCH_MAX_MESSAGE &&
	       frame->response <= BENCH_MAX_MESSAGE;
}

int bench_epoll(int epfd, struct epoll_event *events, int max, uint64_t wait_ns)
{
	struct timespec ts = { (time_t)(wait_ns / BENCH_NS_PER_S),
			       (long)(wait_ns % BENCH_NS_PER_S) };
	/* the kernel is older than 5.11, or this is valgrind */
	static bool coarse;
	int n = -1;

	if (wait_ns && !coarse) {
		n = epoll_pwait2(epfd, events, max, &ts, NULL);
		coarse = n < 0 && errno == ENOSYS;
	}
	if (!wait_ns || coarse)
		n = epoll_wait(epfd, events, max, (int)(wait_ns / 1000000));
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	return n;
}

int bench_resolve(const char *text, struct sockaddr_storage *addr,
		  uint32_t *addrlen)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV |
					      AI_PASSIVE };
	struct addrinfo *found;
	char host[128], *port = NULL, *name = host, *end;

	if (snprintf(host, sizeof(host), "%s", text) >= (int)sizeof(host))
		return -EINVAL;
	if (host[0] == '[') {
		end = strchr(host, ']');
		if (!end || (end[1] != '\0' && end[1] != ':'))
			return -EINVAL;
		port = end[1] ? end + 2 : NULL;
		*end = '\0';
		name = host + 1;
	} else {
		end = strrchr(host, ':');
		/* More than one colon without brackets means a bare IPv6 address. */
		if (end && strchr(host, ':') == end) {
			*end = '\0';
			port = end + 1;
		}
	}
	if (port && (!*port || strspn(port, "0123456789") != strlen(port) ||
		     strtoul(port, NULL, 10) > 65535))
		return -EINVAL;
	if (getaddrinfo(*name ? name : NULL, port ? port : "0", &hints, &found))
		return -EINVAL;
	memset(addr, 0, sizeof(*addr));
	memcpy(addr, found->ai_addr, found->ai_addrlen);
	*addrlen = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

uint16_t bench_port(const struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *)addr)->sin6_port);
	return ntohs(((const struct sockaddr_in *)addr)->sin_port);
}

void bench_address_text(const struct sockaddr_storage *addr, char *text,
			size_t size)
{
	char host[64] = "?", port[8] = "?";
	bool v6 = addr->ss_family == AF_INET6;

	getnameinfo((const struct sockaddr *)addr, sizeof(*addr), host,
		    sizeof(host), port, sizeof(port),
		    NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(text, size, "%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "",
		 port);
}
