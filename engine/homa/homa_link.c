// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Links: making one out of memory that the host hands in, and telling it what the device
 * can take.
 */
#include "homa_impl.h"

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
	homa_unlock(&link->lock);
}

void homa_link_pace_by_rate(struct homa_link *link)
{
	homa_lock(&link->lock);
	link->sched.by_room = false;
	homa_unlock(&link->lock);
}

void homa_link_room(struct homa_link *link, u64 bytes)
{
	homa_lock(&link->lock);
	link->sched.room = bytes;
	homa_unlock(&link->lock);
}
