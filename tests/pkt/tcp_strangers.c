// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What strangers and peers without manners send, in number: floods, guesses, options that
 * lie, bytes that contradict others. It costs memory that is bounded, and the connection
 * beside it, which exchanges a byte each millisecond, never has to wait.
 */
#include "tcp_bench.h"

#define SECOND 1000u  /* rounds of a millisecond */
#define PER_ROUND 10u /* 10,000 segments of strangers each second */
#define BACKLOG 16u
#define EXCEPTIONS 64u /* of a round */

static struct homa_rng rng;

static u32 draw(u32 n)
{
	return (u32)homa_rng_below(&rng, n);
}

/* A segment with @payload bytes arrives from @pair's remote end; *@copy is what to do. */
static int arrive(struct bench *b, struct tas_pair pair, struct tas_segment seg,
		  u32 payload, struct tas_copy *copy)
{
	u8 packet[2000] = { 0 };
	u32 header;

	seg.sport = pair.remote_port;
	seg.dport = pair.local_port;
	header = tas_encode(&seg, packet);
	return tas_rx_packet(&b->engine, &pair, packet, header + payload, 0,
			     copy);
}

/* A connection to port 80 that a client has opened, and that its application has accepted. */
static struct tas_conn *open_one(struct bench *b)
{
	struct tas_conn *conn;

	listen_at(b, BACKLOG);
	conn = syn_from(b, 2000);
	ack_syn(b, conn);
	assert_ptr_equal(tas_next_ready(&b->engine), &b->listener);
	assert_ptr_equal(tas_accept(&b->engine, &b->listener), conn);
	hear(b);
	b->conn = conn;
	return conn;
}

/* A round: the peer sends a byte and has all that we sent, @strangers come, the application
 * answers. What is sent besides the answer is counted. */
static u32 round_with(struct bench *b, void (*strangers)(struct bench *b))
{
	struct tas_conn *conn = b->conn;
	struct tas_segment seg = { .flags = TAS_ACK, .window = 60000 };
	u32 others = 0, answers = 0;

	b->now += TAS_MSEC;
	tas_set_now(&b->engine, b->now, EXCEPTIONS);
	tas_timers(&b->engine, 1000);
	strangers(b);
	seg.seq = conn->f.rcv_nxt;
	seg.ack = conn->f.snd_nxt;
	assert_int_equal(arrive(b, conn->f.pair, seg, 1, &b->copy), 0);
	assert_ptr_equal(b->copy.conn, conn);
	assert_int_equal(b->copy.length, 1);
	assert_int_equal(tas_readable(conn), 1);
	assert_int_equal(tas_unacked(conn), 0);
	tas_taken(&b->engine, conn, 1);
	assert_int_equal(tas_written(&b->engine, conn, 1), 0);
	hear(b);
	while (tas_next_out(&b->engine, &b->out)) {
		answers += b->out.conn == conn && b->out.length == 1;
		others += b->out.conn != conn;
	}
	assert_int_equal(answers, 1);
	return others;
}

static struct tas_pair from_anywhere(const struct bench *b, u16 port)
{
	struct tas_pair pair = b->pair;

	homa_put_be32(pair.remote + 12, 0x0b000000u + draw(1 << 24));
	pair.remote_port = (u16)(1024 + draw(60000));
	pair.local_port = port;
	return pair;
}

static void syns(struct bench *b)
{
	struct tas_copy copy;
	u32 i;

	for (i = 0; i < PER_ROUND; i++)
		arrive(b, from_anywhere(b, 80),
		       (struct tas_segment){ .flags = TAS_SYN,
					     .seq = draw(UINT32_MAX),
					     .window = 65535,
					     .options = TAS_OPT_MSS,
					     .mss = 1460 },
		       0, &copy);
}

/* Ten seconds of forged SYNs; then a client that answers its cookie still gets in. */
static void strangers__a_flood_of_syns(void **state)
{
	struct bench *b = bench_new(1500);
	struct tas_segment seg = { .flags = TAS_SYN, .seq = IRS, .window = 65535 };
	u32 spare, i, replies = 0;

	(void)state;
	open_one(b);
	spare = b->engine.num_spare;
	for (i = 0; i < 10 * SECOND; i++) {
		replies += round_with(b, syns);
		assert_true(b->listener.num_half <= BACKLOG);
		assert_true(b->engine.num_spare + BACKLOG >= spare);
	}
	/* All but those that are remembered, which are sent again a few times, are cookies. */
	assert_true(replies <= 10 * SECOND * PER_ROUND + 8 * BACKLOG);
	assert_true(b->engine.metrics.cookies_sent > 9 * SECOND * PER_ROUND);
	assert_true(b->listener.num_half > 0);
	b->pair.remote_port = 3000;
	in(b, seg);
	assert_true(sent(b));
	seg.flags = TAS_ACK;
	seg.seq = IRS + 1;
	seg.ack = b->seg.seq + 1;
	in(b, seg);
	assert_int_equal(b->engine.metrics.cookies_taken, 1);
	assert_non_null(tas_accept(&b->engine, &b->listener));
	tas_unlisten(&b->engine, &b->listener);
	bench_free(b);
}

/* More than the slow path takes in a round: the rest is dropped, and nobody else waits. */
static void strangers__more_than_a_turn(void **state)
{
	struct bench *b = bench_new(1500);
	u32 i;

	(void)state;
	open_one(b);
	for (i = 0; i < SECOND; i++) {
		syns(b);
		syns(b);
		syns(b);
		syns(b);
		syns(b);
		syns(b);
		syns(b);
		round_with(b, syns);
	}
	assert_true(b->engine.metrics.slow_drops > 0);
	tas_unlisten(&b->engine, &b->listener);
	bench_free(b);
}

static void at_closed_ports(struct bench *b)
{
	static const u8 flags[] = { TAS_SYN,	       TAS_ACK,
				    TAS_ACK | TAS_FIN, TAS_RST,
				    TAS_SYN | TAS_ACK, 0 };
	struct tas_copy copy;
	u32 i;

	for (i = 0; i < PER_ROUND; i++) {
		arrive(b, from_anywhere(b, (u16)(81 + draw(1000))),
		       (struct tas_segment){
			       .flags = flags[draw(HOMA_ARRAY_SIZE(flags))],
			       .seq = draw(UINT32_MAX),
			       .ack = draw(UINT32_MAX) },
		       draw(100), &copy);
		assert_null(copy.conn);
	}
}

static void strangers__a_flood_at_closed_ports(void **state)
{
	struct bench *b = bench_new(1500);
	u32 spare, i, resets = 0;

	(void)state;
	open_one(b);
	spare = b->engine.num_spare;
	for (i = 0; i < 10 * SECOND; i++)
		resets += round_with(b, at_closed_ports);
	assert_int_equal(b->engine.num_spare, spare);
	assert_int_equal(b->engine.table.count, 1);
	assert_true(resets > 10 * b->engine.params.resets / 2);
	assert_true(resets <= 11 * (b->engine.params.resets * 3 / 2 + 1));
	assert_true(b->engine.metrics.reset_drops > 0);
	tas_unlisten(&b->engine, &b->listener);
	bench_free(b);
}

/* Who knows the ends of the connection and nothing more. */
static void guesses(struct bench *b)
{
	struct tas_conn *conn = b->conn;
	struct tas_segment seg;
	struct tas_copy copy;
	u32 i, payload;

	for (i = 0; i < PER_ROUND; i++) {
		seg = (struct tas_segment){ .seq = draw(UINT32_MAX),
					    .ack = draw(UINT32_MAX),
					    .window = (u16)draw(65536) };
		payload = 0;
		switch (draw(4)) {
		case 0:
			seg.flags = TAS_RST;
			break;
		case 1:
			seg.flags = TAS_SYN;
			break;
		case 2: /* half of them inside the window */
			seg.flags = TAS_RST | TAS_ACK;
			seg.seq = conn->f.rcv_nxt + 1 + draw(60000);
			break;
		default: /* and with an ACK that nobody could have meant */
			seg.flags = TAS_ACK | TAS_PSH;
			seg.seq = conn->f.rcv_nxt - 100 + draw(200);
			seg.ack = conn->f.snd_nxt + 1 + draw(1u << 30);
			payload = 1 + draw(200);
		}
		if (seg.seq == conn->f.rcv_nxt && (seg.flags & TAS_RST))
			continue;
		arrive(b, conn->f.pair, seg, payload, &copy);
		assert_null(copy.conn);
		assert_int_equal(conn->f.state, TAS_ESTABLISHED);
	}
}

static void strangers__guesses(void **state)
{
	struct bench *b = bench_new(1500);
	u32 i;

	(void)state;
	open_one(b);
	for (i = 0; i < 10 * SECOND; i++)
		assert_int_equal(round_with(b, guesses), 0);
	assert_true(b->engine.metrics.challenge_acks > 0);
	/* One in half a second of each connection. */
	assert_true(b->engine.metrics.challenge_acks <= 21);
	tas_unlisten(&b->engine, &b->listener);
	bench_free(b);
}

/* Bytes that were readable once are never written again, whatever a peer sends. */
static void strangers__bytes_that_contradict(void **state)
{
	struct bench *b = bench_new(1500);
	struct tas_conn *conn = open_one(b);
	struct tas_segment seg = { .flags = TAS_ACK, .window = 60000 };
	u32 i, n, from, ready;

	(void)state;
	for (i = 0; i < 100000; i++) {
		seg.seq = conn->f.rcv_nxt - 3000 + draw(6000);
		seg.ack = conn->f.snd_nxt;
		n = 1 + draw(1400);
		from = conn->f.rcv_read;
		ready = conn->f.rcv_nxt;
		tas_set_now(&b->engine, b->now += 1000, EXCEPTIONS);
		arrive(b, conn->f.pair, seg, n, &b->copy);
		if (b->copy.conn) {
			u32 to = b->copy.to + conn->irs + 1;

			assert_true(!tas_before(to, ready));
			assert_true(to + b->copy.length - from <=
				    tas_rx_size(conn));
			assert_true(b->copy.from >= TAS_HDR);
			assert_true(b->copy.from + b->copy.length <= TAS_HDR + n);
			assert_int_equal(seg.seq + b->copy.from - TAS_HDR, to);
		}
		assert_true(conn->f.gaps <= b->engine.params.max_intervals);
		if (!draw(3))
			tas_taken(&b->engine, conn, draw(4000));
		drain(b);
		hear(b);
	}
	assert_int_equal(conn->f.state, TAS_ESTABLISHED);
	assert_true(b->engine.metrics.duplicates > 0 &&
		    b->engine.metrics.out_of_order > 0);
	tas_unlisten(&b->engine, &b->listener);
	bench_free(b);
}

/* Options of a SYN, or of a segment, that lie about their length or say what cannot be. */
static const struct {
	u8 length;
	u8 bytes[40];
} lies[] = {
	{ 4, { 2, 0 } },
	{ 4, { 2, 1 } },
	{ 4, { 2, 5, 0, 0 } },
	{ 4, { 1, 1, 1, 8 } },
	{ 4, { 2, 4, 0, 0 } },	 /* segments of no byte */
	{ 4, { 2, 4, 0, 1 } },	 /* of one */
	{ 4, { 3, 3, 255, 0 } }, /* windows times 2^255 */
	{ 4, { 3, 2, 1, 1 } },
	{ 12, { 8, 9, 1, 1, 1, 1, 1, 1, 1 } },
	{ 12, { 8, 12, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255 } },
	{ 12, { 1, 1, 5, 10, 255, 255, 255, 255, 0, 0, 0, 0 } },
	{ 12, { 1, 1, 5, 3, 7 } },
	{ 40, { 253, 40, 255, 255 } },
	{ 40, { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
		1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 8 } },
	{ 40, { 2, 4, 1, 0,  2, 4, 2,  0, 2, 4, 3,
		0, 3, 3, 14, 3, 3, 13, 4, 2, 4, 2 } },
};

/* A header with lie @i. */
static void lie(struct bench *b, struct tas_pair pair, struct tas_segment seg,
		u32 i)
{
	u8 packet[TAS_HDR_MAX + 100] = { 0 };
	struct tas_copy copy;

	seg.sport = pair.remote_port;
	seg.dport = pair.local_port;
	tas_encode(&seg, packet);
	memcpy(packet + TAS_HDR, lies[i].bytes, lies[i].length);
	packet[12] = (u8)((TAS_HDR + lies[i].length) / 4 << 4);
	tas_set_now(&b->engine, b->now, EXCEPTIONS);
	tas_rx_packet(&b->engine, &pair, packet, TAS_HDR + lies[i].length, 0,
		      &copy);
	assert_null(copy.conn);
}

static void nobody(struct bench *b)
{
	(void)b;
}

static void strangers__options_that_lie(void **state)
{
	struct bench *b = bench_new(1500);
	struct tas_conn *conn = open_one(b), *other;
	struct homa_list *node;
	u32 i, taken = 0;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(lies); i++) {
		struct tas_pair pair = conn->f.pair;

		lie(b, pair,
		    (struct tas_segment){ .flags = TAS_ACK,
					  .seq = conn->f.rcv_nxt,
					  .ack = conn->f.snd_nxt,
					  .window = 60000 },
		    i);
		assert_int_equal(round_with(b, nobody), 0);
		pair.remote_port = (u16)(4000 + i);
		lie(b, pair,
		    (struct tas_segment){
			    .flags = TAS_SYN, .seq = IRS, .window = 60000 },
		    i);
		round_with(b, nobody);
	}
	homa_list_for_each(node, &b->listener.half) {
		other = homa_container_of(node, struct tas_conn, pending);
		taken++;
		assert_true(other->f.mss >= 60 && other->f.mss <= 1460);
		assert_true(other->f.snd_wscale <= TAS_WSCALE_MAX);
	}
	/* An option of the wrong length that is whole is only ignored. */
	assert_true(taken > 4 && taken < HOMA_ARRAY_SIZE(lies));
	tas_unlisten(&b->engine, &b->listener);
	bench_free(b);
}

/* A window of 0 for a week: a probe in two minutes, and an open connection. */
static void strangers__no_window_for_a_week(void **state)
{
	struct bench *b = bench_new(1500);
	struct tas_conn *conn = open_one(b);
	u64 next, end = b->now + 7 * 86400 * TAS_SEC;
	u32 woken = 0, probes = 0;

	(void)state;
	round_with(b, nobody);
	ack(b, conn->f.snd_nxt - conn->iss - 1);
	in(b, (struct tas_segment){ .flags = TAS_ACK,
				    .seq = conn->f.rcv_nxt,
				    .ack = conn->f.snd_nxt,
				    .window = 0 });
	tas_written(&b->engine, conn, 5000);
	drain(b);
	while (b->now < end) {
		tas_set_now(&b->engine, b->now, EXCEPTIONS);
		next = tas_timers(&b->engine, 1000);
		woken++;
		while (sent(b)) {
			probes++;
			assert_int_equal(b->out.length, 0);
			in(b, (struct tas_segment){ .flags = TAS_ACK,
						    .seq = conn->f.rcv_nxt,
						    .ack = conn->f.snd_nxt,
						    .window = 0 });
		}
		hear(b);
		assert_int_equal(conn->f.state, TAS_ESTABLISHED);
		assert_int_not_equal(next, TAS_NEVER);
		b->now = homa_max_u64(next, b->now + 1);
	}
	assert_true(probes > 5000 && probes < 5200);
	/* The wheel reaches four seconds far. */
	assert_true(woken < 40 * probes);
	tas_unlisten(&b->engine, &b->listener);
	bench_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strangers__a_flood_of_syns),
		cmocka_unit_test(strangers__more_than_a_turn),
		cmocka_unit_test(strangers__a_flood_at_closed_ports),
		cmocka_unit_test(strangers__guesses),
		cmocka_unit_test(strangers__bytes_that_contradict),
		cmocka_unit_test(strangers__options_that_lie),
		cmocka_unit_test(strangers__no_window_for_a_week),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
