// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Who pays for a peer. Where the host says how many peers an owner may have
 * (homa_owner.max_peers), the one whose socket first sends to an address pays for its peer. An
 * owner who has as many as he may gives up an idle one of his own for the next, or is refused,
 * and what is refused makes no peer. So neither one owner nor strangers (homa_peer.c) can fill
 * the table with peers that are in use, or push out what others pay for.
 */
#include "homa_impl.h"
#include "homa_payer.h"

/* Forgets an idle peer of @turns, an owner's list of his peers in @stripe. Those that stay are
 * looked at last the next time. */
static bool homa_stripe_evict_of(struct homa_ctx *ctx,
				 struct homa_peer_stripe *stripe,
				 struct homa_list *turns)
{
	struct homa_list *pos = NULL, *last = turns->prev;
	u32 looks;

	/* A list that never had a peer is all zero. */
	for (looks = 0; last && looks < HOMA_EVICT_LOOKS && pos != last; looks++) {
		pos = homa_list_first(turns);
		if (!pos)
			break;
		homa_count(ctx, HOMA_M_peer_looks, 1);
		if (homa_peer_forget(ctx, stripe,
				     homa_list_entry(pos, struct homa_peer,
						     of_owner),
				     0))
			return true;
		homa_list_del(pos);
		homa_list_add_tail(turns, pos);
	}
	return false;
}

/* Forgets an idle peer of @owner, who has as many as he may. */
HOMA_RARE static bool homa_peer_evict_of(struct homa_ctx *ctx,
					 struct homa_owner *owner)
{
	bool done = false;
	u32 i;

	for (i = 0; i < HOMA_PEER_STRIPES && !done; i++) {
		struct homa_peer_stripe *stripe = &ctx->engine->peers[i];

		homa_lock(&stripe->lock);
		done = homa_stripe_evict_of(ctx, stripe, &owner->turns[i]);
		homa_unlock(&stripe->lock);
	}
	return done;
}

/* Makes room on the account of @owner, who has as many peers as he may: forgets an idle one of
 * his, or counts a refusal. */
HOMA_RARE static bool homa_owner_make_room(struct homa_ctx *ctx,
					   struct homa_owner *owner)
{
	if (homa_peer_evict_of(ctx, owner))
		return true;
	homa_counter_add(&owner->peers_refused, 1);
	homa_count(ctx, HOMA_M_peers_refused, 1);
	return false;
}

static bool homa_owner_at_limit(const struct homa_owner *owner)
{
	return owner->max_peers &&
	       HOMA_READ_ONCE(owner->peers) >= HOMA_READ_ONCE(owner->max_peers);
}

/* Charges @peer, which nobody pays for, to @owner; false: he has as many as he may. */
static bool homa_peer_charge(struct homa_ctx *ctx, struct homa_peer *peer,
			     struct homa_owner *owner)
{
	struct homa_engine *engine = ctx->engine;
	struct homa_peer_stripe *stripe = homa_peer_stripe(engine, peer->key);
	struct homa_list *turns = &owner->turns[stripe - engine->peers];

	if (homa_owner_at_limit(owner) && !homa_owner_make_room(ctx, owner))
		return false;
	HOMA_WRITE_ONCE(engine->peers_paid, true);
	homa_lock(&stripe->lock);
	if (!peer->owner) {
		if (!turns->next)
			homa_list_init(turns);
		homa_counter_add(&owner->peers, 1);
		homa_list_add_tail(turns, &peer->of_owner);
		peer->owner = owner;
		HOMA_WRITE_ONCE(peer->marks, peer->marks | HOMA_PEER_PAID);
		stripe->unpaid--;
	}
	homa_unlock(&stripe->lock);
	return true;
}

HOMA_HOT struct homa_peer *homa_peer_to(struct homa_ctx *ctx,
					struct homa_link *link,
					const struct homa_addr *addr,
					struct homa_owner *owner, int *err)
{
	/* A peer that is made may push out an idle one of somebody else, so an owner who may
	 * have no more makes none. */
	bool full = homa_owner_at_limit(owner);
	struct homa_peer *peer =
		homa_peer_get(ctx, link, addr,
			      unlikely(full) ? HOMA_PEER_FIND : HOMA_PEER_OURS);

	*err = -HOMA_EDQUOT;
	if (unlikely(full && !peer)) {
		if (!homa_owner_make_room(ctx, owner))
			return NULL;
		peer = homa_peer_get(ctx, link, addr, HOMA_PEER_OURS);
	}
	if (!peer) {
		*err = -HOMA_ENOBUFS;
		return NULL;
	}
	if (unlikely(!(HOMA_READ_ONCE(peer->marks) & HOMA_PEER_PAID)) &&
	    owner->max_peers && !homa_peer_charge(ctx, peer, owner)) {
		homa_peer_put(ctx, peer);
		return NULL;
	}
	return peer;
}
