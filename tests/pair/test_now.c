/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Messages whose one packet is handed out with them (homa_ctx.tx_now): which ones
 * are, and that losing it, or a device that refuses it, is as harmless as with any
 * other packet.
 */
#include "pair_test.h"

static void config(struct pair_config *cfg)
{
	pair_config_default(cfg);
	cfg->hosts = 2;
	cfg->at_once = true;
}

/* Two hosts with links of 1 Gbit/s. */
static struct pair_world *paced(void)
{
	struct pair_config cfg;

	config(&cfg);
	cfg.rate_mbps = 1000;
	cfg.nic_queue_ns = 2000;
	return pair_world_new(&cfg);
}

static void run(struct pair_world *w)
{
	assert_true(pair_run_while_pending(w, PAIR_S));
}

static void now__only_single_packets_of_an_idle_link(void **state)
{
	struct pair_world *w;

	(void)state;
	w = paced();
	/* With the first response goes a control packet: the cutoffs. */
	pair_rpc(w, 0, 1, 100, 100);
	run(w);
	pair_run_for(w, 5 * PAIR_MS);
	w->sent_at_once = 0;
	pair_rpc(w, 0, 1, 100, 100);
	assert_int_equal(w->sent_at_once, 1);
	run(w);
	assert_int_equal(w->sent_at_once, 2);
	/* Two packets; and then the link has something waiting. */
	pair_rpc(w, 0, 1, 100000, 100);
	assert_int_equal(w->sent_at_once, 2);
	pair_rpc(w, 0, 1, 100, 100);
	assert_int_equal(w->sent_at_once, 2);
	run(w);
	pair_finish(w);
}

/* A packet that leaves at once counts on the link's clock as any other. */
static void now__no_more_than_the_clock_lets_go(void **state)
{
	struct pair_world *w;

	(void)state;
	w = paced();
	/* 11 us each on the cable; of two packets the clock may be ahead. */
	pair_rpc(w, 0, 1, 1300, 100);
	pair_rpc(w, 0, 1, 1300, 100);
	pair_rpc(w, 0, 1, 1300, 100);
	assert_int_equal(w->sent_at_once, 3);
	pair_rpc(w, 0, 1, 1300, 100);
	assert_int_equal(w->sent_at_once, 3);
	/* The shortest need not wait for the clock, but what waits already does not go after
	 * them. */
	pair_rpc(w, 0, 1, 100, 100);
	assert_int_equal(w->sent_at_once, 3);
	run(w);
	pair_finish(w);
}

static void now__a_short_message_does_not_wait_for_the_clock(void **state)
{
	struct pair_world *w;
	u32 i;

	(void)state;
	w = paced();
	for (i = 0; i < 3; i++)
		pair_rpc(w, 0, 1, 1300, 100);
	for (i = 0; i < 3; i++)
		pair_rpc(w, 0, 1, 100, 100);
	assert_int_equal(w->sent_at_once, 6);
	run(w);
	pair_finish(w);
}

static void now__a_response_is_lost_again_and_again(void **state)
{
	struct pair_filter *lost;
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *r;

	(void)state;
	config(&cfg);
	w = pair_world_new(&cfg);
	/* The response is lost three times; each time all of it is asked for. */
	lost = pair_filter_add(w, HOMA_DATA, 1, 0, 0, 3);
	r = pair_rpc(w, 0, 1, 100, 700);
	run(w);
	assert_int_equal(lost->hits, 3);
	assert_int_equal(r->state, PAIR_OK);
	pair_finish(w);
}

static void now__a_lost_packet_is_sent_again(void **state)
{
	struct pair_filter *lost;
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *r;

	(void)state;
	config(&cfg);
	w = pair_world_new(&cfg);
	lost = pair_filter_add(w, HOMA_DATA, 0, 1, 0, 1);
	r = pair_rpc(w, 0, 1, 100, 100);
	assert_int_equal(w->sent_at_once, 1);
	run(w);
	assert_int_equal(lost->hits, 1);
	assert_int_equal(r->state, PAIR_OK);
	assert_true(pair_metric(w, HOMA_M_tx_retransmits) > 0);
	pair_finish(w);
}

static void now__a_refused_packet_is_sent_again(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 i;

	(void)state;
	config(&cfg);
	cfg.tx_fail = 500;
	w = pair_world_new(&cfg);
	for (i = 0; i < 50; i++) {
		pair_rpc(w, 0, 1, 1 + i, 50);
		pair_run_for(w, 20 * PAIR_US);
	}
	run(w);
	assert_true(w->sent_at_once > 10);
	pair_finish(w);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(now__only_single_packets_of_an_idle_link),
		cmocka_unit_test(now__no_more_than_the_clock_lets_go),
		cmocka_unit_test(now__a_short_message_does_not_wait_for_the_clock),
		cmocka_unit_test(now__a_response_is_lost_again_and_again),
		cmocka_unit_test(now__a_lost_packet_is_sent_again),
		cmocka_unit_test(now__a_refused_packet_is_sent_again),
	};

	pair_test_setup();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
