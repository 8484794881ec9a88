/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A mutex for a resource that one thread uses in a tight loop while others
 * need it now and then, for a microsecond: the engine. Whoever holds it sees
 * cheaply that somebody waits (homa_gate_wanted()) and gives way between two
 * rounds (homa_gate_yield()); whoever waits yields the processor for a
 * while before it sleeps, because a wake-up costs far more than the wait.
 *
 * Guarded by: nobody; all fields are atomic, and any thread writes them by the functions here.
 */
#ifndef HOMA_GATE_H
#define HOMA_GATE_H

#include "homa_plat.h"

/**
 * struct homa_gate - the mutex; a free one is all zero
 * @word: is 0 if the mutex is free, 1 if it is held, 2 if it is held and a thread may
 *	sleep until it is free. All threads read and write it, atomically.
 * @wanted: how many threads wait for the mutex. They count themselves, atomically.
 */
struct homa_gate {
	u32 word;
	u32 wanted;
};

void homa_gate_lock_slow(struct homa_gate *gate);
void homa_gate_wake(struct homa_gate *gate);
void homa_gate_yield_slow(struct homa_gate *gate);

static inline bool homa_gate_trylock(struct homa_gate *gate)
{
	u32 expected = 0;

	return __atomic_compare_exchange_n(&gate->word, &expected, 1, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static inline void homa_gate_lock(struct homa_gate *gate)
{
	if (unlikely(!homa_gate_trylock(gate)))
		homa_gate_lock_slow(gate);
}

static inline void homa_gate_unlock(struct homa_gate *gate)
{
	if (unlikely(__atomic_exchange_n(&gate->word, 0, __ATOMIC_RELEASE) == 2))
		homa_gate_wake(gate);
}

static inline bool homa_gate_wanted(const struct homa_gate *gate)
{
	return __atomic_load_n(&gate->wanted, __ATOMIC_RELAXED) != 0;
}

/** homa_gate_yield() - the holder lets the others go first, then holds again. */
static inline void homa_gate_yield(struct homa_gate *gate)
{
	if (unlikely(homa_gate_wanted(gate)))
		homa_gate_yield_slow(gate);
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
