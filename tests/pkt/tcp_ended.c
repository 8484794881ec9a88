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
	in(b, (struct tas_segment){ .flags = TAS_ACK | TAS_FIN,
				    .seq = IRS + 1,
				    .ack = b->conn->iss + 2,
				    .window = 65535,
				    .options = options & TAS_OPT_TS,
				    .ts = 1 });
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
	assert_int_equal(tas_connect(&b->engine, &b->pair, 16, 65536, &b->conn),
			 TAS_EADDRINUSE);
	/* The peer's FIN once more, a reset, and something that never was. */
	tick(b, 40 * TAS_SEC);
	in(b, (struct tas_segment){ .flags = TAS_RST, .seq = IRS + 2 });
	assert_false(sent(b));
	in(b, (struct tas_segment){ .flags = TAS_ACK | TAS_FIN,
				    .seq = IRS + 1,
				    .ack = iss + 2 });
	assert_true(sent(b));
	assert_int_equal(b->seg.ack, IRS + 2);
	tick(b, 40 * TAS_SEC);
	assert_int_equal(b->engine.ended.count, 1);
	in(b, (struct tas_segment){
		      .flags = TAS_ACK | TAS_FIN, .seq = 5, .ack = 9 });
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
		assert_int_equal(tas_connect(&b->engine, &b->pair, 16, 65536,
					     &b->conn),
				 i < 2 ? 0 : TAS_EADDRINUSE);
	}
	bench_free(b);
}

/* RFC 6191: a SYN with a newer timestamp is of a new connection. */
static void ended__a_newer_syn(void **state)
{
	struct bench *b = begin();
	struct tas_segment syn = { .flags = TAS_SYN,
				   .seq = 5,
				   .window = 65535,
				   .options = TAS_OPT_TS,
				   .ts = 1 };

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

/* If nobody listens here, a newer SYN ends TIME_WAIT only if another engine has a listener, whose
 * it is then: nothing is answered here. The same for a connection that nobody has let go of. */
static void ended__a_newer_syn_for_another_engine(void **state)
{
	struct tas_segment syn = { .flags = TAS_SYN, .seq = 5, .window = 65535 };
	u32 whole;

	(void)state;
	for (whole = 0; whole < 2; whole++) {
		struct bench *b = begin();
		const struct tas_engine *engine = &b->engine;

		while (whole && tas_take_ended(&b->engine))
			;
		end_one(b, 80, 0);
		drain(b);
		hear(b);
		assert_int_equal(engine->table.count, whole);
		assert_int_equal(engine->ended.count, !whole);
		syn.seq = IRS + 1000;
		in(b, syn);
		assert_false(sent(b));
		assert_true(tas_knows(&b->engine, &b->pair));
		b->engine.elsewhere = true;
		syn.seq = IRS - 1000;
		in(b, syn);
		drain(b);
		assert_true(tas_knows(&b->engine, &b->pair));
		syn.seq = IRS + 1000;
		in(b, syn);
		assert_false(sent(b));
		assert_false(tas_knows(&b->engine, &b->pair));
		assert_int_equal(engine->metrics.time_wait_recycled, 1);
		bench_free(b);
	}
}

/* Who has not let go, or has no such memory, keeps the connection. */
static void ended__with_an_application(void **state)
{
	struct bench *b = begin();

	(void)state;
	case_open(b, 0, 0);
	tas_shut_send(&b->engine, b->conn);
	drain(b);
	in(b, (struct tas_segment){ .flags = TAS_ACK | TAS_FIN,
				    .seq = IRS + 1,
				    .ack = b->conn->iss + 2,
				    .window = 65535 });
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

static struct tas_conn *follow(struct bench *b, int want)
{
	struct tas_conn *conn = NULL;

	assert_int_equal(tas_connect(&b->engine, &b->pair, 12, 65536, &conn),
			 want);
	return conn;
}

/* RFC 6191 from the side that opens: after a second, if both had timestamps, with newer
 * timestamps and sequence numbers behind the last ones. */
static void ended__connect_follows(void **state)
{
	struct bench *b = begin();
	u32 last, ts;

	(void)state;
	end_one(b, 80, TAS_OPT_TS);
	assert_true(sent(b));
	ts = b->seg.ts;
	hear(b);
	/* As if it had sent more than a clock's worth of bytes. */
	b->conn = NULL;
	last = homa_container_of(homa_list_first(&b->engine.ended_order),
				 struct tas_ended, order)
		       ->snd_nxt += 1u << 30;
	tick(b, 999 * TAS_MSEC);
	follow(b, TAS_EADDRINUSE);
	tick(b, TAS_MSEC);
	b->conn = follow(b, 0);
	assert_int_equal(b->engine.ended.count, 0);
	assert_int_equal(b->engine.num_spare_ended, MEMORY);
	assert_int_equal(b->engine.metrics.time_wait_reused, 1);
	assert_true(sent(b));
	assert_int_equal(b->seg.flags & (TAS_SYN | TAS_ACK), TAS_SYN);
	assert_true((s32)(b->seg.seq - last) > 65535);
	assert_true((s32)(b->seg.ts - ts) > 0);
	/* It opens as any other. */
	in(b, (struct tas_segment){ .flags = TAS_SYN | TAS_ACK,
				    .seq = 99,
				    .ack = b->seg.seq + 1,
				    .window = 65535,
				    .options = TAS_OPT_TS,
				    .ts = 5,
				    .ts_echo = b->seg.ts });
	assert_int_equal(b->conn->f.state, TAS_ESTABLISHED);
	bench_free(b);
}

static void ended__connect_waits_without_timestamps(void **state)
{
	struct bench *b = begin();

	(void)state;
	end_one(b, 80, 0);
	drain(b);
	hear(b);
	tick(b, 59 * TAS_SEC);
	follow(b, TAS_EADDRINUSE);
	tick(b, TAS_SEC);
	follow(b, 0);
	bench_free(b);
}

/* A refused connect() leaves TIME_WAIT as it was. */
static void ended__connect_without_memory(void **state)
{
	struct bench *b = begin();
	struct homa_list spare;

	(void)state;
	end_one(b, 80, TAS_OPT_TS);
	drain(b);
	hear(b);
	tick(b, 2 * TAS_SEC);
	homa_list_init(&spare);
	homa_list_splice_tail(&spare, &b->engine.spare);
	follow(b, TAS_ENOMEM);
	assert_int_equal(b->engine.ended.count, 1);
	homa_list_splice_tail(&b->engine.spare, &spare);
	follow(b, 0);
	bench_free(b);
}

static void ended__the_oldest_orphan_makes_room(void **state)
{
	struct bench *b = begin();
	struct tas_conn *first;
	u32 spare = b->engine.num_spare;

	(void)state;
	assert_false(tas_drop_orphan(&b->engine));
	case_open(b, 0, 0);
	first = b->conn;
	tas_close(&b->engine, b->conn);
	drain(b);
	in(b, (struct tas_segment){ .flags = TAS_ACK,
				    .seq = IRS + 1,
				    .ack = b->conn->iss + 2,
				    .window = 65535 });
	assert_int_equal(first->f.state, TAS_FIN_WAIT_2);
	/* One whose application is still there is none. */
	b->pair.local_port = 81;
	case_open(b, 0, 0);
	tas_shut_send(&b->engine, b->conn);
	drain(b);
	in(b, (struct tas_segment){ .flags = TAS_ACK,
				    .seq = IRS + 1,
				    .ack = b->conn->iss + 2,
				    .window = 65535 });
	assert_int_equal(b->conn->f.state, TAS_FIN_WAIT_2);
	assert_true(tas_drop_orphan(&b->engine));
	assert_false(tas_drop_orphan(&b->engine));
	assert_int_equal(first->f.state, TAS_CLOSED);
	assert_int_equal(b->engine.metrics.orphans_dropped, 1);
	hear(b);
	assert_int_equal(b->engine.num_spare, spare - 1);
	tas_close(&b->engine, b->conn);
	assert_true(tas_drop_orphan(&b->engine));
	hear(b);
	bench_free(b);
}

/* Also those whose peer never acknowledges the FIN: closed in either state, and by turns. */
static void ended__an_unanswered_fin_makes_room(void **state)
{
	struct bench *b = begin();
	struct tas_conn *conn[2];
	u32 i, spare = b->engine.num_spare;

	(void)state;
	for (i = 0; i < 2; i++) {
		b->pair.local_port = (u16)(80 + i);
		case_open(b, 0, 0);
		conn[i] = b->conn;
		if (i)
			in(b, (struct tas_segment){ .flags = TAS_ACK | TAS_FIN,
						    .seq = IRS + 1,
						    .ack = b->conn->iss + 1,
						    .window = 65535 });
		tas_close(&b->engine, b->conn);
		drain(b);
	}
	assert_int_equal(conn[0]->f.state, TAS_FIN_WAIT_1);
	assert_int_equal(conn[1]->f.state, TAS_LAST_ACK);
	/* One with bytes under way is still its application's. */
	b->pair.local_port = 82;
	case_open(b, 0, 0);
	assert_int_equal(tas_written(&b->engine, b->conn, 100), 0);
	tas_close(&b->engine, b->conn);
	drain(b);
	assert_true(tas_drop_orphan(&b->engine));
	assert_int_equal(conn[0]->f.state, TAS_CLOSED);
	assert_int_equal(conn[1]->f.state, TAS_LAST_ACK);
	assert_true(tas_drop_orphan(&b->engine));
	assert_false(tas_drop_orphan(&b->engine));
	hear(b);
	assert_int_equal(b->engine.num_spare, spare - 1);
	bench_free(b);
}

#define CASE(name) cmocka_unit_test(ended__##name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(memory_is_given_back),
		CASE(the_oldest_makes_room),
		CASE(a_newer_syn),
		CASE(a_newer_syn_for_another_engine),
		CASE(with_an_application),
		CASE(connect_follows),
		CASE(connect_waits_without_timestamps),
		CASE(connect_without_memory),
		CASE(the_oldest_orphan_makes_room),
		CASE(an_unanswered_fin_makes_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
