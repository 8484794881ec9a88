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
	clock_ns += ns;
	homa_spin_slept(spin, clock_ns);
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

/* Work that comes every @gap ns, looked for until then or slept for; returns for how long the
 * thread looks at last. */
static u64 work_every(struct homa_spin *spin, u64 gap, int times)
{
	u64 from, looked = 0;

	while (times--) {
		from = clock_ns;
		while (clock_ns - from < gap && homa_spin_idle(spin, clock_ns))
			clock_ns += 100;
		looked = clock_ns - from;
		if (looked < gap)
			sleep_for(spin, gap - looked);
		else
			homa_spin_work(spin, clock_ns);
	}
	return looked;
}

static void rare__sleeps_after_a_short_look(void **state)
{
	struct homa_spin spin;

	(void)state;
	homa_spin_init(&spin, MIN, MAX, clock_ns);
	yield_takes = 300;
	assert_in_range(work_every(&spin, 1000000, 2), MAX, MAX + 400);
	assert_false(homa_spin_rare(&spin));
	assert_in_range(work_every(&spin, 1000000, 20), MIN, MIN + 400);
	assert_true(homa_spin_rare(&spin));
	/* Often again, though everybody sleeps: so everybody looks again, and finds it. */
	assert_in_range(work_every(&spin, 75000, 40), MAX, MAX + 400);
	assert_false(homa_spin_rare(&spin));
	assert_in_range(work_every(&spin, 20000, 1), 20000, 20400);
	/* A pause of a minute is forgotten soon. */
	work_every(&spin, 60000000000u, 1);
	assert_in_range(work_every(&spin, 75000, 20), MAX, MAX + 400);
}

static void rare__alternately_with_often_counts_the_average(void **state)
{
	struct homa_spin spin;
	int i;

	(void)state;
	homa_spin_init(&spin, MIN, MAX, clock_ns);
	yield_takes = 300;
	/* A daemon at 1,000 RPCs per second: the reply comes after 40 us. */
	for (i = 0; i < 40; i++) {
		work_every(&spin, 40000, 1);
		work_every(&spin, 960000, 1);
	}
	assert_in_range(work_every(&spin, 40000, 1), MIN, MIN + 400);
	/* At 10,000 it looks. */
	for (i = 0; i < 40; i++) {
		work_every(&spin, 40000, 1);
		work_every(&spin, 60000, 1);
	}
	assert_in_range(work_every(&spin, 40000, 1), 40000, 40400);
}

static void rare__time_that_others_had_says_nothing(void **state)
{
	struct homa_spin spin;

	(void)state;
	homa_spin_init(&spin, MIN, MAX, clock_ns);
	yield_takes = 100000;
	/* 64 programs on two cores: each one's turn comes late, and nobody sleeps for that. */
	work_every(&spin, 1000000, 100);
	assert_false(homa_spin_rare(&spin));
	/* The same for one that slept early when the crowd came. */
	yield_takes = 300;
	work_every(&spin, 1000000, 40);
	assert_true(homa_spin_rare(&spin));
	yield_takes = 100000;
	assert_true(work_every(&spin, 1000000, 1) > MAX);
	work_every(&spin, 1000000, 60);
	yield_takes = 300;
	assert_false(homa_spin_rare(&spin));
}

static void rare__time_between_waits_is_no_wait(void **state)
{
	struct homa_spin spin;
	int i;

	(void)state;
	homa_spin_init(&spin, MIN, MAX, clock_ns);
	yield_takes = 300;
	for (i = 0; i < 100; i++) {
		work_every(&spin, 20000, 1);
		clock_ns += 1000000;
		homa_spin_begin(&spin, clock_ns);
	}
	assert_false(homa_spin_rare(&spin));
	/* Waits that end because the caller's time is up are waits. */
	for (i = 0; i < 100; i++) {
		while (homa_spin_idle(&spin, clock_ns))
			clock_ns += 100;
		sleep_for(&spin, 500000);
		homa_spin_begin(&spin, clock_ns);
	}
	assert_true(homa_spin_rare(&spin));
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
		cmocka_unit_test(rare__sleeps_after_a_short_look),
		cmocka_unit_test(rare__alternately_with_often_counts_the_average),
		cmocka_unit_test(rare__time_that_others_had_says_nothing),
		cmocka_unit_test(rare__time_between_waits_is_no_wait),
		cmocka_unit_test(limits__the_shorter_one_is_never_above_the_longer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
