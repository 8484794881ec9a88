// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What one segment, one call or one moment does to an engine: cases that a review found
 * broken, each with a peer that the case plays itself, in virtual time.
 */
#include "tcp_bench.h"

/* An ACK that opens a connection for which accept() has no place is as if it were lost:
 * the SYN-ACK is sent again, and if nothing helps the connection is forgotten. */
static void without_a_place(u32 port)
{
	struct bench *b = bench_new(1500);
	struct tas_conn *conn[4];
	u32 i;

	listen_at(b, 2);
	for (i = 0; i < 2; i++)
		conn[i] = syn_from(b, (u16)(port + i));
	for (i = 0; i < 2; i++)
		ack_syn(b, conn[i]);
	for (i = 2; i < 4; i++)
		conn[i] = syn_from(b, (u16)(port + i));
	for (i = 2; i < 4; i++)
		ack_syn(b, conn[i]);
	assert_int_equal(b->listener.num_ready, 3);
	assert_int_equal(b->listener.num_half, 1);
	/* Nor are its bytes taken before it is open. */
	in(b, (struct tas_segment){ .flags = TAS_ACK | TAS_FIN,
				    .seq = IRS + 1,
				    .length = 5,
				    .ack = conn[3]->iss + 1,
				    .window = 65535 });
	assert_null(b->copy.conn);
	assert_int_equal(conn[3]->f.rcv_nxt, IRS + 1);
	drain(b);
	tick(b, 5 * TAS_SEC);
	assert_true(sent(b));
	assert_int_equal(b->seg.flags, TAS_SYN | TAS_ACK);
	for (i = 0; i < 1000; i++) {
		tick(b, TAS_SEC);
		drain(b);
	}
	assert_int_equal(b->listener.num_half, 0);
	tas_unlisten(&b->engine, &b->listener);
	bench_free(b);
}

static void cases__an_ack_without_a_place(void **state)
{
	u32 port;

	(void)state;
	/* With initial sequence numbers of either half. */
	for (port = 2000; port < 2100; port += 10)
		without_a_place(port);
}

static void cases__pieces_smaller_than_a_segment(void **state)
{
	struct bench *b = bench_new(1500);

	(void)state;
	assert_int_equal(tas_set(&b->engine, "max_segment", 536), 0);
	case_open(b, 0, 0);
	assert_int_equal(tas_written(&b->engine, b->conn, 5000), 0);
	assert_true(sent(b));
	assert_int_equal(b->seg.length, MSS);
	bench_free(b);
}

/* Two segments are lost. New bytes, sent before the second loss is seen, do not make it
 * wait for the timeout. */
static void cases__a_second_hole_after_new_bytes(void **state)
{
	struct bench *b = bench_new(1500);
	u32 base, i, again = 0;

	(void)state;
	case_open(b, TAS_OPT_SACK_OK, 0);
	base = b->conn->iss + 1;
	assert_int_equal(tas_written(&b->engine, b->conn, 100 * MSS), 0);
	drain(b);
	assert_int_equal(b->conn->f.snd_nxt - base, 10 * MSS);
	tick(b, 100 * TAS_MSEC);
	/* Segment 0 is missing, 1 to 7 arrive, 8 is missing, what follows arrives. */
	for (i = 1; i < 14; i++) {
		struct tas_segment seg = { .flags = TAS_ACK,
					   .seq = b->conn->f.rcv_nxt,
					   .ack = base,
					   .window = 65535,
					   .options = TAS_OPT_SACK,
					   .num_sacks = 1 };

		if (i == 8 || !tas_before(base + i * MSS, b->conn->f.snd_nxt))
			continue;
		seg.sack[0] =
			(struct tas_range){ base + MSS,
					    base + (i < 8 ? i + 1 : 8) * MSS };
		if (i > 8) {
			seg.num_sacks = 2;
			seg.sack[1] = seg.sack[0];
			seg.sack[0] = (struct tas_range){ base + 9 * MSS,
							  base + (i + 1) * MSS };
		}
		in(b, seg);
		while (sent(b))
			again += b->seg.seq == base + 8 * MSS;
	}
	assert_int_equal(again, 1);
	bench_free(b);
}

/* The host has hung something at a connection that ends before accept(). */
static void cases__ended_before_accept(void **state)
{
	struct bench *b = bench_new(1500);
	struct tas_conn *conn;
	u32 events;
	int mine;

	(void)state;
	listen_at(b, 2);
	conn = syn_from(b, 2000);
	ack_syn(b, conn);
	in(b, (struct tas_segment){ .flags = TAS_ACK,
				    .seq = IRS + 1,
				    .length = 5,
				    .ack = conn->iss + 1,
				    .window = 65535 });
	assert_ptr_equal(b->copy.conn, conn);
	conn->host = &mine;
	in(b, (struct tas_segment){ .flags = TAS_RST, .seq = IRS + 6 });
	assert_int_equal(b->listener.num_ready, 0);
	assert_ptr_equal(tas_next_event(&b->engine, &events), conn);
	assert_int_equal(events, TAS_EV_FREE);
	tas_add_spare(&b->engine, conn);
	tas_unlisten(&b->engine, &b->listener);
	bench_free(b);
}

/* A peer says ECE until it sees CWR: one mark makes a sender slower once. */
static void cases__one_mark_one_reduction(void **state)
{
	struct bench *b = bench_new(1500);
	u32 i, at = 0;

	(void)state;
	assert_int_equal(tas_set(&b->engine, "ecn", 1), 0);
	case_open(b, 0, TAS_ECE);
	tas_written(&b->engine, b->conn, 100 * MSS);
	drain(b);
	/* The first window's ACKs all carry it. */
	for (i = 1; i <= 10; i++) {
		at += MSS;
		in(b, (struct tas_segment){ .flags = TAS_ACK | TAS_ECE,
					    .seq = IRS + 1,
					    .ack = b->conn->iss + 1 + at,
					    .window = 65535 });
		drain(b);
	}
	for (; i <= 20; i++) {
		at += MSS;
		ack(b, at);
		drain(b);
	}
	assert_int_equal(b->engine.metrics.ecn_reductions, 1);
	bench_free(b);
}

/* Bytes of the peer carry ECE while nothing of ours is under way that could say CWR. */
static void cases__ece_with_nothing_under_way(void **state)
{
	struct bench *b = bench_new(1500);
	u32 i;

	(void)state;
	assert_int_equal(tas_set(&b->engine, "ecn", 1), 0);
	case_open(b, 0, TAS_ECE);
	tas_written(&b->engine, b->conn, 100);
	drain(b);
	for (i = 0; i < 10; i++)
		in(b, (struct tas_segment){ .flags = TAS_ACK | TAS_ECE,
					    .seq = IRS + 1 + i,
					    .length = 1,
					    .ack = b->conn->iss + 1 + 100,
					    .window = 65535 });
	assert_int_equal(b->engine.metrics.ecn_reductions, 1);
	bench_free(b);
}

/* Three gigabytes without a loss or a mark: sequence numbers that are remembered from the
 * begin must not lie ahead then. */
static void cases__marks_after_three_gigabytes(void **state)
{
	struct bench *b = bench_new(1500);
	u32 at = 0, half;
	u64 all = 0;

	(void)state;
	assert_int_equal(tas_set(&b->engine, "ecn", 1), 0);
	case_open(b, TAS_OPT_WSCALE, TAS_ECE);
	while (all < 3ull << 30) {
		assert_int_equal(tas_written(&b->engine, b->conn, 1 << 26), 0);
		all += 1 << 26;
		while (at != (u32)all) {
			drain(b);
			at = b->conn->f.snd_nxt - b->conn->iss - 1;
			ack(b, at);
		}
	}
	assert_false(tas_after(b->conn->snd_small, b->conn->f.snd_una));
	assert_false(tas_after(b->conn->recover, b->conn->f.snd_una));
	tas_written(&b->engine, b->conn, 10 * MSS);
	drain(b);
	half = b->conn->f.cwnd / 2 + MSS;
	in(b, (struct tas_segment){ .flags = TAS_ACK | TAS_ECE,
				    .seq = IRS + 1,
				    .ack = b->conn->iss + 1 + at + MSS,
				    .window = 65535 });
	assert_int_equal(b->engine.metrics.ecn_reductions, 1);
	assert_true(b->conn->f.cwnd <= half);
	bench_free(b);
}

/* A path that is dead: an application that goes on writing a little does not put off the
 * timeout. */
static void cases__a_trickle_does_not_stop_the_clock(void **state)
{
	struct bench *b = bench_new(1500);
	u32 i;

	(void)state;
	case_open(b, TAS_OPT_SACK_OK, 0);
	b->conn->f.flags |= TAS_F_NODELAY;
	for (i = 0; i < 100; i++) {
		tas_written(&b->engine, b->conn, 1);
		drain(b);
		tick(b, 50 * TAS_MSEC);
	}
	assert_true(b->engine.metrics.timeouts > 0);
	bench_free(b);
}

/* A peer that answers each probe of its closed window: less and less often, and not for
 * ever once the application has let go. */
static void cases__an_orphan_and_a_closed_window(void **state)
{
	struct bench *b = bench_new(1500);
	u32 i;

	(void)state;
	case_open(b, 0, 0);
	tas_written(&b->engine, b->conn, 5000);
	drain(b);
	in(b, (struct tas_segment){ .flags = TAS_ACK,
				    .seq = IRS + 1,
				    .window = 0,
				    .ack = b->conn->iss + 1 + 5000 });
	tas_written(&b->engine, b->conn, 5000);
	for (i = 0; i < 600 * 10; i++) {
		tick(b, 100 * TAS_MSEC);
		while (sent(b))
			in(b, (struct tas_segment){ .flags = TAS_ACK,
						    .seq = IRS + 1,
						    .ack = b->conn->iss + 1 +
							   5000 });
	}
	/* Doubled from 0.3 s to 2 minutes. */
	assert_in_range(b->engine.metrics.window_probes, 5, 15);
	assert_int_equal(b->conn->f.state, TAS_ESTABLISHED);
	tas_close(&b->engine, b->conn);
	for (i = 0; i < 3600 && b->engine.table.count; i++) {
		tick(b, TAS_SEC);
		while (sent(b))
			in(b, (struct tas_segment){ .flags = TAS_ACK,
						    .seq = IRS + 1,
						    .ack = b->conn->iss + 1 +
							   5000 });
	}
	assert_int_equal(b->engine.table.count, 0);
	bench_free(b);
}

/* A peer that closes its window over bytes that are under way, and says so each time. */
static void cases__a_window_closed_over_bytes(void **state)
{
	struct bench *b = bench_new(1500);
	u32 i;

	(void)state;
	case_open(b, 0, 0);
	tas_written(&b->engine, b->conn, 5000);
	drain(b);
	for (i = 0; i < 3 * 3600; i++) {
		tick(b, TAS_SEC);
		while (sent(b))
			in(b, (struct tas_segment){ .flags = TAS_ACK,
						    .seq = IRS + 1,
						    .ack = b->conn->iss + 1 });
	}
	assert_int_equal(b->conn->f.state, TAS_ESTABLISHED);
	bench_free(b);
}

/* Many idle connections are probed by their peers within one second: all are answered,
 * and strangers cannot count how many answers there were for others (CVE-2016-5696). */
static void cases__answers_to_keepalive(void **state)
{
	struct bench *b = bench_new(1500);
	struct tas_conn *conn[200];
	u32 i;

	(void)state;
	listen_at(b, 200);
	for (i = 0; i < 200; i++) {
		conn[i] = syn_from(b, (u16)(2000 + i));
		ack_syn(b, conn[i]);
		drain(b);
	}
	tick(b, 10 * TAS_SEC);
	for (i = 0; i < 200; i++) {
		b->pair = conn[i]->f.pair;
		in(b, (struct tas_segment){ .flags = TAS_ACK,
					    .seq = IRS,
					    .window = 65535,
					    .ack = conn[i]->iss + 1 });
		assert_int_equal(drain(b), 1);
	}
	tas_unlisten(&b->engine, &b->listener);
	bench_free(b);
}

static u32 challenges(struct bench *b, struct tas_conn **conn)
{
	u32 i, n = 0;

	tick(b, 10 * TAS_SEC);
	for (i = 0; i < 250; i++) {
		b->pair = conn[i]->f.pair;
		in(b, (struct tas_segment){ .flags = TAS_RST, .seq = IRS + 100 });
		n += drain(b);
	}
	return n;
}

static void cases__challenges_cannot_be_counted(void **state)
{
	struct bench *b = bench_new(1500);
	struct tas_conn *conn[250];
	u32 i, first;
	bool differ = false;

	(void)state;
	listen_at(b, 250);
	for (i = 0; i < 250; i++) {
		conn[i] = syn_from(b, (u16)(2000 + i));
		ack_syn(b, conn[i]);
		drain(b);
	}
	first = challenges(b, conn);
	assert_in_range(first, 50, 150);
	for (i = 0; i < 10; i++)
		differ |= challenges(b, conn) != first;
	assert_true(differ);
	tas_unlisten(&b->engine, &b->listener);
	bench_free(b);
}

/* The narrowest network that IPv4 knows; bench_new() looks at each packet. */
static void cases__a_network_of_68_bytes(void **state)
{
	static const u8 remote6[16] = { 0xfd, [15] = 2 };
	struct bench *b = bench_new(68);

	(void)state;
	case_open(b, TAS_OPT_TS, 0);
	tas_written(&b->engine, b->conn, 5000);
	assert_true(drain(b) > 0);
	bench_free(b);
	/* IPv6 has no such network, but nothing may break. */
	b = bench_new(68);
	memcpy(b->pair.remote, remote6, 16);
	b->mtu = 1280;
	case_open(b, TAS_OPT_TS, 0);
	tas_written(&b->engine, b->conn, 5000);
	assert_true(drain(b) > 0);
	bench_free(b);
}

/* RFC 7323, 5.5: timestamps compare for 24 days only. */
static void cases__a_month_of_silence(void **state)
{
	struct bench *b = bench_new(1500);

	(void)state;
	case_open(b, TAS_OPT_TS, 0);
	tick(b, 26ull * 86400 * TAS_SEC);
	in(b, (struct tas_segment){ .flags = TAS_ACK,
				    .seq = IRS + 1,
				    .length = 10,
				    .ack = b->conn->iss + 1,
				    .window = 65535,
				    .options = TAS_OPT_TS,
				    .ts = 1 + 26u * 86400 * 1000 });
	assert_ptr_equal(b->copy.conn, b->conn);
	assert_int_equal(b->conn->f.ts_recent, 1 + 26u * 86400 * 1000);
	bench_free(b);
}

/* A peer that remembers a connection takes its successor by its newer timestamp. */
static void cases__timestamps_go_on(void **state)
{
	struct bench *b = bench_new(1500);
	u32 i, last;

	(void)state;
	for (i = 0; i < 20; i++) {
		assert_int_equal(tas_connect(&b->engine, &b->pair, 16, 65536,
					     &b->conn),
				 0);
		assert_true(sent(b));
		if (i)
			assert_true((s32)(b->seg.ts - last) > 0);
		last = b->seg.ts;
		tas_abort(&b->engine, b->conn);
		hear(b);
		tick(b, TAS_SEC);
	}
	bench_free(b);
}

static void cases__more_than_can_be_counted(void **state)
{
	struct bench *b = bench_new(1500);

	(void)state;
	case_open(b, 0, 0);
	assert_int_equal(tas_written(&b->engine, b->conn, 1u << 31), TAS_EINVAL);
	assert_int_equal(tas_written(&b->engine, b->conn, 1u << 30), 0);
	assert_int_equal(tas_written(&b->engine, b->conn, 1u << 30), TAS_EINVAL);
	assert_true(sent(b));
	bench_free(b);
}

/* A clock that goes back is a clock that stands. */
static void cases__a_clock_that_goes_back(void **state)
{
	struct bench *b = bench_new(1500);

	(void)state;
	case_open(b, 0, 0);
	tas_written(&b->engine, b->conn, 100);
	drain(b);
	b->now -= 60 * TAS_SEC;
	ack(b, 100);
	assert_true(b->conn->srtt < TAS_SEC);
	bench_free(b);
}

/* Whoever does not know the sequence numbers cannot make TIME_WAIT last. */
static void cases__a_forged_fin_in_time_wait(void **state)
{
	struct bench *b = bench_new(1500);
	u32 i;

	(void)state;
	case_open(b, 0, 0);
	tas_close(&b->engine, b->conn);
	drain(b);
	in(b, (struct tas_segment){ .flags = TAS_ACK | TAS_FIN,
				    .seq = IRS + 1,
				    .ack = b->conn->iss + 2,
				    .window = 65535 });
	assert_int_equal(b->conn->f.state, TAS_TIME_WAIT);
	for (i = 0; i < 70; i++) {
		tick(b, TAS_SEC);
		in(b, (struct tas_segment){ .flags = TAS_ACK | TAS_FIN,
					    .seq = IRS + 5000,
					    .ack = 1,
					    .window = 65535 });
		drain(b);
	}
	assert_int_equal(b->engine.table.count, 0);
	bench_free(b);
}

/* A block that begins and ends half the sequence space away from what is under way. */
static void cases__a_block_around_the_world(void **state)
{
	struct bench *b = bench_new(1500);
	u32 una;

	(void)state;
	case_open(b, TAS_OPT_SACK_OK, 0);
	tas_written(&b->engine, b->conn, 5000);
	drain(b);
	una = b->conn->f.snd_una;
	in(b, (struct tas_segment){
		      .flags = TAS_ACK,
		      .seq = IRS + 1,
		      .ack = una,
		      .window = 65535,
		      .options = TAS_OPT_SACK,
		      .num_sacks = 1,
		      .sack = { { una + 0x39000000u, una + 0xad000000u } } });
	assert_int_equal(b->conn->f.sacks, 0);
	bench_free(b);
}

#define CASE(name) cmocka_unit_test(cases__##name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(an_ack_without_a_place),
		CASE(pieces_smaller_than_a_segment),
		CASE(a_second_hole_after_new_bytes),
		CASE(ended_before_accept),
		CASE(one_mark_one_reduction),
		CASE(ece_with_nothing_under_way),
		CASE(marks_after_three_gigabytes),
		CASE(a_trickle_does_not_stop_the_clock),
		CASE(an_orphan_and_a_closed_window),
		CASE(a_window_closed_over_bytes),
		CASE(answers_to_keepalive),
		CASE(challenges_cannot_be_counted),
		CASE(a_network_of_68_bytes),
		CASE(a_month_of_silence),
		CASE(timestamps_go_on),
		CASE(more_than_can_be_counted),
		CASE(a_clock_that_goes_back),
		CASE(a_forged_fin_in_time_wait),
		CASE(a_block_around_the_world),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
