// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * host/homad/fast/turns.c: users take turns, and of a user his attachments. Rounds are run
 * by hand; commands are aborts of RPCs that there are not, which end where they are read.
 */
#include "service_bed.h"
#include "unit.h"

#define MANY 12u
#define FULL 250u /* entries of a submission ring */

/* ---- users and their programs ---- */

static struct homad_polled *user_new(void)
{
	struct homad_polled *user = calloc(HOMAD_MAX_THREADS, sizeof(*user));
	u32 i;

	for (i = 0; i < HOMAD_MAX_THREADS; i++)
		homad_polled_init(&user[i]);
	return user;
}

static struct side *program(struct bed *bed, struct homad_polled *user)
{
	struct side *side = attach(&bed->d);

	homad_unpoll_app(bed->t, &side->app);
	side->app.user_polled = user;
	return side;
}

static void submit_aborts(struct bed *bed, struct side *side, u32 n)
{
	struct homa_sqe sqe = { .op = HOMA_SQE_ABORT, .token = 1u << 16 };

	while (n--)
		submit(side, &sqe);
	homad_poll_app(bed->t, &side->app);
}

static u32 taken(struct side *const *sides, u32 n)
{
	u32 i, sum = 0;

	for (i = 0; i < n; i++)
		sum += sides[i]->app.sq_head[0];
	return sum;
}

static void end(struct bed *bed, struct side *side)
{
	u32 i;

	homad_session_close(bed->t, &side->app);
	for (i = 0; i < 10 && side->app.phase != HOMAD_APP_DEAD; i++)
		homad_round(bed->t);
	bed->d.dead = NULL;
	detach_closed(side);
}

/* ---- tests ---- */

static void turns__users_share_and_not_their_attachments(void **state)
{
	struct homad_polled *greedy = user_new(), *modest = user_new();
	struct bed *bed = bed_new();
	struct side *his[MANY], *mine;
	u32 i;

	(void)state;
	mine = program(bed, modest);
	for (i = 0; i < MANY; i++)
		submit_aborts(bed, his[i] = program(bed, greedy), FULL);
	submit_aborts(bed, mine, FULL);
	while (mine->app.sq_head[0] < FULL) {
		homad_commands(bed->t);
		/* Neither is ahead by more than a turn. */
		assert_in_range(taken(his, MANY) + HOMAD_TURN,
				mine->app.sq_head[0],
				mine->app.sq_head[0] + 2 * HOMAD_TURN);
	}
	assert_true(bed->t->counters.credit_out > 0);
	/* Each of his attachments has its turn, too. */
	for (i = 0; i < 2 * MANY; i++)
		homad_commands(bed->t);
	for (i = 0; i < MANY; i++)
		assert_true(his[i]->app.sq_head[0] >= HOMAD_TURN);
	for (i = 0; i < MANY; i++)
		end(bed, his[i]);
	end(bed, mine);
	bed_free(bed);
	free(greedy);
	free(modest);
}

/* Who has received much gives back many pages at once; he still has his turn each round. */
static void turns__of_one_who_gives_back_much(void **state)
{
	struct homad_polled *receiver = user_new(), *other = user_new();
	u32 i, n, taken_before, pages[HOMA_MAX_BPAGES];
	struct bed *bed = bed_new();
	struct side *a = program(bed, receiver), *b = program(bed, other);

	(void)state;
	homad_poll_app(bed->t, &b->app);
	for (i = 0; i < 200; i++) {
		assert_int_equal(homa_pages_take(&bed->t->ctx, a->app.sock, 100,
						 pages, &n),
				 0);
		queues_of(a)->released[a->rel_tail++ & (HOMA_SHM_RELEASES - 1)] =
			pages[0];
	}
	a->app.queues->release.tail = a->rel_tail;
	submit_aborts(bed, a, FULL);
	for (i = 0; i < 5; i++) {
		taken_before = a->app.sq_head[0];
		homad_poll_app(bed->t, &b->app);
		homad_commands(bed->t);
		assert_int_equal(a->app.sq_head[0], taken_before + HOMAD_TURN);
		assert_true(receiver[0].credit > -(int)HOMAD_TURN - 1);
	}
	assert_int_equal(a->app.release_head, 200);
	end(bed, a);
	end(bed, b);
	bed_free(bed);
	free(receiver);
	free(other);
}

/* A turn that a program has by asking homad what it does is not besides his user's part. */
static void turns__asked_for_are_not_free(void **state)
{
	struct homad_polled *asker = user_new(), *other = user_new();
	struct bed *bed = bed_new();
	struct side *a = program(bed, asker), *b = program(bed, other);
	u32 i;

	(void)state;
	submit_aborts(bed, a, FULL);
	submit_aborts(bed, b, FULL);
	while (b->app.sq_head[0] < FULL) {
		homad_turn_of(bed->t, &a->app);
		homad_commands(bed->t);
		assert_true(a->app.sq_head[0] <=
			    b->app.sq_head[0] + 2 * HOMAD_TURN);
	}
	for (i = 0; i < 20; i++)
		homad_commands(bed->t);
	assert_int_equal(a->app.sq_head[0], FULL);
	end(bed, a);
	end(bed, b);
	bed_free(bed);
	free(asker);
	free(other);
}

/* However much is in its rings when it asks, and also if another program of the user asks that
 * is not looked at otherwise. */
static void turns__asked_for_are_refused_to_debtors(void **state)
{
	struct homad_polled *asker = user_new(), *other = user_new();
	struct bed *bed = bed_new();
	struct side *his[2] = { program(bed, asker), program(bed, asker) };
	struct side *mine = program(bed, other);
	u32 i;

	(void)state;
	for (i = 0; i < 2; i++)
		submit_aborts(bed, his[i], FULL);
	submit_aborts(bed, mine, FULL);
	homad_unpoll_app(bed->t, &his[1]->app);
	while (mine->app.sq_head[0] < FULL) {
		/* No thread runs here, so all turns that are asked for come in one round. */
		homad_turns_of_rings(&his[1]->app, false);
		homad_turns_of_rings(&his[0]->app, false);
		homad_commands(bed->t);
		assert_true(taken(his, 2) <=
			    mine->app.sq_head[0] + 3 * HOMAD_TURN);
	}
	/* With nobody else there, nothing is refused. */
	homad_unpoll_app(bed->t, &mine->app);
	for (i = 0; i < 2; i++)
		homad_turns_of_rings(&his[i]->app, false);
	assert_int_equal(taken(his, 2), 2 * FULL);
	for (i = 0; i < 2; i++)
		end(bed, his[i]);
	end(bed, mine);
	bed_free(bed);
	free(asker);
	free(other);
}

/* To end all RPCs walks through all of an attachment's slots, so it costs a whole turn. */
static void turns__to_end_all_costs_a_turn(void **state)
{
	struct homad_polled *greedy = user_new(), *modest = user_new();
	const struct homa_sqe all = { .op = HOMA_SQE_ABORT };
	struct bed *bed = bed_new();
	struct side *his[MANY], *mine = program(bed, modest);
	u32 i, n;

	(void)state;
	for (i = 0; i < MANY; i++) {
		his[i] = program(bed, greedy);
		for (n = 0; n < FULL; n++)
			submit(his[i], &all);
		homad_poll_app(bed->t, &his[i]->app);
	}
	submit_aborts(bed, mine, FULL);
	while (mine->app.sq_head[0] < FULL) {
		homad_commands(bed->t);
		assert_true(taken(his, MANY) <=
			    mine->app.sq_head[0] / HOMAD_TURN + 2);
	}
	for (i = 0; i < MANY; i++)
		end(bed, his[i]);
	end(bed, mine);
	bed_free(bed);
	free(greedy);
	free(modest);
}

/* Homad may copy messages of up to 16 KiB itself, so they take more of a turn. */
static void turns__copied_bytes_count(void **state)
{
	struct homad_polled *user = user_new();
	struct bed *bed = bed_new();
	struct side *a = program(bed, user);
	/* The slot is empty, as if the client had given up, so nothing is sent. */
	struct homa_sqe reply = {
		.op = HOMA_SQE_REPLY,
		.token = 1u << 16,
		.offset = HOMA_SHM_SQS * HOMA_SHM_STAGE,
		.length = HOMAD_DIRECT_MAX,
	};
	u32 i;

	(void)state;
	for (i = 0; i < 8; i++)
		submit(a, &reply);
	/* 128 KiB are half of the bytes of a turn, 8 commands a quarter of its commands. */
	assert_int_equal(homad_look_at_rings(bed->t, &a->app), HOMAD_TURN / 2);
	assert_int_equal(a->app.sq_head[0], 8);
	/* Longer ones are sent from where they lie. */
	reply.length++;
	submit(a, &reply);
	assert_int_equal(homad_look_at_rings(bed->t, &a->app), 1);
	end(bed, a);
	bed_free(bed);
	free(user);
}

/* For a user who has as many peers as he may the engine searches for an idle one, which takes as
 * long as several commands. */
static void turns__a_search_for_room_counts(void **state)
{
	enum { PEERS = 48 };
	struct homa_owner owner = { .max_peers = PEERS };
	struct homad_polled *user = user_new();
	struct bed *bed = bed_new();
	struct side *a = program(bed, user);
	struct homa_sqe sqe = request_to(a, 0, 100);
	u32 i;

	(void)state;
	homa_sock_charge(a->app.sock, &owner);
	for (i = 0; i <= PEERS; i++) {
		struct homa_addr to = number(1000 + i);

		memcpy(sqe.ip, to.ip, sizeof(sqe.ip));
		sqe.token = 1u << 16 | i;
		submit(a, &sqe);
		/* 48 peers that are in use are looked at as fast as three commands are done. */
		assert_int_equal(homad_look_at_rings(bed->t, &a->app),
				 i < PEERS ? 1 : 4);
	}
	assert_int_equal(owner.peers, PEERS);
	assert_int_equal(owner.peers_refused, 1);
	end(bed, a);
	bed_free(bed);
	free(user);
}

static void turns__who_is_alone_is_not_limited(void **state)
{
	struct homad_polled *user = user_new();
	struct bed *bed = bed_new();
	struct side *his[5];
	u32 i;

	(void)state;
	for (i = 0; i < 5; i++)
		submit_aborts(bed, his[i] = program(bed, user), FULL);
	assert_int_equal(homad_commands(bed->t), 5 * HOMAD_TURN);
	assert_int_equal(bed->t->counters.credit_out, 0);
	for (i = 0; i < 5; i++)
		end(bed, his[i]);
	bed_free(bed);
	free(user);
}

/* What a user did not use in quiet times is not his in busy ones. */
static void turns__nothing_is_saved_up(void **state)
{
	struct homad_polled *early = user_new(), *late = user_new();
	struct bed *bed = bed_new();
	struct side *a = program(bed, early), *b = program(bed, late);
	u32 i;

	(void)state;
	for (i = 0; i < 100; i++) {
		submit_aborts(bed, a, 1);
		submit_aborts(bed, b, 1);
		homad_commands(bed->t);
	}
	assert_int_equal(early[0].credit, 0);
	assert_int_equal(late[0].credit, 0);
	end(bed, a);
	end(bed, b);
	bed_free(bed);
	free(early);
	free(late);
}

static void turns__an_evicted_attachment_was_its_users_only_one(void **state)
{
	struct homad_polled *wrong = user_new(), *right = user_new();
	struct homa_sqe nonsense = { .op = 77 };
	struct bed *bed = bed_new();
	struct side *a = program(bed, wrong), *b = program(bed, right);
	u32 i;

	(void)state;
	submit(a, &nonsense);
	homad_poll_app(bed->t, &a->app);
	submit_aborts(bed, b, 10);
	for (i = 0; i < 10; i++)
		homad_round(bed->t);
	assert_true(a->app.evicted);
	assert_int_equal(wrong[0].num, 0);
	assert_int_equal(bed->t->num_users, right[0].num ? 1 : 0);
	assert_int_equal(b->app.sq_head[0], 10);
	end(bed, a);
	end(bed, b);
	bed_free(bed);
	free(wrong);
	free(right);
}

/* Users and programs at random: all that was submitted is taken, in a bounded time. */
static void turns__nobody_is_forgotten(void **state)
{
	enum { USERS = 7, SIDES = 30 };
	struct homad_polled *user[USERS];
	struct side *side[SIDES];
	struct bed *bed = bed_new();
	u64 seed = unit_seed();
	u32 i, n, round, sent = 0;
	struct homa_rng rng;

	(void)state;
	homa_rng_init(&rng, seed);
	for (i = 0; i < USERS; i++)
		user[i] = user_new();
	for (i = 0; i < SIDES; i++)
		side[i] = program(bed, user[homa_rng_next(&rng) % USERS]);
	for (round = 0; round < 300; round++) {
		for (i = 0; i < SIDES; i++) {
			n = (u32)(homa_rng_next(&rng) % 3);
			if (side[i]->sq_tail - side[i]->app.sq_head[0] + n > FULL)
				continue;
			submit_aborts(bed, side[i], n);
			sent += n;
		}
		if (homa_rng_next(&rng) % 8 == 0)
			homad_unpoll_app(bed->t,
					 &side[homa_rng_next(&rng) % SIDES]->app);
		homad_commands(bed->t);
	}
	for (i = 0; i < SIDES; i++)
		homad_poll_app(bed->t, &side[i]->app);
	/* A user has a turn each second round at worst, and 7,500 entries at most. */
	for (round = 0; round < 1000 && taken(side, SIDES) < sent; round++)
		homad_commands(bed->t);
	assert_int_equal(taken(side, SIDES), sent);
	for (i = 0; i < SIDES; i++)
		end(bed, side[i]);
	for (i = 0; i < USERS; i++)
		free(user[i]);
	bed_free(bed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns__users_share_and_not_their_attachments),
		cmocka_unit_test(turns__of_one_who_gives_back_much),
		cmocka_unit_test(turns__asked_for_are_not_free),
		cmocka_unit_test(turns__asked_for_are_refused_to_debtors),
		cmocka_unit_test(turns__to_end_all_costs_a_turn),
		cmocka_unit_test(turns__copied_bytes_count),
		cmocka_unit_test(turns__a_search_for_room_counts),
		cmocka_unit_test(turns__who_is_alone_is_not_limited),
		cmocka_unit_test(turns__nothing_is_saved_up),
		cmocka_unit_test(
			turns__an_evicted_attachment_was_its_users_only_one),
		cmocka_unit_test(turns__nobody_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
