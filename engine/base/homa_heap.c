// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Pairing heap: a tree in which each node is before all its children, children
 * in a list. Two trees meet in O(1): the later root becomes the first child of
 * the other. Removing a root pairs its children from left to right and then
 * meets the pairs from right to left, without recursion, since the depth of a
 * kernel stack is no function of the number of messages.
 */
#include "homa_heap.h"

/* Joins two trees whose roots have neither parent nor siblings. */
static struct homa_heap_node *homa_heap_meet(struct homa_heap_node *a,
					     struct homa_heap_node *b)
{
	struct homa_heap_node *t;

	if (homa_heap_before(b, a)) {
		t = a;
		a = b;
		b = t;
	}
	b->next = a->child;
	b->prev = a;
	if (a->child)
		a->child->prev = b;
	a->child = b;
	return a;
}

/* Takes the subtree of @node, which is not the root, out of its tree. */
static void homa_heap_cut(struct homa_heap_node *node)
{
	if (node->prev->child == node)
		node->prev->child = node->next;
	else
		node->prev->next = node->next;
	if (node->next)
		node->next->prev = node->prev;
	node->next = NULL;
	node->prev = NULL;
}

/* Joins a list of siblings into one tree; NULL if there are none. */
static struct homa_heap_node *homa_heap_pair(struct homa_heap_node *first)
{
	struct homa_heap_node *pairs = NULL;
	struct homa_heap_node *root;

	while (first) {
		struct homa_heap_node *a = first;
		struct homa_heap_node *b = a->next;

		first = b ? b->next : NULL;
		a->next = NULL;
		a->prev = NULL;
		if (b) {
			b->next = NULL;
			b->prev = NULL;
			a = homa_heap_meet(a, b);
		}
		/* The next pointer of a root is free, so it chains the pairs, last one
		 * first. */
		a->next = pairs;
		pairs = a;
	}
	if (!pairs)
		return NULL;
	root = pairs;
	pairs = root->next;
	root->next = NULL;
	while (pairs) {
		struct homa_heap_node *next = pairs->next;

		pairs->next = NULL;
		root = homa_heap_meet(root, pairs);
		pairs = next;
	}
	return root;
}

/* Takes @node out; @node keeps no children. */
static void homa_heap_detach(struct homa_heap *heap, struct homa_heap_node *node)
{
	struct homa_heap_node *rest = homa_heap_pair(node->child);

	node->child = NULL;
	if (heap->root == node) {
		heap->root = rest;
		return;
	}
	homa_heap_cut(node);
	if (rest)
		heap->root = homa_heap_meet(heap->root, rest);
}

static void homa_heap_attach(struct homa_heap *heap, struct homa_heap_node *node)
{
	node->next = NULL;
	node->prev = NULL;
	heap->root = heap->root ? homa_heap_meet(heap->root, node) : node;
}

void homa_heap_insert(struct homa_heap *heap, struct homa_heap_node *node)
{
	node->child = NULL;
	homa_heap_attach(heap, node);
	heap->count++;
}

void homa_heap_remove(struct homa_heap *heap, struct homa_heap_node *node)
{
	homa_heap_detach(heap, node);
	homa_heap_node_init(node);
	heap->count--;
}

struct homa_heap_node *homa_heap_pop(struct homa_heap *heap)
{
	struct homa_heap_node *node = heap->root;

	if (node)
		homa_heap_remove(heap, node);
	return node;
}

void homa_heap_update(struct homa_heap *heap, struct homa_heap_node *node,
		      u64 key, u64 tie)
{
	bool later = key > node->key || (key == node->key && tie > node->tie);

	if (later)
		homa_heap_detach(heap, node);
	node->key = key;
	node->tie = tie;
	if (later) {
		homa_heap_attach(heap, node);
	} else if (node != heap->root) {
		homa_heap_cut(node);
		heap->root = homa_heap_meet(heap->root, node);
	}
}
