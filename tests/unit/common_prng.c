/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The random numbers behind every experiment: reproducible, independent by
 * stream, and distributed as promised (with bounds that a correct generator
 * misses less than once in 10^9 seeds; the seed is fixed anyway).
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "prng.h"

static void seed__same_seed_same_numbers(void **state)
{
	struct homa_prng a, b;
	int i;

	(void)state;
	homa_prng_seed(&a, 42, 7);
	homa_prng_seed(&b, 42, 7);
	for (i = 0; i < 1000; i++)
		assert_true(homa_prng_next(&a) == homa_prng_next(&b));
}

static void seed__streams_and_seeds_differ(void **state)
{
	struct homa_prng a, b, c, d;

	(void)state;
	homa_prng_seed(&a, 1, 2);
	homa_prng_seed(&b, 2, 1);
	homa_prng_seed(&c, 1, 1);
	homa_prng_seed(&d, 0, 0);
	assert_true(homa_prng_next(&a) != homa_prng_next(&b));
	assert_true(homa_prng_next(&b) != homa_prng_next(&c));
	assert_true(homa_prng_next(&c) != homa_prng_next(&d));
	assert_true((d.s[0] | d.s[1] | d.s[2] | d.s[3]) != 0);
}

static void next__matches_reference(void **state)
{
	/* First outputs of xoshiro256** for this state, by its definition. */
	struct homa_prng rng = { { 1, 2, 3, 4 } };

	(void)state;
	assert_true(homa_prng_next(&rng) == 11520);
	assert_true(homa_prng_next(&rng) == 0);
	assert_true(homa_prng_next(&rng) == 1509978240);
	assert_true(homa_prng_next(&rng) == 1215971899390074240ull);
}

static void double__uniform_in_unit_interval(void **state)
{
	struct homa_prng rng;
	double sum = 0, u;
	int i, n = 200000;

	(void)state;
	homa_prng_seed(&rng, 3, 0);
	for (i = 0; i < n; i++) {
		u = homa_prng_double(&rng);
		assert_true(u >= 0 && u < 1);
		sum += u;
	}
	/* Standard error 0.00065: six of them. */
	assert_true(fabs(sum / n - 0.5) < 0.004);
}

static void exp__mean_and_memory(void **state)
{
	struct homa_prng rng;
	double sum = 0, x;
	int i, n = 200000, above = 0;

	(void)state;
	homa_prng_seed(&rng, 4, 0);
	for (i = 0; i < n; i++) {
		x = homa_prng_exp(&rng, 1000);
		assert_true(x > 0 && isfinite(x));
		sum += x;
		above += x > 1000;
	}
	assert_true(fabs(sum / n - 1000) < 15);
	assert_true(fabs((double)above / n - exp(-1)) < 0.007);
}

static void below__covers_all_without_bias(void **state)
{
	uint32_t counts[7] = { 0 };
	struct homa_prng rng;
	int i, n = 70000;

	(void)state;
	homa_prng_seed(&rng, 5, 0);
	for (i = 0; i < n; i++) {
		uint32_t k = homa_prng_below(&rng, 7);

		assert_true(k < 7);
		counts[k]++;
	}
	for (i = 0; i < 7; i++)
		assert_in_range(counts[i], 9400, 10600);
	assert_int_equal(homa_prng_below(&rng, 1), 0);
	assert_int_equal(homa_prng_below(&rng, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seed__same_seed_same_numbers),
		cmocka_unit_test(seed__streams_and_seeds_differ),
		cmocka_unit_test(next__matches_reference),
		cmocka_unit_test(double__uniform_in_unit_interval),
		cmocka_unit_test(exp__mean_and_memory),
		cmocka_unit_test(below__covers_all_without_bias),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
