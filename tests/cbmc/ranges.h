/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Any set of ranges of at most GAPS gaps, two at most, and what a set says of a byte.
 */
#ifndef CBMC_RANGES_H
#define CBMC_RANGES_H

#include "homa_ranges.h"
#include "proof.h"

static inline bool is_missing(const struct homa_rangeset *set, u32 byte)
{
	const struct homa_range *gap;

	for (gap = set->first; gap; gap = gap->next)
		if (byte >= gap->start && byte < gap->end)
			return true;
	return byte >= set->end;
}

static inline bool is_set(const struct homa_rangeset *set)
{
	const struct homa_range *gap;
	u32 n = 0, last = 0;

	for (gap = set->first; gap; gap = gap->next) {
		if (gap->start >= gap->end || gap->end >= set->end ||
		    (n && gap->start <= last))
			return false;
		last = gap->end;
		n++;
	}
	return n == set->gaps && set->end <= 0x7fffffff;
}

static inline u32 count(const struct homa_range *list)
{
	u32 n = 0;

	for (; list; list = list->next)
		n++;
	return n;
}

/* Nodes are objects of their own: pointers into an array cost the solver too much. */
static struct homa_range node_a, node_b;

static inline void any_set(struct homa_rangeset *set)
{
	u32 n = nondet_u32();

	given(n <= GAPS);
	node_a.start = nondet_u32();
	node_a.end = nondet_u32();
	node_a.next = n > 1 ? &node_b : NULL;
	node_b.start = nondet_u32();
	node_b.end = nondet_u32();
	node_b.next = NULL;
	set->first = n ? &node_a : NULL;
	set->end = nondet_u32();
	set->gaps = n;
	given(is_set(set));
}

#endif
