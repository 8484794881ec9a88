// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What a host learns of RPCs: it takes events from its context, one for each RPC that is
 * ready or has failed, and it may hold an RPC by a reference of its own.
 */
#include "homa_impl.h"

bool homa_event_hold(struct homa_ctx *ctx, struct homa_event *event)
{
	struct homa_rpc *rpc;
	bool found = false;

	while (!found && (rpc = ctx->event_head)) {
		ctx->event_head = rpc->event_next;
		if (!ctx->event_head)
			ctx->event_tail = NULL;
		homa_lock(&rpc->shard->lock);
		rpc->event_queued = 0;
		if (rpc->state == HOMA_RPC_READY) {
			event->kind = homa_rpc_is_client(rpc) ? HOMA_EV_RESPONSE :
								HOMA_EV_REQUEST;
			found = true;
		} else if (rpc->state == HOMA_RPC_FAILED) {
			event->kind = HOMA_EV_FAILED;
			found = true;
		} else if (rpc->flags & HOMA_RPC_TELL_GONE) {
			event->kind = HOMA_EV_GONE;
			found = true;
		}
		event->handle = homa_rpc_handle(rpc);
		event->sock = rpc->sock;
		event->rpc = rpc;
		event->private_rpc = rpc->flags & HOMA_RPC_FOR_ONE;
		homa_unlock(&rpc->shard->lock);
		if (!found)
			homa_rpc_put(ctx, rpc);
	}
	return found;
}

bool homa_event_next(struct homa_ctx *ctx, struct homa_event *event)
{
	if (!homa_event_hold(ctx, event))
		return false;
	homa_rpc_put(ctx, event->rpc);
	return true;
}

/* ---- RPCs that hosts hold ---- */

struct homa_rpc *homa_rpc_hold(struct homa_ctx *ctx, u64 id,
			       const struct homa_addr *peer)
{
	struct homa_shard *shard;
	struct homa_rpc *rpc;
	u32 hash;

	if ((id & 1) != (peer != NULL))
		return NULL;
	hash = peer ? homa_rpc_hash(ctx, id, peer) :
		      homa_client_hash(ctx->engine, id);
	shard = homa_shard_at(ctx->engine, hash);
	homa_lock(&shard->lock);
	rpc = homa_rpc_find(shard, hash, id, peer);
	if (rpc)
		homa_ref_get(&rpc->refs);
	homa_unlock(&shard->lock);
	return rpc;
}

void homa_rpc_hold_more(struct homa_rpc *rpc)
{
	homa_ref_get(&rpc->refs);
}

void homa_rpc_release(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	homa_rpc_put(ctx, rpc);
}
