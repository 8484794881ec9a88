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
 *
 * And where work is rare, looking is in vain nearly each time. A thread whose times without
 * work last 200 us on average and longer sleeps after a short look, too. That cannot lock a
 * round trip in which everybody sleeps: its times without work are shorter than that even
 * then, so everybody looks again. While other threads use the same core, a yield takes long, and
 * a time without work says how busy the core is and not how rare work is: then the thread
 * looks as long as it may, and only its own looking counts in the average.
 *
 * Guarded by: the thread that looks for work; a copy is nobody else's.
 */
#ifndef HOMA_SPIN_H
#define HOMA_SPIN_H

#include "homa_plat.h"

/* The average length of times without work from which on work counts as rare, in ns. */
#define HOMA_SPIN_RARE_NS 200000u

/**
 * struct homa_spin - one thread's patience
 *
 * The thread alone reads and writes it, in the functions below. All times are in ns,
 * those that name a moment by homa_clock_ns().
 *
 * @limit: the processor time for which the thread looks for work in vain before it sleeps.
 * @min: the same while there is a hog.
 * @spent: how much of @limit has gone since there was work last.
 * @last: the moment up to which time is counted in @spent.
 * @lost: the time that long yields took, less what has been forgiven up to @lost_at.
 * @lost_at: the moment up to which @lost is forgiven.
 * @guard_until: the moment before which the thread does not yield, because of a hog.
 * @guard: how long the last such time without yields was.
 * @hogs: counts those times.
 * @idle_from: the moment at which the present time without work began.
 * @gap: how long times without work last, an average in which each new one has a sixteenth.
 * @shared: a yield in the present time without work took so long that others must have run.
 */
struct homa_spin {
	u64 limit, min;
	u64 spent, last;
	u64 idle_from, gap;
	bool shared;
	u64 lost, lost_at;
	u64 guard_until, guard;
	u64 hogs;
};

void homa_spin_init(struct homa_spin *spin, u64 min, u64 max, u64 now);

/* homa_spin_gap() - internal: counts a time without work that has lasted @ns. */
void homa_spin_gap(struct homa_spin *spin, u64 ns);

/** homa_spin_work() - there was work at @now. */
static inline void homa_spin_work(struct homa_spin *spin, u64 now)
{
	if (spin->spent)
		homa_spin_gap(spin, now - spin->idle_from);
	spin->spent = 0;
	spin->last = spin->idle_from = now;
}

/** homa_spin_begin() - the thread begins to wait at @now; what it did since it last looked was
 *  neither work of this kind nor waiting. */
static inline void homa_spin_begin(struct homa_spin *spin, u64 now)
{
	if (spin->spent)
		homa_spin_gap(spin, spin->last - spin->idle_from);
	spin->spent = 0;
	spin->last = spin->idle_from = now;
}

/** homa_spin_rare() - work is so rare that the thread sleeps after a short look. */
static inline bool homa_spin_rare(const struct homa_spin *spin)
{
	return spin->gap > HOMA_SPIN_RARE_NS && !spin->shared;
}

/**
 * homa_spin_idle() - there was nothing to do at @now
 * Lets others run. Returns false when it is time to sleep.
 */
bool homa_spin_idle(struct homa_spin *spin, u64 now);

/** homa_spin_slept() - the thread slept until @now. */
static inline void homa_spin_slept(struct homa_spin *spin, u64 now)
{
	homa_spin_gap(spin, now - spin->idle_from);
	spin->spent = 0;
	spin->last = spin->idle_from = now;
}

#endif
