// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * host/homad/fast/tcp_tx.c, stream_events.c: what counts against a rule's limits for bytes.
 * Segments of the peer are made by hand.
 */
#include "streams_bed.h"

#define RATE 1000000u
#define BYTES 100u
#define TIMES 20u

/* A connection of another host to a listener under a limit. */
struct way {
	struct bed *bed;
	struct program *p;
	struct homad_tcp_listener listener;
	struct homad_limit limit;
	struct tas_pair pair;
	struct homad_stream *stream;
	u32 seq, ack;
};

static void arrive(struct way *w, u16 flags, u32 length)
{
	struct tas_segment seg = { .seq = w->seq,
				   .ack = w->ack,
				   .flags = flags,
				   .window = 60000,
				   .length = length };
	struct tas_engine *engine = &w->bed->t->tcp->engine;
	struct tas_copy copy;

	homad_now(w->bed->t);
	homad_tcp_round(w->bed->t);
	tas_rx(engine, &w->pair, &seg, 0, &copy);
	if (copy.conn)
		assert_non_null(homad_tcp_place(w->bed->t, engine, &copy));
	homad_listeners_accept(w->bed->t);
	w->seq += length + (flags == TAS_SYN);
}

static void begin(struct way *w)
{
	struct homad_policy *policy;
	u32 i;

	memset(w, 0, sizeof(*w));
	w->bed = bed_new();
	w->p = program(w->bed);
	homad_limit_init(&w->limit, RATE, RATE, 0);
	policy = w->p->s.policy;
	policy->num = 1;
	policy->part[0].rule.listen[0] = policy->part[0].rule.listen[1] = PORT;
	policy->part[0].rule.congestion = -1;
	policy->part[0].limit = &w->limit;
	assert_int_equal(listen_at(w->bed, w->p, &w->listener, PORT, false), 0);
	w->pair = (struct tas_pair){ .local_port = PORT, .remote_port = 5000 };
	memcpy(w->pair.local, here, sizeof(here));
	memcpy(w->pair.remote, here, sizeof(here));
	w->pair.remote[12] = 10;
	arrive(w, TAS_SYN, 0);
	w->ack = homa_container_of(w->listener.l.half.next, struct tas_conn,
				   pending)
			 ->iss +
		 1;
	assert_int_equal(homad_tcp_tx(w->bed->t, &w->bed->d.ports[0]), 1);
	arrive(w, TAS_ACK, 0);
	for (i = 0; i < SLOTS; i++)
		if (w->p->s.stream[i])
			w->stream = w->p->s.stream[i];
	assert_non_null(w->stream);
	assert_ptr_equal(w->stream->limit, &w->limit);
}

static void finish(struct way *w)
{
	homad_limit_leave(w->stream);
	w->p->s.policy->num = 0;
	end(w->bed, w->p);
	end_all(w->bed);
}

/* However many segments a peer has acknowledged, what the application may send stays its own. */
static void charged__not_for_acks(void **state)
{
	struct way w;
	int acks = 0;
	u32 i;

	(void)state;
	begin(&w);
	for (i = 0; i < TIMES; i++) {
		arrive(&w, TAS_ACK, BYTES);
		acks += homad_tcp_tx(w.bed->t, &w.bed->d.ports[0]);
	}
	assert_true(acks > 1);
	assert_int_equal(w.limit.sent, 0);
	assert_int_equal(w.limit.send.tokens, w.limit.send.burst);
	finish(&w);
}

/* Bytes count with their headers. */
static void charged__for_bytes(void **state)
{
	struct way w;

	(void)state;
	begin(&w);
	w.p->s.slots[w.stream->slot].tx_end = BYTES;
	command(w.p, (struct homa_stream_command){
			     .op = HOMA_STREAM_RING,
			     .slot = w.stream->slot,
			     .generation = w.stream->generation });
	look(w.bed, w.p);
	assert_int_equal(homad_tcp_tx(w.bed->t, &w.bed->d.ports[0]), 1);
	assert_in_range(w.limit.sent, BYTES + 40, BYTES + 100);
	w.ack += BYTES;
	arrive(&w, TAS_ACK, 0);
	finish(&w);
}

/* A peer leaves BYTES out and sends what follows them TIMES times, each time with a byte more. */
static void arrive_behind_a_gap(struct way *w)
{
	u32 i, begun = w->seq;

	for (i = 0; i < TIMES; i++) {
		w->seq = begun + BYTES;
		arrive(w, TAS_ACK, BYTES + i);
		homad_stream_events(w->bed->t);
	}
	w->seq = begun;
}

/* A peer that sends bytes behind a gap again and again has sent them once. Else it could use up
 * what all connections of the limit may receive, and owe as much as it likes. */
static void charged__once_for_what_comes_behind_a_gap(void **state)
{
	struct way w;

	(void)state;
	begin(&w);
	arrive_behind_a_gap(&w);
	arrive(&w, TAS_ACK, BYTES);
	homad_stream_events(w.bed->t);
	assert_int_equal(tas_readable(&w.stream->conn), 2 * BYTES + TIMES - 1);
	assert_int_equal(w.limit.received, 2 * BYTES + TIMES - 1);
	assert_int_equal(w.limit.receive.burst - w.limit.receive.tokens,
			 2 * BYTES + TIMES - 1);
	finish(&w);
}

/* An application can see bytes behind a gap in its memory. They count though the gap stays, or a
 * new connection for each window would bring as many as two that agree like. */
static void charged__before_a_gap_is_closed(void **state)
{
	struct way w;

	(void)state;
	begin(&w);
	arrive_behind_a_gap(&w);
	assert_int_equal(tas_readable(&w.stream->conn), 0);
	assert_int_equal(w.limit.received, BYTES + TIMES - 1);
	finish(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(charged__not_for_acks),
		cmocka_unit_test(charged__for_bytes),
		cmocka_unit_test(charged__once_for_what_comes_behind_a_gap),
		cmocka_unit_test(charged__before_a_gap_is_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
