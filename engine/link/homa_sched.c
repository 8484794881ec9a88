// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The scheduler of homa_sched.h: what is not asked for every packet.
 */
#include "homa_sched.h"

void homa_sched_init(struct homa_sched *sched)
{
	memset(sched, 0, sizeof(*sched));
	homa_heap_init(&sched->heap);
	homa_heap_init(&sched->fifo);
}

void homa_sched_enter(struct homa_sched *sched, struct homa_sendable *s,
		      u64 left, u64 age, u64 id)
{
	HOMA_WRITE_ONCE(s->queued, 1);
	s->node.key = left;
	s->node.tie = age;
	homa_heap_insert(&sched->heap, &s->node);
	if (s->brief)
		return;
	s->fifo.key = age;
	s->fifo.tie = id;
	homa_heap_insert(&sched->fifo, &s->fifo);
}

void homa_sched_leave(struct homa_sched *sched, struct homa_sendable *s)
{
	HOMA_WRITE_ONCE(s->queued, 0);
	homa_heap_remove(&sched->heap, &s->node);
	if (!s->brief)
		homa_heap_remove(&sched->fifo, &s->fifo);
}

u32 homa_sched_burst(const struct homa_sched *sched,
		     const struct homa_sendable *s, u32 most)
{
	u64 packets;

	if (most <= 1)
		return 1;
	if (sched->by_room)
		packets = homa_div64(sched->room, s->packet);
	else if (sched->ps_per_byte)
		packets = homa_div64(HOMA_READ_ONCE(sched->backlog_ns) * 1000,
				     (u64)sched->ps_per_byte * s->packet);
	else
		return most;
	return (u32)homa_max_u64(1, homa_min_u64(packets, most));
}
