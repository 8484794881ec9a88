/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * JSON: files appear whole, histograms come back as they were, and what is not
 * a histogram changes nothing.
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

#include "json.h"
#include "prng.h"

static void hist__round_trip(void **state)
{
	struct homa_hist a, b;
	struct homa_prng rng;
	cJSON *json, *again;
	char *text;
	int i;

	(void)state;
	assert_int_equal(homa_hist_init(&a) | homa_hist_init(&b), 0);
	homa_prng_seed(&rng, 1, 2);
	for (i = 0; i < 5000; i++)
		homa_hist_record(&a, homa_prng_next(&rng) >> (24 + i % 40));
	json = homa_json_hist(&a);
	text = cJSON_Print(json);
	again = cJSON_Parse(text);
	assert_int_equal(homa_json_hist_read(&b, again), 0);
	assert_true(a.count == b.count && a.sum == b.sum && a.min == b.min &&
		    a.max == b.max);
	assert_memory_equal(a.counts, b.counts,
			    HOMA_HIST_BUCKETS * sizeof(a.counts[0]));
	/* Reading adds: twice is twice as many. */
	assert_int_equal(homa_json_hist_read(&b, again), 0);
	assert_true(b.count == 2 * a.count);
	cJSON_Delete(json);
	cJSON_Delete(again);
	cJSON_free(text);
	homa_hist_free(&a);
	homa_hist_free(&b);
}

static void hist__refuses_nonsense(void **state)
{
	static const char *const bad[] = {
		"{}",
		"[]",
		"null",
		"{\"values\":[1],\"counts\":[1]}",
		"{\"values\":[1],\"counts\":[],\"count\":0,\"sum\":0}",
		"{\"values\":[1],\"counts\":[2],\"count\":1,\"sum\":1,\"min\":1,\"max\":1}",
		"{\"values\":[1],\"counts\":[-1],\"count\":-1,\"sum\":1,\"min\":1,\"max\":1}",
		"{\"values\":[1.5],\"counts\":[1],\"count\":1,\"sum\":1,\"min\":1,\"max\":1}",
		"{\"values\":[\"1\"],\"counts\":[1],\"count\":1,\"sum\":1,\"min\":1,\"max\":1}",
		"{\"values\":[9],\"counts\":[1],\"count\":1,\"sum\":1,\"min\":1,\"max\":1}",
		"{\"values\":[1],\"counts\":[1],\"count\":1,\"sum\":1,\"min\":2,\"max\":1}",
		"{\"values\":[1e300],\"counts\":[1],\"count\":1,\"sum\":1,\"min\":1,\"max\":1e300}",
	};
	struct homa_hist h;
	size_t i;

	(void)state;
	assert_int_equal(homa_hist_init(&h), 0);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cJSON *json = cJSON_Parse(bad[i]);

		if (homa_json_hist_read(&h, json) != -EINVAL)
			fail_msg("accepted: %s", bad[i]);
		assert_true(h.count == 0 && h.sum == 0 && h.max == 0);
		cJSON_Delete(json);
	}
	homa_hist_free(&h);
}

static void hist__empty(void **state)
{
	struct homa_hist h;
	cJSON *json;

	(void)state;
	assert_int_equal(homa_hist_init(&h), 0);
	json = homa_json_hist(&h);
	assert_int_equal(homa_json_hist_read(&h, json), 0);
	assert_true(h.count == 0);
	cJSON_Delete(json);
	json = homa_json_summary(&h, 1);
	assert_true(homa_json_number(json, "count", -1) == 0);
	assert_null(cJSON_GetObjectItem(json, "p50"));
	cJSON_Delete(json);
	homa_hist_free(&h);
}

static void summary__scaled(void **state)
{
	struct homa_hist h;
	cJSON *json;

	(void)state;
	assert_int_equal(homa_hist_init(&h), 0);
	homa_hist_record_n(&h, 1500, 3);
	json = homa_json_summary(&h, 1000);
	assert_true(homa_json_number(json, "count", 0) == 3);
	assert_true(homa_json_number(json, "p50", 0) == 1.5);
	assert_true(homa_json_number(json, "p999", 0) == 1.5);
	assert_true(homa_json_number(json, "mean", 0) == 1.5);
	cJSON_Delete(json);
	homa_hist_free(&h);
}

static void write__and_read_back(void **state)
{
	char folder[] = "/tmp/homa-json-XXXXXX", path[64], err[256];
	cJSON *json = cJSON_CreateObject(), *again = NULL;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/x.json", folder);
	cJSON_AddNumberToObject(json, "x", 5);
	assert_int_equal(homa_json_write(json, path, err, sizeof(err)), 0);
	assert_int_equal(homa_json_read(&again, path, err, sizeof(err)), 0);
	assert_true(homa_json_number(again, "x", 0) == 5);
	assert_true(homa_json_number(again, "y", 7) == 7);
	cJSON_Delete(again);
	assert_int_equal(unlink(path), 0);
	/* No temporary file was left: the folder is empty. */
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(homa_json_write(json, path, err, sizeof(err)), -ENOENT);
	assert_non_null(strstr(err, path));
	cJSON_Delete(json);
}

static void read__says_where_it_is_damaged(void **state)
{
	char path[] = "/tmp/homa-json-XXXXXX", err[256];
	int fd = mkstemp(path);
	FILE *file = fdopen(fd, "w");
	cJSON *json = NULL;
	char want[64];

	(void)state;
	assert_non_null(file);
	fputs("{\n\"a\": 1,\n\"b\": oops\n}\n", file);
	fclose(file);
	assert_int_equal(homa_json_read(&json, path, err, sizeof(err)), -EINVAL);
	snprintf(want, sizeof(want), "%s:3: ", path);
	assert_non_null(strstr(err, want));
	assert_int_equal(homa_json_read(&json, "/tmp", err, sizeof(err)),
			 -EISDIR);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hist__round_trip),
		cmocka_unit_test(hist__refuses_nonsense),
		cmocka_unit_test(hist__empty),
		cmocka_unit_test(summary__scaled),
		cmocka_unit_test(write__and_read_back),
		cmocka_unit_test(read__says_where_it_is_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
