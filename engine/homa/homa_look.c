// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Looking in: how far an RPC has come, which RPCs and peers there are. For
 * tools, so the cost is theirs: one lock at a time for a short while, a bounded
 * number of buckets in each call, and a cursor to go on from. Between two calls
 * the tables change; an object that stays is seen at least once unless its own
 * bucket changed in the middle of being read, where a neighbour may be seen
 * twice or not at all. Nothing here changes anything.
 */
#include "homa_look.h"

#include "homa_impl.h"

static u8 homa_look_phase(const struct homa_rpc *rpc)
{
	switch (rpc->state) {
	case HOMA_RPC_OUTGOING:
		return HOMA_LOOK_OUTGOING;
	case HOMA_RPC_INCOMING:
		return rpc->flags & HOMA_RPC_NO_BUFFER ? HOMA_LOOK_NO_BUFFER :
							 HOMA_LOOK_INCOMING;
	case HOMA_RPC_READY:
		return HOMA_LOOK_READY;
	case HOMA_RPC_IN_SERVICE:
		return HOMA_LOOK_IN_SERVICE;
	case HOMA_RPC_FAILED:
		return HOMA_LOOK_FAILED;
	default:
		return HOMA_LOOK_NEW;
	}
}

/* Writes what tools see of an RPC to @look. Shard locked; takes the link's lock. */
static void homa_look_fill(struct homa_rpc *rpc, struct homa_rpc_look *look)
{
	memset(look, 0, sizeof(*look));
	look->handle = homa_rpc_handle(rpc);
	look->sock = rpc->sock;
	look->link = rpc->link;
	look->peer = rpc->peer->addr;
	look->port = rpc->sport;
	look->peer_port = rpc->dport;
	look->client = homa_rpc_is_client(rpc);
	look->phase = homa_look_phase(rpc);
	look->probes = rpc->probes;
	look->error = rpc->error;
	look->cookie = look->client ? rpc->cookie : 0;
	look->birth = rpc->birth;
	look->heard_at = rpc->heard_at;
	look->rx_length = rpc->in.length;
	look->rx_received = HOMA_READ_ONCE(rpc->in.received);
	look->rx_granted = HOMA_READ_ONCE(rpc->in.granted);
	look->rx_gaps = rpc->ranges.gaps;
	/* A message that was delivered whole came without ranges. */
	look->rx_gap_bytes = rpc->ranges.end -
			     homa_min_u32(rpc->ranges.end, look->rx_received);
	look->is_private = rpc->flags & HOMA_RPC_FOR_ONE;
	homa_lock(&rpc->link->lock);
	look->tx_length = rpc->out.length;
	look->tx_sent = homa_min_u32(rpc->out.next, rpc->out.length);
	look->tx_granted = homa_min_u32(rpc->out.limit, rpc->out.length);
	look->tx_prio = rpc->out.next < rpc->out.unsched ? rpc->out.unsched_prio :
							   rpc->out.sched_prio;
	homa_unlock(&rpc->link->lock);
}

int homa_rpc_look(struct homa_ctx *ctx, struct homa_handle handle,
		  struct homa_rpc_look *look)
{
	struct homa_shard *shard = homa_shard_at(ctx->engine, handle.hash);
	struct homa_rpc *rpc;

	homa_lock(&shard->lock);
	rpc = homa_rpc_find_handle(shard, handle);
	if (rpc)
		homa_look_fill(rpc, look);
	homa_unlock(&shard->lock);
	return rpc ? 0 : -HOMA_EINVAL;
}

/* Writes as much of one bucket as fits; false: some of it is left. */
static bool homa_look_bucket(struct homa_list *head, struct homa_look_cursor *at,
			     const struct homa_sock *sock,
			     struct homa_rpc_look *out, u32 max, u32 *n)
{
	struct homa_list *pos;
	u32 i = 0;

	homa_list_for_each(pos, head) {
		struct homa_rpc *rpc =
			homa_list_entry(pos, struct homa_rpc, hash);

		if (i++ < at->skip || (sock && rpc->sock != sock))
			continue;
		if (*n == max) {
			at->skip = i - 1;
			return false;
		}
		homa_look_fill(rpc, &out[(*n)++]);
	}
	return true;
}

u32 homa_rpcs_look(struct homa_ctx *ctx, struct homa_look_cursor *at,
		   const struct homa_sock *sock, struct homa_rpc_look *out,
		   u32 max)
{
	u32 budget = HOMA_LOOK_BUCKETS, size, n = 0;
	bool whole = true;

	while (!at->end && whole && n < max && budget) {
		struct homa_shard *shard = &ctx->engine->shards[at->part];

		homa_lock(&shard->lock);
		size = shard->rpcs.size;
		while (whole && at->bucket < size && budget) {
			whole = homa_look_bucket(homa_table_bucket(&shard->rpcs,
								   at->bucket),
						 at, sock, out, max, &n);
			if (whole) {
				at->bucket++;
				at->skip = 0;
			}
			budget--;
		}
		homa_unlock(&shard->lock);
		if (at->bucket < size)
			continue;
		at->bucket = 0;
		at->end = ++at->part == ctx->engine->limits.shards;
	}
	return n;
}

/* Writes what tools see of a peer. Stripe locked; takes the peer's lock. */
static void homa_peer_look_fill(struct homa_ctx *ctx, struct homa_peer *peer,
				struct homa_peer_look *look)
{
	memset(look, 0, sizeof(*look));
	look->addr = peer->addr;
	look->link = peer->link;
	look->rpcs = homa_ref_read(&peer->refs) - 1;
	/* Another thread whose clock was read later may have used the peer since. */
	look->idle_ms = homa_since_ms((u32)homa_div64(ctx->now, 1000000),
				      HOMA_READ_ONCE(peer->used_at_ms));
	look->seg_size = HOMA_READ_ONCE(peer->mtu_seg);
	homa_lock(&peer->lock);
	look->server_rpcs = HOMA_READ_ONCE(peer->server_rpcs);
	look->acks_owed = peer->num_acks;
	look->probes = peer->probes;
	look->cutoff_version = peer->cutoff_version;
	memcpy(look->cutoffs, peer->cutoffs, sizeof(look->cutoffs));
	homa_unlock(&peer->lock);
}

static bool homa_look_peer_bucket(struct homa_ctx *ctx, struct homa_list *head,
				  struct homa_look_cursor *at,
				  struct homa_peer_look *out, u32 max, u32 *n)
{
	struct homa_list *pos;
	u32 i = 0;

	homa_list_for_each(pos, head) {
		if (i++ < at->skip)
			continue;
		if (*n == max) {
			at->skip = i - 1;
			return false;
		}
		homa_peer_look_fill(ctx,
				    homa_list_entry(pos, struct homa_peer, hash),
				    &out[(*n)++]);
	}
	return true;
}

u32 homa_peers_look(struct homa_ctx *ctx, struct homa_look_cursor *at,
		    struct homa_peer_look *out, u32 max)
{
	u32 budget = HOMA_LOOK_BUCKETS, buckets, n = 0;
	bool whole = true;

	while (!at->end && whole && n < max && budget) {
		struct homa_peer_stripe *stripe = &ctx->engine->peers[at->part];

		/* Most parts of the table are empty on most hosts. */
		homa_lock(&stripe->lock);
		buckets = stripe->peers.size;
		if (!stripe->peers.count)
			at->bucket = buckets;
		while (whole && at->bucket < buckets && budget) {
			whole = homa_look_peer_bucket(
				ctx,
				homa_table_bucket(&stripe->peers, at->bucket),
				at, out, max, &n);
			if (whole) {
				at->bucket++;
				at->skip = 0;
			}
			budget--;
		}
		homa_unlock(&stripe->lock);
		if (at->bucket < buckets)
			continue;
		at->bucket = 0;
		at->end = ++at->part == HOMA_PEER_STRIPES;
	}
	return n;
}

/* ---- a link ---- */

u32 homa_link_withheld(struct homa_link *link)
{
	struct homa_grants *grants = &link->grants;
	const struct homa_heap_node *first;
	u32 n;

	homa_lock(&grants->lock);
	first = homa_heap_min(&grants->peers);
	/* The upper half of the key is the number of active messages of the peer. */
	n = first && !(first->key >> 32) ? grants->num_waiting : 0;
	homa_unlock(&grants->lock);
	return n;
}

void homa_link_state(struct homa_ctx *ctx, struct homa_link *link,
		     struct homa_link_state *state)
{
	u64 idle_at;

	memset(state, 0, sizeof(*state));
	state->rtt_bytes = HOMA_READ_ONCE(link->derived.rtt_bytes);
	state->max_incoming = HOMA_READ_ONCE(link->derived.max_incoming);
	state->resend_us =
		(u32)homa_div64(HOMA_READ_ONCE(link->derived.resend_ns), 1000);
	state->timeout_us =
		(u32)homa_div64(HOMA_READ_ONCE(link->derived.timeout_ns), 1000);
	homa_lock(&link->grants.lock);
	state->granting = link->grants.num_active;
	state->waiting = link->grants.num_waiting;
	homa_unlock(&link->grants.lock);
	homa_lock(&link->lock);
	state->rtt_us = link->rtt_ns / 1000;
	state->sending = link->sched.heap.count;
	idle_at = HOMA_READ_ONCE(link->sched.idle_at);
	if (idle_at > ctx->now)
		state->backlog_ns = idle_at - ctx->now;
	homa_unlock(&link->lock);
}
