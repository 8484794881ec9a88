/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Answers to strangers that are to be few. A source has one in a millisecond, so that one who
 * asks without pause takes none that others wait for; all together have one in 20 us. Sources
 * are told apart by 64 places, which a secret hash of their addresses chooses: who has more
 * addresses than one can still take those of some others.
 *
 * Written by: any caller, without a lock. If two look at once both may answer.
 */
#ifndef HOMA_SELDOM_H
#define HOMA_SELDOM_H

#include "homa_addr.h"

#define HOMA_SELDOM_PLACES 64u
#define HOMA_SELDOM_NS 1000000u
#define HOMA_SELDOM_ALL_NS 20000u

/* struct homa_seldom - when answers of one kind were given; all zero: none were */
struct homa_seldom {
	/* Time of the last answer, in ns. */
	u64 last;
	/* Times of the last answers to the sources of each place, in ns. */
	u64 last_of[HOMA_SELDOM_PLACES];
};

/** homa_seldom() - may a source with the hash @hash be answered at @now, in ns? Then that
 *  counts as done. */
static inline bool homa_seldom(struct homa_seldom *seldom, u64 hash, u64 now)
{
	u64 *last_of = &seldom->last_of[hash % HOMA_SELDOM_PLACES];

	if (now < HOMA_READ_ONCE(*last_of) + HOMA_SELDOM_NS ||
	    now < HOMA_READ_ONCE(seldom->last) + HOMA_SELDOM_ALL_NS)
		return false;
	HOMA_WRITE_ONCE(*last_of, now);
	HOMA_WRITE_ONCE(seldom->last, now);
	return true;
}

#endif
