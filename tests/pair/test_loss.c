/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Networks that lose, repeat, delay and damage. Two kinds of test: exhaustive
 * ones lose each packet of an exchange in turn, statistical ones run seeds and
 * judge how much was sent for what arrived.
 */
#include "pair_test.h"

static void mix(struct pair_world *w, u32 n, u32 max_bits, u32 gap)
{
	u32 i;

	for (i = 0; i < n; i++) {
		u8 a = (u8)pair_below(&w->rng_test, w->cfg.hosts);
		u8 b = (u8)pair_below(&w->rng_test, w->cfg.hosts);
		u32 req = 1u << pair_below(&w->rng_test, max_bits);
		u32 resp = 1u << pair_below(&w->rng_test, max_bits);

		pair_rpc(w, a, b, req + pair_below(&w->rng_test, req),
			 resp + pair_below(&w->rng_test, resp));
		pair_run_for(w, pair_below(&w->rng_test, gap));
	}
}

static void lossy(u64 seed, u32 loss, u32 loss_back, u32 min_ok)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 ok;

	pair_config_default(&cfg);
	cfg.seed = seed;
	cfg.hosts = 2;
	cfg.max_segs = seed & 1 ? 1 : 8;
	w = pair_world_new(&cfg);
	w->paths[0][1].loss = loss;
	w->paths[1][0].loss = loss_back;
	mix(w, 100, 18, 50000);
	pair_check(w, pair_run_while_pending(w, 100 * PAIR_S), "RPCs do not end");
	ok = pair_count_state(w, PAIR_OK);
	pair_check(w, ok >= min_ok, "%u of 100 RPCs succeeded at loss %u/%u ‰",
		   ok, loss, loss_back);
	pair_finish(w);
}

static void loss_1(u64 seed)
{
	lossy(seed, 10, 10, 100);
}

static void loss_5(u64 seed)
{
	lossy(seed, 50, 50, 100);
}

static void loss_10_there(u64 seed)
{
	lossy(seed, 100, 0, 100);
}

static void loss_10_back(u64 seed)
{
	lossy(seed, 0, 100, 100);
}

static void loss_30(u64 seed)
{
	lossy(seed, 300, 300, 90);
}

static void loss__one_percent(void **state)
{
	(void)state;
	each_seed(10, loss_1);
}

static void loss__five_percent(void **state)
{
	(void)state;
	each_seed(10, loss_5);
}

static void loss__ten_percent_one_way(void **state)
{
	(void)state;
	each_seed(10, loss_10_there);
	each_seed(10, loss_10_back);
}

static void loss__thirty_percent(void **state)
{
	(void)state;
	each_seed(10, loss_30);
}

/* ---- each packet of an exchange, once ---- */

struct victim {
	u64 seen;
	u64 first, last;
	u8 dst;
};

static bool lose_nth(struct pair_world *w, struct pair_pkt *pkt, void *arg)
{
	struct victim *v = arg;
	u64 n = v->seen++;

	(void)w;
	(void)pkt;
	return n >= v->first && n <= v->last;
}

/* Runs one RPC and loses its packets first..last; returns packets in all. */
static u64 lose_range(u32 request, u32 response, u64 first, u64 last, u32 segs)
{
	struct victim v = { .first = first, .last = last };
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *rpc;

	pair_config_default(&cfg);
	cfg.max_segs = segs;
	w = pair_world_new(&cfg);
	/* Let the hosts get to know each other first. */
	pair_rpc(w, 0, 1, 10, 10);
	pair_run_while_pending(w, PAIR_S);
	pair_drain(w, PAIR_S);
	w->tap = lose_nth;
	w->tap_arg = &v;
	rpc = pair_rpc(w, 0, 1, request, response);
	pair_check(w,
		   pair_run_while_pending(w, 20 * PAIR_S) && rpc->state == PAIR_OK,
		   "%u/%u bytes without packets %llu..%llu: state %d error %d",
		   request, response, (unsigned long long)first,
		   (unsigned long long)last, rpc->state, rpc->error);
	pair_finish(w);
	return v.seen;
}

static void lose_each(u32 request, u32 response, u32 run, u32 segs)
{
	u64 n = lose_range(request, response, HOMA_NEVER, 0, segs);
	u64 i;

	for (i = 0; i < n; i++)
		lose_range(request, response, i, i + run - 1, segs);
}

static void loss__each_packet_in_turn(void **state)
{
	(void)state;
	lose_each(100, 100, 1, 1);
	lose_each(5000, 100, 1, 1);
	lose_each(100, 5000, 1, 1);
	lose_each(60000, 60000, 1, 1);
	lose_each(60000, 60000, 1, 5);
}

static void loss__each_run_of_packets(void **state)
{
	u32 run;

	(void)state;
	/* With back-off a timeout has room for six questions, not more. */
	for (run = 2; run <= 5; run++) {
		lose_each(100, 100, run, 1);
		lose_each(20000, 40000, run, 1);
		lose_each(60000, 3000, run, 3);
	}
}

/* ---- packets of one type ---- */

static void type_lost(u8 type, u32 skip, u32 count)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 i;

	pair_config_default(&cfg);
	cfg.seed = 3;
	w = pair_world_new(&cfg);
	/* Makes RESENDs, BUSYs and RPC_UNKNOWNs happen at all. */
	w->paths[0][1].loss = w->paths[1][0].loss =
		type == HOMA_RESEND || type == HOMA_BUSY ||
				type == HOMA_RPC_UNKNOWN ?
			50 :
			0;
	pair_filter_add(w, type, PAIR_ANY, PAIR_ANY, skip, count);
	for (i = 0; i < 30; i++) {
		pair_rpc(w, 0, 1, 100 + i * 5000, 100 + (30 - i) * 5000);
		pair_run_for(w, 20000);
	}
	pair_check(w,
		   pair_run_while_pending(w, 100 * PAIR_S) &&
			   pair_count_state(w, PAIR_OK) == 30,
		   "type %x, %u after %u lost: %u of 30", type, count, skip,
		   pair_count_state(w, PAIR_OK));
	pair_finish(w);
}

static void loss__of_one_type(void **state)
{
	static const u8 types[] = { HOMA_GRANT, HOMA_RESEND,  HOMA_RPC_UNKNOWN,
				    HOMA_BUSY,	HOMA_CUTOFFS, HOMA_NEED_ACK,
				    HOMA_ACK };
	u32 i, skip, count;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(types); i++)
		for (skip = 0; skip < 8; skip = 2 * skip + 1)
			for (count = 1; count <= 16; count *= 4)
				type_lost(types[i], skip, count);
}

/* These never get through at all, and still everything ends well. */
static void loss__of_all_of_a_type(void **state)
{
	(void)state;
	type_lost(HOMA_ACK, 0, 0xffffffff);
	type_lost(HOMA_NEED_ACK, 0, 0xffffffff);
	type_lost(HOMA_CUTOFFS, 0, 0xffffffff);
	type_lost(HOMA_BUSY, 0, 0xffffffff);
}

/* ---- repeated, late, damaged ---- */

static void faulty(u64 seed, struct pair_faults faults, bool all_ok)
{
	struct pair_config cfg;
	struct pair_world *w;

	pair_config_default(&cfg);
	cfg.seed = seed;
	cfg.hosts = 3;
	cfg.faults = faults;
	cfg.max_segs = 1 + seed % 4;
	w = pair_world_new(&cfg);
	mix(w, 150, 17, 50000);
	pair_check(w, pair_run_while_pending(w, 100 * PAIR_S), "RPCs do not end");
	if (all_ok)
		pair_check(w, pair_count_state(w, PAIR_OK) == 150, "%u of 150",
			   pair_count_state(w, PAIR_OK));
	pair_finish(w);
}

static void dup_late(u64 seed)
{
	faulty(seed,
	       (struct pair_faults){ .dup = 300, .dup_max_ns = 990 * PAIR_MS },
	       true);
}

static void dup_soon(u64 seed)
{
	faulty(seed, (struct pair_faults){ .dup = 1000, .dup_max_ns = 20000 },
	       true);
}

static void reorder(u64 seed)
{
	faulty(seed,
	       (struct pair_faults){ .reorder = 500, .reorder_max_ns = 500000 },
	       true);
}

static void everything(u64 seed)
{
	faulty(seed,
	       (struct pair_faults){ .loss = 100,
				     .dup = 100,
				     .reorder = 300,
				     .dup_max_ns = 900 * PAIR_MS,
				     .reorder_max_ns = 20 * PAIR_MS },
	       false);
}

static void damage(u64 seed)
{
	faulty(seed,
	       (struct pair_faults){
		       .corrupt = 200, .dup = 50, .dup_max_ns = PAIR_MS },
	       false);
}

static void dup__up_to_a_second_late(void **state)
{
	(void)state;
	each_seed(10, dup_late);
}

static void dup__of_every_packet(void **state)
{
	(void)state;
	each_seed(10, dup_soon);
}

static void reorder__half_of_the_packets(void **state)
{
	(void)state;
	each_seed(10, reorder);
}

static void faults__all_together(void **state)
{
	(void)state;
	each_seed(20, everything);
}

static void damage__leaves_nothing_behind(void **state)
{
	(void)state;
	each_seed(40, damage);
}

/* ---- how much is sent for what arrives ---- */

static void economy(u64 seed, u32 loss, double most)
{
	struct pair_config cfg;
	struct pair_world *w;
	u64 ideal = 0, i;
	double ratio;

	pair_config_default(&cfg);
	cfg.seed = seed;
	cfg.hosts = 4;
	cfg.faults.loss = loss;
	w = pair_world_new(&cfg);
	mix(w, 400, 18, 100000);
	assert_true(pair_run_while_pending(w, 100 * PAIR_S));
	for (i = 0; i < w->num_rpcs; i++)
		ideal += w->book[i]->request_length + w->book[i]->response_length;
	ratio = (double)w->data_bytes / (double)ideal;
	if (getenv("PAIR_DUMP"))
		print_message("loss %u: %.4f, %llu RESEND %llu BUSY %llu restarts %llu deferred\n",
			      loss, ratio,
			      (unsigned long long)pair_metric(w, HOMA_M_tx_resend),
			      (unsigned long long)pair_metric(w, HOMA_M_tx_busy),
			      (unsigned long long)pair_metric(w, HOMA_M_restarts),
			      (unsigned long long)
				      pair_metric(w, HOMA_M_resends_deferred));
	pair_check(w, ratio < most,
		   "%.3f bytes sent per byte at %u ‰ loss (%llu RESENDs, %llu restarts)",
		   ratio, loss,
		   (unsigned long long)pair_metric(w, HOMA_M_tx_resend),
		   (unsigned long long)pair_metric(w, HOMA_M_restarts));
	pair_finish(w);
}

static void economy_0(u64 seed)
{
	economy(seed, 0, 1.0001);
}

static void economy_1(u64 seed)
{
	economy(seed, 10, 1.05);
}

static void economy_10(u64 seed)
{
	economy(seed, 100, 1.4);
}

static void resend__economy(void **state)
{
	(void)state;
	each_seed(5, economy_0);
	each_seed(5, economy_1);
	each_seed(5, economy_10);
}

/* A reader that is slow to copy is no reason to ask for bytes again. */
static void resend__not_for_slow_copies(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;

	(void)state;
	pair_config_default(&cfg);
	cfg.copy_delay_ns = 60 * PAIR_MS;
	w = pair_world_new(&cfg);
	pair_rpc(w, 0, 1, 9000, 9000);
	assert_true(pair_run_while_pending(w, 10 * PAIR_S));
	assert_int_equal(pair_count_state(w, PAIR_OK), 1);
	assert_int_equal(pair_metric(w, HOMA_M_tx_retransmits), 0);
	pair_finish(w);
}

/* One RESEND at a time to a peer that has many RPCs with us and is silent. */
static void resend__one_at_a_time_to_a_silent_peer(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	u64 before;
	u32 i;

	(void)state;
	pair_config_default(&cfg);
	w = pair_world_new(&cfg);
	for (i = 0; i < 200; i++)
		pair_rpc(w, 0, 1, 100, 100)->no_reply = true;
	pair_run_for(w, PAIR_MS);
	pair_cut(w, 0, 1, true);
	before = w->by_type[HOMA_RESEND - HOMA_TYPE_FIRST];
	assert_true(pair_run_while_pending(w, 20 * PAIR_S));
	assert_int_equal(pair_count_state(w, PAIR_FAILED), 200);
	/* 20 intervals of silence, one RESEND in each, some slack. */
	before = w->by_type[HOMA_RESEND - HOMA_TYPE_FIRST] - before;
	pair_check(w, before <= 60, "%llu RESENDs to a dead peer",
		   (unsigned long long)before);
	pair_world_free(w);
}

/* ---- how fast ---- */

/* A megabyte, in ns on average. */
static u64 repaired_in(u32 loss)
{
	const u32 worlds = 40;
	u64 sum = 0;
	u32 i;

	for (i = 1; i <= worlds; i++) {
		struct pair_config cfg;
		struct pair_world *w;
		struct pair_rpc *rpc;

		pair_config_default(&cfg);
		cfg.seed = i;
		cfg.faults.loss = loss;
		w = pair_world_new(&cfg);
		rpc = pair_rpc(w, 0, 1, 1000000, 1);
		assert_true(pair_run_while_pending(w, PAIR_S));
		assert_int_equal(rpc->state, PAIR_OK);
		sum += rpc->executed_at - rpc->start;
		pair_finish(w);
	}
	return sum / worlds;
}

/*
 * All gaps are asked for and sent again at a time, not a few per interval, and what
 * others have overtaken without an interval of silence, which is 5 ms here.
 */
static void loss__many_gaps_are_repaired_together(void **state)
{
	static const struct {
		u32 loss, most_us;
	} goals[] = { { 20, 3300 }, { 30, 4500 }, { 50, 6500 } };
	u32 i;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(goals); i++) {
		u64 us = repaired_in(goals[i].loss) / PAIR_US;

		print_message("%u per mille: %llu us\n", goals[i].loss,
			      (unsigned long long)us);
		assert_true(us <= goals[i].most_us);
	}
}

static u64 early(struct pair_world *w)
{
	return pair_host_metric(&w->hosts[1], HOMA_M_resends_early);
}

/* The question is lost, too: it is not repeated before an interval of silence. */
static void early__asks_once(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *rpc;
	u32 i;

	(void)state;
	pair_config_default(&cfg);
	w = pair_world_new(&cfg);
	pair_filter_add(w, HOMA_DATA, 0, 1, 20, 1);
	pair_filter_add(w, HOMA_DATA, 0, 1, 300, 1);
	pair_filter_add(w, HOMA_RESEND, 1, 0, 0, 2);
	rpc = pair_rpc(w, 0, 1, 1000000, 1);
	for (i = 0; early(w) < 2 && i < 5000; i++)
		pair_run_for(w, PAIR_US);
	/* Both, when an eighth of the interval had passed, and no more. */
	assert_int_equal(early(w), 2);
	assert_in_range(w->now - rpc->start, 625 * PAIR_US, 3 * PAIR_MS);
	pair_run_for(w, 3 * PAIR_MS);
	assert_int_equal(pair_host_metric(&w->hosts[1], HOMA_M_tx_resend), 2);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(rpc->state, PAIR_OK);
	assert_int_equal(early(w), 2);
	assert_int_equal(pair_host_metric(&w->hosts[1], HOMA_M_rx_duplicates), 0);
	pair_finish(w);
}

/* Also at intervals of which an eighth is more than 256 units of homa_rpc.overtaken_at. */
static void early__at_every_interval(void **state)
{
	static const u32 ms[] = { 5, 200, 300, 2000, 10000 };
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *rpc;
	u32 i;

	(void)state;
	pair_config_default(&cfg);
	cfg.params.timeout_us = 60000000;
	cfg.params.tombstone_ms = 60000;
	for (i = 0; i < HOMA_ARRAY_SIZE(ms); i++) {
		cfg.params.resend_interval_us = ms[i] * 1000;
		w = pair_world_new(&cfg);
		pair_filter_add(w, HOMA_DATA, 0, 1, 20, 1);
		rpc = pair_rpc(w, 0, 1, 1000000, 1);
		assert_true(pair_run_while_pending(w, 2 * ms[i] * PAIR_MS));
		assert_int_equal(rpc->state, PAIR_OK);
		assert_int_equal(early(w), 1);
		assert_in_range(rpc->executed_at - rpc->start,
				ms[i] * PAIR_MS / 8, ms[i] * PAIR_MS / 2);
		pair_finish(w);
	}
}

/* @n messages one after another, no packet lost, a tenth of them so much late. */
static struct pair_world *late(u32 n, u64 late_ns)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 i;

	pair_config_default(&cfg);
	cfg.faults.reorder = 100;
	cfg.faults.reorder_max_ns = late_ns;
	w = pair_world_new(&cfg);
	for (i = 0; i < n; i++) {
		struct pair_rpc *rpc = pair_rpc(w, 0, 1, 500000, 1);

		assert_true(pair_run_while_pending(w, PAIR_S));
		assert_int_equal(rpc->state, PAIR_OK);
	}
	return w;
}

/* What is late by less than an eighth of the interval is not asked for. */
static void early__not_for_reordering(void **state)
{
	struct pair_world *w = late(20, 500 * PAIR_US);

	(void)state;
	assert_int_equal(early(w), 0);
	assert_int_equal(pair_host_metric(&w->hosts[1], HOMA_M_rx_duplicates), 0);
	pair_finish(w);
}

/* Of a network that is worse one message is asked about in vain, and not the next. */
static void early__learns_that_packets_are_late(void **state)
{
	struct pair_world *w = late(80, 5 * PAIR_MS);

	(void)state;
	assert_in_range(early(w), 1, 128);
	assert_true(pair_host_metric(&w->hosts[1], HOMA_M_rx_duplicates) <=
		    early(w));
	pair_finish(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loss__one_percent),
		cmocka_unit_test(loss__five_percent),
		cmocka_unit_test(loss__ten_percent_one_way),
		cmocka_unit_test(loss__thirty_percent),
		cmocka_unit_test(loss__each_packet_in_turn),
		cmocka_unit_test(loss__each_run_of_packets),
		cmocka_unit_test(loss__of_one_type),
		cmocka_unit_test(loss__of_all_of_a_type),
		cmocka_unit_test(dup__up_to_a_second_late),
		cmocka_unit_test(dup__of_every_packet),
		cmocka_unit_test(reorder__half_of_the_packets),
		cmocka_unit_test(faults__all_together),
		cmocka_unit_test(damage__leaves_nothing_behind),
		cmocka_unit_test(resend__economy),
		cmocka_unit_test(resend__not_for_slow_copies),
		cmocka_unit_test(resend__one_at_a_time_to_a_silent_peer),
		cmocka_unit_test(loss__many_gaps_are_repaired_together),
		cmocka_unit_test(early__asks_once),
		cmocka_unit_test(early__at_every_interval),
		cmocka_unit_test(early__not_for_reordering),
		cmocka_unit_test(early__learns_that_packets_are_late),
	};

	pair_test_setup();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
