// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A window in a segment is told in units of 2^scale bytes, rounded up. A peer may fill it
 * to its last byte, and none of these bytes may be lost, as the buffer has room for them.
 * Bytes for which it has none are never taken. Nor does a window hold a connection for ever that
 * nobody has any more.
 */
#include "tcp_bench.h"

#define RX_SHIFT 12u
#define RX_MAX (1u << 20)
#define SCALE 5u

/* Opens a connection whose windows are told in units of 32 bytes. */
static struct bench *scaled(void)
{
	struct bench *b = bench_new(1500);

	assert_int_equal(tas_connect(&b->engine, &b->pair, RX_SHIFT, RX_MAX,
				     &b->conn),
			 0);
	assert_true(sent(b));
	in(b, (struct tas_segment){ .flags = TAS_SYN | TAS_ACK,
				    .seq = IRS,
				    .ack = b->conn->iss + 1,
				    .window = 65535,
				    .options = TAS_OPT_MSS | TAS_OPT_WSCALE,
				    .mss = MSS,
				    .wscale = 14 });
	drain(b);
	assert_int_equal(b->conn->f.rcv_wscale, SCALE);
	return b;
}

/* The peer sends the @length bytes from @seq. Returns how many of them were taken. */
static u32 arrive(struct bench *b, u32 seq, u32 length)
{
	u32 size = 1u << b->conn->f.rx_shift;

	memset(&b->copy, 0, sizeof(b->copy));
	in(b, (struct tas_segment){ .flags = TAS_ACK,
				    .seq = seq,
				    .length = (u16)length,
				    .ack = b->conn->f.snd_una,
				    .window = 65535 });
	if (!b->copy.conn)
		return 0;
	/* What was taken lies in the buffer. */
	assert_true(IRS + 1 + b->copy.to + b->copy.length - b->conn->f.rcv_read <=
		    size);
	return b->copy.length;
}

/* Returns the position up to which the last segment has told the peer to send. */
static u32 told(struct bench *b)
{
	drain(b);
	/* An old byte is answered at once. */
	assert_int_equal(arrive(b, b->conn->f.rcv_nxt - 1, 1), 0);
	assert_true(sent(b));
	return b->seg.ack + ((u32)b->seg.window << SCALE);
}

static void window__filled_to_its_last_byte(void **state)
{
	u32 first, edge, n;

	(void)state;
	for (first = 1; first <= 64; first += 7) {
		struct bench *b = scaled();

		assert_int_equal(arrive(b, IRS + 1, first), first);
		edge = told(b);
		while ((n = homa_min_u32(edge - b->conn->f.rcv_nxt, MSS)))
			assert_int_equal(arrive(b, b->conn->f.rcv_nxt, n), n);
		assert_int_equal(told(b), edge);
		assert_int_equal(b->seg.window, 0);
		/* It opens when bytes are taken. */
		tas_taken(&b->engine, b->conn, tas_readable(b->conn));
		assert_true(told(b) - edge >=
			    (1u << RX_SHIFT) - (1u << SCALE) * 2);
		bench_free(b);
	}
}

/* The same when the first byte comes last. */
static void window__filled_behind_a_gap(void **state)
{
	struct bench *b = scaled();
	u32 edge, at, n;

	(void)state;
	assert_int_equal(arrive(b, IRS + 1, 3), 3);
	edge = told(b);
	for (at = IRS + 5; (n = homa_min_u32(edge - at, MSS)); at += n)
		assert_int_equal(arrive(b, at, n), n);
	assert_int_equal(arrive(b, IRS + 4, 1), 1);
	assert_int_equal(b->conn->f.rcv_nxt, edge);
	assert_int_equal(told(b), edge);
	bench_free(b);
}

/* A peer that goes on beyond each window that it is told. */
static void window__overrun(void **state)
{
	struct bench *b = scaled();
	u32 i, n, seed = 7;

	(void)state;
	for (i = 0; i < 20000; i++) {
		seed = seed * 1103515245u + 12345u;
		arrive(b,
		       b->conn->f.rcv_nxt + (seed >> 20) % 3 * (seed >> 8 & 31),
		       1 + (seed >> 16) % MSS);
		n = tas_readable(b->conn);
		assert_true(n <= 1u << RX_SHIFT);
		if (!(seed >> 28))
			tas_taken(&b->engine, b->conn, n ? (seed >> 4) % n : 0);
		drain(b);
	}
	bench_free(b);
}

static void says(struct bench *b, u16 window)
{
	in(b, (struct tas_segment){ .flags = TAS_ACK,
				    .seq = IRS + 1,
				    .ack = b->conn->iss + 1 + 5000,
				    .window = window });
}

/* A peer opens its window by a byte and takes it back, after each segment of ours or, if @often,
 * all the time; @sent_before: bytes are under way meanwhile. */
static void opens_for_a_moment(bool often, bool sent_before)
{
	struct bench *b = bench_new(1500);
	u32 i;

	case_open(b, 0, 0);
	tas_written(&b->engine, b->conn, 5000);
	drain(b);
	says(b, sent_before ? 65535 : 0);
	tas_written(&b->engine, b->conn, 5000);
	if (sent_before)
		drain(b);
	tas_close(&b->engine, b->conn);
	for (i = 0; i < 36000 && b->engine.table.count; i++) {
		tick(b, 100 * TAS_MSEC);
		if (!drain(b) && !often)
			continue;
		says(b, 1);
		says(b, 0);
	}
	assert_int_equal(b->engine.table.count, 0);
	bench_free(b);
}

/* It holds a connection no longer than one whose window stays closed, when the application has let
 * go. */
static void window__that_opens_for_a_moment(void **state)
{
	u32 i;

	(void)state;
	for (i = 0; i < 4; i++)
		opens_for_a_moment(i % 2, i / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(window__filled_to_its_last_byte),
		cmocka_unit_test(window__filled_behind_a_gap),
		cmocka_unit_test(window__overrun),
		cmocka_unit_test(window__that_opens_for_a_moment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
