// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Links: making one out of memory that the host hands in, telling it what the device
 * can take, and sharing it with others.
 */
#include "homa_impl.h"
#include "homa_link_open.h"

size_t homa_link_size(u32 ctrl_slots)
{
	return sizeof(struct homa_link) + ctrl_slots * sizeof(struct homa_ctrl);
}

void homa_link_init(struct homa_link *link, struct homa_engine *engine,
		    u32 rate_mbps, u32 mtu, u32 ctrl_slots)
{
	memset(link, 0, sizeof(*link));
	link->engine = engine;
	homa_lock_init(&link->lock, HOMA_LOCK_LINK);
	homa_sched_init(&link->sched);
	link->ctrl = (struct homa_ctrl *)(link + 1);
	link->ctrl_mask = ctrl_slots - 1;
	link->rate_mbps = rate_mbps;
	link->mtu = mtu;
	link->open = true;
	homa_grants_init(&link->grants);
	homa_link_derive(link);
}

void homa_link_set(struct homa_link *link, u32 rate_mbps, u32 mtu)
{
	HOMA_WRITE_ONCE(link->rate_mbps, rate_mbps);
	HOMA_WRITE_ONCE(link->mtu, mtu);
	homa_link_derive(link);
}

void homa_link_pace_by_room(struct homa_link *link)
{
	homa_lock(&link->lock);
	link->sched.by_room = true;
	homa_link_look(link);
	homa_unlock(&link->lock);
}

void homa_link_pace_by_rate(struct homa_link *link)
{
	homa_lock(&link->lock);
	link->sched.by_room = false;
	homa_link_look(link);
	homa_unlock(&link->lock);
}

void homa_link_room(struct homa_link *link, u64 bytes)
{
	homa_lock(&link->lock);
	link->sched.room = bytes;
	homa_unlock(&link->lock);
}

void homa_link_share(struct homa_link *link, u32 percent)
{
	homa_lock(&link->lock);
	homa_turns_set(&link->sched.turns, percent);
	homa_unlock(&link->lock);
}

enum homa_sender homa_link_turn(struct homa_ctx *ctx, struct homa_link *link,
				bool others, u64 *not_before)
{
	struct homa_sched *sched = &link->sched;
	const struct homa_sendable *first;
	enum homa_sender turn;
	bool ctrl;

	homa_lock(&link->lock);
	ctrl = link->ctrl_head != link->ctrl_tail;
	first = homa_sched_first(sched);
	turn = homa_turns_next(&sched->turns, ctrl || first, others,
			       ctrl || (first && first->brief));
	if (turn == HOMA_TURN_OTHERS &&
	    !homa_sched_open(sched, HOMA_READ_ONCE(link->mtu), ctx->now,
			     not_before))
		turn = HOMA_TURN_WAIT;
	homa_unlock(&link->lock);
	return turn;
}

void homa_link_spent(struct homa_ctx *ctx, struct homa_link *link, u64 bytes)
{
	homa_lock(&link->lock);
	homa_sched_charge_others(&link->sched, ctx->now, bytes);
	homa_unlock(&link->lock);
}
