// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * host/homad/fast/streams.c, stream_resets.c: programs end with more connections than the engine
 * keeps resets for. Each peer hears of it all the same. Segments are made by hand.
 */
#include "streams_bed.h"

#define PROGRAMS 6u
#define CALLERS (PROGRAMS * SLOTS)
#define BYTES 100u

HOMA_STATIC_ASSERT(CALLERS > TAS_STRAYS, "more than the engine keeps at once");

/* A peer of another host, and whether it has heard a reset. */
struct caller {
	struct tas_pair pair;
	bool reset;
};

static void arrive(struct bed *bed, const struct caller *c, u32 seq, u32 ack,
		   u16 flags, u32 length)
{
	struct tas_engine *engine = &bed->t->tcp->engine;
	struct tas_segment seg = { .seq = seq,
				   .ack = ack,
				   .flags = flags,
				   .window = 60000,
				   .length = length };
	struct tas_copy copy;

	homad_now(bed->t);
	homad_tcp_round(bed->t);
	tas_rx(engine, &c->pair, &seg, 0, &copy);
	if (copy.conn)
		assert_non_null(homad_tcp_place(bed->t, engine, &copy));
}

/* The peer opens a connection and sends bytes, which nobody reads. */
static void call(struct bed *bed, struct caller *c, u16 to, u16 from)
{
	struct tas_segment seg = { 0 };
	struct tas_out out;

	c->pair = (struct tas_pair){ .local_port = to, .remote_port = from };
	memcpy(c->pair.local, here, sizeof(here));
	memcpy(c->pair.remote, here, sizeof(here));
	c->pair.remote[12] = 10;
	arrive(bed, c, 0, 0, TAS_SYN, 0);
	while (tas_next_out(&bed->t->tcp->engine, &out))
		assert_int_equal(tas_decode(&seg, out.header, out.header_length),
				 0);
	assert_int_equal(seg.flags & (TAS_SYN | TAS_ACK), TAS_SYN | TAS_ACK);
	arrive(bed, c, 1, seg.seq + 1, TAS_ACK, 0);
	arrive(bed, c, 1, seg.seq + 1, TAS_ACK, BYTES);
	homad_listeners_accept(bed->t);
	while (tas_next_out(&bed->t->tcp->engine, &out))
		;
}

/* All that the engine has to send leaves. Returns how many peers have heard a reset now. */
static u32 send_all(struct bed *bed, struct caller *callers)
{
	struct tas_segment seg;
	struct tas_out out;
	u32 i, n = 0;

	while (tas_next_out(&bed->t->tcp->engine, &out)) {
		assert_int_equal(tas_decode(&seg, out.header, out.header_length),
				 0);
		for (i = 0; seg.flags & TAS_RST && i < CALLERS; i++)
			callers[i].reset |= callers[i].pair.remote_port ==
					    out.pair->remote_port;
	}
	for (i = 0; i < CALLERS; i++)
		n += callers[i].reset;
	return n;
}

/* Each of PROGRAMS programs listens at a port of its own. */
static void all_listen(struct bed *bed, struct program **programs,
		       struct homad_tcp_listener *listeners)
{
	u32 i;

	for (i = 0; i < PROGRAMS; i++) {
		programs[i] = program(bed);
		assert_int_equal(listen_at(bed, programs[i], &listeners[i],
					   (u16)(PORT + i), false),
				 0);
	}
}

/* CALLERS peers connect, as many to each program as to the others, from @first and the ports
 * behind it. */
static void all_call(struct bed *bed, struct caller *callers, u32 first)
{
	u32 i;

	for (i = 0; i < CALLERS; i++)
		call(bed, &callers[i], (u16)(PORT + i % PROGRAMS),
		     (u16)(first + i));
}

static void resets__of_programs_that_end_together(void **state)
{
	struct homad_tcp_listener listeners[PROGRAMS];
	struct program *programs[PROGRAMS];
	struct caller callers[CALLERS] = { 0 };
	struct bed *bed = bed_new();
	u32 i, reset = 0;

	(void)state;
	all_listen(bed, programs, listeners);
	all_call(bed, callers, 5000);
	for (i = 0; i < PROGRAMS; i++) {
		assert_int_equal(programs[i]->s.num_open, SLOTS);
		homad_session_close(bed->t, &programs[i]->side->app);
	}
	for (i = 0; i < 10 && reset < CALLERS; i++) {
		reset = send_all(bed, callers);
		homad_streams_reset(bed->t);
	}
	assert_int_equal(reset, CALLERS);
	for (i = 0; i < PROGRAMS; i++)
		end(bed, programs[i]);
	end_all(bed);
}

/* A listener with twice as many connections as its program has slots for. */
static void resets__of_connections_that_wait_for_a_slot(void **state)
{
	struct homad_tcp_listener listeners[PROGRAMS];
	struct program *programs[PROGRAMS];
	struct caller callers[CALLERS] = { 0 }, others[CALLERS] = { 0 };
	struct bed *bed = bed_new();
	u32 i, reset = 0;

	(void)state;
	all_listen(bed, programs, listeners);
	all_call(bed, others, 5000);
	all_call(bed, callers, 6000);
	for (i = 0; i < PROGRAMS; i++)
		assert_int_equal(listeners[i].l.num_ready, SLOTS);
	for (i = 0; i < PROGRAMS; i++)
		homad_session_close(bed->t, &programs[i]->side->app);
	for (i = 0; i < 20 && reset < CALLERS; i++) {
		reset = send_all(bed, callers);
		homad_streams_reset(bed->t);
	}
	assert_int_equal(reset, CALLERS);
	for (i = 0; i < PROGRAMS; i++)
		end(bed, programs[i]);
	end_all(bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resets__of_programs_that_end_together),
		cmocka_unit_test(resets__of_connections_that_wait_for_a_slot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
