/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The servers of a TCP endpoint and its connections to them.
 */
#ifndef BENCH_TCP_PEERS_H
#define BENCH_TCP_PEERS_H

#include <sys/socket.h>

#include "tcp_conn.h"

/**
 * struct tcp_peer - a server
 * @addr: Its address.
 * @addrlen: The size of @addr, bytes.
 * @streams: With "tcp", its connections; an entry is NULL where there is none.
 * @turn: The index of the stream that the next RPC takes.
 * @idle: With "tcp-pool", the list of connections without an RPC.
 * @idle_count: The number of connections in @idle.
 * @opening: The number of handshakes under way for the reserve.
 * @conn_count: The number of all connections to it.
 */
struct tcp_peer {
	struct sockaddr_storage addr;
	uint32_t addrlen;
	struct tcp_conn **streams;
	uint32_t turn;
	struct tcp_conn *idle;
	uint32_t idle_count;
	uint32_t opening;
	uint32_t conn_count;
};

/**
 * tcp_peers_open() - read the addresses of all peers
 * Return: 0 or a negative errno, with the reason in @err.
 */
int tcp_peers_open(struct tcp_endpoint *ep, char *err, size_t errlen);

/**
 * tcp_peer_connect() - open a connection to peer @index
 * @error: set to a negative errno on failure.
 * Return: the connection, whose handshake may be under way, or NULL.
 */
struct tcp_conn *tcp_peer_connect(struct tcp_endpoint *ep, uint32_t index,
				  int *error);

/**
 * tcp_peer_stream() - return stream @i to peer @index, which is opened unless it is there
 * @error: set to a negative errno on failure.
 * Return: the stream or NULL.
 */
struct tcp_conn *tcp_peer_stream(struct tcp_endpoint *ep, uint32_t index,
				 uint32_t i, int *error);

/** tcp_streams_prepare() - open all streams; 0 or a negative errno */
int tcp_streams_prepare(struct bench_endpoint *base);

/** tcp_pool_push() - note that a connection of a pool has no RPC */
void tcp_pool_push(struct tcp_peer *peer, struct tcp_conn *conn);

/** tcp_pool_pop() - take a connection out of a pool; NULL: none is idle */
struct tcp_conn *tcp_pool_pop(struct tcp_peer *peer);

/**
 * tcp_pool_remove() - take a failed connection out of its pool, if it is idle
 *
 * The list is short, and failures are rare.
 */
void tcp_pool_remove(struct tcp_peer *peer, struct tcp_conn *conn);

/** tcp_pool_refill() - open connections to peer @index ahead of need */
void tcp_pool_refill(struct tcp_endpoint *ep, uint32_t index);

/** tcp_pool_prepare() - open the connections that each pool has at first; 0 or a negative errno */
int tcp_pool_prepare(struct bench_endpoint *base);

#endif
