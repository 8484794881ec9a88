// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Arrivals out of order. An arrival behind the end leaves a gap; an arrival
 * before it eats gaps: whole ones, the front, the back, or the middle of one,
 * which then becomes two. Nothing is changed before it is certain that the
 * node which that may need is there.
 */
#include "homa_ranges.h"

static struct homa_range *homa_ranges_take(struct homa_rangeset *set,
					   struct homa_range **spare)
{
	struct homa_range *gap = *spare;

	if (!gap || set->gaps >= HOMA_RANGES_MAX_GAPS)
		return NULL;
	*spare = gap->next;
	set->gaps++;
	return gap;
}

static void homa_ranges_drop(struct homa_rangeset *set,
			     struct homa_range **link, struct homa_range **spare)
{
	struct homa_range *gap = *link;

	*link = gap->next;
	gap->next = *spare;
	*spare = gap;
	set->gaps--;
}

void homa_ranges_release(struct homa_rangeset *set, struct homa_range **spare)
{
	while (set->first)
		homa_ranges_drop(set, &set->first, spare);
	set->end = 0;
}

/* Adds [start, end), which lies beyond the end of the set and leaves a gap before it. */
static int homa_ranges_beyond(struct homa_rangeset *set, u32 start, u32 end,
			      struct homa_range **spare)
{
	struct homa_range *gap = homa_ranges_take(set, spare);
	struct homa_range **link = &set->first;

	if (!gap)
		return -1;
	while (*link)
		link = &(*link)->next;
	gap->start = set->end;
	gap->end = start;
	gap->next = NULL;
	*link = gap;
	set->end = end;
	return (int)(end - start);
}

/* Adds [start, end), which lies strictly inside the gap at *link and splits it. */
static int homa_ranges_split(struct homa_rangeset *set, struct homa_range **link,
			     u32 start, u32 end, struct homa_range **spare)
{
	struct homa_range *gap = *link;
	struct homa_range *back = homa_ranges_take(set, spare);

	if (!back)
		return -1;
	back->start = end;
	back->end = gap->end;
	back->next = gap->next;
	gap->end = start;
	gap->next = back;
	return (int)(end - start);
}

int homa_ranges_add_slow(struct homa_rangeset *set, u32 start, u32 end,
			 struct homa_range **spare, u32 *fresh_start,
			 u32 *fresh_end)
{
	struct homa_range **link = &set->first;
	u32 first = end;
	u32 last = start;
	int fresh = 0;

	*fresh_start = start;
	*fresh_end = end;
	if (start > set->end)
		return homa_ranges_beyond(set, start, end, spare);

	while (*link && (*link)->end <= start)
		link = &(*link)->next;
	if (*link && (*link)->start < start && end < (*link)->end)
		return homa_ranges_split(set, link, start, end, spare);

	while (*link && (*link)->start < end) {
		struct homa_range *gap = *link;
		u32 from = homa_max_u32(gap->start, start);
		u32 to = homa_min_u32(gap->end, end);

		fresh += (int)(to - from);
		first = homa_min_u32(first, from);
		last = to;
		if (from == gap->start && to == gap->end) {
			homa_ranges_drop(set, link, spare);
			continue;
		}
		if (from == gap->start)
			gap->start = to;
		else
			gap->end = from;
		link = &gap->next;
	}
	if (end > set->end) {
		fresh += (int)(end - set->end);
		first = homa_min_u32(first, set->end);
		last = end;
		set->end = end;
	}
	*fresh_start = fresh ? first : start;
	*fresh_end = fresh ? last : start;
	return fresh;
}

bool homa_ranges_missing(struct homa_ranges_iter *iter, u32 limit, u32 *start,
			 u32 *end)
{
	const struct homa_range *gap = iter->next;

	if (gap) {
		*start = gap->start;
		*end = homa_min_u32(gap->end, limit);
		iter->next = gap->next;
	} else {
		*start = iter->tail;
		*end = limit;
		iter->tail = limit;
	}
	return *start < *end;
}
