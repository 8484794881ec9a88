// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Spare memory. The engine allocates nothing: a host puts memory for RPCs, peers, ranges
 * and table segments into a context between calls, and the calls take from there. Each
 * kind is a stack, linked through the memory itself.
 */
#include "homa_impl.h"

void homa_ctx_reuse_rpc(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	rpc->hash.next = (struct homa_list *)ctx->spare_rpc;
	ctx->spare_rpc = rpc;
	ctx->spare_rpcs++;
}

/* Makes all nodes belong to no list, wheel or heap, as those of an RPC that has ended do. */
void homa_ctx_give_rpc(struct homa_ctx *ctx, void *mem)
{
	struct homa_rpc *rpc = mem;

	homa_list_init(&rpc->sock_rpcs);
	homa_list_init(&rpc->holding);
	homa_wheel_node_init(&rpc->timer);
	homa_heap_node_init(&rpc->in.node);
	homa_list_init(&rpc->in.age);
	homa_sendable_init(&rpc->out.send);
	homa_ctx_reuse_rpc(ctx, rpc);
}

void homa_ctx_give_peer(struct homa_ctx *ctx, void *mem)
{
	struct homa_peer *peer = mem;

	peer->hash.next = (struct homa_list *)ctx->spare_peer;
	ctx->spare_peer = peer;
	ctx->spare_peers++;
}

void homa_ctx_give_range(struct homa_ctx *ctx, void *mem)
{
	struct homa_range *range = mem;

	range->next = ctx->spare_range;
	ctx->spare_range = range;
	ctx->spare_ranges++;
}

void *homa_ctx_take_rpc(struct homa_ctx *ctx)
{
	struct homa_rpc *rpc = ctx->spare_rpc;

	if (rpc) {
		ctx->spare_rpc = (struct homa_rpc *)rpc->hash.next;
		ctx->spare_rpcs--;
	}
	return rpc;
}

void *homa_ctx_take_peer(struct homa_ctx *ctx)
{
	struct homa_peer *peer = ctx->spare_peer;

	if (peer) {
		ctx->spare_peer = (struct homa_peer *)peer->hash.next;
		ctx->spare_peers--;
	}
	return peer;
}

void *homa_ctx_take_range(struct homa_ctx *ctx)
{
	struct homa_range *range = ctx->spare_range;

	if (range) {
		ctx->spare_range = range->next;
		ctx->spare_ranges--;
	}
	return range;
}

void homa_ctx_give_segment(struct homa_ctx *ctx, void *mem)
{
	struct homa_segment *segment = mem;

	segment->next = ctx->spare_segment;
	ctx->spare_segment = segment;
	ctx->spare_segments++;
}

void *homa_ctx_take_segment(struct homa_ctx *ctx)
{
	struct homa_segment *segment = ctx->spare_segment;

	if (segment) {
		ctx->spare_segment = segment->next;
		ctx->spare_segments--;
	}
	return segment;
}

void homa_ctx_grow(struct homa_ctx *ctx, struct homa_table *table,
		   u32 (*hash_of)(const struct homa_list *node))
{
	struct homa_segment *segment = homa_ctx_take_segment(ctx);

	if (!homa_table_grow(table, segment, hash_of) && segment)
		homa_ctx_give_segment(ctx, segment);
}
