/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The engine object: the tables and what concerns all of them.
 */
#ifndef HOMA_CORE_H
#define HOMA_CORE_H

#include "homa_peer.h"
#include "homa_ports.h"
#include "homa_prio.h"
#include "homa_seldom.h"

/*
 * struct homa_engine - see homa_engine.h
 *
 * Guarded by: what each field says. "Constant" is what homa_engine_init() writes before anybody
 * else has the engine; a "counter" is added to by any context, atomically.
 */
struct homa_engine {
	/* Settings. homa_engine_set_params() writes them while no other call is under
	 * way. */
	struct homa_params params;
	/* Sizes that the host chose; constant. */
	struct homa_limits limits;
	/* Random and secret numbers that the host gave; constant. */
	struct homa_seeds seeds;
	/* Time at which it was made, in ns; constant. */
	u64 start;
	/* Time until which the engine assumes that a request which is sent again may have
	 * run before this host restarted, in ns; 0: it never assumes so. Constant. */
	u64 guard_until;
	/* Time at which homa_maintain() is due, in ns; written and read without a lock. */
	u64 maintain_at;
	/* Number from which the first RPC id for the next new peer is computed; atomic,
	 * advances with each new peer. */
	u64 id_epoch;
	/* Number of RPCs that are not dead; counter. */
	u64 num_rpcs;
	/* Account of the sockets that homa_sock_charge() was not called for. */
	struct homa_owner own;
	/* Number of peers in the table; counter. */
	u64 num_peers;
	/* Number of open sockets; counter. */
	u64 num_socks;
	/* Number of blocks (struct homa_once) in @once; counter. */
	u64 num_once;
	/* Number of those blocks that are beyond the number reserved for each group of
	 * addresses; counter. */
	u64 once_common;
	/* Its remainder by HOMA_ONCE_STRIPES is the stripe that is searched for expired
	 * blocks next; counter. */
	u64 once_clock;
	/* HOMA_ONCE_STRIPES parts of the table of requests that have run; constant
	 * pointer. */
	struct homa_once_stripe *once;
	/* Most peers that one part of the peer table may hold; follows from settings. */
	u32 max_peers_per_stripe;
	/* True once some owner pays for peers; written and read without a lock. */
	bool peers_paid;
	/* Number of times that peers were evicted, by which contexts notice that their
	 * cached peers are stale, see homa_peer_get(); atomic. */
	u32 peers_epoch;
	/* Client port from which the search for the next free one begins; sock table
	 * lock. */
	u16 next_port;
	/* Number that names this run of the engine to its peers, see homa_life.h; 0: it has
	 * no name. Constant. */
	u32 life;
	/* Array of the parts of the RPC table; constant pointer. */
	struct homa_shard *shards;
	/* Lock of the sock table. */
	struct homa_lock sock_lock;
	/* Hash buckets, each a list of sockets, by port; sock table lock. */
	struct homa_list *sock_buckets;
	/* Number of sockets that do not take all requests to their port, see homa_place.c; sock
	 * table lock. */
	u32 num_placed;
	/* Set of the client ports that are free; sock table lock. */
	struct homa_ports ports;
	/* The parts of the peer table, each with a lock of its own. */
	struct homa_peer_stripe peers[HOMA_PEER_STRIPES];
	/* Our cutoffs and what they follow from, under their own lock. */
	struct homa_prio prio;
	/* When probes of older homads were answered; written and read without a lock. */
	struct homa_seldom answered;
};

static inline struct homa_peer_stripe *
homa_peer_stripe(struct homa_engine *engine, u64 key)
{
	return &engine->peers[key & (HOMA_PEER_STRIPES - 1)];
}

/* Retires idle peers and old requests and recomputes cutoffs; called every 100 ms while
 * there is traffic. */
void homa_maintain(struct homa_ctx *ctx, struct homa_link *link);

#endif
