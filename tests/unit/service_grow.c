// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * host/homad/fast/stream_grow.c: what a writer is told of its send buffer, for which he may wait
 * while it will grow. Memory is as the slow path says; nobody uses it here.
 */
#include <sys/mman.h>
#include "streams_bed.h"

#define ASKS 16u
#define MOST 16u /* log2 of the largest send buffer */
#define FULL HOMA_STREAM_FIRST

/* A connection from @p to itself, and its end at @stream's. */
struct way {
	struct bed *bed;
	struct program *p;
	struct homad_tcp_listener listener;
	struct homad_stream *stream;
	struct homa_stream_slot *slot;
};

static void begin(struct way *w, u8 most)
{
	u32 i = 0;

	w->bed = bed_new();
	w->p = program(w->bed);
	w->p->s.tx_most = most;
	w->p->s.num_asks = ASKS;
	w->p->s.asks = calloc(ASKS, sizeof(u32));
	w->bed->t->tcp->slow_fd = -1;
	assert_int_equal(listen_by(w->bed, w->p, &w->listener), 0);
	open_connection(w->bed, w->p, 5000);
	while (event(w->p).kind)
		;
	look(w->bed, w->p);
	while (event(w->p).kind)
		;
	while (!w->p->s.stream[i] || w->p->s.stream[i]->accepted)
		i++;
	w->stream = w->p->s.stream[i];
	w->slot = &w->p->s.slots[i];
	w->slot->told = 0;
}

static void finish(struct way *w)
{
	u32 *asks = w->p->s.asks;

	end(w->bed, w->p);
	free(asks);
	end_all(w->bed);
}

/* The application has written a full buffer, of which nothing was sent. */
static void fill(struct way *w)
{
	w->slot->tx_end = FULL;
	w->slot->rung = 1;
	command(w->p, (struct homa_stream_command){
			      .op = HOMA_STREAM_RING,
			      .slot = w->stream->slot,
			      .generation = w->stream->generation });
	look(w->bed, w->p);
}

/* The slow path answers: the send buffer has 2^@shift bytes. */
static void grant(struct way *w, u8 shift)
{
	struct homad_grow grow = { .streams = &w->p->s, .num = 1 };

	grow.slot[0] = w->stream->slot;
	memset(grow.from[0], HOMA_STREAM_MIN_SHIFT, sizeof(grow.from[0]));
	memset(grow.to[0], HOMA_STREAM_MIN_SHIFT, sizeof(grow.to[0]));
	grow.to[0][HOMAD_TX] = shift;
	homad_call(w->bed->t, homad_streams_grown, &grow);
	homad_streams_deliver(w->bed->t);
}

static void buffer__that_is_as_large_as_it_may_be(void **state)
{
	struct way w;

	(void)state;
	begin(&w, HOMA_STREAM_MIN_SHIFT);
	assert_int_equal(w.slot->tx_stays, 1);
	fill(&w);
	assert_int_equal(w.slot->tx_stays, 1);
	assert_int_equal(w.p->s.asks_tail, 0);
	finish(&w);
}

static void buffer__that_grows(void **state)
{
	struct way w;

	(void)state;
	begin(&w, MOST);
	assert_int_equal(w.slot->tx_stays, 0);
	fill(&w);
	assert_int_equal(w.p->s.asks_tail, 1);
	assert_int_equal(w.slot->tx_stays, 0);
	assert_int_equal(event(w.p).kind, 0);
	grant(&w, MOST);
	assert_int_equal(w.slot->tx_shift, MOST);
	assert_int_equal(w.slot->tx_stays, 1);
	assert_int_equal(event(w.p).kind, HOMA_STREAM_CHANGED);
	finish(&w);
}

/* It says so at once, so that nobody waits; when there may be memory it is asked for again. */
static void buffer__for_which_there_is_no_memory(void **state)
{
	struct way w;

	(void)state;
	begin(&w, MOST);
	fill(&w);
	grant(&w, HOMA_STREAM_MIN_SHIFT);
	assert_int_equal(w.slot->tx_shift, HOMA_STREAM_MIN_SHIFT);
	assert_int_equal(w.slot->tx_stays, 1);
	assert_int_equal(event(w.p).kind, HOMA_STREAM_CHANGED);
	assert_int_equal(w.p->s.asks_tail, 1);
	w.p->s.grow_refused_at = 0;
	w.stream->conn.f.cwnd = 1u << MOST;
	homad_stream_fills(w.bed->t, w.stream);
	assert_int_equal(w.p->s.asks_tail, 2);
	assert_int_equal(w.slot->tx_stays, 0);
	finish(&w);
}

/* The slot's receive buffer has more memory, of a stream of before. It is not for this one as long
 * as its application takes nothing: what fits into it the peer may send, beyond any limit. */
static void buffer__that_grows_beside_one_with_more_memory(void **state)
{
	struct homad_grow grow = { .num = 1 };
	struct way w;
	void *spans;

	(void)state;
	begin(&w, MOST);
	spans = mmap(NULL, 2ul * SLOTS * HOMA_STREAM_SPAN,
		     PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(spans, MAP_FAILED);
	w.p->s.spans = spans;
	w.p->s.rx_most = MOST;
	w.p->s.backing[w.stream->slot].have[HOMAD_RX] = MOST;
	fill(&w);
	assert_int_equal(w.p->s.asks_tail, 1);
	grow.streams = &w.p->s;
	grow.slot[0] = w.stream->slot;
	grow.from[0][HOMAD_RX] = grow.to[0][HOMAD_RX] = MOST;
	grow.from[0][HOMAD_TX] = HOMA_STREAM_MIN_SHIFT;
	grow.to[0][HOMAD_TX] = MOST;
	homad_call(w.bed->t, homad_streams_grown, &grow);
	assert_int_equal(w.slot->tx_shift, MOST);
	assert_int_equal(w.stream->conn.f.rx_shift, HOMAD_STREAM_SHIFT);
	assert_true(homa_stream_is_first(w.slot->rx_map));
	finish(&w);
	munmap(spans, 2ul * SLOTS * HOMA_STREAM_SPAN);
}

/* The slot's send buffer has more memory, of a stream of before, but less than was asked for, and
 * there is no more: the stream gets that. */
static void buffer__that_gets_what_the_slot_has(void **state)
{
	struct homad_grow grow = { .num = 1 };
	struct way w;

	(void)state;
	begin(&w, MOST);
	w.p->s.backing[w.stream->slot].have[HOMAD_TX] = MOST - 1;
	fill(&w);
	assert_int_equal(w.p->s.asks_tail, 1);
	grow.streams = &w.p->s;
	grow.slot[0] = w.stream->slot;
	grow.from[0][HOMAD_RX] = grow.to[0][HOMAD_RX] = HOMA_STREAM_MIN_SHIFT;
	grow.from[0][HOMAD_TX] = grow.to[0][HOMAD_TX] = MOST - 1;
	homad_call(w.bed->t, homad_streams_grown, &grow);
	assert_int_equal(w.slot->tx_shift, MOST - 1);
	finish(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buffer__that_is_as_large_as_it_may_be),
		cmocka_unit_test(buffer__that_grows),
		cmocka_unit_test(buffer__that_grows_beside_one_with_more_memory),
		cmocka_unit_test(buffer__that_gets_what_the_slot_has),
		cmocka_unit_test(buffer__for_which_there_is_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
