/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The client: one thread, one epoll set, so many connections as it was told. client.c opens
 * them and runs the loop; requests.c and bulk.c say what they carry.
 */
#ifndef HOMA_FLOWS_REQUESTER_H
#define HOMA_FLOWS_REQUESTER_H

#include "flow_load.h"
#include "kv.h"
#include "prng.h"

/**
 * struct flows_request - a request that has no response yet
 * @due_ns: when it should have left.
 * @left: bytes of its response that have not come.
 * @stamp: number that an echo must have in its first bytes.
 */
struct flows_request {
	uint64_t due_ns;
	uint32_t left;
	uint32_t stamp;
};

/**
 * struct flows_conn - a connection
 * @fd: its socket, -1: there is none.
 * @index: which of the client's connections it is.
 * @connecting: the handshake is under way since @since_ns.
 * @watched: the epoll events that it is registered for.
 * @head, @tail: numbers of the oldest request without a response, and of the next one;
 *	modulo the depth they are indices of @requests.
 * @sent: requests on this connection since it was opened.
 * @bytes: received or sent in the window; @mark: their number 100 ms ago.
 * @out, @out_len: what could not be sent at once, and how many bytes of it.
 */
struct flows_conn {
	int fd;
	uint32_t index;
	bool connecting;
	uint64_t since_ns;
	uint32_t watched;
	uint32_t head;
	uint32_t tail;
	uint32_t sent;
	uint64_t bytes;
	uint64_t mark;
	uint8_t *out;
	uint32_t out_len;
	struct flows_request *requests;
};

/** How long before the window closes each part of it lasts, in which bytes are counted. */
#define FLOWS_INTERVAL_NS 100000000u

/**
 * struct flows_client - the client's whole state
 * @conns: its connections; @open of them are established, @pending are being opened.
 * @measuring: the window is open.
 * @opens_ns, @closes_ns: when the window opens and closes; known when all are established.
 * @next_ns: open loop: when the next request is due. @turn: the connection that it takes.
 * @zipf: sums of the keys' probabilities (exponent 0.9), FLOWS_KV.
 * @buf: what is being received or sent.
 */
struct flows_client {
	const struct flows_config *config;
	struct flows_result *result;
	struct homa_prng rng;
	int epoll;
	struct flows_conn *conns;
	uint32_t open;
	uint32_t pending;
	uint32_t begun;
	bool measuring;
	uint64_t opens_ns;
	uint64_t closes_ns;
	uint64_t next_ns;
	uint64_t interval_ns;
	uint32_t turn;
	double *zipf;
	uint8_t buf[2 * FLOWS_MAX_SIZE];
};

/** flows_watch() - be told of these events. Return: 0 or a negative errno */
int flows_watch(struct flows_client *client, struct flows_conn *conn,
		uint32_t events);

/** flows_requests_init() - what FLOWS_ECHO and FLOWS_KV need. Return: 0 or -ENOMEM */
int flows_requests_init(struct flows_client *client);

/** flows_requests_fill() - send as many as the depth allows. Return: 0 or a negative errno */
int flows_requests_fill(struct flows_client *client, struct flows_conn *conn,
			uint64_t now);

/** flows_requests_due() - open loop: send all that are due. Return: ns until the next */
uint64_t flows_requests_due(struct flows_client *client, uint64_t now);

/**
 * flows_requests_event() - responses have come, or there is room again
 * Return: 0, 1 when the connection has carried all it should, or a negative errno
 */
int flows_requests_event(struct flows_client *client, struct flows_conn *conn,
			 uint32_t events);

/** flows_bulk_event() - send or receive what goes. Return: 0 or a negative errno */
int flows_bulk_event(struct flows_client *client, struct flows_conn *conn,
		     uint32_t events);

/** flows_bulk_tick() - each 100 ms of the window: note what each connection has received */
void flows_bulk_tick(struct flows_client *client);

#endif
