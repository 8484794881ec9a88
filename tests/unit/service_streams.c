// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * host/homad/fast/stream_commands.c and stream_events.c: commands that are answered, event
 * rings that nobody reads, listeners, and who pays for what. Rounds are run by hand.
 */
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

/* ---- an attachment with streams ---- */

struct program {
	struct side *side;
	struct homad_polled *user;
	struct homad_streams s;
	u32 event_head;
};

static struct homad_polled *user_new(void)
{
	struct homad_polled *user = calloc(HOMAD_MAX_THREADS, sizeof(*user));
	u32 i;

	for (i = 0; i < HOMAD_MAX_THREADS; i++)
		homad_polled_init(&user[i]);
	return user;
}

static void *pages(size_t bytes)
{
	size_t size = (bytes + 4095) / 4096 * 4096;
	void *mem = aligned_alloc(4096, size);

	memset(mem, 0, size);
	return mem;
}

/* The buffers beyond the first are not there. */
static void make_streams(struct homad_streams *s)
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

static struct program *program(struct bed *bed)
{
	struct program *p = calloc(1, sizeof(*p));
	struct homad_streams_open open;

	if (!bed->t->tcp)
		bed->t->tcp = homad_tcp_new(256, 1500, 0);
	p->user = user_new();
	p->side = attach(&bed->d);
	homad_unpoll_app(bed->t, &p->side->app);
	p->side->app.user_polled = p->user;
	make_streams(&p->s);
	open.app = &p->side->app;
	open.streams = &p->s;
	assert_int_equal(homad_streams_begin(bed->t, &open), 0);
	return p;
}

static void end(struct bed *bed, struct program *p)
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

static void end_all(struct bed *bed)
{
	homad_tcp_free(bed->t->tcp);
	bed->t->tcp = NULL;
	bed_free(bed);
}

static void command(struct program *p, struct homa_stream_command c)
{
	u32 tail = p->s.area->command.tail;

	assert_true(tail - p->s.area->command.head < ENTRIES);
	p->s.commands[tail & (ENTRIES - 1)] = c;
	p->s.area->command.tail = tail + 1;
}

/* Each is refused at once, as no rule is for it. */
static void ask(struct program *p, u32 n, u64 *token)
{
	while (n--)
		command(p, (struct homa_stream_command){ .op = HOMA_STREAM_CONNECT,
							 .remote.port = PORT,
							 .token = ++*token });
}

/* A round of this attachment alone. */
static void look(struct bed *bed, struct program *p)
{
	homad_turns_of_rings(&p->side->app);
	homad_streams_deliver(bed->t);
}

/* The next event; kind 0: there is none. */
static struct homa_stream_event event(struct program *p)
{
	struct homa_stream_area *area = p->s.area;
	struct homa_stream_event none = { 0 };

	if (p->event_head == area->event.tail)
		return none;
	none = p->s.events[p->event_head & (ENTRIES - 1)];
	area->event.head = ++p->event_head;
	return none;
}

/* ---- answers ---- */

/* Who reads no events gets no further with what is answered, and then all answers in order. */
static void answers__wait_for_room(void **state)
{
	struct bed *bed = bed_new();
	struct program *p = program(bed);
	u64 asked_for = 0, heard = 0;
	struct homa_stream_event e;
	u32 i;

	(void)state;
	ask(p, ENTRIES, &asked_for);
	look(bed, p);
	assert_int_equal(p->s.area->command.head, ENTRIES);
	assert_int_equal(p->s.area->event.tail, ENTRIES);
	ask(p, ENTRIES, &asked_for);
	look(bed, p);
	assert_int_equal(p->s.area->command.head, ENTRIES);
	assert_false(p->side->app.evicted);
	/* There is nothing to be done for it, so nobody spins. */
	assert_false(homad_rings_waiting(&p->side->app));
	for (i = 0; heard < asked_for; i++) {
		e = event(p);
		if (!e.kind) {
			assert_true(homad_rings_waiting(&p->side->app));
			look(bed, p);
			continue;
		}
		assert_int_equal(e.kind, HOMA_STREAM_FAILED);
		assert_int_equal(e.token, ++heard);
		assert_true(i < 4 * ENTRIES);
	}
	assert_int_equal(event(p).kind, 0);
	end(bed, p);
	end_all(bed);
}

/* An attachment that ends is told nothing, and what it has asked for does not hold it up. */
static void answers__of_one_who_ends(void **state)
{
	struct bed *bed = bed_new();
	struct program *p = program(bed);
	u64 asked_for = 0;

	(void)state;
	ask(p, ENTRIES, &asked_for);
	look(bed, p);
	ask(p, ENTRIES, &asked_for);
	look(bed, p);
	end(bed, p);
	end_all(bed);
}

/* ---- listeners ---- */

static const u8 here[16] = { [10] = 0xff, 0xff, 127, 0, 0, 1 };

static int listen_by(struct bed *bed, struct program *p,
		     struct homad_tcp_listener *listener)
{
	memset(listener, 0, sizeof(*listener));
	memcpy(listener->l.local, here, sizeof(here));
	listener->l.port = PORT;
	listener->l.backlog = 16;
	listener->loopback = true;
	listener->home = &p->s;
	return homad_call(bed->t, homad_listener_begin, listener);
}

/* A connection of @p's to the listener. */
static void open_connection(struct bed *bed, struct program *p, u16 port)
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

/* A listener's last word comes behind that of each connection that came to it. */
static void unlisten__is_the_last_word(void **state)
{
	struct homad_tcp_listener listener;
	struct bed *bed = bed_new();
	struct program *server = program(bed), *client = program(bed);
	u64 asked_for = 0;
	u32 round, i;

	(void)state;
	for (round = 0; round < 2; round++) {
		assert_int_equal(listen_by(bed, server, &listener), 0);
		/* The second time there is no room for any event. */
		if (round) {
			ask(server, ENTRIES, &asked_for);
			look(bed, server);
		}
		open_connection(bed, client, (u16)(5000 + round));
		command(server, (struct homa_stream_command){
					.op = HOMA_STREAM_UNLISTEN,
					.slot = listener.first.number });
		look(bed, server);
		for (i = 0; i < round * ENTRIES; i++)
			assert_int_equal(event(server).kind, HOMA_STREAM_FAILED);
		look(bed, server);
		assert_int_equal(event(server).kind, HOMA_STREAM_ACCEPTED);
		look(bed, server);
		assert_int_equal(event(server).kind, HOMA_STREAM_UNLISTENED);
		assert_int_equal(event(server).kind, 0);
		assert_false(server->side->app.evicted);
		assert_true(listener.ended);
	}
	end(bed, client);
	end(bed, server);
	end_all(bed);
}

/* What an application has read is not unread because its limit does not open the window. */
static void close__after_reading_all(void **state)
{
	struct homad_tcp_listener listener;
	struct homad_limit limit = { .connections = 1 };
	struct bed *bed = bed_new();
	struct program *server = program(bed), *client = program(bed);
	struct homa_stream_slot *ours, *theirs;
	struct homa_stream_event e;
	u32 way;

	(void)state;
	homa_list_init(&limit.held);
	homa_list_init(&limit.node);
	assert_int_equal(listen_by(bed, server, &listener), 0);
	/* By a command, and by its end. */
	for (way = 0; way < 2; way++) {
		open_connection(bed, client, (u16)(6000 + way));
		homad_stream_events(bed->t);
		homad_streams_deliver(bed->t);
		e = event(server);
		assert_int_equal(e.kind, HOMA_STREAM_ACCEPTED);
		ours = &server->s.slots[e.slot];
		homad_bucket_set(&limit.receive, 1000);
		limit.receive.tokens = -1000000;
		server->s.stream[e.slot]->limit = &limit;
		limit.connections = 1;
		e = event(client);
		assert_int_equal(e.kind, HOMA_STREAM_OPENED);
		theirs = &client->s.slots[e.slot];
		theirs->tx_end = 100;
		command(client, (struct homa_stream_command){
					.op = HOMA_STREAM_RING,
					.slot = e.slot,
					.generation = e.generation });
		look(bed, client);
		homad_tcp_local(bed->t);
		homad_stream_events(bed->t);
		assert_int_equal(ours->rx_end, 100);
		ours->rx_read = 100;
		e = (struct homa_stream_event){ .slot = (u32)(ours -
							      server->s.slots),
						.generation = ours->generation };
		command(server, (struct homa_stream_command){
					.op = HOMA_STREAM_RING,
					.slot = e.slot,
					.generation = e.generation });
		look(bed, server);
		assert_true(server->s.stream[e.slot]->rx_held);
		if (!way)
			command(server, (struct homa_stream_command){
						.op = HOMA_STREAM_CLOSE,
						.slot = e.slot,
						.generation = e.generation });
		if (way)
			end(bed, server);
		else
			look(bed, server);
		homad_tcp_local(bed->t);
		homad_stream_events(bed->t);
		assert_int_equal(theirs->state,
				 HOMA_STREAM_IS_OPEN | HOMA_STREAM_HAS_END);
		while (event(client).kind || (!way && event(server).kind))
			;
	}
	end(bed, client);
	end_all(bed);
}

/* The application writes and resets, or leaves bytes unread and closes, in one turn: the peer gets
 * all that was written, and then the reset. */
static void reset__comes_behind_bytes(void **state)
{
	struct homad_tcp_listener listener;
	struct bed *bed = bed_new();
	struct program *server = program(bed), *client = program(bed);
	u32 way, i;

	(void)state;
	assert_int_equal(listen_by(bed, server, &listener), 0);
	for (way = 0; way < 2; way++) {
		struct homa_stream_slot *ours, *theirs;
		struct homa_stream_event a, b;

		open_connection(bed, client, (u16)(7000 + way));
		homad_stream_events(bed->t);
		homad_streams_deliver(bed->t);
		a = event(server);
		b = event(client);
		assert_int_equal(a.kind, HOMA_STREAM_ACCEPTED);
		assert_int_equal(b.kind, HOMA_STREAM_OPENED);
		ours = &server->s.slots[a.slot];
		theirs = &client->s.slots[b.slot];
		if (way) {
			theirs->tx_end = 7;
			command(client, (struct homa_stream_command){
						.op = HOMA_STREAM_RING,
						.slot = b.slot,
						.generation = b.generation });
			look(bed, client);
			homad_tcp_local(bed->t);
			homad_stream_events(bed->t);
			assert_int_equal(ours->rx_end, 7);
		}
		ours->tx_end = 100;
		command(server, (struct homa_stream_command){
					.op = HOMA_STREAM_RING,
					.slot = a.slot,
					.generation = a.generation });
		command(server, (struct homa_stream_command){
					.op = way ? HOMA_STREAM_CLOSE :
						    HOMA_STREAM_ABORT,
					.slot = a.slot,
					.generation = a.generation });
		look(bed, server);
		for (i = 0; i < 3; i++) {
			homad_tcp_local(bed->t);
			homad_streams_reset(bed->t);
			homad_stream_events(bed->t);
		}
		assert_int_equal(theirs->rx_end, 100);
		assert_int_equal(theirs->error, ECONNRESET);
		assert_int_equal(server->s.num_open, 0);
		homad_streams_deliver(bed->t);
		command(client, (struct homa_stream_command){
					.op = HOMA_STREAM_CLOSE,
					.slot = b.slot,
					.generation = b.generation });
		look(bed, client);
		while (event(client).kind || event(server).kind)
			;
	}
	end(bed, client);
	end(bed, server);
	end_all(bed);
}

/* It has no memory for any stream; @asked: the slow path has not answered yet. */
static void take_memory(struct homad_streams *s, bool asked)
{
	s->num_free = s->backed = 0;
	s->asked = asked;
}

/* The slow path answers: there are @backed slots. */
static void answer(struct bed *bed, struct program *p, u32 backed)
{
	struct homad_streams_back back = { .streams = &p->s, .backed = backed };

	homad_call(bed->t, homad_streams_backed, &back);
	look(bed, p);
}

/* Who asks for a connection while his memory is on its way gets it when that has come, and is
 * not told before that there is none. If there is no memory he is told so, and later again. */
static void accept__waits_for_memory(void **state)
{
	struct bed *bed = bed_new();
	struct program *client = program(bed), *first = program(bed);
	struct program *second = program(bed);
	struct homad_tcp_listener listener;
	struct homad_hold hold = { .listener = NULL };
	struct homa_stream_command c = { .op = HOMA_STREAM_ACCEPT };
	struct homa_stream_event e;
	u32 refused;

	(void)state;
	assert_int_equal(listen_by(bed, first, &listener), 0);
	homad_hold_begin(&hold, &second->s, &listener);
	c.slot = hold.number;
	for (refused = 0; refused < 2; refused++) {
		open_connection(bed, client, (u16)(5000 + refused));
		homad_listeners_accept(bed->t);
		look(bed, second);
		assert_int_equal(event(second).kind, HOMA_STREAM_WAITING);
		take_memory(&second->s, true);
		command(second, c);
		look(bed, second);
		assert_int_equal(event(second).kind, 0);
		assert_true(homad_rings_waiting(&second->side->app));
		if (refused) {
			answer(bed, second, 0);
			assert_int_equal(event(second).kind, HOMA_STREAM_NOTHING);
			assert_false(homad_rings_waiting(&second->side->app));
			answer(bed, second, SLOTS);
			assert_int_equal(event(second).kind, HOMA_STREAM_WAITING);
			command(second, c);
			look(bed, second);
		} else {
			answer(bed, second, SLOTS);
		}
		e = event(second);
		assert_int_equal(e.kind, HOMA_STREAM_ACCEPTED);
		command(second, c);
		look(bed, second);
		assert_int_equal(event(second).kind, HOMA_STREAM_NOTHING);
		/* All of its slots are free for the next time. */
		command(second, (struct homa_stream_command){
					.op = HOMA_STREAM_ABORT,
					.slot = e.slot,
					.generation = e.generation });
		look(bed, second);
		assert_int_equal(event(second).kind, 0);
	}
	end(bed, client);
	end(bed, second);
	end(bed, first);
	end_all(bed);
}

/* The commands that listen() sees to before are turns of its user. */
static void listen__is_not_free(void **state)
{
	struct homad_tcp_listener listener;
	struct bed *bed = bed_new();
	struct program *p = program(bed), *other = program(bed);
	u64 asked_for = 0;

	(void)state;
	homad_poll_app(bed->t, &other->side->app);
	homad_poll_app(bed->t, &p->side->app);
	ask(p, ENTRIES, &asked_for);
	homad_turns_of_rings(&p->side->app);
	assert_int_equal(listen_by(bed, p, &listener), 0);
	assert_int_equal(p->s.area->command.head, ENTRIES);
	assert_true(p->user[0].credit <= -(int)ENTRIES);
	/* It has no commands by itself: those that came meanwhile wait for their turn. */
	homad_hold_leave(bed->t, &listener.first);
	while (event(p).kind)
		;
	ask(p, ENTRIES, &asked_for);
	assert_int_equal(listen_by(bed, p, &listener), 0);
	assert_int_equal(p->s.area->command.head, ENTRIES);
	end(bed, p);
	end(bed, other);
	end_all(bed);
}

/* Who breaks the rules just before does not listen. */
static void listen__of_one_who_breaks_the_rules(void **state)
{
	struct homad_tcp_listener listener;
	struct bed *bed = bed_new();
	struct program *p = program(bed);

	(void)state;
	command(p, (struct homa_stream_command){ .op = HOMA_STREAM_RING,
						 .slot = 3 });
	homad_turns_of_rings(&p->side->app);
	assert_true(p->side->app.evicted);
	assert_int_equal(listen_by(bed, p, &listener), -ESHUTDOWN);
	end(bed, p);
	end_all(bed);
}

/* A connection that was used does not go back to its listener, however many bytes that were: the
 * positions have wrapped to 0. */
static void return__after_4_gib(void **state)
{
	struct bed *bed = bed_new();
	struct program *client = program(bed);
	u32 way;

	(void)state;
	for (way = 0; way < 3; way++) {
		struct homad_tcp_listener listener;
		struct program *server = program(bed);
		struct homad_stream *stream;
		struct homa_stream_event e;

		assert_int_equal(listen_by(bed, server, &listener), 0);
		open_connection(bed, client, (u16)(7000 + way));
		homad_stream_events(bed->t);
		homad_streams_deliver(bed->t);
		e = event(server);
		assert_int_equal(e.kind, HOMA_STREAM_ACCEPTED);
		stream = server->s.stream[e.slot];
		if (way == 1)
			stream->tx_bytes = 1ull << 32;
		if (way == 2)
			stream->rx_bytes = 1ull << 32;
		command(server, (struct homa_stream_command){
					.op = HOMA_STREAM_RETURN,
					.slot = e.slot,
					.generation = e.generation });
		look(bed, server);
		assert_int_equal(server->side->app.evicted, way > 0);
		end(bed, server);
	}
	end(bed, client);
	end_all(bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers__wait_for_room),
		cmocka_unit_test(answers__of_one_who_ends),
		cmocka_unit_test(unlisten__is_the_last_word),
		cmocka_unit_test(close__after_reading_all),
		cmocka_unit_test(reset__comes_behind_bytes),
		cmocka_unit_test(accept__waits_for_memory),
		cmocka_unit_test(listen__is_not_free),
		cmocka_unit_test(listen__of_one_who_breaks_the_rules),
		cmocka_unit_test(return__after_4_gib),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
