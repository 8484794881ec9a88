/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The client: one thread, one epoll set, and the number of connections that it was told. client.c
 * opens them and runs the loop; requests.c and bulk.c say what they carry.
 */
#ifndef HOMA_FLOWS_REQUESTER_H
#define HOMA_FLOWS_REQUESTER_H

#include "flow_load.h"
#include "kv.h"
#include "prng.h"

/**
 * struct flows_request - a request that has no response yet
 * @due_ns: time at which it should have been sent.
 * @left: number of bytes of its response that have not come.
 * @stamp: number that an echo must have in its first bytes.
 */
struct flows_request {
	uint64_t due_ns;
	uint32_t left;
	uint32_t stamp;
};

/**
 * struct flows_conn - a connection
 * @fd: its socket; -1: there is none.
 * @index: index of the connection in the client.
 * @connecting: the handshake is under way.
 * @since_ns: time at which the handshake began.
 * @watched: epoll events that the socket is registered for.
 * @head: number of the oldest request without a response; modulo the depth it is an index
 *	of @requests.
 * @tail: number of the next request.
 * @sent: number of requests on this connection since it was opened.
 * @bytes: bytes that were received or sent in the window.
 * @mark: value that @bytes had 100 ms ago.
 * @out: bytes that could not be sent at once.
 * @out_len: number of bytes in @out.
 * @requests: requests that have no response yet, a ring.
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

/** Length of the parts of the window in which bytes are counted. */
#define FLOWS_INTERVAL_NS 100000000u

/**
 * struct flows_client - the client's whole state
 * @conns: the connections.
 * @open: number of connections that are established.
 * @pending: number of connections that are being opened.
 * @measuring: the window is open.
 * @opens_ns: time at which the window opens; known when all connections are established.
 * @closes_ns: time at which the window closes; known likewise.
 * @next_ns: open loop: time at which the next request is due.
 * @turn: open loop: index of the connection that takes it.
 * @zipf: sums of the keys' probabilities (exponent 0.9), FLOWS_KV.
 * @buf: bytes that are being received or sent.
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

/** flows_watch() - register for these events. Return: 0 or a negative errno */
int flows_watch(struct flows_client *client, struct flows_conn *conn,
		uint32_t events);

/** flows_requests_init() - make what FLOWS_ECHO and FLOWS_KV need. Return: 0 or -ENOMEM */
int flows_requests_init(struct flows_client *client);

/**
 * flows_requests_fill() - send as many requests as the depth allows. Return: 0 or a
 * negative errno
 */
int flows_requests_fill(struct flows_client *client, struct flows_conn *conn,
			uint64_t now);

/**
 * flows_requests_due() - open loop: send all requests that are due. Return: ns until the
 * next one
 */
uint64_t flows_requests_due(struct flows_client *client, uint64_t now);

/**
 * flows_requests_event() - take in responses, or send again as there is room Return: 0, 1
 * when the connection has carried all it should, or a negative errno
 */
int flows_requests_event(struct flows_client *client, struct flows_conn *conn,
			 uint32_t events);

/**
 * flows_bulk_event() - send or receive as much as possible. Return: 0 or a negative errno
 */
int flows_bulk_event(struct flows_client *client, struct flows_conn *conn,
		     uint32_t events);

/**
 * flows_bulk_tick() - note what each connection has received; called every 100 ms of the
 * window
 */
void flows_bulk_tick(struct flows_client *client);

#endif
