/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The waiting side of the user-space lock, and a checker of the lock order.
 *
 * A user-space thread that holds a lock can lose its processor, and whoever
 * spins then burns the very time slice that the holder needs: on two cores,
 * two threads sharing a bare spinlock have waited for 100 ms. So we pause for
 * about as long as a critical section takes, and then give the processor
 * away on every further attempt. No futex: critical sections are bounded and
 * short, and an unlock that must look for sleepers would cost every packet.
 *
 * The checker (HOMA_LOCK_CHECK) reports an order that could deadlock even if
 * this time it did not: per thread it knows which classes are held, and a new
 * one must come after all of them in enum homa_lock_class. That also means one
 * lock of each class at most.
 */
#include <sched.h>

#include "homa_plat.h"
#include "homa_lock_check.h"

#ifdef HOMA_MT

bool homa_plat_alone;

/* Attempts before the first yield: about one microsecond in all. */
#define HOMA_LOCK_SPINS 32

static bool homa_lock_attempt(struct homa_lock *lock)
{
	u32 expected = 0;

	/* Look before writing, or waiters steal the line from the holder. */
	if (__atomic_load_n(&lock->word, __ATOMIC_RELAXED))
		return false;
	return __atomic_compare_exchange_n(&lock->word, &expected, 1, false,
					   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

void homa_plat_lock_slow(struct homa_lock *lock)
{
	int i;

#ifdef HOMA_LOCK_CHECK
	/* Before waiting: if the order is wrong this may be for ever. */
	homa_plat_lock_expected(lock);
#endif
	for (i = 0; i < HOMA_LOCK_SPINS; i++) {
		if (homa_lock_attempt(lock))
			return;
		homa_cpu_relax();
	}
	while (!homa_lock_attempt(lock))
		sched_yield();
}

#ifdef HOMA_LOCK_CHECK

#include <stdio.h>
#include <stdlib.h>

static const char *const homa_lock_names[HOMA_LOCK_CLASSES] = {
	[HOMA_LOCK_SHARD] = "shard", [HOMA_LOCK_SOCK_TABLE] = "sock table",
	[HOMA_LOCK_SOCK] = "sock",   [HOMA_LOCK_PEER_TABLE] = "peer table",
	[HOMA_LOCK_PEER] = "peer",   [HOMA_LOCK_GRANT] = "grant",
	[HOMA_LOCK_LINK] = "link",   [HOMA_LOCK_ONCE] = "once",
};

/* Which lock of each class this thread holds. */
static _Thread_local const struct homa_lock *homa_held[HOMA_LOCK_CLASSES];

const char *homa_plat_lock_name(u32 lock_class)
{
	return lock_class < HOMA_LOCK_CLASSES ? homa_lock_names[lock_class] :
						"invalid class";
}

/* Tests that provoke violations define their own. */
__attribute__((weak)) void
homa_plat_lock_violation(const char *what, const char *held, const char *taken)
{
	fprintf(stderr, "homa: lock order: %s: held %s, taken %s\n", what, held,
		taken);
	abort();
}

void homa_plat_lock_expected(const struct homa_lock *lock)
{
	u32 held;

	if (lock->lock_class >= HOMA_LOCK_CLASSES) {
		homa_plat_lock_violation("lock was not initialised", "-",
					 homa_plat_lock_name(lock->lock_class));
		return;
	}
	for (held = lock->lock_class; held < HOMA_LOCK_CLASSES; held++) {
		if (!homa_held[held])
			continue;
		homa_plat_lock_violation(held != lock->lock_class ?
						 "wrong order" :
					 homa_held[held] == lock ?
						 "taken twice" :
						 "two of one class",
					 homa_plat_lock_name(held),
					 homa_plat_lock_name(lock->lock_class));
		return;
	}
}

void homa_plat_lock_acquired(struct homa_lock *lock)
{
	homa_plat_lock_expected(lock);
	if (lock->lock_class < HOMA_LOCK_CLASSES)
		homa_held[lock->lock_class] = lock;
}

void homa_plat_lock_released(struct homa_lock *lock)
{
	if (lock->lock_class >= HOMA_LOCK_CLASSES ||
	    homa_held[lock->lock_class] != lock) {
		homa_plat_lock_violation("released but not held", "-",
					 homa_plat_lock_name(lock->lock_class));
		return;
	}
	homa_held[lock->lock_class] = NULL;
}

int homa_plat_locks_held(void)
{
	int n = 0;
	u32 i;

	for (i = 0; i < HOMA_LOCK_CLASSES; i++)
		n += homa_held[i] != NULL;
	return n;
}

#endif /* HOMA_LOCK_CHECK */

#endif /* HOMA_MT */
