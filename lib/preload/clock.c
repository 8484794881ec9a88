// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The clock by which calls with a timeout wait. A program cannot set it.
 */
#include <time.h>
#include "internal.h"

int64_t homa_pl_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}
