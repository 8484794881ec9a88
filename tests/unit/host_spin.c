/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * host/common/spin.c: alone, beside a hog, and beside one that comes now and
 * then; sched_yield() and the clock are replaced.
 */
#include "unit.h"

#include <sched.h>
#include <time.h>
#include "homa_spin.h"

#define MIN 5000u
#define MAX 50000u

static u64 clock_ns = 1000000000u, yield_takes;
static unsigned int yields;

int sched_yield(void)
{
	yields++;
	clock_ns += yield_takes;
	return 0;
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
	(void)id;
	ts->tv_sec = (time_t)(clock_ns / 1000000000u);
	ts->tv_nsec = (long)(clock_ns % 1000000000u);
	return 0;
}

/* Idle until it is time to sleep; how long that took. */
static u64 until_sleep(struct homa_spin *spin)
{
	u64 from = clock_ns;

	while (homa_spin_idle(spin, clock_ns))
		clock_ns += 100;
	return clock_ns - from;
}

static void sleep_for(struct homa_spin *spin, u64 ns)
{
	u64 from = clock_ns;

	clock_ns += ns;
	homa_spin_slept(spin, from, clock_ns);
}

static void plain__looks_as_long_as_it_may(void **state)
{
	struct homa_spin spin;
	int i;

	(void)state;
	homa_spin_init(&spin, MIN, MAX, clock_ns);
	yield_takes = 300;
	for (i = 0; i < 40; i++) {
		assert_in_range(until_sleep(&spin), MAX, MAX + 400);
		sleep_for(&spin, 20000);
	}
	/* Time that others had is not ours. */
	yield_takes = 100000;
	assert_in_range(until_sleep(&spin), 40 * 100000, 60 * 100000);
	sleep_for(&spin, 20000);
	assert_int_equal(spin.hogs, 0);
	/* Work begins it anew. */
	yield_takes = 300;
	assert_true(homa_spin_idle(&spin, clock_ns));
	clock_ns += MAX;
	homa_spin_work(&spin, clock_ns);
	assert_true(homa_spin_idle(&spin, clock_ns));
}

static void hog__no_yields_for_a_while(void **state)
{
	struct homa_spin spin;
	unsigned int before, before_any = yields;
	u64 first;

	(void)state;
	homa_spin_init(&spin, MIN, MAX, clock_ns);
	yield_takes = 4000000;
	while (!spin.hogs) {
		homa_spin_work(&spin, clock_ns);
		assert_true(homa_spin_idle(&spin, clock_ns));
	}
	assert_in_range(yields - before_any, 2, 3);
	before = yields;
	homa_spin_work(&spin, clock_ns);
	assert_in_range(until_sleep(&spin), MIN, 2 * MIN);
	assert_int_equal(yields, before);
	/* It tries again, and the second guard is longer. */
	first = spin.guard;
	clock_ns = spin.guard_until;
	while (spin.hogs == 1) {
		homa_spin_work(&spin, clock_ns);
		assert_true(homa_spin_idle(&spin, clock_ns));
	}
	assert_int_equal(spin.guard, 2 * first);
	/* Gone for long: the next guard is short again. */
	clock_ns = spin.guard_until + 10 * spin.guard;
	while (spin.hogs == 2) {
		homa_spin_work(&spin, clock_ns);
		assert_true(homa_spin_idle(&spin, clock_ns));
	}
	assert_int_equal(spin.guard, first);
}

static void hog__now_and_then_is_none(void **state)
{
	struct homa_spin spin;
	int i;

	(void)state;
	homa_spin_init(&spin, MIN, MAX, clock_ns);
	yield_takes = 3000000;
	for (i = 0; i < 50; i++) {
		homa_spin_work(&spin, clock_ns);
		assert_true(homa_spin_idle(&spin, clock_ns));
		clock_ns += 100000000;
	}
	assert_int_equal(spin.hogs, 0);
}

static void limits__the_shorter_one_is_never_above_the_longer(void **state)
{
	struct homa_spin spin;

	(void)state;
	homa_spin_init(&spin, 2 * MAX, MAX, clock_ns);
	assert_int_equal(spin.min, MAX);
	homa_spin_init(&spin, 0, 0, clock_ns);
	assert_false(homa_spin_idle(&spin, clock_ns));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain__looks_as_long_as_it_may),
		cmocka_unit_test(hog__no_yields_for_a_while),
		cmocka_unit_test(hog__now_and_then_is_none),
		cmocka_unit_test(limits__the_shorter_one_is_never_above_the_longer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
