/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Attachments with streams, beside a homad whose rounds a test runs by hand (service_bed.h): their
 * commands and events, a listener on loopback and connections to it, memory that comes late.
 */
#ifndef TEST_STREAMS_BED_H
#define TEST_STREAMS_BED_H

#include "homad_tcp.h"
#include "service_bed.h"
#include "stream_grow.h"
#include "stream_limits.h"
#include "stream_share.h"
#include "streams.h"
#include "tcp_listener.h"
#include "tcp_stream.h"
#include "unit.h"

#define SLOTS 16u
#define ENTRIES 256u /* of the rings of so few slots */
#define PORT 80
#define CONNECTIONS 512u /* of an instance of TCP */

/* ---- an attachment with streams ---- */

struct program {
	struct side *side;
	struct homad_polled *user;
	struct homad_streams s;
	u32 event_head;
};

static inline struct homad_polled *user_new(void)
{
	struct homad_polled *user = calloc(HOMAD_MAX_THREADS, sizeof(*user));
	u32 i;

	for (i = 0; i < HOMAD_MAX_THREADS; i++)
		homad_polled_init(&user[i]);
	return user;
}

static inline void *pages(size_t bytes)
{
	size_t size = (bytes + 4095) / 4096 * 4096;
	void *mem = aligned_alloc(4096, size);

	memset(mem, 0, size);
	return mem;
}

/* An instance of TCP that the bed's thread runs. */
static inline struct homad_tcp *tcp_new(u32 index)
{
	static const struct homad_tcp_seeds seeds;
	struct homad_tcp *tcp = homad_tcp_new(&seeds, CONNECTIONS, 1500, 0);

	tcp->index = index;
	return tcp;
}

/* The buffers beyond the first are not there. */
static inline void make_streams(struct homad_streams *s)
{
	u64 slot = sizeof(*s->slots) + 2u * HOMA_STREAM_FIRST;
	u64 bytes = homad_streams_fixed(SLOTS) + SLOTS * slot;
	u32 i;

	s->id = 1;
	s->wake_fd = -1;
	s->rx_most = s->tx_most = HOMA_STREAM_MIN_SHIFT;
	s->policy = calloc(1, sizeof(*s->policy));
	s->stream = calloc(SLOTS, sizeof(struct homad_stream *));
	s->free = calloc(SLOTS, sizeof(*s->free));
	s->generations = calloc(SLOTS, sizeof(*s->generations));
	s->backing = calloc(SLOTS, sizeof(*s->backing));
	s->alias = calloc(SLOTS, sizeof(*s->alias));
	homad_streams_lay(s, pages(bytes + 8192), SLOTS);
	assert_int_equal(s->entries, ENTRIES);
	for (i = 0; i < SLOTS; i++) {
		memset(s->backing[i].have, HOMA_STREAM_MIN_SHIFT, HOMAD_BUFFERS);
		homad_slot_put(s, i);
	}
	s->backed = SLOTS;
}

static inline struct program *program(struct bed *bed)
{
	struct program *p = calloc(1, sizeof(*p));
	struct homad_streams_open open;

	if (!bed->t->tcp)
		homad_tcp_run(bed->t, tcp_new(0));
	p->user = user_new();
	p->side = attach(&bed->d);
	homad_unpoll_app(bed->t, &p->side->app);
	p->side->app.user_polled = p->user;
	make_streams(&p->s);
	p->s.tcp = bed->t->tcp;
	open.app = &p->side->app;
	open.streams = &p->s;
	assert_int_equal(homad_streams_begin(bed->t, &open), 0);
	return p;
}

static inline void end(struct bed *bed, struct program *p)
{
	struct homad_app *app = &p->side->app;
	u32 i;

	homad_session_close(bed->t, app);
	for (i = 0; i < 100 && app->phase != HOMAD_APP_DEAD; i++)
		homad_round(bed->t);
	bed->d.dead = NULL;
	app->streams = NULL;
	detach_closed(p->side);
	free(p->s.policy);
	free(p->s.stream);
	free(p->s.free);
	free(p->s.generations);
	free(p->s.backing);
	free(p->s.alias);
	free(p->s.area);
	free(p->user);
	free(p);
}

static inline void end_all(struct bed *bed)
{
	bed_free(bed);
}

static inline void command(struct program *p, struct homa_stream_command c)
{
	u32 tail = p->s.area->command.tail;

	assert_true(tail - p->s.area->command.head < ENTRIES);
	p->s.commands[tail & (ENTRIES - 1)] = c;
	p->s.area->command.tail = tail + 1;
}

/* Each is refused at once, as no rule is for it. */
static inline void ask(struct program *p, u32 n, u64 *token)
{
	while (n--)
		command(p, (struct homa_stream_command){ .op = HOMA_STREAM_CONNECT,
							 .remote.port = PORT,
							 .token = ++*token });
}

/* As many rounds of this attachment alone as it needs. */
static inline void look(struct bed *bed, struct program *p)
{
	p->user[0].credit = 2 * ENTRIES;
	homad_turns_of_rings(&p->side->app, true);
	homad_streams_deliver(bed->t);
}

/* The next event; kind 0: there is none. */
static inline struct homa_stream_event event(struct program *p)
{
	struct homa_stream_area *area = p->s.area;
	struct homa_stream_event none = { 0 };

	if (p->event_head == area->event.tail)
		return none;
	none = p->s.events[p->event_head & (ENTRIES - 1)];
	area->event.head = ++p->event_head;
	return none;
}

/* ---- listeners ---- */

static const u8 here[16] = { [10] = 0xff, 0xff, 127, 0, 0, 1 };

/* @loopback: other hosts do not reach it. */
static inline int listen_at(struct bed *bed, struct program *p,
			    struct homad_tcp_listener *listener, u16 port,
			    bool loopback)
{
	memset(listener, 0, sizeof(*listener));
	memcpy(listener->l.local, here, sizeof(here));
	listener->l.port = port;
	listener->l.backlog = 16;
	listener->loopback = loopback;
	listener->home = &p->s;
	return homad_call(bed->t, homad_listener_begin, listener);
}

static inline int listen_by(struct bed *bed, struct program *p,
			    struct homad_tcp_listener *listener)
{
	return listen_at(bed, p, listener, PORT, true);
}

/* A connection of @p's to the listener. */
static inline void open_connection(struct bed *bed, struct program *p, u16 port)
{
	struct tas_pair pair = { .local_port = port, .remote_port = PORT };
	struct homad_tcp *tcp = bed->t->tcp;
	struct homad_stream *stream;
	struct tas_conn *conn;
	u32 i;

	memcpy(pair.local, here, sizeof(here));
	memcpy(pair.remote, here, sizeof(here));
	homad_now(bed->t);
	homad_tcp_round(bed->t);
	homad_tcp_refill(tcp, &tcp->local);
	assert_int_equal(tas_connect(&tcp->local, &pair, HOMAD_STREAM_SHIFT,
				     1u << HOMAD_STREAM_SHIFT, &conn),
			 0);
	stream = homad_stream_adopt(bed->t, &p->s, conn, -1, true);
	stream->opening = true;
	for (i = 0; i < 10; i++)
		homad_tcp_local(bed->t);
}

/* ---- memory ---- */

/* It has no memory for any stream; @asked: the slow path has not answered yet. */
static inline void take_memory(struct homad_streams *s, bool asked)
{
	s->num_free = s->backed = 0;
	s->asked = asked;
}

/* The slow path answers: there are @backed slots. */
static inline void answer(struct bed *bed, struct program *p, u32 backed)
{
	struct homad_streams_back back = { .streams = &p->s, .backed = backed };

	homad_call(bed->t, homad_streams_backed, &back);
	look(bed, p);
}

#endif
