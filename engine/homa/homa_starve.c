// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Messages and receive pages: a message takes its pages when its first packet
 * arrives, or waits for some, shortest first, and starts over when it has them.
 */
#include "homa_busy.h"

/* Shortest first: those that wait for more keep it from nothing that is there. */
bool homa_sock_may_take(const struct homa_sock *sock, u32 length)
{
	const struct homa_heap_node *first = homa_heap_min(&sock->starving);

	return !first || length < first->key;
}

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
	} else if (!homa_sock_may_take(sock, length) ||
		   homa_pool_alloc(sock->pool, ctx->now, lease, ctx->cpu,
				   length, rpc->pages, &rpc->num_pages)) {
		rpc->flags |= HOMA_RPC_NO_BUFFER;
		rpc->in.node.key = length;
		rpc->in.node.tie = rpc->birth;
		homa_heap_insert(&sock->starving, &rpc->in.node);
	} else {
		rpc->flags |= HOMA_RPC_OWN_PAGES;
	}
	homa_unlock(&sock->lock);
	return ok;
}

void homa_rpc_unstarve(struct homa_rpc *rpc)
{
	if (homa_heap_linked(&rpc->in.node))
		homa_heap_remove(&rpc->sock->starving, &rpc->in.node);
}

/* ---- how long they wait ---- */

/*
 * A request that waits here for pages is its client's to ask about: it had no
 * response. A client with many of them at us asks in turn (homa_busy.c), so one
 * that speaks gets the time for two turns.
 */
u64 homa_starving_until(const struct homa_rpc *rpc)
{
	const struct homa_derived *d = &rpc->link->derived;
	const struct homa_peer *peer = rpc->peer;
	u64 timeout = HOMA_READ_ONCE(d->timeout_ns);
	u64 until = rpc->heard_at + timeout;

	if (HOMA_READ_ONCE(peer->heard_at) <= rpc->heard_at)
		return until;
	return homa_min_u64(HOMA_READ_ONCE(peer->heard_at) + timeout,
			    until + 2 * homa_busy_round(HOMA_READ_ONCE(peer->server_rpcs),
							HOMA_READ_ONCE(d->resend_ns)));
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
		rpc = homa_container_of(node, struct homa_rpc, in.node);
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
		rpc->fresh_at = ctx->now;
		rpc->probes = 0;
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
