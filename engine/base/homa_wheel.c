// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The wheel of homa_wheel.h. A deadline belongs to the first tick that begins
 * at or after it, so that whatever is in the fine slot of a tick that has begun is
 * due, and popping compares no deadlines.
 */
#include "homa_wheel.h"

HOMA_STATIC_ASSERT(HOMA_WHEEL_SLOTS <= 64, "one bit per slot");

#define HOMA_WHEEL_NONE UINT64_MAX

void homa_wheel_init(struct homa_wheel *wheel, u64 tick_ns, u64 now)
{
	int level, i;

	wheel->shift = 0;
	while (wheel->shift < 63 && (1ull << wheel->shift) < tick_ns)
		wheel->shift++;
	wheel->base = now >> wheel->shift;
	wheel->count = 0;
	for (level = 0; level < HOMA_WHEEL_LEVELS; level++) {
		wheel->occupied[level] = 0;
		for (i = 0; i < HOMA_WHEEL_SLOTS; i++)
			homa_list_init(&wheel->slot[level][i]);
	}
}

void homa_wheel_del(struct homa_wheel *wheel, struct homa_wheel_node *node)
{
	struct homa_list *slot = &wheel->slot[0][0] + node->slot;

	if (!homa_wheel_linked(node))
		return;
	homa_list_del(&node->list);
	if (homa_list_empty(slot))
		wheel->occupied[node->slot >> HOMA_WHEEL_BITS] &=
			~(1ull << node->slot % HOMA_WHEEL_SLOTS);
	wheel->count--;
}

/* Returns the first slot of a level that has nodes, as a number that counts on from 0;
 * HOMA_WHEEL_NONE: no slot has some. Bits of slots that are empty are cleared on the way. */
static u64 homa_wheel_first(struct homa_wheel *wheel, int level)
{
	u64 begin = wheel->base >> level * HOMA_WHEEL_BITS;
	u32 turn = begin % HOMA_WHEEL_SLOTS;
	u64 occupied, first;

	while ((occupied = wheel->occupied[level])) {
		if (turn)
			occupied = occupied >> turn |
				   occupied << (HOMA_WHEEL_SLOTS - turn);
		first = begin + (u32)homa_ctz64(occupied);
		if (!homa_list_empty(
			    &wheel->slot[level][first % HOMA_WHEEL_SLOTS]))
			return first;
		wheel->occupied[level] &= ~(1ull << first % HOMA_WHEEL_SLOTS);
	}
	return HOMA_WHEEL_NONE;
}

/* Returns the tick at which the next node comes out, and writes the level to *level. The
 * coarse level goes first, because its nodes may belong into the same fine slot. */
static u64 homa_wheel_due(struct homa_wheel *wheel, int *level)
{
	u64 fine = homa_wheel_first(wheel, 0);
	u64 coarse = homa_wheel_first(wheel, 1);

	if (coarse != HOMA_WHEEL_NONE)
		coarse <<= HOMA_WHEEL_BITS;
	*level = coarse <= fine;
	return homa_min_u64(fine, coarse);
}

/* Moves the base on to @tick, but not beyond a slot that has nodes. */
static void homa_wheel_turn(struct homa_wheel *wheel, u64 tick)
{
	int level;

	if (tick > wheel->base)
		wheel->base = homa_min_u64(tick, homa_wheel_due(wheel, &level));
}

HOMA_HOT void homa_wheel_add(struct homa_wheel *wheel,
			     struct homa_wheel_node *node, u64 deadline, u64 now)
{
	u64 tick = deadline >> wheel->shift;
	u64 coarse;

	homa_wheel_del(wheel, node);
	if (tick << wheel->shift != deadline)
		tick++;
	if (unlikely(tick >= wheel->base + HOMA_WHEEL_SLOTS))
		homa_wheel_turn(wheel, now >> wheel->shift);
	tick = homa_max_u64(tick, wheel->base);
	if (likely(tick - wheel->base < HOMA_WHEEL_SLOTS)) {
		node->slot = tick % HOMA_WHEEL_SLOTS;
		wheel->occupied[0] |= 1ull << node->slot;
	} else {
		coarse = homa_min_u64(tick >> HOMA_WHEEL_BITS,
				      (wheel->base >> HOMA_WHEEL_BITS) +
					      HOMA_WHEEL_SLOTS - 1) %
			 HOMA_WHEEL_SLOTS;
		node->slot = HOMA_WHEEL_SLOTS + (u32)coarse;
		wheel->occupied[1] |= 1ull << coarse;
	}
	node->deadline = deadline;
	homa_list_add_tail(&wheel->slot[0][0] + node->slot, &node->list);
	wheel->count++;
}

struct homa_wheel_node *homa_wheel_pop(struct homa_wheel *wheel, u64 now)
{
	u64 tick = now >> wheel->shift;
	struct homa_wheel_node *node;
	struct homa_list *first;
	u64 due, slot;
	int level;

	if (!wheel->count) {
		memset(wheel->occupied, 0, sizeof(wheel->occupied));
		wheel->base = homa_max_u64(wheel->base, tick);
		return NULL;
	}
	due = homa_wheel_due(wheel, &level);
	if (due > tick) {
		wheel->base = homa_max_u64(wheel->base, tick);
		return NULL;
	}
	/* The base is not moved beyond @due, because other nodes of that slot are still to
	 * come out. */
	wheel->base = due;
	slot = due >> level * HOMA_WHEEL_BITS;
	first = homa_list_first(&wheel->slot[level][slot % HOMA_WHEEL_SLOTS]);
	node = homa_list_entry(first, struct homa_wheel_node, list);
	homa_wheel_del(wheel, node);
	return node;
}

u64 homa_wheel_next(struct homa_wheel *wheel)
{
	u64 due;
	int level;

	if (!wheel->count)
		return UINT64_MAX;
	due = homa_wheel_due(wheel, &level);
	return due << wheel->shift;
}
