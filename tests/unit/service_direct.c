// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * host/homad/fast/direct.c: what an application can do to others by very many short RPCs with
 * them. Rounds are run by hand.
 */
#include "service_bed.h"
#include "unit.h"

#define PORT 99u
#define PAGES (POOL >> HOMA_BPAGE_SHIFT)
#define MANY 1000u
#define LONG 20u
#define SLOTS 1024u /* RPCs that a side may have open in the tests with MANY */

/* ---- two applications ---- */

/* A client and a server; @pages are pages of the client's pool while they are taken away. */
struct pair {
	struct bed *bed;
	struct side *client, *server;
	u32 pages[PAGES];
};

static void begin(struct pair *p, u32 of_client, u32 of_server)
{
	struct homad_bind bind;

	p->bed = bed_new();
	p->client = attach_with(&p->bed->d, of_client);
	p->server = attach_with(&p->bed->d, of_server);
	bind = (struct homad_bind){ &p->server->app, PORT };
	assert_int_equal(homad_session_bind(p->bed->t, &bind), 0);
}

static void rounds(struct pair *p, u32 n)
{
	while (n--)
		homad_round(p->bed->t);
}

/* Ends one side; the other one may have thousands of RPCs with it. */
static void leave(struct pair *p, struct side **side)
{
	u32 i;

	homad_session_close(p->bed->t, &(*side)->app);
	for (i = 0; i < 100 && (*side)->app.phase != HOMAD_APP_DEAD; i++)
		homad_round(p->bed->t);
	p->bed->d.dead = NULL;
	detach_closed(*side);
	*side = NULL;
}

static void end(struct pair *p)
{
	if (p->client)
		leave(p, &p->client);
	if (p->server)
		leave(p, &p->server);
	bed_free(p->bed);
}

/* Takes a completion from the ring, if there is one. */
static bool take(struct side *s, struct homa_cqe *cqe)
{
	struct homa_shm_queues *q = queues_of(s);

	if (q->h.cq.tail == s->cq_head)
		return false;
	*cqe = q->cqe[s->cq_head++ & (s->app.rings.cq_entries - 1)];
	__atomic_store_n(&q->h.cq.head, s->cq_head, __ATOMIC_RELEASE);
	return true;
}

/* Takes all that is in the ring and returns how many completions of @kind there were. */
static u32 told(struct side *s, u8 kind)
{
	struct homa_cqe cqe;
	u32 n = 0;

	while (take(s, &cqe))
		n += cqe.kind == kind;
	return n;
}

static void give(struct pair *p, struct side *s, const struct homa_sqe *sqe)
{
	submit(s, sqe);
	homad_poll_app(p->bed->t, &s->app);
}

/* The client's @i-th request is sent and received; returns the server's token for it. */
static u64 ask(struct pair *p, u32 i)
{
	struct homa_sqe sqe = request_to(p->server, (u64)(i + 1) << 16 | i, 100);
	struct homa_cqe cqe;

	memset(sqe.ip, 0, sizeof(sqe.ip));
	give(p, p->client, &sqe);
	homad_round(p->bed->t);
	do
		assert_true(take(p->server, &cqe));
	while (cqe.kind == HOMA_CQE_FREE);
	assert_int_equal(cqe.kind, HOMA_CQE_REQUEST);
	release(p->server, &cqe);
	return cqe.token;
}

/* The server lends the bytes of its response. */
static void answer(struct pair *p, u64 token, u32 length)
{
	const struct homa_sqe reply = { .op = HOMA_SQE_REPLY,
					.length = length,
					.token = token };

	give(p, p->server, &reply);
}

/* From now on responses wait for the client, which has no pages. */
static void take_pages(struct pair *p)
{
	u32 i, n, page[HOMA_MAX_BPAGES];

	for (i = 0; i < PAGES; i++) {
		assert_int_equal(homa_pages_take(&p->bed->t->ctx,
						 p->client->app.sock,
						 HOMA_BPAGE_SIZE, page, &n),
				 0);
		p->pages[i] = page[0];
	}
}

static void give_pages(struct pair *p)
{
	assert_int_equal(homa_pool_release(&p->bed->t->ctx, p->client->app.sock,
					   p->pages, PAGES),
			 0);
}

/* @n responses wait for the client. */
static void let_wait(struct pair *p, u32 n, u32 length)
{
	u32 i;

	take_pages(p);
	for (i = 0; i < n; i++) {
		answer(p, ask(p, i), length);
		homad_round(p->bed->t);
	}
	assert_int_equal(told(p->server, HOMA_CQE_FREE), 0);
	assert_int_equal(p->bed->t->counters.direct, n);
}

/* ---- messages that the server has back ---- */

/* Responses lie in the memory of a server that may have few RPCs open itself. */
static void freed__by_a_client_that_ends(void **state)
{
	struct pair p;

	(void)state;
	begin(&p, RPCS, 4);
	let_wait(&p, 32, 100);
	homad_session_close(p.bed->t, &p.client->app);
	rounds(&p, 3);
	assert_int_equal(told(p.server, HOMA_CQE_FREE), 32);
	end(&p);
}

static void freed__evicts_nobody(void **state)
{
	struct pair p;
	u64 token[4];
	u32 i;

	(void)state;
	begin(&p, RPCS, 4);
	let_wait(&p, 32, 100);
	for (i = 0; i < 4; i++)
		token[i] = ask(&p, 32 + i);
	give_pages(&p);
	homad_now(p.bed->t);
	homad_look_at_rings(p.bed->t, &p.client->app);
	for (i = 0; i < 4; i++)
		answer(&p, token[i], 100);
	homad_look_at_rings(p.bed->t, &p.server->app);
	homad_deliver(p.bed->t);
	rounds(&p, 3);
	assert_false(p.server->app.evicted);
	assert_int_equal(told(p.server, HOMA_CQE_FREE), 36);
	assert_int_equal(told(p.client, HOMA_CQE_RESPONSE), 36);
	end(&p);
}

/* A small ring has room for a few of them at a time. */
static void freed__by_and_by(void **state)
{
	struct pair p;
	u32 i, n, sum = 0;

	(void)state;
	begin(&p, SLOTS, 4);
	p.server->app.rings.cq_entries = 8;
	let_wait(&p, MANY, 100);
	leave(&p, &p.client);
	for (i = 0; i < MANY / 8; i++) {
		n = told(p.server, HOMA_CQE_FREE);
		assert_int_equal(n, 8);
		sum += n;
		homad_poll_app(p.bed->t, &p.server->app);
		rounds(&p, 1);
	}
	assert_int_equal(sum, MANY);
	assert_int_equal(told(p.server, HOMA_CQE_FREE), 0);
	assert_null(p.server->app.freed_more);
	end(&p);
}

/* What has not been told is forgotten with the attachment. */
static void freed__never_told(void **state)
{
	struct pair p;

	(void)state;
	begin(&p, SLOTS, 4);
	p.server->app.rings.cq_entries = 8;
	let_wait(&p, MANY, 100);
	leave(&p, &p.client);
	assert_non_null(p.server->app.freed_more);
	end(&p);
}

/* Nobody gets more RPCs by which the list would grow while the application does not read. */
static void freed__goes_first(void **state)
{
	struct homa_sqe sqe;
	struct homa_cqe cqe;
	struct pair p;

	(void)state;
	begin(&p, RPCS, 4);
	p.server->app.rings.cq_entries = 8;
	let_wait(&p, 32, 100);
	leave(&p, &p.client);
	p.client = attach(&p.bed->d);
	rounds(&p, 1);
	assert_true(take(p.server, &cqe));
	assert_int_equal(cqe.kind, HOMA_CQE_FREE);
	sqe = request_to(p.server, 1u << 16, 100);
	memset(sqe.ip, 0, sizeof(sqe.ip));
	submit(p.client, &sqe);
	homad_look_at_rings(p.bed->t, &p.client->app);
	assert_int_equal(p.bed->t->counters.direct, 32);
	end(&p);
}

/* A response to an application that has not been told of all that is free again waits until it has
 * been, also if there is room in the ring meanwhile. */
static void freed__goes_before_responses(void **state)
{
	struct homa_sqe sqe, reply = { .op = HOMA_SQE_REPLY,
				       .flags = HOMA_SQE_COPY,
				       .length = 100 };
	struct homad_bind bind;
	struct homa_cqe cqe, news;
	struct pair p;
	u32 i, n = 1;

	(void)state;
	begin(&p, RPCS, 4);
	p.server->app.rings.cq_entries = 8;
	let_wait(&p, 32, 100);
	leave(&p, &p.client);
	/* Another application answers what the server asks. */
	p.client = attach(&p.bed->d);
	bind = (struct homad_bind){ &p.client->app, PORT + 1 };
	assert_int_equal(homad_session_bind(p.bed->t, &bind), 0);
	sqe = request_to(p.client, 1u << 16, 100);
	memset(sqe.ip, 0, sizeof(sqe.ip));
	give(&p, p.server, &sqe);
	rounds(&p, 1);
	assert_true(take(p.client, &cqe));
	assert_int_equal(cqe.kind, HOMA_CQE_REQUEST);
	reply.token = cqe.token;
	/* There is room for one entry. */
	assert_true(take(p.server, &news));
	assert_int_equal(news.kind, HOMA_CQE_FREE);
	assert_non_null(p.server->app.freed_more);
	give(&p, p.client, &reply);
	for (i = 0; i < 100 && news.kind == HOMA_CQE_FREE; i++) {
		while (news.kind == HOMA_CQE_FREE && take(p.server, &news))
			n += news.kind == HOMA_CQE_FREE;
		homad_poll_app(p.bed->t, &p.server->app);
		rounds(&p, 1);
	}
	assert_int_equal(news.kind, HOMA_CQE_RESPONSE);
	assert_int_equal(n, 32);
	assert_null(p.server->app.freed_more);
	end(&p);
}

/* ---- responses that wait ---- */

static u32 deliver_some(struct pair *p)
{
	u64 before = p->client->app.counters.delivered;

	homad_now(p->bed->t);
	/* The look is charged as a turn of commands. */
	assert_int_equal(homad_look_at_rings(p->bed->t, &p->client->app),
			 HOMAD_TURN);
	return (u32)(p->client->app.counters.delivered - before);
}

/* Many of them that find room at once are copied in several turns. */
static void waiting__are_delivered_in_turns(void **state)
{
	struct pair p;
	u32 i;

	(void)state;
	begin(&p, SLOTS, 4);
	let_wait(&p, 100, HOMAD_DIRECT_MAX);
	give_pages(&p);
	for (i = 0; i < PAGES / 16; i++)
		assert_in_range(deliver_some(&p), 16, 17);
	end(&p);
}

/* Each of them is work, however short it is, and the rest comes without being asked for. */
static void waiting__short_ones_too(void **state)
{
	struct homa_cqe cqe;
	struct pair p;
	u32 i;

	(void)state;
	begin(&p, SLOTS, 4);
	let_wait(&p, MANY, 1);
	give_pages(&p);
	assert_int_equal(deliver_some(&p), HOMAD_TURN);
	for (i = 0; i < MANY; i++) {
		while (!take(p.client, &cqe))
			rounds(&p, 1);
		assert_int_equal(cqe.kind, HOMA_CQE_RESPONSE);
		release(p.client, &cqe);
		homad_poll_app(p.bed->t, &p.client->app);
	}
	assert_int_equal(p.client->app.held_back, 0);
	end(&p);
}

/* A reply may be longer than requests that go this way, and is copied at once: so few of them are a
 * turn. */
static void long__replies_are_as_much_work_as_their_bytes(void **state)
{
	struct homa_sqe reply = { .op = HOMA_SQE_REPLY,
				  .length = 2 * HOMAD_DIRECT_MAX };
	u64 tokens[LONG], before;
	struct pair p;
	u32 i;

	(void)state;
	begin(&p, SLOTS, SLOTS);
	for (i = 0; i < LONG; i++)
		tokens[i] = ask(&p, i);
	for (i = 0; i < LONG; i++) {
		reply.token = tokens[i];
		submit(p.server, &reply);
	}
	before = p.client->app.counters.delivered;
	homad_now(p.bed->t);
	assert_true(homad_look_at_rings(p.bed->t, &p.server->app) >= HOMAD_TURN);
	assert_in_range(p.client->app.counters.delivered - before,
			HOMAD_TURN_BYTES / reply.length,
			HOMAD_TURN_BYTES / reply.length + 1);
	rounds(&p, 10);
	assert_int_equal(told(p.client, HOMA_CQE_RESPONSE), LONG);
	end(&p);
}

/* A response waits and so does a ring that has no memory, because its user may have no more:
 * nothing can be done before that changes, and the thread may sleep. */
static void waiting__beside_a_ring_without_memory(void **state)
{
	struct homad_app *app;
	struct pair p;

	(void)state;
	begin(&p, SLOTS, 4);
	let_wait(&p, 1, 100);
	app = &p.client->app;
	app->queues->sqs = HOMA_SHM_SQS;
	app->rings_backed = 1;
	app->asked_memory = true;
	homad_look_at_rings(p.bed->t, app);
	assert_true(app->held_back & HOMAD_NO_ROOM);
	assert_false(homad_rings_waiting(app));
	end(&p);
}

/* ---- many that end at once ---- */

#define EACH_ROUND 64u /* RPCs of a closing attachment that end in a round */
#define EACH_LOOK 256u /* slots that are looked at in a turn to end all RPCs */

/* MANY RPCs are open, of which the server has received all. */
static void open_many(struct pair *p)
{
	u32 i;

	begin(p, SLOTS, SLOTS);
	for (i = 0; i < MANY; i++)
		ask(p, i);
	assert_int_equal(p->client->app.rpcs, MANY);
	assert_int_equal(p->server->app.rpcs, MANY);
	assert_int_equal(p->bed->t->counters.direct, MANY);
}

static void many__end_with_the_client_by_and_by(void **state)
{
	struct pair p;

	(void)state;
	open_many(&p);
	homad_session_close(p.bed->t, &p.client->app);
	rounds(&p, 1);
	assert_in_range(p.client->app.rpcs, MANY - EACH_ROUND, MANY);
	rounds(&p, 19);
	assert_int_equal(p.client->app.phase, HOMAD_APP_DEAD);
	end(&p);
}

static void many__end_with_the_server_by_and_by(void **state)
{
	struct pair p;

	(void)state;
	open_many(&p);
	homad_session_close(p.bed->t, &p.server->app);
	rounds(&p, 1);
	assert_in_range(p.client->app.rpcs, MANY - EACH_ROUND, MANY);
	rounds(&p, 19);
	assert_int_equal(p.server->app.phase, HOMAD_APP_DEAD);
	assert_int_equal(told(p.client, HOMA_CQE_FAILED), MANY);
	end(&p);
}

/* The server answers RPCs of a client that is being closed: nobody reads that any more. */
static void many__answered_while_they_end(void **state)
{
	struct pair p;
	u64 copied, lent;
	u32 i, tail;

	(void)state;
	begin(&p, SLOTS, SLOTS);
	for (i = 0; i < MANY - 2; i++)
		ask(&p, i);
	copied = ask(&p, i++);
	lent = ask(&p, i);
	homad_session_close(p.bed->t, &p.client->app);
	tail = p.client->app.cq_tail;
	for (i = 0; i < 2; i++) {
		const struct homa_sqe reply = {
			.op = HOMA_SQE_REPLY,
			.flags = i ? 0 : HOMA_SQE_COPY,
			.length = 100,
			.token = i ? lent : copied,
		};

		give(&p, p.server, &reply);
	}
	rounds(&p, 1);
	assert_int_equal(p.client->app.phase, HOMAD_APP_CLOSING);
	assert_int_equal(p.client->app.cq_tail, tail);
	assert_int_equal(told(p.server, HOMA_CQE_FREE), 1);
	assert_int_equal(p.bed->t->bufs.used, 0);
	rounds(&p, 19);
	assert_int_equal(p.client->app.phase, HOMAD_APP_DEAD);
	end(&p);
}

/* One command ends all RPCs that were begun before it, and none that is begun after it. */
static void many__end_by_one_command(void **state)
{
	const struct homa_sqe all = { .op = HOMA_SQE_ABORT, .length = EINTR };
	struct homa_sqe next;
	struct pair p;
	u32 i;

	(void)state;
	open_many(&p);
	next = request_to(p.server, 1u << 16 | MANY, 100);
	memset(next.ip, 0, sizeof(next.ip));
	give(&p, p.client, &all);
	give(&p, p.client, &next);
	for (i = 1; i <= 3; i++) {
		assert_int_equal(homad_look_at_rings(p.bed->t, &p.client->app),
				 HOMAD_TURN);
		assert_int_equal(p.client->app.rpcs, MANY - i * EACH_LOOK);
	}
	rounds(&p, 3);
	assert_int_equal(told(p.client, HOMA_CQE_FAILED), MANY);
	assert_int_equal(p.client->app.rpcs, 1);
	assert_int_equal(p.client->app.counters.aborts, 1);
	/* The next one begins with the first slot. */
	give(&p, p.client, &all);
	rounds(&p, 6);
	assert_int_equal(told(p.client, HOMA_CQE_FAILED), 1);
	end(&p);
}

/* Two rings with such a command each do not go on where the other one's is. */
static void many__end_by_commands_in_two_rings(void **state)
{
	const struct homa_sqe all = { .op = HOMA_SQE_ABORT, .length = EINTR };
	struct homa_shm_queues *q;
	struct homa_sqe sqe;
	struct pair p;
	u32 i;

	(void)state;
	open_many(&p);
	q = queues_of(p.client);
	q->h.sqs = 2;
	give(&p, p.client, &all);
	for (i = 0; i < 4 && !p.client->app.abort_next[0]; i++)
		homad_look_at_rings(p.bed->t, &p.client->app);
	/* A slot that the first one has passed. */
	sqe = request_to(p.server, 2u << 16, 100);
	memset(sqe.ip, 0, sizeof(sqe.ip));
	homad_deliver(p.bed->t);
	told(p.client, HOMA_CQE_FAILED);
	q->sqe[1][0] = sqe;
	q->sqe[1][1] = all;
	__atomic_store_n(&q->h.sq[1].tail, 2, __ATOMIC_RELEASE);
	homad_poll_app(p.bed->t, &p.client->app);
	rounds(&p, 12);
	assert_int_equal(p.client->app.counters.aborts, 2);
	assert_int_equal(p.client->app.rpcs, 0);
	end(&p);
}

static void many__end_by_a_shutdown(void **state)
{
	struct pair p;
	u32 i;

	(void)state;
	open_many(&p);
	for (i = 1; i <= 3; i++) {
		assert_int_equal(homad_session_shutdown(p.bed->t, &p.client->app),
				 1);
		assert_int_equal(p.client->app.rpcs, MANY - i * EACH_LOOK);
		rounds(&p, 1);
	}
	assert_int_equal(homad_session_shutdown(p.bed->t, &p.client->app), 0);
	rounds(&p, 1);
	assert_int_equal(p.client->app.rpcs, 0);
	assert_int_equal(told(p.client, HOMA_CQE_GONE), MANY);
	end(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(freed__by_a_client_that_ends),
		cmocka_unit_test(freed__evicts_nobody),
		cmocka_unit_test(freed__by_and_by),
		cmocka_unit_test(freed__never_told),
		cmocka_unit_test(freed__goes_first),
		cmocka_unit_test(freed__goes_before_responses),
		cmocka_unit_test(waiting__are_delivered_in_turns),
		cmocka_unit_test(waiting__short_ones_too),
		cmocka_unit_test(waiting__beside_a_ring_without_memory),
		cmocka_unit_test(long__replies_are_as_much_work_as_their_bytes),
		cmocka_unit_test(many__end_with_the_client_by_and_by),
		cmocka_unit_test(many__end_with_the_server_by_and_by),
		cmocka_unit_test(many__answered_while_they_end),
		cmocka_unit_test(many__end_by_one_command),
		cmocka_unit_test(many__end_by_commands_in_two_rings),
		cmocka_unit_test(many__end_by_a_shutdown),
	};

	int failed;

	failed = cmocka_run_group_tests_name("with locks", tests, NULL, NULL);
	homa_plat_alone = true;
	return failed +
	       cmocka_run_group_tests_name("one thread", tests, NULL, NULL);
}
