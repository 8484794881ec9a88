// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * HOMA_SHM_ARM_ROOM (abi/shm.h): homad tells an application that there is room to send, misses no
 * one who asks, and looks for nothing in those that never did. Commands are aborts of RPCs that
 * there are not, which end where they are read.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include "service_bed.h"
#include "unit.h"

#define TIMES 20000u

static struct side *begin(struct bed *bed)
{
	struct side *s = attach(&bed->d);

	fcntl(s->wakes[0], F_SETFL, O_NONBLOCK);
	fcntl(s->wakes[1], F_SETFL, O_NONBLOCK);
	s->app.rings_bell = true;
	s->app.queues->sqs = HOMA_SHM_SQS;
	assert_int_equal(homad_look_at_rings(bed->t, &s->app), 0);
	return s;
}

static void end(struct side *s, struct bed *bed)
{
	u32 i;

	homad_session_close(bed->t, &s->app);
	for (i = 0; i < 10 && s->app.phase != HOMAD_APP_DEAD; i++)
		homad_round(bed->t);
	bed->d.dead = NULL;
	detach_closed(s);
	bed_free(bed);
}

static void command(struct side *s)
{
	struct homa_sqe sqe = { .op = HOMA_SQE_ABORT, .token = 1u << 16 };

	submit(s, &sqe);
}

static void ask(struct side *s)
{
	struct homa_shm_header *h = s->app.queues;

	__atomic_fetch_or(&h->armed, HOMA_SHM_ARM_ROOM, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&h->sq[0].bell, __ATOMIC_SEQ_CST))
		__atomic_store_n(&h->sq[0].bell, 1, __ATOMIC_RELEASE);
}

/* Was the application woken since the last time? */
static bool told(struct side *s)
{
	char bytes[65536];

	return read(s->wakes[0], bytes, sizeof(bytes)) > 0;
}

static u32 look(struct side *s, struct bed *bed)
{
	return homad_look_at_rings(bed->t, &s->app);
}

static void who_asks__is_told_of_each_turn(void **state)
{
	struct bed *bed = bed_new();
	struct side *s = begin(bed);

	(void)state;
	command(s);
	ask(s);
	assert_int_equal(look(s, bed), 1);
	assert_true(told(s));
	assert_int_equal(s->app.queues->armed, 0);
	assert_int_equal(s->app.counters.room_told, 1);
	/* It did not ask again. */
	command(s);
	assert_int_equal(look(s, bed), 1);
	assert_false(told(s));
	/* From now on the bit is enough. */
	command(s);
	s->app.queues->armed = HOMA_SHM_ARM_ROOM;
	assert_int_equal(look(s, bed), 1);
	assert_true(told(s));
	assert_int_equal(s->app.counters.room_told, 2);
	end(s, bed);
}

/* The head was moved after the application looked, and before homad saw that it asks. */
static void first_one__is_told_though_nothing_waits(void **state)
{
	struct bed *bed = bed_new();
	struct side *s = begin(bed);

	(void)state;
	command(s);
	assert_int_equal(look(s, bed), 1);
	ask(s);
	assert_int_equal(look(s, bed), 0);
	assert_true(told(s));
	/* With nothing submitted, nothing can become free. */
	ask(s);
	s->app.queues->sq[0].bell = 0;
	assert_int_equal(look(s, bed), 0);
	assert_false(told(s));
	end(s, bed);
}

static void nobody_asked__nobody_is_told(void **state)
{
	struct bed *bed = bed_new();
	struct side *s = begin(bed);
	u32 i;

	(void)state;
	for (i = 0; i < 100; i++) {
		command(s);
		s->app.queues->sq[0].bell = i & 1;
		assert_int_equal(look(s, bed), 1);
	}
	assert_false(told(s));
	assert_false(s->app.asks_room);
	end(s, bed);
}

static void free_memory__is_told_without_the_bell(void **state)
{
	struct bed *bed = bed_new();
	struct side *s = begin(bed);
	struct homa_cqe cqe;

	(void)state;
	s->app.queues->armed = HOMA_SHM_ARM_ROOM;
	homad_lock(&s->app);
	assert_true(homad_free_bytes(bed->t, &s->app, 0, 4096));
	homad_unlock(&s->app);
	homad_deliver(bed->t);
	assert_true(told(s));
	assert_int_equal(s->app.counters.room_told, 1);
	cqe = receive(s);
	assert_int_equal(cqe.kind, HOMA_CQE_FREE);
	end(s, bed);
}

/* All bits, all the time, and nobody reads the pipe: it has the cost of a write in each turn. */
static void hostile_bits__harm_nobody(void **state)
{
	struct bed *bed = bed_new();
	struct side *s = begin(bed);
	u32 i;

	(void)state;
	for (i = 0; i < 2 * TIMES; i++) {
		s->app.queues->armed = ~(u32)0 - i % 3;
		s->app.queues->sq[0].bell = i * 2654435761u;
		command(s);
		assert_int_equal(look(s, bed), 1);
		/* Bits that homad does not know stay. */
		assert_int_equal(s->app.queues->armed >> 4, ~(u32)0 >> 4);
	}
	assert_false(s->app.evicted);
	assert_true(told(s));
	end(s, bed);
}

/* ---- threads ---- */

/* Sleeps after each command until homad has taken it. A signal lost is a sleep for ever. */
static void *sleep_often(void *arg)
{
	struct side *s = arg;
	struct homa_shm_ring *ring = &s->app.queues->sq[0];
	struct pollfd p = { .fd = s->wakes[0], .events = POLLIN };
	u32 i;

	for (i = 0; i < TIMES; i++) {
		command(s);
		for (;;) {
			told(s);
			ask(s);
			if (__atomic_load_n(&ring->head, __ATOMIC_SEQ_CST) ==
			    s->sq_tail)
				break;
			poll(&p, 1, -1);
		}
	}
	return NULL;
}

static void sleeper__is_always_woken(void **state)
{
	struct bed *bed = bed_new();
	struct side *s = begin(bed);
	pthread_t thread;
	u32 done = 0, found;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, sleep_often, s), 0);
	while (done < TIMES) {
		found = look(s, bed);
		done += found;
		if (!found)
			sched_yield();
	}
	/* The last signal may be due yet. */
	look(s, bed);
	pthread_join(thread, NULL);
	assert_true(s->app.counters.room_told > 0);
	end(s, bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_asks__is_told_of_each_turn),
		cmocka_unit_test(first_one__is_told_though_nothing_waits),
		cmocka_unit_test(nobody_asked__nobody_is_told),
		cmocka_unit_test(free_memory__is_told_without_the_bell),
		cmocka_unit_test(hostile_bits__harm_nobody),
		cmocka_unit_test(sleeper__is_always_woken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
