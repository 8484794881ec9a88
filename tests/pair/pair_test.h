/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the test files share: cmocka, its failure instead of abort(), and the
 * loop over seeds.
 */
#ifndef PAIR_TEST_H
#define PAIR_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness.h"

static inline void pair_test_fail(const char *text)
{
	fail_msg("%s", text);
}

/* PAIR_TEST=pattern runs only the tests whose name matches. */
static inline void pair_test_setup(void)
{
	pair_fail_hook = pair_test_fail;
	if (getenv("PAIR_TEST"))
		cmocka_set_test_filter(getenv("PAIR_TEST"));
}

/* Runs @fn with seeds 1..n, or only with PAIR_SEED. */
static inline void each_seed(u32 n, void (*fn)(u64 seed))
{
	u32 i;

	if (pair_seed_fixed()) {
		fn(pair_seed(0));
		return;
	}
	for (i = 1; i <= n; i++)
		fn(i);
}

#endif
