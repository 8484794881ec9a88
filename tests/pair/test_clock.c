/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Clocks that are not quite the same: a timer whose CPU looked at the clock before
 * another CPU's packet came. What happened in its future happened just now.
 */
#include "pair_test.h"

#define BEHIND_NS (2 * PAIR_US)

/* The server says that it lacks a part of @rpc's request. */
static void server_asks(struct pair_world *w, const struct pair_rpc *rpc)
{
	struct pair_pkt *pkt =
		pair_pkt_new(1, 0, 7, sizeof(struct homa_wire_resend));
	struct homa_packet p;

	memset(&p, 0, sizeof(p));
	p.hdr.type = HOMA_RESEND;
	p.hdr.sport = rpc->server_port;
	p.hdr.dport = rpc->client_port;
	p.hdr.sender_id = rpc->handle.id ^ 1;
	p.resend.length = 10;
	homa_packet_encode(pkt->data, &p);
	pair_net_deliver(w, pkt);
}

/*
 * A client has asked twice in vain. Now a packet comes every microsecond, so when its
 * deadline fires the last one is from the timer's future. That is no silence of 2^64 ns.
 */
static void clock__a_timer_that_is_behind_ends_nothing(void **state)
{
	struct pair_config cfg;
	struct pair_world *w;
	struct pair_rpc *rpc;
	u64 asked, end;

	(void)state;
	pair_config_default(&cfg);
	cfg.timer_behind_ns = BEHIND_NS;
	w = pair_world_new(&cfg);
	w->paths[0][1].cut = true;
	rpc = pair_rpc(w, 0, 1, 100, 100);
	pair_run_for(w, 20 * PAIR_MS);
	asked = pair_host_metric(&w->hosts[0], HOMA_M_tx_resend);
	assert_true(asked >= 2);
	/* One interval of a second question's answer, doubled, and a tick. */
	for (end = w->now + 45 * PAIR_MS; w->now < end;) {
		server_asks(w, rpc);
		pair_run_for(w, PAIR_US);
	}
	assert_int_equal(pair_host_metric(&w->hosts[0], HOMA_M_rpc_timeouts), 0);
	assert_int_equal(rpc->state, PAIR_PENDING);
	w->paths[0][1].cut = false;
	assert_true(pair_run_while_pending(w, PAIR_S));
	assert_int_equal(rpc->state, PAIR_OK);
	pair_finish(w);
}

/* Loss, so that timers have something to do, and nobody ends before his time. */
static void behind(u64 seed)
{
	struct pair_config cfg;
	struct pair_world *w;
	u32 i;

	pair_config_default(&cfg);
	cfg.seed = seed;
	cfg.hosts = 3;
	cfg.timer_behind_ns = BEHIND_NS;
	cfg.faults.loss = 50;
	w = pair_world_new(&cfg);
	for (i = 0; i < 200; i++) {
		pair_rpc(w, (u8)(i % 3), (u8)((i + 1) % 3),
			 1 + pair_below(&w->rng_test, 30000),
			 1 + pair_below(&w->rng_test, 30000));
		pair_run_for(w, pair_below(&w->rng_test, 50000));
	}
	assert_true(pair_run_while_pending(w, 20 * PAIR_S));
	pair_check(w, pair_count_state(w, PAIR_OK) == 200, "%u of 200",
		   pair_count_state(w, PAIR_OK));
	pair_finish(w);
}

static void clock__loss_is_repaired_by_timers_that_are_behind(void **state)
{
	(void)state;
	each_seed(10, behind);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clock__a_timer_that_is_behind_ends_nothing),
		cmocka_unit_test(clock__loss_is_repaired_by_timers_that_are_behind),
	};

	pair_test_setup();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
