/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * One arrival at any set of one gap or none, with one spare node or none. The set is as
 * before - gaps ascending, disjoint, apart, not empty - and no node is lost; and for any
 * byte it says afterwards that it is missing if and only if it was and did not come now.
 *
 * cbmc: engine/base/homa_ranges.c --unwind 4
 */
#define GAPS 1
#include "ranges.h"

int main(void)
{
	struct homa_range one;
	struct homa_range *spare = nondet_bool() ? &one : NULL;
	u32 start = nondet_u32(), end = nondet_u32(), byte = nondet_u32(), from,
	    to, n;
	struct homa_rangeset set;
	bool was, came;
	int fresh;

	any_set(&set);
	one.next = NULL;
	given(start < end && end <= 0x7fffffff);
	n = set.gaps + count(spare);
	was = is_missing(&set, byte);
	fresh = homa_ranges_add(&set, start, end, &spare, &from, &to);
	prove(is_set(&set));
	prove(set.gaps + count(spare) == n);
	prove(fresh >= -1 && fresh <= (int)(end - start));
	prove(from >= start && to <= end && from <= to);
	came = fresh >= 0 && byte >= start && byte < end;
	prove(is_missing(&set, byte) == (was && !came));
	if (was && came)
		prove(fresh > 0 && byte >= from && byte < to);
	if (fresh > 0)
		prove((u32)fresh <= to - from);
	prove(byte >= homa_ranges_in_order(&set) || !is_missing(&set, byte));
	reached();
	return 0;
}
