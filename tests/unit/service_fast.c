// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * homad's fast path: what applications put into their rings, and what comes back,
 * between two of them on the same host.
 */
#include "service_world.h"

static void service__a_short_request_is_answered_on_the_same_host(void **state)
{
	struct homad *d = daemon_new(world_threads);
	struct side *client = attach(d), *server = attach(d);
	struct homa_sqe sqe;
	struct homa_cqe cqe;
	u32 i;

	(void)state;
	bind_to(server, 99);
	for (i = 0; i < 1000; i++) {
		memset(client->app.seg[0].base, (int)i, 100);
		sqe = request_to(server, (u64)(i + 1) << 16 | (i % RPCS), 100);
		submit(client, &sqe);
		cqe = receive(server);
		assert_int_equal(cqe.kind, HOMA_CQE_REQUEST);
		assert_int_equal(cqe.length, 100);
		assert_int_equal(cqe.num_pages, 1);
		assert_int_equal(server->app.pool[cqe.pages[0] + 99], (u8)i);
		release(server, &cqe);
		memset(server->app.seg[0].base, (int)i + 1, 50);
		sqe = (struct homa_sqe){ .op = HOMA_SQE_REPLY,
					 .flags = HOMA_SQE_COPY,
					 .length = 50,
					 .token = cqe.token };
		submit(server, &sqe);
		cqe = receive(client);
		assert_int_equal(cqe.kind, HOMA_CQE_RESPONSE);
		assert_int_equal(cqe.length, 50);
		assert_int_equal(cqe.token, (u64)(i + 1) << 16 | (i % RPCS));
		assert_int_equal(cqe.cookie, cqe.token * 3);
		assert_int_equal(client->app.pool[cqe.pages[0] + 49],
				 (u8)(i + 1));
		release(client, &cqe);
	}
	assert_int_equal(direct_rpcs(d), world_through_the_engine ? 0 : 1000);
	detach(client);
	detach(server);
	daemon_free(d);
}

static void service__a_long_message_is_lent_and_given_back(void **state)
{
	struct homad *d = daemon_new(world_threads);
	struct side *client = attach(d), *server = attach(d);
	struct homa_sqe sqe = request_to(server, 1 << 16, 1000000);
	struct homa_cqe cqe;
	bool freed = false, answered = false;
	u32 i;

	(void)state;
	bind_to(server, 99);
	for (i = 0; i < 1000000; i++)
		client->app.seg[0].base[64 + i] = (u8)(i * 7 + i / 1000);
	sqe.port = 99;
	sqe.offset = 64;
	submit(client, &sqe);
	cqe = receive(server);
	assert_int_equal(cqe.length, 1000000);
	assert_int_equal(cqe.num_pages, 16);
	for (i = 0; i < 1000000; i++)
		assert_int_equal(server->app.pool[cqe.pages[i >> 16] + (i & 0xffff)],
				 (u8)(i * 7 + i / 1000));
	release(server, &cqe);
	sqe = (struct homa_sqe){ .op = HOMA_SQE_REPLY,
				 .flags = HOMA_SQE_COPY,
				 .length = 1,
				 .token = cqe.token };
	submit(server, &sqe);
	while (!freed || !answered) {
		cqe = receive(client);
		if (cqe.kind == HOMA_CQE_FREE) {
			assert_int_equal(cqe.length, 64);
			assert_int_equal(cqe.num_pages, 0);
			freed = true;
		} else {
			assert_int_equal(cqe.kind, HOMA_CQE_RESPONSE);
			answered = true;
		}
	}
	detach(client);
	detach(server);
	daemon_free(d);
}

static void service__a_request_to_nobody_fails(void **state)
{
	struct homad *d = daemon_new(world_threads);
	struct side *client = attach(d);
	struct homa_sqe sqe = request_to(client, 1 << 16, 10);
	struct homa_cqe cqe;

	(void)state;
	sqe.port = 7;
	submit(client, &sqe);
	cqe = receive(client);
	assert_int_equal(cqe.kind, HOMA_CQE_FAILED);
	assert_int_equal(cqe.error, ENOTCONN);
	detach(client);
	daemon_free(d);
}

static void service__an_abort_ends_the_token_with_or_without_a_failure(void **state)
{
	struct homad *d = daemon_new(world_threads);
	struct side *client = attach(d), *server = attach(d);
	struct homa_sqe sqe;
	struct homa_cqe cqe;

	(void)state;
	bind_to(server, 99);
	sqe = request_to(server, 1 << 16, 10);
	submit(client, &sqe);
	receive(server);
	sqe = (struct homa_sqe){ .op = HOMA_SQE_ABORT, .token = 1 << 16 };
	submit(client, &sqe);
	cqe = receive(client);
	assert_int_equal(cqe.kind, HOMA_CQE_GONE);
	sqe = request_to(server, 2 << 16, 10);
	submit(client, &sqe);
	receive(server);
	sqe = (struct homa_sqe){ .op = HOMA_SQE_ABORT, .length = EINTR };
	submit(client, &sqe);
	cqe = receive(client);
	assert_int_equal(cqe.kind, HOMA_CQE_FAILED);
	assert_int_equal(cqe.error, EINTR);
	assert_int_equal(cqe.token, 2 << 16);
	detach(client);
	detach(server);
	daemon_free(d);
}

static void expect_eviction(struct side *s)
{
	while (__atomic_load_n(&s->app.queues->state, __ATOMIC_ACQUIRE) !=
	       HOMA_SHM_EVICTED)
		sched_yield();
}

static void service__who_breaks_the_rules_is_evicted(void **state)
{
	struct homad *d = daemon_new(world_threads);
	u32 i;

	(void)state;
	for (i = 0; i < 9; i++) {
		struct side *s = attach(d);
		struct homa_sqe sqe = request_to(s, 1 << 16, 100);
		struct homa_shm_header *h = s->app.queues;

		switch (i) {
		case 0:
			sqe.length = 0;
			break;
		case 1:
			sqe.offset = DATA - 99;
			break;
		case 2:
			sqe.segment = 65535;
			break;
		case 3:
			sqe.token = RPCS;
			break;
		case 4:
			sqe.op = 77;
			break;
		case 5:
			sqe.length = 1000001;
			break;
		case 6:
			s->sq_tail += 1000;
			__atomic_store_n(&h->sq[0].tail, s->sq_tail,
					 __ATOMIC_RELEASE);
			break;
		case 7:
			queues_of(s)->released[s->rel_tail++] = 12345;
			__atomic_store_n(&h->release.tail, s->rel_tail,
					 __ATOMIC_RELEASE);
			break;
		case 8:
			__atomic_store_n(&h->cq.head, 5, __ATOMIC_RELEASE);
			break;
		}
		submit(s, &sqe);
		expect_eviction(s);
		while (!__atomic_load_n(&d->dead, __ATOMIC_ACQUIRE))
			sched_yield();
		detach(s);
	}
	daemon_free(d);
}

static void reply_with(struct side *server, u64 token, u32 length)
{
	struct homa_sqe sqe = { .op = HOMA_SQE_REPLY,
				.flags = length <= HOMA_SHM_COPY_MAX ?
						 HOMA_SQE_COPY :
						 0,
				.length = length,
				.token = token };

	submit(server, &sqe);
}

/* The next completion that is not about bytes given back. */
static struct homa_cqe message(struct side *s)
{
	struct homa_cqe cqe;

	do
		cqe = receive(s);
	while (cqe.kind == HOMA_CQE_FREE);
	return cqe;
}

static void service__responses_wait_for_the_clients_pages(void **state)
{
	struct homad *d = daemon_new(world_threads);
	struct side *client = attach(d), *server = attach(d);
	struct homa_cqe got[6], cqe;
	struct homa_sqe sqe;
	u32 i;

	(void)state;
	bind_to(server, 99);
	for (i = 0; i < 6; i++) {
		sqe = request_to(server, (u64)(i + 1) << 16 | i, 100);
		submit(client, &sqe);
		cqe = message(server);
		release(server, &cqe);
		reply_with(server, cqe.token, 1000000);
	}
	/* Four of them fill the pool of 4 MiB; then pages come back one by one. */
	for (i = 0; i < 4; i++)
		got[i] = message(client);
	for (; i < 6; i++) {
		release(client, &got[i - 4]);
		got[i] = message(client);
		assert_int_equal(got[i].kind, HOMA_CQE_RESPONSE);
		assert_int_equal(got[i].length, 1000000);
	}
	detach(client);
	detach(server);
	daemon_free(d);
}

static void service__the_end_of_one_side_is_the_end_for_the_other(void **state)
{
	struct homad *d = daemon_new(world_threads);
	struct side *client = attach(d), *server = attach(d);
	struct homa_sqe sqe;
	struct homa_cqe cqe;

	(void)state;
	bind_to(server, 99);
	sqe = request_to(server, 1 << 16, 100);
	submit(client, &sqe);
	cqe = message(server);
	detach(client);
	reply_with(server, cqe.token, 100);
	/* It goes on with others. */
	client = attach(d);
	sqe = request_to(server, 1 << 16, 100);
	submit(client, &sqe);
	message(server);
	detach(server);
	cqe = message(client);
	assert_int_equal(cqe.kind, HOMA_CQE_FAILED);
	assert_int_equal(cqe.error, ENOTCONN);
	detach(client);
	daemon_free(d);
}

static void service__a_waiting_response_ends_with_either_side(void **state)
{
	struct homad *d = daemon_new(world_threads);
	u32 way, i;

	(void)state;
	for (way = 0; way < 3; way++) {
		struct side *client = attach(d), *server = attach(d);
		struct homa_sqe sqe;
		struct homa_cqe cqe;

		bind_to(server, 99);
		for (i = 0; i < 6; i++) {
			sqe = request_to(server, (u64)(i + 1) << 16 | i, 100);
			submit(client, &sqe);
			cqe = message(server);
			reply_with(server, cqe.token, 1000000);
		}
		for (i = 0; i < 4; i++)
			message(client);
		if (way == 0) {
			sqe = (struct homa_sqe){ .op = HOMA_SQE_ABORT,
						 .length = EINTR };
			submit(client, &sqe);
			assert_int_equal(message(client).error, EINTR);
			assert_int_equal(message(client).error, EINTR);
		}
		detach(way == 2 ? server : client);
		detach(way == 2 ? client : server);
	}
	daemon_free(d);
}

/* ---- more than there is room for ---- */

#define FEW 64u /* entries of the server's completion ring */

static int shrink_ring(struct homad_thread *t, void *arg)
{
	struct side *s = arg;

	(void)t;
	s->app.rings.cq_entries = FEW;
	return 0;
}

/* The byte of which the @i-th request of a client, and its response, is made. */
static u8 byte_of(u32 client, u32 i)
{
	return (u8)(client * RPCS + i);
}

static void submit_all(struct side *client, u32 number, struct side *server)
{
	u32 i;

	for (i = 0; i < RPCS; i++) {
		struct homa_sqe sqe =
			request_to(server, (u64)(i + 1) << 16 | i, 100);

		sqe.offset = i * 128;
		memset(client->app.seg[0].base + sqe.offset, byte_of(number, i),
		       100);
		submit(client, &sqe);
	}
}

static u8 taken_by(struct side *s, u32 entries, struct homa_cqe *cqe)
{
	struct homa_shm_queues *q = queues_of(s);
	u8 byte;

	while (__atomic_load_n(&q->h.cq.tail, __ATOMIC_ACQUIRE) == s->cq_head)
		sched_yield();
	*cqe = q->cqe[s->cq_head & (entries - 1)];
	assert_int_equal(cqe->length, 100);
	assert_int_equal(cqe->num_pages, 1);
	byte = s->app.pool[cqe->pages[0] + 99];
	release(s, cqe);
	__atomic_store_n(&q->h.cq.head, ++s->cq_head, __ATOMIC_RELEASE);
	kick(s, HOMA_SHM_KICK_CONSUME);
	return byte;
}

/* The server's ring has room for half of the requests, and so has its table. */
static void service__more_requests_than_fit_wait(void **state)
{
	struct homad *d = daemon_new(world_threads);
	struct side *client[2] = { attach(d), attach(d) }, *server = attach(d);
	struct homa_shm_queues *q = queues_of(server);
	struct homa_cqe cqe;
	u8 seen[2 * RPCS] = { 0 };
	u32 i, c, round;

	(void)state;
	bind_to(server, 99);
	homad_call(server->app.thread, shrink_ring, server);
	for (round = 0; round < 3; round++) {
		memset(seen, 0, sizeof(seen));
		for (c = 0; c < 2; c++)
			submit_all(client[c], c, server);
		while (__atomic_load_n(&q->h.cq.tail, __ATOMIC_ACQUIRE) -
			       server->cq_head <
		       FEW)
			sched_yield();
		for (i = 0; i < 2 * RPCS; i++) {
			struct homa_sqe sqe = { .op = HOMA_SQE_REPLY,
						.flags = HOMA_SQE_COPY,
						.length = 100,
						.offset = i * 128 };
			u8 byte = taken_by(server, FEW, &cqe);

			assert_int_equal(cqe.kind, HOMA_CQE_REQUEST);
			assert_int_equal(seen[byte]++, 0);
			memset(server->app.seg[0].base + sqe.offset, byte, 100);
			sqe.token = cqe.token;
			submit(server, &sqe);
		}
		for (i = 0; i < 2 * RPCS; i++) {
			u8 byte = taken_by(client[i / RPCS],
					   HOMA_SHM_CQ_ENTRIES, &cqe);

			assert_int_equal(cqe.kind, HOMA_CQE_RESPONSE);
			assert_int_equal(byte,
					 byte_of(i / RPCS,
						 (u32)(cqe.token & 0xffff)));
			assert_int_equal(seen[byte]++, 1);
		}
	}
	for (c = 0; c < 2; c++)
		detach(client[c]);
	detach(server);
	daemon_free(d);
}

static int both_ways(const struct CMUnitTest *tests, size_t n)
{
	int failed;

	failed = _cmocka_run_group_tests("the short way", tests, n, NULL, NULL);
	world_threads = 2;
	failed += _cmocka_run_group_tests("the short way between threads",
					  tests, n, NULL, NULL);
	world_threads = 1;
	world_through_the_engine = true;
	return failed + _cmocka_run_group_tests("through the engine", tests, n,
						NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			service__a_short_request_is_answered_on_the_same_host),
		cmocka_unit_test(service__a_long_message_is_lent_and_given_back),
		cmocka_unit_test(service__a_request_to_nobody_fails),
		cmocka_unit_test(
			service__an_abort_ends_the_token_with_or_without_a_failure),
		cmocka_unit_test(service__who_breaks_the_rules_is_evicted),
		cmocka_unit_test(service__responses_wait_for_the_clients_pages),
		cmocka_unit_test(
			service__the_end_of_one_side_is_the_end_for_the_other),
		cmocka_unit_test(service__a_waiting_response_ends_with_either_side),
		cmocka_unit_test(service__more_requests_than_fit_wait),
	};

	return both_ways(tests, sizeof(tests) / sizeof(*tests));
}
