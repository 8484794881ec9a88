/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Which bytes of an incoming message have arrived, kept as what is missing:
 * everything from @end on, and a sorted list of gaps before it. A message that
 * arrives in order has no gap and needs no memory; each hole that a lost or
 * overtaken packet leaves costs one node, lent by the caller.
 *
 * Guarded by: the owner of the set, whose lock is held for all calls; spare records belong to
 * one context.
 */
#ifndef HOMA_RANGES_H
#define HOMA_RANGES_H

#include "homa_plat.h"

/*
 * Most gaps that one message may have. Bounds the time of an addition under
 * a hostile order of packets; the packet that would make one more is refused,
 * like one without a spare node, and will be asked for again.
 */
#define HOMA_RANGES_MAX_GAPS 512

/** struct homa_range - the bytes from @start to @end - 1; or a node of a list of spare ones */
struct homa_range {
	/* The range that follows in the list; NULL: this is the last. */
	struct homa_range *next;
	u32 start;
	u32 end;
};

/**
 * struct homa_rangeset - what has arrived of a message
 * @first: the gaps before @end, in ascending order. They neither overlap nor touch, and
 *	none is empty.
 * @end: the position behind the highest byte that has arrived.
 * @gaps: how many gaps the list @first has.
 */
struct homa_rangeset {
	struct homa_range *first;
	u32 end;
	u32 gaps;
};

static inline void homa_ranges_init(struct homa_rangeset *set)
{
	set->first = NULL;
	set->end = 0;
	set->gaps = 0;
}

/** homa_ranges_release() - give all nodes to @spare and empty the set */
void homa_ranges_release(struct homa_rangeset *set, struct homa_range **spare);

/* Does homa_ranges_add() for anything but the next bytes in order. */
int homa_ranges_add_slow(struct homa_rangeset *set, u32 start, u32 end,
			 struct homa_range **spare, u32 *fresh_start,
			 u32 *fresh_end);

/**
 * homa_ranges_add() - record the arrival of bytes [@start, @end)
 * @set: the message's set.
 * @start, @end: @start < @end <= 2^31 - 1.
 * @spare: list of free nodes; one may be taken, any number may come back.
 * @fresh_start, @fresh_end: receive the tightest range that contains all
 *	fresh bytes. If a packet spans several gaps, bytes between them that
 *	were there already are inside; copying those again is harmless. Both
 *	are @start if nothing is fresh.
 *
 * Returns how many bytes were missing before, or -1 if a node is needed and
 * @spare is empty or there are HOMA_RANGES_MAX_GAPS: then nothing has changed.
 */
static inline int homa_ranges_add(struct homa_rangeset *set, u32 start, u32 end,
				  struct homa_range **spare, u32 *fresh_start,
				  u32 *fresh_end)
{
	if (likely(start == set->end)) {
		set->end = end;
		*fresh_start = start;
		*fresh_end = end;
		return (int)(end - start);
	}
	return homa_ranges_add_slow(set, start, end, spare, fresh_start,
				    fresh_end);
}

/** homa_ranges_in_order() - return how many bytes from the start have no gap */
static inline u32 homa_ranges_in_order(const struct homa_rangeset *set)
{
	return set->first ? set->first->start : set->end;
}

/** struct homa_ranges_iter - the position of an iteration over missing ranges */
struct homa_ranges_iter {
	/* The gap that comes next; NULL: all were returned. */
	const struct homa_range *next;
	/* Position from which on all is missing, which is returned last. */
	u32 tail;
};

/** homa_ranges_iter_init() - begin with the first missing range */
static inline void homa_ranges_iter_init(struct homa_ranges_iter *iter,
					 const struct homa_rangeset *set)
{
	iter->next = set->first;
	iter->tail = set->end;
}

/**
 * homa_ranges_missing() - next missing range before @limit, ascending
 * @iter: from homa_ranges_iter_init(); the set must not change meanwhile.
 * @limit: e.g. what has been granted; the range is clipped to it. Everything
 *	behind the last byte that arrived is missing, too.
 * @start, @end: receive the range.
 *
 * Returns false when there is none left.
 */
bool homa_ranges_missing(struct homa_ranges_iter *iter, u32 limit, u32 *start,
			 u32 *end);

#endif
