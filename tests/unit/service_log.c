// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Lines of the log stay lines of JSON, however long they become when bytes that are not ASCII
 * are escaped: what has no room is left out, a pair as a whole.
 */
#include <unistd.h>
#include <cjson/cJSON.h>
#include "log.h"
#include "unit.h"

/* Logs @text and returns what was written to standard error, as an object of JSON. */
static cJSON *logged(const char *text)
{
	char line[8192];
	int ends[2], before = dup(STDERR_FILENO);
	cJSON *json;
	ssize_t n;

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	homad_log(HOMAD_INFO, "%s", text);
	dup2(before, STDERR_FILENO);
	close(before);
	close(ends[1]);
	n = read(ends[0], line, sizeof(line) - 1);
	close(ends[0]);
	assert_in_range(n, 2, 4096);
	assert_int_equal(line[n - 1], '\n');
	line[n - 1] = '\0';
	assert_null(strchr(line, '\n'));
	json = cJSON_ParseWithOpts(line, NULL, true);
	if (!json)
		fail_msg("no JSON: ...%s", line + (n > 80 ? n - 80 : 0));
	return json;
}

static size_t length_of(const cJSON *json, const char *name)
{
	const cJSON *value = cJSON_GetObjectItem(json, name);

	return cJSON_IsString(value) ? strlen(value->valuestring) : 0;
}

/* Each of the bytes takes six in the line and two in what cJSON makes of it. */
static void json__message_of_any_length(void **state)
{
	char text[1200] = "";
	cJSON *json;
	u32 n, length;

	(void)state;
	homad_log_init(HOMAD_INFO, HOMAD_LOG_JSON);
	/* Around the length at which the line is full, and the longest; the log allows a place
	 * 20 lines at once. */
	for (n = 640; n < 1100; n += n < 700 ? 5 : 100) {
		memset(text, 0xe4, n);
		text[n] = '\0';
		json = logged(text);
		length = (u32)length_of(json, "message");
		assert_int_equal(length % 2, 0);
		assert_in_range(length, 2 * 600, 2 * (n < 680 ? n : 680));
		cJSON_Delete(json);
	}
}

static void json__pairs_that_have_no_room(void **state)
{
	char text[1200], name[700];
	cJSON *json;

	(void)state;
	homad_log_init(HOMAD_INFO, HOMAD_LOG_JSON);
	memset(name, 0xe4, 660);
	name[660] = '\0';
	snprintf(text, sizeof(text),
		 "an application\tid=7 name=\"%s\" uid=8 more=\"%s\" pid=9",
		 name, name + 560);
	json = logged(text);
	assert_int_equal(length_of(json, "message"), strlen("an application"));
	assert_non_null(cJSON_GetObjectItem(json, "id"));
	assert_int_equal(length_of(json, "name"), 1320);
	/* This one is left out as a whole, and shorter ones after it are not. */
	assert_null(cJSON_GetObjectItem(json, "more"));
	assert_non_null(cJSON_GetObjectItem(json, "uid"));
	assert_non_null(cJSON_GetObjectItem(json, "pid"));
	cJSON_Delete(json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json__message_of_any_length),
		cmocka_unit_test(json__pairs_that_have_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
