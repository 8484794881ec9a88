/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * RPCs over a network that behaves: every length around a boundary of the
 * protocol arrives exactly, in every way in which a host may drive the engine,
 * and nothing is sent that need not be.
 */
#include "pair_test.h"

static const u32 lengths[] = {
	1,
	2,
	7,
	8,
	999,
	1000,
	1001,
	/* packet, RTTbytes, page */
	1403,
	1404,
	1405,
	1423,
	1424,
	1425,
	1426,
	2848,
	2849,
	9999,
	10000,
	10001,
	39999,
	40000,
	40001,
	65535,
	65536,
	65537,
	131071,
	131072,
	131073,
	200000,
	500000,
	983040,
	999999,
	1000000,
};

static void all_lengths(const struct pair_config *cfg)
{
	struct pair_world *w = pair_world_new(cfg);
	u32 i;

	for (i = 0; i < HOMA_ARRAY_SIZE(lengths); i++) {
		struct pair_rpc *rpc = pair_rpc(w, 0, 1, lengths[i], 100);

		pair_check(w,
			   pair_run_while_pending(w, 10 * PAIR_S) &&
				   rpc->state == PAIR_OK,
			   "request of %u: state %d error %d", lengths[i],
			   rpc->state, rpc->error);
		rpc = pair_rpc(w, 0, 1, 100, lengths[i]);
		pair_check(w,
			   pair_run_while_pending(w, 10 * PAIR_S) &&
				   rpc->state == PAIR_OK,
			   "response of %u: state %d error %d", lengths[i],
			   rpc->state, rpc->error);
	}
	if (!cfg->tx_fail) { /* else what the device refused goes again */
		assert_int_equal(pair_metric(w, HOMA_M_tx_retransmits), 0);
		assert_int_equal(pair_metric(w, HOMA_M_tx_resend), 0);
	}
	pair_finish(w);
}

static void rpc__every_length(void **state)
{
	struct pair_config cfg;

	(void)state;
	pair_config_default(&cfg);
	all_lengths(&cfg);
}

static void rpc__every_length_without_pool(void **state)
{
	struct pair_config cfg;

	(void)state;
	pair_config_default(&cfg);
	cfg.pool_pages = 0;
	all_lengths(&cfg);
}

static void rpc__every_length_in_segments(void **state)
{
	struct pair_config cfg;

	(void)state;
	pair_config_default(&cfg);
	cfg.max_segs = 45;
	cfg.rx_delay_ns = 10000;
	all_lengths(&cfg);
}

static void rpc__every_length_over_ipv6(void **state)
{
	struct pair_config cfg;

	(void)state;
	pair_config_default(&cfg);
	cfg.v6 = true;
	cfg.max_segs = 3;
	all_lengths(&cfg);
}

static void rpc__every_length_over_udp(void **state)
{
	struct pair_config cfg;

	(void)state;
	pair_config_default(&cfg);
	cfg.encap = 54321;
	cfg.mtu = 9000;
	all_lengths(&cfg);
}

static void rpc__every_length_paced_by_room(void **state)
{
	struct pair_config cfg;

	(void)state;
	pair_config_default(&cfg);
	cfg.by_room = true;
	all_lengths(&cfg);
}

static void rpc__every_length_on_a_slow_link(void **state)
{
	struct pair_config cfg;

	(void)state;
	pair_config_default(&cfg);
	cfg.rate_mbps = 200;
	cfg.latency_ns = 50000;
	all_lengths(&cfg);
}

static void rpc__every_length_on_an_unpaced_link(void **state)
{
	struct pair_config cfg;

	(void)state;
	pair_config_default(&cfg);
	cfg.rate_mbps = 0;
	all_lengths(&cfg);
}

static void rpc__every_length_handed_in_by_pieces(void **state)
{
	struct pair_config cfg;

	(void)state;
	pair_config_default(&cfg);
	cfg.supply_step = 3000;
	all_lengths(&cfg);
	cfg.supply_step = 65536;
	all_lengths(&cfg);
}

static void rpc__every_length_at_an_unpleasant_host(void **state)
{
	struct pair_config cfg;

	(void)state;
	pair_config_default(&cfg);
	cfg.copy_delay_ns = 30000;
	cfg.done_delay_ns = 30000;
	cfg.take_delay_ns = 50000;
	cfg.reply_delay_ns = 100000;
	cfg.release_delay_ns = 200000;
	cfg.rx_delay_ns = 5000;
	cfg.tx_fail = 20;
	cfg.shards = 4;
	all_lengths(&cfg);
}

/* Messages longer than a pool can hold are the host's to place. */
static void rpc__tens_of_megabytes(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *a, *b;

	(void)state;
	pair_config_default(&cfg);
	cfg.pool_pages = 0;
	w = pair_world_new(&cfg);
	a = pair_rpc(w, 0, 1, 20000000, 1);
	b = pair_rpc(w, 1, 0, 1, 13000001);
	assert_true(pair_run_while_pending(w, 60 * PAIR_S));
	assert_int_equal(a->state, PAIR_OK);
	assert_int_equal(b->state, PAIR_OK);
	pair_finish(w);
}

/* Longer than HOMA_MAX_BPAGES pages: refused by a pool, and both ends hear. */
static void rpc__too_long_for_a_pool(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *rpc;

	(void)state;
	pair_config_default(&cfg);
	w = pair_world_new(&cfg);
	rpc = pair_rpc(w, 0, 1, HOMA_MAX_BPAGES * HOMA_BPAGE_SIZE, 10);
	assert_true(pair_run_while_pending(w, 20 * PAIR_S));
	assert_int_equal(rpc->state, PAIR_OK);
	rpc = pair_rpc(w, 0, 1, HOMA_MAX_BPAGES * HOMA_BPAGE_SIZE + 1, 10);
	pair_check(w, pair_run_while_pending(w, 20 * PAIR_S),
		   "a request that can never be received is sent for ever");
	assert_int_equal(rpc->state, PAIR_FAILED);
	assert_int_equal(rpc->executed, 0);
	pair_finish(w);
}

static void rpc__bad_arguments(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	int err;

	(void)state;
	pair_config_default(&cfg);
	w = pair_world_new(&cfg);
	assert_null(pair_rpc_start(w, 0, 1, 1, PAIR_SERVER_PORT, 0, 1, &err));
	assert_int_equal(err, -HOMA_EINVAL);
	assert_null(pair_rpc_start(w, 0, 1, 1, 0, 10, 1, &err));
	assert_int_equal(err, -HOMA_EINVAL);
	assert_null(pair_rpc_start(w, 0, 1, 1, PAIR_SERVER_PORT,
				   HOMA_MAX_WIRE_LENGTH + 1u, 1, &err));
	assert_int_equal(err, -HOMA_EINVAL);
	pair_finish(w);
}

static void rpc__port_without_server(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *rpc;
	u64 start;

	(void)state;
	pair_config_default(&cfg);
	w = pair_world_new(&cfg);
	start = w->now;
	rpc = pair_rpc_start(w, 0, 1, 1, 4242, 5000, 1, NULL);
	assert_non_null(rpc);
	assert_true(pair_run_while_pending(w, 20 * PAIR_S));
	assert_int_equal(rpc->state, PAIR_FAILED);
	assert_int_equal(rpc->error, HOMA_ENOTCONN);
	assert_true(rpc->end - start < PAIR_MS);
	/* A client's port is no server either. */
	rpc = pair_rpc_start(w, 0, 1, 1, w->hosts[1].socks[1].port, 10, 1, NULL);
	assert_non_null(rpc);
	assert_true(pair_run_while_pending(w, 20 * PAIR_S));
	assert_int_equal(rpc->error, HOMA_ENOTCONN);
	pair_finish(w);
}

static void mix(struct pair_world *w, u32 n, u32 max)
{
	u32 i;

	for (i = 0; i < n; i++) {
		u8 a = (u8)pair_below(&w->rng_test, w->cfg.hosts);
		u8 b = (u8)pair_below(&w->rng_test, w->cfg.hosts);
		u32 bits = 1 + pair_below(&w->rng_test, 20);

		pair_rpc(w, a, b, 1 + pair_below(&w->rng_test, 1u << bits) % max,
			 1 + pair_below(&w->rng_test, 1u << bits) % max);
		pair_run_for(w, pair_below(&w->rng_test, 20000));
	}
}

/* Also to itself: a host may be its own peer. */
static void rpc__many_among_sixteen_hosts(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;

	(void)state;
	pair_config_default(&cfg);
	cfg.hosts = 16;
	w = pair_world_new(&cfg);
	mix(w, 2000, 300000);
	assert_true(pair_run_while_pending(w, 20 * PAIR_S));
	assert_int_equal(pair_count_state(w, PAIR_OK), 2000);
	pair_finish(w);
}

static u64 digest_of(u64 seed)
{
	struct pair_faults faults = { .loss = 50,
				      .dup = 20,
				      .reorder = 100,
				      .dup_max_ns = PAIR_MS,
				      .reorder_max_ns = 100000 };
	struct pair_config cfg;
	struct pair_world *w;
	u64 digest;

	pair_config_default(&cfg);
	cfg.hosts = 4;
	cfg.seed = seed;
	cfg.faults = faults;
	w = pair_world_new(&cfg);
	mix(w, 100, 100000);
	pair_run_while_pending(w, 20 * PAIR_S);
	pair_drain(w, 20 * PAIR_S);
	digest = w->digest;
	pair_world_free(w);
	return digest;
}

static void harness__same_seed_same_packets(void **state)
{
	u64 a = digest_of(5), b = digest_of(5), c = digest_of(6);

	(void)state;
	assert_true(a == b);
	assert_true(a != c);
}

/* One RPC of one packet each way costs two packets and, later, one ack. */
static void rpc__short_costs_three_packets(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;

	(void)state;
	pair_config_default(&cfg);
	w = pair_world_new(&cfg);
	pair_rpc(w, 0, 1, 100, 100);
	assert_true(pair_run_while_pending(w, PAIR_S));
	pair_drain(w, PAIR_S);
	w->packets = 0;
	pair_rpc(w, 0, 1, 100, 100);
	assert_true(pair_run_while_pending(w, PAIR_S));
	pair_drain(w, PAIR_S);
	assert_true(w->packets <= 4); /* NEED_ACK asks for it when idle */
	pair_finish(w);
}

/* Acks ride on DATA: a busy client sends hardly any packet for them. */
static void acks__ride_on_data(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 i;

	(void)state;
	pair_config_default(&cfg);
	w = pair_world_new(&cfg);
	for (i = 0; i < 1000; i++) {
		pair_rpc(w, 0, 1, 100, 100);
		assert_true(pair_run_while_pending(w, PAIR_S));
	}
	assert_in_range(pair_metric(w, HOMA_M_tx_data), 2000, 2000);
	assert_true(pair_metric(w, HOMA_M_tx_ack) +
			    pair_metric(w, HOMA_M_tx_need_ack) <
		    20);
	pair_finish(w);
}

/* A long message alone uses the whole link. */
static void throughput__one_long_message(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *rpc;
	u64 ideal;

	(void)state;
	pair_config_default(&cfg);
	cfg.pool_pages = 0;
	w = pair_world_new(&cfg);
	rpc = pair_rpc(w, 0, 1, 20000000, 1);
	assert_true(pair_run_while_pending(w, PAIR_S));
	ideal = pair_wire_ns(w, 1480) * (20000000ull / 1424);
	pair_check(w, rpc->end - rpc->start < ideal * 108 / 100,
		   "20 MB took %llu us, ideal %llu us",
		   (unsigned long long)(rpc->end - rpc->start) / 1000,
		   (unsigned long long)ideal / 1000);
	pair_finish(w);
}

static void forget_both(struct pair_world *w, struct pair_rpc *rpc)
{
	rpc->no_reply = true;
	pair_rpc_forget(w, rpc);
}

/* One-way messages: no packet says that they are over, nothing is left. */
static void forget__one_way_messages(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 i, packets;

	(void)state;
	pair_config_default(&cfg);
	cfg.hosts = 3;
	w = pair_world_new(&cfg);
	w->on_execute = forget_both;
	for (i = 0; i < HOMA_ARRAY_SIZE(lengths); i++) {
		pair_rpc(w, 0, 1, lengths[i], 1);
		pair_rpc(w, 2, 1, lengths[i], 1);
		assert_true(pair_run_while_pending(w, PAIR_S));
		packets = (u32)w->packets;
		pair_run_for(w, 10 * PAIR_MS);
		assert_int_equal(w->packets, packets);
	}
	assert_int_equal(pair_count_state(w, PAIR_ABORTED), w->num_rpcs);
	assert_int_equal(pair_metric(w, HOMA_M_tx_ack) +
				 pair_metric(w, HOMA_M_tx_need_ack) +
				 pair_metric(w, HOMA_M_tx_resend),
			 0);
	pair_finish(w);
}

/* A client that forgets leaves a server that finds out by itself. */
static void forget__by_the_client_alone(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *rpc;

	(void)state;
	pair_config_default(&cfg);
	w = pair_world_new(&cfg);
	rpc = pair_rpc(w, 0, 1, 1000000, 1);
	pair_run_for(w, 200 * PAIR_US);
	pair_rpc_forget(w, rpc);
	assert_int_equal(rpc->state, PAIR_ABORTED);
	assert_int_equal(homa_rpc_forget(&w->hosts[0].ctx, rpc->handle),
			 -HOMA_EINVAL);
	pair_drain(w, PAIR_S);
	assert_int_equal(rpc->executed, 0);
	pair_finish(w);
}

/* A server that forgets what it has executed does not execute it again. */
static void forget__by_the_server_alone(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *rpc;

	(void)state;
	pair_config_default(&cfg);
	w = pair_world_new(&cfg);
	rpc = pair_rpc(w, 0, 1, 100, 1);
	rpc->no_reply = true;
	pair_run_for(w, 200 * PAIR_US);
	assert_int_equal(rpc->executed, 1);
	assert_int_equal(homa_rpc_forget(&w->hosts[1].ctx, rpc->server_handle),
			 0);
	assert_true(pair_run_while_pending(w, 10 * PAIR_S));
	assert_int_equal(rpc->state, PAIR_FAILED);
	assert_true(pair_metric(w, HOMA_M_drop_tombstone) > 0);
	pair_finish(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rpc__every_length),
		cmocka_unit_test(rpc__every_length_without_pool),
		cmocka_unit_test(rpc__every_length_in_segments),
		cmocka_unit_test(rpc__every_length_over_ipv6),
		cmocka_unit_test(rpc__every_length_over_udp),
		cmocka_unit_test(rpc__every_length_paced_by_room),
		cmocka_unit_test(rpc__every_length_on_a_slow_link),
		cmocka_unit_test(rpc__every_length_on_an_unpaced_link),
		cmocka_unit_test(rpc__every_length_handed_in_by_pieces),
		cmocka_unit_test(rpc__every_length_at_an_unpleasant_host),
		cmocka_unit_test(rpc__tens_of_megabytes),
		cmocka_unit_test(rpc__too_long_for_a_pool),
		cmocka_unit_test(rpc__bad_arguments),
		cmocka_unit_test(rpc__port_without_server),
		cmocka_unit_test(rpc__many_among_sixteen_hosts),
		cmocka_unit_test(harness__same_seed_same_packets),
		cmocka_unit_test(rpc__short_costs_three_packets),
		cmocka_unit_test(acks__ride_on_data),
		cmocka_unit_test(throughput__one_long_message),
		cmocka_unit_test(forget__one_way_messages),
		cmocka_unit_test(forget__by_the_client_alone),
		cmocka_unit_test(forget__by_the_server_alone),
	};

	pair_test_setup();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
