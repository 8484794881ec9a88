// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * host/homad/fast/tcp_rx.c: bytes for connections that their listener has not taken yet, while it
 * has slots for some of them only. Segments are made by hand, so that several come at once.
 */
#include "streams_bed.h"

#define CALLERS 4u
#define FREE 2u
#define BYTES 100u

/* A peer, and the number of the first byte that it expects. */
struct caller {
	struct tas_pair pair;
	u32 expects;
};

/* A segment of @c's arrives; returns the stream to which its bytes go, or NULL. */
static struct homad_stream *arrive(struct bed *bed, const struct caller *c,
				   u32 seq, u16 flags, u32 length)
{
	struct tas_engine *engine = &bed->t->tcp->local;
	struct tas_segment seg = { .seq = seq,
				   .ack = c->expects,
				   .flags = flags,
				   .window = 60000,
				   .length = length };
	struct tas_copy copy;

	homad_now(bed->t);
	homad_tcp_round(bed->t);
	homad_tcp_refill(bed->t->tcp, engine);
	tas_rx(engine, &c->pair, &seg, 0, &copy);
	return copy.conn ? homad_tcp_place(bed->t, engine, &copy) : NULL;
}

/* Opens half a connection: the listener has answered. */
static void call(struct bed *bed, struct caller *c, u16 port)
{
	struct tas_segment seg = { 0 };
	struct tas_out out;

	c->pair = (struct tas_pair){ .local_port = PORT, .remote_port = port };
	memcpy(c->pair.local, here, sizeof(here));
	memcpy(c->pair.remote, here, sizeof(here));
	arrive(bed, c, 0, TAS_SYN, 0);
	while (tas_next_out(&bed->t->tcp->local, &out))
		assert_int_equal(tas_decode(&seg, out.header, out.header_length),
				 0);
	assert_int_equal(seg.flags & (TAS_SYN | TAS_ACK), TAS_SYN | TAS_ACK);
	c->expects = seg.seq + 1;
}

/* Several connections become open at once, and bytes of the last one come before any is taken. They
 * have a place, as a slot is free. Bytes of others have none and are dropped; no connection
 * is reset. */
static void bytes__of_the_last_that_came(void **state)
{
	struct homad_tcp_listener listener;
	struct bed *bed = bed_new();
	struct program *p = program(bed);
	struct caller callers[CALLERS];
	u32 i, last = CALLERS - 1;

	(void)state;
	assert_int_equal(listen_by(bed, p, &listener), 0);
	for (i = 0; i < CALLERS; i++)
		call(bed, &callers[i], (u16)(5000 + i));
	take_memory(&p->s, true);
	p->s.num_free = p->s.backed = FREE;
	for (i = 0; i < CALLERS; i++)
		assert_null(arrive(bed, &callers[i], 1, TAS_ACK, 0));
	assert_non_null(arrive(bed, &callers[last], 1, TAS_ACK, BYTES));
	homad_listeners_accept(bed->t);
	for (i = 1; i < last; i++)
		assert_null(arrive(bed, &callers[i], 1, TAS_ACK, BYTES));
	for (i = 0; i < FREE; i++) {
		look(bed, p);
		assert_int_equal(event(p).kind, HOMA_STREAM_ACCEPTED);
	}
	assert_int_equal(event(p).kind, 0);

	/* Memory has come, and the bytes come again. */
	answer(bed, p, SLOTS);
	for (i = 1; i < last; i++)
		assert_non_null(arrive(bed, &callers[i], 1, TAS_ACK, BYTES));
	look(bed, p);
	for (i = FREE; i < CALLERS; i++)
		assert_int_equal(event(p).kind, HOMA_STREAM_ACCEPTED);
	assert_int_equal(event(p).kind, 0);
	assert_int_equal(bed->t->tcp->counters.no_place, 0);
	assert_int_equal(bed->t->tcp->local.metrics.resets_sent, 0);
	end(bed, p);
	end_all(bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes__of_the_last_that_came),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
