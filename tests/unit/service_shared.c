// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * homad's fast path: several attachments of one user that share a port. Who got how many
 * requests is counted in their completion rings; nothing depends on time.
 */
#include "service_world.h"

#define WORKERS 4u
#define SHARED_PORT 99

struct team {
	struct homad *d;
	struct homa_owner owner, other;
	struct side *client;
	struct side *worker[WORKERS];
	u32 sent;
};

static int listen_on(struct side *s, u32 flags)
{
	struct homad_listen listen = { &s->app, SHARED_PORT, flags };

	return homad_call(s->app.thread, homad_session_listen, &listen);
}

static int share(struct side *s)
{
	return listen_on(s, HOMA_CTL_LISTEN_ON | HOMA_CTL_LISTEN_SHARED);
}

static int set_owner(struct homad_thread *t, void *arg)
{
	struct homad_app *app = arg;

	(void)t;
	homa_sock_charge(app->sock, app->owner);
	return 0;
}

/* As homad's slow path makes it: on a user's account. */
static struct side *attach_as(struct homad *d, struct homa_owner *owner)
{
	struct side *s = attach(d);

	s->app.owner = owner;
	homad_call(s->app.thread, set_owner, &s->app);
	return s;
}

static struct team *team_new(u32 threads)
{
	struct team *team = calloc(1, sizeof(*team));
	u32 i;

	team->d = daemon_new(threads);
	team->client = attach_as(team->d, &team->owner);
	for (i = 0; i < WORKERS; i++) {
		team->worker[i] = attach_as(team->d, &team->owner);
		assert_int_equal(share(team->worker[i]), 0);
	}
	return team;
}

static void dismiss(struct team *team, u32 i)
{
	detach(team->worker[i]);
	team->worker[i] = NULL;
}

static void team_free(struct team *team)
{
	u32 i;

	for (i = 0; i < WORKERS; i++)
		if (team->worker[i])
			detach(team->worker[i]);
	detach(team->client);
	daemon_free(team->d);
	free(team);
}

/* Completions that wait for it. */
static u32 waiting(const struct side *s)
{
	return s ? __atomic_load_n(&s->app.queues->cq.tail, __ATOMIC_ACQUIRE) -
			       s->cq_head :
		   0;
}

static u32 waiting_in_all(const struct team *team)
{
	u32 i, n = 0;

	for (i = 0; i < WORKERS; i++)
		n += waiting(team->worker[i]);
	return n;
}

static void send_one(struct team *team)
{
	struct homa_sqe sqe;

	sqe = request_to(team->client,
			 (u64)(team->sent + 1) << 16 | (team->sent % RPCS), 100);
	sqe.port = SHARED_PORT;
	team->sent++;
	submit(team->client, &sqe);
}

static void answer(struct side *s)
{
	struct homa_cqe cqe = receive(s);
	struct homa_sqe sqe = { .op = HOMA_SQE_REPLY,
				.flags = HOMA_SQE_COPY,
				.length = 10,
				.token = cqe.token };

	assert_int_equal(cqe.kind, HOMA_CQE_REQUEST);
	release(s, &cqe);
	submit(s, &sqe);
}

static void take_response(struct team *team)
{
	struct homa_cqe cqe = receive(team->client);

	assert_int_equal(cqe.kind, HOMA_CQE_RESPONSE);
	release(team->client, &cqe);
}

/* The worker that has the only request. */
static u32 who(const struct team *team)
{
	u32 i;

	while (!waiting_in_all(team))
		sched_yield();
	for (i = 0; !waiting(team->worker[i]); i++)
		;
	return i;
}

static void shared__what_waits_is_shared_evenly(void **state)
{
	struct team *team = team_new(1);
	u32 i, n;

	(void)state;
	for (n = 0; n < 10 * WORKERS; n++)
		send_one(team);
	while (waiting_in_all(team) < n)
		sched_yield();
	for (i = 0; i < WORKERS; i++)
		assert_int_equal(waiting(team->worker[i]), 10);
	for (n = 0; n < 10 * WORKERS; n++) {
		answer(team->worker[n / 10]);
		take_response(team);
	}
	team_free(team);
}

static void shared__who_answers_at_once_takes_turns(void **state)
{
	struct team *team = team_new(1);
	u32 i, n, got[WORKERS] = { 0 };

	(void)state;
	for (n = 0; n < 10 * WORKERS; n++) {
		send_one(team);
		i = who(team);
		got[i]++;
		answer(team->worker[i]);
		take_response(team);
	}
	for (i = 0; i < WORKERS; i++)
		assert_int_equal(got[i], 10);
	team_free(team);
}

static void shared__who_stands_still_gets_no_more(void **state)
{
	struct team *team = team_new(1);
	struct side *stuck = team->worker[1];
	u32 n, i, kept;

	(void)state;
	/* It keeps the first that it gets, and all others are answered. */
	for (n = 0; n < 50; n++) {
		kept = waiting(stuck);
		send_one(team);
		while (waiting_in_all(team) == kept)
			sched_yield();
		for (i = 0; i < WORKERS; i++) {
			if (team->worker[i] != stuck && waiting(team->worker[i])) {
				answer(team->worker[i]);
				take_response(team);
			}
		}
	}
	assert_int_equal(waiting(stuck), 1);
	answer(stuck);
	take_response(team);
	team_free(team);
}

static void shared__the_others_go_on(void **state)
{
	struct team *team = team_new(1);
	u32 gone, i, n, got[WORKERS] = { 0 };
	struct homa_cqe cqe;

	(void)state;
	/* One after another ends, the first of the port among them, with a request in hand. */
	for (gone = 0; gone + 1 < WORKERS; gone++) {
		if (!world_through_the_engine) {
			send_one(team);
			i = who(team);
		} else {
			/* Its client would wait until it gives up. */
			i = gone;
		}
		dismiss(team, i);
		if (!world_through_the_engine) {
			cqe = receive(team->client);
			assert_int_equal(cqe.kind, HOMA_CQE_FAILED);
			assert_int_equal(cqe.error, ENOTCONN);
		}
		memset(got, 0, sizeof(got));
		for (n = 0; n < 5 * (WORKERS - 1 - gone); n++) {
			send_one(team);
			i = who(team);
			got[i]++;
			answer(team->worker[i]);
			take_response(team);
		}
		for (i = 0; i < WORKERS; i++)
			assert_int_equal(got[i], team->worker[i] ? 5 : 0);
	}
	team_free(team);
}

/* What its application has not taken goes to another one: it cannot have run. */
static void shared__what_nobody_took_goes_on_to_others(void **state)
{
	struct team *team = team_new(1);
	u32 i, n, most = RPCS - 4;
	struct homa_shm_queues *q = queues_of(team->worker[0]);

	(void)state;
	for (i = 1; i < WORKERS; i++)
		dismiss(team, i);
	/* By the short way everything that comes is taken. */
	if (!world_through_the_engine) {
		team_free(team);
		return;
	}
	/* Its completion ring is full: the requests wait in homad. */
	__atomic_store_n(&q->h.cq.head, 0u - HOMA_SHM_CQ_ENTRIES,
			 __ATOMIC_RELEASE);
	for (n = 0; n < most; n++)
		send_one(team);
	while (!(__atomic_load_n(&q->h.need_kick, __ATOMIC_ACQUIRE) &
		 HOMA_SHM_KICK_CONSUME))
		sched_yield();
	assert_int_equal(waiting(team->worker[0]), 0);
	team->worker[1] = attach_as(team->d, &team->owner);
	assert_int_equal(share(team->worker[1]), 0);
	dismiss(team, 0);
	for (n = 0; n < most; n++) {
		answer(team->worker[1]);
		take_response(team);
	}
	team_free(team);
}

static void shared__only_with_whom_it_may(void **state)
{
	struct team *team = team_new(1);
	struct side *stranger = attach_as(team->d, &team->other);
	struct side *nobodys = attach(team->d), *mate;
	u32 i;

	(void)state;
	assert_int_equal(share(stranger), -EADDRINUSE);
	assert_int_equal(share(nobodys), -EADDRINUSE);
	mate = attach_as(team->d, &team->owner);
	assert_int_equal(listen_on(mate, HOMA_CTL_LISTEN_ON), -EADDRINUSE);
	/* Who shares cannot have it alone either, as long as there are others. */
	assert_int_equal(listen_on(team->worker[0], HOMA_CTL_LISTEN_ON),
			 -EADDRINUSE);
	assert_int_equal(share(team->worker[0]), 0);
	for (i = 0; i + 1 < WORKERS; i++)
		dismiss(team, i);
	assert_int_equal(listen_on(team->worker[i], HOMA_CTL_LISTEN_ON), 0);
	assert_int_equal(share(mate), -EADDRINUSE);
	assert_int_equal(share(team->worker[i]), 0);
	assert_int_equal(share(mate), 0);
	dismiss(team, i);
	assert_int_equal(share(stranger), -EADDRINUSE);
	detach(mate);
	assert_int_equal(share(stranger), 0);
	detach(stranger);
	detach(nobodys);
	team_free(team);
}

static void shared__who_shuts_down_or_listens_no_more_gets_nothing(void **state)
{
	struct team *team = team_new(1);
	u32 i, n, got[WORKERS] = { 0 };

	(void)state;
	assert_int_equal(homad_call(team->worker[0]->app.thread,
				    homad_session_shutdown, &team->worker[0]->app),
			 0);
	assert_int_equal(listen_on(team->worker[2], HOMA_CTL_LISTEN_SHARED), 0);
	for (n = 0; n < 10; n++) {
		send_one(team);
		i = who(team);
		got[i]++;
		answer(team->worker[i]);
		take_response(team);
	}
	assert_int_equal(got[1], 5);
	assert_int_equal(got[3], 5);
	team_free(team);
}

/* A request that another thread takes at this moment may be counted twice or not at all. */
static void shared__with_two_threads(void **state)
{
	struct team *team = team_new(2);
	u32 i, n, round;

	(void)state;
	for (round = 0; round < 4; round++) {
		for (n = 0; n < 10 * WORKERS; n++)
			send_one(team);
		while (waiting_in_all(team) < n)
			sched_yield();
		for (i = 0; i < WORKERS; i++) {
			assert_in_range(waiting(team->worker[i]), 5, 15);
			while (waiting(team->worker[i])) {
				answer(team->worker[i]);
				take_response(team);
			}
		}
	}
	team_free(team);
}

static int both_ways(const struct CMUnitTest *tests, size_t n)
{
	int failed;

	failed = _cmocka_run_group_tests("the short way", tests, n, NULL, NULL);
	world_through_the_engine = true;
	return failed + _cmocka_run_group_tests("through the engine", tests, n,
						NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shared__what_waits_is_shared_evenly),
		cmocka_unit_test(shared__who_answers_at_once_takes_turns),
		cmocka_unit_test(shared__who_stands_still_gets_no_more),
		cmocka_unit_test(shared__the_others_go_on),
		cmocka_unit_test(shared__what_nobody_took_goes_on_to_others),
		cmocka_unit_test(shared__only_with_whom_it_may),
		cmocka_unit_test(
			shared__who_shuts_down_or_listens_no_more_gets_nothing),
		cmocka_unit_test(shared__with_two_threads),
	};

	return both_ways(tests, sizeof(tests) / sizeof(*tests));
}
