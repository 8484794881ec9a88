// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Destinations of several users: what one of them does to those of others. The kernel's
 * routing table is played here and counts; rounds are run by hand, and the thread for
 * routes, which asks the kernel, is played, too.
 */
#include "dest_table.h"
#include "service_bed.h"
#include "unit.h"

#define GREEDY 1000 /* users */
#define MODEST 2000

/* From now on questions wait until somebody sees to them. */
static struct bed *bed_asking(void)
{
	struct bed *bed = bed_new();

	bed->d.questions_fd = eventfd(0, EFD_NONBLOCK);
	bed->d.routes = true;
	return bed;
}

static void bed_done(struct bed *bed)
{
	close(bed->d.questions_fd);
	bed_free(bed);
}

/* What the thread for routes does; returns how many questions there were. */
static u32 see_to_questions(struct bed *bed)
{
	struct homad_question *q = bed->d.questions, *next;
	u32 n = 0;

	bed->d.questions = NULL;
	for (; q; q = next, n++) {
		next = q->next;
		q->error = nic_route_get(NULL, &q->addr, 0, &q->route);
		homad_post(q->thread, &q->job);
	}
	return n;
}

static u32 answer(struct bed *bed)
{
	u32 n = see_to_questions(bed);

	homad_mail(bed->t);
	return n;
}

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
	if (way(bed, user, n) == -EAGAIN) {
		assert_int_equal(answer(bed), 1);
		assert_int_equal(way(bed, user, n), 0);
	}
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
		struct bed *bed = bed_asking();

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
		bed_done(bed);
	}
	unit_assert(seed, sum <= looks * (300 / 50));
}

/* What one looked up and others use, too, is not his to give away. */
static void dests__shared_ones_stay(void **state)
{
	struct bed *bed = bed_asking();
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
	bed_done(bed);
}

static void dests__believed_for_a_second(void **state)
{
	struct bed *bed = bed_asking();

	(void)state;
	assert_true(was_asked(bed, MODEST, 1));
	bed->t->ctx.now += 900000000u;
	assert_int_equal(way(bed, MODEST, 1), 0);
	assert_null(bed->d.questions);
	/* Then the kernel is asked anew, and who sends meanwhile does not wait for it. */
	bed->t->ctx.now += 200000000u;
	assert_int_equal(way(bed, MODEST, 1), 0);
	assert_int_equal(way(bed, MODEST + 1, 1), 0);
	assert_int_equal(bed->t->counters.route_waits, 1);
	assert_int_equal(answer(bed), 2);
	assert_int_equal(way(bed, MODEST, 1), 0);
	assert_null(bed->d.questions);
	/* But not for ever. */
	bed->t->ctx.now = bed->t->dests.questions[0].open ?
				  0 :
				  bed->t->ctx.now + 2100000000u;
	assert_int_equal(way(bed, MODEST, 1), -EAGAIN);
	bed_done(bed);
}

/* One that there was no way to may have one when the kernel is asked again. */
static void dests__no_way_is_not_believed_longer(void **state)
{
	struct bed *bed = bed_asking();
	struct homa_addr addr = number(7);

	(void)state;
	assert_true(was_asked(bed, MODEST, 7));
	homad_dest_find(&bed->t->dests, &addr)->error = -ENETUNREACH;
	assert_int_equal(way(bed, MODEST, 7), -ENETUNREACH);
	bed->t->ctx.now += 1100000000u;
	assert_int_equal(way(bed, MODEST, 7), -EAGAIN);
	assert_int_equal(answer(bed), 1);
	assert_int_equal(way(bed, MODEST, 7), 0);
	bed_done(bed);
}

static void dests__one_question_for_a_user(void **state)
{
	struct bed *bed = bed_asking();
	u32 i, user;

	(void)state;
	for (i = 0; i < 100; i++)
		assert_int_equal(way(bed, GREEDY, 1 + i), -EAGAIN);
	for (user = 1; user < HOMAD_QUESTIONS; user++)
		assert_int_equal(way(bed, MODEST + user, 200 + user), -EAGAIN);
	/* There are no more than these. */
	assert_int_equal(way(bed, MODEST, 300), -EAGAIN);
	assert_int_equal(bed->t->counters.route_lookups, HOMAD_QUESTIONS);
	assert_int_equal(answer(bed), HOMAD_QUESTIONS);
	assert_int_equal(asked, HOMAD_QUESTIONS);
	assert_int_equal(way(bed, GREEDY, 1), 0);
	assert_int_equal(way(bed, GREEDY, 2), -EAGAIN);
	/* What is known is his at any time, and others have theirs. */
	assert_int_equal(way(bed, GREEDY, 1), 0);
	for (user = 1; user < HOMAD_QUESTIONS; user++)
		assert_int_equal(way(bed, MODEST + user, 200 + user), 0);
	assert_int_equal(way(bed, MODEST, 300), -EAGAIN);
	assert_int_equal(answer(bed), 2);
	assert_int_equal(way(bed, MODEST, 300), 0);
	bed_done(bed);
}

/* The slow path asks for a client: what it hears the fast path knows from then on. */
static void dests__questions_of_clients(void **state)
{
	struct bed *bed = bed_asking();
	struct homad_question question = {
		.job = { .run = homad_session_routed, .arg = &question },
		.thread = bed->t,
		.addr = number(5),
		.user = MODEST,
	};
	u64 count = 0;

	(void)state;
	bed->d.answered_fd = eventfd(0, EFD_NONBLOCK);
	assert_int_equal(homad_call(bed->t, homad_session_route, &question), 0);
	assert_int_equal(asked, 0);
	homad_ask_route(&bed->d, &question);
	assert_int_equal(answer(bed), 1);
	assert_ptr_equal(bed->d.answered, &question);
	assert_int_equal(read(bed->d.answered_fd, &count, sizeof(count)),
			 sizeof(count));
	assert_int_equal(question.error, 0);
	assert_int_equal(homad_call(bed->t, homad_session_route, &question), 1);
	assert_false(was_asked(bed, GREEDY, 5));
	close(bed->d.answered_fd);
	bed_done(bed);
}

/* The places are as many as there are, whatever is asked for. */
static void dests__have_a_cap(void **state)
{
	enum {
		PLACES = HOMAD_DEST_SETS * HOMAD_DEST_WAYS,
		MANY = 4 * PLACES,
		LAST = 100
	};
	struct bed *bed = bed_asking();
	struct homad_dest *dest = &bed->t->dests.sets[0][0];
	u32 i, used = 0, again = 0;

	(void)state;
	for (i = 0; i < MANY; i++)
		assert_true(was_asked(bed, GREEDY + i % 5, i));
	for (i = 0; i < PLACES; i++)
		used += dest[i].checked != 0;
	assert_int_equal(used, PLACES);
	/* What was used last is what is left, but in sets that were hit more often. */
	for (i = MANY - LAST; i < MANY; i++)
		again += was_asked(bed, GREEDY + i % 5, i);
	assert_in_range(again, 0, LAST / 10);
	bed_done(bed);
}

static struct side *program(struct bed *bed, uid_t user)
{
	struct side *side = attach(&bed->d);

	side->app.uid = user;
	return side;
}

/* The questions of the round before are answered, and all programs are looked at, however
 * long the test was kept from running. */
static void round_of(struct bed *bed, struct side *a, struct side *b,
		     struct side *c)
{
	homad_poll_app(bed->t, &a->app);
	homad_poll_app(bed->t, &b->app);
	homad_poll_app(bed->t, &c->app);
	see_to_questions(bed);
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

/* Without a word from the kernel nobody waits who needs none. */
static void commands__others_are_not_held_up(void **state)
{
	struct bed *bed = bed_asking();
	struct side *one = program(bed, GREEDY), *two = program(bed, GREEDY);
	struct side *other = program(bed, MODEST);
	struct homa_addr known = number(1);
	u32 i;

	(void)state;
	request(other, 0, 1);
	round_of(bed, one, two, other);
	assert_int_equal(other->app.counters.requests, 0);
	round_of(bed, one, two, other);
	assert_int_equal(other->app.counters.requests, 1);
	/* It stays known, however long this takes. */
	homad_dest_find(&bed->t->dests, &known)->checked = HOMA_NEVER / 2;
	for (i = 0; i < 30; i++) {
		request(one, i, 1000 + i);
		request(two, i, 2000 + i);
	}
	for (i = 0; i <= 60; i++) {
		if (i < 20)
			request(other, 1 + i, 1);
		round_of(bed, one, two, other);
		assert_int_equal(asked, i + 1);
		/* His to a known destination goes at once; of the greedy one's two
		 * programs each has his turn. */
		assert_int_equal(other->app.counters.requests,
				 homa_min_u32(i + 2, 21));
		assert_int_equal(one->app.counters.requests +
					 two->app.counters.requests,
				 i);
		assert_in_range(one->app.counters.requests + 1 -
					two->app.counters.requests,
				0, 2);
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
	bed_done(bed);
}

/* More users than there can be questions, each with ever new destinations: none is left out. */
static void commands__each_user_has_his_turn(void **state)
{
	enum { USERS = HOMAD_QUESTIONS + 4, EACH = 20 };
	struct bed *bed = bed_asking();
	struct homad_polled of[USERS];
	struct side *side[USERS];
	struct homad_question *last;
	u32 i, k, least = 0;

	(void)state;
	for (i = 0; i < USERS; i++) {
		side[i] = program(bed, MODEST + i);
		homad_unpoll_app(bed->t, &side[i]->app);
		homad_polled_init(&of[i]);
		side[i]->app.user_polled = &of[i];
		for (k = 0; k < EACH; k++)
			request(side[i], k, 1000 * (i + 1) + k);
	}
	/* One question at a time is answered, that of whoever asked first. */
	for (k = 0; k < USERS * EACH / 2; k++) {
		for (i = 0; i < USERS; i++)
			homad_poll_app(bed->t, &side[i]->app);
		if (bed->d.questions) {
			struct homad_question **at = &bed->d.questions, *all;

			while ((*at)->next)
				at = &(*at)->next;
			last = *at;
			*at = NULL;
			all = bed->d.questions;
			last->next = NULL;
			bed->d.questions = last;
			assert_int_equal(see_to_questions(bed), 1);
			bed->d.questions = all == last ? NULL : all;
		}
		homad_round(bed->t);
	}
	for (i = 0; i < USERS; i++) {
		u64 n = side[i]->app.counters.requests;

		least = i ? homa_min_u32(least, (u32)n) : (u32)n;
	}
	assert_in_range(least, EACH / 4, EACH);
	answer(bed);
	for (i = 0; i < USERS; i++)
		homad_session_close(bed->t, &side[i]->app);
	for (i = 0; i < 100; i++)
		homad_round(bed->t);
	for (i = 0; i < USERS; i++)
		detach_closed(side[i]);
	bed_done(bed);
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
	struct bed *bed = bed_asking();
	struct side *side = put_off(bed);
	struct homad_thread *other;
	u32 i;

	(void)state;
	assert_int_equal(homad_thread_make(&bed->d, 1), 0);
	bed->d.num_threads = bed->d.num_active = 2;
	other = bed->d.threads[1];
	assert_ptr_equal(homad_session_detach(bed->t, NULL), &side->app);
	assert_int_equal(homad_session_take(other, &side->app), 0);
	homad_commands(bed->t);
	assert_true(homa_list_empty(&bed->t->users));
	assert_ptr_equal(other->others.apps.next, &side->app.polled);
	assert_int_equal(other->num_polled, 1);
	/* What was asked there is known there. */
	assert_int_equal(answer(bed), 1);
	homad_commands(other);
	assert_int_equal(see_to_questions(bed), 1);
	homad_mail(other);
	homad_commands(other);
	assert_int_equal(see_to_questions(bed), 1);
	homad_mail(other);
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
	bed_done(bed);
}

static void put_off__does_not_outlive_the_attachment(void **state)
{
	struct bed *bed = bed_asking();
	struct side *side = put_off(bed);
	u32 i;

	(void)state;
	homad_session_close(bed->t, &side->app);
	assert_null(bed->t->put_off);
	for (i = 0; i < 100; i++)
		homad_round(bed->t);
	detach_closed(side);
	homad_commands(bed->t);
	bed_done(bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dests__others_keep_theirs),
		cmocka_unit_test(dests__shared_ones_stay),
		cmocka_unit_test(dests__believed_for_a_second),
		cmocka_unit_test(dests__no_way_is_not_believed_longer),
		cmocka_unit_test(dests__one_question_for_a_user),
		cmocka_unit_test(dests__questions_of_clients),
		cmocka_unit_test(dests__have_a_cap),
		cmocka_unit_test(commands__others_are_not_held_up),
		cmocka_unit_test(commands__each_user_has_his_turn),
		cmocka_unit_test(put_off__does_not_follow_to_another_thread),
		cmocka_unit_test(put_off__does_not_outlive_the_attachment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
