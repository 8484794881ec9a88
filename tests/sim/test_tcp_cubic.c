// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* TCP whose windows are CUBIC's: how they grow and shrink, and where HyStart ends slow start. */
#include "window_world.h"

#define MSS 1460u

static void cubic(struct sim_config *cfg, u32 number)
{
	world_sack = true;
	world_cfg(cfg, &sim_tcp, number);
	cfg->option[WINDOW_CUBIC] = 1;
	cfg->option[WINDOW_RTO_MIN] = 200000;
	cfg->option[WINDOW_ACK_DELAY] = 40000;
}

/* A stream with a window of 100 segments and round trips of @rtt_ms. */
static struct window_flow *steady(u64 rtt_ms)
{
	struct sim_config cfg;
	struct window_flow *f;

	cubic(&cfg, 2);
	cfg.option[WINDOW_MAX] = 1 << 20;
	world_new(&cfg);
	world_send(0, 1, MSS);
	world_run(100 * SIM_MS);
	f = world_flow(0, 1);
	f->cubic.least_rtt = rtt_ms * SIM_MS;
	f->cwnd = f->ssthresh = 100 * MSS;
	return f;
}

/* The same after a loss. */
static struct window_flow *reduced(u64 rtt_ms)
{
	struct window_flow *f = steady(rtt_ms);

	f->cwnd = window_cubic_reduced(f);
	assert_in_range(f->cwnd, 69 * MSS, 71 * MSS);
	return f;
}

/* Has @ms go by with an ack of each half window. */
static void use(struct window_flow *f, u64 rtt_ms, u64 ms)
{
	u64 begin = world.sim->now;

	while (world.sim->now - begin < ms * SIM_MS) {
		window_cubic_grow(window_of(world.sim), f, world.sim->now,
				  f->cwnd / 2);
		world_run(rtt_ms * SIM_MS / 2);
	}
	f->last_tx = world.sim->now;
}

/* The 30 segments that are missing are there again after (30 / 0.4)^(1/3) = 4.217 s, most of them
 * after half of that; as long after that the window is as much larger. */
static void cubic__window_is_a_cubic_function_of_time(void **state)
{
	struct window_flow *f = reduced(200);

	(void)state;
	use(f, 200, 2100);
	assert_in_range(f->cwnd, 94 * MSS, 98 * MSS);
	use(f, 200, 2100);
	assert_in_range(f->cwnd, 98 * MSS, 101 * MSS);
	use(f, 200, 4200);
	assert_in_range(f->cwnd, 122 * MSS, 136 * MSS);
	world_end();
}

/* With short round trips NewReno is faster: 0.53 segments in each. */
static void cubic__is_not_slower_than_newreno(void **state)
{
	struct window_flow *f = reduced(1);

	(void)state;
	use(f, 1, 40);
	assert_in_range(f->cwnd, 86 * MSS, 93 * MSS);
	world_end();
}

/* Also a window of 4,000 segments, to which an ack of two adds less than a byte: after four round
 * trips it is 2.1 segments larger, and the cubic function has hardly begun to grow. */
static void cubic__large_windows_grow_as_newreno(void **state)
{
	struct window_flow *f = steady(1);
	u32 ack, round;

	(void)state;
	f->cwnd = f->ssthresh = f->cubic.most = 4000 * MSS;
	for (round = 0; round < 4; round++)
		for (ack = 0; ack < 2000; ack++)
			window_cubic_grow(window_of(world.sim), f,
					  world.sim->now, 2 * MSS);
	assert_in_range(f->cubic.estimate, 4002 * MSS, 4003 * MSS);
	world_end();
}

/* When the pace becomes faster, acks from before are not worth a burst. */
static void cubic__old_acks_let_a_window_grow_by_one_segment(void **state)
{
	struct window_flow *f = steady(1);

	(void)state;
	f->ca_bytes = 1000 * MSS;
	window_cubic_grow(window_of(world.sim), f, world.sim->now, MSS);
	assert_int_equal(f->cwnd, 101 * MSS);
	world_end();
}

static void cubic__without_a_loss_a_twentieth_in_each_round_trip(void **state)
{
	struct window_flow *f = steady(10);

	(void)state;
	use(f, 10, 100);
	assert_in_range(f->cwnd, 150 * MSS, 166 * MSS);
	world_end();
}

/* A second loss below the first makes room for others: the window does not return to it. */
static void cubic__less_than_before_leaves_room(void **state)
{
	struct window_flow *f = reduced(200);

	(void)state;
	f->cwnd = 80 * MSS;
	f->cwnd = window_cubic_reduced(f);
	assert_in_range(f->cwnd, 55 * MSS, 57 * MSS);
	assert_in_range(f->cubic.most, 67 * MSS, 69 * MSS);
	world_end();
}

static void cubic__idleness_does_not_count(void **state)
{
	struct window_flow *f = reduced(200);

	(void)state;
	use(f, 200, 2100);
	world_run(10 * SIM_S);
	window_cubic_starts(world.sim, f);
	use(f, 200, 200);
	assert_in_range(f->cwnd, 94 * MSS, 99 * MSS);
	world_end();
}

/* Two streams share a slow link whose queue is short. */
static void cubic__streams_share_a_slow_link(void **state)
{
	struct sim_config cfg;
	struct window *w;
	u64 first, second;

	(void)state;
	world_sack = true;
	world_neck(&cfg, &sim_tcp, 2);
	cfg.option[WINDOW_CUBIC] = 1;
	cfg.port_bytes = 100000;
	w = world_new(&cfg);
	world_send(0, 2, 400 << 20);
	world_send(1, 3, 400 << 20);
	world_run(2 * SIM_S);
	first = world_flow(0, 2)->snd_una;
	second = world_flow(1, 3)->snd_una;
	assert_true(first + second > 200ull << 20);
	assert_true(first < 3 * second && second < 3 * first);
	assert_true(w->counts.fast > 4);
	world_end();
}

static void cubic__all_losses_end(void **state)
{
	struct sim_config cfg;

	(void)state;
	cubic(&cfg, 8);
	cfg.option[WINDOW_IDLE_RESTART] = 0;
	cfg.option[WINDOW_UNDO] = 1;
	cfg.option[WINDOW_RTO_MIN] = 1000;
	cfg.loss_ppm = 20000;
	world_new(&cfg);
	world_random_traffic(400);
	world_run(60 * SIM_S);
	assert_int_equal(world.arrived, world.sent);
	assert_int_equal(world.sim->counts.pkts_live, 0);
	world_end();
}

/* Of 100 segments the 10th to the 69th are lost once. */
static bool lose_most(struct sim *sim, const struct sim_pkt *pkt)
{
	u64 number = pkt->x[WINDOW_X_SEQ] / MSS;

	(void)sim;
	return pkt->type == WINDOW_DATA && number >= 10 && number < 70 &&
	       !(pkt->flags & SIM_RETRANSMIT);
}

/* The 30 that come behind them do so within 0.04 ms. For each of them one is sent again; a window
 * of 70 segments would let all lost ones go at once. */
static void cubic__losses_are_repaired_as_packets_come(void **state)
{
	struct sim_config cfg;
	struct window *w;

	(void)state;
	cubic(&cfg, 2);
	cfg.host_prop_ps = 500 * SIM_US;
	cfg.option[WINDOW_INITIAL] = 100;
	w = world_new(&cfg);
	world.eat = lose_most;
	world_send(0, 1, 100 * MSS);
	world_run(3 * SIM_MS);
	assert_in_range(w->counts.retransmits, 25, 36);
	world_run(20 * SIM_MS);
	assert_int_equal(world.arrived, 1);
	assert_int_equal(w->counts.retransmits, 60);
	assert_int_equal(w->counts.timeouts, 0);
	/* 0.7 of 110 segments, as ten had come before. */
	assert_in_range(world_flow(0, 1)->cwnd, 76 * MSS, 78 * MSS);
	world_end();
}

static u32 lost_again;

/* The same, and the 20th is lost once more. */
static bool lose_one_twice(struct sim *sim, const struct sim_pkt *pkt)
{
	if (pkt->type == WINDOW_DATA && pkt->x[WINDOW_X_SEQ] / MSS == 20 &&
	    pkt->flags & SIM_RETRANSMIT && !lost_again) {
		lost_again++;
		return true;
	}
	return lose_most(sim, pkt);
}

/* What was sent again after it is under way when that is seen, and is not sent a third time. */
static void cubic__only_what_is_lost_again_is_sent_again(void **state)
{
	struct sim_config cfg;
	struct window *w;

	(void)state;
	cubic(&cfg, 2);
	cfg.host_prop_ps = 500 * SIM_US;
	cfg.option[WINDOW_INITIAL] = 100;
	w = world_new(&cfg);
	lost_again = 0;
	world.eat = lose_one_twice;
	world_send(0, 1, 100 * MSS);
	world_run(50 * SIM_MS);
	assert_int_equal(world.arrived, 1);
	assert_int_equal(lost_again, 1);
	assert_int_equal(w->counts.retransmits, 61);
	assert_int_equal(w->counts.duplicates, 0);
	assert_int_equal(w->counts.timeouts, 0);
	world_end();
}

static u32 lost_tenth;

/* Of 100 segments the 10th is lost, and is lost again. */
static bool lose_tenth_twice(struct sim *sim, const struct sim_pkt *pkt)
{
	(void)sim;
	if (pkt->type != WINDOW_DATA || pkt->x[WINDOW_X_SEQ] / MSS != 10 ||
	    lost_tenth >= 2)
		return false;
	lost_tenth++;
	return true;
}

/* Nothing comes later that could tell, so a time-out does; the window was reduced before, and what
 * was lost was known to be. */
static void cubic__a_time_out_of_a_recovery_does_not_reduce_again(void **state)
{
	struct sim_config cfg;
	struct window *w;

	(void)state;
	cubic(&cfg, 2);
	cfg.host_prop_ps = 500 * SIM_US;
	cfg.option[WINDOW_INITIAL] = 100;
	cfg.option[WINDOW_UNDO] = 1;
	w = world_new(&cfg);
	lost_tenth = 0;
	world.eat = lose_tenth_twice;
	world_send(0, 1, 100 * MSS);
	world_run(SIM_S);
	assert_int_equal(world.arrived, 1);
	assert_int_equal(lost_tenth, 2);
	assert_int_equal(w->counts.fast, 1);
	assert_int_equal(w->counts.timeouts, 1);
	assert_int_equal(w->counts.undone, 0);
	/* 0.7 of 110 segments, as ten had come before. */
	assert_in_range(world_flow(0, 1)->ssthresh, 76 * MSS, 78 * MSS);
	world_end();
}

/* ---- HyStart ---- */

/* One long message through a link of @mbps with a queue that is never full, round trips of
 * @rtt_ms; returns the window, in segments, at which slow start ended, or 0. */
static u64 slow_start_ended(bool with_cubic, u32 mbps, u64 rtt_ms)
{
	struct sim_config cfg;
	struct window_flow *f;
	u64 ended;

	world_sack = true;
	world_neck(&cfg, &sim_tcp, 1);
	cfg.fabric_mbps = mbps;
	cfg.host_prop_ps = rtt_ms * SIM_MS / 4;
	cfg.option[WINDOW_CUBIC] = with_cubic;
	cfg.option[WINDOW_RTO_MIN] = 200000;
	cfg.option[WINDOW_ACK_DELAY] = 40000;
	world_new(&cfg);
	world_send(0, 1, 4 << 20);
	world_run(800 * SIM_MS);
	f = world_flow(0, 1);
	assert_int_equal(window_of(world.sim)->counts.retransmits, 0);
	assert_int_equal(f->cubic.left, f->ssthresh != UINT64_MAX);
	ended = f->cubic.left ? f->ssthresh / MSS : 0;
	world_end();
	return ended;
}

/* A segment takes 1.2 ms and 33 fill the link for a round trip: acks are too far apart for a train,
 * but round trips are an eighth longer, 5 ms, when four more wait. */
static void hystart__ends_when_round_trips_grow(void **state)
{
	(void)state;
	assert_in_range(slow_start_ended(true, 10, 40), 33, 130);
	assert_int_equal(slow_start_ended(false, 10, 40), 0);
}

/* Acks come within 25 us; half of a round trip of next to nothing and 1 ms is 40 segments. */
static void hystart__ends_when_acks_fill_half_a_round_trip(void **state)
{
	(void)state;
	assert_in_range(slow_start_ended(true, 1000, 0), 33, 130);
	assert_int_equal(slow_start_ended(false, 1000, 0), 0);
}

/* An ack tells when its segment began to wait for the link. */
static void hystart__acks_tell_the_round_trip(void **state)
{
	struct sim_config cfg;

	(void)state;
	cubic(&cfg, 2);
	cfg.host_prop_ps = 500 * SIM_US;
	world_new(&cfg);
	world_send(0, 1, 4 * MSS);
	world_run(10 * SIM_MS);
	assert_in_range(world_flow(0, 1)->cubic.least_rtt, 2000 * SIM_US,
			2010 * SIM_US);
	world_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cubic__window_is_a_cubic_function_of_time),
		cmocka_unit_test(cubic__is_not_slower_than_newreno),
		cmocka_unit_test(cubic__large_windows_grow_as_newreno),
		cmocka_unit_test(cubic__old_acks_let_a_window_grow_by_one_segment),
		cmocka_unit_test(
			cubic__without_a_loss_a_twentieth_in_each_round_trip),
		cmocka_unit_test(cubic__less_than_before_leaves_room),
		cmocka_unit_test(cubic__idleness_does_not_count),
		cmocka_unit_test(cubic__streams_share_a_slow_link),
		cmocka_unit_test(cubic__losses_are_repaired_as_packets_come),
		cmocka_unit_test(cubic__only_what_is_lost_again_is_sent_again),
		cmocka_unit_test(
			cubic__a_time_out_of_a_recovery_does_not_reduce_again),
		cmocka_unit_test(cubic__all_losses_end),
		cmocka_unit_test(hystart__ends_when_round_trips_grow),
		cmocka_unit_test(hystart__ends_when_acks_fill_half_a_round_trip),
		cmocka_unit_test(hystart__acks_tell_the_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
