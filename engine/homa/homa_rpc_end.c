// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The end of an RPC. It dies by being unhashed and taken out of its socket and both
 * schedulers; it is retired when the last reference (a packet being copied, one being
 * transmitted, an event not yet fetched) is gone. Only then do its receive pages, gap
 * records, socket and peer go back, because until then somebody may still write through
 * them.
 */
#include "homa_busy.h"
#include "homa_impl.h"
#include "homa_once.h"
#include "homa_owner.h"
#include "homa_pages.h"

HOMA_HOT void homa_rpc_unschedule(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	homa_out_cancel(ctx, rpc);
	homa_busy_over(rpc);
	if (rpc->in.length)
		homa_grant_remove(ctx, rpc);
	homa_wheel_leave(&rpc->shard->wheel, &rpc->timer);
}

HOMA_HOT void homa_rpc_over(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	struct homa_engine *engine = ctx->engine;
	struct homa_sock *sock = rpc->sock;

	if (rpc->state == HOMA_RPC_DEAD)
		return;
	homa_rpc_unschedule(ctx, rpc);
	if (engine->limits.tell_gone && !homa_rpc_is_client(rpc) &&
	    (rpc->state == HOMA_RPC_INCOMING || rpc->state == HOMA_RPC_READY)) {
		rpc->flags |= HOMA_RPC_TELL_GONE;
		homa_event_add(ctx, rpc);
	}
	if (!homa_rpc_is_client(rpc) && rpc->once)
		homa_once_end(ctx, rpc->link, rpc->peer, rpc->id, rpc->once,
			      rpc->flags & HOMA_RPC_EXECUTED);
	rpc->state = HOMA_RPC_DEAD;
	if (ctx->rx_rpc == rpc)
		ctx->rx_rpc = NULL;
	homa_table_del(&rpc->shard->rpcs, &rpc->hash);
	homa_lock(&sock->lock);
	homa_list_del(&rpc->sock_rpcs);
	if (unlikely(homa_heap_linked(&rpc->in.node) ||
		     homa_list_linked(&rpc->holding)))
		homa_rpc_unqueue(rpc);
	homa_unlock(&sock->lock);
	homa_counter_add(&engine->num_rpcs, (u64)-1);
	homa_owner_end(rpc);
	if (!homa_rpc_is_client(rpc))
		homa_counter_add32(&rpc->peer->server_rpcs, (u32)-1);
	homa_rpc_put(ctx, rpc);
}

void homa_rpc_kill(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	homa_rpc_over(ctx, rpc);
}

void homa_rpc_fail(struct homa_ctx *ctx, struct homa_rpc *rpc, int error)
{
	if (rpc->state == HOMA_RPC_DEAD || rpc->state == HOMA_RPC_FAILED)
		return;
	homa_rpc_unschedule(ctx, rpc);
	homa_lock(&rpc->sock->lock);
	homa_rpc_unqueue(rpc);
	homa_unlock(&rpc->sock->lock);
	rpc->state = HOMA_RPC_FAILED;
	rpc->error = (s16)error;
	homa_count(ctx, HOMA_M_rpcs_failed, 1);
	homa_event_add(ctx, rpc);
}

void homa_rpc_gaps_back(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	if (likely(!rpc->ranges.gaps))
		return;
	ctx->spare_ranges += rpc->ranges.gaps;
	homa_counter_add(&rpc->sock->gaps, -(u64)rpc->ranges.gaps);
	homa_ranges_release(&rpc->ranges, &ctx->spare_range);
}

/* Gives back what an RPC held whose last reference is gone. */
static HOMA_HOT void homa_rpc_retire(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	struct homa_sock *sock = rpc->sock;

	homa_rpc_gaps_back(ctx, rpc);
	if (rpc->flags & HOMA_RPC_OWN_PAGES) {
		homa_lock(&sock->lock);
		homa_rpc_pages_back(rpc);
		homa_unlock(&sock->lock);
	}
	homa_peer_put(ctx, rpc->peer);
	homa_sock_put(sock);
	rpc->hash.next = (struct homa_list *)ctx->retired_rpc;
	ctx->retired_rpc = rpc;
}

HOMA_HOT void homa_rpc_put(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	if (homa_ref_put(&rpc->refs))
		homa_rpc_retire(ctx, rpc);
}
