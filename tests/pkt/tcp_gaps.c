// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Segments behind a gap that come together, before anything is sent: a peer must be able to
 * count the ACKs, as it does without SACK (RFC 5681, 3.2), and some do with it, too.
 */
#include "tcp_bench.h"

static void segment(struct bench *b, u32 number)
{
	in(b, (struct tas_segment){ .flags = TAS_ACK,
				    .seq = IRS + 1 + number * MSS,
				    .length = MSS,
				    .ack = b->conn->iss + 1,
				    .window = 65535 });
}

/* Segments that are sent and say nothing but that segment @number is missing. */
static u32 duplicates(struct bench *b, u32 number)
{
	u32 n = 0;

	while (sent(b))
		n += !b->seg.length && b->seg.ack == IRS + 1 + number * MSS;
	return n;
}

static void gaps__each_segment_is_answered(void **state)
{
	struct bench *b = bench_new(1500);
	u32 i;

	(void)state;
	case_open(b, 0, 0);
	for (i = 1; i < 11; i++)
		segment(b, i);
	assert_int_equal(duplicates(b, 0), 10);
	bench_free(b);
}

/* What was in order just before has an ACK of its own: the first of the others is none of the
 * duplicates. */
static void gaps__behind_segments_in_order(void **state)
{
	struct bench *b = bench_new(1500);
	u32 i;

	(void)state;
	case_open(b, 0, 0);
	for (i = 0; i < 8; i++)
		if (i != 4)
			segment(b, i);
	assert_int_equal(duplicates(b, 4), 1 + 3);
	bench_free(b);
}

/* A segment with bytes is no duplicate ACK. */
static void gaps__beside_bytes_of_ours(void **state)
{
	struct bench *b = bench_new(1500);
	u32 i;

	(void)state;
	case_open(b, 0, 0);
	assert_int_equal(tas_written(&b->engine, b->conn, 5 * MSS), 0);
	for (i = 1; i < 4; i++)
		segment(b, i);
	assert_int_equal(duplicates(b, 0), 3);
	bench_free(b);
}

/* With SACK the blocks tell the rest: three of them are enough, and one for all others. */
static void gaps__three_with_sack(void **state)
{
	struct bench *b = bench_new(1500);
	u32 i;

	(void)state;
	case_open(b, TAS_OPT_SACK_OK, 0);
	for (i = 1; i < 11; i++)
		segment(b, i);
	assert_int_equal(duplicates(b, 0), 4);
	assert_int_equal(b->seg.num_sacks, 1);
	assert_int_equal(b->seg.sack[0].end, IRS + 1 + 11 * MSS);
	/* The next gap has its own. */
	segment(b, 0);
	assert_int_equal(duplicates(b, 11), 1);
	for (i = 12; i < 20; i++)
		segment(b, i);
	assert_int_equal(duplicates(b, 11), 4);
	/* And so has what is still missing when one of two is filled. */
	segment(b, 21);
	segment(b, 11);
	drain(b);
	for (i = 22; i < 30; i++)
		segment(b, i);
	assert_int_equal(duplicates(b, 20), 4);
	bench_free(b);
}

/* Resets and the ACKs of other connections need room, too. */
static void gaps__leave_room_for_others(void **state)
{
	struct bench *b = bench_new(1500);
	u32 i;

	(void)state;
	case_open(b, 0, 0);
	for (i = 1; i < 60; i++)
		segment(b, i);
	assert_true(b->engine.stray_tail - b->engine.stray_head <= TAS_STRAYS / 2);
	assert_in_range(duplicates(b, 0), TAS_STRAYS / 4, TAS_STRAYS);
	bench_free(b);
}

/* What lies behind a gap already is not copied again: the bytes there stay as they were, and nobody
 * can send more than fits into the window until the gap is closed. */
static void gaps__same_bytes_again(void **state)
{
	struct bench *b = bench_new(1500);

	(void)state;
	case_open(b, 0, 0);
	segment(b, 1);
	segment(b, 2);
	assert_ptr_equal(b->copy.conn, b->conn);
	memset(&b->copy, 0, sizeof(b->copy));
	segment(b, 1);
	segment(b, 2);
	assert_null(b->copy.conn);
	assert_int_equal(duplicates(b, 0), 4);
	segment(b, 3);
	assert_ptr_equal(b->copy.conn, b->conn);
	bench_free(b);
}

static void piece(struct bench *b, u32 from, u32 length)
{
	memset(&b->copy, 0, sizeof(b->copy));
	in(b, (struct tas_segment){ .flags = TAS_ACK,
				    .seq = IRS + 1 + from,
				    .length = length,
				    .ack = b->conn->iss + 1,
				    .window = 65535 });
}

/* What is copied of the last segment: @length bytes to @to, which it has @from bytes behind its
 * begin. */
static void copied(const struct bench *b, u32 to, u32 length, u32 from)
{
	assert_ptr_equal(b->copy.conn, b->conn);
	assert_int_equal(b->copy.to, to);
	assert_int_equal(b->copy.length, length);
	assert_int_equal(b->copy.from, from);
}

/* Of a segment that brings a new byte beside many old ones only what is new is copied. */
static void gaps__only_new_bytes(void **state)
{
	struct bench *b = bench_new(1500);

	(void)state;
	case_open(b, 0, 0);
	piece(b, 100, 100);
	copied(b, 100, 100, 0);
	piece(b, 100, 101);
	copied(b, 200, 1, 100);
	piece(b, 99, 102);
	copied(b, 99, 1, 0);
	piece(b, 98, 104);
	copied(b, 98, 104, 0);
	/* A byte between two, both of which the segment has. */
	piece(b, 300, 100);
	piece(b, 401, 100);
	piece(b, 310, 180);
	copied(b, 400, 1, 90);
	/* In order, up to what lies behind the gap. */
	piece(b, 0, 150);
	copied(b, 0, 98, 0);
	assert_int_equal(b->conn->f.rcv_nxt, IRS + 1 + 202);
	bench_free(b);
}

#define CASE(name) cmocka_unit_test(gaps__##name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(each_segment_is_answered), CASE(behind_segments_in_order),
		CASE(beside_bytes_of_ours),	CASE(three_with_sack),
		CASE(leave_room_for_others),	CASE(same_bytes_again),
		CASE(only_new_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
