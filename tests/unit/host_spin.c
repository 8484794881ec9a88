/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * host/user_common/spin.c: what the limit does in each situation, with the
 * times of the caller; sched_yield() and the clock are replaced.
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

static void plain__spins_all_the_time_that_it_may(void **state)
{
	struct homa_spin spin;
	int i;

	(void)state;
	yield_takes = 3000;
	homa_spin_init(&spin, MIN, MAX, clock_ns);
	for (i = 0; i < 20; i++) {
		assert_in_range(until_sleep(&spin), MAX, MAX + 3100);
		sleep_for(&spin, 20000);
		homa_spin_work(&spin, clock_ns);
	}
	assert_int_equal(spin.limit, MAX);
}

static void groups__gets_out_of_the_way(void **state)
{
	struct homa_spin spin;
	int i;

	(void)state;
	yield_takes = 300;
	homa_spin_init(&spin, MIN, MAX, clock_ns);
	for (i = 0; i < 20; i++) {
		until_sleep(&spin);
		sleep_for(&spin, 20000);
		homa_spin_work(&spin, clock_ns);
	}
	assert_int_equal(spin.limit, MIN);
	/* Work that comes while it looks brings the patience back. */
	for (i = 0; i < 100; i++) {
		assert_true(homa_spin_idle(&spin, clock_ns));
		homa_spin_work(&spin, clock_ns);
	}
	assert_int_equal(spin.limit, MAX);
}

static void long_sleep__says_nothing(void **state)
{
	struct homa_spin spin;

	(void)state;
	yield_takes = 300;
	homa_spin_init(&spin, MIN, MAX, clock_ns);
	until_sleep(&spin);
	sleep_for(&spin, 10000000);
	assert_int_equal(spin.limit, MAX);
}

static void hog__no_yields_for_a_while(void **state)
{
	struct homa_spin spin;
	unsigned int before;
	u64 first;

	(void)state;
	homa_spin_init(&spin, MIN, MAX, clock_ns);
	yield_takes = 4000000;
	assert_true(homa_spin_idle(&spin, clock_ns));
	assert_int_equal(spin.hogs, 1);
	before = yields;
	homa_spin_work(&spin, clock_ns);
	assert_in_range(until_sleep(&spin), 1000, MIN);
	assert_int_equal(yields, before);
	/* It tries again, and the second guard is longer. */
	first = spin.guard;
	clock_ns = spin.guard_until;
	homa_spin_work(&spin, clock_ns);
	assert_true(homa_spin_idle(&spin, clock_ns));
	assert_int_equal(yields, before + 1);
	assert_int_equal(spin.guard, 2 * first);
	/* Gone: after a quiet time the guard is short again. */
	yield_takes = 300;
	clock_ns = spin.guard_until + 10 * spin.guard;
	homa_spin_work(&spin, clock_ns);
	assert_true(homa_spin_idle(&spin, clock_ns));
	yield_takes = 4000000;
	assert_true(homa_spin_idle(&spin, clock_ns));
	assert_int_equal(spin.guard, first);
}

static void equal_limits__do_not_adapt(void **state)
{
	struct homa_spin spin;

	(void)state;
	yield_takes = 300;
	homa_spin_init(&spin, 2 * MAX, MAX, clock_ns);
	until_sleep(&spin);
	sleep_for(&spin, 20000);
	assert_int_equal(spin.limit, MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain__spins_all_the_time_that_it_may),
		cmocka_unit_test(groups__gets_out_of_the_way),
		cmocka_unit_test(long_sleep__says_nothing),
		cmocka_unit_test(hog__no_yields_for_a_while),
		cmocka_unit_test(equal_limits__do_not_adapt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
