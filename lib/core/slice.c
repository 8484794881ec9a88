// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Threads that receive messages have short slices if the environment says so; homa_slice.h says
 * what for. Each thread is seen to at its first call; what the program sets after that stays.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "homa_slice.h"
#include "libhoma_impl.h"

/* The slice that threads ask for, ns; 0: they are left alone. */
static u64 slice_ns;
/* This thread has been seen to. */
static __thread bool seen_to __attribute__((tls_model("initial-exec")));

int homa_slice_init(char *err, size_t errlen)
{
	const char *text = getenv("HOMA_SLICE_US");
	unsigned long value;
	char *end;

	if (!text || !*text)
		return 0;
	value = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || value > HOMA_SLICE_MAX_US) {
		snprintf(err, errlen,
			 "HOMA_SLICE_US=%s: it must be a number of microseconds from 0 to %u",
			 text, HOMA_SLICE_MAX_US);
		return -EINVAL;
	}
	__atomic_store_n(&slice_ns, value * 1000u, __ATOMIC_RELAXED);
	return 0;
}

static HOMA_RARE void see_to_it(void)
{
	u64 ns = __atomic_load_n(&slice_ns, __ATOMIC_RELAXED);

	seen_to = true;
	if (ns)
		homa_slice_set(ns);
}

void homa_slice_shorten(void)
{
	if (unlikely(!seen_to))
		see_to_it();
}
