/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A mutex for a resource that one thread uses in a tight loop while others
 * need it now and then, for a microsecond: the engine. Whoever holds it sees
 * cheaply that somebody waits (homa_turn_wanted()) and gives way between two
 * rounds (homa_turn_give_way()); whoever waits yields the processor for a
 * while before it sleeps, because a wake-up costs far more than the turn.
 */
#ifndef HOMA_GATE_H
#define HOMA_GATE_H

#include "homa_plat.h"

/**
 * struct homa_turn - the mutex; a free one is all zero
 * @word: is 0 if the mutex is free, 1 if it is held, 2 if it is held and a thread may
 *	sleep until it is free. All threads read and write it, atomically.
 * @wanted: how many threads wait for the mutex. They count themselves, atomically.
 */
struct homa_turn {
	u32 word;
	u32 wanted;
};

void homa_turn_lock_slow(struct homa_turn *turn);
void homa_turn_wake(struct homa_turn *turn);
void homa_turn_give_way_slow(struct homa_turn *turn);

static inline bool homa_turn_trylock(struct homa_turn *turn)
{
	u32 expected = 0;

	return __atomic_compare_exchange_n(&turn->word, &expected, 1, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void homa_turn_lock(struct homa_turn *turn)
{
	if (unlikely(!homa_turn_trylock(turn)))
		homa_turn_lock_slow(turn);
}

static inline void homa_turn_unlock(struct homa_turn *turn)
{
	if (unlikely(__atomic_exchange_n(&turn->word, 0, __ATOMIC_RELEASE) == 2))
		homa_turn_wake(turn);
}

static inline bool homa_turn_wanted(const struct homa_turn *turn)
{
	return __atomic_load_n(&turn->wanted, __ATOMIC_RELAXED) != 0;
}

/** homa_turn_give_way() - the holder lets the others go first, then holds again. */
static inline void homa_turn_give_way(struct homa_turn *turn)
{
	if (unlikely(homa_turn_wanted(turn)))
		homa_turn_give_way_slow(turn);
}

/**
 * struct homa_wake - a signal that is given once and that one thread waits for
 * @word: is 0 before the signal and 1 after it; atomic.
 * @sleeping: says that the waiter may sleep, so that the signal has to wake it; atomic.
 */
struct homa_wake {
	u32 word;
	u32 sleeping;
};

/** homa_wake_signal() - ends the wait; @wake must stay valid until this returns. */
void homa_wake_signal(struct homa_wake *wake);
/**
 * homa_wake_wait() - wait for the signal
 * @spin_ns: yield that long before sleeping; HOMA_WAKE_SPIN: never sleep.
 * @until: absolute time (homa_clock_ns()) to give up at; ~0: never.
 * Returns 0, -ETIMEDOUT or -EINTR.
 */
#define HOMA_WAKE_SPIN ((u64)-1)
int homa_wake_wait(struct homa_wake *wake, u64 spin_ns, u64 until);

static inline void homa_wake_reset(struct homa_wake *wake)
{
	__atomic_store_n(&wake->word, 0, __ATOMIC_SEQ_CST);
}

#endif
