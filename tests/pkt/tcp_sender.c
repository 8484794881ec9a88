// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The sender: small windows, losses that were none, and paths that drop long packets. */
#include "tcp_bench.h"

/* An ACK of byte @at with window @window, which echoes timestamp @echo. */
static void ack_with(struct bench *b, u32 at, u16 window, u32 echo)
{
	bool ts = b->conn->f.flags & TAS_F_TS;

	in(b, (struct tas_segment){ .flags = TAS_ACK,
				    .seq = b->conn->f.rcv_nxt,
				    .ack = b->conn->iss + 1 + at,
				    .window = window,
				    .options = ts ? TAS_OPT_TS : 0,
				    .ts = 1,
				    .ts_echo = echo });
}

/* RFC 9293, 3.8.6.2.1: half of the largest window that there ever was. */
static void sender__half_of_the_largest_window(void **state)
{
	struct bench *b = bench_new(1500);

	(void)state;
	assert_int_equal(tas_connect(&b->engine, &b->pair, 16, 65536, &b->conn),
			 0);
	assert_true(sent(b));
	in(b, (struct tas_segment){ .flags = TAS_SYN | TAS_ACK,
				    .seq = IRS,
				    .ack = b->conn->iss + 1,
				    .window = 400,
				    .options = TAS_OPT_MSS,
				    .mss = MSS });
	drain(b);
	tas_written(&b->engine, b->conn, 3000);
	assert_true(sent(b));
	assert_int_equal(b->out.length, 400);
	assert_false(sent(b));
	ack_with(b, 400, 199, 0);
	assert_false(sent(b));
	ack_with(b, 400, 200, 0);
	assert_true(sent(b));
	assert_int_equal(b->out.length, 200);
	/* A little of a window that was large is waited for. */
	ack_with(b, 600, 65535, 0);
	drain(b);
	tas_written(&b->engine, b->conn, 3000);
	drain(b);
	ack_with(b, 6000, 900, 0);
	tas_written(&b->engine, b->conn, 3000);
	assert_false(sent(b));
	bench_free(b);
}

/* A timeout while the segments were only late: all is as before it. */
static void late(bool was_late)
{
	struct bench *b = bench_new(1500);
	u32 cwnd, ts;

	case_open(b, TAS_OPT_TS | TAS_OPT_SACK_OK, 0);
	tas_set(&b->engine, "tail_loss_probe", 0);
	cwnd = b->conn->f.cwnd;
	tas_written(&b->engine, b->conn, 5000);
	assert_true(sent(b));
	ts = b->seg.ts;
	drain(b);
	tick(b, 500 * TAS_MSEC);
	assert_true(b->conn->f.flags & TAS_F_LOSS);
	assert_true(sent(b));
	assert_int_equal(b->conn->f.cwnd, b->conn->f.mss);
	ack_with(b, b->conn->f.mss, 65535, was_late ? ts : b->seg.ts);
	assert_int_equal(b->engine.metrics.repairs_undone, was_late);
	if (was_late) {
		assert_true(b->conn->f.cwnd >= cwnd);
		assert_false(b->conn->f.flags & TAS_F_LOSS);
		assert_false(sent(b));
	} else {
		assert_true(b->conn->f.cwnd < cwnd);
		assert_true(sent(b));
		assert_true(b->conn->f.flags & TAS_F_LOSS);
		/* Only the first ACK tells. */
		ack_with(b, 2 * b->conn->f.mss, 65535, ts);
		assert_int_equal(b->engine.metrics.repairs_undone, 0);
	}
	bench_free(b);
}

static void sender__late_and_not_lost(void **state)
{
	(void)state;
	late(true);
}

static void sender__lost_and_not_late(void **state)
{
	(void)state;
	late(false);
}

/* A path that drops what is long, and an outage, in which nothing arrives. */
static void sender__a_black_hole(void **state)
{
	struct bench *b = bench_new(1500);
	u32 mss, sizes[2] = { 0, 0 }, i;

	(void)state;
	case_open(b, TAS_OPT_SACK_OK, 0);
	mss = b->conn->f.mss;
	tas_written(&b->engine, b->conn, 5000);
	drain(b);
	for (i = 0; i < 2000 && !b->engine.metrics.black_holes; i++) {
		tick(b, 100 * TAS_MSEC);
		while (sent(b))
			sizes[0] = b->out.length;
	}
	assert_int_equal(b->conn->backoff, 4);
	assert_int_equal(sizes[0], 1500 / 2 - 40);
	for (i = 0; i < 2000 && b->conn->backoff < 8; i++) {
		tick(b, 100 * TAS_MSEC);
		while (sent(b))
			sizes[1] = b->out.length;
	}
	assert_int_equal(sizes[1], mss);
	assert_int_equal(b->conn->f.mss, mss);
	bench_free(b);
}

/* For @ms, with a round trip of 200 ms, all that may be sent is, and arrives. */
static void full_for(struct bench *b, u32 ms)
{
	u32 sent_bytes;

	for (; ms >= 200; ms -= 200) {
		tas_written(&b->engine, b->conn, 2 * b->conn->f.cwnd);
		drain(b);
		tick(b, 200 * TAS_MSEC);
		sent_bytes = b->conn->f.snd_nxt - b->conn->iss - 1;
		ack(b, sent_bytes);
	}
}

/* RFC 9438, 4.2: 0.4 * (t - 4.2 s)^3 + 100 segments, after a loss at 100. */
static void sender__a_cubic_curve(void **state)
{
	struct bench *b = bench_new(1500);
	u32 mss;

	(void)state;
	case_open(b, TAS_OPT_WSCALE, 0);
	mss = b->conn->f.mss;
	assert_int_equal(tas_set_control(b->conn, TAS_CONTROLS), TAS_EINVAL);
	assert_int_equal(tas_set_control(b->conn, TAS_CUBIC), 0);
	/* Room for that, and a loss while all of it is under way. */
	in(b, (struct tas_segment){ .flags = TAS_ACK,
				    .seq = IRS + 1,
				    .ack = b->conn->iss + 1,
				    .window = 65535 });
	b->conn->f.cwnd = 100 * mss;
	tas_written(&b->engine, b->conn, 200 * mss);
	drain(b);
	ack(b, 0);
	ack(b, 0);
	ack(b, 0);
	assert_true(b->conn->f.flags & TAS_F_RECOVERY);
	assert_in_range(b->conn->ssthresh, 67 * mss, 70 * mss);
	b->conn->f.cwnd = b->conn->ssthresh;
	b->conn->f.flags &= ~TAS_F_RECOVERY;
	b->conn->rtx_nxt = b->conn->rtx_end = b->conn->f.snd_una;
	ack(b, b->conn->f.snd_nxt - b->conn->iss - 1);
	b->conn->srtt = 200 * TAS_MSEC;
	full_for(b, 2200);
	assert_in_range(b->conn->f.cwnd, 95 * mss, 98 * mss);
	full_for(b, 2000);
	assert_in_range(b->conn->f.cwnd, 99 * mss, 101 * mss);
	full_for(b, 4200);
	assert_in_range(b->conn->f.cwnd, 124 * mss, 134 * mss);
	bench_free(b);
}

/* The peer has bytes from @start to @end, counted from 0, and nothing before them. */
static void sack(struct bench *b, u32 start, u32 end)
{
	u32 first = b->conn->iss + 1;

	in(b, (struct tas_segment){ .flags = TAS_ACK,
				    .seq = IRS + 1,
				    .ack = first,
				    .window = 65535,
				    .options = TAS_OPT_SACK,
				    .num_sacks = 1,
				    .sack[0] = { first + start, first + end } });
}

/* A retransmission that is lost, too, is found by what was sent after it, without a timeout. */
static void sender__lost_again(void **state)
{
	struct bench *b = bench_new(1500);
	u32 edge, i;

	(void)state;
	case_open(b, TAS_OPT_WSCALE | TAS_OPT_SACK_OK, 0);
	ack(b, 0);
	b->conn->f.cwnd = 100 * MSS;
	b->conn->ssthresh = 100 * MSS;
	tas_set(&b->engine, "max_segment", 536);
	tas_written(&b->engine, b->conn, 20 * MSS);
	drain(b);
	for (i = 1; i < 20; i++)
		sack(b, MSS, (i + 1) * MSS);
	assert_true(b->conn->f.flags & TAS_F_RECOVERY);
	assert_true(sent(b));
	assert_int_equal(b->seg.seq, b->conn->iss + 1);
	assert_false(sent(b));
	edge = 20 * MSS;
	tas_written(&b->engine, b->conn, 5 * MSS);
	assert_int_equal(drain(b), 5);
	sack(b, MSS, edge + MSS);
	sack(b, MSS, edge + 2 * MSS);
	assert_false(sent(b));
	sack(b, MSS, edge + 3 * MSS);
	assert_true(sent(b));
	assert_int_equal(b->seg.seq, b->conn->iss + 1);
	assert_int_equal(b->out.length, MSS);
	assert_int_equal(b->engine.metrics.lost_again, 1);
	assert_int_equal(b->engine.metrics.timeouts, 0);
	/* Once for each time. */
	sack(b, MSS, edge + 4 * MSS);
	assert_false(sent(b));
	bench_free(b);
}

/* What srtt is after an ACK that only a timestamp dates, @ticks milliseconds old, ns. */
static u64 srtt_after(u64 srtt, u32 ticks)
{
	struct bench *b = bench_new(1500);

	case_open(b, TAS_OPT_TS | TAS_OPT_WSCALE, 0);
	ack_with(b, 0, 65535, b->seg.ts);
	tick(b, 100 * TAS_MSEC);
	tas_written(&b->engine, b->conn, 5 * MSS);
	drain(b);
	b->conn->rtt_at = 0;
	b->conn->srtt = srtt;
	ack_with(b, 1000, 65535, b->engine.clock_ms + b->conn->ts_offset - ticks);
	srtt = b->conn->srtt;
	bench_free(b);
	return srtt;
}

/* The clock of timestamps has ticks of 1 ms: one that came back in the next tick does not make 1 ms
 * of a round trip of 100 us. */
static void sender__timestamps_say_what_a_tick_can(void **state)
{
	u64 us = 1000;

	(void)state;
	assert_int_equal(srtt_after(100 * us, 0), 100 * us);
	assert_int_equal(srtt_after(100 * us, 1), 100 * us);
	assert_true(srtt_after(100 * us, 2) > 100 * us);
	assert_int_equal(srtt_after(4500 * us, 4), 4500 * us);
	assert_int_equal(srtt_after(4500 * us, 5), 4500 * us);
	assert_true(srtt_after(4500 * us, 6) > 4500 * us);
	assert_true(srtt_after(4500 * us, 3) < 4500 * us);
	/* The first measurement of all counts. */
	assert_int_equal(srtt_after(0, 3), 3 * TAS_MSEC);
}

#define CASE(name) cmocka_unit_test(sender__##name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(half_of_the_largest_window),
		CASE(late_and_not_lost),
		CASE(lost_and_not_late),
		CASE(a_black_hole),
		CASE(a_cubic_curve),
		CASE(lost_again),
		CASE(timestamps_say_what_a_tick_can),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
