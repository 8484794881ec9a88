// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * See homa_spin.h. The constants are those at which, on two cores, none of the
 * three situations loses much to a rule made for it alone
 * (docs/homad-performance.md).
 */
#include <sched.h>
#include "homa_clock.h"
#include "homa_spin.h"

/* A yield shorter than this found nobody to run. */
#define PASSED_NS 1500u
/* One that takes longer met a hog: the others here give way sooner. */
#define HOG_NS 500000u
#define GUARD_NS 100000000u
#define GUARD_MAX_NS 1600000000u
/* While there is a hog: look that long, then sleep. */
#define GUARD_SPIN_NS 2000u

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

void homa_spin_init(struct homa_spin *spin, u64 min, u64 max, u64 now)
{
	*spin = (struct homa_spin){
		.limit = max,
		.min = homa_min_u64(min, max),
		.max = max,
		.since = now,
		.guard = GUARD_NS,
	};
}

void homa_spin_found(struct homa_spin *spin, u64 now)
{
	(void)now;
	spin->idle = spin->passed = false;
	if (spin->limit < spin->max)
		spin->limit = homa_min_u64(spin->max,
					   spin->limit + spin->limit / 16 + 100);
}

/* The guard gets longer while every try meets a hog. */
static void met_hog(struct homa_spin *spin, u64 now)
{
	if (now - spin->guard_until < spin->guard)
		spin->guard = homa_min_u64(2 * spin->guard, GUARD_MAX_NS);
	else
		spin->guard = GUARD_NS;
	spin->guard_until = now + spin->guard;
	spin->hogs++;
}

bool homa_spin_idle(struct homa_spin *spin, u64 now)
{
	u64 before, took;

	spin->idle = true;
	if (unlikely(now < spin->guard_until)) {
		if (now - spin->since >= homa_min_u64(spin->limit, GUARD_SPIN_NS))
			return false;
		cpu_relax();
		return true;
	}
	if (now - spin->since >= spin->limit)
		return false;
	before = homa_clock_ns();
	sched_yield();
	took = homa_clock_ns() - before;
	if (took > PASSED_NS)
		spin->passed = true;
	if (unlikely(took > HOG_NS))
		met_hog(spin, before + took);
	return true;
}

void homa_spin_slept(struct homa_spin *spin, u64 from, u64 now)
{
	/* Work came right after we had given up looking for it, and nobody had
	 * been let in before: we were in the way. */
	if (now - from < 2 * spin->max && !spin->passed)
		spin->limit = spin->limit / 2 < spin->min ? spin->min :
							    spin->limit / 2;
	spin->idle = spin->passed = false;
	spin->since = now;
}
