// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Tests: names and units of settings; lists of cutoffs. */
#include "homa_kunit.h"
#include "homa_sysctl.h"

static const struct homa_param_info *param_at(u32 offset)
{
	u32 i;

	for (i = 0; i < homa_param_count; i++)
		if (homa_param_table[i].offset == offset)
			return &homa_param_table[i];
	return NULL;
}

static const struct homa_param_info *param_named(const char *name)
{
	u32 i;

	for (i = 0; i < homa_param_count; i++)
		if (!strcmp(homa_param_table[i].name, name))
			return &homa_param_table[i];
	return NULL;
}

/* The engine takes every value that an alias lets through, and every value of the engine
 * can be shown. */
static void settings_aliases_fit(struct kunit *test)
{
	const struct homa_param_info *info;
	const struct homak_knob *knob;
	u32 index = 0, seen = 0;

	while ((knob = homak_knob_next(&index))) {
		const u32 scale = knob->scale ?: 1;

		if (knob->kind != HOMAK_KNOB_ENGINE)
			continue;
		info = param_at(knob->offset);
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, info);
		KUNIT_EXPECT_GE(test, (u64)knob->min * scale, (u64)info->min);
		KUNIT_EXPECT_LE(test, (u64)knob->max * scale, (u64)info->max);
		KUNIT_EXPECT_GE(test, homak_knob_shown(knob, info->def),
				knob->min);
		KUNIT_EXPECT_LE(test, homak_knob_shown(knob, info->def),
				knob->max);
		seen++;
	}
	KUNIT_EXPECT_GE(test, seen, 5u);
}

/* No directory has two files of one name. */
static void settings_names_differ(struct kunit *test)
{
	const struct homak_knob *a, *b;
	u32 i = 0, j;

	while ((a = homak_knob_next(&i))) {
		KUNIT_EXPECT_TRUE(test, !param_named(a->name));
		j = i;
		while ((b = homak_knob_next(&j)))
			KUNIT_EXPECT_NE(test, strcmp(a->name, b->name), 0);
	}
}

static void settings_round_up(struct kunit *test)
{
	const struct homak_knob ticks = { .scale = 1000, .max = 10000 };
	const struct homak_knob plain = { .max = U32_MAX };

	KUNIT_EXPECT_EQ(test, homak_knob_shown(&ticks, 0), 0u);
	KUNIT_EXPECT_EQ(test, homak_knob_shown(&ticks, 1), 1u);
	KUNIT_EXPECT_EQ(test, homak_knob_shown(&ticks, 1000), 1u);
	KUNIT_EXPECT_EQ(test, homak_knob_shown(&ticks, 1001), 2u);
	KUNIT_EXPECT_EQ(test, homak_knob_shown(&ticks, U32_MAX), 4294968u);
	KUNIT_EXPECT_EQ(test, homak_knob_shown(&plain, U32_MAX), U32_MAX);
}

/* The existing module's defaults are written with level 0 first. */
static void cutoffs_of_the_module(struct kunit *test)
{
	const u32 list[8] = { 0, 0, 0, 0, 1000000, 15000, 2800, 200 };
	u32 sizes[8], levels;

	KUNIT_ASSERT_EQ(test, homak_cutoffs_parse(list, &levels, sizes), 0);
	KUNIT_EXPECT_EQ(test, levels, 4u);
	KUNIT_EXPECT_EQ(test, sizes[0], 200u);
	KUNIT_EXPECT_EQ(test, sizes[1], 2800u);
	KUNIT_EXPECT_EQ(test, sizes[2], 15000u);
}

/* A list that the engine shows can be written back, with fewer priorities and without an
 * end. */
static void cutoffs_written_back(struct kunit *test)
{
	const u32 list[8] = { 0x7fffffff, 0x7fffffff, 0x7fffffff, 500,
			      100,	  0,	      0,	  0 };
	u32 sizes[8], levels;

	KUNIT_ASSERT_EQ(test, homak_cutoffs_parse(list, &levels, sizes), 0);
	KUNIT_EXPECT_EQ(test, levels, 3u);
	KUNIT_EXPECT_EQ(test, sizes[0], 100u);
	KUNIT_EXPECT_EQ(test, sizes[1], 500u);
}

static void cutoffs_refused(struct kunit *test)
{
	const u32 grow[8] = { 0, 0, 0, 0, 1000000, 150, 2800, 200 };
	const u32 hole[8] = { 0, 0, 0, 0, 1000000, 0, 2800, 200 };
	u32 sizes[8], levels;

	KUNIT_EXPECT_EQ(test, homak_cutoffs_parse(grow, &levels, sizes), -EINVAL);
	KUNIT_EXPECT_EQ(test, homak_cutoffs_parse(hole, &levels, sizes), -EINVAL);
}

static void cutoffs_of_zeros(struct kunit *test)
{
	const u32 list[8] = {};
	u32 sizes[8], levels = 7;

	KUNIT_ASSERT_EQ(test, homak_cutoffs_parse(list, &levels, sizes), 0);
	KUNIT_EXPECT_EQ(test, levels, 0u);
}

static void settings_default_is_usable(struct kunit *test)
{
	struct homak_settings s;
	u32 i;

	memset(&s, 0xff, sizeof(s));
	homak_settings_default(&s);
	for (i = 0; i < HOMA_PRIORITIES; i++) {
		KUNIT_EXPECT_EQ(test, s.priority_map[i], i);
		KUNIT_EXPECT_EQ(test, s.unsched_cutoffs[i], 0u);
	}
	KUNIT_EXPECT_EQ(test, s.hijack_tcp | s.hijack_udp, 0u);
	KUNIT_EXPECT_GE(test, s.wmem_max, (u32)HOMA_MAX_MESSAGE_LENGTH);
}

static struct kunit_case settings_cases[] = {
	KUNIT_CASE(settings_aliases_fit),
	KUNIT_CASE(settings_names_differ),
	KUNIT_CASE(settings_round_up),
	KUNIT_CASE(cutoffs_of_the_module),
	KUNIT_CASE(cutoffs_written_back),
	KUNIT_CASE(cutoffs_refused),
	KUNIT_CASE(cutoffs_of_zeros),
	KUNIT_CASE(settings_default_is_usable),
	{}
};

struct kunit_suite homak_kunit_settings = {
	.name = "homa_settings",
	.test_cases = settings_cases,
};
