/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Sizes from files: both forms are read, and every kind of nonsense is refused
 * with the file, the line and the reason.
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

#include "workload.h"

static char path[] = "/tmp/homa-csv-XXXXXX.csv";

/* Load @bytes as a file; the result of the loader, its words in @err. */
static int load(struct homa_workload *w, const char *bytes, size_t len,
		char err[256])
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, len, file), len);
	fclose(file);
	err[0] = '\0';
	return homa_workload_parse(w, path, HOMA_WORKLOAD_CUT, err, 256);
}

static void accept(struct homa_workload *w, const char *text)
{
	char err[256];

	if (load(w, text, strlen(text), err))
		fail_msg("refused: %s", err);
}

static void refuse(const char *text, size_t len, const char *line,
		   const char *reason)
{
	struct homa_workload w;
	char err[256], want[64];

	if (!load(&w, text, len, err))
		fail_msg("accepted: %s", text);
	snprintf(want, sizeof(want), "%s:%s", path, line);
	if (strncmp(err, want, strlen(want)) || !strstr(err, reason))
		fail_msg("'%s' does not start with '%s' and say '%s'", err,
			 want, reason);
	assert_null(w.owned);
}

static void csv__cumulative(void **state)
{
	struct homa_workload w;

	(void)state;
	accept(&w, "size_bytes,cumulative_probability\n# comment\n\n"
		   "10,0.5\r\n 100 , 0.9\n2000000,1.0");
	assert_int_equal(w.count, 3);
	assert_int_equal(homa_workload_size(&w, 0.3), 10);
	assert_int_equal(homa_workload_size(&w, 0.6), 100);
	assert_int_equal(homa_workload_size(&w, 0.95), 1000000);
	homa_workload_free(&w);
}

static void csv__list_of_sizes(void **state)
{
	struct homa_workload w;

	(void)state;
	accept(&w, "bytes\n300\n100\n100\n200\n");
	assert_int_equal(w.count, 3);
	assert_int_equal(homa_workload_size(&w, 0.5), 100);
	assert_int_equal(homa_workload_size(&w, 0.74), 200);
	assert_int_equal(homa_workload_size(&w, 0.76), 300);
	assert_true(homa_workload_mean(&w) == 175);
	homa_workload_free(&w);
}

static void csv__refuses_nonsense(void **state)
{
	static const struct {
		const char *text, *line, *reason;
	} bad[] = {
		{ "", " no", "no message sizes" },
		{ "# only a comment\n", " no", "no message sizes" },
		{ "header\n", " no", "no message sizes" },
		{ "header\nagain\n", "2:", "not a message size" },
		{ "10\nten\n", "2:", "not a message size" },
		{ "0\n", "1:", "not a whole number" },
		{ "-3\n", "1:", "not a whole number" },
		{ "1.5\n", "1:", "not a whole number" },
		{ "5000000000\n", "1:", "not a whole number" },
		{ "nan\nnan\n", "2:", "not a message size" },
		{ "10\n1e999\n", "2:", "not a message size" },
		{ "10,\n", "1:", "not a cumulative probability" },
		{ "10,x\n", "1:", "not a cumulative probability" },
		{ "10,0\n", "1:", "not in (0, 1]" },
		{ "10,1.5\n", "1:", "not in (0, 1]" },
		{ "10,-0.5\n", "1:", "not in (0, 1]" },
		{ "10,0.5\n20,0.5\n", "2:", "not above" },
		{ "10,0.5\n20,0.4\n", "2:", "not above" },
		{ "10,0.5\n10,1\n", "2:", "not above" },
		{ "10,0.5\n5,1\n", "2:", "not above" },
		{ "10,0.5\n20,0.9\n", "2:", "must be 1" },
		{ "10,0.5\n20\n", "2:", "1 columns, but 2" },
		{ "10,0.5,7\n", "1:", "unexpected ',7'" },
		{ "10 20\n", "1:", "unexpected '20'" },
	};
	static const char nul[] = "10\n2\0000\n";
	char longline[400];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		refuse(bad[i].text, strlen(bad[i].text), bad[i].line,
		       bad[i].reason);
	refuse(nul, sizeof(nul) - 1, "2:", "NUL");
	memset(longline, '1', sizeof(longline));
	refuse(longline, sizeof(longline), "1:", "longer than");
}

static void csv__missing_file(void **state)
{
	struct homa_workload w;
	char err[256];

	(void)state;
	assert_int_equal(homa_workload_load_csv(&w, "/nonexistent/x.csv",
						HOMA_WORKLOAD_CUT, err,
						sizeof(err)),
			 -ENOENT);
	assert_non_null(strstr(err, "/nonexistent/x.csv: cannot be opened"));
	assert_true(homa_workload_load_csv(&w, "/tmp", HOMA_WORKLOAD_CUT, err,
					   sizeof(err)) < 0);
}

/* The exact tables, where a test machine has them (HOMA_WORKLOADS=folder). */
static void csv__exact_tables(void **state)
{
	static const double means[] = { 0, 0, 433, 2423, 60175, 385315 };
	const char *folder = getenv("HOMA_WORKLOADS");
	struct homa_workload exact, ours;
	char name[512], err[256];
	int i, k;

	(void)state;
	if (!folder)
		skip();
	for (i = 2; i <= 5; i++) {
		snprintf(name, sizeof(name), "%s/w%d.csv", folder, i);
		assert_int_equal(homa_workload_load_csv(&exact, name,
							HOMA_WORKLOAD_CUT, err,
							sizeof(err)),
				 0);
		assert_true(homa_workload_mean(&exact) > 0.995 * means[i] &&
			    homa_workload_mean(&exact) < 1.005 * means[i]);
		snprintf(name, sizeof(name), "w%d", i);
		assert_int_equal(homa_workload_parse(&ours, name,
						     HOMA_WORKLOAD_CUT, err,
						     sizeof(err)),
				 0);
		for (k = 1; k < 10; k++) {
			double a = homa_workload_size(&exact, k / 10.0);
			double b = homa_workload_size(&ours, k / 10.0);

			if (b > 1.1 * a + 1 || a > 1.1 * b + 1)
				fail_msg("w%d at %d0 %%: %g, exact %g", i, k, b,
					 a);
		}
		homa_workload_free(&exact);
		homa_workload_free(&ours);
	}
}

static int setup(void **state)
{
	int fd = mkstemps(path, 4);

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
		cmocka_unit_test(csv__cumulative),
		cmocka_unit_test(csv__list_of_sizes),
		cmocka_unit_test(csv__refuses_nonsense),
		cmocka_unit_test(csv__missing_file),
		cmocka_unit_test(csv__exact_tables),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
