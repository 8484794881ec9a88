// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * How long an ACK waits for company: longer than usual only where an application answers each
 * segment, but late, and never longer than delack_most_ms.
 */
#include "tcp_bench.h"
#include "tas_impl.h"

#define BYTES 64u

/* A segment of the peer, which acknowledges all. Returns what was sent at once. */
static u32 request(struct bench *b)
{
	in(b, (struct tas_segment){ .flags = TAS_ACK | TAS_PSH,
				    .seq = b->conn->f.rcv_nxt,
				    .ack = b->conn->f.snd_nxt,
				    .window = 65535,
				    .length = BYTES });
	hear(b);
	tas_taken(&b->engine, b->conn, BYTES);
	return drain(b);
}

/* Time passes. Returns what was sent meanwhile. */
static u32 wait_ms(struct bench *b, u32 ms)
{
	u32 n = 0;

	while (ms--) {
		tick(b, TAS_MSEC);
		n += drain(b);
	}
	return n;
}

static void answer(struct bench *b)
{
	tas_written(&b->engine, b->conn, BYTES);
	assert_true(sent(b));
	assert_int_equal(b->seg.length, BYTES);
	assert_false(sent(b));
	hear(b);
}

/* A connection whose application has answered once, so that no ACK is sent at once any more. */
static struct bench *begin(void)
{
	struct bench *b = bench_new(1500);

	case_open(b, TAS_OPT_SACK_OK, 0);
	assert_int_equal(request(b), 1);
	answer(b);
	return b;
}

/* @times requests, each answered after @ms. Returns how many ACKs left alone. */
static u32 late_answers(struct bench *b, u32 ms, u32 times)
{
	u32 alone = 0;

	while (times--) {
		alone += request(b);
		alone += wait_ms(b, ms);
		answer(b);
		tick(b, TAS_MSEC);
	}
	return alone;
}

/* How long the next ACK waits before it leaves alone, in ms. */
static u32 waits(struct bench *b)
{
	u32 ms;

	assert_int_equal(request(b), 0);
	for (ms = 1; ms < 1000; ms++)
		if (wait_ms(b, 1))
			break;
	return ms;
}

/* An ACK waits for @ms; the wheel's ticks make it late by two at most. */
static void assert_wait(u32 measured, u32 ms)
{
	assert_in_range(measured, ms, ms + 2);
}

static void delack__an_answer_in_time_changes_nothing(void **state)
{
	struct bench *b = begin();

	(void)state;
	assert_int_equal(late_answers(b, 30, 100), 0);
	assert_int_equal(b->engine.metrics.longer_acks, 0);
	assert_wait(waits(b), 40);
	bench_free(b);
}

/* The first one that leaves alone tells nothing yet. */
static void delack__late_answers_take_the_acks_along(void **state)
{
	struct bench *b = begin();

	(void)state;
	assert_int_equal(late_answers(b, 58, TAS_ALONE), TAS_ALONE);
	assert_int_equal(b->engine.metrics.longer_acks, 0);
	assert_int_equal(late_answers(b, 58, 100), 1);
	assert_int_equal(b->engine.metrics.longer_acks, 1);
	assert_wait(waits(b), 60);
	bench_free(b);
}

/* Step by step, so that the peer measures each. */
static void delack__longest(void **state)
{
	struct bench *b = begin();

	(void)state;
	assert_int_equal(late_answers(b, 140, TAS_ALONE + 1), TAS_ALONE + 1);
	assert_int_equal(b->conn->ack_wait_ms, 60);
	late_answers(b, 140, 1);
	assert_int_equal(b->conn->ack_wait_ms, 90);
	late_answers(b, 140, 1);
	assert_int_equal(b->conn->ack_wait_ms, 135);
	late_answers(b, 140, 1);
	assert_int_equal(b->conn->ack_wait_ms, 150);
	assert_int_equal(late_answers(b, 140, 100), 0);
	assert_wait(waits(b), 150);
	bench_free(b);
}

static void delack__later_than_the_longest(void **state)
{
	struct bench *b = begin();

	(void)state;
	assert_int_equal(late_answers(b, 160, 100), 100);
	assert_int_equal(b->engine.metrics.longer_acks, 0);
	assert_wait(waits(b), 40);
	bench_free(b);
}

/* The peer's second segment waits for the ACK of its first (Nagle's rule). */
static void write_write_read(struct bench *b, u32 times, u32 *longest)
{
	u32 ms;

	for (*longest = 0; times--; answer(b)) {
		ms = waits(b);
		*longest = homa_max_u32(*longest, ms);
		assert_int_equal(request(b), 0);
		tick(b, TAS_MSEC);
	}
}

static void delack__a_peer_that_waits_for_acks(void **state)
{
	struct bench *b = begin();
	u32 longest;

	(void)state;
	write_write_read(b, 100, &longest);
	assert_wait(longest, 40);
	/* One that begins with it later has to wait longer only three times. */
	late_answers(b, 58, TAS_ALONE + 4);
	write_write_read(b, 3, &longest);
	assert_wait(longest, 60);
	write_write_read(b, 100, &longest);
	assert_wait(longest, 40);
	assert_int_equal(b->engine.metrics.longer_acks, 1);
	bench_free(b);
}

static void delack__segments_without_answers(void **state)
{
	struct bench *b = begin();
	u32 i;

	(void)state;
	for (i = 0; i < 100; i++)
		assert_wait(waits(b), 40);
	bench_free(b);
}

/* A peer that sends again did not wait as long as the ACK. */
static void delack__a_segment_that_comes_twice(void **state)
{
	struct bench *b = begin();

	(void)state;
	late_answers(b, 58, TAS_ALONE + 1);
	assert_int_equal(b->conn->ack_wait_ms, 60);
	request(b);
	in(b, (struct tas_segment){ .flags = TAS_ACK | TAS_PSH,
				    .seq = b->conn->f.rcv_nxt - BYTES,
				    .ack = b->conn->f.snd_nxt,
				    .window = 65535,
				    .length = BYTES });
	assert_int_equal(drain(b), 1);
	assert_wait(waits(b), 40);
	bench_free(b);
}

static void delack__switched_off(void **state)
{
	struct bench *b = begin();

	(void)state;
	assert_int_equal(tas_set(&b->engine, "delack_most_ms", 0), 0);
	assert_int_equal(late_answers(b, 58, 100), 100);
	bench_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(delack__an_answer_in_time_changes_nothing),
		cmocka_unit_test(delack__late_answers_take_the_acks_along),
		cmocka_unit_test(delack__longest),
		cmocka_unit_test(delack__later_than_the_longest),
		cmocka_unit_test(delack__a_peer_that_waits_for_acks),
		cmocka_unit_test(delack__segments_without_answers),
		cmocka_unit_test(delack__a_segment_that_comes_twice),
		cmocka_unit_test(delack__switched_off),
	};

	return cmocka_run_group_tests_name("delack", tests, NULL, NULL);
}
