// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The slow paths of homa_gate.h: first pause, then yield, then sleep. Pausing
 * covers a holder that is running its round on another core, yielding one
 * that was preempted on ours.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "homa_clock.h"
#include "homa_gate.h"

#define PAUSES 100
#define YIELDS 100

static long futex(u32 *word, int op, u32 val, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, val, timeout,
		       NULL, FUTEX_BITSET_MATCH_ANY);
}

void homa_gate_lock_slow(struct homa_gate *gate)
{
	int i;

	__atomic_fetch_add(&gate->wanted, 1, __ATOMIC_RELAXED);
	for (i = 0; i < PAUSES + YIELDS; i++) {
		if (__atomic_load_n(&gate->word, __ATOMIC_RELAXED) == 0 &&
		    homa_gate_trylock(gate))
			goto held;
		if (i < PAUSES)
			homa_cpu_relax();
		else
			sched_yield();
	}
	/* 2 makes the holder's unlock wake one sleeper; the one who wakes
	 * leaves 2 behind for the others. */
	while (__atomic_exchange_n(&gate->word, 2, __ATOMIC_ACQUIRE) != 0)
		futex(&gate->word, FUTEX_WAIT, 2, NULL);
held:
	__atomic_fetch_sub(&gate->wanted, 1, __ATOMIC_RELAXED);
}

void homa_gate_wake(struct homa_gate *gate)
{
	futex(&gate->word, FUTEX_WAKE, 1, NULL);
}

void homa_gate_yield_slow(struct homa_gate *gate)
{
	u32 before = __atomic_load_n(&gate->wanted, __ATOMIC_RELAXED);
	int i;

	homa_gate_unlock(gate);
	/* This waits no longer than until somebody has taken the lock: the caller looks at
	 * its work again in its next round, and gives way again if need be. */
	for (i = 0; i < YIELDS; i++) {
		if (__atomic_load_n(&gate->wanted, __ATOMIC_RELAXED) < before)
			break;
		sched_yield();
	}
	homa_gate_lock(gate);
}

void homa_wake_signal(struct homa_wake *wake)
{
	__atomic_store_n(&wake->word, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&wake->sleeping, __ATOMIC_SEQ_CST))
		futex(&wake->word, FUTEX_WAKE, 1, NULL);
}

static int wake_sleep(struct homa_wake *wake, u64 until)
{
	struct timespec ts = { (time_t)(until / 1000000000u),
			       (long)(until % 1000000000u) };
	int err = 0;

	__atomic_store_n(&wake->sleeping, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&wake->word, __ATOMIC_SEQ_CST) && !err) {
		/* The bitset variant takes an absolute monotonic time. */
		if (futex(&wake->word, FUTEX_WAIT_BITSET, 0,
			  until == (u64)-1 ? NULL : &ts) &&
		    (errno == EINTR || errno == ETIMEDOUT))
			err = -errno;
	}
	__atomic_store_n(&wake->sleeping, 0, __ATOMIC_SEQ_CST);
	return __atomic_load_n(&wake->word, __ATOMIC_SEQ_CST) ? 0 : err;
}

int homa_wake_wait(struct homa_wake *wake, u64 spin_ns, u64 until)
{
	u64 start = homa_clock_ns();

	for (;;) {
		u64 now;

		if (__atomic_load_n(&wake->word, __ATOMIC_ACQUIRE))
			return 0;
		now = homa_clock_ns();
		if (now >= until)
			return -ETIMEDOUT;
		if (spin_ns != HOMA_WAKE_SPIN && now - start >= spin_ns)
			return wake_sleep(wake, until);
		sched_yield();
	}
}
