/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a transport must do to be measured. One thread owns an endpoint; an
 * endpoint serves requests, sends them, or both. Nothing blocks but poll, which
 * also answers requests that arrived. The load generator knows RPCs only by
 * the cookie it gave them.
 *
 * The application's part is the same for all: a request says how long its
 * response shall be (0: as long as itself), payload bytes are arbitrary.
 */
#ifndef HOMA_BENCH_TRANSPORT_H
#define HOMA_BENCH_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cjson/cJSON.h>

#include "bench.h"

struct bench_transport;

/**
 * struct bench_endpoint - head of every transport's endpoint
 * @done: called from poll once for each RPC that ended, with its cookie, 0 or a negative
 *	errno, and the length of the response. It may send the next request.
 * @peer_failed: called from poll when all RPCs with a peer have failed but the transport
 *	does not know which they are (UDP).
 * @arg: first argument of both.
 * @served: number of requests that were answered.
 * @served_rx_bytes: payload of these requests.
 * @served_tx_bytes: payload of their responses.
 * @protocol_errors: number of connections closed and datagrams dropped because their
 *	contents made no sense.
 * @where: what a server prints when it is ready.
 */
struct bench_endpoint {
	const struct bench_transport *transport;
	const struct bench_config *config;
	void (*done)(void *arg, uint32_t cookie, int error, uint32_t length);
	void (*peer_failed)(void *arg, uint32_t peer, int error);
	void *arg;
	uint64_t served;
	uint64_t served_rx_bytes;
	uint64_t served_tx_bytes;
	uint64_t protocol_errors;
	char where[160];
};

/**
 * struct bench_transport - the operations
 * @max_message: longest message in bytes with this configuration.
 * @open: make an endpoint, listening if it serves. Return: 0, or a negative
 *	errno and one sentence in @err (what is wrong and how to mend it).
 * @prepare: called before the run, when every peer has answered a probe; NULL: there is
 *	nothing to prepare.
 * @request: send a request; never calls @done. Return: 0 or a negative errno.
 * @abandon: forget an RPC for which nobody waits any more. May be NULL.
 * @poll: handle what has arrived; if nothing has, wait for it at most
 *	@wait_ns. Return: number of messages handled, 0 if none, or a negative
 *	errno when the endpoint is unusable.
 * @report: add the transport's own counters to @json; return the number of
 *	retransmissions, or -1 if it does not know.
 * @close: release everything.
 */
struct bench_transport {
	const char *name;
	const char *summary;
	uint32_t (*max_message)(const struct bench_config *config);
	int (*open)(struct bench_endpoint **out,
		    const struct bench_config *config, char *err, size_t errlen);
	int (*prepare)(struct bench_endpoint *ep);
	int (*request)(struct bench_endpoint *ep, uint32_t peer, uint32_t size,
		       uint32_t response, uint32_t cookie);
	void (*abandon)(struct bench_endpoint *ep, uint32_t cookie);
	int (*poll)(struct bench_endpoint *ep, uint64_t wait_ns);
	int64_t (*report)(struct bench_endpoint *ep, cJSON *json);
	void (*close)(struct bench_endpoint *ep);
};

extern const struct bench_transport bench_tcp;
extern const struct bench_transport bench_tcp_pool;
extern const struct bench_transport bench_udp;
extern const struct bench_transport bench_unix;
extern const struct bench_transport bench_unix_packet;
#ifdef HAVE_LIBHOMA
extern const struct bench_transport bench_homa;
#endif

/** bench_transports - NULL-terminated; those this program was built with */
extern const struct bench_transport *const bench_transports[];

/** bench_transport_find() - return the transport of this name, or NULL */
const struct bench_transport *bench_transport_find(const char *name);

/** Room in front of bench_payload where a transport may write its header. */
#define BENCH_HEADROOM 64

/**
 * bench_payload - the bytes of every message: BENCH_MAX_MESSAGE of them
 * preceded by BENCH_HEADROOM scratch bytes. Sending from one buffer keeps the
 * generator's cost per RPC independent of the message length.
 */
extern uint8_t *const bench_payload;

/**
 * struct bench_frame - header of a message on TCP and UDP, network byte order
 * on the wire
 */
struct bench_frame {
	uint32_t length; /* payload bytes that follow */
	/* client's name of the RPC, returned with the response */
	uint32_t cookie;
	uint32_t response; /* wanted bytes of the response; 0: @length */
};

#define BENCH_FRAME_BYTES 12

/** bench_frame_put() - write a header right before the payload */
uint8_t *bench_frame_put(const struct bench_frame *frame);

/** bench_frame_get() - decode a header; false if its lengths are not those of a message */
bool bench_frame_get(struct bench_frame *frame, const uint8_t *bytes);

/**
 * bench_epoll() - epoll_wait() with a time in ns; returns the number of events, 0 (also for
 * EINTR) or -errno
 */
struct epoll_event;
int bench_epoll(int epfd, struct epoll_event *events, int max, uint64_t wait_ns);

struct sockaddr_storage;
/**
 * bench_resolve() - read "ADDRESS:PORT", "[ADDRESS]:PORT", ":PORT" or "ADDRESS" Numeric
 * only. Return: 0 or -EINVAL.
 */
int bench_resolve(const char *text, struct sockaddr_storage *addr,
		  uint32_t *addrlen);

/** bench_port() - return the port of an address, host order */
uint16_t bench_port(const struct sockaddr_storage *addr);

/** bench_address_text() - write an address as text that bench_resolve() reads */
void bench_address_text(const struct sockaddr_storage *addr, char *text,
			size_t size);

#endif
