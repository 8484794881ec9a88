// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The short form of a connection's book-keeping is only a way to write it: two engines,
 * of which the second never uses it (its connection has a user timeout of a year), do
 * the same things at the same times, bit by bit, whatever a peer and an application do
 * from a seed. But round trips are measured less often in the short form, so neither
 * measures any here.
 */
#include <stdio.h>

#include "tcp_bench.h"
#include "tas_impl.h"

#define SEEDS 300u
#define STEPS 400u
#define YEAR (365 * 86400 * TAS_SEC)
#define TRIP (5 * TAS_MSEC)

static struct bench *b[2];
static struct homa_rng rng;

static u32 draw(u32 n)
{
	return (u32)homa_rng_below(&rng, n);
}

static void same_out(void)
{
	u32 i, n = 0;
	bool more[2];

	do {
		for (i = 0; i < 2; i++)
			more[i] = tas_next_out(&b[i]->engine, &b[i]->out);
		assert_int_equal(more[0], more[1]);
		if (!more[0])
			return;
		assert_int_equal(b[0]->out.header_length,
				 b[1]->out.header_length);
		assert_memory_equal(b[0]->out.header, b[1]->out.header,
				    b[0]->out.header_length);
		assert_memory_equal(b[0]->out.pair, b[1]->out.pair,
				    sizeof(*b[0]->out.pair));
		assert_int_equal(b[0]->out.from, b[1]->out.from);
		assert_int_equal(b[0]->out.length, b[1]->out.length);
		assert_int_equal(b[0]->out.mss, b[1]->out.mss);
		assert_int_equal(b[0]->out.ecn, b[1]->out.ecn);
		assert_true(!b[0]->out.conn == !b[1]->out.conn);
	} while (++n < 10000);
	fail_msg("it sends for ever");
}

static void same_events(void)
{
	u32 i, events[2] = { 0, 0 };

	for (i = 0; i < 2; i++)
		if (!tas_next_event(&b[i]->engine, &events[i]))
			events[i] = 0;
	assert_int_equal(events[0], events[1]);
}

/* A window that says nothing any more, once nothing was sent for a while, may be narrowed
 * before it is used. */
static u32 cwnd_of(const struct bench *at)
{
	const struct tas_conn *c = at->conn;
	u32 first = at->engine.params.initial_window * c->f.mss;

	if (tas_in_flight(c) || !c->sent_at || at->now - c->sent_at <= c->rto)
		return c->f.cwnd;
	return homa_min_u32(c->f.cwnd, first);
}

static void same_state(void)
{
	const struct tas_conn *c[2] = { b[0]->conn, b[1]->conn };
	u32 flags = ~(u32)(TAS_F_SHORT | TAS_F_UNTIMED), i;

	assert_int_equal(c[0]->f.flags & flags, c[1]->f.flags & flags);
	assert_memory_equal(&c[0]->f.rcv_nxt, &c[1]->f.rcv_nxt,
			    offsetof(struct tas_flow, cwnd) -
				    offsetof(struct tas_flow, rcv_nxt));
	assert_int_equal(cwnd_of(b[0]), cwnd_of(b[1]));
	/* But for @quick, which counts for nothing once replies carry the ACKs. */
	assert_memory_equal(&c[0]->f.ts_recent, &c[1]->f.ts_recent,
			    offsetof(struct tas_flow, quick) -
				    offsetof(struct tas_flow, ts_recent));
	assert_memory_equal(&c[0]->segs_in, &c[1]->segs_in, 16);
	assert_int_equal(homa_max_u64(c[0]->heard_at, c[0]->data_at),
			 c[1]->heard_at);
	assert_int_equal(tas_after(c[0]->snd_small, c[0]->f.snd_una),
			 tas_after(c[1]->snd_small, c[1]->f.snd_una));
	assert_int_equal(c[0]->snd_most, c[1]->snd_most);
	assert_int_equal(c[0]->sent_at, c[1]->sent_at);
	for (i = 0; i < TAS_TIMERS; i++)
		assert_int_equal(tas_deadline(&b[0]->engine, c[0], i),
				 tas_deadline(&b[1]->engine, c[1], i));
}

static void pin(void)
{
	u32 i;

	for (i = 0; i < 2; i++) {
		b[i]->conn->srtt = TRIP;
		b[i]->conn->rttvar = 0;
		b[i]->conn->rto =
			TRIP + b[i]->engine.params.rto_min_ms * TAS_MSEC;
		b[i]->conn->rtt_at = 0;
		b[i]->conn->measure_at = b[i]->now + TAS_TIMED_NS;
	}
}

static void arrive(const struct tas_segment *seg, u32 payload)
{
	u8 packet[2000] = { 0 };
	u32 i, header = tas_encode(seg, packet);

	homa_put_be16(packet, b[0]->pair.remote_port);
	homa_put_be16(packet + 2, b[0]->pair.local_port);
	for (i = 0; i < 2; i++) {
		tas_set_now(&b[i]->engine, b[i]->now, 1000);
		assert_int_equal(tas_rx_packet(&b[i]->engine, &b[i]->pair, packet,
					       header + payload, 0, &b[i]->copy),
				 0);
	}
	assert_true(!b[0]->copy.conn == !b[1]->copy.conn);
	if (!b[0]->copy.conn)
		return;
	assert_int_equal(b[0]->copy.from, b[1]->copy.from);
	assert_int_equal(b[0]->copy.length, b[1]->copy.length);
	assert_int_equal(b[0]->copy.to, b[1]->copy.to);
}

/* A segment that the peer may send now, with @payload bytes. */
static struct tas_segment usual(u32 payload)
{
	const struct tas_flow *f = &b[1]->conn->f;
	struct tas_segment seg = { .flags = TAS_ACK,
				   .seq = f->rcv_nxt,
				   .ack = f->snd_nxt,
				   .window = 60000,
				   .ts = b[1]->engine.clock_ms,
				   .ts_echo = b[1]->engine.clock_ms +
					      b[1]->conn->ts_offset };

	if (payload)
		seg.flags |= TAS_PSH;
	if (f->flags & TAS_F_TS)
		seg.options = TAS_OPT_TS;
	if (!draw(4))
		seg.ack -= draw(f->snd_nxt - f->snd_una + 1);
	return seg;
}

static u32 fits(u32 payload)
{
	const struct tas_flow *f = &b[1]->conn->f;

	return homa_min_u32(payload, f->rcv_edge - f->rcv_nxt);
}

static void strange(void)
{
	u32 payload = fits(1 + draw(300));
	struct tas_segment seg = usual(payload);

	switch (draw(10)) {
	case 0:
		seg.seq += 1 + draw(500);
		break;
	case 1:
		seg.seq -= 1 + draw(500);
		break;
	case 2:
		seg.ack -= 1 + draw(2000);
		break;
	case 3:
		seg.window = (u16)draw(3000);
		break;
	case 4:
		seg.flags |= TAS_URG;
		break;
	case 5:
		seg.options ^= TAS_OPT_TS;
		break;
	case 6:
		seg.ts -= 1 + draw(100);
		break;
	case 7:
		seg.ack += 1 + draw(2000);
		break;
	case 8:
		payload = fits(MSS);
		break;
	default:
		seg.options |= TAS_OPT_SACK;
		seg.num_sacks = 1;
		seg.sack[0].start = seg.ack + 1;
		seg.sack[0].end = seg.ack + draw(100);
	}
	arrive(&seg, payload);
}

static void application(void)
{
	u32 i, n = draw(20) ? 1 + draw(400) : 1 + draw(6000);

	for (i = 0; i < 2; i++) {
		if (tas_unacked(b[i]->conn) < 20000)
			tas_written(&b[i]->engine, b[i]->conn, n);
	}
}

static void reads(void)
{
	u32 i, n = draw(3) ? UINT32_MAX : draw(500);

	for (i = 0; i < 2; i++)
		tas_taken(&b[i]->engine, b[i]->conn, n);
}

static void options(void)
{
	u32 i, flag = draw(2) ? TAS_F_NODELAY : TAS_F_CORK;

	for (i = 0; i < 2; i++) {
		b[i]->conn->f.flags ^= flag;
		tas_options(&b[i]->engine, b[i]->conn);
	}
}

/* A deadline lies so little before @then that it depends on the wheel who has found it. */
static bool just_before(u64 then)
{
	u32 i;

	for (i = 0; i < TAS_TIMERS; i++) {
		u64 deadline = tas_deadline(&b[1]->engine, b[1]->conn, i);

		if (deadline <= then && then - deadline <= 2 * TAS_MSEC)
			return true;
	}
	return false;
}

static void passes(void)
{
	static const u32 ms[] = { 0, 1, 3, 5, 5, 5, 20, 45, 250 };
	u64 after = ms[draw(HOMA_ARRAY_SIZE(ms))] * TAS_MSEC;
	u32 i;

	while (just_before(b[1]->now + after))
		after += TAS_MSEC;
	for (i = 0; i < 2; i++)
		tick(b[i], after);
}

static void step(void)
{
	u32 payload = fits(1 + draw(400)), what = draw(100);
	struct tas_segment seg;

	if (what < 30) {
		seg = usual(payload);
		arrive(&seg, payload);
	} else if (what < 40) {
		seg = usual(0);
		arrive(&seg, 0);
	} else if (what < 62) {
		application();
	} else if (what < 78) {
		reads();
	} else if (what < 96) {
		passes();
	} else if (what < 97) {
		options();
	} else {
		strange();
	}
	same_out();
	pin();
	same_events();
	same_state();
}

static void open_both(u64 seed)
{
	u8 with = (u8)((seed % 2 ? TAS_OPT_TS : 0) |
		       (seed % 3 ? TAS_OPT_SACK_OK : 0) |
		       (seed % 5 ? TAS_OPT_WSCALE : 0));
	u32 i;

	homa_rng_init(&rng, seed);
	for (i = 0; i < 2; i++) {
		b[i] = bench_new(1500);
		if (seed % 4 == 3)
			b[i]->pair.remote[0] = b[i]->pair.local[0] = 0xfd;
		tas_set(&b[i]->engine, "congestion", seed % 3);
		case_open(b[i], with, 0);
	}
	b[1]->conn->user_timeout = YEAR;
	assert_int_equal(b[0]->conn->iss, b[1]->conn->iss);
}

static void short__is_only_a_way_to_write_it(void **state)
{
	u64 seed, usual_in = 0, usual_out = 0, others = 0;
	u32 i;

	(void)state;
	for (seed = 1; seed <= SEEDS; seed++) {
		open_both(seed);
		for (i = 0; i < STEPS; i++)
			step();
		usual_in += b[0]->engine.metrics.usual_segments;
		usual_out += b[0]->engine.metrics.usual_sent;
		others += b[1]->engine.metrics.usual_segments +
			  b[1]->engine.metrics.usual_sent;
		for (i = 0; i < 2; i++)
			bench_free(b[i]);
	}
	print_message("%llu in, %llu out\n", (unsigned long long)usual_in,
		      (unsigned long long)usual_out);
	/* Each way was taken, and the second engine never took it. */
	assert_true(usual_in > SEEDS * STEPS / 20);
	assert_true(usual_out > SEEDS * STEPS / 20);
	assert_int_equal(others, 0);
}

/* One after another, @n times: a byte is written, sent, and acknowledged after @trip. */
static void exchange(struct bench *at, u32 n, u64 trip)
{
	struct tas_segment seg = {
		.flags = TAS_ACK, .sport = 2000, .dport = 80, .window = 60000
	};
	u8 packet[TAS_HDR_MAX + 1] = { 0 };
	u32 header;

	while (n--) {
		tas_written(&at->engine, at->conn, 1);
		assert_true(sent(at));
		assert_false(sent(at));
		tick(at, trip);
		seg.seq = at->conn->f.rcv_nxt;
		seg.ack = at->conn->f.snd_nxt;
		header = tas_encode(&seg, packet);
		tas_rx_packet(&at->engine, &at->pair, packet, header + 1, 0,
			      &at->copy);
		tas_taken(&at->engine, at->conn, 1);
		hear(at);
	}
}

static void short__round_trips_are_measured(void **state)
{
	struct bench *at = bench_new(1500);
	u64 before;

	(void)state;
	case_open(at, 0, 0);
	exchange(at, 100, 20 * TAS_MSEC);
	assert_true(at->conn->srtt > 19 * TAS_MSEC &&
		    at->conn->srtt < 21 * TAS_MSEC);
	/* Each millisecond at least, however many there are. */
	before = at->engine.metrics.usual_segments;
	exchange(at, 10000, 10000);
	assert_true(at->engine.metrics.usual_segments - before > 9900);
	assert_true(at->conn->srtt < 11000);
	exchange(at, 100, 30 * TAS_MSEC);
	assert_true(at->conn->srtt > 29 * TAS_MSEC &&
		    at->conn->srtt < 31 * TAS_MSEC);
	bench_free(at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short__round_trips_are_measured),
		cmocka_unit_test(short__is_only_a_way_to_write_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
