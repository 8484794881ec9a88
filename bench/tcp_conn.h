/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * One TCP connection that carries length-prefixed messages in both directions.
 * It reads as much as there is; it writes each message with one system call,
 * as an application would that sends an RPC when it has one, unless told to
 * coalesce. How connections are chosen for RPCs is tcp.c's business.
 */
#ifndef HOMA_BENCH_TCP_CONN_H
#define HOMA_BENCH_TCP_CONN_H

#include "bench_transport.h"

/** Bytes read at once. */
#define TCP_READ_BYTES (128 * 1024)

/**
 * struct tcp_ring - a growing FIFO of frames
 * @items: @room of them, a power of two; @head .. @tail are in use.
 */
struct tcp_ring {
	struct bench_frame *items;
	uint32_t room;
	uint32_t head;
	uint32_t tail;
};

struct tcp_endpoint;

/**
 * struct tcp_conn - a connection
 * @next, @prev: all connections of the endpoint.
 * @next_idle: pool: the next one without an RPC.
 * @index: position in its peer's list (streams).
 * @accepted: we are the server on it.
 * @connecting: SYN sent; frames wait in @out.
 * @error: negative errno; set once, closed at the end of poll.
 * @writing: EPOLLOUT is asked for.
 * @dirty: coalescing: on the endpoint's list of connections to flush.
 * @head, @head_have, @frame, @left: message being read: header bytes, then
 *	@left payload bytes to come.
 * @out: messages to send; @out_sent bytes of the first have been.
 * @waiting: requests sent on it, in order; responses come in that order.
 */
struct tcp_conn {
	struct tcp_conn *next, *prev, *next_idle, *next_dirty, *next_doomed;
	struct tcp_endpoint *ep;
	int fd;
	int error;
	uint32_t peer;
	uint32_t index;
	bool accepted, connecting, writing, dirty, doomed;
	uint8_t head[BENCH_FRAME_BYTES];
	uint32_t head_have;
	struct bench_frame frame;
	uint32_t left;
	struct tcp_ring out;
	uint32_t out_sent;
	struct tcp_ring waiting;
};

/**
 * struct tcp_endpoint - the transport's endpoint
 * @conns: all connections; @conn_count of them, accepted up to @conn_limit.
 * @peer_limit: "tcp-pool": connections that we make to each peer at most.
 * @spare_fd: what is given up to accept one that is then closed.
 * @refused: so many were.
 * @doomed: failed, to be closed at the end of poll.
 * @dirty: coalescing: to be flushed at the end of poll.
 * @retransmits, @retransmitted_bytes: of closed connections.
 */
struct tcp_endpoint {
	struct bench_endpoint base;
	bool pool;
	int epfd;
	int listen_fd;
	struct tcp_conn *conns, *doomed, *dirty;
	uint32_t conn_count;
	uint32_t conn_limit, peer_limit;
	int spare_fd;
	uint64_t refused;
	struct tcp_peer *peers;
	uint64_t retransmits;
	uint64_t retransmitted_bytes;
	uint64_t opened, accepted_count, grown, writes, reads;
	uint32_t idle_polls;
	uint8_t *buffer;
};

/** tcp_conn_new() - take over a socket; NULL if out of memory (socket closed) */
struct tcp_conn *tcp_conn_new(struct tcp_endpoint *ep, int fd, bool accepted,
			      bool connecting, uint32_t peer);

/** tcp_conn_free() - close and release; its RPCs must have been failed */
void tcp_conn_free(struct tcp_conn *conn);

/** tcp_conn_fail() - it is unusable; tcp.c cleans up at the end of poll */
void tcp_conn_fail(struct tcp_conn *conn, int error);

/** tcp_conn_send() - send or queue a message. Return: 0 or a negative errno */
int tcp_conn_send(struct tcp_conn *conn, const struct bench_frame *frame);

/** tcp_conn_flush() - send what is queued as far as the socket takes it */
void tcp_conn_flush(struct tcp_conn *conn);

/** tcp_conn_read() - one read; returns messages handled, -EAGAIN if none came */
int tcp_conn_read(struct tcp_conn *conn, bool block);

/** tcp_conn_message() - tcp.c: a whole message was read */
void tcp_conn_message(struct tcp_conn *conn, const struct bench_frame *frame);

/** tcp_conn_retransmits() - add its TCP_INFO to the endpoint's sums */
void tcp_conn_retransmits(const struct tcp_conn *conn, uint64_t *segments,
			  uint64_t *bytes);

/** tcp_ring_push() - append. Return: 0 or -ENOMEM */
int tcp_ring_push(struct tcp_ring *ring, const struct bench_frame *frame);

static inline bool tcp_ring_empty(const struct tcp_ring *ring)
{
	return ring->head == ring->tail;
}

static inline struct bench_frame *tcp_ring_first(const struct tcp_ring *ring)
{
	return &ring->items[ring->head & (ring->room - 1)];
}

#endif
