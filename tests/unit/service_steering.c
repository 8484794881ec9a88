// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * host/homad/fast/tcp_steer.c, tcp_move.c: which instance of TCP gets a segment, whichever thread
 * it came to, while ports get other owners and instances other threads.
 */
#include "steering_bed.h"
#include "tas_impl.h"

/* ---- ports ---- */

static void steering__to_the_owner_of_the_port(void **state)
{
	struct several *s = spread_new();
	u32 i;

	(void)state;
	for (i = 0; i < THREADS; i++)
		comes(s, i, TAS_ACK, 1000, 2);
	assert_int_equal(resets(s, 0), THREADS);
	homad_steering_set(s->bed->d.steering, PORT, 1, true);
	for (i = 0; i < THREADS; i++)
		comes(s, i, TAS_ACK, 1000, 2);
	assert_int_equal(resets(s, 0), THREADS);
	assert_int_equal(resets(s, 1), THREADS);
	/* An owner that has gone leaves nothing behind. */
	homad_steering_set(s->bed->d.steering, PORT, 1, false);
	comes(s, 1, TAS_ACK, 1000, 2);
	assert_int_equal(resets(s, 0), THREADS + 1);
	assert_int_equal(resets(s, 1), THREADS);
	several_free(s);
}

/* A segment without a whole header is the first instance's. */
static void steering__no_header(void **state)
{
	struct several *s = spread_new();
	struct homad_thread *t = s->bed->d.threads[1];
	u8 bytes[HEADER];

	(void)state;
	t->rx[0] = segment(bytes, 1000);
	t->rx[0].len = 3;
	assert_int_equal(homad_tcp_steer(t, t->ports[0], 1), 0);
	rounds(s);
	assert_int_equal(instance(s, 0)->counters.malformed, 1);
	several_free(s);
}

/* Programs of two instances listen at a port, at different addresses. */
static void steering__by_the_address(void **state)
{
	struct several *s = spread_new();
	struct homad_tcp_listener l[2];
	u16 i;

	(void)state;
	listens(s, 1, &l[0], 5, false);
	listens(s, 2, &l[1], 6, false);
	for (i = 0; i < SYNS; i++) {
		comes(s, i % THREADS, TAS_SYN, 1000 + i, 5);
		comes(s, i % THREADS, TAS_SYN, 1000 + i, 6);
	}
	assert_int_equal(l[0].l.num_half, SYNS);
	assert_int_equal(l[1].l.num_half, SYNS);
	/* At a third address nobody listens. */
	comes(s, 0, TAS_SYN, 1000, 8);
	assert_int_equal(all_resets(s), 1);
	several_free(s);
}

/* With SO_REUSEPORT a port may be shared by listeners at one address and at all. As in the kernel,
 * the one at the address takes all connections to it, whoever is asked first. */
static void steering__the_address_goes_before_all(void **state)
{
	struct several *s = spread_new();
	struct homad_tcp_listener l[3];
	struct tas_pair pair = { .local_port = PORT };
	struct homa_addr me = number(5);
	u16 i;

	(void)state;
	memcpy(pair.local, me.ip, sizeof(me.ip));
	listens(s, 0, &l[0], 0, true);
	listens(s, 1, &l[1], 5, true);
	listens(s, 2, &l[2], 0, true);
	/* Connections of this host go by the same. */
	assert_int_equal(homad_steering_listening(s->bed->d.steering, &pair), 2);
	for (i = 0; i < SYNS; i++)
		comes(s, i % THREADS, TAS_SYN, 1000 + i, 5);
	assert_int_equal(l[1].l.num_half, SYNS);
	for (i = 0; i < SYNS; i++)
		comes(s, i % THREADS, TAS_SYN, 2000 + i, 6);
	assert_int_equal(l[1].l.num_half, SYNS);
	assert_int_equal(l[0].l.num_half + l[2].l.num_half, SYNS);
	/* When it has ended, the others take these, too. */
	ends(s, &l[1]);
	assert_int_equal(homad_steering_listening(s->bed->d.steering, &pair), 5);
	comes(s, 1, TAS_SYN, 3000, 5);
	assert_int_equal(l[0].l.num_half + l[2].l.num_half, SYNS + 1);
	several_free(s);
}

/* With SO_REUSEPORT both get a part of the connections, and each connection has one home. */
static void steering__shared_port(void **state)
{
	struct several *s = spread_new();
	struct homad_tcp_listener l[2];
	u32 turn, first;
	u16 i;

	(void)state;
	listens(s, 0, &l[0], 5, true);
	listens(s, 2, &l[1], 5, true);
	for (turn = 0; turn < 3; turn++) {
		for (i = 0; i < 2 * SYNS; i++)
			comes(s, (i + turn) % THREADS, TAS_SYN, 1000 + i, 5);
		assert_int_equal(l[0].l.num_half + l[1].l.num_half, 2 * SYNS);
		first = turn ? first : l[0].l.num_half;
		assert_int_equal(l[0].l.num_half, first);
	}
	assert_in_range(first, SYNS / 4, 2 * SYNS - SYNS / 4);
	several_free(s);
}

/* Each listener gets as many connections as the others, however many of them are in one instance.
 * Each connection has one home. */
static void steering__by_the_number_of_listeners(void **state)
{
	struct several *s = spread_new();
	u32 listeners[HOMAD_MAX_THREADS] = { 3, 0, 1 };
	struct homad_tcp_listener l[4];
	u32 i, turn, first, num[2] = { 0, 0 };

	(void)state;
	homad_steering_spread(s->bed->d.steering, PORT, listeners);
	/* A few at a time, as there is memory for so many. */
	for (turn = 0; turn < 20; turn++) {
		for (i = 0; i < 4; i++)
			listens(s, i == 3 ? 2 : 0, &l[i], 5, true);
		for (i = 0; i < SYNS; i++)
			comes(s, i % THREADS, TAS_SYN,
			      (u16)(1000 + turn * SYNS + i), 5);
		first = l[3].l.num_half;
		num[0] += l[0].l.num_half + l[1].l.num_half + l[2].l.num_half;
		num[1] += first;
		for (i = 0; i < SYNS; i++)
			comes(s, (i + 1) % THREADS, TAS_SYN,
			      (u16)(1000 + turn * SYNS + i), 5);
		assert_int_equal(l[3].l.num_half, first);
		for (i = 0; i < 4; i++)
			ends(s, &l[i]);
	}
	assert_int_equal(num[0] + num[1], 20 * SYNS);
	assert_in_range(num[1], 60, 140);
	several_free(s);
}

static u32 parts(const struct homad_steering *steering, u32 index)
{
	u32 n = 0, i;

	for (i = 0; i < HOMAD_PARTS; i++)
		n += steering->first[PORT][i] == index + 1;
	return n;
}

/* When listeners come and go, few connections get another instance that is asked first. */
static void steering__parts_of_a_port(void **state)
{
	struct homad_steering *steering = homad_steering_new();
	u32 listeners[HOMAD_MAX_THREADS] = { 1, 1 };
	u8 before[HOMAD_PARTS];
	u32 i, moved = 0;

	(void)state;
	steering->num = 3;
	homad_steering_spread(steering, PORT, listeners);
	assert_int_equal(parts(steering, 0), HOMAD_PARTS / 2);
	assert_int_equal(parts(steering, 1), HOMAD_PARTS / 2);
	memcpy(before, steering->first[PORT], sizeof(before));
	listeners[2] = 2;
	homad_steering_spread(steering, PORT, listeners);
	assert_int_equal(parts(steering, 0), HOMAD_PARTS / 4);
	assert_int_equal(parts(steering, 2), HOMAD_PARTS / 2);
	for (i = 0; i < HOMAD_PARTS; i++)
		moved += before[i] != steering->first[PORT][i];
	assert_int_equal(moved, HOMAD_PARTS / 2);
	/* One among many has a part, too. */
	listeners[0] = 1000;
	homad_steering_spread(steering, PORT, listeners);
	assert_int_equal(parts(steering, 0), HOMAD_PARTS - 2);
	assert_int_equal(parts(steering, 1), 1);
	assert_int_equal(parts(steering, 2), 1);
	/* Who is alone needs no parts. */
	listeners[0] = listeners[1] = 0;
	homad_steering_spread(steering, PORT, listeners);
	assert_int_equal(parts(steering, 2), 0);
	free(steering);
}

/* A listener has ended and its connections have not, when another instance's program listens. */
static void steering__connections_of_before(void **state)
{
	struct several *s = spread_new();
	struct homad_tcp_listener l[2];
	u16 i;

	(void)state;
	listens(s, 2, &l[0], 5, false);
	for (i = 0; i < SYNS; i++)
		comes(s, 0, TAS_SYN, 1000 + i, 5);
	l[0].ended = true;
	listens(s, 1, &l[1], 5, false);
	for (i = 0; i < 2 * SYNS; i++)
		comes(s, i % THREADS, TAS_SYN, 1000 + i, 5);
	assert_int_equal(l[0].l.num_half, SYNS);
	assert_int_equal(l[1].l.num_half, SYNS);
	several_free(s);
}

/* A connection to the address @to from port @from is in TIME_WAIT at @tcp; the next byte that its
 * peer had to send is @next. */
static void waits(struct homad_tcp *tcp, struct tas_ended *ended, u16 from,
		  u32 to, u32 next)
{
	struct tas_engine *engine = &tcp->engine;
	struct homa_addr me = number(to), peer = number(9);

	memset(ended, 0, sizeof(*ended));
	homa_list_init(&ended->hash);
	homa_list_init(&ended->order);
	memcpy(ended->pair.local, me.ip, sizeof(me.ip));
	memcpy(ended->pair.remote, peer.ip, sizeof(peer.ip));
	ended->pair.local_port = PORT;
	ended->pair.remote_port = from;
	ended->value = tas_hash(engine, &ended->pair);
	ended->rcv_nxt = next;
	ended->deadline = engine->now + 60 * 1000 * TAS_MSEC;
	homa_list_add_tail(&engine->ended_order, &ended->order);
	homa_table_add(&engine->ended, ended->value, &ended->hash);
}

static u64 recycled(const struct several *s, u32 index)
{
	return instance(s, index)->engine.metrics.time_wait_recycled;
}

/* A SYN that is newer than a connection in TIME_WAIT begins a new one. If nobody listens any more
 * at the instance that remembers the old one, it forgets it, and one that listens gets the SYN. */
static void steering__a_new_connection_after_time_wait(void **state)
{
	struct homad_tcp_listener l[2];
	struct tas_ended ended[2];
	u32 thread;

	(void)state;
	/* By way of the queue of each thread, as another instance's may ask first. */
	for (thread = 0; thread < THREADS; thread++) {
		struct several *s = spread_new();

		listens(s, 2, &l[0], 5, false);
		waits(instance(s, 2), &ended[0], 1000, 5, (u32)-100);
		waits(instance(s, 2), &ended[1], 1001, 5, 100);
		ends(s, &l[0]);
		/* Nobody listens: it is remembered. */
		comes(s, thread, TAS_SYN, 1000, 5);
		assert_int_equal(recycled(s, 2), 0);
		listens(s, 1, &l[1], 5, false);
		comes(s, thread, TAS_SYN, 1000, 5);
		assert_int_equal(recycled(s, 2), 1);
		assert_int_equal(l[1].l.num_half, 1);
		/* An older SYN, and one of a reset, end nothing. */
		comes(s, thread, TAS_SYN, 1001, 5);
		comes(s, thread, TAS_SYN | TAS_RST, 1001, 5);
		assert_int_equal(recycled(s, 2), 1);
		assert_int_equal(l[1].l.num_half, 1);
		assert_int_equal(all_resets(s), 0);
		several_free(s);
	}
}

static bool has_error[THREADS];
static struct several *world;

/* Each queue tells one ICMP error about a segment from PORT. */
static int one_error(struct nic *nic, struct nic_error *errors, int n)
{
	struct nic_error error = { .proto = NIC_TCP,
				   .error = EMSGSIZE,
				   .sport = PORT };
	u32 i = 0;

	while (world->nic[i] != nic)
		i++;
	assert_true(n > 0);
	if (!has_error[i])
		return 0;
	has_error[i] = false;
	errors[0] = error;
	return 1;
}

/* The kernel gives an ICMP error to all queues of a device. It counts once, at the instance that
 * has the port, whoever serves the queues. */
static void steering__icmp_errors_count_once(void **state)
{
	struct several *s = spread_new();
	struct homad_tcp_listener l;
	u64 ignored = 0;
	u32 active, i, k;

	(void)state;
	world = s;
	s->ops.errors = one_error;
	listens(s, 1, &l, 2, false);
	for (active = THREADS; active; active--) {
		homad_scale_to(&s->bed->d, active);
		for (i = 0; i < THREADS; i++)
			has_error[i] = true;
		for (i = 0; i < THREADS; i++) {
			struct homad_thread *t = s->bed->d.threads[i];

			for (k = 0; k < t->num_ports; k++)
				homad_icmp(t, t->ports[k]);
		}
	}
	for (i = 0; i < THREADS; i++)
		ignored += instance(s, i)->engine.metrics.icmp_ignored;
	assert_int_equal(instance(s, 1)->engine.metrics.icmp_ignored, ignored);
	assert_int_equal(ignored, THREADS);
	several_free(s);
}

/* ---- instances that move ---- */

static void check_threads(const struct several *s, u32 active)
{
	u32 i;

	for (i = 0; i < THREADS; i++)
		assert_ptr_equal(instance(s, i)->thread,
				 s->bed->d.threads[i % active]);
}

/* What threads had handed over to an instance is not lost when it moves. */
static void steering__instances_move(void **state)
{
	struct several *s = spread_new();
	struct homad_thread *t = s->bed->d.threads[0];
	struct homad_tcp_listener l;
	u8 bytes[HEADER];
	u16 i;

	(void)state;
	listens(s, 2, &l, 2, false);
	check_threads(s, 3);
	for (i = 0; i < SYNS; i++) {
		struct tas_segment seg = { .sport = 1000 + i,
					   .dport = PORT,
					   .flags = TAS_SYN };

		t->rx[0] = segment(bytes, 1000 + i);
		assert_int_equal(tas_encode(&seg, bytes), HEADER);
		assert_int_equal(homad_tcp_steer(t, t->ports[0], 1), 0);
	}
	assert_int_equal(l.l.num_half, 0);
	homad_scale_to(&s->bed->d, 1);
	check_threads(s, 1);
	rounds(s);
	assert_int_equal(l.l.num_half, SYNS);
	homad_scale_to(&s->bed->d, 2);
	check_threads(s, 2);
	comes(s, 1, TAS_SYN, 1000, 2);
	comes(s, 1, TAS_SYN, 2000, 2);
	assert_int_equal(l.l.num_half, SYNS + 1);
	homad_scale_to(&s->bed->d, 3);
	check_threads(s, 3);
	several_free(s);
}

/* Attachments go with their instance, also those that close, and then end there, and those whose
 * last bytes are still being sent. What the slow path asks about them is asked there. */
static void steering__attachments_move_along(void **state)
{
	struct several *s = spread_new();
	struct homad *d = &s->bed->d;
	struct homad_streams streams[3] = {
		{ .tcp = instance(s, 1) },
		{ .tcp = instance(s, 1) },
		{ .tcp = instance(s, 1), .num_open = 1 },
	};
	struct side *sides[3];
	u32 i;

	(void)state;
	for (i = 0; i < 3; i++) {
		sides[i] = attach(d);
		assert_int_equal(homad_bring_home(d, &sides[i]->app,
						  instance(s, 1)),
				 0);
	}
	homad_session_close(d->threads[1], &sides[2]->app);
	sides[2]->app.streams = &streams[2];
	for (i = 0; i < 100 && !sides[2]->app.lingers; i++)
		rounds(s);
	assert_true(sides[2]->app.lingers);
	homad_session_close(d->threads[1], &sides[1]->app);
	for (i = 0; i < 2; i++)
		sides[i]->app.streams = &streams[i];
	homad_scale_to(d, 1);
	for (i = 0; i < 3; i++)
		assert_ptr_equal(sides[i]->app.thread, d->threads[0]);
	assert_true(homa_list_empty(&d->threads[1]->closing));
	assert_false(homa_list_empty(&d->threads[0]->closing));
	homad_scale_to(d, 2);
	for (i = 0; i < 3; i++)
		assert_ptr_equal(sides[i]->app.thread, d->threads[1]);
	assert_false(homa_list_empty(&d->threads[1]->closing));
	/* Its last bytes have left. */
	streams[2].num_open = 0;
	sides[2]->app.lingers = false;
	homa_list_del(&sides[2]->app.closing);
	homa_list_add_tail(&d->threads[1]->closing, &sides[2]->app.closing);
	for (i = 0; i < 3; i++) {
		sides[i]->app.streams = NULL;
		leave(s, sides[i]);
	}
	several_free(s);
}

/* ---- threads at work ---- */

#define BURSTS 400u

static u32 bursts[THREADS];
static u8 headers[THREADS][HOMAD_BATCH][HEADER];

/* Each queue brings segments of no connection, to PORT and to another port in turn. */
static int rx_burst(struct nic *nic, struct nic_rx *pkts, int n)
{
	u32 i = 0;
	int k;

	while (world->nic[i] != nic)
		i++;
	if (__atomic_load_n(&bursts[i], __ATOMIC_RELAXED) == BURSTS)
		return 0;
	for (k = 0; k < n; k++) {
		pkts[k] = segment(headers[i][k], (u16)(1000 + k));
		homa_put_be16(headers[i][k] + 2, (u16)(PORT + k % 2));
	}
	__atomic_store_n(&bursts[i], bursts[i] + 1, __ATOMIC_RELEASE);
	return n;
}

static bool all_in(void)
{
	u32 i;

	for (i = 0; i < THREADS; i++)
		if (__atomic_load_n(&bursts[i], __ATOMIC_ACQUIRE) != BURSTS)
			return false;
	return true;
}

static int nothing(struct homad_thread *t, void *arg)
{
	(void)t;
	(void)arg;
	return 0;
}

/* Owners of ports change and instances move while threads take segments in. Each segment is seen by
 * one instance, or counted as lost. */
static void steering__while_all_changes(void **state)
{
	struct several *s = spread_new();
	struct homad *d = &s->bed->d;
	u64 seen = 0, lost = 0;
	u32 i, turn;

	(void)state;
	homa_plat_alone = false;
	memset(bursts, 0, sizeof(bursts));
	world = s;
	s->ops.rx = rx_burst;
	for (i = 0; i < THREADS; i++)
		assert_int_equal(homad_thread_start(d->threads[i]), 0);
	for (turn = 0; !all_in() || turn < 50; turn++) {
		homad_steering_set(d->steering, PORT, turn % THREADS, turn & 1);
		homad_scale_to(d, 1 + turn % THREADS);
	}
	/* What lies in rings is taken in: twice around for each instance that is asked. */
	for (turn = 0; turn < 4 * THREADS; turn++)
		for (i = 0; i < THREADS; i++)
			homad_call(d->threads[i], nothing, NULL);
	for (i = 0; i < THREADS; i++)
		homad_thread_stop(d->threads[i]);
	for (turn = 0; turn < 100 * THREADS; turn++)
		rounds(s);
	for (i = 0; i < THREADS; i++) {
		const struct tas_metrics *m = &instance(s, i)->engine.metrics;

		seen += m->slow_segments + m->slow_drops;
		lost += d->threads[i]->counters.tcp_handed_lost;
	}
	assert_int_equal(seen + lost, THREADS * BURSTS * HOMAD_BATCH);
	several_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steering__to_the_owner_of_the_port),
		cmocka_unit_test(steering__no_header),
		cmocka_unit_test(steering__by_the_address),
		cmocka_unit_test(steering__the_address_goes_before_all),
		cmocka_unit_test(steering__shared_port),
		cmocka_unit_test(steering__by_the_number_of_listeners),
		cmocka_unit_test(steering__parts_of_a_port),
		cmocka_unit_test(steering__connections_of_before),
		cmocka_unit_test(steering__a_new_connection_after_time_wait),
		cmocka_unit_test(steering__icmp_errors_count_once),
		cmocka_unit_test(steering__instances_move),
		cmocka_unit_test(steering__attachments_move_along),
		cmocka_unit_test(steering__while_all_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
