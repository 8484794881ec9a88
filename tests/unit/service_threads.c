// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * homad with two fast-path threads: applications at home on either, messages
 * between them, and threads that come and go meanwhile.
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

static void service__threads_come_and_go_under_traffic(void **state)
{
	struct homad *d = daemon_new(2);
	struct actor actors[4] = { 0 };
	u32 i;

	(void)state;
	for (i = 0; i < 4; i++)
		actors[i].side = attach(d);
	/* Homes alternate: one pair shares a thread, the other does not. */
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
	for (i = 0; i < 20; i++) {
		homad_scale_to(d, i % 2 ? 2 : 1);
		usleep(5000);
	}
	for (i = 0; i < 4; i++) {
		pthread_join(actors[i].thread, NULL);
		assert_int_equal(actors[i].wrong, 0);
	}
	for (i = 0; i < 4; i++)
		detach(actors[i].side);
	daemon_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(service__threads_come_and_go_under_traffic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
