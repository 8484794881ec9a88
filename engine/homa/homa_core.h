/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The engine object: the tables and what concerns all of them.
 */
#ifndef HOMA_CORE_H
#define HOMA_CORE_H

#include "homa_peer.h"
#include "homa_ports.h"
#include "homa_prio.h"

/*
 * struct homa_engine - see homa_engine.h
 */
struct homa_engine {
	/* Settings; homa_engine_set_params() writes them while nobody else is in. */
	struct homa_params params;
	/* Sizes; constant. */
	struct homa_limits limits;
	/* Random numbers; constant. */
	struct homa_seeds seeds;
	/* It was made at this time, ns; constant. */
	u64 start;
	/* Until this time, ns, a request that is sent again may have run in a past life of
	 * the engine; 0: it may not. Constant. */
	u64 guard_until;
	/* homa_maintain() is due at this time, ns; written and read anywhere. */
	u64 maintain_at;
	/* A place where a new peer's ids begin; atomic, and moves on with each peer. */
	u64 id_epoch;
	/* So many RPCs exist that are not dead; counter. */
	u64 num_rpcs;
	/* Pays for sockets that nobody else answers for. */
	struct homa_owner own;
	/* So many peers are in the table; counter. */
	u64 num_peers;
	/* So many sockets are open; counter. */
	u64 num_socks;
	/* So many blocks of memory are in @once; counter. */
	u64 num_once;
	/* So many of them are nobody's own; counter. */
	u64 once_common;
	/* Says in which stripe to look for expired ones next; counter. */
	u64 once_clock;
	/* What is remembered of requests, in HOMA_ONCE_STRIPES parts; constant. */
	struct homa_once_stripe *once;
	/* A part of the peer table holds at most so many; from settings. */
	u32 max_peers_per_stripe;
	/* Counts evictions of peers, see homa_peer_get(); atomic. */
	u32 peers_epoch;
	/* We told a homad of before in this millisecond that we are there; written and read
	 * anywhere. */
	u32 answered_ms;
	/* The next client port is looked for from here on; sock table lock. */
	u16 next_port;
	/* What it calls its life, see homa_life.h; 0: nothing. Constant. */
	u32 life;
	/* The parts of the RPC table; constant. */
	struct homa_shard *shards;
	/* The sock table's lock. */
	struct homa_lock sock_lock;
	/* Lists of sockets by port; sock table lock. */
	struct homa_list *sock_buckets;
	/* Which client ports are free; sock table lock. */
	struct homa_ports ports;
	struct homa_peer_stripe peers[HOMA_PEER_STRIPES];
	struct homa_prio prio;
};

/* Collects idle peers and old requests, recomputes cutoffs; every 100 ms with traffic. */
void homa_maintain(struct homa_ctx *ctx, struct homa_link *link);

#endif
