/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * At most once, whatever the rate: copies of packets that come up to a second late,
 * among very many requests, when the peer's entry is gone, when memory is short.
 * pair_finish() looks whether a request ran twice.
 */
#include "pair_test.h"

#define LATE_NS (1000 * PAIR_MS)

struct rate {
	u32 clients, servers;
	u32 requests;
	u64 gap_ns;
};

static struct pair_world *world(u64 seed, u32 hosts)
{
	struct pair_config cfg;

	pair_config_default(&cfg);
	cfg.seed = seed;
	cfg.hosts = hosts;
	cfg.faults.dup = 30;
	cfg.faults.dup_max_ns = LATE_NS;
	cfg.pool_pages = 256;
	return pair_world_new(&cfg);
}

static void run(struct pair_world *w, const struct rate *rate)
{
	u32 i;

	for (i = 0; i < rate->requests; i++) {
		pair_rpc(w, (u8)(i % rate->clients),
			 (u8)(rate->clients + i / rate->clients % rate->servers), 100,
			 100);
		pair_run_for(w, rate->gap_ns);
	}
	assert_true(pair_run_while_pending(w, 10 * PAIR_S));
	pair_run_for(w, 2 * LATE_NS);
	pair_check(w, pair_count_state(w, PAIR_OK) == rate->requests, "%u of %u",
		   pair_count_state(w, PAIR_OK), rate->requests);
	pair_check(w, pair_metric(w, HOMA_M_drop_tombstone) > rate->requests / 100,
		   "only %llu late copies",
		   (unsigned long long)pair_metric(w, HOMA_M_drop_tombstone));
}

static void once__late_copies_at_all_rates(void **state)
{
	static const struct rate rates[] = {
		{ 1, 1, 20000, 30000 },		/* 33,000 a second */
		{ 1, 1, 50000, 4000 },		/* 250,000 a second */
		{ 1, 7, 30000, 8000 },		/* its ids go to seven servers */
		{ 5, 1, 30000, 8000 },
	};
	struct pair_world *w;
	u32 i;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(rates); i++) {
		w = world(i + 1, rates[i].clients + rates[i].servers);
		run(w, &rates[i]);
		pair_finish(w);
	}
}

/* Three requests, and then nothing but others' for which the peer's entry must go. */
static void once__longer_than_the_peer(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 i;

	(void)state;
	pair_config_default(&cfg);
	cfg.hosts = 40;
	cfg.params.max_peers = 16;	/* one in each part of the table */
	cfg.params.peer_idle_ms = 1;
	cfg.faults.dup = 1000;
	cfg.faults.dup_max_ns = LATE_NS;
	w = pair_world_new(&cfg);
	for (i = 0; i < 400; i++) {
		pair_rpc_start(w, (u8)(1 + i % 39), 1, 0, PAIR_SERVER_PORT, 100, 100,
			       NULL);
		pair_run_for(w, PAIR_MS);
	}
	pair_run_while_pending(w, 10 * PAIR_S);
	pair_run_for(w, 2 * LATE_NS);
	pair_check(w, pair_metric(w, HOMA_M_peers_evicted) > 100, "none evicted");
	pair_check(w, pair_metric(w, HOMA_M_drop_tombstone) > 100, "no late copies");
	pair_finish(w);
}

/*
 * Memory for far too few: one client's requests are refused before anything is
 * forgotten, and another client finds the server as it was.
 */
static void once__refuses_rather_than_forgets(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 i, late = 0;

	(void)state;
	pair_config_default(&cfg);
	cfg.hosts = 4;
	cfg.tombstones = 16;
	cfg.faults.dup = 100;
	cfg.faults.dup_max_ns = LATE_NS;
	w = pair_world_new(&cfg);
	for (i = 0; i < 4000; i++) {
		pair_rpc(w, 0, 1, 100, 100);
		pair_run_for(w, 20 * PAIR_US);
	}
	pair_check(w, pair_metric(w, HOMA_M_drop_once_full) > 0, "never full");
	for (i = 0; i < 100; i++) {
		const struct pair_rpc *rpc = pair_rpc(w, 2, 1, 100, 100);

		pair_run_for(w, PAIR_MS);
		late += rpc->state != PAIR_OK;
	}
	assert_int_equal(late, 0);
	assert_true(pair_run_while_pending(w, 10 * PAIR_S));
	pair_finish(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(once__late_copies_at_all_rates),
		cmocka_unit_test(once__longer_than_the_peer),
		cmocka_unit_test(once__refuses_rather_than_forgets),
	};

	pair_test_setup();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
