/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Intrusive pairing heap, smallest (key, tie) first: SRPT's priority queue.
 * Insert and a key that decreases - the message just sent - cost a few
 * instructions, removing any node is amortised O(log n), no memory is needed,
 * and the order is a function of the sequence of calls alone.
 *
 * Fredman, Sedgewick, Sleator, Tarjan: "The pairing heap: a new form of
 * self-adjusting heap", Algorithmica 1, 1986.
 *
 * Guarded by: the owner of the heap, whose lock is held for all calls and for the nodes in it.
 */
#ifndef HOMA_HEAP_H
#define HOMA_HEAP_H

#include "homa_plat.h"

/**
 * struct homa_heap_node - embedded in what is queued
 * @child: the first child, NULL if there is none.
 * @next: the next sibling, NULL at the last.
 * @prev: the previous sibling, or the parent of a first child; NULL at the root,
 *	the node itself while in no heap.
 * @key: smallest is the minimum. Set before insertion, then changed only by
 *	homa_heap_update().
 * @tie: decides between equal keys; unique values make the order total.
 */
struct homa_heap_node {
	struct homa_heap_node *child;
	struct homa_heap_node *next;
	struct homa_heap_node *prev;
	u64 key;
	u64 tie;
};

/**
 * struct homa_heap - the heap; who owns it has the lock for it
 * @root: the node with the smallest key, NULL if there is none.
 * @count: how many nodes are in the heap.
 */
struct homa_heap {
	struct homa_heap_node *root;
	u32 count;
};

static inline void homa_heap_init(struct homa_heap *heap)
{
	heap->root = NULL;
	heap->count = 0;
}

/** homa_heap_node_init() - make @node belong to no heap */
static inline void homa_heap_node_init(struct homa_heap_node *node)
{
	node->child = NULL;
	node->next = NULL;
	node->prev = node;
}

static inline bool homa_heap_linked(const struct homa_heap_node *node)
{
	return node->prev != node;
}

static inline struct homa_heap_node *homa_heap_min(const struct homa_heap *heap)
{
	return heap->root;
}

static inline bool homa_heap_before(const struct homa_heap_node *a,
				    const struct homa_heap_node *b)
{
	return a->key < b->key || (a->key == b->key && a->tie < b->tie);
}

/** homa_heap_insert() - add @node, which is in no heap and has key and tie */
void homa_heap_insert(struct homa_heap *heap, struct homa_heap_node *node);

/** homa_heap_remove() - take out any node; it is initialised then */
void homa_heap_remove(struct homa_heap *heap, struct homa_heap_node *node);

/** homa_heap_pop() - remove and return the minimum, NULL if empty */
struct homa_heap_node *homa_heap_pop(struct homa_heap *heap);

/** homa_heap_update() - give a node of @heap another key, lower or higher */
void homa_heap_update(struct homa_heap *heap, struct homa_heap_node *node,
		      u64 key, u64 tie);

#endif
