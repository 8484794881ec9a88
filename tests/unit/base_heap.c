/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * engine/base/homa_heap.c: random sequences of all operations against an array
 * that is searched, with the tree's links checked after each.
 */
#include "unit.h"

#include "homa_heap.h"

#define NODES 64

struct model {
	struct homa_heap heap;
	struct homa_heap_node node[NODES];
};

static void model_init(struct model *m)
{
	int i;

	homa_heap_init(&m->heap);
	for (i = 0; i < NODES; i++)
		homa_heap_node_init(&m->node[i]);
}

static struct homa_heap_node *model_min(struct model *m)
{
	struct homa_heap_node *min = NULL;
	int i;

	for (i = 0; i < NODES; i++) {
		struct homa_heap_node *n = &m->node[i];

		if (homa_heap_linked(n) && (!min || homa_heap_before(n, min)))
			min = n;
	}
	return min;
}

/* Links of the subtree agree with each other and no child is before its
 * parent; returns its size. */
static u32 check_tree(u64 seed, const struct homa_heap_node *root)
{
	const struct homa_heap_node *prev = root, *child;
	u32 n = 1;

	for (child = root->child; child; prev = child, child = child->next) {
		unit_assert(seed, child->prev == prev);
		unit_assert(seed, !homa_heap_before(child, root));
		n += check_tree(seed, child);
	}
	return n;
}

static void check(u64 seed, struct model *m)
{
	const struct homa_heap_node *root = homa_heap_min(&m->heap);
	u32 linked = 0;
	int i;

	for (i = 0; i < NODES; i++)
		linked += homa_heap_linked(&m->node[i]);
	unit_assert(seed, linked == m->heap.count);
	unit_assert(seed, root == model_min(m));
	if (!root)
		return;
	unit_assert(seed, !root->prev && !root->next);
	unit_assert(seed, check_tree(seed, root) == linked);
}

static void heap__random_operations_like_a_search(void **state)
{
	u64 seed, base = unit_seed();
	struct model m;

	(void)state;
	for (seed = base; seed < base + 200; seed++) {
		struct homa_rng rng;
		int step;

		homa_rng_init(&rng, seed);
		model_init(&m);
		for (step = 0; step < 400; step++) {
			u32 i = homa_rng_below(&rng, NODES);
			struct homa_heap_node *n = &m.node[i], *min;
			u64 key = homa_rng_below(&rng, 40);
			/* Unique, and any order among equal keys. */
			u64 tie = (homa_rng_next(&rng) & 15) * NODES + i;

			if (!homa_heap_linked(n)) {
				n->key = key;
				n->tie = tie;
				homa_heap_insert(&m.heap, n);
			} else if (homa_rng_below(&rng, 3) == 0) {
				homa_heap_remove(&m.heap, n);
				unit_assert(seed, !homa_heap_linked(n));
			} else if (homa_rng_below(&rng, 4) == 0) {
				min = model_min(&m);
				unit_assert(seed, homa_heap_pop(&m.heap) == min);
			} else {
				homa_heap_update(&m.heap, n, key, tie);
				unit_assert(seed, n->key == key && n->tie == tie);
			}
			check(seed, &m);
		}
	}
}

static void heap_pop__sorts_by_key_then_tie(void **state)
{
	struct model m;
	u32 i;

	(void)state;
	model_init(&m);
	for (i = 0; i < NODES; i++) {
		m.node[i].key = (i * 37) % 8;
		m.node[i].tie = (u64)NODES - i;
		homa_heap_insert(&m.heap, &m.node[i]);
	}
	for (i = 0; i < NODES; i++) {
		struct homa_heap_node *min = model_min(&m);

		assert_ptr_equal(homa_heap_min(&m.heap), min);
		assert_ptr_equal(homa_heap_pop(&m.heap), min);
	}
	assert_null(homa_heap_pop(&m.heap));
	assert_int_equal(m.heap.count, 0);
}

static void heap_insert__extreme_keys(void **state)
{
	struct model m;

	(void)state;
	model_init(&m);
	m.node[0].key = UINT64_MAX;
	m.node[0].tie = UINT64_MAX;
	m.node[1].key = UINT64_MAX;
	m.node[1].tie = 0;
	m.node[2].key = 0;
	m.node[2].tie = UINT64_MAX;
	homa_heap_insert(&m.heap, &m.node[0]);
	homa_heap_insert(&m.heap, &m.node[1]);
	homa_heap_insert(&m.heap, &m.node[2]);
	assert_ptr_equal(homa_heap_pop(&m.heap), &m.node[2]);
	assert_ptr_equal(homa_heap_pop(&m.heap), &m.node[1]);
	assert_ptr_equal(homa_heap_pop(&m.heap), &m.node[0]);
}

static void heap_remove__the_only_node(void **state)
{
	struct model m;

	(void)state;
	model_init(&m);
	m.node[0].key = 5;
	m.node[0].tie = 0;
	homa_heap_insert(&m.heap, &m.node[0]);
	homa_heap_remove(&m.heap, &m.node[0]);
	assert_null(homa_heap_min(&m.heap));
	homa_heap_insert(&m.heap, &m.node[0]);
	assert_ptr_equal(homa_heap_min(&m.heap), &m.node[0]);
}

static void heap__a_million_nodes_need_no_stack(void **state)
{
	const u32 n = 1000000;
	struct homa_heap_node *node = calloc(n, sizeof(*node));
	struct homa_heap heap;
	u64 last = 0;
	u32 i;

	(void)state;
	assert_non_null(node);
	homa_heap_init(&heap);
	for (i = 0; i < n; i++) {
		node[i].key = homa_hash_mix(i);
		homa_heap_insert(&heap, &node[i]);
	}
	for (i = 0; i < 1000; i++) {
		u64 key = homa_heap_pop(&heap)->key;

		assert_true(key >= last);
		last = key;
	}
	free(node);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heap__random_operations_like_a_search),
		cmocka_unit_test(heap_pop__sorts_by_key_then_tie),
		cmocka_unit_test(heap_insert__extreme_keys),
		cmocka_unit_test(heap_remove__the_only_node),
		cmocka_unit_test(heap__a_million_nodes_need_no_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
