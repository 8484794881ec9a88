// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The servers of a TCP endpoint and its connections to them: streams that all RPCs share, or a
 * pool of which each RPC has one to itself; see tcp.c. Both are opened before the run.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "tcp_peers.h"
#include "tcp_setup.h"
#include "unix.h"

/* Connections to each peer that a pool keeps ready beyond those in use. */
#define POOL_RESERVE 4

struct tcp_conn *tcp_peer_connect(struct tcp_endpoint *ep, uint32_t index,
				  int *error)
{
	struct tcp_peer *peer = &ep->peers[index];
	struct tcp_conn *conn;
	bool connecting;
	int fd;

	/* Without a connection the RPC cannot be sent, and the run goes on. */
	fd = ep->pool && peer->conn_count >= ep->peer_limit ?
		     -ENOBUFS :
		     tcp_setup_connect(ep->base.config, &peer->addr,
				       peer->addrlen, &connecting);
	if (fd < 0) {
		*error = fd == -EMFILE || fd == -ENFILE ? -ENOBUFS : fd;
		return NULL;
	}
	conn = tcp_conn_new(ep, fd, false, connecting, index);
	if (!conn) {
		*error = -ENOMEM;
		return NULL;
	}
	ep->opened++;
	peer->conn_count++;
	return conn;
}

void tcp_pool_push(struct tcp_peer *peer, struct tcp_conn *conn)
{
	conn->next_idle = peer->idle;
	peer->idle = conn;
	peer->idle_count++;
}

struct tcp_conn *tcp_pool_pop(struct tcp_peer *peer)
{
	struct tcp_conn *conn = peer->idle;

	if (conn) {
		peer->idle = conn->next_idle;
		peer->idle_count--;
	}
	return conn;
}

/* Removes a failed connection from the idle list, if it is there. The list is short, and
 * failures are rare. */
void tcp_pool_remove(struct tcp_peer *peer, struct tcp_conn *conn)
{
	struct tcp_conn **p;

	for (p = &peer->idle; *p; p = &(*p)->next_idle) {
		if (*p == conn) {
			*p = conn->next_idle;
			peer->idle_count--;
			return;
		}
	}
}

/* Opens connections ahead of need. */
void tcp_pool_refill(struct tcp_endpoint *ep, uint32_t index)
{
	struct tcp_peer *peer = &ep->peers[index];
	int error;

	while (peer->idle_count + peer->opening < POOL_RESERVE) {
		struct tcp_conn *conn = tcp_peer_connect(ep, index, &error);

		if (!conn)
			return;
		ep->grown++;
		if (conn->connecting)
			peer->opening++;
		else
			tcp_pool_push(peer, conn);
	}
}

/* Opens stream @i to a peer unless it is there. Returns it, or NULL and the negative errno in
 * @error. */
struct tcp_conn *tcp_peer_stream(struct tcp_endpoint *ep, uint32_t index,
				 uint32_t i, int *error)
{
	struct tcp_peer *peer = &ep->peers[index];
	struct tcp_conn *conn = peer->streams[i];

	if (conn && !conn->error)
		return conn;
	conn = tcp_peer_connect(ep, index, error);
	if (!conn)
		return NULL;
	ep->grown++;
	conn->index = i;
	peer->streams[i] = conn;
	return conn;
}

/* Fills the pools before the run. */
int tcp_pool_prepare(struct bench_endpoint *base)
{
	struct tcp_endpoint *ep = (struct tcp_endpoint *)base;
	uint64_t deadline = bench_now() + bench_ns(base->config->connect_timeout);
	uint32_t i, have, want = base->config->connections;
	int error = 0;

	if (want > ep->peer_limit)
		want = ep->peer_limit;

	for (i = 0; i < base->config->peer_count; i++) {
		struct tcp_peer *peer = &ep->peers[i];

		for (have = peer->idle_count + peer->opening; have < want;
		     have++) {
			struct tcp_conn *conn = tcp_peer_connect(ep, i, &error);

			if (!conn && error == -ENOBUFS)
				break;
			if (!conn)
				return error;
			if (conn->connecting)
				peer->opening++;
			else
				tcp_pool_push(peer, conn);
		}
	}
	for (i = 0; i < base->config->peer_count; i++)
		while (ep->peers[i].opening && !bench_stop) {
			if (bench_now() > deadline)
				return -ETIMEDOUT;
			base->transport->poll(base, BENCH_NS_PER_S / 100);
		}
	ep->grown = 0;
	return 0;
}

static bool streams_connect(const struct tcp_endpoint *ep)
{
	const struct bench_config *config = ep->base.config;
	uint32_t i, k;

	for (i = 0; i < config->peer_count; i++)
		for (k = 0; k < config->connections; k++)
			if (ep->peers[i].streams[k] &&
			    ep->peers[i].streams[k]->connecting)
				return true;
	return false;
}

/* Opens all streams before the run: an RPC that opened its own would take a round trip more. */
int tcp_streams_prepare(struct bench_endpoint *base)
{
	struct tcp_endpoint *ep = (struct tcp_endpoint *)base;
	const struct bench_config *config = base->config;
	uint64_t deadline = bench_now() + bench_ns(config->connect_timeout);
	uint32_t i, k;
	int error = 0;

	for (i = 0; i < config->peer_count; i++)
		for (k = 0; k < config->connections; k++)
			if (!tcp_peer_stream(ep, i, k, &error) &&
			    error != -ENOBUFS)
				return error;
	while (streams_connect(ep) && !bench_stop) {
		if (bench_now() > deadline)
			return -ETIMEDOUT;
		base->transport->poll(base, BENCH_NS_PER_S / 100);
	}
	ep->grown = 0;
	return 0;
}

int tcp_peers_open(struct tcp_endpoint *ep, char *err, size_t errlen)
{
	const struct bench_config *config = ep->base.config;
	uint32_t i;

	ep->peers = calloc(config->peer_count + 1, sizeof(*ep->peers));
	if (!ep->peers)
		return -ENOMEM;
	for (i = 0; i < config->peer_count; i++) {
		struct tcp_peer *peer = &ep->peers[i];

		if (tcp_setup_resolve(config, "peer", config->peers[i],
				      &peer->addr, &peer->addrlen, err, errlen))
			return -EINVAL;
		if (!bench_is_unix(config) && !bench_port(&peer->addr)) {
			snprintf(err, errlen,
				 "peer '%s' is not ADDRESS:PORT: it has no port",
				 config->peers[i]);
			return -EINVAL;
		}
		peer->streams =
			calloc(config->connections, sizeof(struct tcp_conn *));
		if (!peer->streams)
			return -ENOMEM;
	}
	return 0;
}
