// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The active set is kept, not recomputed. Active messages are in an array of at
 * most 32; a message that waits is in a heap of its peer's, and the peer in a
 * heap of peers by (slots, best waiting message). Two invariants make that set
 * the one which the header defines:
 *
 *	within a peer, no waiting message is better than an active one;
 *	the best waiting message is not better than the worst active one,
 *	comparing by (rank among its peer's, bytes to receive, birth).
 *
 * The SIGCOMM'18 rule leaves slots empty rather than give a peer two.
 *
 * Bytes that arrive for active messages only make those better, so both stay
 * true without work; they have to be restored when a message comes, goes, or
 * receives while it waits. Each restoration is a few swaps of O(log n).
 *
 * The key of an active message is read where it is needed. That of a waiting
 * one is as of its last update: homa_grant_received() updates it once per
 * homa_grants.step and when nothing is outstanding any more, so it may lag
 * behind by less than a step (and what the sender sends unscheduled beyond our
 * RTTbytes) while bytes are under way and is exact otherwise.
 * (If another CPU makes a message wait while its bytes arrive, the update may
 * be missed until the next step or grant.)
 */
#include "homa_grant_queue.h"

static u32 homa_to_receive(const struct homa_grantee *in)
{
	return in->length - HOMA_READ_ONCE(in->received);
}

/* Is an active message with @remaining and @birth worse than (@key, @tie)? */
static bool homa_worse(u64 remaining, u64 birth, u64 key, u64 tie)
{
	return remaining > key || (remaining == key && birth > tie);
}

static struct homa_rpc *homa_waiting_rpc(struct homa_heap_node *node)
{
	return homa_container_of(node, struct homa_rpc, in.node);
}

static u64 homa_peer_key(const struct homa_peer *peer,
			 const struct homa_heap_node *best)
{
	return (u64)peer->slots << 32 | best->key;
}

/* Moves the peer in the heap to the place that follows from its slots and its best waiting
 * message. */
static void homa_peer_requeue(struct homa_grants *grants, struct homa_peer *peer)
{
	struct homa_heap_node *best = homa_heap_min(&peer->waiting);
	struct homa_heap_node *node = &peer->grant_node;
	u64 key;

	if (!best) {
		if (peer->grant_heap)
			homa_heap_remove(&grants->peers, node);
		peer->grant_heap = 0;
		return;
	}
	key = homa_peer_key(peer, best);
	if (peer->grant_heap) {
		if (node->key != key || node->tie != best->tie)
			homa_heap_update(&grants->peers, node, key, best->tie);
		return;
	}
	node->key = key;
	node->tie = best->tie;
	homa_heap_insert(&grants->peers, node);
	peer->grant_heap = 1;
}

/* The next four functions do not move the peer in the heap; their callers do. */
static void homa_waiting_insert(struct homa_grants *grants, struct homa_rpc *rpc)
{
	struct homa_grantee *in = &rpc->in;

	in->node.key = homa_to_receive(in);
	in->node.tie = in->birth;
	homa_heap_insert(&rpc->peer->waiting, &in->node);
	HOMA_WRITE_ONCE(in->state, HOMA_GRANTEE_WAITING);
	grants->num_waiting++;
}

static void homa_waiting_remove(struct homa_grants *grants, struct homa_rpc *rpc)
{
	homa_heap_remove(&rpc->peer->waiting, &rpc->in.node);
	HOMA_WRITE_ONCE(rpc->in.state, HOMA_GRANTEE_IDLE);
	grants->num_waiting--;
}

static void homa_active_insert(struct homa_grants *grants, struct homa_rpc *rpc)
{
	rpc->in.slot = (u8)grants->num_active;
	grants->active[grants->num_active++] = rpc;
	rpc->peer->slots++;
	HOMA_WRITE_ONCE(rpc->in.state, HOMA_GRANTEE_ACTIVE);
}

static void homa_active_remove(struct homa_grants *grants, struct homa_rpc *rpc)
{
	u32 slot = rpc->in.slot;
	struct homa_rpc *last = grants->active[--grants->num_active];

	grants->active[slot] = last;
	last->in.slot = (u8)slot;
	rpc->peer->slots--;
	HOMA_WRITE_ONCE(rpc->in.state, HOMA_GRANTEE_IDLE);
}

static void homa_promote(struct homa_grants *grants, struct homa_rpc *rpc)
{
	homa_waiting_remove(grants, rpc);
	homa_active_insert(grants, rpc);
	homa_peer_requeue(grants, rpc->peer);
}

static void homa_demote(struct homa_grants *grants, struct homa_rpc *rpc)
{
	homa_active_remove(grants, rpc);
	homa_waiting_insert(grants, rpc);
	homa_peer_requeue(grants, rpc->peer);
}

/*
 * Returns the active message that would be chosen last. It has the most bytes to receive of
 * those whose peers have the most slots, because it is the last one of its peer. With
 * @peer: the last one of that peer.
 */
static struct homa_rpc *homa_worst(const struct homa_grants *grants,
				   const struct homa_peer *peer)
{
	struct homa_rpc *worst = NULL;
	u64 worst_key = 0;
	u32 i;

	for (i = 0; i < grants->num_active; i++) {
		struct homa_rpc *rpc = grants->active[i];
		u64 key = (u64)rpc->peer->slots << 32 | homa_to_receive(&rpc->in);

		if (peer && rpc->peer != peer)
			continue;
		if (!worst ||
		    homa_worse(key, rpc->in.birth, worst_key, worst->in.birth)) {
			worst = rpc;
			worst_key = key;
		}
	}
	return worst;
}

/* Restores the first invariant; returns whether anything was swapped. */
static bool homa_settle_peer(struct homa_ctx *ctx, struct homa_grants *grants,
			     struct homa_peer *peer)
{
	struct homa_heap_node *best = homa_heap_min(&peer->waiting);
	struct homa_rpc *worst;

	if (!best || !peer->slots)
		return false;
	worst = homa_worst(grants, peer);
	if (!homa_worse(homa_to_receive(&worst->in), worst->in.birth, best->key,
			best->tie))
		return false;
	homa_demote(grants, worst);
	homa_promote(grants, homa_waiting_rpc(best));
	homa_count(ctx, HOMA_M_grant_preempted, 1);
	return true;
}

/* Does what is needed after the rule for peers has changed. */
static bool homa_settle_slots(struct homa_grants *grants, bool one_each)
{
	bool changed = false;
	struct homa_rpc *worst;

	grants->one_each = one_each;
	while (one_each && (worst = homa_worst(grants, NULL)) != NULL &&
	       worst->peer->slots > 1) {
		homa_demote(grants, worst);
		changed = true;
	}
	return changed;
}

/* Restores the second invariant; returns whether the set has changed. */
static bool homa_settle(struct homa_ctx *ctx, struct homa_grants *grants, u32 max)
{
	bool one_each = ctx->engine->params.sigcomm_grants;
	bool changed = false;

	if (unlikely(one_each != grants->one_each))
		changed = homa_settle_slots(grants, one_each);
	for (;;) {
		struct homa_heap_node *first = homa_heap_min(&grants->peers);
		struct homa_rpc *worst;

		if (grants->num_active > max) {
			homa_demote(grants, homa_worst(grants, NULL));
			changed = true;
			continue;
		}
		if (!first || (one_each && first->key >> 32))
			return changed;
		if (grants->num_active == max) {
			u64 key;

			worst = homa_worst(grants, NULL);
			/* The last of n slots has rank n - 1. */
			key = (u64)(worst->peer->slots - 1u) << 32 |
			      homa_to_receive(&worst->in);
			if (!homa_worse(key, worst->in.birth, first->key,
					first->tie))
				return changed;
			homa_demote(grants, worst);
			homa_count(ctx, HOMA_M_grant_preempted, 1);
			first = homa_heap_min(&grants->peers);
		}
		homa_promote(grants,
			     homa_waiting_rpc(homa_heap_min(
				     &homa_container_of(first, struct homa_peer,
							grant_node)
					      ->waiting)));
		changed = true;
	}
}

void homa_grant_queue_settle(struct homa_ctx *ctx, struct homa_grants *grants,
			     u32 max)
{
	if (grants->num_active > max ||
	    grants->one_each != ctx->engine->params.sigcomm_grants ||
	    (grants->num_active < max && grants->num_waiting))
		homa_settle(ctx, grants, max);
}

void homa_grant_queue_add(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 max)
{
	struct homa_grants *grants = &rpc->link->grants;
	struct homa_grantee *in = &rpc->in;

	in->birth = homa_max_u64(ctx->now, grants->last_birth + 1);
	grants->last_birth = in->birth;
	homa_list_add_tail(&grants->ages, &in->age);
	homa_waiting_insert(grants, rpc);
	homa_peer_requeue(grants, rpc->peer);
	homa_settle_peer(ctx, grants, rpc->peer);
	homa_settle(ctx, grants, max);
}

void homa_grant_queue_remove(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 max)
{
	struct homa_grants *grants = &rpc->link->grants;

	homa_list_del(&rpc->in.age);
	if (rpc->in.state == HOMA_GRANTEE_ACTIVE)
		homa_active_remove(grants, rpc);
	else
		homa_waiting_remove(grants, rpc);
	homa_peer_requeue(grants, rpc->peer);
	homa_settle(ctx, grants, max);
}

bool homa_grant_queue_update(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 max)
{
	struct homa_grants *grants = &rpc->link->grants;
	struct homa_grantee *in = &rpc->in;
	bool changed;

	homa_heap_update(&rpc->peer->waiting, &in->node, homa_to_receive(in),
			 in->birth);
	homa_peer_requeue(grants, rpc->peer);
	changed = homa_settle_peer(ctx, grants, rpc->peer);
	return homa_settle(ctx, grants, max) || changed;
}

void homa_grant_queue_sort(struct homa_grants *grants)
{
	u64 keys[HOMA_MAX_ACTIVE];
	u32 i, j;

	for (i = 0; i < grants->num_active; i++) {
		struct homa_rpc *rpc = grants->active[i];
		u64 key = homa_to_receive(&rpc->in);

		for (j = i; j > 0; j--) {
			struct homa_rpc *other = grants->active[j - 1];

			if (!homa_worse(keys[j - 1], other->in.birth, key,
					rpc->in.birth))
				break;
			keys[j] = keys[j - 1];
			grants->active[j] = other;
			other->in.slot = (u8)j;
		}
		keys[j] = key;
		grants->active[j] = rpc;
		rpc->in.slot = (u8)j;
	}
}

void homa_grant_queue_retire(struct homa_ctx *ctx, struct homa_grants *grants,
			     u32 max)
{
	u32 i;

	for (i = grants->num_active; i-- > 0;) {
		struct homa_rpc *rpc = grants->active[i];

		if (rpc->in.granted < rpc->in.length)
			continue;
		homa_list_del(&rpc->in.age);
		homa_active_remove(grants, rpc);
		homa_peer_requeue(grants, rpc->peer);
	}
	homa_settle(ctx, grants, max);
}

struct homa_rpc *homa_grant_queue_oldest(struct homa_grants *grants)
{
	return homa_container_of(homa_list_first(&grants->ages),
				 struct homa_rpc, in.age);
}
