// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Sets of bytes of a stream, as sorted lists of ranges that do not touch. */
#include <stdlib.h>
#include <string.h>

#include "window.h"

static bool window_reserve(struct window_ranges *r)
{
	u32 max = r->max ? 2 * r->max : 8;
	struct window_range *at;

	if (r->num < r->max)
		return true;
	at = realloc(r->at, max * sizeof(*at));
	if (!at)
		return false;
	r->at = at;
	r->max = max;
	return true;
}

bool window_ranges_add(struct window_ranges *r, u64 from, u64 to)
{
	u32 first = r->num, last;

	/* Nearly always it belongs at the end. */
	while (first > 0 && r->at[first - 1].to >= from)
		first--;
	last = first;
	while (last < r->num && r->at[last].from <= to)
		last++;
	if (first == last) {
		if (!window_reserve(r))
			return true; /* no memory: the bytes count as lost */
		memmove(&r->at[first + 1], &r->at[first],
			(r->num - first) * sizeof(*r->at));
		r->at[first] = (struct window_range){ from, to };
		r->num++;
		return false;
	}
	if (r->at[first].from <= from && r->at[first].to >= to)
		return true;
	if (r->at[first].from > from)
		r->at[first].from = from;
	if (r->at[last - 1].to > to)
		to = r->at[last - 1].to;
	r->at[first].to = to;
	memmove(&r->at[first + 1], &r->at[last], (r->num - last) * sizeof(*r->at));
	r->num -= last - first - 1;
	return false;
}

u64 window_ranges_drop(struct window_ranges *r, u64 before)
{
	u32 n = 0;

	while (n < r->num && r->at[n].from <= before) {
		if (r->at[n].to > before)
			before = r->at[n].to;
		n++;
	}
	if (!n)
		return before;
	r->num -= n;
	memmove(r->at, r->at + n, r->num * sizeof(*r->at));
	return before;
}
