/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What is asked for of any set of up to two gaps, before any limit: for any byte, it is
 * named if and only if it is missing; ranges ascend and none is empty. And a set that is
 * given up gives back its nodes.
 *
 * cbmc: engine/base/homa_ranges.c --unwind 6
 */
#define GAPS 2
#include "ranges.h"

int main(void)
{
	u32 limit = nondet_u32(), byte = nondet_u32(), start, end, n, last = 0;
	struct homa_range *spare = NULL;
	struct homa_ranges_iter iter;
	struct homa_rangeset set;
	bool named = false;

	any_set(&set);
	n = set.gaps;
	homa_ranges_iter_init(&iter, &set);
	while (homa_ranges_missing(&iter, limit, &start, &end)) {
		prove(start >= last && start < end && end <= limit);
		last = end;
		named |= byte >= start && byte < end;
	}
	prove(named == (byte < limit && is_missing(&set, byte)));
	homa_ranges_release(&set, &spare);
	prove(count(spare) == n && !set.gaps && !set.end);
	reached();
	return 0;
}
