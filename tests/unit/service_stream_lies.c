// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * host/homad/fast/stream_commands.c, stream_holds.c: what hostile applications have done to their
 * streams, as tests/homad/hostile_streams.c does, each by hand. Rounds are run by hand, too.
 */
#include "streams_bed.h"

/* A command that waited for room among the events is there no more. homad must not wait for it:
 * it would look for it again and again, though nothing happens. */
static void commands__that_are_taken_back(void **state)
{
	struct bed *bed = bed_new();
	struct program *p = program(bed);
	u64 asked_for = 0;

	(void)state;
	ask(p, ENTRIES, &asked_for);
	look(bed, p);
	ask(p, 1, &asked_for);
	look(bed, p);
	assert_int_equal(p->s.area->command.head, ENTRIES);
	p->s.area->command.tail = ENTRIES;
	while (event(p).kind)
		;
	look(bed, p);
	assert_false(homad_rings_waiting(&p->side->app));
	assert_false(p->side->app.evicted);
	end(bed, p);
	end_all(bed);
}

/* Who has no room for the news that a ticket was given up hears of it when there is room. */
static void unjoined__waits_for_room(void **state)
{
	struct bed *bed = bed_new();
	struct program *p = program(bed);
	struct homa_stream_event e;
	u64 asked_for = 0;
	u32 i;

	(void)state;
	ask(p, ENTRIES, &asked_for);
	look(bed, p);
	p->s.unjoined = 2;
	homad_streams_touch(bed->t, &p->s);
	homad_streams_deliver(bed->t);
	for (i = 0; i < ENTRIES; i++)
		assert_int_equal(event(p).kind, HOMA_STREAM_FAILED);
	assert_int_equal(event(p).kind, 0);
	look(bed, p);
	e = event(p);
	assert_int_equal(e.kind, HOMA_STREAM_UNJOINED);
	assert_int_equal(e.token, 2);
	assert_false(homad_rings_waiting(&p->side->app));
	end(bed, p);
	end_all(bed);
}

static void ring(struct bed *bed, struct program *p,
		 const struct homa_stream_event *e)
{
	command(p, (struct homa_stream_command){ .op = HOMA_STREAM_RING,
						 .slot = e->slot,
						 .generation = e->generation });
	look(bed, p);
}

/* Bytes that were taken, though a limit keeps homad from saying so, have been used: who gets the
 * connection next would be blamed for positions that were moved before. */
static void return__of_bytes_that_a_limit_holds(void **state)
{
	struct bed *bed = bed_new();
	struct program *server = program(bed), *client = program(bed);
	struct homad_tcp_listener listener;
	struct homad_limit limit = { 0 };
	struct homa_stream_event a, b;

	(void)state;
	homad_limit_init(&limit, 0, 0, 0);
	assert_int_equal(listen_by(bed, server, &listener), 0);
	open_connection(bed, client, 7000);
	homad_stream_events(bed->t);
	homad_streams_deliver(bed->t);
	a = event(server);
	b = event(client);
	assert_int_equal(a.kind, HOMA_STREAM_ACCEPTED);
	assert_int_equal(b.kind, HOMA_STREAM_OPENED);
	homad_bucket_set(&limit.receive, 1000);
	limit.receive.tokens = -1000000;
	limit.connections = 1;
	server->s.stream[a.slot]->limit = &limit;
	client->s.slots[b.slot].tx_end = 100;
	ring(bed, client, &b);
	homad_tcp_local(bed->t);
	homad_stream_events(bed->t);
	assert_int_equal(server->s.slots[a.slot].rx_end, 100);
	server->s.slots[a.slot].rx_read = 100;
	ring(bed, server, &a);
	assert_true(server->s.stream[a.slot]->rx_held);
	command(server,
		(struct homa_stream_command){ .op = HOMA_STREAM_RETURN,
					      .slot = a.slot,
					      .generation = a.generation });
	look(bed, server);
	assert_true(server->side->app.evicted);
	end(bed, server);
	end(bed, client);
	end_all(bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commands__that_are_taken_back),
		cmocka_unit_test(unjoined__waits_for_room),
		cmocka_unit_test(return__of_bytes_that_a_limit_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
