/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Homa through libhoma, used the way an application would: one handle for both
 * roles, because two handles on one AF_XDP queue are not possible, and one
 * thread that waits inside homa_receive(), where the library polls and blocks
 * as it thinks best.
 *
 * The first four bytes of a request say how long its response shall be.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <homa/libhoma.h>

#include "bench_transport.h"

/* Before the caller looks at its clock again so many messages are taken at most, and none after so
 * many bytes: requests become due meanwhile, and contents that are checked or copied take time. */
#define BATCH 64
#define BATCH_BYTES 65536
#define SLOT_MASK ((1u << 20) - 1)

/**
 * struct homa_endpoint - the transport's endpoint
 * @base: What all transports have.
 * @h: The handle.
 * @peers: The addresses of the servers, config->peer_count of them.
 * @ids: The RPC ids by slot, for abandon().
 * @request_flags: HOMA_BORROW if the bytes of all requests are the same, else 0.
 * @replies_failed: The number of replies that could not be sent.
 */
struct homa_endpoint {
	struct bench_endpoint base;
	struct homa *h;
	struct sockaddr_storage *peers;
	uint64_t *ids;
	unsigned int request_flags;
	uint64_t replies_failed;
};

static uint32_t max_message(const struct bench_config *config)
{
	(void)config;
	return HOMA_MAX_MESSAGE;
}

static int homa_bench_request(struct bench_endpoint *base, uint32_t peer,
			      uint32_t size, uint32_t response, uint32_t cookie)
{
	struct homa_endpoint *ep = (struct homa_endpoint *)base;
	const struct sockaddr_storage *dest = &ep->peers[peer];
	uint32_t wanted = htonl(response);

	if (size < sizeof(wanted) && response && response != size)
		return -EINVAL;
	if (size >= sizeof(wanted))
		memcpy(bench_payload, &wanted, sizeof(wanted));
	return homa_request(ep->h, (const struct sockaddr *)dest, sizeof(*dest),
			    bench_payload, size, cookie, ep->request_flags,
			    &ep->ids[cookie & SLOT_MASK]);
}

static void homa_bench_abandon(struct bench_endpoint *base, uint32_t cookie)
{
	struct homa_endpoint *ep = (struct homa_endpoint *)base;
	uint64_t id = ep->ids[cookie & SLOT_MASK];

	if (id)
		homa_abort(ep->h, id, 0);
}

/* With --check each byte of a message says its place, but for the first four. */
static void fill_payload(void)
{
	uint32_t i;

	for (i = 0; i < BENCH_MAX_MESSAGE; i++)
		bench_payload[i] = (uint8_t)(i ^ i >> 8 ^ i >> 16);
}

static bool damaged(const struct homa_endpoint *ep, const struct homa_message *msg)
{
	uint32_t at = 0, skip, n;
	int i;

	if (!ep->base.config->check)
		return false;
	for (i = 0; i < msg->iovcnt; i++) {
		n = (uint32_t)msg->iov[i].iov_len;
		if (n > BENCH_MAX_MESSAGE - at)
			return true;
		skip = at < sizeof(uint32_t) ? sizeof(uint32_t) - at : 0;
		if (n > skip &&
		    memcmp((const uint8_t *)msg->iov[i].iov_base + skip,
			   bench_payload + at + skip, n - skip))
			return true;
		at += n;
	}
	return at != msg->length;
}

static void serve(struct homa_endpoint *ep, struct homa_message *msg)
{
	uint32_t wanted = 0, length = (uint32_t)msg->length;

	if (msg->length >= sizeof(wanted)) {
		memcpy(&wanted, msg->iov[0].iov_base, sizeof(wanted));
		wanted = ntohl(wanted);
	}
	if (wanted > BENCH_MAX_MESSAGE) {
		/* The request is not from this program's client, but it is answered all the
		 * same. */
		ep->base.protocol_errors++;
		wanted = 0;
	}
	ep->base.protocol_errors += damaged(ep, msg);
	homa_release(ep->h, msg);
	ep->base.served++;
	ep->base.served_rx_bytes += length;
	if (wanted)
		length = wanted;
	ep->base.served_tx_bytes += length;
	if (homa_reply(ep->h, msg, bench_payload, length))
		ep->replies_failed++;
}

static void handle(struct homa_endpoint *ep, struct homa_message *msg)
{
	uint32_t length = (uint32_t)msg->length;
	int error;

	switch (msg->kind) {
	case HOMA_REQUEST:
		serve(ep, msg);
		break;
	case HOMA_RESPONSE:
		error = damaged(ep, msg) ? -EBADMSG : 0;
		homa_release(ep->h, msg);
		ep->base.done(ep->base.arg, (uint32_t)msg->cookie, error, length);
		break;
	case HOMA_ERROR:
		homa_release(ep->h, msg);
		ep->base.done(ep->base.arg, (uint32_t)msg->cookie, msg->error, 0);
		break;
	}
}

static int homa_bench_poll(struct bench_endpoint *base, uint64_t wait_ns)
{
	struct homa_endpoint *ep = (struct homa_endpoint *)base;
	struct homa_message msg;
	size_t bytes = 0;
	int n = 0, ret;

	/* The library decides how to wait, see spin_us in homa_bench_open(). */
	ret = homa_receive_ns(ep->h, &msg, 0, (int64_t)wait_ns);
	while (!ret) {
		bytes += msg.length;
		handle(ep, &msg);
		if (++n == BATCH || bytes >= BATCH_BYTES)
			break;
		ret = homa_receive(ep->h, &msg, HOMA_RECV_NONBLOCK, 0);
	}
	return n || ret == -EAGAIN || ret == -EINTR ? n : ret;
}

/* Counters that are worth a name of their own in the result. */
struct metrics {
	cJSON *json;
	uint64_t retransmits;
};

static void visit(void *arg, const char *name, const char *description,
		  uint64_t value)
{
	struct metrics *m = arg;

	(void)description;
	if (strcmp(name, "tx_retransmits") == 0)
		m->retransmits = value;
	if (value)
		cJSON_AddNumberToObject(m->json, name, (double)value);
}

static int64_t homa_bench_report(struct bench_endpoint *base, cJSON *json)
{
	struct homa_endpoint *ep = (struct homa_endpoint *)base;
	struct metrics m = { .json = cJSON_CreateObject() };

	cJSON_AddStringToObject(json, "via", homa_via(ep->h));
	cJSON_AddStringToObject(json, "via_reason", homa_via_reason(ep->h));
	cJSON_AddNumberToObject(json, "udp_port", homa_udp_port(ep->h));
	cJSON_AddNumberToObject(json, "replies_failed",
				(double)ep->replies_failed);
	homa_metrics(ep->h, visit, &m);
	cJSON_AddItemToObject(json, "metrics", m.json);
	return (int64_t)m.retransmits;
}

static void homa_bench_close(struct bench_endpoint *base)
{
	struct homa_endpoint *ep = (struct homa_endpoint *)base;

	if (ep->h)
		homa_close(ep->h);
	free(ep->peers);
	free(ep->ids);
	free(ep);
}

/* Finds the address part of --bind, which is "" if any address will do. */
static int local_address(const struct bench_config *config, char *host,
			 size_t size, uint16_t *port, char *err, size_t errlen)
{
	struct sockaddr_storage addr;
	uint32_t addrlen;
	const void *ip;

	host[0] = '\0';
	*port = 0;
	if (!config->bind)
		return 0;
	if (bench_resolve(config->bind, &addr, &addrlen)) {
		snprintf(err, errlen,
			 "--bind '%s' is not ADDRESS:PORT with a numeric address",
			 config->bind);
		return -EINVAL;
	}
	*port = bench_port(&addr);
	if (config->bind[0] == ':')
		return 0;
	ip = addr.ss_family == AF_INET6 ?
		     (const void *)&((struct sockaddr_in6 *)&addr)->sin6_addr :
		     (const void *)&((struct sockaddr_in *)&addr)->sin_addr;
	inet_ntop(addr.ss_family, ip, host, (socklen_t)size);
	return 0;
}

/*
 * A client that names no address of its own uses the one from which the kernel would reach
 * its first peer; connecting a datagram socket asks for it without sending anything. If
 * there is none, libhoma will complain.
 */
static void address_towards_peer(const struct homa_endpoint *ep, char *host,
				 size_t size)
{
	struct sockaddr_storage addr = ep->peers[0];
	socklen_t len = sizeof(addr);
	int fd = socket(addr.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	if (!connect(fd, (struct sockaddr *)&addr, len) &&
	    !getsockname(fd, (struct sockaddr *)&addr, &len))
		getnameinfo((struct sockaddr *)&addr, len, host,
			    (socklen_t)size, NULL, 0, NI_NUMERICHOST);
	close(fd);
}

static int open_handle(struct homa_endpoint *ep, char *err, size_t errlen)
{
	const struct bench_config *config = ep->base.config;
	bool busy = config->wait == BENCH_WAIT_SPIN ||
		    config->wait == BENCH_WAIT_YIELD;
	struct homa_options options = {
		.via = config->via,
		.interface = config->interface,
		.udp_port = (uint16_t)config->udp_port,
		.link_mbps = (uint32_t)(config->link_bps / 1e6),
		.rcvbuf = config->rcvbuf,
		.spin_us = config->spin_us ? config->spin_us :
			   busy		   ? -1 :
					     0,
		.flags = busy ? HOMA_OPEN_NO_THREAD : 0,
		.config = config->homa_config,
	};
	struct sockaddr_storage self;
	char host[NI_MAXHOST];
	uint16_t port;
	int ret;

	ret = local_address(config, host, sizeof(host), &port, err, errlen);
	if (ret)
		return ret;
	if (!host[0] && config->peer_count && !config->interface)
		address_towards_peer(ep, host, sizeof(host));
	options.address = host[0] ? host : NULL;
	ret = homa_open(&ep->h, &options);
	if (ret) {
		snprintf(err, errlen, "%s", homa_open_error());
		return ret;
	}
	if (!(config->role & BENCH_SERVER))
		return 0;
	ret = homa_bind(ep->h, port);
	if (ret) {
		snprintf(err, errlen, "--bind %s: %s", config->bind,
			 homa_error(ep->h));
		return ret;
	}
	ret = homa_getsockname(ep->h, &self);
	if (ret)
		return ret;
	homa_format_address(&self, ep->base.where, sizeof(ep->base.where));
	snprintf(ep->base.where + strlen(ep->base.where),
		 sizeof(ep->base.where) - strlen(ep->base.where), " via %s",
		 homa_via(ep->h));
	return 0;
}

static int parse_peers(struct homa_endpoint *ep, char *err, size_t errlen)
{
	const struct bench_config *config = ep->base.config;
	uint32_t i;

	for (i = 0; i < config->peer_count; i++) {
		if (homa_parse_address(config->peers[i], &ep->peers[i])) {
			snprintf(err, errlen,
				 "peer '%s' is not ADDRESS:PORT or ADDRESS:PORT/UDPPORT with a numeric address",
				 config->peers[i]);
			return -EINVAL;
		}
	}
	return 0;
}

static int homa_bench_open(struct bench_endpoint **out,
			   const struct bench_config *config, char *err,
			   size_t errlen)
{
	struct homa_endpoint *ep = calloc(1, sizeof(*ep));
	int ret = -ENOMEM;

	if (!ep)
		return -ENOMEM;
	ep->base.config = config;
	if (config->check)
		fill_payload();
	/* The length of the response is in the request's bytes. */
	if (config->response)
		ep->request_flags = HOMA_BORROW;
	ep->peers = calloc(config->peer_count + 1, sizeof(*ep->peers));
	ep->ids = calloc(SLOT_MASK + 1, sizeof(*ep->ids));
	if (ep->peers && ep->ids)
		ret = parse_peers(ep, err, errlen);
	if (!ret)
		ret = open_handle(ep, err, errlen);
	if (ret) {
		homa_bench_close(&ep->base);
		return ret;
	}
	*out = &ep->base;
	return 0;
}

const struct bench_transport bench_homa = {
	.name = "homa",
	.summary =
		"Homa through libhoma (--via kernel, service, afxdp, message, udp)",
	.max_message = max_message,
	.open = homa_bench_open,
	.request = homa_bench_request,
	.abandon = homa_bench_abandon,
	.poll = homa_bench_poll,
	.report = homa_bench_report,
	.close = homa_bench_close,
};
