// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Messages and receive pages: a message takes its pages when its first packet
 * arrives, or waits for some, shortest first, and starts over when it has them.
 */
#include "homa_impl.h"

/* Pages for a message, or a place in the socket's queue. False: refused. */
bool homa_rpc_find_pages(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 length)
{
	struct homa_sock *sock = rpc->sock;
	u64 lease = ctx->engine->params.bpage_lease_us * 1000ull;
	bool ok = true;

	if (!HOMA_READ_ONCE(sock->pool))
		return true;
	homa_lock(&sock->lock);
	if (length > homa_min_u32(HOMA_MAX_BPAGES, sock->pool->num_pages) *
			     HOMA_BPAGE_SIZE) {
		ok = false;
	} else if (homa_heap_min(&sock->starving) ||
		   homa_pool_alloc(sock->pool, ctx->now, lease, ctx->cpu,
				   length, rpc->pages, &rpc->num_pages)) {
		rpc->flags |= HOMA_RPC_NO_BUFFER;
		rpc->starving.key = length;
		rpc->starving.tie = rpc->birth;
		homa_heap_insert(&sock->starving, &rpc->starving);
	} else {
		rpc->flags |= HOMA_RPC_OWN_PAGES;
	}
	homa_unlock(&sock->lock);
	return ok;
}

/* ---- receive buffers came back ---- */

/* The shortest message that waits for buffers gets some, if there are. A
 * reference to it is the caller's. */
static struct homa_rpc *homa_sock_feed_one(struct homa_ctx *ctx,
					   struct homa_sock *sock)
{
	u64 lease = ctx->engine->params.bpage_lease_us * 1000ull;
	struct homa_heap_node *node;
	struct homa_rpc *rpc = NULL;

	homa_lock(&sock->lock);
	node = homa_heap_min(&sock->starving);
	if (node) {
		rpc = homa_container_of(node, struct homa_rpc, starving);
		if (homa_pool_alloc(sock->pool, ctx->now, lease, ctx->cpu,
				    (u32)node->key, rpc->pages,
				    &rpc->num_pages)) {
			rpc = NULL;
		} else {
			homa_heap_remove(&sock->starving, node);
			homa_ref_get(&rpc->refs);
		}
	}
	homa_unlock(&sock->lock);
	return rpc;
}

/*
 * A message that waited starts over: ask for as much as could have come
 * unscheduled. Requests and responses alike, else responses, whose senders
 * hold grants, would starve requests.
 */
static void homa_rpc_fed(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	u32 top = ctx->engine->params.num_priorities - 1;
	struct homa_ctrl *ctrl;
	u32 first;

	homa_lock(&rpc->shard->lock);
	rpc->flags |= HOMA_RPC_OWN_PAGES;
	if (rpc->state == HOMA_RPC_INCOMING) {
		first = homa_min_u32(rpc->in.length, HOMA_READ_ONCE(
					rpc->link->derived.rtt_bytes));
		rpc->flags &= (u8)~HOMA_RPC_NO_BUFFER;
		HOMA_WRITE_ONCE(rpc->in.granted, first);
		homa_grant_add(ctx, rpc);
		ctrl = homa_ctrl_rpc(ctx, rpc, HOMA_RESEND);
		ctrl->offset = 0;
		ctrl->length = first;
		ctrl->priority = (u8)(top ? top - 1 : 0);
		rpc->heard_at = ctx->now;
		homa_rpc_arm(rpc, ctx->now +
			     HOMA_READ_ONCE(rpc->link->derived.resend_ns));
	}
	homa_unlock(&rpc->shard->lock);
	homa_rpc_put(ctx, rpc);
}

void homa_sock_feed(struct homa_ctx *ctx, struct homa_sock *sock)
{
	struct homa_rpc *rpc;

	while ((rpc = homa_sock_feed_one(ctx, sock)) != NULL)
		homa_rpc_fed(ctx, rpc);
}
