// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Spare objects for the engine; see homa_spares.h. */
#include <errno.h>
#include "homa_spares.h"

int homa_spares_init(struct homa_spares *spares, struct homa_ctx *ctx,
		     const struct homa_limits *limits, u32 max_rpcs,
		     u32 max_peers, u32 keep, u64 *failed)
{
	spares->failed = failed;
	spares->keep = keep;
	spares->priv = limits->rpc_priv;
	/* This is far more than memory allows, and keeps the sums below from overflowing. */
	max_rpcs = homa_min_u32(max_rpcs, 0x20000000);
	max_peers = homa_min_u32(max_peers, 0x20000000);
	homa_slab_init(&spares->rpcs, homa_rpc_size(limits), max_rpcs + keep);
	homa_slab_init(&spares->peers, homa_peer_size(limits), max_peers + keep);
	/* Ranges serve for gaps, and to remember requests that ran. */
	homa_slab_init(&spares->ranges, homa_range_size(),
		       4 * max_rpcs + limits->tombstones + keep);
	homa_slab_init(&spares->segments, homa_segment_size(),
		       max_rpcs / 32 + max_peers / 32 + 1024);
	homa_spares_fill(spares, ctx);
	return ctx->spare_rpcs && ctx->spare_peers && ctx->spare_ranges ?
		       0 :
		       -ENOMEM;
}

void homa_spares_fill(struct homa_spares *spares, struct homa_ctx *ctx)
{
	void *mem;

	while (ctx->spare_ranges > HOMA_SPARES_MOST * spares->keep)
		homa_slab_put(&spares->ranges, homa_ctx_take_range(ctx));
	while (ctx->spare_rpcs < spares->keep) {
		mem = homa_slab_get(&spares->rpcs);
		if (!mem)
			goto none;
		memset(homa_rpc_priv(mem), 0, spares->priv);
		homa_ctx_give_rpc(ctx, mem);
	}
	while (ctx->spare_peers < spares->keep) {
		mem = homa_slab_get(&spares->peers);
		if (!mem)
			goto none;
		homa_ctx_give_peer(ctx, mem);
	}
	while (ctx->spare_ranges < spares->keep) {
		mem = homa_slab_get(&spares->ranges);
		if (!mem)
			goto none;
		homa_ctx_give_range(ctx, mem);
	}
	while (ctx->spare_segments < HOMA_SPARE_SEGMENTS) {
		mem = homa_slab_get(&spares->segments);
		if (!mem)
			goto none;
		homa_ctx_give_segment(ctx, mem);
	}
	return;
none:
	(*spares->failed)++;
}

void homa_spares_take_rpc(struct homa_spares *spares, struct homa_ctx *ctx,
			  struct homa_rpc *rpc)
{
	memset(homa_rpc_priv(rpc), 0, spares->priv);
	if (ctx->spare_rpcs < spares->keep)
		homa_ctx_reuse_rpc(ctx, rpc);
	else
		homa_slab_put(&spares->rpcs, rpc);
}

void homa_spares_take_peers(struct homa_spares *spares, struct homa_ctx *ctx)
{
	struct homa_peer *peer;

	while ((peer = homa_retired_peer(ctx)))
		homa_slab_put(&spares->peers, peer);
}

void homa_spares_drain(struct homa_spares *spares)
{
	homa_slab_drain(&spares->rpcs);
	homa_slab_drain(&spares->peers);
	homa_slab_drain(&spares->ranges);
	homa_slab_drain(&spares->segments);
}
