// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Peers that say BUSY. They have the RPC and speak up by themselves, with DATA or
 * NEED_ACK; a question serves only to notice one that has forgotten it. If each
 * RPC asked by its own clock, a client with thousands of requests at a slow
 * server would send it nothing but questions, and a machine that is slow because
 * it is busy would never get out of that. So a peer is asked a fixed number of
 * times per interval: the more RPCs it is busy with, the longer each waits. That
 * the peer as a whole is gone is still noticed at once (homa_timer.c).
 */
#include "homa_busy.h"

void homa_busy_wait(struct homa_ctx *ctx, struct homa_rpc *rpc, u64 least)
{
	u64 base = HOMA_READ_ONCE(rpc->link->derived.resend_ns);
	struct homa_peer *peer = rpc->peer;
	u64 round;

	rpc->flags |= HOMA_RPC_BUSY;
	homa_lock(&peer->lock);
	round = homa_busy_round(++peer->num_busy, base);
	homa_unlock(&peer->lock);
	rpc->probe_at = ctx->now + homa_max_u64(round, least);
}

void homa_busy(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	u64 base = HOMA_READ_ONCE(rpc->link->derived.resend_ns);

	rpc->probes = 0;
	if ((rpc->flags & HOMA_RPC_BUSY) ||
	    (rpc->state != HOMA_RPC_OUTGOING && rpc->state != HOMA_RPC_INCOMING))
		return;
	homa_busy_wait(ctx, rpc, homa_ask_after(rpc, base, HOMA_DOUBLINGS));
}

/* Moves the deadline of @rpc to the next RESEND interval, because it may have been many
 * intervals away. */
HOMA_RARE void homa_patience_ends(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	u64 due = ctx->now + HOMA_READ_ONCE(rpc->link->derived.resend_ns);

	rpc->probes = 0;
	homa_busy_over(rpc);
	if (homa_wheel_linked(&rpc->timer) && rpc->timer.deadline > due)
		homa_rpc_arm(rpc, due);
}

void homa_busy_ends(struct homa_rpc *rpc)
{
	struct homa_peer *peer = rpc->peer;

	rpc->flags &= (u8)~HOMA_RPC_BUSY;
	/* The RPC has no turn any more for which it would wait. */
	rpc->probe_at = homa_min_u64(rpc->probe_at, rpc->heard_at);
	homa_lock(&peer->lock);
	peer->num_busy--;
	homa_unlock(&peer->lock);
}
