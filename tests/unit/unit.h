/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What all unit tests share: cmocka with the headers that it wants before it,
 * and seeds. A property test runs with many seeds that follow from one;
 * HOMA_TEST_SEED chooses another one, and a failure says which it was.
 */
#ifndef HOMA_UNIT_H
#define HOMA_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "homa_rng.h"

/** unit_seed() - the base seed of this run */
static inline u64 unit_seed(void)
{
	const char *text = getenv("HOMA_TEST_SEED");

	return text ? strtoull(text, NULL, 0) : 1;
}

/* Says which seed it was, then fails like assert_true(). */
#define unit_assert(seed, cond)                                         \
	do {                                                            \
		if (!(cond))                                            \
			fail_msg("%s, with HOMA_TEST_SEED=%llu", #cond, \
				 (unsigned long long)(seed));           \
	} while (0)

#endif
