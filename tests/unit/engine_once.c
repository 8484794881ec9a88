/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What is remembered of requests that ran (homa_once.c): that none is forgotten within
 * its time at a million a second, what that costs, and who may take how much of it.
 */
#include "engine_world.h"

#define MS 1000000ull
#define LATE (1000 * MS) /* tombstone_ms */

static struct homa_once *begun[1 << 16];

/* Room for @most blocks, and so many spare ones. */
static void once_init(struct world *w, u32 most)
{
	u32 i;

	world_init(w, 25000, 1500);
	w->engine->limits.tombstones = most;
	homa_once_init(w->engine, calloc(1, homa_once_bytes(&w->engine->limits)));
	for (i = 0; i < most; i++)
		homa_ctx_give_range(&w->ctx, malloc(homa_range_size()));
}

static void once_free(struct world *w, u32 most)
{
	u32 had = w->engine->num_once, some = had / 3;

	if (some) {
		assert_int_equal(homa_once_drain(&w->ctx, some), 0);
		assert_int_equal(w->engine->num_once, had - some);
	}
	assert_int_equal(homa_once_drain(&w->ctx, most), most - (had - some));
	assert_int_equal(w->engine->num_once, 0);
	assert_int_equal(w->ctx.spare_ranges, most);
	while (w->ctx.spare_range)
		free(homa_ctx_take_range(&w->ctx));
	free(w->engine->once);
	world_free(w);
}

static void once_peer(struct homa_peer *peer, u32 index)
{
	world_peer(peer, index, 1400);
	peer->key = homa_hash_mix(index + 1);
}

/* Begins, runs and ends at once; else why not. */
static u16 runs(struct world *w, const struct homa_peer *peer, u64 id,
		bool executed)
{
	struct homa_once *once;
	u16 reason = homa_once_begin(&w->ctx, w->link, peer, id, true, &once);

	if (!reason)
		homa_once_end(&w->ctx, w->link, peer, id, once, executed);
	return reason;
}

/* A million a second for three seconds, and a copy of each a second later. */
static void once__a_million_a_second(void **state)
{
	const u64 first = 0x123456789abcdf1ull, n = 3000000, late = LATE / 1000;
	struct homa_peer peer;
	struct world w;
	u64 i, again = 0, most = 0;

	(void)state;
	once_init(&w, 65536);
	once_peer(&peer, 0);
	for (i = 0; i < n; i++) {
		w.ctx.now += 1000;
		assert_int_equal(runs(&w, &peer, first + 2 * i, true), 0);
		if (i >= late)
			again += !runs(&w, &peer, first + 2 * (i - late), true);
		most = homa_max_u64(most, w.engine->num_once);
	}
	assert_int_equal(again, 0);
	/* 128 in a block, for as long as copies come and a second and the time in
	 * which clients may start again. */
	print_message("%llu blocks\n", (unsigned long long)most);
	assert_true(most * 128 < 3 * 1000000);
	once_free(&w, 65536);
}

/* Counted from the last copy on, not from the end. */
static void once__a_copy_renews(void **state)
{
	struct homa_peer peer;
	struct world w;
	u32 i;

	(void)state;
	once_init(&w, 64);
	once_peer(&peer, 0);
	assert_int_equal(runs(&w, &peer, 1001, true), 0);
	for (i = 0; i < 20; i++) {
		w.ctx.now += LATE;
		assert_int_equal(runs(&w, &peer, 1001, true),
				 HOMA_M_drop_tombstone);
	}
	assert_int_equal(runs(&w, &peer, 1003, true), 0);
	w.ctx.now += 3 * LATE;
	assert_int_equal(runs(&w, &peer, 1001, true), 0);
	assert_int_equal(w.engine->num_once, 1);
	once_free(&w, 64);
}

/* What runs for an hour is not forgotten; what did not run may begin again. */
static void once__open_ones_and_those_that_did_not_run(void **state)
{
	struct homa_once *once;
	struct homa_peer peer;
	struct world w;

	(void)state;
	once_init(&w, 64);
	once_peer(&peer, 0);
	assert_int_equal(homa_once_begin(&w.ctx, w.link, &peer, 1001, false,
					 &once),
			 0);
	assert_int_equal(runs(&w, &peer, 1003, true), 0);
	w.ctx.now += 3600 * LATE;
	homa_once_collect(&w.ctx, 64);
	assert_int_equal(runs(&w, &peer, 1001, true), HOMA_M_drop_tombstone);
	homa_once_end(&w.ctx, w.link, &peer, 1001, once, false);
	assert_int_equal(runs(&w, &peer, 1001, false), 0);
	w.ctx.now += 3 * LATE;
	homa_once_collect(&w.ctx, 64);
	assert_int_equal(w.engine->num_once, 0);
	/* Nothing that ran, nothing remembered. */
	assert_int_equal(runs(&w, &peer, 2001, false), 0);
	assert_int_equal(w.engine->num_once, 0);
	once_free(&w, 64);
}

/* Requests whose ids are far apart, until one is refused: each costs a block. */
static u32 fill(struct world *w, u32 address)
{
	struct homa_peer peer;
	u32 i, ran = 0;

	once_peer(&peer, address);
	while (!runs(w, &peer, 1 + 4096ull * ran, true))
		ran++;
	for (i = 0; i < ran; i++)
		assert_int_equal(runs(w, &peer, 1 + 4096ull * i, true),
				 HOMA_M_drop_tombstone);
	return ran;
}

/*
 * Strangers who take what they can get: one gets half of what is common, then a quarter,
 * and so on. Then it is gone, but everybody has a little of his own.
 */
static void once__shares(void **state)
{
	const u32 most = 16384;
	struct world w;
	u32 i, n;

	(void)state;
	once_init(&w, most);
	for (i = 0; i < 20; i++) {
		n = fill(&w, i);
		if (i == 0)
			assert_in_range(n, most * 3 / 8, most * 3 / 8 + 4);
	}
	assert_in_range(w.engine->once_common, most * 3 / 4 - 1, most * 3 / 4);
	/* Whoever shares nothing with the twenty, and few can. */
	for (i = 20, n = 0; i < 120; i++)
		n += fill(&w, i) >= 4;
	assert_true(n > 80);
	assert_true(w.engine->num_once < most);
	once_free(&w, most);
}

/* First packets of requests whose rest never comes leave half of it. */
static void once__first_packets(void **state)
{
	const u32 most = 1024;
	struct homa_peer peer;
	struct world w;
	u32 i, n;

	(void)state;
	once_init(&w, most);
	for (i = 0, n = 0; n < 20000; n++) {
		once_peer(&peer, n);
		if (!homa_once_begin(&w.ctx, w.link, &peer, 1 + 2 * n, false,
				     &begun[n]))
			i++;
		else
			begun[n] = NULL;
	}
	assert_in_range(i, most / 2 - 40, most / 2);
	once_peer(&peer, 54321);
	assert_in_range(fill(&w, 54321), most / 4 - 20, most / 4 + 20);
	for (n = 0; n < 20000; n++) {
		once_peer(&peer, n);
		if (begun[n])
			homa_once_end(&w.ctx, w.link, &peer, 1 + 2 * n,
				      begun[n], false);
	}
	once_free(&w, most);
}

/* What expired in another part of the table is found before long. */
static void once__the_expired_make_room(void **state)
{
	struct homa_peer peer;
	struct world w;
	u32 i, refused = 0;

	(void)state;
	once_init(&w, 1024);
	for (i = 0; i < 20; i++)
		fill(&w, i);
	once_peer(&peer, 77);
	assert_int_equal(runs(&w, &peer, 5, true), HOMA_M_drop_once_full);
	w.ctx.now += 3 * LATE;
	for (i = 0; i < 200; i++)
		refused += runs(&w, &peer, 1 + 4096ull * i, true) != 0;
	/* Sixteen per refusal, and each one that it has needs one that is free. */
	assert_in_range(refused, 1, 60);
	once_free(&w, 1024);
}

/* Many at once, ending in another order, some of them in one block. */
static void once__many_open(void **state)
{
	const u32 n = HOMA_ARRAY_SIZE(begun), stride = 40503;
	struct homa_peer peer;
	struct world w;
	u32 i, at;

	(void)state;
	once_init(&w, 4096);
	once_peer(&peer, 3);
	for (i = 0; i < n; i++)
		assert_int_equal(homa_once_begin(&w.ctx, w.link, &peer,
						 1 + 2 * i, true, &begun[i]),
				 0);
	assert_int_equal(w.engine->num_once, n / 128);
	for (i = 0; i < n; i++) {
		at = i * stride % n;
		homa_once_end(&w.ctx, w.link, &peer, 1 + 2 * at, begun[at],
			      at & 1);
	}
	for (i = 0; i < n; i++)
		assert_int_equal(runs(&w, &peer, 1 + 2 * i, true),
				 i & 1 ? HOMA_M_drop_tombstone : 0);
	once_free(&w, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(once__a_million_a_second),
		cmocka_unit_test(once__a_copy_renews),
		cmocka_unit_test(once__open_ones_and_those_that_did_not_run),
		cmocka_unit_test(once__shares),
		cmocka_unit_test(once__first_packets),
		cmocka_unit_test(once__the_expired_make_room),
		cmocka_unit_test(once__many_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
