/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Three nodes with any keys, put into a heap, and then one of: another key for any node,
 * higher or lower; any node taken out; the first taken out. Afterwards the first is before
 * all others, links agree in both directions, and no node is lost or left behind. Only the
 * order of keys matters, and eight of them have every order that three nodes can have.
 *
 * cbmc: engine/base/homa_heap.c --unwind 4
 */
#include "homa_heap.h"
#include "proof.h"

#define NODES 3u
#define KEYS 8

/* Objects of their own: pointers into an array cost the solver too much. */
static struct homa_heap_node node_a, node_b, node_c;
static bool inside[NODES];

static struct homa_heap_node *node(u32 i)
{
	return i == 0 ? &node_a : i == 1 ? &node_b : &node_c;
}

/* Its children come after it, and know who is before them. */
static void is_above_its_children(const struct homa_heap_node *parent)
{
	const struct homa_heap_node *before = parent, *child;

	for (child = parent->child; child; child = child->next) {
		prove(child->prev == before);
		prove(!homa_heap_before(child, parent));
		before = child;
	}
}

static void is_heap(const struct homa_heap *heap)
{
	const struct homa_heap_node *first = homa_heap_min(heap);
	u32 i, n = 0;

	for (i = 0; i < NODES; i++) {
		prove(homa_heap_linked(node(i)) == inside[i]);
		if (!inside[i])
			continue;
		n++;
		prove(first && !homa_heap_before(node(i), first));
		is_above_its_children(node(i));
	}
	prove(heap->count == n && !first == !n);
	prove(!first || (!first->prev && !first->next));
}

static u64 any_key(void)
{
	u8 key = nondet_u8();

	given(key < KEYS);
	return key;
}

static void step(struct homa_heap *heap)
{
	u32 i = nondet_u32();

	given(i < NODES);
	if (nondet_bool()) {
		struct homa_heap_node *first = homa_heap_pop(heap);

		for (i = 0; i < NODES; i++)
			if (node(i) == first)
				inside[i] = false;
	} else if (!inside[i]) {
		return;
	} else if (nondet_bool()) {
		homa_heap_remove(heap, node(i));
		inside[i] = false;
	} else {
		homa_heap_update(heap, node(i), any_key(), any_key());
	}
}

int main(void)
{
	struct homa_heap heap;
	u32 i;

	homa_heap_init(&heap);
	for (i = 0; i < NODES; i++) {
		homa_heap_node_init(node(i));
		node(i)->key = any_key();
		node(i)->tie = any_key();
		homa_heap_insert(&heap, node(i));
		inside[i] = true;
	}
	is_heap(&heap);
	step(&heap);
	is_heap(&heap);
	reached();
	return 0;
}
