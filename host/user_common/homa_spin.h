/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * How long to look for work before sleeping, and how to let others run
 * meanwhile. Waking a sleeper costs 30 us or more when its core is halted, so
 * whoever will have work again in a moment should not sleep; but it must not
 * keep the processor from those whose work it waits for. Three situations have
 * to be told apart, and none of them can be asked for:
 *
 *	plain	sched_yield() hands the processor to whoever has work. Spinning
 *		and yielding costs nobody anything; blocking costs wake-ups.
 *	groups	Every process in a session, and so a scheduling group, of its
 *		own: a yield only passes within the group, so it comes back at
 *		once while those on the same core wait. Sleeping passes it on.
 *	hog	Somebody computes without pause: a yield gives him a whole slice
 *		of milliseconds. Who slept before preempts him when woken.
 *
 * What is seen: how long a yield takes, and whether work comes soon after
 * giving up. Yields that come back at once, and work shortly after sleeping:
 * groups; the spin gets shorter. Work while spinning: it gets longer again. A
 * yield that takes very long: a hog; no yields for a while, and sleep at once.
 */
#ifndef HOMA_SPIN_H
#define HOMA_SPIN_H

#include "homa_plat.h"

/**
 * struct homa_spin - one thread's patience; times in ns
 * @limit: present longest time without work before sleeping, @min .. @max.
 * @since: when there was last work.
 * @guard_until: no yields before; @guard: length of the present guard.
 * @idle: there was nothing to do since @since.
 * @passed: somebody else ran during a yield of this idle time.
 * @hogs: how often a yield took very long.
 */
struct homa_spin {
	u64 limit, min, max;
	u64 since;
	u64 guard_until, guard;
	bool idle, passed;
	u64 hogs;
};

/** homa_spin_init() - begins with @max; @min == @max does not adapt. */
void homa_spin_init(struct homa_spin *spin, u64 min, u64 max, u64 now);
void homa_spin_found(struct homa_spin *spin, u64 now);

/** homa_spin_work() - there was work at @now. */
static inline void homa_spin_work(struct homa_spin *spin, u64 now)
{
	if (spin->idle)
		homa_spin_found(spin, now);
	spin->since = now;
}

/**
 * homa_spin_idle() - there was nothing to do at @now
 * Lets others run. Returns false when it is time to sleep.
 */
bool homa_spin_idle(struct homa_spin *spin, u64 now);

/** homa_spin_slept() - slept from @from to @now. */
void homa_spin_slept(struct homa_spin *spin, u64 from, u64 now);

#endif
