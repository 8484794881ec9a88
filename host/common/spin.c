// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * See homa_spin.h. How the constants were found: docs/homad-performance.md.
 */
#include <sched.h>
#include "homa_clock.h"
#include "homa_spin.h"

/* The most that a look and a yield cost this thread itself, in ns. Time that they took
 * beyond that is time in which others ran. */
#define LOOK_NS 5000u
#define YIELD_NS 1000u
/* The time of a yield above which a hog has run, in ns: other yielders give way sooner. */
#define LONG_NS 1500000u
/* The lost time at which the thread stops yielding, in ns. Other programs run now and then,
 * so some time is always lost. */
#define LOST_NS 6000000u
/* The part of the passing time that is taken off the lost time: one in this many. */
#define FORGIVE 20u
#define GUARD_NS 100000000u
#define GUARD_MAX_NS 1600000000u
/* The time of a yield above which the core is shared with others that have work, in ns. */
#define SHARED_NS 20000u
/* The most that a time without work counts in the average, in ns, so that one long pause is
 * soon forgotten. */
#define GAP_MAX_NS 2000000u
#define GAP_WEIGHT 16u

void homa_spin_init(struct homa_spin *spin, u64 min, u64 max, u64 now)
{
	*spin = (struct homa_spin){
		.limit = max,
		.min = homa_min_u64(min, max),
		.last = now,
		.lost_at = now,
		.idle_from = now,
	};
}

void homa_spin_gap(struct homa_spin *spin, u64 ns)
{
	ns = homa_min_u64(ns, spin->shared ? spin->spent : GAP_MAX_NS);
	spin->gap += ns / GAP_WEIGHT - spin->gap / GAP_WEIGHT;
	spin->shared = false;
}

/* Returns for how long the thread may look now before it sleeps, in ns of processor
 * time. */
static u64 patience(const struct homa_spin *spin, bool guard)
{
	return unlikely(guard || homa_spin_rare(spin)) ? spin->min : spin->limit;
}

/* Stops yielding for a while, which is longer each time if the last one ended only just now. */
static void begin_guard(struct homa_spin *spin, u64 now)
{
	if (now - spin->guard_until < 2 * spin->guard)
		spin->guard = homa_min_u64(2 * spin->guard, GUARD_MAX_NS);
	else
		spin->guard = GUARD_NS;
	spin->guard_until = now + spin->guard;
	spin->lost = 0;
	spin->hogs++;
}

static void lose(struct homa_spin *spin, u64 took, u64 now)
{
	u64 forgiven = (now - spin->lost_at) / FORGIVE;

	spin->lost = spin->lost > forgiven ? spin->lost - forgiven : 0;
	spin->lost += took;
	spin->lost_at = now;
	if (spin->lost > LOST_NS)
		begin_guard(spin, now);
}

bool homa_spin_idle(struct homa_spin *spin, u64 now)
{
	bool guard = now < spin->guard_until;
	u64 before, took;

	if (spin->spent >= patience(spin, guard))
		return false;
	before = homa_clock_ns();
	spin->spent += homa_min_u64(before - spin->last, LOOK_NS);
	spin->last = before;
	if (unlikely(guard)) {
		homa_cpu_relax();
		return true;
	}
	sched_yield();
	spin->last = homa_clock_ns();
	took = spin->last - before;
	spin->spent += homa_min_u64(took, YIELD_NS);
	if (unlikely(took > SHARED_NS))
		spin->shared = true;
	if (unlikely(took > LONG_NS))
		lose(spin, took, spin->last);
	return true;
}
