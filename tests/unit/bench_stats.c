/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The load generator's bookkeeping: denominators between, below and beyond the
 * measured sizes, and which files are refused; errors by kind; slowdowns.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "bench_stats.h"

static char path[] = "/tmp/homa-denominators-XXXXXX";

static int load(struct bench_denominators *d, const char *text, char err[256])
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	return bench_denominators_load(d, path, err, 256);
}

static void denominator__affine_is_exact(void **state)
{
	static struct bench_denominators d;
	char err[256];
	uint32_t size;

	(void)state;
	/* 5 us and 2 ns per byte. */
	assert_int_equal(load(&d,
			      "{\"unloaded\": ["
			      "{\"size\": 100, \"p50_ns\": 5200},"
			      "{\"size\": 1000, \"p50_ns\": 7000},"
			      "{\"size\": 50000, \"p50_ns\": 105000}]}",
			      err),
			 0);
	for (size = 100; size < 200000; size += 977)
		assert_true(bench_denominator(&d, size) == 5000 + 2.0 * size);
	/* Below the smallest nothing is known to be faster. */
	assert_true(bench_denominator(&d, 1) == 5200);
}

static void denominator__one_size_or_falling(void **state)
{
	static struct bench_denominators d;
	char err[256];

	(void)state;
	assert_int_equal(load(&d,
			      "{\"unloaded\": ["
			      "{\"size\": 10, \"p50_ns\": 50}]}",
			      err),
			 0);
	assert_true(bench_denominator(&d, 1000000) == 50);
	/* Noise must not make long messages free. */
	assert_int_equal(load(&d,
			      "{\"unloaded\": ["
			      "{\"size\": 10, \"p50_ns\": 50},"
			      "{\"size\": 20, \"p50_ns\": 40}]}",
			      err),
			 0);
	assert_true(bench_denominator(&d, 1000000) == 50);
}

static void load__refuses_nonsense(void **state)
{
	static const char *const bad[] = {
		"",
		"nonsense",
		"{}",
		"{\"unloaded\": []}",
		"{\"unloaded\": 5}",
		"{\"unloaded\": [1]}",
		"{\"unloaded\": [{\"size\": 10}]}",
		"{\"unloaded\": [{\"size\": 0, \"p50_ns\": 5}]}",
		"{\"unloaded\": [{\"size\": 10, \"p50_ns\": 0}]}",
		"{\"unloaded\": [{\"size\": 10, \"p50_ns\": -5}]}",
		"{\"unloaded\": [{\"size\": 10, \"p50_ns\": 5},"
		" {\"size\": 10, \"p50_ns\": 6}]}",
		"{\"unloaded\": [{\"size\": 10, \"p50_ns\": 5}]} trailing",
	};
	static struct bench_denominators d;
	char err[256];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err[0] = '\0';
		if (!load(&d, bad[i], err))
			fail_msg("accepted: %s", bad[i]);
		assert_non_null(strstr(err, path));
	}
	assert_true(bench_denominators_load(&d, "/no/such", err, 256) == -ENOENT);
}

static void load__bounded(void **state)
{
	static struct bench_denominators d;
	static char text[65536];
	char err[256];
	int i, n;

	(void)state;
	n = sprintf(text, "{\"unloaded\": [");
	for (i = 1; i < 1000; i++)
		n += sprintf(text + n, "%s{\"size\": %d, \"p50_ns\": 5}",
			     i > 1 ? "," : "", i);
	strcpy(text + n, "]}");
	assert_int_equal(load(&d, text, err), -EINVAL);
	assert_non_null(strstr(err, "more than"));
}

static void error__kinds_are_bounded_and_nothing_is_lost(void **state)
{
	static struct bench_stats stats;
	uint64_t all = 0;
	int i;

	(void)state;
	for (i = 1; i <= 40; i++) {
		bench_errors_add(&stats.errors, -i);
		bench_errors_add(&stats.errors, i);
	}
	for (i = 0; i < BENCH_ERROR_KINDS; i++)
		all += stats.errors.counts[i];
	assert_int_equal(all, 80);
	assert_int_equal(stats.errors.codes[0], 1);
	assert_int_equal(stats.errors.counts[0], 2);
	assert_int_equal(stats.errors.counts[BENCH_ERROR_KINDS - 1],
			 2 * (40 - (BENCH_ERROR_KINDS - 1)));
}

static void slowdown__in_thousandths(void **state)
{
	static struct bench_stats stats;
	static struct bench_config config;
	char err[256];

	(void)state;
	assert_int_equal(homa_workload_parse(&config.workload, "fixed:100",
					     BENCH_MAX_MESSAGE, err, sizeof(err)),
			 0);
	assert_int_equal(bench_stats_init(&stats, &config), 0);
	assert_int_equal(stats.class_count, 1);
	/* Without denominators there are no slowdowns. */
	bench_stats_slowdown(&stats, 0, 100, 3000);
	assert_int_equal(stats.classes[0].slowdown.count, 0);
	assert_int_equal(load(&stats.denominators,
			      "{\"unloaded\": ["
			      "{\"size\": 100, \"p50_ns\": 2000}]}",
			      err),
			 0);
	bench_stats_slowdown(&stats, 0, 100, 3000);
	assert_int_equal(stats.classes[0].slowdown.min, 1500);
	bench_stats_free(&stats);
	homa_workload_free(&config.workload);
}

static void classes__ten_unless_fixed(void **state)
{
	static struct bench_stats stats;
	static struct bench_config config;
	char err[256];

	(void)state;
	assert_int_equal(homa_workload_parse(&config.workload, "w4",
					     BENCH_MAX_MESSAGE, err, sizeof(err)),
			 0);
	assert_int_equal(bench_stats_init(&stats, &config), 0);
	assert_int_equal(stats.class_count, HOMA_DECILES);
	bench_stats_free(&stats);
}

static int setup(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(denominator__affine_is_exact),
		cmocka_unit_test(denominator__one_size_or_falling),
		cmocka_unit_test(load__refuses_nonsense),
		cmocka_unit_test(load__bounded),
		cmocka_unit_test(error__kinds_are_bounded_and_nothing_is_lost),
		cmocka_unit_test(slowdown__in_thousandths),
		cmocka_unit_test(classes__ten_unless_fixed),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
