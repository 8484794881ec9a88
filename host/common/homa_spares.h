/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Spare objects for the engine, which never allocates: before each call that may
 * need some, a context must hold enough for a whole batch. Guarded
 * by: the owner of the context, of which there is one for each.
 */
#ifndef HOMA_SPARES_H
#define HOMA_SPARES_H

#include "homa_engine.h"
#include "homa_slab.h"

/* The multiple of @keep beyond which a context gives ranges back, because messages with
 * gaps have ended or requests need not be remembered any more. */
#define HOMA_SPARES_MOST 4u
/* The number of segments of hash tables that a context holds. A call uses one of them at
 * most. */
#define HOMA_SPARE_SEGMENTS 2u

/**
 * struct homa_spares - where a context's spare objects come from
 * @rpcs, @peers, @ranges, @segments: allocate the objects of each kind.
 * @keep: how many objects of each kind but segments the context is filled up to.
 * @priv: how many bytes of an RPC are the host's; they are zero in a fresh RPC.
 * @failed: points to the host's counter of allocations that failed.
 */
struct homa_spares {
	struct homa_slab rpcs, peers, ranges, segments;
	u32 keep;
	u32 priv;
	u64 *failed;
};

/** homa_spares_init() - sets up @spares and fills @ctx from it; 0 or -ENOMEM. */
int homa_spares_init(struct homa_spares *spares, struct homa_ctx *ctx,
		     const struct homa_limits *limits, u32 max_rpcs,
		     u32 max_peers, u32 keep, u64 *failed);
/** homa_spares_fill() - fills @ctx up to @keep, or takes back what is too much. */
void homa_spares_fill(struct homa_spares *spares, struct homa_ctx *ctx);
/** homa_spares_take_rpc() - takes back an RPC that the engine has retired. */
void homa_spares_take_rpc(struct homa_spares *spares, struct homa_ctx *ctx,
			  struct homa_rpc *rpc);
/** homa_spares_take_peers() - takes back all peers that the engine has retired. */
void homa_spares_take_peers(struct homa_spares *spares, struct homa_ctx *ctx);
/** homa_spares_drain() - free everything; all objects die. */
void homa_spares_drain(struct homa_spares *spares);

/** homa_spares_refill() - is called before calls of the engine that may need spare objects. */
static inline void homa_spares_refill(struct homa_spares *spares,
				      struct homa_ctx *ctx)
{
	u32 low = spares->keep / 2;

	if (unlikely(ctx->spare_rpcs < low || ctx->spare_peers < low ||
		     ctx->spare_ranges < low || !ctx->spare_segments ||
		     ctx->spare_ranges > HOMA_SPARES_MOST * spares->keep))
		homa_spares_fill(spares, ctx);
}

#endif
