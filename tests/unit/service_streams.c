// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * host/homad/fast/stream_commands.c and stream_events.c: commands that are answered, event
 * rings that nobody reads, listeners, and who pays for what. Rounds are run by hand.
 */
#include "streams_bed.h"

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
	struct homad_limit limit = { 0 };
	struct bed *bed = bed_new();
	struct program *server = program(bed), *client = program(bed);
	struct homa_stream_slot *ours, *theirs;
	struct homa_stream_event e;
	u32 way;

	(void)state;
	homad_limit_init(&limit, 0, 0, 0);
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
	struct homa_stream_event e, nothing;
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
		/* It was the last one, which is said unasked, and answered when asked for. */
		nothing = event(second);
		assert_int_equal(nothing.kind, HOMA_STREAM_NOTHING);
		assert_int_equal(nothing.slot, 1);
		command(second, c);
		look(bed, second);
		nothing = event(second);
		assert_int_equal(nothing.kind, HOMA_STREAM_NOTHING);
		assert_int_equal(nothing.slot, 0);
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
	enum {
		TURNS = 3 * HOMAD_TURN
	}; /* as many as there are without a round */
	struct homad_tcp_listener listener;
	struct bed *bed = bed_new();
	struct program *p = program(bed), *other = program(bed);
	u64 asked_for = 0;

	(void)state;
	homad_poll_app(bed->t, &other->side->app);
	homad_poll_app(bed->t, &p->side->app);
	ask(p, TURNS, &asked_for);
	homad_turns_of_rings(&p->side->app, true);
	assert_int_equal(listen_by(bed, p, &listener), 0);
	assert_int_equal(p->s.area->command.head, TURNS);
	assert_true(p->user[0].credit <= -(int)TURNS);
	/* It has no commands by itself: those that came meanwhile wait for their turn. */
	homad_hold_leave(bed->t, &listener.first);
	while (event(p).kind)
		;
	ask(p, TURNS, &asked_for);
	assert_int_equal(listen_by(bed, p, &listener), 0);
	assert_int_equal(p->s.area->command.head, TURNS);
	end(bed, p);
	end(bed, other);
	end_all(bed);
}

/* A connection for whose bytes its taker has no memory is reset. The other holders of the listener
 * hear that none waits there any more. */
static void take__without_memory(void **state)
{
	struct homad_tcp_listener listener;
	struct bed *bed = bed_new();
	struct program *first = program(bed), *second = program(bed),
		       *client = program(bed);
	struct homa_stream_command c = { .op = HOMA_STREAM_ACCEPT };
	struct homa_stream_event e;
	struct homad_hold hold = { .listener = NULL };
	struct homad_stream *stream;

	(void)state;
	assert_int_equal(listen_by(bed, first, &listener), 0);
	homad_hold_begin(&hold, &second->s, &listener);
	open_connection(bed, client, 5000);
	homad_streams_deliver(bed->t);
	assert_int_equal(event(first).kind, HOMA_STREAM_WAITING);
	assert_int_equal(event(second).kind, HOMA_STREAM_WAITING);
	assert_false(homa_list_empty(&listener.parked));
	stream = homa_container_of(listener.parked.next, struct homad_stream,
				   pending);
	stream->rx_map = homa_stream_map(HOMA_STREAM_MIN_SHIFT + 1, 0);
	second->s.grow_refused_at = bed->t->ctx.now;
	c.slot = hold.number;
	command(second, c);
	look(bed, second);
	homad_streams_deliver(bed->t);
	assert_int_equal(bed->t->tcp->counters.no_place, 1);
	e = event(second);
	assert_int_equal(e.kind, HOMA_STREAM_NOTHING);
	assert_int_equal(e.slot, 0);
	e = event(first);
	assert_int_equal(e.kind, HOMA_STREAM_NOTHING);
	assert_int_equal(e.slot, 1);
	assert_int_equal(event(second).kind, 0);
	end(bed, client);
	end(bed, second);
	end(bed, first);
	end_all(bed);
}

/* An urgent byte is at most as far away as a buffer holds bytes, or nearly so: what no library says
 * ends the attachment. */
static void urgent__far_behind_the_buffer(void **state)
{
	struct homa_stream_command c = { .op = HOMA_STREAM_URGENT };
	struct homad_tcp_listener listener;
	struct bed *bed = bed_new();
	struct program *server = program(bed), *client = program(bed);
	struct homa_stream_event e;

	(void)state;
	assert_int_equal(listen_by(bed, server, &listener), 0);
	open_connection(bed, client, 5000);
	homad_stream_events(bed->t);
	homad_streams_deliver(bed->t);
	e = event(client);
	assert_int_equal(e.kind, HOMA_STREAM_OPENED);
	c.slot = e.slot;
	c.generation = e.generation;
	for (c.value = 1; c.value < 1u << 21; c.value <<= 1) {
		command(client, c);
		look(bed, client);
		assert_false(client->side->app.evicted);
		assert_true(client->s.stream[c.slot]->conn.f.flags & TAS_F_URGENT);
	}
	/* The peer has all of it. */
	c.value = 0;
	command(client, c);
	look(bed, client);
	assert_false(client->s.stream[c.slot]->conn.f.flags & TAS_F_URGENT);
	c.value = (1u << 30) + 1;
	command(client, c);
	look(bed, client);
	assert_true(client->side->app.evicted);
	end(bed, client);
	end(bed, server);
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
	homad_turns_of_rings(&p->side->app, true);
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

/* ---- options ---- */

/* TCP_QUICKACK is done when it comes, and what else is set stays. */
static void options__quick_acks(void **state)
{
	struct homad_tcp_listener listener;
	struct bed *bed = bed_new();
	struct program *server = program(bed), *client = program(bed);
	struct homa_stream_command c = { .op = HOMA_STREAM_OPTIONS };
	struct homa_stream_event e;
	struct tas_conn *conn;

	(void)state;
	assert_int_equal(listen_by(bed, server, &listener), 0);
	open_connection(bed, client, 6000);
	homad_stream_events(bed->t);
	homad_streams_deliver(bed->t);
	e = event(client);
	assert_int_equal(e.kind, HOMA_STREAM_OPENED);
	conn = &client->s.stream[e.slot]->conn;
	c.slot = e.slot;
	c.generation = e.generation;
	c.value = HOMA_STREAM_OPT_NODELAY | HOMA_STREAM_OPT_SLOW;
	command(client, c);
	look(bed, client);
	assert_true(conn->f.flags & TAS_F_PINGPONG);
	conn->f.quick = 0;
	c.value = HOMA_STREAM_OPT_NODELAY | HOMA_STREAM_OPT_QUICK;
	command(client, c);
	look(bed, client);
	assert_false(conn->f.flags & TAS_F_PINGPONG);
	assert_true(conn->f.flags & TAS_F_NODELAY);
	assert_int_equal(conn->f.quick, 16);
	end(bed, client);
	end(bed, server);
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
		cmocka_unit_test(take__without_memory),
		cmocka_unit_test(urgent__far_behind_the_buffer),
		cmocka_unit_test(listen__of_one_who_breaks_the_rules),
		cmocka_unit_test(return__after_4_gib),
		cmocka_unit_test(options__quick_acks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
