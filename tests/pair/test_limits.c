/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Too little of everything: receive pages, spare objects, gap records, room
 * for peers and RPCs. Work slows down; it does not stop, leak or starve.
 */
#include "pair_test.h"

static void small_pool(u64 seed)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 i;

	pair_config_default(&cfg);
	cfg.seed = seed;
	cfg.hosts = 5;
	cfg.pool_pages = 17; /* one message of a megabyte and one lease */
	cfg.release_delay_ns = 2 * PAIR_MS;
	w = pair_world_new(&cfg);
	for (i = 0; i < 80; i++) {
		u32 len = 1u << (8 + pair_below(&w->rng_test, 12));

		pair_rpc(w, (u8)(1 + i % 4), 0, len, 1 + len / 3);
		pair_run_for(w, pair_below(&w->rng_test, 100000));
	}
	pair_check(w,
		   pair_run_while_pending(w, 100 * PAIR_S) &&
			   pair_count_state(w, PAIR_OK) == 80,
		   "%u of 80", pair_count_state(w, PAIR_OK));
	pair_check(w, pair_metric(w, HOMA_M_buffer_waits) > 0, "never full");
	pair_finish(w);
}

static void buffers__run_out(void **state)
{
	(void)state;
	each_seed(10, small_pool);
}

/* A host that has no room for packets loses them, for longer than a client waits for a
 * silent peer; afterwards the messages arrive. */
static void buffers__refused_for_a_while(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 i;

	(void)state;
	pair_config_default(&cfg);
	w = pair_world_new(&cfg);
	homa_sock_refuse(w->hosts[1].socks[0].sock, true);
	for (i = 0; i < 8; i++)
		pair_rpc(w, 0, 1, 1 + 9000 * i, 5000);
	pair_run_for(w, PAIR_S);
	pair_check(w, pair_count_state(w, PAIR_PENDING) == 8, "%u of 8 wait",
		   pair_count_state(w, PAIR_PENDING));
	pair_check(w, pair_metric(w, HOMA_M_drop_no_buffer) >= 8, "not refused");
	pair_check(w, !pair_metric(w, HOMA_M_rx_fresh_bytes),
		   "bytes were accepted");
	homa_sock_refuse(w->hosts[1].socks[0].sock, false);
	pair_check(w,
		   pair_run_while_pending(w, 100 * PAIR_S) &&
			   pair_count_state(w, PAIR_OK) == 8,
		   "%u of 8", pair_count_state(w, PAIR_OK));
	pair_finish(w);
}

static void small_pool_lossy(u64 seed)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 i;

	pair_config_default(&cfg);
	cfg.seed = seed;
	cfg.hosts = 4;
	cfg.pool_pages = 20;
	cfg.release_delay_ns = PAIR_MS;
	cfg.faults.loss = 50;
	cfg.copy_delay_ns = 50000;
	w = pair_world_new(&cfg);
	for (i = 0; i < 80; i++) {
		u32 len = 1u << (8 + pair_below(&w->rng_test, 11));

		pair_rpc(w, (u8)(1 + i % 3), 0, len, 1 + len);
		if (!pair_below(&w->rng_test, 8))
			pair_rpc_abort(w,
				       w->book[pair_below(&w->rng_test, w->num_rpcs)],
				       0);
		pair_run_for(w, pair_below(&w->rng_test, 200000));
	}
	pair_check(w, pair_run_while_pending(w, 100 * PAIR_S), "stuck");
	pair_check(w, pair_count_state(w, PAIR_FAILED) == 0, "%u failed",
		   pair_count_state(w, PAIR_FAILED));
	pair_finish(w);
}

static void buffers__run_out_under_loss(void **state)
{
	(void)state;
	each_seed(20, small_pool_lossy);
}

/*
 * One socket is client and server, its pool is always full of responses. Its
 * requests come in all the same.
 */
static void buffers__requests_do_not_starve(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 round, i;
	u64 worst = 0;

	(void)state;
	pair_config_default(&cfg);
	cfg.hosts = 4;
	cfg.pool_pages = 32;
	cfg.release_delay_ns = PAIR_MS;
	w = pair_world_new(&cfg);
	for (round = 0; round < 100; round++) {
		for (i = 0; i < 8; i++)
			pair_rpc_start(w, 0, 0, (u8)(1 + i % 2),
				       PAIR_SERVER_PORT, 100, 400000, NULL);
		pair_rpc(w, 3, 0, 100000, 100);
		pair_run_for(w, 2 * PAIR_MS);
	}
	for (i = 0; i < w->num_rpcs; i++) {
		struct pair_rpc *rpc = w->book[i];
		u64 took =
			(rpc->executed ? rpc->executed_at : w->now) - rpc->start;

		if (rpc->client == 3 && took > worst)
			worst = took;
	}
	pair_check(w, worst < 100 * PAIR_MS, "a request waited %llu ms",
		   (unsigned long long)worst / 1000000);
	assert_true(pair_run_while_pending(w, 200 * PAIR_S));
	assert_int_equal(pair_count_state(w, PAIR_FAILED), 0);
	pair_finish(w);
}

/* Pages given back twice, or never given out, are refused. */
static void buffers__bad_release(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_host *h;
	u32 page;

	(void)state;
	pair_config_default(&cfg);
	w = pair_world_new(&cfg);
	h = &w->hosts[0];
	for (page = 0; page < 0x80000000u; page += HOMA_BPAGE_SIZE * 37 + 1)
		assert_int_equal(homa_pool_release(&h->ctx, h->socks[0].sock,
						   &page, 1),
				 -HOMA_EINVAL);
	page = 0xffffffff;
	assert_int_equal(homa_pool_release(&h->ctx, h->socks[0].sock, &page, 1),
			 -HOMA_EINVAL);
	pair_rpc(w, 1, 0, 100000, 10);
	assert_true(pair_run_while_pending(w, PAIR_S));
	page = 0;
	while (page < cfg.pool_pages * HOMA_BPAGE_SIZE) {
		assert_int_equal(homa_pool_release(&h->ctx, h->socks[0].sock,
						   &page, 1),
				 -HOMA_EINVAL);
		page += HOMA_BPAGE_SIZE;
	}
	pair_finish(w);
}

static void starving(u64 seed)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 i, refused = 0;

	pair_config_default(&cfg);
	cfg.seed = seed;
	cfg.hosts = 4;
	cfg.starve = 900;
	cfg.faults = (struct pair_faults){ .loss = 20,
					   .reorder = 200,
					   .reorder_max_ns = 200 * PAIR_US };
	w = pair_world_new(&cfg);
	for (i = 0; i < 200; i++) {
		int err;

		if (!pair_rpc_start(w, (u8)(i % 4), 1,
				    (u8)(pair_below(&w->rng_test, 4)),
				    PAIR_SERVER_PORT,
				    1 + pair_below(&w->rng_test, 50000),
				    1 + pair_below(&w->rng_test, 50000), &err)) {
			assert_int_equal(err, -HOMA_ENOBUFS);
			refused++;
		}
		pair_run_for(w, pair_below(&w->rng_test, 30000));
	}
	pair_check(w, pair_run_while_pending(w, 100 * PAIR_S), "stuck");
	pair_check(w, pair_count_state(w, PAIR_FAILED) == 0, "%u failed",
		   pair_count_state(w, PAIR_FAILED));
	(void)refused;
	pair_finish(w);
}

static void spares__run_out(void **state)
{
	(void)state;
	each_seed(10, starving);
}

/*
 * A response whose first packet is lost needs a record for the gap, and there is none:
 * the packets behind the gap are lost, too, and the RPC goes on when they come again.
 */
static void spares__none_for_a_gap(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *rpc;
	struct homa_ctx *ctx;
	void *kept[64], *range;
	u32 n = 0;

	(void)state;
	pair_config_default(&cfg);
	w = pair_world_new(&cfg);
	ctx = &w->hosts[0].ctx;
	pair_rpc(w, 0, 1, 100, 100);
	assert_true(pair_run_while_pending(w, PAIR_S));
	w->cfg.starve = 1000; /* what they have has to do */
	while (n < HOMA_ARRAY_SIZE(kept) && (range = homa_ctx_take_range(ctx)))
		kept[n++] = range;
	assert_int_equal(ctx->spare_ranges, 0);
	pair_filter_add(w, HOMA_DATA, 1, 0, 0, 1);
	rpc = pair_rpc(w, 0, 1, 100, 20000);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(rpc->state, PAIR_OK);
	assert_true(pair_host_metric(&w->hosts[0], HOMA_M_drop_no_range) > 0);
	while (n)
		homa_ctx_give_range(ctx, kept[--n]);
	pair_finish(w);
}

/* 60 hosts talk to one that remembers 16. */
static void peers__capped_and_collected(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	struct homa_counts counts;
	u32 round, i;

	(void)state;
	pair_config_default(&cfg);
	cfg.hosts = 60;
	cfg.pool_pages = 32;
	cfg.params.max_peers = 16;
	cfg.params.peer_idle_ms = 10;
	w = pair_world_new(&cfg);
	for (round = 0; round < 3; round++) {
		for (i = 1; i < 60; i++) {
			pair_rpc(w, (u8)i, 0, 2000, 2000);
			pair_run_for(w, PAIR_MS);
		}
		pair_run_for(w, 50 * PAIR_MS);
	}
	assert_true(pair_run_while_pending(w, 100 * PAIR_S));
	pair_check(w, pair_count_state(w, PAIR_OK) == 3 * 59, "%u of 177",
		   pair_count_state(w, PAIR_OK));
	pair_run_for(w, PAIR_S);
	homa_engine_counts(w->hosts[0].engine, &counts);
	pair_check(w, counts.peers <= 32, "%u peers remembered", counts.peers);
	assert_true(pair_host_metric(&w->hosts[0], HOMA_M_peers_evicted) > 0);
	pair_finish(w);
}

/* More RPCs than max_rpcs: refused at the client, dropped at the server. */
static void rpcs__capped(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	struct homa_counts counts;
	u32 i, refused = 0;

	(void)state;
	pair_config_default(&cfg);
	cfg.hosts = 4;
	cfg.params.max_rpcs = 20;
	cfg.reply_delay_ns = PAIR_MS;
	w = pair_world_new(&cfg);
	for (i = 0; i < 120; i++)
		refused += !pair_rpc_start(w, (u8)(1 + i % 3), 1, 0,
					   PAIR_SERVER_PORT, 3000, 3000, NULL);
	assert_true(refused >= 60);
	for (i = 0; i < 100 && w->pending; i++) {
		pair_run_for(w, 100000);
		homa_engine_counts(w->hosts[0].engine, &counts);
		assert_true(counts.rpcs <= 20);
	}
	assert_true(pair_run_while_pending(w, 100 * PAIR_S));
	pair_finish(w);
}

/*
 * A request that no pool can hold, or longer than allowed, is refused before
 * its RPC has become anything. The memory it was given has had another life.
 */
static void rpcs__refused(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	struct homa_counts counts;
	u32 i;

	(void)state;
	pair_config_default(&cfg);
	cfg.pool_pages = 2;
	cfg.params.max_message_length = 200000;
	cfg.params.timeout_us = 20000;
	w = pair_world_new(&cfg);
	for (i = 0; i < 20; i++)
		pair_rpc(w, 1, 0, i % 2 ? 140000 : 250000, 10);
	assert_true(pair_run_while_pending(w, 10 * PAIR_S));
	assert_int_equal(pair_count_state(w, PAIR_FAILED), 20);
	homa_engine_counts(w->hosts[0].engine, &counts);
	assert_int_equal(counts.rpcs, 0);
	pair_sock_close(&w->hosts[0], 0, 1);
	pair_run_for(w, PAIR_S);
	assert_null(w->hosts[0].socks[0].sock);
	pair_finish(w);
}

static void rpcs__capped_per_peer(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 i;

	(void)state;
	pair_config_default(&cfg);
	cfg.hosts = 3;
	cfg.params.max_server_rpcs_per_peer = 4;
	cfg.reply_delay_ns = PAIR_MS;
	w = pair_world_new(&cfg);
	for (i = 0; i < 12; i++)
		pair_rpc(w, 1, 0, 100, 100);
	pair_run_for(w, 20000);
	pair_rpc(w, 2, 0, 100, 100);
	pair_run_for(w, 3 * PAIR_MS);
	assert_int_equal(w->book[12]->state, PAIR_OK);
	assert_true(pair_metric(w, HOMA_M_drop_peer_limit) > 0);
	assert_true(pair_run_while_pending(w, 100 * PAIR_S));
	pair_check(w, pair_count_state(w, PAIR_OK) == 13, "%u of 13",
		   pair_count_state(w, PAIR_OK));
	pair_finish(w);
}

/* A burst of short requests to one server is lost; all are repaired in time. */
static void burst__lost_at_once(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 i;

	(void)state;
	pair_config_default(&cfg);
	w = pair_world_new(&cfg);
	pair_filter_add(w, HOMA_DATA, 0, 1, 0, 1000);
	for (i = 0; i < 1000; i++)
		pair_rpc(w, 0, 1, 100, 100);
	assert_true(pair_run_while_pending(w, 100 * PAIR_S));
	pair_check(w, pair_count_state(w, PAIR_OK) == 1000, "%u of 1000",
		   pair_count_state(w, PAIR_OK));
	pair_finish(w);
}

/* A link's queue of control packets may be full; what is lost is asked again. */
static void control__queue_full(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 i;

	(void)state;
	pair_config_default(&cfg);
	cfg.hosts = 9;
	cfg.ctrl_slots = 4;
	cfg.rx_delay_ns = 20000;
	cfg.tx_fail = 300;
	w = pair_world_new(&cfg);
	for (i = 0; i < 200; i++)
		pair_rpc(w, (u8)(1 + i % 8), 0, 30000 + i * 100, 1 + i * 100);
	assert_true(pair_run_while_pending(w, 100 * PAIR_S));
	pair_check(w, pair_count_state(w, PAIR_OK) == 200, "%u of 200",
		   pair_count_state(w, PAIR_OK));
	pair_finish(w);
}

/* Switch buffers of a few packets: grants keep most of the loss away. */
static void switch__small_buffers(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 i;

	(void)state;
	pair_config_default(&cfg);
	cfg.hosts = 9;
	cfg.port_limit = 60000;
	w = pair_world_new(&cfg);
	for (i = 0; i < 40; i++)
		pair_rpc(w, (u8)(1 + i % 8), 0, 200000, 100);
	assert_true(pair_run_while_pending(w, 100 * PAIR_S));
	pair_check(w, pair_count_state(w, PAIR_OK) == 40, "%u of 40",
		   pair_count_state(w, PAIR_OK));
	pair_finish(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buffers__run_out),
		cmocka_unit_test(buffers__run_out_under_loss),
		cmocka_unit_test(buffers__refused_for_a_while),
		cmocka_unit_test(buffers__requests_do_not_starve),
		cmocka_unit_test(buffers__bad_release),
		cmocka_unit_test(spares__run_out),
		cmocka_unit_test(spares__none_for_a_gap),
		cmocka_unit_test(peers__capped_and_collected),
		cmocka_unit_test(rpcs__capped),
		cmocka_unit_test(rpcs__refused),
		cmocka_unit_test(rpcs__capped_per_peer),
		cmocka_unit_test(burst__lost_at_once),
		cmocka_unit_test(control__queue_full),
		cmocka_unit_test(switch__small_buffers),
	};

	pair_test_setup();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
