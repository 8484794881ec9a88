// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The bell of an attachment (abi/shm.h): homad finds what was submitted by a look at one word,
 * and misses nothing, whoever submits at the same time. Commands are aborts of RPCs that there
 * are not, which end where they are read.
 */
#include <pthread.h>
#include <time.h>
#include "service_bed.h"
#include "unit.h"

#define SUBMITTERS 3u
/* Commands of each thread; before a release (./homa test --long) five times as many. */
#define TIMES 4000u

/* An application that says that it rings; its tails of the rings. */
struct ringer {
	struct side *side;
	u32 tail[HOMA_SHM_SQS];
};

static void begin(struct ringer *r, struct bed *bed)
{
	memset(r, 0, sizeof(*r));
	r->side = attach(&bed->d);
	r->side->app.rings_bell = true;
	r->side->app.queues->sqs = HOMA_SHM_SQS;
	/* All that is there at first is looked at. */
	assert_int_equal(homad_look_at_rings(bed->t, &r->side->app), 0);
}

static void end(struct ringer *r, struct bed *bed)
{
	u32 i;

	homad_session_close(bed->t, &r->side->app);
	for (i = 0; i < 10 && r->side->app.phase != HOMAD_APP_DEAD; i++)
		homad_round(bed->t);
	bed->d.dead = NULL;
	detach_closed(r->side);
	bed_free(bed);
}

static void mute_submit(struct ringer *r, u32 ring)
{
	struct homa_sqe sqe = { .op = HOMA_SQE_ABORT, .token = 1u << 16 };
	struct homa_shm_queues *q = queues_of(r->side);

	q->sqe[ring][r->tail[ring]++ & (HOMA_SHM_SQ_ENTRIES - 1)] = sqe;
	__atomic_store_n(&q->h.sq[ring].tail, r->tail[ring], __ATOMIC_SEQ_CST);
}

static void bell(struct ringer *r)
{
	u32 *word = &r->side->app.queues->sq[0].bell;

	if (!__atomic_load_n(word, __ATOMIC_SEQ_CST))
		__atomic_store_n(word, 1, __ATOMIC_RELEASE);
}

static u32 look(struct ringer *r, struct bed *bed)
{
	return homad_look_at_rings(bed->t, &r->side->app);
}

static void any_ring__is_found_by_the_bell(void **state)
{
	struct bed *bed = bed_new();
	struct ringer r;
	u32 i;

	(void)state;
	begin(&r, bed);
	for (i = 1; i < HOMA_SHM_SQS; i++) {
		mute_submit(&r, i);
		/* The fast way: nobody looked at that ring. */
		assert_int_equal(look(&r, bed), 0);
		bell(&r);
		assert_int_equal(look(&r, bed), 1);
		assert_int_equal(r.side->app.queues->sq[0].bell, 0);
		assert_int_equal(look(&r, bed), 0);
	}
	/* The first needs no bell. */
	mute_submit(&r, 0);
	assert_int_equal(look(&r, bed), 1);
	end(&r, bed);
}

static void more_than_a_turn__needs_no_second_bell(void **state)
{
	struct bed *bed = bed_new();
	struct ringer r;
	u32 i, left = 3 * HOMAD_TURN + 1;

	(void)state;
	begin(&r, bed);
	for (i = 0; i < left; i++)
		mute_submit(&r, 5);
	bell(&r);
	for (; left > HOMAD_TURN; left -= HOMAD_TURN)
		assert_int_equal(look(&r, bed), HOMAD_TURN);
	assert_int_equal(look(&r, bed), left);
	assert_int_equal(look(&r, bed), 0);
	end(&r, bed);
}

static void ring_without_memory__is_found_when_it_has_some(void **state)
{
	struct bed *bed = bed_new();
	struct homad_back back = { .pages = 1, .rings = 2 };
	struct ringer r;

	(void)state;
	begin(&r, bed);
	back.app = &r.side->app;
	assert_int_equal(homad_session_back(bed->t, &back), 0);
	mute_submit(&r, 6);
	bell(&r);
	assert_int_equal(look(&r, bed), 0);
	assert_int_equal(look(&r, bed), 0);
	back.rings = HOMA_SHM_SQS;
	assert_int_equal(homad_session_back(bed->t, &back), 0);
	assert_int_equal(look(&r, bed), 1);
	bed->d.wanting = NULL;
	end(&r, bed);
}

/* It harms itself: it waits until homad would sleep, and does not keep homad awake. */
static void one_that_does_not_ring__is_found_before_sleep(void **state)
{
	struct bed *bed = bed_new();
	struct ringer r;

	(void)state;
	begin(&r, bed);
	mute_submit(&r, 3);
	assert_int_equal(look(&r, bed), 0);
	assert_true(homad_ask_kicks(bed->t));
	assert_int_equal(look(&r, bed), 1);
	assert_false(homad_ask_kicks(bed->t));
	end(&r, bed);
}

static void one_without_the_bell__is_looked_at_in_full(void **state)
{
	struct bed *bed = bed_new();
	struct ringer r;

	(void)state;
	begin(&r, bed);
	r.side->app.rings_bell = false;
	mute_submit(&r, 7);
	assert_int_equal(look(&r, bed), 1);
	end(&r, bed);
}

/* ---- threads ---- */

struct submitter {
	struct ringer *r;
	u32 ring;
	pthread_t thread;
};

static u32 times(void)
{
	const char *asked = getenv("HOMA_TEST_LONG");

	return asked && !strcmp(asked, "1") ? 5 * TIMES : TIMES;
}

/*
 * Waits for another thread. A thread that only yields stands behind each program of the machine
 * that computes, for milliseconds each time; one that has slept runs before them.
 */
static void wait_a_moment(u32 *tries)
{
	const struct timespec shortest = { .tv_nsec = 1 };

	if (++*tries % 64 == 0)
		nanosleep(&shortest, NULL);
}

/* Each waits for its command to be taken: if the bell lost one, it waits for ever. */
static void *submit_all(void *arg)
{
	struct submitter *s = arg;
	struct homa_shm_ring *ring = &s->r->side->app.queues->sq[s->ring];
	u32 i, n = times(), tries = 0;

	for (i = 1; i <= n; i++) {
		mute_submit(s->r, s->ring);
		bell(s->r);
		while (__atomic_load_n(&ring->head, __ATOMIC_ACQUIRE) != i)
			wait_a_moment(&tries);
	}
	return NULL;
}

static void run_submitters(u32 n)
{
	struct submitter submitters[SUBMITTERS];
	struct bed *bed = bed_new();
	struct ringer r;
	u32 i, found, done = 0, tries = 0;

	begin(&r, bed);
	for (i = 0; i < n; i++) {
		submitters[i].r = &r;
		submitters[i].ring = 1 + 2 * i;
		assert_int_equal(pthread_create(&submitters[i].thread, NULL,
						submit_all, &submitters[i]),
				 0);
	}
	while (done < n * times()) {
		found = look(&r, bed);
		done += found;
		if (!found)
			wait_a_moment(&tries);
	}
	for (i = 0; i < n; i++)
		pthread_join(submitters[i].thread, NULL);
	end(&r, bed);
}

/* One alone, too: where there are several, the next one's bell mends what was lost. */
static void threads_at_once__lose_nothing(void **state)
{
	u32 n;

	(void)state;
	for (n = 1; n <= SUBMITTERS; n++)
		run_submitters(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_ring__is_found_by_the_bell),
		cmocka_unit_test(more_than_a_turn__needs_no_second_bell),
		cmocka_unit_test(ring_without_memory__is_found_when_it_has_some),
		cmocka_unit_test(one_that_does_not_ring__is_found_before_sleep),
		cmocka_unit_test(one_without_the_bell__is_looked_at_in_full),
		cmocka_unit_test(threads_at_once__lose_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
