// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * See homa_spin.h. How the constants were found: docs/homad-performance.md.
 */
#include <sched.h>
#include "homa_clock.h"
#include "homa_spin.h"

/* A look and a yield cost this thread at most so much, ns. What they took beyond that is time
 * in which others ran. */
#define LOOK_NS 5000u
#define YIELD_NS 1000u
/* A yield that takes longer than so many ns met a hog: other yielders give way sooner. */
#define LONG_NS 1500000u
/* When so much time has been lost, ns, the thread stops yielding. Other programs run now and
 * then, so some is always lost. */
#define LOST_NS 6000000u
/* While time passes, one part in so many of it is taken off what was lost. */
#define FORGIVE 20u
#define GUARD_NS 100000000u
#define GUARD_MAX_NS 1600000000u
/* After a yield that took so many ns the core is shared with others that have work. */
#define SHARED_NS 20000u
/* A time without work counts as so many ns at most, so that one long pause is soon forgotten. */
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

/* For how long the thread may look now before it sleeps, in ns of its own time. */
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
