/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Size distributions: the built-in ones keep the published means and deciles,
 * sampling inverts the distribution, bytes on the wire count packets.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "prng.h"
#include "workload.h"

static void get(struct homa_workload *w, const char *text)
{
	char err[256] = "";

	if (homa_workload_parse(w, text, HOMA_WORKLOAD_CUT, err, sizeof(err)))
		fail_msg("%s: %s", text, err);
}

static void table__published_means_within_two_percent(void **state)
{
	/* Published for messages cut at 1,000,000 bytes. */
	static const struct {
		const char *name;
		double mean;
	} published[] = {
		{ "w2", 433 },
		{ "w3", 2423 },
		{ "w4", 60175 },
		{ "w5", 385315 },
	};
	struct homa_workload w;
	size_t i;

	(void)state;
	for (i = 0; i < 4; i++) {
		get(&w, published[i].name);
		if (fabs(homa_workload_mean(&w) / published[i].mean - 1) > 0.02)
			fail_msg("%s: mean %g, published %g", w.name,
				 homa_workload_mean(&w), published[i].mean);
		homa_workload_free(&w);
	}
}

static void table__ordered_and_complete(void **state)
{
	static const char *const names[] = { "w1", "w2", "w3", "w4", "w5" };
	struct homa_workload w;
	uint32_t i, k;

	(void)state;
	for (i = 0; i < 5; i++) {
		get(&w, names[i]);
		assert_true(w.points[0].probability == 0);
		assert_true(w.points[w.count - 1].probability == 1);
		for (k = 1; k < w.count; k++) {
			assert_true(w.points[k].probability >
				    w.points[k - 1].probability);
			assert_true(w.points[k].bytes >= w.points[k - 1].bytes);
		}
		homa_workload_free(&w);
	}
}

static void mean__agrees_with_sampling(void **state)
{
	static const char *const names[] = { "w1", "w2", "w3", "w4", "w5" };
	struct homa_workload w;
	double sum;
	uint32_t i, k, n = 2000000;

	(void)state;
	for (i = 0; i < 5; i++) {
		get(&w, names[i]);
		sum = 0;
		for (k = 0; k < n; k++)
			sum += homa_workload_size(&w, (k + 0.5) / n);
		if (fabs(sum / n / homa_workload_mean(&w) - 1) > 0.003)
			fail_msg("%s: closed form %g, sampled %g", w.name,
				 homa_workload_mean(&w), sum / n);
		homa_workload_free(&w);
	}
}

static void size__smallest_with_probability_at_least_u(void **state)
{
	static const struct homa_quantile points[] = {
		{ 0.25, 10 },
		{ 0.5, 20 },
		{ 1, 3000000 },
	};
	struct homa_workload w = {
		.shape = HOMA_WORKLOAD_STEP,
		.cut = HOMA_WORKLOAD_CUT,
		.count = 3,
		.points = points,
	};

	(void)state;
	assert_int_equal(homa_workload_size(&w, 0), 10);
	assert_int_equal(homa_workload_size(&w, 0.25), 10);
	assert_int_equal(homa_workload_size(&w, 0.2500001), 20);
	assert_int_equal(homa_workload_size(&w, 0.5), 20);
	assert_int_equal(homa_workload_size(&w, 0.51), HOMA_WORKLOAD_CUT);
	assert_true(fabs(homa_workload_mean(&w) - 500007.5) < 1e-6);
	assert_false(homa_workload_is_fixed(&w));
}

static void size__log_linear_between_points(void **state)
{
	struct homa_workload w;

	(void)state;
	get(&w, "w4");
	/* Halfway between .7:6387 and .75:42493 is their geometric mean. */
	assert_int_equal(homa_workload_size(&w, 0.7), 6387);
	assert_int_equal(homa_workload_size(&w, 0.725),
			 (uint32_t)rint(sqrt(6387.0 * 42493)));
	assert_int_equal(homa_workload_size(&w, 0.75), 42493);
	assert_int_equal(homa_workload_size(&w, 0), 53);
	assert_int_equal(homa_workload_size(&w, 0.999), HOMA_WORKLOAD_CUT);
	homa_workload_free(&w);
	get(&w, "W1");
	assert_string_equal(w.name, "w1");
	assert_int_equal(homa_workload_size(&w, 0.2), 8);
	homa_workload_free(&w);
}

static void parse__fixed(void **state)
{
	struct homa_workload w;

	(void)state;
	get(&w, "fixed:1");
	assert_int_equal(homa_workload_size(&w, 0.7), 1);
	assert_true(homa_workload_mean(&w) == 1);
	assert_true(homa_workload_is_fixed(&w));
	homa_workload_free(&w);
	get(&w, "fixed:1000000");
	assert_int_equal(homa_workload_size(&w, 0), 1000000);
	homa_workload_free(&w);
}

static void parse__refuses_nonsense(void **state)
{
	static const char *const bad[] = {
		"fixed:0",
		"fixed:1000001",
		"fixed:",
		"fixed:12x",
		"fixed:-5",
		"fixed: 5",
		"fixed:99999999999999999999999",
		"w6",
		"w",
		"",
	};
	struct homa_workload w;
	char err[256];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err[0] = '\0';
		if (!homa_workload_parse(&w, bad[i], HOMA_WORKLOAD_CUT, err,
					 sizeof(err)))
			fail_msg("'%s' was accepted", bad[i]);
		assert_true(strlen(err) > 10);
		homa_workload_free(&w);
	}
	assert_int_equal(homa_workload_parse(&w, "w9", HOMA_WORKLOAD_CUT, err,
					     sizeof(err)),
			 -ENOENT);
	assert_non_null(strstr(err, "unknown workload 'w9'"));
}

static void wire_bytes__counts_packets(void **state)
{
	const struct homa_wire_format v4 = HOMA_WIRE_V4(1500);
	const struct homa_wire_format v6 = HOMA_WIRE_V6(1500);

	(void)state;
	assert_int_equal(homa_wire_bytes(1, &v4), 1 + 76 + 38);
	assert_int_equal(homa_wire_bytes(1424, &v4), 1538);
	assert_int_equal(homa_wire_bytes(1425, &v4), 1538 + 1 + 76 + 38);
	assert_int_equal(homa_wire_bytes(14240, &v4), 10 * 1538);
	assert_int_equal(homa_wire_bytes(1404, &v6), 1538);
	assert_int_equal(homa_wire_bytes(1405, &v6), 1538 + 1 + 96 + 38);
}

static void wire_bytes__short_frames_are_padded(void **state)
{
	const struct homa_wire_format small = { 1500, 20, 38, 84 };

	(void)state;
	assert_int_equal(homa_wire_bytes(1, &small), 84);
	assert_int_equal(homa_wire_bytes(26, &small), 84);
	assert_int_equal(homa_wire_bytes(27, &small), 85);
}

static void wire_mean__agrees_with_sampling(void **state)
{
	static const char *const names[] = { "w1", "w3", "w4", "fixed:5000" };
	const struct homa_wire_format v4 = HOMA_WIRE_V4(1500);
	struct homa_workload w;
	uint32_t i, k, n = 500000;
	double sum, mean;

	(void)state;
	for (i = 0; i < 4; i++) {
		get(&w, names[i]);
		sum = 0;
		for (k = 0; k < n; k++)
			sum += (double)homa_wire_bytes(
				homa_workload_size(&w, (k + 0.5) / n), &v4);
		mean = homa_workload_wire_mean(&w, &v4);
		if (fabs(sum / n / mean - 1) > 0.004)
			fail_msg("%s: %g, sampled %g", w.name, mean, sum / n);
		homa_workload_free(&w);
	}
}

static void decile__tenths_of_the_draw(void **state)
{
	(void)state;
	assert_int_equal(homa_decile(0), 0);
	assert_int_equal(homa_decile(0.0999), 0);
	assert_int_equal(homa_decile(0.1), 1);
	assert_int_equal(homa_decile(0.99999), 9);
	assert_int_equal(homa_decile(1), 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table__published_means_within_two_percent),
		cmocka_unit_test(table__ordered_and_complete),
		cmocka_unit_test(mean__agrees_with_sampling),
		cmocka_unit_test(size__smallest_with_probability_at_least_u),
		cmocka_unit_test(size__log_linear_between_points),
		cmocka_unit_test(parse__fixed),
		cmocka_unit_test(parse__refuses_nonsense),
		cmocka_unit_test(wire_bytes__counts_packets),
		cmocka_unit_test(wire_bytes__short_frames_are_padded),
		cmocka_unit_test(wire_mean__agrees_with_sampling),
		cmocka_unit_test(decile__tenths_of_the_draw),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
