/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * One call - add, delete, pop or next - on any wheel in which two nodes wait or do not. When a
 * node comes out is a function of its slot and of the base; nothing but adding the node anew
 * changes it, although the base goes on. Added, it comes out at the first tick at or after its
 * deadline, at the base if that is past, or before it if that is a turn or more away. pop()
 * returns a node of the earliest tick that has begun, and NULL only if there is none.
 *
 * The lists of its slots are those of bag.h. A level has four slots, times are below 256 ns.
 *
 * cbmc: --unwind 5
 * refuses: wheel_loses_a_deadline wheel_stale_base
 */
#include "proof.h"

/* The number of the lowest bit that is set, as the solver finds it soonest. */
static inline int lowest_bit(u64 bits)
{
	u32 n = nondet_u32();

	prove(bits);
	given(n < 64 && (bits >> n & 1) && !(bits & ((1ull << n) - 1)));
	return (int)n;
}

#define HOMA_WHEEL_BITS 2
#define homa_ctz64 lowest_bit
#include "bag.h"
#include "homa_wheel.c"

#define SLOTS ((u64)HOMA_WHEEL_SLOTS)
#define TURNS(t) ((t) >> HOMA_WHEEL_BITS)
#define SLOT(t) ((t) & (SLOTS - 1))

/* Objects of their own: pointers into an array cost the solver too much. */
static struct homa_wheel wheel;
static struct homa_wheel_node node_a, node_b;

/* The tick at which a node that waits comes out: the one at or after the base, or for a coarse slot
 * the beginning of the first turn at or after the base, that its slot stands for. */
static u64 comes_out(const struct homa_wheel_node *node)
{
	u64 turn = TURNS(wheel.base + SLOTS - 1);

	if (node->slot < SLOTS)
		return wheel.base + SLOT(node->slot - wheel.base);
	return (turn + SLOT(node->slot - turn)) << HOMA_WHEEL_BITS;
}

/* The first tick at or after its deadline. */
static u64 wanted(const struct homa_wheel_node *node)
{
	return (node->deadline + (1ull << wheel.shift) - 1) >> wheel.shift;
}

static u8 bag_number(const struct homa_list *head)
{
	return (u8)(head - &wheel.slot[0][0]) + 1;
}

static struct homa_list *bag_any(u8 number)
{
	bool a = node_a.list.in == number, b = node_b.list.in == number;

	if (a && (!b || nondet_bool()))
		return &node_a.list;
	return b ? &node_b.list : NULL;
}

/* Fine ones come out when their deadline has passed, coarse ones when it has not. */
static bool is_placed(const struct homa_wheel_node *node)
{
	if (!homa_wheel_linked(node))
		return true;
	if (node->list.in != node->slot + 1 || node->slot >= 2 * SLOTS)
		return false;
	if (node->slot < SLOTS)
		return comes_out(node) >= wanted(node);
	return comes_out(node) <= wanted(node) &&
	       TURNS(comes_out(node)) < TURNS(wheel.base) + SLOTS;
}

static u64 bits(int level)
{
	u64 found = 0;

	if (homa_wheel_linked(&node_a) && TURNS(node_a.slot) == (u32)level)
		found |= 1ull << SLOT(node_a.slot);
	if (homa_wheel_linked(&node_b) && TURNS(node_b.slot) == (u32)level)
		found |= 1ull << SLOT(node_b.slot);
	return found;
}

static void is_wheel(void)
{
	prove(is_placed(&node_a) && is_placed(&node_b));
	/* Slots that were emptied may still have their bits. */
	prove(!(bits(0) & ~wheel.occupied[0]) && !(bits(1) & ~wheel.occupied[1]));
	prove(!((wheel.occupied[0] | wheel.occupied[1]) >> SLOTS));
	prove(wheel.count ==
	      (u32)homa_wheel_linked(&node_a) + homa_wheel_linked(&node_b));
}

static void any_node(struct homa_wheel_node *node)
{
	homa_wheel_node_init(node);
	node->slot = nondet_u8() & (2 * SLOTS - 1);
	node->deadline = nondet_u8();
	if (nondet_bool())
		return;
	homa_list_add_tail(&wheel.slot[0][0] + node->slot, &node->list);
	wheel.occupied[TURNS(node->slot)] |= 1ull << SLOT(node->slot);
	wheel.count++;
	given(is_placed(node));
}

static void any_wheel(void)
{
	homa_wheel_init(&wheel, 1, 0);
	is_wheel();
	wheel.shift = nondet_bool();
	wheel.base = nondet_u8();
	wheel.occupied[0] = nondet_u8() & ((1u << SLOTS) - 1);
	wheel.occupied[1] = nondet_u8() & ((1u << SLOTS) - 1);
	any_node(&node_a);
	any_node(&node_b);
}

static void add(u64 deadline, u64 now)
{
	u64 out, due, base = wheel.base, tick = now >> wheel.shift;

	homa_wheel_add(&wheel, &node_a, deadline, now);
	out = comes_out(&node_a);
	due = wanted(&node_a);
	prove(homa_wheel_linked(&node_a) && node_a.deadline == deadline);
	if (node_a.slot < SLOTS) {
		prove(out == homa_max_u64(due, wheel.base));
		return;
	}
	/* Early, but no more than is said: in the last turn there is, or in its own. */
	prove(due >= wheel.base + SLOTS);
	prove(out == homa_min_u64(TURNS(due), TURNS(wheel.base) + SLOTS - 1)
			     << HOMA_WHEEL_BITS);
	if (homa_wheel_linked(&node_b))
		tick = homa_min_u64(tick, comes_out(&node_b));
	prove(wheel.base == homa_max_u64(base, tick));
}

static void pop(u64 now)
{
	u64 tick = now >> wheel.shift, a = UINT64_MAX, b = UINT64_MAX,
	    base = wheel.base;
	const struct homa_wheel_node *node;

	if (homa_wheel_linked(&node_a))
		a = comes_out(&node_a);
	if (homa_wheel_linked(&node_b))
		b = comes_out(&node_b);
	node = homa_wheel_pop(&wheel, now);
	prove(!node == (homa_min_u64(a, b) > tick));
	prove(!node || node == (a < b ? &node_a : a > b ? &node_b : node));
	prove(!node || node == &node_a || node == &node_b);
	prove(!node || !homa_wheel_linked(node));
	prove(!node || node->slot >= SLOTS || node->deadline <= now);
	prove(wheel.base >= base && wheel.base <= homa_max_u64(base, tick));
}

int main(void)
{
	u64 deadline = nondet_u8(), now = nondet_u8(), other = UINT64_MAX,
	    first = UINT64_MAX;

	any_wheel();
	is_wheel();
	if (homa_wheel_linked(&node_b))
		other = comes_out(&node_b);
	switch (nondet_u8()) {
	case 0:
		add(deadline, now);
		break;
	case 1:
		homa_wheel_del(&wheel, &node_a);
		prove(!homa_wheel_linked(&node_a));
		break;
	case 2:
		homa_wheel_leave(&wheel, &node_a);
		prove(!homa_wheel_linked(&node_a));
		break;
	default:
		pop(now);
		break;
	}
	is_wheel();
	if (homa_wheel_linked(&node_b)) {
		prove(other == comes_out(&node_b));
		first = other;
	}
	if (homa_wheel_linked(&node_a))
		first = homa_min_u64(first, comes_out(&node_a));
	prove(homa_wheel_next(&wheel) ==
	      (wheel.count ? first << wheel.shift : UINT64_MAX));
	reached();
	return 0;
}
