/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Objects of one size carved out of memory that the host hands in. The
 * engine allocates nothing; this is how it deals out what it was given. A
 * free object's first word links it to the next, so a used one costs nothing.
 */
#ifndef HOMA_FREELIST_H
#define HOMA_FREELIST_H

#include "homa_plat.h"

struct homa_freelist_node {
	struct homa_freelist_node *next;
};

/**
 * struct homa_freelist - the free objects
 * @first: last one freed is first one taken (it is still in the cache).
 * @free: how many are free.
 * @total: how many there are.
 */
struct homa_freelist {
	struct homa_freelist_node *first;
	u32 free;
	u32 total;
};

static inline void homa_freelist_init(struct homa_freelist *list)
{
	list->first = NULL;
	list->free = 0;
	list->total = 0;
}

/** homa_freelist_put() - free an object */
static inline void homa_freelist_put(struct homa_freelist *list, void *object)
{
	struct homa_freelist_node *node = object;

	node->next = list->first;
	list->first = node;
	list->free++;
}

/**
 * homa_freelist_get() - take an object, NULL if there is none
 *
 * Its bytes are what they were when it was freed, except the first word.
 */
static inline void *homa_freelist_get(struct homa_freelist *list)
{
	struct homa_freelist_node *node = list->first;

	if (unlikely(!node))
		return NULL;
	list->first = node->next;
	list->free--;
	return node;
}

/**
 * homa_freelist_grow() - add the objects that fit into a piece of memory
 * @memory: aligned for the object, stays the caller's to release when the
 *	list is no longer used.
 * @bytes: size of the memory.
 * @object: size of an object, a multiple of its alignment, at least a pointer.
 *
 * Objects come out in order of address. Returns how many were added.
 */
static inline u32 homa_freelist_grow(struct homa_freelist *list, void *memory,
				     size_t bytes, size_t object)
{
	size_t at = 0;
	u32 n = 0;

	while (bytes - at >= object) {
		at += object;
		n++;
	}
	list->total += n;
	while (at) {
		at -= object;
		homa_freelist_put(list, (u8 *)memory + at);
	}
	return n;
}

#endif
