/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The wheel of homa_wheel.h. A deadline belongs to the first tick that begins
 * at or after it, so that whatever is in the slot of a tick that has begun is
 * due, and popping compares no deadlines.
 */
#include "homa_wheel.h"

void homa_wheel_init(struct homa_wheel *wheel, u64 tick_ns, u64 now)
{
	int i;

	wheel->shift = 0;
	while (wheel->shift < 63 && (1ull << wheel->shift) < tick_ns)
		wheel->shift++;
	wheel->occupied = 0;
	wheel->base = now >> wheel->shift;
	wheel->count = 0;
	for (i = 0; i < HOMA_WHEEL_SLOTS; i++)
		homa_list_init(&wheel->slot[i]);
}

void homa_wheel_del(struct homa_wheel *wheel, struct homa_wheel_node *node)
{
	if (!homa_wheel_linked(node))
		return;
	homa_list_del(&node->list);
	if (homa_list_empty(&wheel->slot[node->slot]))
		wheel->occupied &= ~(1ull << node->slot);
	wheel->count--;
}

void homa_wheel_add(struct homa_wheel *wheel, struct homa_wheel_node *node,
		    u64 deadline)
{
	u64 tick = deadline >> wheel->shift;

	if (tick << wheel->shift != deadline)
		tick++;
	tick = homa_max_u64(tick, wheel->base);
	tick = homa_min_u64(tick, wheel->base + HOMA_WHEEL_SLOTS - 1);

	homa_wheel_del(wheel, node);
	node->deadline = deadline;
	node->slot = tick % HOMA_WHEEL_SLOTS;
	homa_list_add_tail(&wheel->slot[node->slot], &node->list);
	wheel->occupied |= 1ull << node->slot;
	wheel->count++;
}

/* First tick with nodes; there are some. */
static u64 homa_wheel_first(const struct homa_wheel *wheel)
{
	u32 turn = wheel->base % HOMA_WHEEL_SLOTS;
	u64 from_base = wheel->occupied;

	if (turn)
		from_base = from_base >> turn |
			    from_base << (HOMA_WHEEL_SLOTS - turn);
	return wheel->base + (u32)homa_ctz64(from_base);
}

struct homa_wheel_node *homa_wheel_pop(struct homa_wheel *wheel, u64 now)
{
	u64 tick = now >> wheel->shift;
	struct homa_wheel_node *node;
	struct homa_list *first;
	u64 due = tick;

	if (wheel->occupied)
		due = homa_wheel_first(wheel);
	if (!wheel->occupied || due > tick) {
		wheel->base = homa_max_u64(wheel->base, tick);
		return NULL;
	}
	/* Not beyond @due: its other nodes are still to come. */
	wheel->base = due;
	first = homa_list_first(&wheel->slot[due % HOMA_WHEEL_SLOTS]);
	node = homa_list_entry(first, struct homa_wheel_node, list);
	homa_wheel_del(wheel, node);
	return node;
}

u64 homa_wheel_next(const struct homa_wheel *wheel)
{
	if (!wheel->occupied)
		return UINT64_MAX;
	return homa_wheel_first(wheel) << wheel->shift;
}
