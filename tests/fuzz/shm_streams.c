// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Streams of applications that fuzz_shm attacks; see shm_streams.h. */
#include <stdlib.h>
#include <string.h>
#include "fast.h"
#include "homad_tcp.h"
#include "shm_streams.h"
#include "stream_grow.h"
#include "stream_limits.h"
#include "tcp_listener.h"
#include "tcp_stream.h"

#define PORTS 64u
#define FIRST_PORT 50000u
#define CONNECTIONS 256u

static const u8 here[16] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };
static struct homad_tcp_listener *listeners[SHM_LISTENERS];
static u32 num_listeners;

static struct homad_thread *thread(void)
{
	return shm_homad.threads[0];
}

/* ---- begin and end ---- */

static struct homad_tcp *tcp(void)
{
	static const struct homad_tcp_seeds seeds;
	struct homad_thread *t = thread();
	u16 ports[PORTS];
	u32 i;

	if (t->tcp)
		return t->tcp;
	homad_tcp_run(t, homad_tcp_new(&seeds, CONNECTIONS, 1500, fuzz_clock));
	MUST(t->tcp);
	/* The same in each run of an input. */
	homa_rng_init(&t->tcp->engine.rng, 1);
	homa_rng_init(&t->tcp->local.rng, 2);
	for (i = 0; i < PORTS; i++)
		ports[i] = (u16)(FIRST_PORT + i);
	homad_tcp_use_ports(t, ports, PORTS);
	return t->tcp;
}

static void *zeros(size_t count, size_t size)
{
	void *mem = calloc(count, size);

	MUST(mem);
	return mem;
}

static void make_tables(struct homad_streams *s, u8 most)
{
	homa_list_init(&s->grown);
	homa_list_init(&s->idle_holds);
	s->wake_fd = s->memory_fd = -1;
	s->rx_most = s->tx_most = most;
	s->num_asks = SHM_SLOTS;
	s->same_network = true;
	s->asks = zeros(SHM_SLOTS, sizeof(*s->asks));
	s->stream = zeros(SHM_SLOTS, sizeof(struct homad_stream *));
	s->free = zeros(SHM_SLOTS, sizeof(*s->free));
	s->generations = zeros(SHM_SLOTS, sizeof(*s->generations));
	s->backing = zeros(SHM_SLOTS, sizeof(*s->backing));
	s->alias = zeros(SHM_SLOTS, sizeof(*s->alias));
	s->policy = zeros(1, sizeof(*s->policy));
	s->policy->num = 1;
	s->policy->part[0].rule = (struct homad_tcp_rule){
		.listen = { 1, 65535 }, .connect = { 1, 65535 }, .congestion = -1
	};
}

void shm_streams_open(struct shm_streams *st, struct shm_side *side, u8 *spans)
{
	static u32 ids;
	struct homad_streams *s = &st->s;
	struct homad_streams_open open = { &side->app, s };
	u64 slots = (SHM_SLOTS * sizeof(*s->slots) + 4095) / 4096 * 4096;
	u32 i;

	memset(st, 0, sizeof(*st));
	make_tables(s, spans ? SHM_LARGE : HOMA_STREAM_MIN_SHIFT);
	s->id = ++ids;
	s->tcp = tcp();
	/* So that ASan sees what lies behind the first buffers. */
	homad_streams_lay(s,
			  shm_aligned(homad_streams_fixed(SHM_SLOTS) + slots +
				      SHM_SLOTS * 2u * HOMA_STREAM_FIRST),
			  SHM_SLOTS);
	s->spans = spans;
	for (i = 0; i < SHM_SLOTS; i++) {
		memset(s->backing[i].have, HOMA_STREAM_MIN_SHIFT, HOMAD_BUFFERS);
		homad_slot_put(s, i);
	}
	s->backed = SHM_SLOTS;
	MUST(!homad_call(thread(), homad_streams_begin, &open));
	st->open = true;
}

void shm_streams_leave(struct shm_streams *st)
{
	struct homad_sharing sharing = { .ticket = st->ticket, .tcp = st->s.tcp };

	if (!st->ticket)
		return;
	homad_call(thread(), homad_ticket_drop, &sharing);
	free(st->ticket);
	st->ticket = NULL;
}

void shm_streams_free(struct shm_streams *st, struct shm_side *side)
{
	struct homad_streams *s = &st->s;

	MUST(s->num_open == 0 && s->num_aliases == 0 && s->num_holding == 0);
	/* Nobody asks for it any more. */
	__atomic_store_n(&s->tcp->growing, NULL, __ATOMIC_RELAXED);
	side->app.streams = NULL;
	free(s->area);
	free(s->asks);
	free(s->stream);
	free(s->free);
	free(s->generations);
	free(s->backing);
	free(s->alias);
	free(s->policy);
	free(s->joined);
	st->open = false;
}

void shm_streams_stop(void)
{
	while (num_listeners)
		free(listeners[--num_listeners]);
}

/* ---- the application's part ---- */

void shm_streams_give(struct shm_streams *st, struct shm_side *side,
		      const struct homa_stream_command *c)
{
	struct homad_streams *s = &st->s;

	s->commands[st->tail++ & (s->entries - 1)] = *c;
	s->area->command.tail = st->tail;
	homad_poll_app(thread(), &side->app);
}

struct homa_stream_command shm_streams_connect(u16 port)
{
	struct homa_stream_command c = { .op = HOMA_STREAM_CONNECT,
					 .remote.port = port };

	memcpy(c.remote.ip, here, sizeof(here));
	return c;
}

bool shm_streams_hear(struct shm_streams *st)
{
	struct homad_streams *s = &st->s;
	struct homa_stream_event e;
	struct shm_stream *stream;

	if (s->area->event.tail == st->head)
		return false;
	e = s->events[st->head & (s->entries - 1)];
	s->area->event.head = ++st->head;
	if (e.kind == HOMA_STREAM_FAILED)
		st->failed++;
	/* A side that writes to its ring itself reads its own lies. */
	if (e.slot >= SHM_SLOTS)
		return true;
	s->slots[e.slot].told = 0;
	stream = &st->of[e.slot];
	if (e.kind == HOMA_STREAM_OPENED || e.kind == HOMA_STREAM_ACCEPTED ||
	    e.kind == HOMA_STREAM_JOINED)
		*stream = (struct shm_stream){
			.used = true,
			.asked = e.kind == HOMA_STREAM_OPENED,
			.generation = e.generation,
			.map = homa_stream_map(HOMA_STREAM_MIN_SHIFT, 0),
		};
	return true;
}

static void say(struct shm_streams *st, struct shm_side *side, u32 slot, u16 op)
{
	shm_streams_give(st, side,
			 &(struct homa_stream_command){
				 .op = op,
				 .slot = slot,
				 .generation = st->of[slot].generation });
}

/* Buffers are the first ones, whose maps begin at 0. */
static u8 *buffer(const struct shm_streams *st, u32 slot, u32 way)
{
	return st->s.firsts + (slot * HOMAD_BUFFERS + way) * HOMA_STREAM_FIRST;
}

static void echo(struct shm_streams *st, struct shm_side *side, u32 i)
{
	struct homa_stream_slot *slot = &st->s.slots[i];
	struct shm_stream *stream = &st->of[i];
	u32 n = slot->rx_end - stream->read;
	bool ended = slot->state & (HOMA_STREAM_HAS_END | HOMA_STREAM_HAS_ERROR);
	u32 room = HOMA_STREAM_FIRST - (stream->end - slot->tx_free), k;

	MUST(n <= HOMA_STREAM_FIRST && room <= HOMA_STREAM_FIRST);
	for (k = 0; k < homa_min_u32(n, room); k++)
		buffer(st, i, HOMAD_TX)[stream->end++ % HOMA_STREAM_FIRST] =
			buffer(st, i,
			       HOMAD_RX)[stream->read++ % HOMA_STREAM_FIRST];
	if (k) {
		slot->rx_read = stream->read;
		slot->tx_end = stream->end;
		say(st, side, i, HOMA_STREAM_RING);
	} else if (ended) {
		stream->used = false;
		say(st, side, i, HOMA_STREAM_CLOSE);
	}
}

void shm_streams_serve(struct shm_streams *st, struct shm_side *side)
{
	u32 i;

	while (shm_streams_hear(st))
		;
	for (i = 0; i < SHM_SLOTS; i++)
		if (st->of[i].used && !st->of[i].asked)
			echo(st, side, i);
}

static u8 mark(u32 i, u32 length)
{
	return (u8)(i * 7 + length);
}

/* Does what a client does with its stream @i. Returns true when all has come back. */
static bool asks(struct shm_streams *st, struct shm_side *side, u32 i, u32 length)
{
	struct homa_stream_slot *slot = &st->s.slots[i];
	struct shm_stream *stream = &st->of[i];

	MUST(!slot->error && slot->rx_end <= length);
	for (; stream->end < length &&
	       stream->end - slot->tx_free < HOMA_STREAM_FIRST;
	     stream->end++)
		buffer(st, i, HOMAD_TX)[stream->end % HOMA_STREAM_FIRST] =
			mark(stream->end, length);
	for (; stream->read != slot->rx_end; stream->read++)
		MUST(buffer(st, i, HOMAD_RX)[stream->read % HOMA_STREAM_FIRST] ==
		     mark(stream->read, length));
	if (slot->tx_end == stream->end && slot->rx_read == stream->read)
		return false;
	slot->tx_end = stream->end;
	slot->rx_read = stream->read;
	say(st, side, i, HOMA_STREAM_RING);
	if (stream->read < length)
		return false;
	stream->used = false;
	say(st, side, i, HOMA_STREAM_CLOSE);
	return true;
}

void shm_streams_echo(struct shm_streams *st, struct shm_side *side, u16 port,
		      u32 length)
{
	struct homa_stream_command c = shm_streams_connect(port);
	u32 i, round, failed = st->failed;
	bool done = false;

	shm_streams_give(st, side, &c);
	for (round = 0; round < SHM_MAX_ROUNDS && !done; round++) {
		shm_rounds(1);
		fuzz_clock += 50000;
		shm_streams_serve(st, side);
		MUST(st->failed == failed && !side->app.evicted);
		for (i = 0; i < SHM_SLOTS; i++)
			if (st->of[i].used && st->of[i].asked)
				done |= asks(st, side, i, length);
	}
	MUST(done);
}

/* ---- the slow path's part ---- */

void shm_streams_listen(struct shm_streams *st, u16 port)
{
	struct homad_tcp_listener *listener;

	if (num_listeners == SHM_LISTENERS)
		return;
	listener = zeros(1, sizeof(*listener));
	listeners[num_listeners++] = listener;
	memcpy(listener->l.local, here, sizeof(here));
	listener->l.port = port;
	listener->l.backlog = 4;
	listener->loopback = true;
	listener->home = &st->s;
	listener->tcp = st->s.tcp;
	if (!homad_call(thread(), homad_listener_begin, listener))
		st->listener = listener->first.number;
}

static void grant(struct homad_streams *s, u8 most)
{
	struct homad_grow grow = { .streams = s };
	u32 i, way;

	s->asks_told = false;
	for (; s->asks_head != s->asks_tail; grow.num++) {
		u32 slot = s->asks[s->asks_head++ & (s->num_asks - 1)];
		const struct homad_backing *b = &s->backing[slot];

		grow.slot[grow.num] = slot;
		memcpy(grow.from[grow.num], b->have, sizeof(b->have));
		memcpy(grow.to[grow.num], b->want, sizeof(b->want));
	}
	for (i = 0; i < grow.num; i++)
		for (way = 0; way < HOMAD_BUFFERS; way++)
			if (grow.to[i][way] > most)
				grow.to[i][way] = grow.from[i][way] > most ?
							  grow.from[i][way] :
							  most;
	homad_call(thread(), homad_streams_grown, &grow);
}

void shm_streams_grant(u8 most)
{
	struct homad_tcp *tcp = thread()->tcp;
	struct homad_streams *s, *next;

	if (!tcp)
		return;
	s = __atomic_exchange_n(&tcp->growing, NULL, __ATOMIC_ACQUIRE);
	for (; s; s = next) {
		next = s->next_growing;
		grant(s, most);
	}
}

void shm_streams_share(struct shm_streams *st, bool listeners_only)
{
	u32 holds = st->s.num_holding + 1,
	    most = st->s.num_open + st->s.num_aliases + holds;
	size_t entries =
		sizeof(*st->ticket) + most * sizeof(st->ticket->entry[0]);
	struct homad_sharing sharing = { .s = &st->s,
					 .tail = st->s.area->command.tail,
					 .listeners = listeners_only };

	if (st->ticket)
		return;
	st->ticket = zeros(1, entries + holds * sizeof(st->ticket->hold[0]));
	st->ticket->most = most;
	st->ticket->most_holds = holds;
	st->ticket->hold = (struct homad_hold *)((u8 *)st->ticket + entries);
	sharing.ticket = st->ticket;
	if (!homad_call(thread(), homad_ticket_fill, &sharing))
		return;
	free(st->ticket);
	st->ticket = NULL;
}

void shm_streams_join(struct shm_streams *st)
{
	struct homad_sharing sharing = { .s = &st->s, .ticket = st->ticket };

	if (!st->ticket || st->s.joined)
		return;
	/* The attachment keeps it until it ends. */
	if (!homad_call(thread(), homad_ticket_join, &sharing))
		st->ticket = NULL;
}
