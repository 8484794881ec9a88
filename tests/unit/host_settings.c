/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* host/common/settings.c: settings as text, and what is said about bad ones. */
#include "unit.h"

#include <errno.h>
#include "homa_settings.h"

static struct homa_params params;
static char err[256];

static int parse(const char *text)
{
	homa_params_default(&params);
	err[0] = '\0';
	return homa_settings_parse(&params, text, err, sizeof(err));
}

static void good(void **state)
{
	(void)state;
	assert_int_equal(parse(NULL), 0);
	assert_int_equal(parse(""), 0);
	assert_int_equal(parse("num_priorities=4"), 0);
	assert_int_equal(params.num_priorities, 4);
	assert_int_equal(parse("num_priorities=4, window=70000,num_priorities=2,"),
			 0);
	assert_int_equal(params.num_priorities, 2);
	assert_int_equal(params.window, 70000);
}

static void good__preset(void **state)
{
	struct homa_params sigcomm;

	(void)state;
	homa_params_default(&sigcomm);
	homa_params_sigcomm(&sigcomm);
	assert_int_equal(parse("sigcomm"), 0);
	assert_memory_equal(&params, &sigcomm, sizeof(params));
	assert_int_equal(parse("sigcomm,sigcomm_grants=0"), 0);
	assert_int_equal(params.sigcomm_grants, 0);
}

static void good__every_setting_at_its_limits(void **state)
{
	char text[100];
	u32 i;

	(void)state;
	for (i = 0; i < homa_param_count; i++) {
		const struct homa_param_info *info = &homa_param_table[i];

		snprintf(text, sizeof(text), "%s=%u,%s=%u", info->name,
			 info->min, info->name, info->max);
		assert_int_equal(parse(text), 0);
		assert_int_equal(*(u32 *)((char *)&params + info->offset),
				 info->max);
	}
}

static void bad(void **state)
{
	static const char *const texts[][2] = {
		{ "num_prioritys=4", "'num_prioritys'" },
		{ "num_priorities", "name=value" },
		{ "num_priorities=", "from 1 to 8" },
		{ "num_priorities=0", "from 1 to 8" },
		{ "num_priorities=9", "from 1 to 8" },
		{ "num_priorities=-1", "from 1 to 8" },
		{ "num_priorities=4x", "=4x" },
		{ "num_priorities=4294967300", "from 1 to 8" },
		{ "num_priorities=99999999999999999999999", "from 1 to 8" },
		{ "=4", "unknown setting ''" },
		{ "window=1,nonsense=2", "'nonsense'" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(texts); i++) {
		assert_int_equal(parse(texts[i][0]), -EINVAL);
		if (!strstr(err, texts[i][1]))
			fail_msg("%s: \"%s\"", texts[i][0], err);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good),
		cmocka_unit_test(good__preset),
		cmocka_unit_test(good__every_setting_at_its_limits),
		cmocka_unit_test(bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
