/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* engine/base/homa_table.h: everything is found while it grows, chains stay short. */
#include "unit.h"

#include "homa_table.h"

#define FIRST 16u
#define LIMIT 200u
#define NODES 12000u

struct item {
	struct homa_list node;
	u32 hash;
};

static struct homa_list base[FIRST];
static struct homa_segment *segments[LIMIT];
static struct item items[NODES];

static u32 hash_of(const struct homa_list *node)
{
	return homa_list_entry(node, struct item, node)->hash;
}

/* With a segment if it wants one and @memory says so. */
static void insert(struct homa_table *t, struct item *item, bool memory)
{
	struct homa_segment *s = memory ? malloc(sizeof(*s)) : NULL;

	homa_table_add(t, item->hash, &item->node);
	if (!homa_table_full(t) || !homa_table_grow(t, s, hash_of))
		free(s);
}

/* Steps to find it; the test fails if it is not there. */
static u32 find(struct homa_table *t, struct item *item)
{
	struct homa_list *pos;
	u32 n = 0;

	homa_list_for_each(pos, homa_table_find(t, item->hash)) {
		n++;
		if (pos == &item->node)
			return n;
	}
	fail_msg("not found");
	return 0;
}

static u32 end(struct homa_table *t)
{
	struct homa_segment *s;
	u32 n = 0;

	while ((s = homa_table_cut(t))) {
		free(s);
		n++;
	}
	return n;
}

static void fill(u64 seed)
{
	struct homa_rng rng;
	u32 i;

	homa_rng_init(&rng, seed);
	for (i = 0; i < NODES; i++) {
		homa_list_init(&items[i].node);
		items[i].hash = (u32)homa_rng_next(&rng);
	}
}

static void table_grow__finds_everything_in_few_steps(void **state)
{
	struct homa_table t;
	u32 i, j, steps = 0;

	(void)state;
	fill(unit_seed());
	homa_table_init(&t, base, FIRST, segments, LIMIT);
	for (i = 0; i < NODES; i++) {
		insert(&t, &items[i], true);
		for (j = 0; j < 20; j++)
			find(&t, &items[(i * 7 + j * 601) % (i + 1)]);
	}
	assert_int_equal(t.size, NODES);
	for (i = 0; i < NODES; i++) {
		u32 n = find(&t, &items[i]);

		steps += n;
		assert_in_range(n, 1, 16);
	}
	assert_in_range(steps, NODES, 2 * NODES);
	for (i = 0; i < NODES; i++)
		homa_table_del(&t, &items[i].node);
	assert_int_equal(t.count, 0);
	assert_int_equal(end(&t), (NODES - FIRST + 63) / 64);
}

/* No memory for a while, none at all, or no more room for segments. */
static void table_grow__does_without_memory(void **state)
{
	struct homa_table t;
	u32 i;

	(void)state;
	fill(unit_seed() + 1);
	homa_table_init(&t, base, FIRST, segments, LIMIT);
	for (i = 0; i < NODES / 2; i++)
		insert(&t, &items[i], false);
	assert_int_equal(t.size, FIRST);
	/* It makes up for it, two buckets with each. */
	for (; i < NODES; i++)
		insert(&t, &items[i], true);
	assert_int_equal(t.size, NODES);
	for (i = 0; i < NODES; i++)
		find(&t, &items[i]);
	end(&t);

	fill(unit_seed() + 2);
	homa_table_init(&t, base, FIRST, segments, 1);
	for (i = 0; i < 1000; i++)
		insert(&t, &items[i], true);
	assert_int_equal(t.size, FIRST + HOMA_SEGMENT_BUCKETS);
	for (i = 0; i < 1000; i++)
		find(&t, &items[i]);
	assert_int_equal(end(&t), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_grow__finds_everything_in_few_steps),
		cmocka_unit_test(table_grow__does_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
