/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Nothing is sent twice that was not lost, however long it waits in queues: what is
 * under way is not missing until there has been silence.
 */
#include "pair_test.h"

struct burst {
	u32 rate_mbps, servers, rpcs, request, response;
	u64 reply_ns;
};

static void no_loss(const struct burst *b)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 i;

	pair_config_default(&cfg);
	cfg.hosts = 1 + b->servers;
	cfg.rate_mbps = b->rate_mbps;
	w = pair_world_new(&cfg);
	for (i = 0; i < b->rpcs; i++) {
		struct pair_rpc *rpc = pair_rpc(w, 0, (u8)(1 + i % b->servers),
						b->request, b->response);

		rpc->reply_delay = b->reply_ns;
		rpc->reply_delay_set = true;
	}
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(pair_count_state(w, PAIR_OK), b->rpcs);
	pair_check(w,
		   !pair_metric(w, HOMA_M_tx_retransmits) &&
			   !pair_metric(w, HOMA_M_rx_duplicates),
		   "%llu of %llu DATA packets sent again, %llu RESENDs",
		   (unsigned long long)pair_metric(w, HOMA_M_tx_retransmits),
		   (unsigned long long)pair_metric(w, HOMA_M_tx_data),
		   (unsigned long long)pair_metric(w, HOMA_M_tx_resend));
	pair_finish(w);
}

static void silence__nothing_lost_nothing_sent_again(void **state)
{
	static const struct burst bursts[] = {
		{ 1000, 1, 32, 100, 10000, 0 },
		{ 1000, 4, 32, 100, 10000, 0 },
		{ 1000, 1, 300, 100, 1000, 0 },
		{ 1000, 1, 16, 10000, 10000, PAIR_MS },
		{ 10000, 8, 300, 100, 10000, 0 },
		{ 1000, 2, 8, 100, 60000, 0 },
	};
	u32 i;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(bursts); i++)
		no_loss(&bursts[i]);
}

/* And what is lost comes: all of a response, its end, the ack for it. */
static void silence__what_is_lost_comes(void **state)
{
	static const u32 skips[] = { 0, 3, 6 };
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *rpc;
	u32 i;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(skips); i++) {
		pair_config_default(&cfg);
		cfg.rate_mbps = 1000;
		w = pair_world_new(&cfg);
		pair_filter_add(w, HOMA_DATA, 1, 0, skips[i], 100);
		rpc = pair_rpc(w, 0, 1, 100, 10000);
		pair_run_for(w, PAIR_MS);
		w->num_filters = 0;
		assert_int_equal(rpc->state, PAIR_PENDING);
		assert_true(pair_run_while_pending(w, PAIR_S));
		assert_int_equal(rpc->state, PAIR_OK);
		pair_check(w, rpc->end - rpc->start < 60 * PAIR_MS, "%llu us",
			   (unsigned long long)(rpc->end - rpc->start) / PAIR_US);
		pair_finish(w);
	}
}

/*
 * An application that hands in its message by pieces may take longer for one than its
 * peer waits in silence: who is asked says that he is there.
 */
static void silence__pieces_that_come_late(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *rpc;

	(void)state;
	pair_config_default(&cfg);
	cfg.supply_step = 4000;
	cfg.supply_ns = 300 * PAIR_MS;
	w = pair_world_new(&cfg);
	rpc = pair_rpc(w, 0, 1, 9000, 9000);
	assert_true(pair_run_while_pending(w, 10 * PAIR_S));
	pair_check(w, rpc->state == PAIR_OK, "state %u, error %d", rpc->state,
		   rpc->error);
	pair_finish(w);
}

/*
 * A client's device takes no packet for longer than a peer's silence may last, and bytes wait
 * in it to be sent again. The silence is the client's own then: the RPC fails only if there is
 * none from the peer when they have left.
 */
static void silence__own_device_is_stuck(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *r;

	(void)state;
	pair_config_default(&cfg);
	cfg.by_room = true;
	w = pair_world_new(&cfg);
	pair_cut(w, 0, 1, true);
	/* A short message would go out whatever the room is. */
	r = pair_rpc(w, 0, 1, 200000, 100);
	pair_run_for(w, 100 * PAIR_US);
	pair_cut(w, 0, 1, false);
	w->hosts[0].no_room = true;
	pair_run_for(w, 10 * PAIR_S);
	assert_int_equal(r->state, PAIR_PENDING);
	assert_true(pair_metric(w, HOMA_M_tx_resend) > 0);
	w->hosts[0].no_room = false;
	assert_true(pair_run_while_pending(w, 20 * PAIR_S));
	assert_int_equal(r->state, PAIR_OK);
	pair_finish(w);
}

/* ---- RESEND intervals that are long beside what else is set ---- */

struct patience {
	u32 resend_us, timeout_us, tombstone_ms;
};

/* All DATA that @src sends in the first @lost_us is lost, as in a full switch; then none is. */
static void slow_to_ask(const struct patience *p, u8 src, u32 size, u32 lost_us)
{
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *rpc;

	pair_config_default(&cfg);
	cfg.rate_mbps = 100;
	cfg.params.resend_interval_us = p->resend_us;
	cfg.params.timeout_us = p->timeout_us;
	cfg.params.tombstone_ms = p->tombstone_ms;
	w = pair_world_new(&cfg);
	pair_rpc(w, 0, 1, 10, 10);
	pair_run_while_pending(w, PAIR_S);
	pair_drain(w, 10 * PAIR_S);
	pair_filter_add(w, HOMA_DATA, src, PAIR_ANY, 0, 0xffffffff);
	rpc = pair_rpc(w, 0, 1, src ? 100 : size, src ? size : 100);
	pair_run_for(w, lost_us * PAIR_US);
	w->num_filters = 0;
	pair_check(w,
		   pair_run_while_pending(w, 100 * PAIR_S) &&
			   rpc->state == PAIR_OK,
		   "RESEND %u us, timeout %u us, tombstones %u ms: %u bytes of host "
		   "%u, lost for %u us: state %u, error %d",
		   p->resend_us, p->timeout_us, p->tombstone_ms, size, src,
		   lost_us, rpc->state, rpc->error);
	pair_finish(w);
}

/*
 * Who asks late must not learn then that it was too late: that the server has given up
 * the response, or remembers requests for too short a time for one to be sent again.
 */
static void silence__long_intervals_fail_no_rpc(void **state)
{
	static const struct patience settings[] = {
		{ 1000000, 500000, 1000 },    /* beside the default of hosts */
		{ 10000000, 60000000, 1000 }, /* beside what servers remember */
		{ 1000000, 0, 1000 },
		{ 0, 100000, 1000 }, /* beside what follows from a slow link */
		{ 1000000, 500000, 0 },
	};
	static const u32 sizes[] = { 100, 5000, 300000 };
	static const u32 lost_us[] = { 300, 1000, 20000, 60000 };
	u32 i, j, k, src;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(settings); i++)
		for (j = 0; j < HOMA_ARRAY_SIZE(sizes); j++)
			for (k = 0; k < HOMA_ARRAY_SIZE(lost_us); k++)
				for (src = 0; src < 2; src++)
					slow_to_ask(&settings[i], (u8)src,
						    sizes[j], lost_us[k]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(silence__nothing_lost_nothing_sent_again),
		cmocka_unit_test(silence__what_is_lost_comes),
		cmocka_unit_test(silence__pieces_that_come_late),
		cmocka_unit_test(silence__own_device_is_stuck),
		cmocka_unit_test(silence__long_intervals_fail_no_rpc),
	};

	pair_test_setup();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
