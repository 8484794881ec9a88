// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * homad with two fast-path threads: applications at home on either, messages
 * between them, and threads that come and go, or pause, meanwhile.
 */
#include "service_world.h"

#define RPCS_EACH 300u

/* ---- applications in threads of their own ---- */

struct actor {
	struct side *side;
	struct side *server;
	pthread_t thread;
	u32 wrong;
};

static void *serve(void *arg)
{
	struct actor *a = arg;
	u32 i;

	for (i = 0; i < RPCS_EACH; i++) {
		struct homa_cqe cqe = receive(a->side);
		struct homa_sqe sqe = { .op = HOMA_SQE_REPLY,
					.flags = HOMA_SQE_COPY,
					.length = 4,
					.token = cqe.token };

		if (cqe.kind != HOMA_CQE_REQUEST)
			a->wrong++;
		memcpy(a->side->app.seg[0].base,
		       a->side->app.pool + cqe.pages[0], 4);
		release(a->side, &cqe);
		submit(a->side, &sqe);
		/* The reply is staged at one place: wait until it was copied. */
		while (__atomic_load_n(&a->side->app.queues->sq[0].head,
				       __ATOMIC_ACQUIRE) != a->side->sq_tail)
			sched_yield();
	}
	return NULL;
}

static void *call(void *arg)
{
	struct actor *a = arg;
	u32 i, got;

	for (i = 0; i < RPCS_EACH; i++) {
		u32 length = i % 10 ? 4 : 200000;
		struct homa_sqe sqe =
			request_to(a->server, (u64)(i + 1) << 16, length);
		struct homa_cqe cqe;

		memcpy(a->side->app.seg[0].base, &i, 4);
		submit(a->side, &sqe);
		do
			cqe = receive(a->side);
		while (cqe.kind == HOMA_CQE_FREE);
		memcpy(&got, a->side->app.pool + cqe.pages[0], 4);
		if (cqe.kind != HOMA_CQE_RESPONSE || got != i) {
			print_message("RPC %u: kind %u, error %u, answer %u\n",
				      i, cqe.kind, cqe.error, got);
			a->wrong++;
		}
		release(a->side, &cqe);
	}
	return NULL;
}

/* ---- two pairs of them, one pair on one thread and one on both ---- */

struct traffic {
	struct homad *d;
	struct actor actors[4];
};

static struct traffic *traffic_start(void)
{
	struct traffic *tr = calloc(1, sizeof(*tr));
	struct actor *actors = tr->actors;
	u32 i;

	tr->d = daemon_new(2);
	for (i = 0; i < 4; i++)
		actors[i].side = attach(tr->d);
	/* Homes alternate. */
	assert_ptr_not_equal(actors[0].side->app.thread,
			     actors[1].side->app.thread);
	bind_to(actors[0].side, 90);
	bind_to(actors[1].side, 91);
	actors[2].server = actors[0].side;
	actors[3].server = actors[1].side;
	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&actors[i].thread, NULL,
						i < 2 ? serve : call, &actors[i]),
				 0);
	return tr;
}

static void traffic_end(struct traffic *tr)
{
	u32 i;

	for (i = 0; i < 4; i++) {
		pthread_join(tr->actors[i].thread, NULL);
		assert_int_equal(tr->actors[i].wrong, 0);
	}
	for (i = 0; i < 4; i++)
		detach(tr->actors[i].side);
	daemon_free(tr->d);
	free(tr);
}

static void service__threads_come_and_go_under_traffic(void **state)
{
	struct traffic *tr = traffic_start();
	u32 i;

	(void)state;
	for (i = 0; i < 20; i++) {
		homad_scale_to(tr->d, i % 2 ? 2 : 1);
		usleep(5000);
	}
	traffic_end(tr);
}

/* Their RPCs end on one thread while the other has events of them. */
static void service__attachments_end_with_requests_open(void **state)
{
	struct traffic *tr = traffic_start();
	struct side *keepers[2];
	u32 i, n;

	(void)state;
	for (i = 0; i < 2; i++) {
		keepers[i] = attach(tr->d);
		bind_to(keepers[i], (u16)(95 + i));
	}
	for (i = 0; i < 200; i++) {
		struct side *client = attach(tr->d);

		for (n = 0; n < 8; n++) {
			struct homa_sqe sqe = request_to(keepers[n % 2],
							 (u64)(i + 1) << 16 | n,
							 n % 4 ? 100 : 20000);

			submit(client, &sqe);
		}
		detach(client);
	}
	for (i = 0; i < 2; i++)
		detach(keepers[i]);
	traffic_end(tr);
}

/* ---- pauses ---- */

struct change {
	struct homa_params params;
	u32 moved; /* rounds that others began meanwhile */
};

static int change_alone(struct homad_thread *t, void *arg)
{
	struct change *change = arg;
	u64 rounds[2];
	u32 i, look;

	for (i = 0; i < 2; i++)
		rounds[i] = HOMA_READ_ONCE(t->d->threads[i]->counters.rounds);
	for (look = 0; look < 100; look++) {
		for (i = 0; i < 2; i++)
			if (HOMA_READ_ONCE(t->d->threads[i]->counters.rounds) !=
			    rounds[i])
				change->moved++;
		sched_yield();
	}
	return homad_set_params(t, &change->params);
}

static void service__settings_change_under_traffic(void **state)
{
	struct traffic *tr = traffic_start();
	struct change change = { .params = tr->d->config.params };
	u32 i;

	(void)state;
	for (i = 0; i < 60; i++) {
		change.params.unsched_bytes = i % 2 ? 10000 : 60000;
		change.params.max_overcommit = 1 + i % 8;
		if (i % 5 == 0)
			homad_scale_to(tr->d, i % 2 ? 2 : 1);
		assert_int_equal(homad_call_alone(tr->d, change_alone, &change),
				 0);
		assert_int_equal(change.moved, 0);
		assert_int_equal(homa_engine_params(tr->d->engine)->max_overcommit,
				 1 + i % 8);
	}
	change.params.unsched_bytes = 0;
	change.params.max_overcommit = 0;
	assert_int_equal(homad_call_alone(tr->d, change_alone, &change), -EINVAL);
	assert_int_equal(homa_engine_params(tr->d->engine)->max_overcommit,
			 1 + 59 % 8);
	traffic_end(tr);
}

/* A thread that rests sleeps without end. */
static void service__a_thread_that_sleeps_takes_part_in_a_pause(void **state)
{
	struct homad *d = daemon_new(2);
	struct change change = { .params = d->config.params };
	u32 i;

	(void)state;
	homad_scale_to(d, 1);
	for (i = 0; i < 20; i++) {
		while (!HOMA_READ_ONCE(d->threads[1]->asleep))
			sched_yield();
		assert_int_equal(homad_call_alone(d, change_alone, &change), 0);
		assert_int_equal(change.moved, 0);
	}
	daemon_free(d);
}

struct held {
	struct homad *d;
	struct homad_job job;
	struct change change;
	u32 holds, let_go, changed;
};

/* A thread whose core somebody else has. */
static int hold(struct homad_thread *t, void *arg)
{
	struct held *held = arg;

	(void)t;
	__atomic_store_n(&held->holds, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&held->let_go, __ATOMIC_ACQUIRE))
		sched_yield();
	return 0;
}

static int jobs_done(struct homad_thread *t, void *arg)
{
	(void)arg;
	return (int)t->counters.jobs;
}

static void *change_it(void *arg)
{
	struct held *held = arg;

	assert_int_equal(homad_call_alone(held->d, change_alone, &held->change),
			 0);
	__atomic_store_n(&held->changed, 1, __ATOMIC_RELEASE);
	return NULL;
}

static void
service__who_comes_late_to_a_pause_does_not_hold_up_the_others(void **state)
{
	struct homad *d = daemon_new(2);
	struct held held = { .d = d, .change.params = d->config.params };
	pthread_t slow;
	int before, own = 0;

	(void)state;
	held.job.run = hold;
	held.job.arg = &held;
	homad_post(d->threads[1], &held.job);
	while (!__atomic_load_n(&held.holds, __ATOMIC_ACQUIRE))
		sched_yield();
	before = homad_call(d->threads[0], jobs_done, NULL);
	assert_int_equal(pthread_create(&slow, NULL, change_it, &held), 0);
	/* The other one was asked to wait, and goes on with its rounds. */
	do
		own++;
	while (homad_call(d->threads[0], jobs_done, NULL) - before <= own);
	for (own = 0; own < 100; own++)
		homad_call(d->threads[0], jobs_done, NULL);
	assert_false(__atomic_load_n(&held.changed, __ATOMIC_ACQUIRE));
	__atomic_store_n(&held.let_go, 1, __ATOMIC_RELEASE);
	pthread_join(slow, NULL);
	assert_int_equal(held.change.moved, 0);
	daemon_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(service__threads_come_and_go_under_traffic),
		cmocka_unit_test(service__attachments_end_with_requests_open),
		cmocka_unit_test(service__settings_change_under_traffic),
		cmocka_unit_test(
			service__a_thread_that_sleeps_takes_part_in_a_pause),
		cmocka_unit_test(
			service__who_comes_late_to_a_pause_does_not_hold_up_the_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
