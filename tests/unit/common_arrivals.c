/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Arrivals: the same for every transport, Poisson, at the asked rate.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "arrivals.h"

static void get(struct homa_workload *w, const char *text)
{
	char err[256];

	assert_int_equal(homa_workload_parse(w, text, HOMA_WORKLOAD_CUT, err,
					     sizeof(err)),
			 0);
}

static void next__same_seed_same_arrivals(void **state)
{
	struct homa_arrival x, y;
	struct homa_arrivals a, b;
	struct homa_workload w;
	int i;

	(void)state;
	get(&w, "w4");
	homa_arrivals_init(&a, &w, 1000, 3, 9, 2);
	homa_arrivals_init(&b, &w, 1000, 3, 9, 2);
	for (i = 0; i < 1000; i++) {
		homa_arrivals_next(&a, &x);
		homa_arrivals_next(&b, &y);
		assert_true(x.at_ns == y.at_ns && x.size == y.size &&
			    x.peer == y.peer && x.decile == y.decile);
	}
	homa_workload_free(&w);
}

static void next__rate_does_not_change_sizes(void **state)
{
	struct homa_arrival x, y;
	struct homa_arrivals a, b;
	struct homa_workload w;
	int i;

	(void)state;
	get(&w, "w3");
	homa_arrivals_init(&a, &w, 1000, 5, 1, 0);
	homa_arrivals_init(&b, &w, 0, 5, 1, 0);
	for (i = 0; i < 1000; i++) {
		homa_arrivals_next(&a, &x);
		homa_arrivals_next(&b, &y);
		assert_true(x.size == y.size && x.peer == y.peer);
		assert_true(y.at_ns == 0);
	}
	homa_workload_free(&w);
}

static void next__hosts_differ(void **state)
{
	struct homa_arrival x, y;
	struct homa_arrivals a, b;
	struct homa_workload w;
	int i, same = 0;

	(void)state;
	get(&w, "w4");
	homa_arrivals_init(&a, &w, 1000, 4, 1, 0);
	homa_arrivals_init(&b, &w, 1000, 4, 1, 1);
	for (i = 0; i < 1000; i++) {
		homa_arrivals_next(&a, &x);
		homa_arrivals_next(&b, &y);
		same += x.at_ns == y.at_ns;
	}
	assert_in_range(same, 0, 3);
	homa_workload_free(&w);
}

static void next__poisson(void **state)
{
	/* Counts in equal intervals: their variance equals their mean. */
	enum { INTERVALS = 2000, PER = 50 };
	static uint32_t counts[INTERVALS];
	struct homa_arrival x;
	struct homa_arrivals a;
	struct homa_workload w;
	double mean = 0, variance = 0;
	uint64_t last = 0;
	int i;

	(void)state;
	get(&w, "fixed:100");
	homa_arrivals_init(&a, &w, 1000, 1, 11, 0);
	for (;;) {
		homa_arrivals_next(&a, &x);
		assert_true(x.at_ns >= last && x.peer == 0 && x.size == 100);
		last = x.at_ns;
		if (x.at_ns / (PER * 1000) >= INTERVALS)
			break;
		counts[x.at_ns / (PER * 1000)]++;
	}
	for (i = 0; i < INTERVALS; i++)
		mean += (double)counts[i] / INTERVALS;
	for (i = 0; i < INTERVALS; i++)
		variance += pow(counts[i] - mean, 2) / INTERVALS;
	assert_true(fabs(mean - PER) < 1);
	assert_true(variance / mean > 0.8 && variance / mean < 1.2);
	homa_workload_free(&w);
}

static void next__peers_and_deciles_even(void **state)
{
	uint32_t peers[4] = { 0 }, deciles[10] = { 0 };
	struct homa_arrival x;
	struct homa_arrivals a;
	struct homa_workload w;
	int i;

	(void)state;
	/* W1: three tenths of all messages have 8 bytes; deciles stay even. */
	get(&w, "w1");
	homa_arrivals_init(&a, &w, 1, 4, 21, 0);
	for (i = 0; i < 40000; i++) {
		homa_arrivals_next(&a, &x);
		assert_true(x.peer < 4 && x.decile < 10);
		peers[x.peer]++;
		deciles[x.decile]++;
	}
	for (i = 0; i < 4; i++)
		assert_in_range(peers[i], 9500, 10500);
	for (i = 0; i < 10; i++)
		assert_in_range(deciles[i], 3600, 4400);
	homa_workload_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(next__same_seed_same_arrivals),
		cmocka_unit_test(next__rate_does_not_change_sizes),
		cmocka_unit_test(next__hosts_differ),
		cmocka_unit_test(next__poisson),
		cmocka_unit_test(next__peers_and_deciles_even),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
