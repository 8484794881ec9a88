/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Sockets: ports, and what belongs to them.
 */
#ifndef HOMA_SOCK_H
#define HOMA_SOCK_H

#include "homa_heap.h"
#include "homa_list.h"
#include "homa_pool.h"

/* Sockets are found in so many lists, unless limits say otherwise. */
#define HOMA_SOCK_BUCKETS 256u

/*
 * struct homa_sock - a port
 */
struct homa_sock {
	/* Links the socket into its bucket; sock table lock. */
	struct homa_list hash;
	/* One for being open, one for each RPC and each caller that looks at it. */
	struct homa_ref refs;
	struct homa_lock lock;
	/* Its port. Sock table lock; read anywhere. */
	u16 port;
	/* It takes requests. The host writes it; read anywhere. */
	bool server;
	/* It takes requests of IPv4 peers only. The host writes it; read anywhere. */
	bool only_v4;
	/* homa_sock_close() has begun. Sock lock; read anywhere. */
	bool closing;
	/* Whole messages are given away at once, see homa_sock_give(); read anywhere. */
	bool give;
	/* No DATA is taken now, see homa_sock_refuse(); read anywhere. */
	bool refuse;
	/* Its RPCs that are not dead; sock lock. */
	struct homa_list rpcs;
	/* Messages that wait for pages, fewest bytes left first; sock lock. */
	struct homa_heap starving;
	/* Incomplete messages that have pages, in the order in which they are looked at;
	 * sock lock. */
	struct homa_list holders;
	/* So many of @holders are of several pages; sock lock. */
	u32 num_long;
	/* So many pages were promised to these and not yet taken; sock lock. */
	u32 owed;
	/* @holders are not looked at before this time, ns; sock lock. */
	u64 reclaim_at;
	/* Where messages go; NULL: the host places them. Sock lock; read anywhere. */
	struct homa_pool *pool;
	/* Who pays for its RPCs; constant while it has some. */
	struct homa_owner *owner;
	/* So many requests were not taken by its application; counter. */
	u64 backlog;
	/* So many records of gaps are in messages that are coming in; counter. */
	u64 gaps;
};

static inline u32 homa_sock_buckets(const struct homa_limits *limits)
{
	return limits->sock_buckets ? limits->sock_buckets : HOMA_SOCK_BUCKETS;
}

/* The socket of a port, with a reference for the caller; NULL: there is none. */
struct homa_sock *homa_sock_find(struct homa_engine *engine, u16 port);
/* Lets a reference go. */
void homa_sock_put(struct homa_sock *sock);
/* Nobody finds @sock any more, and its port is free; false: so it was before. */
bool homa_sock_unhash(struct homa_engine *engine, struct homa_sock *sock);
/* Does it take requests of @peer? */
bool homa_sock_serves(const struct homa_sock *sock, const struct homa_addr *peer);

#endif
