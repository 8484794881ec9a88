// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Destinations of several users: what one of them does to those of others. The kernel's
 * routing table is played here and counts; rounds are run by hand.
 */
#include "service_bed.h"
#include "unit.h"

#define GREEDY 1000 /* users */
#define MODEST 2000

static int way(struct bed *bed, uid_t user, u32 n)
{
	struct homa_addr addr = number(n);
	struct homad_port *port;

	return homad_dest(bed->t, user, &addr, 100, &port);
}

/* The way is found, and the kernel was asked for it; false: it was known. */
static bool was_asked(struct bed *bed, uid_t user, u32 n)
{
	u32 before = asked;

	bed->t->ctx.now += 1000;
	bed->t->counters.rounds++;
	assert_int_equal(way(bed, user, n), 0);
	return asked != before;
}

/* ---- tests ---- */

/* How many of 300 destinations of three users the kernel is asked for. */
static u32 asked_for_modest(struct bed *bed)
{
	u32 n, sum = 0;

	for (n = 0; n < 300; n++)
		sum += was_asked(bed, MODEST + n % 3, n);
	return sum;
}

/*
 * Of three of one user in a set that the greedy one also wants one has to go, and of
 * four of several, which is rare: under many keys on average at most 2 % of the 300.
 */
static void dests__others_keep_theirs(void **state)
{
	u64 seed = unit_seed();
	struct homa_rng rng;
	u32 key, i, sum = 0, looks = 0;

	(void)state;
	homa_rng_init(&rng, seed);
	for (key = 0; key < 32; key++) {
		struct bed *bed = bed_new();

		bed->t->dests.key[0] = homa_rng_next(&rng);
		bed->t->dests.key[1] = homa_rng_next(&rng);
		/* He had filled all places before they came. */
		for (i = 0; i < 8192; i++)
			was_asked(bed, GREEDY, 100000 + i);
		assert_int_equal(asked_for_modest(bed), 300);
		for (; i < 16384 + 8192; i++) {
			was_asked(bed, GREEDY, 100000 + i % 16384);
			if (i % 64 == 0) {
				sum += asked_for_modest(bed);
				looks++;
			}
		}
		bed_free(bed);
	}
	unit_assert(seed, sum <= looks * (300 / 50));
}

/* What one looked up and others use, too, is not his to give away. */
static void dests__shared_ones_stay(void **state)
{
	struct bed *bed = bed_new();
	u32 i, n;

	(void)state;
	for (n = 0; n < 50; n++)
		assert_true(was_asked(bed, GREEDY, n));
	for (n = 0; n < 50; n++)
		assert_false(was_asked(bed, MODEST, n));
	for (i = 0; i < 16384; i++)
		was_asked(bed, GREEDY, 100000 + i);
	for (n = 0; n < 50; n++)
		assert_false(was_asked(bed, MODEST, n));
	bed_free(bed);
}

static void dests__believed_for_a_second(void **state)
{
	struct bed *bed = bed_new();

	(void)state;
	assert_true(was_asked(bed, MODEST, 1));
	bed->t->ctx.now += 900000000u;
	assert_false(was_asked(bed, MODEST, 1));
	bed->t->ctx.now += 200000000u;
	assert_true(was_asked(bed, MODEST, 1));
	assert_false(was_asked(bed, MODEST, 1));
	bed_free(bed);
}

static void dests__one_look_up_for_a_user_in_a_round(void **state)
{
	struct bed *bed = bed_new();
	u32 i, user;

	(void)state;
	assert_int_equal(way(bed, GREEDY, 1), 0);
	for (i = 2; i < 100; i++)
		assert_int_equal(way(bed, GREEDY, i), -EAGAIN);
	assert_int_equal(asked, 1);
	/* What is known is his at any time, and others have theirs. */
	assert_int_equal(way(bed, GREEDY, 1), 0);
	for (user = 1; user < HOMAD_ROUND_LOOKUPS; user++)
		assert_int_equal(way(bed, MODEST + user, 200 + user), 0);
	assert_true(homad_dests_exhausted(&bed->t->dests));
	assert_int_equal(way(bed, MODEST, 300), -EAGAIN);
	assert_int_equal(asked, HOMAD_ROUND_LOOKUPS);
	assert_true(was_asked(bed, MODEST, 300));
	bed_free(bed);
}

static struct side *program(struct bed *bed, uid_t user)
{
	struct side *side = attach(&bed->d);

	side->app.uid = user;
	return side;
}

/* All programs are looked at, however long the test was kept from running. */
static void round_of(struct bed *bed, struct side *a, struct side *b, struct side *c)
{
	homad_poll_app(bed->t, &a->app);
	homad_poll_app(bed->t, &b->app);
	homad_poll_app(bed->t, &c->app);
	homad_round(bed->t);
}

static void request(struct side *s, u32 slot, u32 to)
{
	struct homa_addr addr = number(to);
	struct homa_sqe sqe = {
		.op = HOMA_SQE_REQUEST,
		.flags = HOMA_SQE_COPY,
		.port = 99,
		.length = 100,
		.token = 1 << 16 | slot,
	};

	memcpy(sqe.ip, addr.ip, sizeof(sqe.ip));
	submit(s, &sqe);
}

static void commands__others_are_not_held_up(void **state)
{
	struct bed *bed = bed_new();
	struct side *one = program(bed, GREEDY), *two = program(bed, GREEDY);
	struct side *other = program(bed, MODEST);
	u32 i, before;

	(void)state;
	request(other, 0, 1);
	round_of(bed, one, two, other);
	for (i = 0; i < 30; i++) {
		request(one, i, 1000 + i);
		request(two, i, 2000 + i);
	}
	for (i = 0; i < 60; i++) {
		before = asked;
		if (i < 20)
			request(other, 1 + i, 1);
		round_of(bed, one, two, other);
		assert_int_equal(asked, before + 1);
		/* His to a known destination goes at once; of the greedy one's two
		 * programs each has his turn. */
		assert_int_equal(other->app.counters.requests, homa_min_u32(i + 2, 21));
		assert_int_equal(one->app.counters.requests + two->app.counters.requests, i + 1);
		assert_in_range(one->app.counters.requests + 1 - two->app.counters.requests, 0, 2);
	}
	assert_int_equal(bed->t->counters.route_lookups, 61);
	homad_session_close(bed->t, &one->app);
	homad_session_close(bed->t, &two->app);
	homad_session_close(bed->t, &other->app);
	for (i = 0; i < 100; i++)
		homad_round(bed->t);
	detach_closed(one);
	detach_closed(two);
	detach_closed(other);
	bed_free(bed);
}

/* ---- an attachment that moves to another thread ---- */

/* Its look-up is put off while nobody polls it: asked for its open RPCs (stats_rpcs.c) homad
 * looks through its rings once. */
static struct side *put_off(struct bed *bed)
{
	struct side *side = program(bed, GREEDY);

	request(side, 0, 1000);
	request(side, 1, 1001);
	homad_unpoll_app(bed->t, &side->app);
	assert_int_equal(homad_call(bed->t, homad_turn_of, &side->app), 1);
	assert_ptr_equal(bed->t->put_off, &side->app);
	return side;
}

static void put_off__does_not_follow_to_another_thread(void **state)
{
	struct bed *bed = bed_new();
	struct side *side = put_off(bed);
	struct homad_thread *other;
	u32 i;

	(void)state;
	assert_int_equal(homad_thread_make(&bed->d, 1), 0);
	bed->d.num_threads = bed->d.num_active = 2;
	other = bed->d.threads[1];
	assert_ptr_equal(homad_session_give(bed->t), &side->app);
	assert_int_equal(homad_session_take(other, &side->app), 0);
	homad_commands(bed->t);
	assert_true(homa_list_empty(&bed->t->users));
	assert_ptr_equal(other->others.apps.next, &side->app.polled);
	assert_int_equal(other->num_polled, 1);
	homad_commands(other);
	assert_int_equal(side->app.counters.requests, 2);
	homad_session_close(other, &side->app);
	for (i = 0; i < 100; i++) {
		homad_round(other);
		homad_round(bed->t);
	}
	homad_thread_free(other);
	bed->d.num_threads = 1;
	detach_closed(side);
	bed_free(bed);
}

static void put_off__does_not_outlive_the_attachment(void **state)
{
	struct bed *bed = bed_new();
	struct side *side = put_off(bed);
	u32 i;

	(void)state;
	homad_session_close(bed->t, &side->app);
	assert_null(bed->t->put_off);
	for (i = 0; i < 100; i++)
		homad_round(bed->t);
	detach_closed(side);
	homad_commands(bed->t);
	bed_free(bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dests__others_keep_theirs),
		cmocka_unit_test(dests__shared_ones_stay),
		cmocka_unit_test(dests__believed_for_a_second),
		cmocka_unit_test(dests__one_look_up_for_a_user_in_a_round),
		cmocka_unit_test(commands__others_are_not_held_up),
		cmocka_unit_test(put_off__does_not_follow_to_another_thread),
		cmocka_unit_test(put_off__does_not_outlive_the_attachment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
