/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * UDP without a transport protocol: each message is one datagram, a lost one
 * is a failed RPC. It shows what the kernel's stack costs by itself. A client
 * has a connected socket per peer (no route look-up per datagram), a server
 * one socket for all.
 */
#include <errno.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench_transport.h"

/* Most datagrams taken from a socket before looking at the others. */
#define BATCH 64
#define SOCKET_BUFFER (4 << 20)

/** struct udp_socket - a socket; @peer is UDP_SERVER for the one that serves */
struct udp_socket {
	int fd;
	uint32_t peer;
};

#define UDP_SERVER UINT32_MAX

/* struct udp_endpoint - an endpoint: it has a socket for each peer, and last a serving one */
struct udp_endpoint {
	struct bench_endpoint base;
	int epfd;
	struct udp_socket *sockets;
	uint32_t count;
	uint64_t datagrams_in, datagrams_out, send_full;
	uint8_t buffer[65536];
};

static uint32_t max_message(const struct bench_config *config)
{
	/* Room for an IPv6 and a UDP header; the same for IPv4, to compare. */
	return config->wire.mtu - 40 - 8 - BENCH_FRAME_BYTES;
}

static int send_frame(struct udp_endpoint *ep, int fd,
		      const struct bench_frame *frame,
		      const struct sockaddr_storage *to, socklen_t tolen)
{
	uint8_t *bytes = bench_frame_put(frame);
	ssize_t n;

	do {
		n = sendto(fd, bytes, BENCH_FRAME_BYTES + frame->length,
			   MSG_DONTWAIT | MSG_NOSIGNAL,
			   (const struct sockaddr *)to, tolen);
	} while (n < 0 && errno == EINTR);
	if (n >= 0) {
		ep->datagrams_out++;
		return 0;
	}
	if (errno == EAGAIN || errno == ENOBUFS) {
		/* A full queue drops datagrams, which the client's timeout shows. */
		ep->send_full++;
		return 0;
	}
	return -errno;
}

static int udp_request(struct bench_endpoint *base, uint32_t peer,
		       uint32_t size, uint32_t response, uint32_t cookie)
{
	struct udp_endpoint *ep = (struct udp_endpoint *)base;
	struct bench_frame frame = { size, cookie, response };

	return send_frame(ep, ep->sockets[peer].fd, &frame, NULL, 0);
}

static void serve(struct udp_endpoint *ep, int fd,
		  const struct bench_frame *frame,
		  const struct sockaddr_storage *from, socklen_t fromlen)
{
	struct bench_frame reply = { frame->length, frame->cookie, 0 };

	if (frame->response)
		reply.length = frame->response;
	if (reply.length > max_message(ep->base.config)) {
		ep->base.protocol_errors++;
		return;
	}
	ep->base.served++;
	ep->base.served_rx_bytes += frame->length;
	ep->base.served_tx_bytes += reply.length;
	send_frame(ep, fd, &reply, from, fromlen);
}

/* Takes one datagram; returns 1 if there was one, else 0. */
static int receive_one(struct udp_endpoint *ep, struct udp_socket *sock, int flags)
{
	struct sockaddr_storage from;
	socklen_t fromlen = sizeof(from);
	struct bench_frame frame;
	ssize_t n;

	if (sock->peer == UDP_SERVER)
		n = recvfrom(sock->fd, ep->buffer, sizeof(ep->buffer), flags,
			     (struct sockaddr *)&from, &fromlen);
	else
		n = recv(sock->fd, ep->buffer, sizeof(ep->buffer), flags);
	if (n < 0) {
		int error = errno;

		if (error == EAGAIN || error == EINTR)
			return 0;
		if (sock->peer != UDP_SERVER)
			ep->base.peer_failed(ep->base.arg, sock->peer, -error);
		return 1;
	}
	ep->datagrams_in++;
	if (n < BENCH_FRAME_BYTES || !bench_frame_get(&frame, ep->buffer) ||
	    frame.length != n - BENCH_FRAME_BYTES) {
		ep->base.protocol_errors++;
		return 1;
	}
	if (sock->peer == UDP_SERVER)
		serve(ep, sock->fd, &frame, &from, fromlen);
	else
		ep->base.done(ep->base.arg, frame.cookie, 0, frame.length);
	return 1;
}

static int drain(struct udp_endpoint *ep, struct udp_socket *sock)
{
	int n;

	for (n = 0; n < BATCH; n++)
		if (!receive_one(ep, sock, MSG_DONTWAIT))
			break;
	return n;
}

static int poll_events(struct udp_endpoint *ep, uint64_t wait_ns)
{
	struct epoll_event events[64];
	int i, n, messages = 0;

	n = bench_epoll(ep->epfd, events, 64, wait_ns);
	for (i = 0; i < n; i++)
		messages += drain(ep, events[i].data.ptr);
	return n < 0 ? n : messages;
}

static int udp_poll(struct bench_endpoint *base, uint64_t wait_ns)
{
	struct udp_endpoint *ep = (struct udp_endpoint *)base;
	uint32_t i;
	int n = 0;

	switch (base->config->wait) {
	case BENCH_WAIT_BLOCK:
		if (ep->count == 1 && wait_ns)
			return receive_one(ep, &ep->sockets[0], 0);
		return poll_events(ep, wait_ns);
	case BENCH_WAIT_EPOLL:
		return poll_events(ep, wait_ns);
	default:
		for (i = 0; i < ep->count; i++)
			n += drain(ep, &ep->sockets[i]);
		if (!n && wait_ns && base->config->wait == BENCH_WAIT_YIELD)
			sched_yield();
		return n;
	}
}

static int64_t udp_report(struct bench_endpoint *base, cJSON *json)
{
	struct udp_endpoint *ep = (struct udp_endpoint *)base;

	cJSON_AddNumberToObject(json, "datagrams_in", (double)ep->datagrams_in);
	cJSON_AddNumberToObject(json, "datagrams_out", (double)ep->datagrams_out);
	cJSON_AddNumberToObject(json, "send_queue_full", (double)ep->send_full);
	return 0;
}

static void udp_close(struct bench_endpoint *base)
{
	struct udp_endpoint *ep = (struct udp_endpoint *)base;
	uint32_t i;

	for (i = 0; ep->sockets && i < ep->count; i++)
		close(ep->sockets[i].fd);
	free(ep->sockets);
	if (ep->epfd >= 0)
		close(ep->epfd);
	free(ep);
}

/* Adds a socket that is bound to @text or connected with it. */
static int add_socket(struct udp_endpoint *ep, const char *text, uint32_t peer,
		      const char *what, char *err, size_t errlen)
{
	struct timeval timeout = { 0, 50000 };
	struct udp_socket *sock = &ep->sockets[ep->count];
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = sock };
	struct sockaddr_storage addr;
	uint32_t addrlen;
	int size = SOCKET_BUFFER, ret;

	if (bench_resolve(text, &addr, &addrlen) ||
	    (peer != UDP_SERVER && !bench_port(&addr))) {
		snprintf(err, errlen,
			 "%s '%s' is not ADDRESS:PORT with a numeric address",
			 what, text);
		return -EINVAL;
	}
	sock->peer = peer;
	sock->fd = socket(addr.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock->fd < 0)
		return -errno;
	ep->count++;
	setsockopt(sock->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	setsockopt(sock->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	setsockopt(sock->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	if (peer == UDP_SERVER)
		ret = bind(sock->fd, (struct sockaddr *)&addr, addrlen);
	else
		ret = connect(sock->fd, (struct sockaddr *)&addr, addrlen);
	if (ret || epoll_ctl(ep->epfd, EPOLL_CTL_ADD, sock->fd, &event)) {
		ret = -errno;
		snprintf(err, errlen, "%s %s: %s%s", what, text, strerror(-ret),
			 ret == -EADDRINUSE ?
				 "; another process serves this UDP port, choose another" :
			 ret == -EADDRNOTAVAIL ?
				 "; this host has no such address, see 'ip address'" :
				 "");
		return ret;
	}
	addrlen = sizeof(addr);
	getsockname(sock->fd, (struct sockaddr *)&addr, &addrlen);
	if (peer == UDP_SERVER)
		bench_address_text(&addr, ep->base.where, sizeof(ep->base.where));
	return 0;
}

static int udp_open(struct bench_endpoint **out,
		    const struct bench_config *config, char *err, size_t errlen)
{
	struct udp_endpoint *ep = calloc(1, sizeof(*ep));
	uint32_t i;
	int ret = 0;

	if (!ep)
		return -ENOMEM;
	ep->base.config = config;
	ep->sockets = calloc(config->peer_count + 1, sizeof(*ep->sockets));
	ep->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (!ep->sockets || ep->epfd < 0)
		ret = -ENOMEM;
	for (i = 0; !ret && i < config->peer_count; i++)
		ret = add_socket(ep, config->peers[i], i, "peer", err, errlen);
	if (!ret && (config->role & BENCH_SERVER))
		ret = add_socket(ep, config->bind, UDP_SERVER, "--bind", err,
				 errlen);
	if (ret) {
		udp_close(&ep->base);
		return ret;
	}
	*out = &ep->base;
	return 0;
}

const struct bench_transport bench_udp = {
	.name = "udp",
	.summary = "kernel UDP, one datagram per message, no retransmission",
	.max_message = max_message,
	.open = udp_open,
	.request = udp_request,
	.poll = udp_poll,
	.report = udp_report,
	.close = udp_close,
};
