// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The receiver's half of Homa: who may send how much to us, and at which
 * priority. homa_grant_queue.c decides which messages are active; here each
 * active message gets a window beyond what has arrived of it, the shortest
 * first, as long as everything outstanding toward this link stays below
 * max_incoming; part of that is kept for the best message, so that a shorter
 * one that appears finds room. The window is the Linux rule, max_incoming / (active + 1), so
 * that one message may use the whole link and many share it; or RTTbytes each
 * (SIGCOMM'18).
 *
 * Grants are batched: a GRANT goes out for at least a quantum, or the last
 * bytes of a message, or when nothing of the message is under way. That last
 * rule also keeps everything moving: whatever the settings, a message whose
 * outstanding bytes have all arrived is granted more, except that max_incoming
 * lets at most one packet through per run for its sake. So bytes of peers that
 * died slow the others down until they are given up, but stop nobody.
 *
 * Per DATA packet only homa_grant_received() runs, under the shard lock: it
 * notes the bytes and compares two numbers. Bytes are accounted to the link in
 * steps of a quantum or when nothing is outstanding, so link.incoming may be
 * too high by a step per message in flight, never too low.
 */
#include "homa_ctrl.h"
#include "homa_grant_queue.h"
#include "homa_grant_quiet.h"
#include "homa_grant_tail.h"

#define HOMA_DEFAULT_MBPS 25000u
/* IPv6, UDP and DATA headers: what a packet cannot carry of the MTU. */
#define HOMA_MAX_HEADERS (40u + 8u + 56u)

/*
 * struct homa_grant_pass - values of one run of the scheduler, which are read once
 * @max_incoming: bytes that may be outstanding on the link.
 * @ceiling: @max_incoming, less the bytes that are kept for a better message, plus the bytes
 *	that quiet senders hold.
 * @window: bytes that one message may have outstanding.
 * @quantum: bytes for which a GRANT is worth sending.
 * @packet: message bytes of a packet.
 * @grid: number of bytes on a multiple of which grants of the present message end: 1 or a
 *	packet's.
 * @rtt_bytes: bytes at a message's end that are granted at unscheduled priority; 0: none.
 * @levels: number of levels for scheduled bytes.
 * @exception: this run may still grant once beyond @max_incoming.
 * @limited: a message got less than @window because of @max_incoming.
 */
struct homa_grant_pass {
	u32 max_incoming;
	u32 ceiling;
	u32 window;
	u32 quantum;
	u32 packet;
	u32 grid;
	u32 rtt_bytes;
	u32 levels;
	bool exception;
	bool limited;
};

void homa_grants_init(struct homa_grants *grants)
{
	memset(grants, 0, sizeof(*grants));
	homa_lock_init(&grants->lock, HOMA_LOCK_GRANT);
	homa_heap_init(&grants->peers);
	homa_list_init(&grants->ages);
	grants->step = 1;
}

void homa_grant_due(struct homa_ctx *ctx, struct homa_link *link)
{
	if (ctx->grant_link == link)
		return;
	if (ctx->grant_link)
		homa_grant_run(ctx, ctx->grant_link);
	ctx->grant_link = link;
}

static u32 homa_overcommit(const struct homa_ctx *ctx)
{
	return homa_min_u32(ctx->engine->params.max_overcommit, HOMA_MAX_ACTIVE);
}

void homa_grant_add(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	struct homa_grantee *in = &rpc->in;
	struct homa_link *link = rpc->link;
	struct homa_grants *grants = &link->grants;
	u32 received = in->received;
	u32 pending = in->granted > received ? in->granted - received : 0;
	bool due;

	if (in->counted || (in->granted >= in->length && in->length <= link->mtu))
		return;
	/* A sender cannot raise the bytes that we expect above those that it should have
	 * sent. */
	pending = homa_min_u32(pending, HOMA_READ_ONCE(link->derived.rtt_bytes));
	in->accounted = in->granted - pending;
	in->counted = true;
	in->joined = false;
	homa_counter_add(&grants->incoming, pending);
	if (in->granted >= in->length)
		return;
	in->joined = true;
	homa_lock(&grants->lock);
	homa_grant_queue_add(ctx, rpc, homa_overcommit(ctx));
	due = in->state == HOMA_GRANTEE_ACTIVE;
	homa_unlock(&grants->lock);
	if (due)
		homa_grant_due(ctx, link);
}

void homa_grant_leave(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	struct homa_grantee *in = &rpc->in;
	struct homa_link *link = rpc->link;
	struct homa_grants *grants = &link->grants;
	bool due;

	in->counted = false;
	if (!in->joined && in->accounted == in->length)
		return;
	homa_lock(&grants->lock);
	homa_counter_add(&grants->incoming, (u64)in->accounted - in->granted);
	homa_grant_tail_remove(grants, rpc);
	if (in->state != HOMA_GRANTEE_IDLE)
		homa_grant_queue_remove(ctx, rpc, homa_overcommit(ctx));
	due = grants->num_active != 0;
	homa_unlock(&grants->lock);
	if (due)
		homa_grant_due(ctx, link);
}

/* Accounts bytes that have arrived, if they are enough, and notes if a grant may be due. */
static void homa_grant_account(struct homa_ctx *ctx, struct homa_rpc *rpc,
			       u32 granted, u8 state)
{
	struct homa_grantee *in = &rpc->in;
	struct homa_link *link = rpc->link;
	struct homa_grants *grants = &link->grants;
	u32 count = homa_min_u32(in->received, granted);
	bool due = state == HOMA_GRANTEE_ACTIVE;

	if ((s32)(count - in->accounted) > 0) {
		homa_counter_add(&grants->incoming, (u64)in->accounted - count);
		in->accounted = count;
		due |= HOMA_READ_ONCE(grants->limited);
	}
	if (state == HOMA_GRANTEE_WAITING) {
		homa_lock(&grants->lock);
		if (in->state == HOMA_GRANTEE_WAITING)
			due |= homa_grant_queue_update(ctx, rpc,
						       homa_overcommit(ctx));
		homa_unlock(&grants->lock);
	}
	if (due)
		homa_grant_due(ctx, link);
}

void homa_grant_received(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 fresh)
{
	struct homa_grantee *in = &rpc->in;
	const struct homa_grants *grants = &rpc->link->grants;
	u32 received = in->received + fresh;
	u32 granted;
	u8 state;

	HOMA_WRITE_ONCE(in->received, received);
	if (!in->counted)
		return;
	if (unlikely(ctx->engine->params.quiet_us))
		HOMA_WRITE_ONCE(rpc->peer->active_at, ctx->now);
	HOMA_WRITE_ONCE(in->in_order, homa_ranges_in_order(&rpc->ranges));
	granted = HOMA_READ_ONCE(in->granted);
	state = HOMA_READ_ONCE(in->state);
	if (received >= granted ||
	    (s32)(received - in->accounted) >= (s32)HOMA_READ_ONCE(grants->step) ||
	    (state == HOMA_GRANTEE_ACTIVE &&
	     granted - received <= HOMA_READ_ONCE(grants->low_water)))
		homa_grant_account(ctx, rpc, granted, state);
}

static void homa_grant_emit(struct homa_ctx *ctx, struct homa_rpc *rpc,
			    u32 offset, u8 priority)
{
	struct homa_grantee *in = &rpc->in;
	struct homa_ctrl *ctrl;

	homa_grant_tail_note(in, priority);
	if (unlikely(ctx->engine->params.quiet_us))
		HOMA_WRITE_ONCE(rpc->peer->active_at, ctx->now);
	/* These bytes were granted before and the sender has sent them, so only a RESEND
	 * brings them again. */
	if (unlikely(in->granted < in->again)) {
		ctrl = homa_ctrl_rpc(ctx, rpc, HOMA_RESEND);
		ctrl->offset = in->granted;
		ctrl->length = homa_min_u32(offset, in->again) - in->granted;
		ctrl->priority = priority;
	}
	if (likely(offset > in->again)) {
		ctrl = homa_ctrl_rpc(ctx, rpc, HOMA_GRANT);
		ctrl->offset = offset;
		ctrl->priority = priority;
	}
	homa_counter_add(&rpc->link->grants.incoming, offset - in->granted);
	HOMA_WRITE_ONCE(in->granted, offset);
	in->wire_prio = priority;
}

/*
 * Returns the level of the message at @rank of @active messages. The shortest message gets
 * the highest level in use, and unused levels are the high ones, so that a shorter message
 * that appears can preempt at once (SIGCOMM'18, section 3.4).
 */
static u8 homa_grant_level(u32 levels, u32 rank, u32 active)
{
	u32 top = homa_min_u32(levels, active);

	return top > rank ? (u8)(top - 1 - rank) : 0;
}

/* Returns the first offset that is not below @to and lies a multiple of @grid beyond what
 * is granted. */
static u64 homa_grant_grid(const struct homa_grant_pass *pass, u32 granted, u64 to)
{
	u32 n;

	if (pass->grid == 1 || to <= granted)
		return to;
	n = (u32)(to - granted) + pass->grid - 1;
	return (u64)granted + n - n % pass->grid;
}

/* Returns the offset up to which a message may be granted, given what is outstanding
 * altogether; in->granted if it gets nothing now. */
static u32 homa_grant_target(const struct homa_link *link,
			     const struct homa_grantee *in,
			     struct homa_grant_pass *pass, u32 limit)
{
	u32 received = HOMA_READ_ONCE(in->received);
	u32 granted = in->granted;
	u64 target = homa_min_u64(homa_grant_grid(pass, granted,
						  (u64)received + pass->window),
				  limit);
	/* A sender may be ahead of its grants: bytes that have come need no room. */
	bool idle = received >= granted;
	u32 base = idle ? received : granted;
	u32 step, least;
	s64 room;

	if (target <= granted)
		return granted;
	step = target > base ? (u32)target - base : 0;
	if (!idle && step < pass->quantum && target != limit)
		return granted;
	room = (s64)pass->ceiling - (s64)HOMA_READ_ONCE(link->grants.incoming);
	if (step <= room || !step)
		return (u32)target;
	pass->limited = true;
	/* The message waits rather than get a grant of a few bytes. */
	least = homa_min_u32(step, idle ? pass->packet : pass->quantum);
	if (room >= least)
		return base + (u32)room;
	if (!idle || !pass->exception)
		return granted;
	pass->exception = false;
	return base + least;
}

/* Grants what is due to one message. */
static void homa_grant_one(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 rank,
			   u32 active, struct homa_grant_pass *pass)
{
	struct homa_grantee *in = &rpc->in;
	u32 limit = in->length;
	bool limited = pass->limited;
	u8 level = homa_grant_level(pass->levels, rank, active);
	u32 target;

	level = homa_grant_tail_level(&rpc->link->grants, in, level);
	pass->limited = false;
	pass->grid = ctx->engine->params.sigcomm_grants ?
			     HOMA_READ_ONCE(rpc->peer->mtu_seg) :
			     1;
	if (pass->rtt_bytes) {
		if (in->length - in->granted > pass->rtt_bytes) {
			/* Bytes on two levels need two grants, so the first ends at the
			 * border. */
			limit = in->length - pass->rtt_bytes;
			limit = (u32)homa_min_u64(homa_grant_grid(pass,
								  in->granted,
								  limit),
						  in->length);
			target = homa_grant_target(rpc->link, in, pass, limit);
			if (target != in->granted)
				homa_grant_emit(ctx, rpc, target, level);
			if (target == limit)
				limit = in->length;
		}
		if (limit == in->length)
			level = homa_prio_unsched(ctx->engine,
						  in->length - in->granted);
	}
	if (limit == in->length) {
		target = homa_grant_target(rpc->link, in, pass, limit);
		if (target != in->granted)
			homa_grant_emit(ctx, rpc, target, level);
	}
	if (pass->limited)
		homa_count(ctx, HOMA_M_grant_limited, 1);
	pass->limited |= limited;
}

/* Returns the message bytes that each packet on @link can carry at least. */
static u32 homa_grant_packet(const struct homa_link *link)
{
	return link->mtu > 2 * HOMA_MAX_HEADERS ? link->mtu - HOMA_MAX_HEADERS :
						  HOMA_MAX_HEADERS;
}

static void homa_grant_measure(struct homa_ctx *ctx, struct homa_link *link,
			       struct homa_grant_pass *pass)
{
	const struct homa_params *params = &ctx->engine->params;
	struct homa_grants *grants = &link->grants;
	u32 window = HOMA_READ_ONCE(link->derived.window);

	pass->max_incoming = HOMA_READ_ONCE(link->derived.max_incoming);
	pass->packet = homa_grant_packet(link);
	if (!window)
		window = homa_max_u32(pass->max_incoming /
					      (grants->num_active + 1),
				      pass->packet);
	pass->window = window;
	pass->quantum = params->grant_quantum;
	if (!pass->quantum)
		pass->quantum = params->sigcomm_grants ?
					pass->packet :
					homa_max_u32(window / 4, pass->packet);
	pass->quantum = homa_min_u32(pass->quantum, window);
	if (window == grants->window && pass->quantum == grants->step)
		return;
	HOMA_WRITE_ONCE(grants->window, window);
	HOMA_WRITE_ONCE(grants->low_water,
			window - (params->sigcomm_grants ? 1 : pass->quantum));
	HOMA_WRITE_ONCE(grants->step, pass->quantum);
}

/*
 * Grants a share to the oldest message, out of order and beyond max_incoming, so that long
 * messages advance under overload (ATC'21, section 3.2).
 */
static void homa_grant_fifo(struct homa_ctx *ctx, struct homa_link *link,
			    const struct homa_grant_pass *pass)
{
	const struct homa_params *params = &ctx->engine->params;
	struct homa_grants *grants = &link->grants;
	u32 rate = link->rate_mbps ? link->rate_mbps : HOMA_DEFAULT_MBPS;
	u32 levels = params->num_priorities;
	u32 increment = HOMA_READ_ONCE(link->derived.fifo_increment);
	struct homa_rpc *rpc;
	u64 interval, outstanding, offset;
	u32 received;
	bool late;

	/* The interval is the time in which grant_fifo_fraction thousandths of the rate
	 * carry the increment; 1000 bytes take 8e6 / rate ns. */
	interval = homa_div64(increment * 8000000ull,
			      (u64)rate * params->grant_fifo_fraction);
	/* Grants were not continuously wanted: there is no overload. */
	late = homa_since(ctx->now, grants->fifo_at) > interval;
	grants->fifo_at = ctx->now + interval;
	if (late)
		return;
	rpc = homa_grant_queue_oldest(grants);
	received = HOMA_READ_ONCE(rpc->in.received);
	outstanding = rpc->in.granted > received ? rpc->in.granted - received : 0;
	if (outstanding >= (u64)pass->window + 2ull * increment)
		return;
	offset = homa_min_u64((u64)rpc->in.granted + increment, rpc->in.length);
	homa_grant_emit(ctx, rpc, (u32)offset, levels > 2 ? (u8)(levels - 2) : 0);
	homa_count(ctx, HOMA_M_grant_fifo, 1);
	if (offset == rpc->in.length)
		homa_grant_queue_remove(ctx, rpc, homa_overcommit(ctx));
}

/*
 * Passes once over the active messages, best first. Returns false if another pass is
 * needed, because a message was granted to its end: its window is for others
 * now, and perhaps its place.
 */
static bool homa_grant_pass(struct homa_ctx *ctx, struct homa_link *link,
			    struct homa_grant_pass *pass)
{
	struct homa_grants *grants = &link->grants;
	u32 active = grants->num_active;
	bool done = true;
	u32 rank;

	homa_grant_measure(ctx, link, pass);
	homa_grant_tail_expire(grants);
	homa_grant_queue_sort(grants);
	pass->ceiling =
		pass->max_incoming + homa_grant_quiet(ctx, grants, pass->window);
	for (rank = 0; rank < active; rank++) {
		struct homa_rpc *rpc = grants->active[rank];

		if (rank == 1)
			pass->ceiling -= HOMA_READ_ONCE(link->derived.reserved);
		homa_grant_one(ctx, rpc, rank, active, pass);
		if (rpc->in.granted < rpc->in.length)
			continue;
		done = false;
		if (!ctx->engine->params.sigcomm_grants)
			homa_grant_tail_add(grants, rpc);
	}
	if (!done)
		homa_grant_queue_retire(ctx, grants, homa_overcommit(ctx));
	return done;
}

void homa_grant_run(struct homa_ctx *ctx, struct homa_link *link)
{
	const struct homa_params *params = &ctx->engine->params;
	struct homa_grants *grants = &link->grants;
	struct homa_grant_pass pass = {
		.rtt_bytes = params->last_rtt_unsched ?
				     HOMA_READ_ONCE(link->derived.rtt_bytes) :
				     0,
		.levels = HOMA_READ_ONCE(ctx->engine->prio.sched_levels),
		.exception = true,
	};

	if (ctx->grant_link == link)
		ctx->grant_link = NULL;
	homa_lock(&grants->lock);
	homa_grant_queue_settle(ctx, grants, homa_overcommit(ctx));
	if (grants->num_active + grants->num_waiting > 1 &&
	    ctx->now >= grants->fifo_at && params->grant_fifo_fraction) {
		homa_grant_measure(ctx, link, &pass);
		homa_grant_fifo(ctx, link, &pass);
	}
	while (grants->num_active && !homa_grant_pass(ctx, link, &pass))
		;
	if (grants->limited != pass.limited)
		HOMA_WRITE_ONCE(grants->limited, pass.limited);
	homa_unlock(&grants->lock);
}
