// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* TIME_WAIT in little memory: what is remembered, for how long, and of how many. */
#include "tcp_bench.h"

#define MEMORY 3

static struct tas_ended memory[MEMORY];

static struct bench *begin(void)
{
	struct bench *b = bench_new(1500);
	u32 i;

	for (i = 0; i < MEMORY; i++)
		tas_add_ended(&b->engine, &memory[i]);
	return b;
}

/* A connection from @port of ours that we close first, up to TIME_WAIT. */
static void end_one(struct bench *b, u16 port, u8 options)
{
	b->pair.local_port = port;
	case_open(b, options, 0);
	tas_close(&b->engine, b->conn);
	drain(b);
	in(b, (struct tas_segment){ .flags = TAS_ACK | TAS_FIN, .seq = IRS + 1,
				    .ack = b->conn->iss + 2, .window = 65535,
				    .options = options & TAS_OPT_TS, .ts = 1 });
}

static void ended__memory_is_given_back(void **state)
{
	struct bench *b = begin();
	u32 spare, iss;

	(void)state;
	spare = b->engine.num_spare;
	end_one(b, 80, 0);
	iss = b->conn->iss;
	assert_true(sent(b));
	assert_int_equal(b->seg.flags, TAS_ACK);
	assert_int_equal(b->seg.seq, iss + 2);
	assert_int_equal(b->seg.ack, IRS + 2);
	assert_true(b->seg.window > 0);
	hear(b);
	assert_int_equal(b->engine.num_spare, spare);
	assert_int_equal(b->engine.table.count, 0);
	assert_int_equal(b->engine.ended.count, 1);
	assert_int_equal(tas_connect(&b->engine, &b->pair, 16, 65536, &b->conn), TAS_EADDRINUSE);
	/* The peer's FIN once more, a reset, and something that never was. */
	tick(b, 40 * TAS_SEC);
	in(b, (struct tas_segment){ .flags = TAS_RST, .seq = IRS + 2 });
	assert_false(sent(b));
	in(b, (struct tas_segment){ .flags = TAS_ACK | TAS_FIN, .seq = IRS + 1, .ack = iss + 2 });
	assert_true(sent(b));
	assert_int_equal(b->seg.ack, IRS + 2);
	tick(b, 40 * TAS_SEC);
	assert_int_equal(b->engine.ended.count, 1);
	in(b, (struct tas_segment){ .flags = TAS_ACK | TAS_FIN, .seq = 5, .ack = 9 });
	assert_int_equal(drain(b), 1);
	tick(b, 21 * TAS_SEC);
	assert_int_equal(b->engine.ended.count, 0);
	assert_true(tas_timers(&b->engine, 10) == TAS_NEVER);
	bench_free(b);
}

static void ended__the_oldest_makes_room(void **state)
{
	struct bench *b = begin();
	u32 i;

	(void)state;
	for (i = 0; i < 5; i++) {
		end_one(b, (u16)(100 + i), 0);
		drain(b);
		hear(b);
		tick(b, TAS_SEC);
	}
	assert_int_equal(b->engine.table.count, 0);
	assert_int_equal(b->engine.ended.count, MEMORY);
	assert_int_equal(b->engine.metrics.time_wait_dropped, 2);
	for (i = 0; i < 5; i++) {
		b->pair.local_port = (u16)(100 + i);
		assert_int_equal(tas_connect(&b->engine, &b->pair, 16, 65536, &b->conn),
				 i < 2 ? 0 : TAS_EADDRINUSE);
	}
	bench_free(b);
}

/* RFC 6191: a SYN with a newer timestamp is of a new connection. */
static void ended__a_newer_syn(void **state)
{
	struct bench *b = begin();
	struct tas_segment syn = { .flags = TAS_SYN, .seq = 5, .window = 65535,
				   .options = TAS_OPT_TS, .ts = 1 };

	(void)state;
	listen_at(b, 4);
	end_one(b, 80, TAS_OPT_TS);
	drain(b);
	hear(b);
	in(b, syn);
	assert_true(sent(b));
	assert_int_equal(b->seg.flags, TAS_ACK);
	assert_int_equal(b->engine.ended.count, 1);
	syn.ts = 2;
	in(b, syn);
	assert_true(sent(b));
	assert_int_equal(b->seg.flags, TAS_SYN | TAS_ACK);
	assert_int_equal(b->seg.ack, 6);
	assert_int_equal(b->engine.ended.count, 0);
	assert_int_equal(b->engine.num_spare_ended, MEMORY);
	bench_free(b);
}

/* Who has not let go, or has no such memory, keeps the connection. */
static void ended__with_an_application(void **state)
{
	struct bench *b = begin();

	(void)state;
	case_open(b, 0, 0);
	tas_shut_send(&b->engine, b->conn);
	drain(b);
	in(b, (struct tas_segment){ .flags = TAS_ACK | TAS_FIN, .seq = IRS + 1,
				    .ack = b->conn->iss + 2, .window = 65535 });
	assert_int_equal(drain(b), 1);
	assert_int_equal(b->conn->f.state, TAS_TIME_WAIT);
	tas_close(&b->engine, b->conn);
	hear(b);
	assert_int_equal(b->engine.table.count, 0);
	assert_int_equal(b->engine.ended.count, 1);
	tick(b, 61 * TAS_SEC);
	while (tas_take_ended(&b->engine))
		;
	end_one(b, 81, 0);
	assert_int_equal(b->conn->f.state, TAS_TIME_WAIT);
	assert_int_equal(b->engine.ended.count, 0);
	bench_free(b);
}

#define CASE(name) cmocka_unit_test(ended__##name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(memory_is_given_back),
		CASE(the_oldest_makes_room),
		CASE(a_newer_syn),
		CASE(with_an_application),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
