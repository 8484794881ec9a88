/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What is about one RPC changes no other, what is late changes nothing, and nothing is
 * done twice because it is asked for twice.
 */
#include "forge.h"

/* Some of the response is here, and its server, which was asked before, knew nothing. */
static void mistaken__unknown_that_the_response_overtook(void **state)
{
	struct seen seen;
	struct pair_world *w = world(2, 0, &seen);
	struct pair_rpc *r = begin(w, 1000000, 0);
	struct homa_packet p = about(r, HOMA_RPC_UNKNOWN, true);

	(void)state;
	while (!count(w, 0, HOMA_M_rx_fresh_bytes))
		pair_run_for(w, PAIR_US);
	forge(w, 1, 0, &p, 0);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(r->state, PAIR_OK);
	assert_int_equal(r->executed, 1);
	/* And once it is complete, before the application has looked. */
	r = begin(w, 100, 0);
	w->hosts[0].hold_events = true;
	pair_run_for(w, PAIR_MS);
	p = about(r, HOMA_RPC_UNKNOWN, true);
	forge(w, 1, 0, &p, 0);
	w->hosts[0].hold_events = false;
	pair_poll(&w->hosts[0]);
	assert_int_equal(r->state, PAIR_OK);
	pair_finish(w);
}

/*
 * Packets of RPCs with the same ports and lengths arrive in one batch: each
 * is about its own RPC, so nothing is lost or comes twice, and the bytes are right.
 */
static void mistaken__rpcs_whose_packets_come_together(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 i;

	(void)state;
	pair_config_default(&cfg);
	cfg.rx_delay_ns = 100 * PAIR_US;
	cfg.max_segs = 1;
	w = pair_world_new(&cfg);
	/* No more than a host has memory for in one batch. */
	for (i = 0; i < 3; i++)
		pair_rpc(w, 0, 1, 5000, 5000);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(pair_count_state(w, PAIR_OK), 3);
	assert_int_equal(pair_metric(w, HOMA_M_rx_duplicates), 0);
	assert_int_equal(pair_metric(w, HOMA_M_tx_resend), 0);
	pair_finish(w);
}

/* While the first is under way, and when it is forgotten. */
static void mistaken__second_reply(void **state)
{
	struct seen seen;
	struct pair_world *w = world(2, 0, &seen);
	struct pair_rpc *r = begin(w, 1000000, 0);
	struct homa_rpc *obj;

	(void)state;
	while (!r->replies)
		pair_run_for(w, PAIR_US);
	assert_int_equal(homa_rpc_reply(ctx_of(w, 1), r->server_handle, 100,
					100, &obj),
			 -HOMA_EINVAL);
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(r->state, PAIR_OK);
	pair_drain(w, PAIR_S);
	assert_int_equal(homa_rpc_reply(ctx_of(w, 1), r->server_handle, 100,
					100, &obj),
			 0);
	assert_null(obj);
	pair_finish(w);
}

static void mistaken__a_port_is_one_socket_s(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 socks[4], i, n, round;
	struct pair_host *h;

	(void)state;
	pair_config_default(&cfg);
	w = pair_world_new(&cfg);
	h = &w->hosts[0];
	for (i = 0; i < HOMA_ARRAY_SIZE(socks); i++)
		socks[i] = pair_sock_open(h, 0);
	for (round = 0; round < 20; round++) {
		for (i = 0; i < HOMA_ARRAY_SIZE(socks); i++)
			for (n = 0; n < PAIR_MAX_SOCKS; n++)
				pair_check(w,
					   n == socks[i] || !h->socks[n].open ||
						   h->socks[n].port !=
							   h->socks[socks[i]].port,
					   "two sockets have port %u",
					   h->socks[n].port);
		pair_sock_close(h, socks[round % 4], 100);
		pair_run_for(w, PAIR_MS);
		socks[round % 4] = pair_sock_open(h, 0);
	}
	pair_finish(w);
}

/*
 * A client that starts a long request again sends its first bytes, and the others when they
 * are granted. A question of the server's former life, late by some milliseconds, grants
 * them as well: they left before, and must not look new to a server that has just started.
 */
static void mistaken__question_of_a_former_life_about_bytes_it_had(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *r;
	struct homa_packet p;
	u32 i;

	(void)state;
	pair_config_default(&cfg);
	cfg.reply_delay_ns = PAIR_S;
	cfg.no_lives = true;
	w = pair_world_new(&cfg);
	r = pair_rpc(w, 0, 1, 1000000, 100);
	while (!r->executed)
		pair_run_for(w, PAIR_US);
	pair_host_stop(&w->hosts[1]);
	pair_host_start(&w->hosts[1]);
	for (i = 0; i < 200 && !w->hosts[0].ctx.metrics[HOMA_M_restarts]; i++)
		pair_run_for(w, PAIR_MS);
	assert_int_equal(w->hosts[0].ctx.metrics[HOMA_M_restarts], 1);
	p = about(r, HOMA_RESEND, true);
	p.resend.offset = 500000;
	p.resend.length = 500000;
	forge(w, 1, 0, &p, 0);
	pair_run_for(w, 2 * PAIR_S);
	assert_int_equal(r->executed, 1);
	pair_finish(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mistaken__unknown_that_the_response_overtook),
		cmocka_unit_test(mistaken__rpcs_whose_packets_come_together),
		cmocka_unit_test(mistaken__second_reply),
		cmocka_unit_test(
			mistaken__question_of_a_former_life_about_bytes_it_had),
		cmocka_unit_test(mistaken__a_port_is_one_socket_s),
	};

	pair_test_setup();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
