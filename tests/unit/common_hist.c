/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The histogram against what it promises: every 64-bit value has a bucket no
 * wider than 0.1 % of it, percentiles are those of a sorted list to that
 * precision, merging loses nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "hist.h"
#include "prng.h"

static void index__layout_of_hdr_histogram(void **state)
{
	(void)state;
	assert_int_equal(homa_hist_index(0), 0);
	assert_int_equal(homa_hist_index(2047), 2047);
	assert_int_equal(homa_hist_index(2048), 2048);
	assert_int_equal(homa_hist_index(2049), 2048);
	assert_int_equal(homa_hist_index(2050), 2049);
	assert_int_equal(homa_hist_index(4095), 3071);
	assert_int_equal(homa_hist_index(4096), 3072);
	assert_int_equal(homa_hist_index(UINT64_MAX), HOMA_HIST_BUCKETS - 1);
}

static void value__inverts_index(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < HOMA_HIST_BUCKETS; i++) {
		uint64_t low = homa_hist_value(i);
		uint64_t high = homa_hist_value(i + 1) - 1;

		assert_int_equal(homa_hist_index(low), i);
		assert_int_equal(homa_hist_index(high), i);
		assert_true(high >= low && high - low <= low / 1000);
	}
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void percentile__matches_sorted_list(void **state)
{
	static const double percents[] = { 0, 1, 50, 90, 99, 99.9, 100 };
	enum { N = 10000 };
	static uint64_t values[N];
	struct homa_hist h;
	struct homa_prng rng;
	double sum = 0;
	size_t i;

	(void)state;
	assert_int_equal(homa_hist_init(&h), 0);
	homa_prng_seed(&rng, 1, 1);
	for (i = 0; i < N; i++) {
		/* Spread over many orders of magnitude. */
		values[i] = homa_prng_next(&rng) >>
			    (homa_prng_next(&rng) % 50 + 14);
		homa_hist_record(&h, values[i]);
		sum += (double)values[i];
	}
	qsort(values, N, sizeof(values[0]), compare);
	for (i = 0; i < sizeof(percents) / sizeof(percents[0]); i++) {
		size_t rank = (size_t)(percents[i] / 100 * N + 0.5);
		uint64_t exact = values[rank ? rank - 1 : 0];
		uint64_t got = homa_hist_percentile(&h, percents[i]);

		assert_true(got >= exact && got <= exact + exact / 1000);
	}
	assert_true(homa_hist_percentile(&h, 100) == values[N - 1]);
	assert_true(homa_hist_percentile(&h, 0) == values[0]);
	assert_true(homa_hist_mean(&h) > 0.999999 * sum / N &&
		    homa_hist_mean(&h) < 1.000001 * sum / N);
	homa_hist_free(&h);
}

static void percentile__few_values(void **state)
{
	struct homa_hist h;

	(void)state;
	assert_int_equal(homa_hist_init(&h), 0);
	assert_int_equal(homa_hist_percentile(&h, 50), 0);
	assert_true(homa_hist_mean(&h) == 0);
	homa_hist_record(&h, 1000001);
	assert_int_equal(homa_hist_percentile(&h, 0), 1000001);
	assert_int_equal(homa_hist_percentile(&h, 50), 1000001);
	assert_int_equal(homa_hist_percentile(&h, 99.9), 1000001);
	homa_hist_record_n(&h, 7, 998);
	homa_hist_record(&h, 8);
	assert_int_equal(homa_hist_percentile(&h, 99.8), 7);
	assert_int_equal(homa_hist_percentile(&h, 99.9), 8);
	assert_int_equal(homa_hist_percentile(&h, 99.91), 1000001);
	homa_hist_free(&h);
}

static void merge__equals_recording_all(void **state)
{
	struct homa_hist a, b, all;
	struct homa_prng rng;
	uint32_t i;

	(void)state;
	assert_int_equal(homa_hist_init(&a) | homa_hist_init(&b) |
				 homa_hist_init(&all),
			 0);
	homa_prng_seed(&rng, 2, 2);
	for (i = 0; i < 20000; i++) {
		uint64_t v = homa_prng_next(&rng) >> (i % 60);

		homa_hist_record(i % 3 ? &a : &b, v);
		homa_hist_record(&all, v);
	}
	homa_hist_merge(&a, &b);
	assert_true(a.count == all.count && a.sum == all.sum &&
		    a.min == all.min && a.max == all.max);
	assert_memory_equal(a.counts, all.counts,
			    HOMA_HIST_BUCKETS * sizeof(a.counts[0]));
	homa_hist_free(&b);
	assert_int_equal(homa_hist_init(&b), 0);
	homa_hist_merge(&a, &b);
	assert_true(a.count == all.count && a.min == all.min);
	homa_hist_free(&a);
	homa_hist_free(&b);
	homa_hist_free(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(index__layout_of_hdr_histogram),
		cmocka_unit_test(value__inverts_index),
		cmocka_unit_test(percentile__matches_sorted_list),
		cmocka_unit_test(percentile__few_values),
		cmocka_unit_test(merge__equals_recording_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
