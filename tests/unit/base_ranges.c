/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * engine/base/homa_ranges.c: named cases, then random arrivals against a map
 * with one byte per byte of the message, with and without enough nodes.
 */
#include "unit.h"

#include "homa_ranges.h"

#define NODES 600

struct fixture {
	struct homa_range node[NODES];
	struct homa_range *spare;
	struct homa_rangeset set;
	u32 fresh_start, fresh_end;
};

static void fixture_init(struct fixture *f, u32 nodes)
{
	u32 i;

	f->spare = NULL;
	for (i = 0; i < nodes; i++) {
		f->node[i].next = f->spare;
		f->spare = &f->node[i];
	}
	homa_ranges_init(&f->set);
}

static u32 spares(const struct fixture *f)
{
	const struct homa_range *r;
	u32 n = 0;

	for (r = f->spare; r; r = r->next)
		n++;
	return n;
}

static int add(struct fixture *f, u32 start, u32 end)
{
	return homa_ranges_add(&f->set, start, end, &f->spare, &f->fresh_start,
			       &f->fresh_end);
}

/* What is missing before @limit, as "start-end start-end". */
static const char *missing(const struct fixture *f, u32 limit)
{
	static char text[256];
	struct homa_ranges_iter iter;
	size_t at = 0;
	u32 start, end;

	text[0] = 0;
	homa_ranges_iter_init(&iter, &f->set);
	while (homa_ranges_missing(&iter, limit, &start, &end))
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%u-%u",
				       at ? " " : "", start, end);
	return text;
}

static void ranges_add__in_order_needs_no_node(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, 0);
	assert_int_equal(add(&f, 0, 1000), 1000);
	assert_int_equal(add(&f, 1000, 1500), 500);
	assert_int_equal(f.fresh_start, 1000);
	assert_int_equal(f.fresh_end, 1500);
	assert_int_equal(homa_ranges_in_order(&f.set), 1500);
	assert_string_equal(missing(&f, 2000), "1500-2000");
	assert_string_equal(missing(&f, 1500), "");
	assert_string_equal(missing(&f, 700), "");
}

static void ranges_add__gap_then_filled(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, 1);
	assert_int_equal(add(&f, 100, 200), 100);
	assert_int_equal(spares(&f), 0);
	assert_int_equal(homa_ranges_in_order(&f.set), 0);
	assert_string_equal(missing(&f, 300), "0-100 200-300");
	assert_string_equal(missing(&f, 50), "0-50");
	assert_int_equal(add(&f, 0, 100), 100);
	assert_int_equal(spares(&f), 1);
	assert_int_equal(homa_ranges_in_order(&f.set), 200);
}

static void ranges_add__duplicate_is_not_fresh(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, 4);
	add(&f, 0, 100);
	add(&f, 200, 300);
	assert_int_equal(add(&f, 0, 100), 0);
	assert_int_equal(f.fresh_start, f.fresh_end);
	assert_int_equal(add(&f, 210, 290), 0);
	assert_int_equal(add(&f, 200, 300), 0);
	assert_string_equal(missing(&f, 300), "100-200");
}

static void ranges_add__overlap_is_trimmed(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, 4);
	add(&f, 0, 100);
	add(&f, 200, 300);
	assert_int_equal(add(&f, 50, 150), 50);
	assert_int_equal(f.fresh_start, 100);
	assert_int_equal(f.fresh_end, 150);
	assert_int_equal(add(&f, 180, 250), 20);
	assert_int_equal(f.fresh_start, 180);
	assert_int_equal(f.fresh_end, 200);
	assert_string_equal(missing(&f, 300), "150-180");
	assert_int_equal(add(&f, 250, 400), 100);
	assert_int_equal(f.fresh_start, 300);
	assert_int_equal(f.fresh_end, 400);
}

static void ranges_add__middle_splits_a_gap(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, 2);
	add(&f, 900, 1000);
	assert_int_equal(add(&f, 400, 500), 100);
	assert_string_equal(missing(&f, 1000), "0-400 500-900");
	assert_int_equal(spares(&f), 0);
	assert_int_equal(add(&f, 600, 700), -1);
	assert_string_equal(missing(&f, 1000), "0-400 500-900");
	assert_int_equal(add(&f, 0, 1100), 900);
	assert_int_equal(f.fresh_start, 0);
	assert_int_equal(f.fresh_end, 1100);
	assert_int_equal(spares(&f), 2);
	assert_int_equal(homa_ranges_in_order(&f.set), 1100);
}

static void ranges_add__spans_gaps_and_held_bytes(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, 3);
	add(&f, 100, 200);
	add(&f, 300, 400);
	add(&f, 500, 600);
	assert_int_equal(add(&f, 150, 550), 200);
	assert_int_equal(f.fresh_start, 200);
	assert_int_equal(f.fresh_end, 500);
	assert_string_equal(missing(&f, 600), "0-100");
}

static void ranges_add__no_node_changes_nothing(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, 0);
	add(&f, 0, 10);
	assert_int_equal(add(&f, 20, 30), -1);
	assert_int_equal(f.set.end, 10);
	assert_int_equal(f.set.gaps, 0);
	assert_int_equal(add(&f, 5, 30), 20);
}

static void ranges_add__gaps_are_limited(void **state)
{
	struct fixture f;
	u32 i;

	(void)state;
	fixture_init(&f, NODES);
	for (i = 0; i < HOMA_RANGES_MAX_GAPS; i++)
		assert_int_equal(add(&f, 2 * i + 1, 2 * i + 2), 1);
	assert_int_equal(add(&f, 2 * i + 1, 2 * i + 2), -1);
	assert_int_equal(f.set.gaps, HOMA_RANGES_MAX_GAPS);
	/* Filling one makes room for one. */
	assert_int_equal(add(&f, 0, 1), 1);
	assert_int_equal(add(&f, 2 * i + 1, 2 * i + 2), 1);
}

static void ranges_add__longest_message(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, 1);
	assert_int_equal(add(&f, 0x7ffffffe, 0x7fffffff), 1);
	assert_int_equal(add(&f, 0, 0x7fffffff), 0x7ffffffe);
	assert_int_equal(spares(&f), 1);
	assert_string_equal(missing(&f, 0x7fffffff), "");
}

static void ranges_release__returns_all_nodes(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, 3);
	add(&f, 10, 20);
	add(&f, 30, 40);
	homa_ranges_release(&f.set, &f.spare);
	assert_int_equal(spares(&f), 3);
	assert_int_equal(f.set.end, 0);
	assert_int_equal(add(&f, 0, 5), 5);
}

#define BYTES 500

struct map {
	u8 held[BYTES];
};

static u32 map_gaps(const struct map *map)
{
	u32 i, last = 0, gaps = 0;

	for (i = 0; i < BYTES; i++) {
		if (map->held[i])
			last = i + 1;
	}
	for (i = 0; i < last; i++)
		gaps += !map->held[i] && (i == 0 || map->held[i - 1]);
	return gaps;
}

static void check(u64 seed, const struct fixture *f, const struct map *map)
{
	struct map seen;
	struct homa_ranges_iter iter;
	u32 start, end, in_order = 0, last = 0;

	memset(&seen, 1, sizeof(seen));
	homa_ranges_iter_init(&iter, &f->set);
	while (homa_ranges_missing(&iter, BYTES, &start, &end)) {
		unit_assert(seed, start < end && end <= BYTES);
		unit_assert(seed, start > last || (start == 0 && last == 0));
		last = end;
		memset(seen.held + start, 0, end - start);
	}
	unit_assert(seed, !memcmp(&seen, map, sizeof(seen)));
	while (in_order < BYTES && map->held[in_order])
		in_order++;
	unit_assert(seed, homa_ranges_in_order(&f->set) == in_order);
	unit_assert(seed, f->set.gaps == map_gaps(map));
}

/* One random arrival, judged by the map. */
static void step(u64 seed, struct homa_rng *rng, struct fixture *f,
		 struct map *map)
{
	u32 start = homa_rng_below(rng, BYTES - 1);
	u32 most = homa_rng_below(rng, 8) ? 30 : BYTES;
	u32 end = start + 1 + homa_rng_below(rng, most);
	u32 i, fresh = 0, first = 0, last = 0, had = spares(f);
	struct map after = *map;
	int got;

	if (homa_rng_below(rng, 4) == 0 && f->set.end < BYTES)
		start = f->set.end, end = start + 20;
	end = homa_min_u32(end, BYTES);
	for (i = start; i < end; i++) {
		if (map->held[i])
			continue;
		if (!fresh++)
			first = i;
		last = i + 1;
		after.held[i] = 1;
	}
	got = add(f, start, end);
	if (got < 0) {
		unit_assert(seed, had == 0 && map_gaps(&after) > map_gaps(map));
		return;
	}
	unit_assert(seed, (u32)got == fresh);
	if (fresh)
		unit_assert(seed,
			    f->fresh_start == first && f->fresh_end == last);
	else
		unit_assert(seed, f->fresh_start == f->fresh_end);
	*map = after;
}

static void ranges__random_arrivals_like_a_byte_map(void **state)
{
	u64 seed, base = unit_seed();
	struct fixture f;

	(void)state;
	for (seed = base; seed < base + 500; seed++) {
		u32 nodes, i;
		struct homa_rng rng;
		struct map map;

		homa_rng_init(&rng, seed);
		nodes = homa_rng_below(&rng, 12);
		fixture_init(&f, nodes);
		memset(&map, 0, sizeof(map));
		for (i = 0; i < 150; i++) {
			step(seed, &rng, &f, &map);
			check(seed, &f, &map);
			unit_assert(seed, spares(&f) + f.set.gaps == nodes);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_add__in_order_needs_no_node),
		cmocka_unit_test(ranges_add__gap_then_filled),
		cmocka_unit_test(ranges_add__duplicate_is_not_fresh),
		cmocka_unit_test(ranges_add__overlap_is_trimmed),
		cmocka_unit_test(ranges_add__middle_splits_a_gap),
		cmocka_unit_test(ranges_add__spans_gaps_and_held_bytes),
		cmocka_unit_test(ranges_add__no_node_changes_nothing),
		cmocka_unit_test(ranges_add__gaps_are_limited),
		cmocka_unit_test(ranges_add__longest_message),
		cmocka_unit_test(ranges_release__returns_all_nodes),
		cmocka_unit_test(ranges__random_arrivals_like_a_byte_map),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
