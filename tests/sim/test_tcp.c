// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* TCP: what the RFCs say of windows, losses and time-outs, and one stream's price. */
#include "window_world.h"

#define MSS 1460u

/* One stream over links so long that a window is over long before its acks come. */
static void long_links(struct sim_config *cfg)
{
	world_cfg(cfg, &sim_tcp, 2);
	cfg->host_prop_ps = 500 * SIM_US;
	cfg->option[WINDOW_ACK_EVERY] = 1;
	cfg->option[WINDOW_INITIAL] = 2;
}

#define LONG_RTT (2000 * SIM_US)

static void test_slow_start_doubles(void **state)
{
	struct sim_config cfg;
	struct window *w;
	u32 round;

	(void)state;
	long_links(&cfg);
	w = world_new(&cfg);
	world_send(0, 1, 3000000);
	for (round = 1; round <= 8; round++) {
		sim_run(world.sim, round * LONG_RTT - 100 * SIM_US);
		assert_int_equal(w->counts.data, 2 * ((1u << round) - 1));
		assert_int_equal(world_flow(0, 1)->cwnd,
				 (2u << (round - 1)) * MSS);
	}
	world_end();
}

static void test_avoidance_adds_one_segment(void **state)
{
	struct sim_config cfg;
	u32 round;

	(void)state;
	long_links(&cfg);
	cfg.option[WINDOW_INITIAL] = 10;
	world_new(&cfg);
	world_send(0, 1, 3000000);
	world_flow(0, 1)->ssthresh = 10 * MSS;
	for (round = 0; round < 10; round++) {
		sim_run(world.sim, (round + 1) * LONG_RTT - 100 * SIM_US);
		assert_int_equal(world_flow(0, 1)->cwnd, (10 + round) * MSS);
	}
	world_end();
}

static void test_idle_and_unused_windows(void **state)
{
	struct sim_config cfg;
	u32 i;

	(void)state;
	long_links(&cfg);
	cfg.option[WINDOW_INITIAL] = 10;
	cfg.option[WINDOW_RTO_MIN] = 20000;
	world_new(&cfg);
	/* One segment at a time says nothing of a larger window. */
	for (i = 0; i < 20; i++) {
		world_send(0, 1, MSS);
		world_run(2 * LONG_RTT);
	}
	assert_int_equal(world_flow(0, 1)->cwnd, 10 * MSS);
	world_send(0, 1, 1000000);
	world_run(30 * LONG_RTT);
	assert_true(world_flow(0, 1)->cwnd > 100 * MSS);
	world_run(40 * SIM_MS);
	world_send(0, 1, MSS);
	assert_int_equal(world_flow(0, 1)->cwnd, 10 * MSS);
	world_end();
}

static u64 window_after_idleness(bool restarts)
{
	struct sim_config cfg;
	u64 cwnd;

	long_links(&cfg);
	cfg.option[WINDOW_INITIAL] = 10;
	cfg.option[WINDOW_IDLE_RESTART] = restarts;
	world_new(&cfg);
	world_send(0, 1, 1000000);
	world_run(SIM_S);
	world_send(0, 1, MSS);
	cwnd = world_flow(0, 1)->cwnd;
	world_end();
	return cwnd;
}

static void test_idle_window_may_stay(void **state)
{
	(void)state;
	assert_int_equal(window_after_idleness(true), 10 * MSS);
	assert_true(window_after_idleness(false) > 100 * MSS);
}

static void test_delayed_acks(void **state)
{
	struct sim_config cfg;
	struct window *w;

	(void)state;
	world_cfg(&cfg, &sim_tcp, 2);
	cfg.option[WINDOW_ACK_EVERY] = 2;
	w = world_new(&cfg);
	world_send(0, 1, 9 * MSS);
	world_run(400 * SIM_US);
	assert_int_equal(world.arrived, 1);
	assert_int_equal(w->counts.acks, 4);
	assert_int_equal(world_flow(0, 1)->snd_una, 8 * MSS);
	world_run(400 * SIM_US);
	assert_int_equal(w->counts.acks, 5);
	assert_int_equal(world_flow(0, 1)->snd_una, 9 * MSS);
	world_end();
}

/* ---- losses ---- */

static u64 eat_first, eat_second;

static bool eat_two(struct sim *sim, const struct sim_pkt *pkt)
{
	(void)sim;
	return pkt->type == WINDOW_DATA && !(pkt->flags & SIM_RETRANSMIT) &&
	       (pkt->x[0] == eat_first || pkt->x[0] == eat_second);
}

static u64 lose_ack_every;

static void lose_for(u64 first, u64 second, u64 ps)
{
	struct sim_config cfg;

	world_cfg(&cfg, &sim_tcp, 2);
	cfg.option[WINDOW_INITIAL] = 20;
	cfg.option[WINDOW_ACK_EVERY] = lose_ack_every;
	world_new(&cfg);
	eat_first = first;
	eat_second = second;
	world.eat = eat_two;
	world_send(0, 1, 100 * MSS);
	world_run(ps);
	assert_int_equal(world.arrived, 1);
}

static void test_fast_retransmit(void **state)
{
	struct window *w;

	(void)state;
	/* A gap is reported at once, also where acks are delayed. */
	for (lose_ack_every = 8; lose_ack_every > 0; lose_ack_every /= 2) {
		lose_for(10 * MSS, SIM_NEVER, 100 * SIM_MS);
		w = window_of(world.sim);
		assert_int_equal(w->counts.fast, 1);
		assert_int_equal(w->counts.retransmits, 1);
		assert_int_equal(w->counts.timeouts, 0);
		assert_int_equal(w->counts.duplicates, 0);
		assert_true(world_flow(0, 1)->recover < 20 * MSS);
		world_end();
	}
}

static void test_partial_ack(void **state)
{
	struct window *w;

	(void)state;
	lose_ack_every = 1;
	lose_for(10 * MSS, 13 * MSS, 100 * SIM_MS);
	w = window_of(world.sim);
	assert_int_equal(w->counts.fast, 1);
	assert_int_equal(w->counts.partial, 1);
	assert_int_equal(w->counts.retransmits, 2);
	assert_int_equal(w->counts.timeouts, 0);
	world_end();
}

/* No duplicate acks follow the last segment: only silence tells. */
static void test_last_segment_times_out(void **state)
{
	struct window *w;

	(void)state;
	lose_ack_every = 1;
	lose_for(99 * MSS, SIM_NEVER, 400 * SIM_MS);
	w = window_of(world.sim);
	assert_int_equal(w->counts.fast, 0);
	assert_int_equal(w->counts.timeouts, 1);
	assert_int_equal(w->counts.retransmits, 1);
	assert_true(world.done[0] > 10 * SIM_MS && world.done[0] < 11 * SIM_MS);
	world_end();
}

static u64 sent_at[16];
static u32 sent_count;
static u64 deaf_until;

static bool eat_early(struct sim *sim, const struct sim_pkt *pkt)
{
	if (pkt->type != WINDOW_DATA || sim->now >= deaf_until)
		return false;
	if (pkt->x[0] == 0 && sent_count < 16)
		sent_at[sent_count++] = pkt->sent_at;
	return true;
}

static void test_time_outs_back_off(void **state)
{
	struct sim_config cfg;
	struct window *w;
	u32 i;

	(void)state;
	world_cfg(&cfg, &sim_tcp, 2);
	cfg.option[WINDOW_RTO_MIN] = 1000;
	w = world_new(&cfg);
	world.eat = eat_early;
	sent_count = 0;
	deaf_until = 500 * SIM_MS;
	world_send(0, 1, 30 * MSS);
	world_run(400 * SIM_MS);
	/* 1, 2, 4 .. 64, 64 ms apart, one segment each, half the flight kept in mind. */
	assert_int_equal(sent_count, 1 + 7 + 4);
	for (i = 0; i + 1 < sent_count; i++)
		assert_true(sent_at[i + 1] - sent_at[i] ==
			    (SIM_MS << (i < 6 ? i : 6)));
	assert_int_equal(world_flow(0, 1)->cwnd, MSS);
	assert_int_equal(world_flow(0, 1)->ssthresh, 5 * MSS);
	assert_int_equal(w->counts.data, 10 + 11);
	world_run(200 * SIM_MS);
	assert_int_equal(world.arrived, 1);
	assert_int_equal(world_flow(0, 1)->backoff, 0);
	world_end();
}

/* ---- one bottleneck ---- */

#define NECK_BUFFER 100000u

static void test_sawtooth(void **state)
{
	u64 high = 0, low = UINT64_MAX, cwnd, last = 0, tx;
	u32 i, falls = 0;
	struct sim_config cfg;
	struct window *w;

	(void)state;
	world_neck(&cfg, &sim_tcp, 1);
	cfg.port_bytes = NECK_BUFFER;
	cfg.option[WINDOW_ACK_EVERY] = 1;
	/* The first overshoot loses half a window, to be mended one by one. */
	cfg.option[WINDOW_RTO_MIN] = 200000;
	w = world_new(&cfg);
	world_send(0, 1, 500000000);
	world_run(500 * SIM_MS);
	tx = world_port(SIM_TOR_UP)->stats.tx_bytes;
	for (i = 0; i < 10000; i++) {
		world_run(100 * SIM_US);
		cwnd = world_flow(0, 1)->cwnd;
		if (world_flow(0, 1)->recovering)
			continue;
		falls += cwnd < last * 6 / 10;
		/* Never more than a segment or two in a round trip of some 0.9 ms. */
		if (last)
			assert_true(cwnd <= last + MSS);
		last = cwnd;
		high = cwnd > high ? cwnd : high;
		low = cwnd < low ? cwnd : low;
	}
	/* From half the full pipe to the full pipe, a segment per round trip. */
	assert_true(falls >= 20);
	assert_int_equal(w->counts.timeouts, 0);
	assert_true(high > NECK_BUFFER * 9 / 10 && high < NECK_BUFFER * 12 / 10);
	assert_true(low > high * 4 / 10 && low < high * 6 / 10);
	tx = world_port(SIM_TOR_UP)->stats.tx_bytes - tx;
	assert_true(tx > 125000000ull * 98 / 100);
	assert_true(world_port(SIM_TOR_UP)->stats.peak > NECK_BUFFER - 1538);
	world_end();
}

static void test_two_streams_share(void **state)
{
	struct sim_config cfg;
	u64 a, b;

	(void)state;
	world_neck(&cfg, &sim_tcp, 2);
	cfg.port_bytes = NECK_BUFFER;
	world_new(&cfg);
	world_send(0, 2, 1000000000);
	world_run(200 * SIM_MS);
	world_send(1, 3, 1000000000);
	world_run(1 * SIM_S);
	a = world_flow(0, 2)->snd_una;
	b = world_flow(1, 3)->snd_una;
	world_run(4 * SIM_S);
	a = world_flow(0, 2)->snd_una - a;
	b = world_flow(1, 3)->snd_una - b;
	assert_true(a + b > 4 * 125000000ull * 92 / 100);
	assert_true(a < 2 * b && b < 2 * a);
	world_end();
}

/* ---- one stream for many messages ---- */

static u64 short_after_long(u64 streams)
{
	struct sim_config cfg;
	u64 took;
	u32 i;

	world_cfg(&cfg, &sim_tcp, 3);
	cfg.option[WINDOW_STREAMS] = streams;
	world_new(&cfg);
	world_send(0, 1, 5000000);
	for (i = 0; i < 3; i++)
		world_send(0, 1, 100);
	world_send(0, 2, 100);
	world_run(100 * SIM_MS);
	assert_int_equal(world.arrived, 5);
	/* Another host's message does not wait. */
	assert_true(world.done[4] < 20 * SIM_US);
	took = world.done[3];
	if (streams == 1) {
		assert_int_equal(world.order[0], 1);
		assert_int_equal(world.order[3], 4);
		/* The three shared the last segments of the stream. */
		assert_true(world.done[3] - world.done[0] < 3 * SIM_US);
	}
	world_end();
	return took;
}

static void test_head_of_line(void **state)
{
	(void)state;
	assert_true(short_after_long(1) > 4 * SIM_MS);
	assert_true(short_after_long(0) < 20 * SIM_US);
}

/* Requests spread over the connections; a response takes its request's. */
static struct sim_msg *response_to(struct sim_msg *request)
{
	struct sim_msg *msg = sim_msg_new(world.sim);

	msg->src = request->dst;
	msg->dst = request->src;
	msg->length = request->length;
	msg->request = request;
	sim_msg_get(request);
	return msg;
}

static u32 request_flow[100], response_flow[100];

static void answer(struct sim *sim, struct sim_msg *msg)
{
	if (msg->request)
		response_flow[world.arrived++] = (u32)msg->x[1];
	else
		sim_send(sim, response_to(msg));
	sim_msg_put(sim, msg);
}

static void test_responses(void **state)
{
	struct sim_config cfg;
	struct sim_msg *msg;
	struct window *w;
	u32 i, used = 0;

	(void)state;
	world_cfg(&cfg, &sim_tcp, 2);
	cfg.option[WINDOW_STREAMS] = 4;
	w = world_new(&cfg);
	world.sim->on_delivered = answer;
	for (i = 0; i < 100; i++) {
		msg = sim_msg_new(world.sim);
		msg->dst = 1;
		msg->length = 100;
		sim_send(world.sim, msg);
		request_flow[i] = (u32)msg->x[1];
		used |= 1u << request_flow[i];
		world_run(50 * SIM_US);
		assert_int_equal(world.arrived, i + 1);
	}
	assert_int_equal(used, 15);
	assert_memory_equal(request_flow, response_flow, sizeof(request_flow));
	assert_int_equal(w->counts.streams, 8);
	for (i = 0; i < 4; i++) {
		assert_non_null(w->hosts[0].to[window_slot(w, 1, false, i)]);
		assert_null(w->hosts[0].to[window_slot(w, 1, true, i)]);
		assert_non_null(w->hosts[1].to[window_slot(w, 0, true, i)]);
	}
	world_end();
}

static void test_hosts_take_turns(void **state)
{
	struct sim_config cfg;

	(void)state;
	world_cfg(&cfg, &sim_tcp, 3);
	world_new(&cfg);
	world_send(0, 1, 1000000);
	world_send(0, 2, 1000000);
	world_run(10 * SIM_MS);
	assert_int_equal(world.arrived, 2);
	assert_true(world.done[1] - world.done[0] < 50 * SIM_US);
	world_end();
}

static void test_loss(void **state)
{
	(void)state;
	world_test_loss(&sim_tcp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slow_start_doubles),
		cmocka_unit_test(test_avoidance_adds_one_segment),
		cmocka_unit_test(test_idle_and_unused_windows),
		cmocka_unit_test(test_idle_window_may_stay),
		cmocka_unit_test(test_delayed_acks),
		cmocka_unit_test(test_fast_retransmit),
		cmocka_unit_test(test_partial_ack),
		cmocka_unit_test(test_last_segment_times_out),
		cmocka_unit_test(test_time_outs_back_off),
		cmocka_unit_test(test_sawtooth),
		cmocka_unit_test(test_two_streams_share),
		cmocka_unit_test(test_head_of_line),
		cmocka_unit_test(test_responses),
		cmocka_unit_test(test_hosts_take_turns),
		cmocka_unit_test(test_loss),
	};

	return cmocka_run_group_tests_name("tcp", tests, NULL, NULL);
}
