// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Recorded traces: what is read, and that whatever is wrong with a file is told
 * with its line and the reason.
 */
#include "unit.h"

#include <errno.h>
#include <unistd.h>

#include "traffic.h"

static char path[64];

static void write_file(const char *text)
{
	FILE *file;
	int fd;

	strcpy(path, "/tmp/homa-sim-test-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	file = fdopen(fd, "w");
	fputs(text, file);
	fclose(file);
}

static void recording__refused_with_line_and_reason(void **state)
{
	static const struct {
		const char *text, *line, *reason;
	} bad[] = {
		{ "1,2,3\n", ":1:", "four whole numbers" },
		{ "1,2,3,4,5\n", ":1:", "four whole numbers" },
		{ "1,2,3,4\n1,2,3,x\n", ":2:", "four whole numbers" },
		{ "1,2,3,-4\n", ":1:", "four whole numbers" },
		{ "1.5,2,3,4\n", ":1:", "four whole numbers" },
		{ "# c\n\n1,2,10,4\n",
		  ":3:", "there is no host 10: hosts are 0 to 9" },
		{ "1,99999999999999999999,1,4\n", ":1:", "four whole numbers" },
		{ "1,2,2,4\n", ":1:", "does not send to itself" },
		{ "1,2,3,0\n", ":1:", "1 to 2147483647 bytes" },
		{ "1,2,3,2147483648\n", ":1:", "1 to 2147483647 bytes" },
		{ "9999999999999999,2,3,1\n", ":1:", "at most 1e15" },
		{ "1,2,3,4\ntime_ns,src,dst,bytes\n",
		  ":2:", "four whole numbers" },
		{ "", ":0:", "no message" },
		{ "# nothing\n", ":1:", "no message" },
	};
	struct sim_recording rec;
	char err[256], line[512];
	u32 i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		write_file(bad[i].text);
		assert_int_equal(sim_recording_load(&rec, path, 10, err,
						    sizeof(err)),
				 -EINVAL);
		if (!strstr(err, bad[i].line) || !strstr(err, bad[i].reason) ||
		    strncmp(err, path, strlen(path)) != 0 || strchr(err, '\n'))
			fail_msg("'%s' gave: %s", bad[i].text, err);
		assert_null(rec.list);
		unlink(path);
	}
	memset(line, '1', sizeof(line));
	line[sizeof(line) - 1] = '\0';
	write_file(line);
	assert_int_equal(sim_recording_load(&rec, path, 10, err, sizeof(err)),
			 -EINVAL);
	assert_non_null(strstr(err, "too long"));
	unlink(path);
	assert_int_equal(sim_recording_load(&rec, path, 10, err, sizeof(err)),
			 -ENOENT);
	assert_non_null(strstr(err, path));
}

static void recording__sorted_and_ranked(void **state)
{
	struct sim_recording rec;
	char err[256];

	(void)state;
	write_file("30,0,1,5\n10,1,2,7\n10,2,3,6\n20,3,4,5\n");
	assert_int_equal(sim_recording_load(&rec, path, 10, err, sizeof(err)), 0);
	unlink(path);
	assert_int_equal(rec.count, 4);
	assert_int_equal(rec.list[0].length, 7); /* line 2 before line 3 */
	assert_int_equal(rec.list[1].length, 6);
	assert_int_equal(rec.list[2].src, 3);
	assert_int_equal(rec.list[3].at_ns, 30);
	/* Equal sizes: the earlier line is the shorter one. */
	assert_true(rec.list[3].quantile == 0.125f &&
		    rec.list[2].quantile == 0.375f);
	assert_true(rec.list[1].quantile == 0.625f &&
		    rec.list[0].quantile == 0.875f);
	sim_recording_free(&rec);
	assert_null(rec.list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recording__refused_with_line_and_reason),
		cmocka_unit_test(recording__sorted_and_ranked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
