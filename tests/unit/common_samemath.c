/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Close to libm everywhere, and the same bits on every machine: the digest was
 * made on one, any other has to find it again.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "prng.h"
#include "samemath.h"

#define DIGEST 0x152fef7e792b95acull

static void log__close_to_libm(void **state)
{
	struct homa_prng rng;
	int i;

	(void)state;
	homa_prng_seed(&rng, 1, 1);
	for (i = 0; i < 200000; i++) {
		double x = ldexp(1 - homa_prng_double(&rng), (int)(i % 120) - 60);
		double off = fabs(homa_log(x) - log(x));

		assert_true(off <= 4e-16 * fabs(log(x)) + 4e-16);
	}
	assert_true(homa_log(1) == 0);
	assert_true(homa_log(2) == log(2));
	assert_true(homa_log(0x1p-53) == log(0x1p-53));
}

static void exp__close_to_libm(void **state)
{
	struct homa_prng rng;
	int i;

	(void)state;
	homa_prng_seed(&rng, 2, 1);
	for (i = 0; i < 200000; i++) {
		double x = (homa_prng_double(&rng) - 0.5) * (i % 2 ? 1400 : 4);

		assert_true(fabs(homa_exp(x) / exp(x) - 1) <= 1e-15);
	}
	assert_true(homa_exp(0) == 1);
}

static uint64_t mix(uint64_t digest, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return (digest ^ bits) * 0x100000001b3ull;
}

static void both__same_bits_everywhere(void **state)
{
	uint64_t digest = 0xcbf29ce484222325ull;
	struct homa_prng rng;
	int i;

	(void)state;
	homa_prng_seed(&rng, 3, 1);
	for (i = 0; i < 10000; i++) {
		digest = mix(digest, homa_log(1 - homa_prng_double(&rng)));
		digest = mix(digest, homa_exp(20 * homa_prng_double(&rng)));
		digest = mix(digest, homa_prng_exp(&rng, 1000));
	}
	assert_int_equal(digest, DIGEST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(log__close_to_libm),
		cmocka_unit_test(exp__close_to_libm),
		cmocka_unit_test(both__same_bits_everywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
