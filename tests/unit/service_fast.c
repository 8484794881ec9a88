// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * homad's fast path without its slow path: attachments made by hand, rings
 * filled by hand, messages between two of them on the same host.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "log.h"
#include "service.h"

#define POOL (4u << 20)
#define DATA (2u << 20)
#define RPCS 64u

/* ---- an application ---- */

struct side {
	struct homad_app app;
	struct homad *d;
	u32 sq_tail, cq_head, rel_tail, used;
	int wakes[2];
};

static struct side *attach(struct homad *d)
{
	struct side *s = calloc(1, sizeof(*s));

	s->d = d;
	s->app.id = 1;
	s->app.queues = aligned_alloc(4096, (sizeof(*s->app.queues) + 4095) / 4096 * 4096);
	memset(s->app.queues, 0, sizeof(*s->app.queues));
	s->app.pool = aligned_alloc(4096, POOL);
	s->app.pool_bytes = POOL;
	s->app.seg[0].base = aligned_alloc(4096, DATA);
	s->app.seg[0].bytes = DATA;
	s->app.num_segs = 1;
	s->app.max_rpcs = RPCS;
	s->app.kick_fd = eventfd(0, EFD_NONBLOCK);
	assert_int_equal(pipe(s->wakes), 0);
	s->app.wake_fd = s->wakes[1];
	s->app.ready_fd = -1;
	assert_int_equal(homad_call(d->threads[0], homad_session_open, &s->app), 0);
	return s;
}

static void detach(struct side *s)
{
	struct homad *d = s->d;

	homad_call(d->threads[0], homad_session_close, &s->app);
	while (!__atomic_load_n(&d->dead, __ATOMIC_ACQUIRE))
		sched_yield();
	d->dead = NULL;
	assert_int_equal(s->app.phase, HOMAD_APP_DEAD);
	homad_session_free(&s->app);
	free(s->app.queues);
	free(s->app.pool);
	free(s->app.seg[0].base);
	close(s->app.kick_fd);
	close(s->wakes[0]);
	close(s->wakes[1]);
	free(s);
}

static void kick(struct side *s, u32 what)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&s->app.queues->h.need_kick, __ATOMIC_RELAXED) & what)
		assert_int_equal(eventfd_write(s->app.kick_fd, 1), 0);
}

static void submit(struct side *s, const struct homa_sqe *sqe)
{
	struct homa_shm_queues *q = s->app.queues;

	q->sqe[0][s->sq_tail++ & (HOMA_SHM_SQ_ENTRIES - 1)] = *sqe;
	__atomic_store_n(&q->h.sq[0].tail, s->sq_tail, __ATOMIC_RELEASE);
	kick(s, HOMA_SHM_KICK_SUBMIT);
}

static struct homa_cqe receive(struct side *s)
{
	struct homa_shm_queues *q = s->app.queues;
	struct homa_cqe cqe;

	while (__atomic_load_n(&q->h.cq.tail, __ATOMIC_ACQUIRE) == s->cq_head)
		sched_yield();
	cqe = q->cqe[s->cq_head++ & (HOMA_SHM_CQ_ENTRIES - 1)];
	__atomic_store_n(&q->h.cq.head, s->cq_head, __ATOMIC_RELEASE);
	kick(s, HOMA_SHM_KICK_CONSUME);
	return cqe;
}

static void release(struct side *s, const struct homa_cqe *cqe)
{
	struct homa_shm_queues *q = s->app.queues;
	u32 i;

	for (i = 0; i < cqe->num_pages; i++)
		q->released[s->rel_tail++ & (HOMA_SHM_RELEASES - 1)] = cqe->pages[i];
	__atomic_store_n(&q->h.release.tail, s->rel_tail, __ATOMIC_RELEASE);
	kick(s, HOMA_SHM_KICK_RELEASE);
}

static struct homa_sqe request_to(struct side *to, u64 token, u32 length)
{
	struct homa_sqe sqe = {
		.op = HOMA_SQE_REQUEST,
		.flags = length <= HOMA_SHM_COPY_MAX ? HOMA_SQE_COPY : 0,
		.port = homa_sock_port(to->app.sock),
		.length = length,
		.ip = { [10] = 0xff, 0xff, 127, 0, 0, 1 },
		.cookie = token * 3,
		.token = token,
	};

	return sqe;
}

static void bind_to(struct side *s, u16 port)
{
	struct homad_bind bind = { &s->app, port };

	assert_int_equal(homad_call(s->d->threads[0], homad_session_bind, &bind), 0);
}

/* ---- the daemon ---- */

static struct homad *daemon_new(void)
{
	struct homad *d = calloc(1, sizeof(*d));
	char err[256];

	homad_log_init(HOMAD_ERROR, HOMAD_LOG_TEXT);
	homad_config_default(&d->config);
	d->config.afxdp = 0;
	d->config.udp_port = 0;
	d->dead_fd = eventfd(0, EFD_NONBLOCK);
	if (homad_start(d, err, sizeof(err)))
		fail_msg("%s", err);
	return d;
}

static void daemon_free(struct homad *d)
{
	homad_stop(d);
	close(d->dead_fd);
	free(d);
}

static void service__a_short_request_is_answered_on_the_same_host(void **state)
{
	struct homad *d = daemon_new();
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
		sqe = (struct homa_sqe){ .op = HOMA_SQE_REPLY, .flags = HOMA_SQE_COPY,
					 .length = 50, .token = cqe.token };
		submit(server, &sqe);
		cqe = receive(client);
		assert_int_equal(cqe.kind, HOMA_CQE_RESPONSE);
		assert_int_equal(cqe.length, 50);
		assert_int_equal(cqe.token, (u64)(i + 1) << 16 | (i % RPCS));
		assert_int_equal(cqe.cookie, cqe.token * 3);
		assert_int_equal(client->app.pool[cqe.pages[0] + 49], (u8)(i + 1));
		release(client, &cqe);
	}
	detach(client);
	detach(server);
	daemon_free(d);
}

static void service__a_long_message_is_lent_and_given_back(void **state)
{
	struct homad *d = daemon_new();
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
	sqe = (struct homa_sqe){ .op = HOMA_SQE_REPLY, .flags = HOMA_SQE_COPY,
				 .length = 1, .token = cqe.token };
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
	struct homad *d = daemon_new();
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
	struct homad *d = daemon_new();
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
	while (__atomic_load_n(&s->app.queues->h.state, __ATOMIC_ACQUIRE) !=
	       HOMA_SHM_EVICTED)
		sched_yield();
}

static void service__who_breaks_the_rules_is_evicted(void **state)
{
	struct homad *d = daemon_new();
	u32 i;

	(void)state;
	for (i = 0; i < 9; i++) {
		struct side *s = attach(d);
		struct homa_sqe sqe = request_to(s, 1 << 16, 100);
		struct homa_shm_header *h = &s->app.queues->h;

		switch (i) {
		case 0: sqe.length = 0; break;
		case 1: sqe.offset = DATA - 99; break;
		case 2: sqe.segment = 65535; break;
		case 3: sqe.token = RPCS; break;
		case 4: sqe.op = 77; break;
		case 5: sqe.length = 1000001; break;
		case 6: h->sq[0].tail = s->sq_tail += 1000; break;
		case 7: s->app.queues->released[s->rel_tail++] = 12345;
			h->release.tail = s->rel_tail; break;
		case 8: h->cq.head = 5; break;
		}
		submit(s, &sqe);
		expect_eviction(s);
		while (!__atomic_load_n(&d->dead, __ATOMIC_ACQUIRE))
			sched_yield();
		detach(s);
	}
	daemon_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(service__a_short_request_is_answered_on_the_same_host),
		cmocka_unit_test(service__a_long_message_is_lent_and_given_back),
		cmocka_unit_test(service__a_request_to_nobody_fails),
		cmocka_unit_test(service__an_abort_ends_the_token_with_or_without_a_failure),
		cmocka_unit_test(service__who_breaks_the_rules_is_evicted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
