// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Loss, as the receiver of a message sees it. It asks with RESEND for bytes that were
 * granted and did not come: after silence (homa_timer.c), or earlier where packets that
 * were sent later have come already.
 */
#include "homa_busy.h"
#include "homa_ctrl.h"
#include "homa_repair.h"

/* Number of messages of a peer that are not asked about early after a packet came late. */
#define HOMA_LATE_MESSAGES 100u

/* Notes that nothing has come yet of the bytes that were asked for now. */
static void homa_rpc_repairing(struct homa_rpc *rpc)
{
	rpc->repaired_to = 0;
	rpc->repaired = 0;
}

u32 homa_resend_missing(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 end_at,
			u32 most, u8 prio)
{
	u32 limit = homa_min_u32(HOMA_READ_ONCE(rpc->in.granted), end_at);
	struct homa_ranges_iter iter;
	u32 start, end, n = 0;

	if (rpc->flags & HOMA_RPC_NO_BUFFER)
		return 0;
	homa_ranges_iter_init(&iter, &rpc->ranges);
	while (n < most && homa_ranges_missing(&iter, limit, &start, &end)) {
		struct homa_ctrl *ctrl = homa_ctrl_rpc(ctx, rpc, HOMA_RESEND);

		ctrl->offset = start;
		ctrl->length = end - start;
		ctrl->priority = prio;
		n++;
	}
	homa_rpc_repairing(rpc);
	rpc->overtaken_to = 0;
	rpc->asked_to = homa_max_u32(rpc->asked_to,
				     homa_min_u32(rpc->ranges.end, end_at));
	return n;
}

/*
 * Asks again for bytes that were lost once more. Bytes are sent again in the order in which
 * they were asked for, ahead of all others of their message. When some come, what was asked
 * for before them and has not come was lost once more, and is asked for without another
 * interval of silence: no more gaps than packets came, or a stranger could have us send
 * more than he sends.
 */
void homa_rpc_repaired(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 end)
{
	u64 base = HOMA_READ_ONCE(rpc->link->derived.resend_ns);

	if (!rpc->probe_at)
		return;
	if (!rpc->repaired_to)
		homa_rpc_arm(rpc, ctx->now + base / HOMA_REPAIR_ROUNDS);
	rpc->repaired_to = homa_max_u32(rpc->repaired_to, end);
	if (rpc->repaired < 255)
		rpc->repaired++;
}

/* Returns by how many bits a time is shifted for homa_rpc.overtaken_at: so many that a @window of
 * waiting, in ns, is at most half of what 8 bits count. */
static u32 homa_tick_shift(u64 window)
{
	u32 shift = HOMA_TICK_SHIFT;

	while (window >> shift > 127)
		shift++;
	return shift;
}

/* Returns how long @rpc waits for what others have overtaken, in ns. */
static u64 homa_early_window(const struct homa_rpc *rpc)
{
	return HOMA_READ_ONCE(rpc->link->derived.resend_ns) / HOMA_REPAIR_ROUNDS;
}

static void homa_rpc_watch(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 to)
{
	rpc->overtaken_to = to;
	rpc->overtaken_at =
		(u8)(ctx->now >> homa_tick_shift(homa_early_window(rpc)));
}

/*
 * Packets of a message are sent in order, and on no higher level than those before
 * unless the level of its grants was raised (homa_grant_tail.c). What others have
 * overtaken is lost, then, or the network has several ways. So it need not wait for
 * silence: it is asked for once, after an eighth of the interval. Where a packet
 * comes after all, the network has ways of different length, and the next
 * messages from there wait for silence.
 */
HOMA_RARE void homa_rpc_gaps(struct homa_ctx *ctx, struct homa_rpc *rpc,
			     bool more, u32 end)
{
	struct homa_peer *peer = rpc->peer;
	u8 late = HOMA_READ_ONCE(peer->late);

	if (rpc->asked_to == HOMA_NO_EARLY || (more && rpc->overtaken_to))
		return;
	if (!more && end > rpc->asked_to)
		return;
	if (!more) {
		HOMA_WRITE_ONCE(peer->late, HOMA_LATE_MESSAGES);
	} else if (late) {
		HOMA_WRITE_ONCE(peer->late, (u8)(late - 1));
	} else {
		homa_rpc_watch(ctx, rpc, rpc->ranges.end);
		homa_rpc_arm(rpc, ctx->now + homa_early_window(rpc));
		return;
	}
	rpc->overtaken_to = 0;
	rpc->asked_to = HOMA_NO_EARLY;
}

/* Asks for gaps that were overtaken long ago and not asked for; then watches those that
 * were overtaken since. */
static void homa_rpc_ask_early(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	u8 top = (u8)(ctx->engine->params.num_priorities - 1);
	u32 start, end, n = 0, to = rpc->overtaken_to, first = 0xffffffff;
	/* A packet may lie far beyond what was granted; bytes before it that were not
	 * granted are not missing. */
	u32 limit = homa_min_u32(HOMA_READ_ONCE(rpc->in.granted), to);
	struct homa_ranges_iter iter;

	homa_ranges_iter_init(&iter, &rpc->ranges);
	while (n < HOMA_MAX_GAPS_ASKED &&
	       homa_ranges_missing(&iter, limit, &start, &end)) {
		struct homa_ctrl *ctrl;

		if (end <= rpc->asked_to)
			continue;
		first = homa_min_u32(first, start);
		ctrl = homa_ctrl_rpc(ctx, rpc, HOMA_RESEND);
		ctrl->offset = start;
		ctrl->length = end - start;
		ctrl->priority = top;
		n++;
	}
	if (n) {
		/* This is the first question; the intervals to the next ones double. */
		homa_rpc_asked(ctx, rpc);
		/* Bytes that came again unasked, before this question, do not answer it. */
		if (!homa_rpc_overtaken(rpc) || first < rpc->repaired_to)
			homa_rpc_repairing(rpc);
		homa_count(ctx, HOMA_M_resends_early, n);
	}
	rpc->asked_to = to;
	homa_rpc_watch(ctx, rpc, rpc->ranges.end > to ? rpc->ranges.end : 0);
}

/* Returns the time at which to look at the RPC again because of overtaken gaps, in ns, or
 * HOMA_NEVER. */
u64 homa_rpc_early(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	u64 window;
	u32 shift;
	u8 ticks;

	if (!rpc->overtaken_to)
		return HOMA_NEVER;
	window = homa_early_window(rpc);
	shift = homa_tick_shift(window);
	ticks = (u8)((u8)(ctx->now >> shift) - rpc->overtaken_at);
	if (ticks > window >> shift && HOMA_READ_ONCE(rpc->in.in_order) >=
					       HOMA_READ_ONCE(rpc->in.low_until))
		homa_rpc_ask_early(ctx, rpc);
	return rpc->overtaken_to ? ctx->now + window : HOMA_NEVER;
}
