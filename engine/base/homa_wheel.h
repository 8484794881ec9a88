/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Timer wheel: 64 fine slots of one tick each, 64 coarse ones of 64 ticks, and a
 * bitmap of those in use for each. Adding and removing cost O(1), finding the
 * next deadline two rotations and counts of zeros, and one more for each slot that was
 * emptied by homa_wheel_leave(). A deadline beyond 64 ticks waits in a coarse slot: it
 * comes out when that slot begins, so early, and the caller adds it again, which puts it
 * into a fine one. One beyond the horizon of 64 coarse slots waits in the last of them. So
 * a node that waits for T comes out early once, and once more for each horizon in T: with
 * a tick of half a millisecond every two seconds. Nothing is late by more than a tick.
 *
 * Guarded by: the owner of the wheel, whose lock is held for all calls and for the nodes in it.
 */
#ifndef HOMA_WHEEL_H
#define HOMA_WHEEL_H

#include "homa_list.h"

/* tests/cbmc uses a smaller number, because what it checks does not depend on it. */
#ifndef HOMA_WHEEL_BITS
#define HOMA_WHEEL_BITS 6
#endif
#define HOMA_WHEEL_SLOTS (1 << HOMA_WHEEL_BITS)
#define HOMA_WHEEL_LEVELS 2

/**
 * struct homa_wheel_node - embedded in what waits for a moment
 * @list: links the node into the list of its slot while it waits.
 * @deadline: the moment that homa_wheel_add() was given, ns. homa_wheel_pop() may return
 *	the node before it, so compare it with the time.
 * @slot: the index of the node's slot; those of the coarse level follow the fine ones.
 */
struct homa_wheel_node {
	struct homa_list list;
	u64 deadline;
	u32 slot;
};

/**
 * struct homa_wheel - the slots; whoever owns the wheel has a lock for it
 * @occupied: has a word for each level, whose bit i is set if slot i is not empty. It may
 *	stay set when homa_wheel_leave() has taken out the last node of the slot; who looks
 *	for the next node clears it.
 * @base: the first tick that may have nodes. Fine slot i holds the tick from @base to
 *	@base + 63 that is i modulo 64, and the coarse slots hold spans of 64 ticks in
 *	the same way.
 * @shift: a tick lasts 2^@shift ns.
 * @count: how many nodes wait.
 * @slot: the lists of the nodes of each slot, in order of arrival.
 */
struct homa_wheel {
	u64 occupied[HOMA_WHEEL_LEVELS];
	u64 base;
	u32 shift;
	u32 count;
	struct homa_list slot[HOMA_WHEEL_LEVELS][HOMA_WHEEL_SLOTS];
};

/** homa_wheel_init() - make an empty wheel */
void homa_wheel_init(struct homa_wheel *wheel, u64 tick_ns, u64 now);

/** homa_wheel_node_init() - make @node wait for nothing */
static inline void homa_wheel_node_init(struct homa_wheel_node *node)
{
	homa_list_init(&node->list);
	node->deadline = 0;
	node->slot = 0;
}

static inline bool homa_wheel_linked(const struct homa_wheel_node *node)
{
	return homa_list_linked(&node->list);
}

/**
 * homa_wheel_add() - wait until @deadline; a node that waits already is moved
 * @deadline: ns; one in the past comes out at the next homa_wheel_pop().
 * @now: ns; or a time before it, but the longer before, the earlier the node may
 *	come out.
 */
HOMA_HOT void homa_wheel_add(struct homa_wheel *wheel,
			     struct homa_wheel_node *node, u64 deadline, u64 now);

/** homa_wheel_del() - stop waiting; harmless if @node does not wait */
void homa_wheel_del(struct homa_wheel *wheel, struct homa_wheel_node *node);
/** homa_wheel_leave() - do the same in fewer steps; whoever looks for the next node has more */
static inline void homa_wheel_leave(struct homa_wheel *wheel,
				    struct homa_wheel_node *node)
{
	if (!homa_wheel_linked(node))
		return;
	homa_list_del(&node->list);
	wheel->count--;
}

/**
 * homa_wheel_pop() - take out a node whose time has come, or NULL
 * @now: ns, never less than before.
 *
 * Call until NULL. The node may come from a coarse slot: add it again if deadline
 * > now. A node that is added again with a deadline that has passed comes out of
 * the same loop.
 */
struct homa_wheel_node *homa_wheel_pop(struct homa_wheel *wheel, u64 now);

/**
 * homa_wheel_next() - when homa_wheel_pop() will return something, ns
 *
 * At most one tick after the earliest deadline, and before that if something
 * leaves a coarse slot; UINT64_MAX if nothing waits.
 */
u64 homa_wheel_next(struct homa_wheel *wheel);

#endif
