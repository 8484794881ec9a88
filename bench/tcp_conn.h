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
 * @items: the frames.
 * @room: number of entries of @items, a power of two.
 * @head: position of the first frame; it counts up for ever.
 * @tail: position behind the last frame; it counts up for ever.
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
 * @next: next connection of the endpoint.
 * @prev: the one before.
 * @next_idle: pool: next connection without an RPC.
 * @next_dirty: coalescing: next connection to flush.
 * @next_doomed: next connection that has failed.
 * @error: negative errno if the connection has failed; set once.
 * @index: "tcp": position in its peer's list of streams.
 * @accepted: the peer opened the connection, so this end is the server.
 * @connecting: the handshake is under way; frames wait in @out.
 * @writing: EPOLLOUT is asked for.
 * @dirty: coalescing: the connection is in the endpoint's list of those to flush.
 * @doomed: the connection has failed and will be closed at the end of poll.
 * @head: header bytes of the message that is being read.
 * @head_have: number of bytes in @head.
 * @frame: decoded header of that message.
 * @left: number of its payload bytes that have not come.
 * @out: messages to send.
 * @out_sent: number of bytes of the first of them that were sent.
 * @waiting: requests that were sent on it, in order; responses come in that order.
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
 * @conns: first of all connections.
 * @doomed: first connection that has failed; closed at the end of poll.
 * @dirty: coalescing: first connection to flush at the end of poll.
 * @conn_count: number of connections.
 * @conn_limit: number of connections up to which new ones are accepted.
 * @peer_limit: "tcp-pool": most connections that are opened to each peer.
 * @spare_fd: descriptor that is closed to accept a connection for which there is none; that
 *	connection is closed at once.
 * @refused: number of connections that were closed so.
 * @retransmits: number of retransmissions of closed connections.
 * @retransmitted_bytes: bytes of these.
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

/** tcp_conn_free() - close and release a connection, whose RPCs must have been failed */
void tcp_conn_free(struct tcp_conn *conn);

/**
 * tcp_conn_fail() - note that a connection is unusable; tcp.c cleans up at the end of poll
 */
void tcp_conn_fail(struct tcp_conn *conn, int error);

/** tcp_conn_send() - send or queue a message. Return: 0 or a negative errno */
int tcp_conn_send(struct tcp_conn *conn, const struct bench_frame *frame);

/** tcp_conn_flush() - send what is queued as far as the socket takes it */
void tcp_conn_flush(struct tcp_conn *conn);

/**
 * tcp_conn_read() - read once; returns the number of messages handled, -EAGAIN if none came
 */
int tcp_conn_read(struct tcp_conn *conn, bool block);

/** tcp_conn_message() - handle a whole message that was read; in tcp.c */
void tcp_conn_message(struct tcp_conn *conn, const struct bench_frame *frame);

/** tcp_conn_retransmits() - add the connection's TCP_INFO to the endpoint's sums */
void tcp_conn_retransmits(const struct tcp_conn *conn, uint64_t *segments,
			  uint64_t *bytes);

/** tcp_ring_push() - append a frame. Return: 0 or -ENOMEM */
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
