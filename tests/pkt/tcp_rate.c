// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Congestion control by rate, and pacing: one sender whose peer the test plays. The round
 * trip is 100 ms, a control interval 200 ms.
 */
#include "tcp_bench.h"

#define RTT (100 * TAS_MSEC)
#define STEP 125000u /* bytes per second that 1 Mbit/s are */

static struct bench *open_with(u32 control, u8 options, u8 flags)
{
	struct bench *b = bench_new(1500);

	assert_int_equal(tas_set(&b->engine, "congestion", control), 0);
	assert_int_equal(tas_set(&b->engine, "rate_step_kbps", 1000), 0);
	assert_int_equal(tas_set(&b->engine, "tail_loss_probe", 0), 0);
	assert_int_equal(tas_set(&b->engine, "ecn", 1), 0);
	assert_int_equal(tas_set(&b->engine, "rto_min_ms", 5000), 0);
	case_open(b, (u8)(options | TAS_OPT_WSCALE), flags);
	in(b, (struct tas_segment){ .flags = TAS_ACK,
				    .seq = IRS + 1,
				    .ack = b->conn->iss + 1,
				    .window = 65535 });
	return b;
}

/* An ACK of byte @at, which says of a congestion mark if @marked. */
static void ack_of(struct bench *b, u32 at, bool marked)
{
	in(b,
	   (struct tas_segment){ .flags = (u8)(TAS_ACK | (marked ? TAS_ECE : 0)),
				 .seq = IRS + 1,
				 .ack = b->conn->iss + 1 + at,
				 .window = 65535 });
}

/* @ms milliseconds of a sender with always more to send; all arrives after a round trip. */
static void run(struct bench *b, u32 ms, bool marked)
{
	static u32 sent_by[200]; /* bytes sent, by the millisecond, one round trip back */
	u32 i;

	for (i = 0; i < 200; i++)
		sent_by[i] = b->conn->f.snd_una - b->conn->iss - 1;
	for (i = 0; i < ms; i++) {
		if (tas_unacked(b->conn) < 1u << 28)
			tas_written(&b->engine, b->conn, 1u << 20);
		while (tas_next_out(&b->engine, &b->out))
			;
		sent_by[i % 200] = b->conn->f.snd_nxt - b->conn->iss - 1;
		tick(b, TAS_MSEC);
		if (sent_by[(i + 101) % 200] >
		    b->conn->f.snd_una - b->conn->iss - 1)
			ack_of(b, sent_by[(i + 101) % 200], marked);
		while (tas_next_out(&b->engine, &b->out))
			;
		hear(b);
	}
}

/* Doubles until there is a mark, then one step in an interval. */
static void rate__doubles_and_then_adds(void **state)
{
	struct bench *b = open_with(TAS_RATE_DCTCP, 0, TAS_ECE);
	u64 first, rate;

	(void)state;
	assert_true(b->conn->f.flags & TAS_F_ECN);
	first = b->conn->rate.rate;
	assert_in_range(first, 95000,
			105000); /* ten segments of 1,000 bytes in 100 ms */
	run(b, 1400, false);
	rate = b->conn->rate.rate;
	assert_true(rate > 10 * first);
	assert_true(b->conn->rate.starts);
	run(b, 250, true);
	assert_false(b->conn->rate.starts);
	assert_true(b->conn->rate.rate < rate);
	run(b, 1000, false);
	rate = b->conn->rate.rate;
	run(b, 2000, false);
	assert_in_range(b->conn->rate.rate, rate + 8 * STEP, rate + 11 * STEP);
	bench_free(b);
}

/* As long as all is marked the rate gets less, but a segment goes in each interval. */
static void rate__shrinks_with_marks(void **state)
{
	struct bench *b = open_with(TAS_RATE_DCTCP, 0, TAS_ECE);
	u64 rate;

	(void)state;
	run(b, 1400, false);
	rate = b->conn->rate.rate;
	run(b, 3000, true);
	assert_true(b->conn->rate.rate < rate / 8);
	run(b, 20000, true);
	assert_in_range(b->conn->rate.rate, 4500, 13000);
	assert_true(b->engine.metrics.ecn_reductions > 10);
	bench_free(b);
}

/* Who sends little has no claim to more than 20 % above that, once there was congestion. */
static void rate__follows_what_arrives(void **state)
{
	struct bench *b = open_with(TAS_RATE_DCTCP, 0, TAS_ECE);
	u64 first = b->conn->rate.rate;
	u32 i;

	(void)state;
	run(b, 1400, false);
	ack_of(b,
	       b->conn->f.snd_end - b->conn->iss - 1 - tas_unacked(b->conn) +
		       tas_in_flight(b->conn),
	       false);
	b->conn->f.snd_end = b->conn->f.snd_nxt;
	b->conn->rate.starts = false;
	for (i = 0; i < 30; i++) { /* 20,000 bytes per second */
		tas_written(&b->engine, b->conn, 2000);
		while (tas_next_out(&b->engine, &b->out))
			;
		tick(b, RTT);
		ack_of(b, b->conn->f.snd_nxt - b->conn->iss - 1, false);
	}
	assert_true(b->conn->rate.rate <= first + first / 5 + STEP);
	bench_free(b);
}

/* What is lost halves it. */
static void rate__halves_after_a_loss(void **state)
{
	struct bench *b = open_with(TAS_RATE_DCTCP, 0, 0);
	u64 rate;

	(void)state;
	run(b, 1400, false);
	rate = b->conn->rate.rate;
	run(b, 50, false);
	ack_of(b, b->conn->f.snd_una - b->conn->iss - 1, false);
	ack_of(b, b->conn->f.snd_una - b->conn->iss - 1, false);
	ack_of(b, b->conn->f.snd_una - b->conn->iss - 1, false);
	assert_true(b->conn->f.flags & TAS_F_RECOVERY);
	run(b, 300, false);
	assert_in_range(b->conn->rate.rate, rate / 4, 3 * rate / 4);
	bench_free(b);
}

/* TIMELY: shrinks while round trips get longer, without any mark. */
static void rate__timely_sees_the_trend(void **state)
{
	struct bench *b = open_with(TAS_TIMELY, 0, 0);
	u64 rate;
	u32 i;

	(void)state;
	run(b, 1400, false);
	rate = b->conn->rate.rate;
	assert_true(rate > 300000);
	b->conn->rate.starts = false;
	for (i = 0; i < 20; i++) {
		tas_written(&b->engine, b->conn, 1u << 16);
		while (tas_next_out(&b->engine, &b->out))
			;
		tick(b, RTT + (i + 1) * 20 * TAS_MSEC);
		ack_of(b, b->conn->f.snd_nxt - b->conn->iss - 1, false);
	}
	assert_true(b->conn->rate.rate < rate);
	bench_free(b);
}

/* TIMELY: bytes are under way, and for whole intervals ACKs bring marks and nothing else. */
static void rate__timely_when_nothing_arrives(void **state)
{
	struct bench *b = open_with(TAS_TIMELY, 0, TAS_ECE);
	u32 una, i;

	(void)state;
	run(b, 1400, false);
	tas_written(&b->engine, b->conn, 1u << 16);
	for (i = 0; i < 10; i++) {
		while (tas_next_out(&b->engine, &b->out))
			;
		una = b->conn->f.snd_una - b->conn->iss - 1;
		tick(b, 410 * TAS_MSEC);
		ack_of(b, una, true);
		ack_of(b, una, true);
		assert_true(b->conn->rate.rate > 0);
	}
	bench_free(b);
}

/* A constant rate holds, in pieces that are evenly spaced, and nobody is woken up in between. */
static void rate__constant(void **state)
{
	struct bench *b = open_with(TAS_CONSTANT, 0, 0);
	u64 next, begin, wakes = 0, bytes = 0;

	(void)state;
	assert_int_equal(tas_set_rate(b->conn, TAS_RATE_LEAST - 1), TAS_EINVAL);
	assert_int_equal(tas_set_rate(b->conn, 1000000), 0);
	tas_written(&b->engine, b->conn, 4000000);
	begin = b->now;
	while (b->now - begin < TAS_SEC) {
		while (tas_next_out(&b->engine, &b->out)) {
			assert_true(b->out.length <= 16000);
			bytes += b->out.length;
		}
		next = tas_timers(&b->engine, 0);
		wakes++;
		tick(b, next > b->now ? next - b->now : 1);
		ack_of(b, b->conn->f.snd_nxt - b->conn->iss - 1, false);
	}
	assert_in_range(bytes, 985000, 1017000);
	assert_true(wakes < 2200); /* the wheel may wake once early */
	bench_free(b);
}

/* A host that comes late makes up for it, but not for a time in which there was nothing. */
static void rate__late_hosts_and_idle_ones(void **state)
{
	struct bench *b = open_with(TAS_CONSTANT, 0, 0);
	u32 i, n;

	(void)state;
	assert_int_equal(tas_set_rate(b->conn, 10000000), 0);
	tas_written(&b->engine, b->conn, 1000000);
	drain(b);
	for (i = 0, n = 0; i < 100; i++) {
		tick(b, 500000); /* five segments' time */
		n += drain(b);
	}
	assert_in_range(n, 480, 520);
	tas_written(&b->engine, b->conn, 1);
	tick(b, TAS_SEC);
	drain(b);
	ack_of(b, b->conn->f.snd_nxt - b->conn->iss - 1, false);
	tick(b, 60 * TAS_SEC);
	drain(b);
	ack_of(b, b->conn->f.snd_nxt - b->conn->iss - 1, false);
	tas_written(&b->engine, b->conn, 100000);
	assert_true(drain(b) <= 2);
	tas_abort(&b->engine, b->conn);
	bench_free(b);
}

/* Listeners and connections choose; a piece is never more than what there is to send. */
static void rate__chosen(void **state)
{
	struct bench *b = bench_new(1500);
	struct tas_conn *conn;

	(void)state;
	listen_at(b, 4);
	conn = syn_from(b, 3000);
	assert_int_equal(conn->control, TAS_NEWRENO);
	assert_false(conn->f.flags & TAS_F_PACED);
	b->listener.control = TAS_TIMELY + 1;
	conn = syn_from(b, 3001);
	assert_int_equal(conn->control, TAS_TIMELY);
	assert_true(conn->f.flags & TAS_F_PACED);
	assert_int_equal(tas_set_control(conn, TAS_CUBIC), 0);
	assert_false(conn->f.flags & TAS_F_PACED);
	bench_free(b);
	b = bench_new(1500);
	tas_set(&b->engine, "max_segment", 536);
	case_open(b, 0, 0);
	tas_written(&b->engine, b->conn, 700);
	assert_true(sent(b));
	assert_int_equal(b->out.length, 700);
	assert_int_equal(b->conn->f.snd_nxt, b->conn->f.snd_end);
	bench_free(b);
}

/* Windows can be paced: what a window lets through does not leave at once. */
static void rate__paced_window(void **state)
{
	struct bench *b = bench_new(1500);
	u32 at_once;

	(void)state;
	tas_set(&b->engine, "pacing", 1);
	case_open(b, 0, 0);
	tas_written(&b->engine, b->conn, 20000);
	at_once = drain(b);
	tick(b, RTT);
	ack_of(b, b->conn->f.snd_nxt - b->conn->iss - 1, false);
	tas_written(&b->engine, b->conn, 20000);
	assert_true(b->conn->rate.rate > 0);
	at_once = drain(b);
	assert_true(at_once <= 2);
	tick(b, RTT / 4);
	assert_true(drain(b) > 0);
	bench_free(b);
}

#define CASE(name) cmocka_unit_test(rate__##name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(doubles_and_then_adds),
		CASE(shrinks_with_marks),
		CASE(follows_what_arrives),
		CASE(halves_after_a_loss),
		CASE(timely_sees_the_trend),
		CASE(timely_when_nothing_arrives),
		CASE(constant),
		CASE(late_hosts_and_idle_ones),
		CASE(chosen),
		CASE(paced_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
