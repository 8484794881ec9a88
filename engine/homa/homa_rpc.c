// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Life and death of an RPC. Born hashed under its shard's lock; dies by being
 * unhashed and taken out of its socket and both schedulers; retired when the
 * last reference (a packet being copied, one being transmitted, an event not
 * yet fetched) is gone. Only then do its receive pages, gap records, socket
 * and peer go back, because until then somebody may still write through them.
 */
#include "homa_busy.h"
#include "homa_owner.h"

struct homa_rpc *homa_rpc_find(struct homa_shard *shard, u32 hash, u64 id,
			       const struct homa_addr *peer)
{
	struct homa_list *head = homa_table_find(&shard->rpcs, hash);
	struct homa_list *pos;

	homa_list_for_each(pos, head) {
		struct homa_rpc *rpc = homa_list_entry(pos, struct homa_rpc,
						       hash);

		if (rpc->id == id &&
		    (!peer || homa_addr_equal(&rpc->peer->addr, peer)))
			return rpc;
	}
	return NULL;
}

struct homa_rpc *homa_rpc_find_handle(struct homa_shard *shard,
				      struct homa_handle handle)
{
	struct homa_list *head = homa_table_find(&shard->rpcs, handle.hash);
	struct homa_list *pos;

	homa_list_for_each(pos, head) {
		struct homa_rpc *rpc = homa_list_entry(pos, struct homa_rpc,
						       hash);

		if (rpc->id == handle.id &&
		    rpc->generation == handle.generation)
			return rpc;
	}
	return NULL;
}

static u32 homa_rpc_hash_of(const struct homa_list *node)
{
	return homa_list_entry(node, struct homa_rpc, hash)->hash_value;
}

static void homa_rpc_reset(struct homa_rpc *rpc)
{
	homa_wheel_node_init(&rpc->timer);
	homa_ranges_init(&rpc->ranges);
	homa_list_init(&rpc->holding);
	memset(&rpc->in, 0, sizeof(rpc->in));
	/* What follows counts only if active says so. */
	memset(&rpc->out, 0, offsetof(struct homa_out, hdr));
	homa_heap_node_init(&rpc->in.node);
	homa_list_init(&rpc->in.age);
	homa_heap_node_init(&rpc->out.node);
	homa_heap_node_init(&rpc->out.fifo);
	rpc->state = HOMA_RPC_NEW;
	rpc->event_next = NULL;
	rpc->once = NULL;
	rpc->cookie = 0;
	rpc->probe_at = 0;
	rpc->probes = 0;
	rpc->event_queued = 0;
	rpc->error = 0;
	rpc->copied = 0;
	rpc->repaired_to = 0;
	rpc->num_pages = 0;
	rpc->owed = 0;
	rpc->held = 0;
	rpc->resp_limit_kib = 0;
}

struct homa_rpc *homa_rpc_create(struct homa_ctx *ctx, struct homa_shard *shard,
				 struct homa_sock *sock, struct homa_peer *peer,
				 struct homa_link *link, u64 id, u32 hash,
				 u16 dport, u8 flags)
{
	struct homa_engine *engine = ctx->engine;
	struct homa_rpc *rpc = ctx->spare_rpc;
	bool closing;

	if (!rpc || HOMA_READ_ONCE(engine->num_rpcs) >= engine->params.max_rpcs)
		return NULL;
	/* Whole before anybody sees it: who closes the socket finds it there. */
	homa_rpc_reset(rpc);
	rpc->id = id;
	rpc->generation = shard->next_generation + 1;
	rpc->hash_value = hash;
	homa_ref_init(&rpc->refs, 1);
	rpc->sock = sock;
	rpc->peer = peer;
	rpc->link = link;
	rpc->shard = shard;
	rpc->birth = ctx->now;
	rpc->heard_at = ctx->now;
	rpc->sport = homa_sock_port(sock);
	rpc->dport = dport;
	rpc->flags = flags;
	homa_lock(&sock->lock);
	closing = sock->closing;
	if (!closing) {
		homa_ref_get(&sock->refs);
		homa_list_add_tail(&sock->rpcs, &rpc->sock_rpcs);
	}
	homa_unlock(&sock->lock);
	if (closing)
		return NULL;
	shard->next_generation++;
	ctx->spare_rpc = (struct homa_rpc *)rpc->hash.next;
	ctx->spare_rpcs--;
	homa_table_add(&shard->rpcs, hash, &rpc->hash);
	if (homa_table_full(&shard->rpcs))
		homa_ctx_grow(ctx, &shard->rpcs, homa_rpc_hash_of);
	homa_counter_add(&engine->num_rpcs, 1);
	homa_owner_begin(rpc);
	return rpc;
}

void homa_rpc_unschedule(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	homa_out_cancel(ctx, rpc);
	homa_busy_over(rpc);
	if (rpc->in.length)
		homa_grant_remove(ctx, rpc);
	homa_wheel_del(&rpc->shard->wheel, &rpc->timer);
}

void homa_rpc_kill(struct homa_ctx *ctx, struct homa_rpc *rpc)
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
	if (rpc->once)
		homa_once_end(ctx, rpc->link, rpc->peer, rpc->id, rpc->once,
			      rpc->flags & HOMA_RPC_EXECUTED);
	rpc->state = HOMA_RPC_DEAD;
	if (ctx->rx_rpc == rpc)
		ctx->rx_rpc = NULL;
	homa_table_del(&rpc->shard->rpcs, &rpc->hash);
	homa_lock(&sock->lock);
	homa_list_del(&rpc->sock_rpcs);
	homa_rpc_unqueue(rpc);
	homa_unlock(&sock->lock);
	homa_counter_add(&engine->num_rpcs, (u64)-1);
	homa_owner_end(rpc);
	if (!homa_rpc_is_client(rpc)) {
		homa_lock(&rpc->peer->lock);
		HOMA_WRITE_ONCE(rpc->peer->server_rpcs,
				rpc->peer->server_rpcs - 1);
		homa_unlock(&rpc->peer->lock);
	}
	homa_rpc_put(ctx, rpc);
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

/* The last reference is gone: give back what the RPC held. */
static void homa_rpc_retire(struct homa_ctx *ctx, struct homa_rpc *rpc)
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

void homa_rpc_put(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	if (homa_ref_put(&rpc->refs))
		homa_rpc_retire(ctx, rpc);
}

void homa_rpc_arm(struct homa_rpc *rpc, u64 deadline)
{
	/* Who sets a deadline has just heard of the RPC. */
	homa_wheel_add(&rpc->shard->wheel, &rpc->timer, deadline, rpc->heard_at);
}

/* ---- events ---- */

void homa_event_add(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	if (rpc->event_queued)
		return;
	rpc->event_queued = 1;
	rpc->event_next = NULL;
	homa_ref_get(&rpc->refs);
	if (ctx->event_tail)
		ctx->event_tail->event_next = rpc;
	else
		ctx->event_head = rpc;
	ctx->event_tail = rpc;
}

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
			event->kind = homa_rpc_is_client(rpc) ?
				HOMA_EV_RESPONSE : HOMA_EV_REQUEST;
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
		event->private_rpc = rpc->flags & HOMA_RPC_PRIVATE;
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
	hash = homa_rpc_hash(ctx, id, peer);
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

void *homa_ctx_next_rpc(struct homa_ctx *ctx)
{
	return ctx->spare_rpc ? homa_rpc_priv(ctx->spare_rpc) : NULL;
}

void *homa_ctx_rpc_after(struct homa_rpc *spare)
{
	spare = (struct homa_rpc *)spare->hash.next;
	return spare ? homa_rpc_priv(spare) : NULL;
}

/* ---- small things hosts ask ---- */

struct homa_handle homa_rpc_handle(const struct homa_rpc *rpc)
{
	return (struct homa_handle){ .id = rpc->id,
				     .generation = rpc->generation,
				     .hash = rpc->hash_value };
}

struct homa_link *homa_rpc_link(const struct homa_rpc *rpc)
{
	return rpc->link;
}

void *homa_rpc_priv(struct homa_rpc *rpc)
{
	return rpc + 1;
}

struct homa_sock *homa_rpc_sock(struct homa_rpc *rpc)
{
	return rpc->sock;
}

void *homa_sock_priv(struct homa_sock *sock)
{
	return sock + 1;
}
