// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * How long a server waits for the ack of a response before it asks with NEED_ACK. A client
 * that shares its cores with many others acknowledges after many milliseconds, without any
 * loss. If its server asks after a fixed time, each RPC has questions and answers that say
 * nothing new, the client's host is slower because of them, and the machine does not get out
 * of that: by chance 64 applications on two cores did 152,000 to 186,000 RPCs per second or 33,000
 * to 83,000. So the wait is twice what the peer's acks have taken, on average over about eight.
 *
 * An ack that was lost holds up nobody but the limits on RPCs: the longer wait ends with half
 * of what the peer, or the owner of the server's socket, may have open.
 */
#include "homa_ack.h"

#include "homa_owner.h"

/* Longest wait, as a multiple of need_ack_us. */
#define HOMA_ACK_PATIENCE 16u
/* A new delay counts in the average by 1 part in this many. */
#define HOMA_ACK_WEIGHT 8

void homa_ack_came(struct homa_ctx *ctx, const struct homa_rpc *rpc)
{
	u64 delay = homa_since(ctx->now, HOMA_READ_ONCE(rpc->out.sent_at)) >>
		    HOMA_ACK_SHIFT;
	s32 average = HOMA_READ_ONCE(rpc->peer->ack_delay);
	s32 more = ((s32)homa_min_u64(delay, 0xff) - average) / HOMA_ACK_WEIGHT;

	/* If two CPUs write at once, one of two samples is lost. */
	if (unlikely(more))
		HOMA_WRITE_ONCE(rpc->peer->ack_delay, (u8)(average + more));
}

/* Do the owner or the peer use so much that an RPC that waits for its ack may keep another
 * from beginning? */
static bool homa_ack_urgent(const struct homa_engine *engine,
			    const struct homa_rpc *rpc)
{
	u64 owner = HOMA_READ_ONCE(rpc->sock->owner->rpcs);
	u32 peer = HOMA_READ_ONCE(rpc->peer->server_rpcs);

	return peer >= homa_peer_share(engine, rpc->sock) / 2 ||
	       owner >= homa_rpcs_left(engine) / 2;
}

HOMA_HOT u64 homa_ack_wait(const struct homa_ctx *ctx, const struct homa_rpc *rpc)
{
	u64 least = ctx->engine->params.need_ack_us * 1000ull;
	u64 wait = 2 * ((u64)HOMA_READ_ONCE(rpc->peer->ack_delay)
			<< HOMA_ACK_SHIFT);

	if (likely(wait <= least) || homa_ack_urgent(ctx->engine, rpc))
		return least;
	return homa_min_u64(wait, HOMA_ACK_PATIENCE * least);
}
