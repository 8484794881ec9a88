/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * How long to look for work before sleeping, and how to let others run
 * meanwhile. Waking a sleeper costs 30 us or more when its core is halted, so
 * whoever will have work again in a moment should not sleep; but it must not
 * keep the processor from those whose work it waits for. sched_yield() hands
 * the processor to whoever has work and costs next to nothing if nobody has: so
 * looking and yielding in turn, for longer than a round trip takes, is right.
 * What others ran meanwhile does not count: with many applications at work each
 * gets its turn late, and sleeping would cost all of them more than looking.
 *
 * Unless there is a hog, a process that computes without pause. Each yield may
 * give it a whole slice, milliseconds, and the scheduler charges the yielder
 * for it, while one that slept goes before it when woken. What is seen of that:
 * yields that take very long. If they take a good part of the time, there are
 * none for a while: a short look, then sleep.
 */
#ifndef HOMA_SPIN_H
#define HOMA_SPIN_H

#include "homa_plat.h"

/**
 * struct homa_spin - one thread's patience; times in ns
 * @limit: longest time of ours without work before sleeping; beside a hog @min.
 * @spent: of it, since there was last work; @last: accounted until then.
 * @lost: time lost in long yields, less what is forgiven since @lost_at.
 * @guard_until: no yields before; @guard: length of the last guard.
 * @hogs: guards so far.
 */
struct homa_spin {
	u64 limit, min;
	u64 spent, last;
	u64 lost, lost_at;
	u64 guard_until, guard;
	u64 hogs;
};

void homa_spin_init(struct homa_spin *spin, u64 min, u64 max, u64 now);

/** homa_spin_work() - there was work at @now. */
static inline void homa_spin_work(struct homa_spin *spin, u64 now)
{
	spin->spent = 0;
	spin->last = now;
}

/**
 * homa_spin_idle() - there was nothing to do at @now
 * Lets others run. Returns false when it is time to sleep.
 */
bool homa_spin_idle(struct homa_spin *spin, u64 now);

/** homa_spin_slept() - slept from @from to @now. */
static inline void homa_spin_slept(struct homa_spin *spin, u64 from, u64 now)
{
	(void)from;
	homa_spin_work(spin, now);
}

#endif
