/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Finished requests that are remembered against duplicates (homa_rpc.c): clients
 * number their requests one after the other, and many clients burst at a time. A
 * table that is an eighth full must not have forgotten more than a stray one.
 */
#include "engine_world.h"

#define TOMBS 4096u
#define PEERS 16u
#define BURST 32u

static void tombs_init(struct world *w)
{
	world_init(w, 25000, 1500);
	w->shard.tombs = calloc(TOMBS, sizeof(u64));
	w->shard.tombs_ms = calloc(TOMBS, sizeof(u32));
	w->shard.tomb_mask = TOMBS - 1;
	assert_non_null(w->shard.tombs);
	assert_non_null(w->shard.tombs_ms);
}

static void tombs_free(struct world *w)
{
	free(w->shard.tombs);
	free(w->shard.tombs_ms);
	world_free(w);
}

/* One table, PEERS bursts; how many are forgotten. */
static u32 forgotten(u64 seed)
{
	struct homa_peer peers[PEERS];
	u64 first[PEERS];
	struct world w;
	u32 i, j, lost = 0;

	tombs_init(&w);
	for (i = 0; i < PEERS; i++) {
		world_peer(&peers[i], i, 1400);
		peers[i].key = homa_hash_mix(seed * PEERS + i);
		first[i] = (homa_hash_mix(peers[i].key) & ~1ull) | 1;
		for (j = 0; j < BURST; j++)
			homa_tombstone_add(&w.ctx, &w.shard, &peers[i],
					   first[i] + 2 * j);
	}
	for (i = 0; i < PEERS; i++)
		for (j = 0; j < BURST; j++)
			lost += !homa_tombstone_has(&w.ctx, &w.shard, &peers[i],
						    first[i] + 2 * j);
	tombs_free(&w);
	return lost;
}

static void tombstones__bursts_do_not_push_each_other_out(void **state)
{
	u32 seed, lost = 0;

	(void)state;
	for (seed = 1; seed <= 200; seed++)
		lost += forgotten(seed);
	/* Of 102,400: what four places for a random set let one expect. */
	print_message("%u forgotten\n", lost);
	assert_true(lost < 60);
}

static void tombstones__others_and_old_ones_are_not_found(void **state)
{
	struct homa_peer a, b;
	struct world w;

	(void)state;
	tombs_init(&w);
	world_peer(&a, 0, 1400);
	world_peer(&b, 1, 1400);
	a.key = 77;
	b.key = 78;
	homa_tombstone_add(&w.ctx, &w.shard, &a, 1001);
	assert_true(homa_tombstone_has(&w.ctx, &w.shard, &a, 1001));
	assert_false(homa_tombstone_has(&w.ctx, &w.shard, &a, 1003));
	assert_false(homa_tombstone_has(&w.ctx, &w.shard, &b, 1001));
	w.ctx.now += (w.engine->params.tombstone_ms + 2) * 1000000ull;
	assert_false(homa_tombstone_has(&w.ctx, &w.shard, &a, 1001));
	tombs_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tombstones__bursts_do_not_push_each_other_out),
		cmocka_unit_test(tombstones__others_and_old_ones_are_not_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
