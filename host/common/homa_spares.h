/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Spare objects for the engine, which never allocates: before each call that may
 * need some, a context must hold enough for a whole batch. Not thread-safe: one
 * for each context.
 */
#ifndef HOMA_SPARES_H
#define HOMA_SPARES_H

#include "homa_engine.h"
#include "homa_slab.h"

/* So many times @keep ranges are too many: messages with gaps have ended, or requests
 * need not be remembered any more. */
#define HOMA_SPARES_MOST 4u
#define HOMA_SPARE_SEGMENTS 2u /* a call uses one at most, but two are rare */

/**
 * struct homa_spares - where they come from
 * @keep: how many a context holds of each kind.
 * @priv: the host's bytes in an RPC, zero when it is handed out.
 * @failed: the host's counter of times there was no memory.
 */
struct homa_spares {
	struct homa_slab rpcs, peers, ranges, segments;
	u32 keep;
	u32 priv;
	u64 *failed;
};

/** homa_spares_init() - and fill @ctx; 0 or -ENOMEM. */
int homa_spares_init(struct homa_spares *spares, struct homa_ctx *ctx,
		     const struct homa_limits *limits, u32 max_rpcs,
		     u32 max_peers, u32 keep, u64 *failed);
void homa_spares_fill(struct homa_spares *spares, struct homa_ctx *ctx);
/** homa_spares_take_rpc() - an RPC that the engine retired. */
void homa_spares_take_rpc(struct homa_spares *spares, struct homa_ctx *ctx,
			  struct homa_rpc *rpc);
/** homa_spares_take_peers() - all peers that the engine retired. */
void homa_spares_take_peers(struct homa_spares *spares, struct homa_ctx *ctx);
/** homa_spares_drain() - free everything; all objects die. */
void homa_spares_drain(struct homa_spares *spares);

/** homa_spares_refill() - before calls that may use some up. */
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
