/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The hosts' clock: monotonic nanoseconds, read without a system call. */
#ifndef HOMA_CLOCK_H
#define HOMA_CLOCK_H

#include <time.h>
#include "homa_plat.h"

static inline u64 homa_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * 1000000000u + (u64)ts.tv_nsec;
}

#endif
