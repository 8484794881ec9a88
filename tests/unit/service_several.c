// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A homad of several threads with TCP, whose rounds the test runs by hand: which port TCP leaves
 * by, what a port that moves takes along, which attachments move, and whose turn it is when
 * segments come in at several threads.
 */
#include "several_bed.h"

/* ---- ports ---- */

/* TCP leaves by the first port of its device, whichever address the connection has, so that it
 * does not change the port when threads come and go. */
static void several__tcp_leaves_by_the_first_port(void **state)
{
	struct several *s = several_new();
	struct tas_pair pair = { .local_port = PORT };
	struct homa_addr seven = number(7);

	(void)state;
	memcpy(pair.local, seven.ip, sizeof(pair.local));
	assert_ptr_equal(homad_tcp_port_towards(s->bed->t, &pair),
			 &s->bed->d.ports[0]);
	several_free(s);
}

/* While TCP waits for a port, Homa's packets take turns with it there. A thread without TCP that
 * is given the port would wait for TCP's turn to end for ever. */
static void several__port_leaves_while_tcp_waits(void **state)
{
	struct several *s = several_new();
	struct homad *d = &s->bed->d;
	struct homad_port *port =
		&d->ports[2]; /* the bed has a port for this host */

	(void)state;
	assert_ptr_equal(port->nic, s->nic[1]);
	port->others = true;
	homad_scale_to(d, 2);
	assert_int_equal(port->thread, 1);
	assert_false(port->others);
	several_free(s);
}

/* ---- attachments ---- */

/* Those with streams stay at the thread of their instance, and the others are spread over its
 * fellows. */
static void several__attachments_beside_those_with_streams(void **state)
{
	struct several *s = several_new();
	struct homad *d = &s->bed->d;
	struct homad_streams streams = { .tcp = d->steering->tcp[0] };
	struct side *sides[8];
	u32 i;

	(void)state;
	for (i = 0; i < 8; i++) {
		if (i == 4)
			homad_scale_to(d, 2);
		sides[i] = attach(d);
		if (i < 4)
			sides[i]->app.streams = &streams;
	}
	assert_int_equal(d->threads[0]->num_apps, 4);
	assert_int_equal(d->threads[1]->num_apps, 4);
	homad_scale_to(d, 3);
	assert_int_equal(d->threads[0]->num_apps, 4);
	assert_int_equal(d->threads[1]->num_apps, 2);
	assert_int_equal(d->threads[2]->num_apps, 2);
	homad_scale_to(d, 1);
	assert_int_equal(d->threads[0]->num_apps, 8);
	for (i = 0; i < 8; i++) {
		sides[i]->app.streams = NULL;
		homad_session_close(s->bed->t, &sides[i]->app);
	}
	for (i = 0; i < 8; i++) {
		while (sides[i]->app.phase != HOMAD_APP_DEAD)
			rounds(s);
		detach_closed(sides[i]);
	}
	d->dead = NULL;
	several_free(s);
}

/* A thread that cannot take an attachment leaves it at its home, instead of without one. */
static void several__attachment_that_cannot_move(void **state)
{
	struct several *s = several_new();
	struct homad *d = &s->bed->d;
	struct side *sides[2] = { attach(d), attach(d) };
	int epfd = d->threads[1]->epfd;

	(void)state;
	d->threads[1]->epfd = -1;
	homad_scale_to(d, 2);
	d->threads[1]->epfd = epfd;
	assert_ptr_equal(sides[0]->app.thread, d->threads[0]);
	assert_ptr_equal(sides[1]->app.thread, d->threads[0]);
	leave(s, sides[0]);
	leave(s, sides[1]);
	several_free(s);
}

/* One that begins with streams goes to the thread of its instance, unless it is being ended. */
static void several__home_is_the_instance(void **state)
{
	struct several *s = several_new();
	struct homad *d = &s->bed->d;
	struct side *sides[3];
	u32 i;

	(void)state;
	homad_scale_to(d, 3);
	for (i = 0; i < 3; i++)
		sides[i] = attach(d);
	assert_int_equal(homad_bring_home(d, &sides[1]->app, d->steering->tcp[2]),
			 0);
	assert_ptr_equal(sides[1]->app.thread, d->threads[2]);
	homad_session_close(d->threads[2], &sides[2]->app);
	assert_int_equal(homad_bring_home(d, &sides[2]->app, d->steering->tcp[0]),
			 -ESHUTDOWN);
	for (i = 0; i < 3; i++)
		leave(s, sides[i]);
	several_free(s);
}

/* An attachment has ended and the slow path does not know it yet, when the attachment's instance
 * moves: what is asked about its streams is asked where the instance is now. The thread that was
 * its home would work on an instance that another thread runs. */
static void several__ended_attachment_is_asked_about(void **state)
{
	struct several *s = several_new();
	struct homad *d = &s->bed->d;
	struct side *side;
	struct homad_streams streams = { .tcp = d->steering->tcp[1] };
	struct homad_streams_back back = { .streams = &streams };

	(void)state;
	homad_scale_to(d, 2);
	side = attach(d);
	streams.app = &side->app;
	assert_int_equal(homad_bring_home(d, &side->app, streams.tcp), 0);
	homad_session_close(d->threads[1], &side->app);
	while (side->app.phase != HOMAD_APP_DEAD)
		rounds(s);
	homad_scale_to(d, 1);
	assert_ptr_equal(streams.tcp->thread, d->threads[0]);
	assert_int_equal(homad_streams_call(&streams, homad_streams_backed, &back),
			 0);
	assert_null(d->threads[1]->tcp);
	assert_ptr_equal(d->threads[0]->tcp, streams.tcp);
	d->dead = NULL;
	detach_closed(side);
	several_free(s);
}

/* ---- segments ---- */

static void hand(struct several *s, u32 thread, u16 from)
{
	u8 bytes[HEADER];
	struct nic_rx pkt = segment(bytes, from);

	assert_true(homad_handed_put(s->bed->t->tcp->handed[thread],
				     &(struct homad_handing){
					     .asked = HOMAD_HANDED_FINAL,
					     .outside = true },
				     &pkt));
}

/* A ring gets as much of a round as a port. Timers that are due wait for the answers that may lie
 * in what is left of it. */
static void several__ring_has_the_turn_of_a_port(void **state)
{
	struct several *s = several_new();
	const u32 turn = HOMAD_RX_BATCHES * HOMAD_BATCH;
	u32 i;

	(void)state;
	homad_tcp_enter(s->bed->t, s->bed->d.steering->tcp[0]);
	for (i = 0; i < turn + 1; i++)
		hand(s, 1, 1000);
	hand(s, 2, 1000);
	homad_now(s->bed->t);
	homad_tcp_round(s->bed->t);
	assert_int_equal(homad_tcp_handed(s->bed->t), turn + 1);
	assert_true(s->bed->t->rx_left);
	s->bed->t->rx_left = false;
	assert_int_equal(homad_tcp_handed(s->bed->t), 1);
	assert_false(s->bed->t->rx_left);
	several_free(s);
}

static u8 late[HEADER];
static bool came;

static int rx_late(struct nic *nic, struct nic_rx *pkts, int n)
{
	(void)nic;
	(void)n;
	if (came)
		return 0;
	came = true;
	pkts[0] = segment(late, 1001);
	return 1;
}

static void released(struct nic *nic, const struct nic_rx *pkts, int n)
{
	(void)nic;
	(void)pkts;
	(void)n;
}

/* A queue whose thread has gone is the first one's now. What came by it before lies in that
 * thread's ring, and is older. */
static void several__what_was_handed_comes_first(void **state)
{
	struct several *s = several_new();
	struct tas_engine *engine = &s->bed->d.steering->tcp[0]->engine;

	(void)state;
	homad_tcp_enter(s->bed->t, s->bed->d.steering->tcp[0]);
	came = false;
	s->ops.rx = rx_late;
	s->ops.rx_release = released;
	hand(s, 1, 1000);
	homad_round(s->bed->t);
	assert_true(came);
	assert_int_equal(engine->stray_tail, 2);
	assert_int_equal(engine->stray[0].pair.remote_port, 1000);
	assert_int_equal(engine->stray[1].pair.remote_port, 1001);
	several_free(s);
}

/* ---- within this host ---- */

/* The ring by which thread 1 would pass on segments to instance 2 has no room. */
static void fill(struct several *s)
{
	u8 bytes[HEADER];
	struct nic_rx pkt = segment(bytes, 1000);
	struct homad_handing with = { .asked = HOMAD_HANDED_FINAL };

	while (homad_handed_put(s->bed->d.steering->tcp[2]->handed[1], &with,
				&pkt))
		;
}

static void pass_on(struct several *s)
{
	u32 i;

	for (i = 0; i < 50; i++)
		rounds(s);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(s->bed->d.threads[i]->counters.tcp_handed_lost,
				 0);
}

/* A program of instance 0 and one of instance 2 are connected by a port that instance 1 has, too.
 * Nothing that they send goes by way of that one, where it could find no room. */
static void several__nothing_is_lost_within_the_host(void **state)
{
	struct several *s = several_new();
	struct homad *d = &s->bed->d;
	struct homad_thread *t = s->bed->t;
	struct homad_tcp_listener listener;
	struct program *client, *server;
	struct homad_stream *near, *far;

	(void)state;
	s->ops.rx_release = released;
	homad_tcp_enter(t, d->steering->tcp[2]);
	server = program(s->bed);
	assert_int_equal(listen_by(s->bed, server, &listener), 0);
	listener.tcp = d->steering->tcp[2];
	homad_steering_listen(d->steering, &listener);
	homad_steering_set(d->steering, PORT, 2, true);
	homad_steering_set(d->steering, PORT, 1, true);
	homad_steering_set(d->steering, 5000, 0, true);
	homad_tcp_enter(t, d->steering->tcp[0]);
	client = program(s->bed);
	homad_scale_to(d, THREADS);
	rounds(s);
	homad_tcp_enter(t, d->steering->tcp[0]);
	fill(s);
	open_connection(s->bed, client, 5000);
	pass_on(s);
	near = homa_container_of(client->s.open.next, struct homad_stream, of);
	assert_int_equal(near->conn.f.state, TAS_ESTABLISHED);
	assert_int_equal(server->s.num_open, 1);
	far = homa_container_of(server->s.open.next, struct homad_stream, of);
	fill(s);
	homad_tcp_enter(t, d->steering->tcp[0]);
	tas_shut_send(&t->tcp->local, &near->conn);
	pass_on(s);
	assert_int_equal(far->conn.f.state, TAS_CLOSE_WAIT);
	homad_scale_to(d, 1);
	homad_session_close(t, &client->side->app);
	homad_session_close(t, &server->side->app);
	pass_on(s);
	end(s->bed, client);
	end(s->bed, server);
	several_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(several__tcp_leaves_by_the_first_port),
		cmocka_unit_test(several__port_leaves_while_tcp_waits),
		cmocka_unit_test(several__attachments_beside_those_with_streams),
		cmocka_unit_test(several__attachment_that_cannot_move),
		cmocka_unit_test(several__home_is_the_instance),
		cmocka_unit_test(several__ended_attachment_is_asked_about),
		cmocka_unit_test(several__ring_has_the_turn_of_a_port),
		cmocka_unit_test(several__what_was_handed_comes_first),
		cmocka_unit_test(several__nothing_is_lost_within_the_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
