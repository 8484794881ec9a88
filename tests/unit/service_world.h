/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * homad's fast path without its slow path: attachments made by hand, rings
 * filled by hand. An application's side here is what a correct library does.
 */
#ifndef TEST_SERVICE_WORLD_H
#define TEST_SERVICE_WORLD_H

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
#include "fast.h"

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

/* With the rings that an application has which asks for no others. */
static inline struct homa_shm_queues *queues_of(struct side *s)
{
	return (struct homa_shm_queues *)s->app.queues;
}

static inline struct side *attach_with(struct homad *d, u32 max_rpcs)
{
	struct side *s = calloc(1, sizeof(*s));

	s->d = d;
	s->app.id = 1;
	s->app.queues =
		aligned_alloc(4096, (sizeof(struct homa_shm_queues) + 4095) /
					    4096 * 4096);
	memset(s->app.queues, 0, sizeof(struct homa_shm_queues));
	s->app.pool = aligned_alloc(4096, POOL);
	s->app.pool_bytes = POOL;
	s->app.seg[0].base = aligned_alloc(4096, DATA);
	s->app.seg[0].bytes = DATA;
	s->app.num_segs = 1;
	s->app.max_rpcs = max_rpcs;
	s->app.kick_fd = eventfd(0, EFD_NONBLOCK);
	assert_int_equal(pipe(s->wakes), 0);
	s->app.wake_fd = s->wakes[1];
	s->app.ready_fd = -1;
	assert_int_equal(homad_call(homad_thread_for_app(d), homad_session_open,
				    &s->app),
			 0);
	return s;
}

static inline struct side *attach(struct homad *d)
{
	return attach_with(d, RPCS);
}

/* What is left when the fast path has let go of it. */
static inline void detach_closed(struct side *s)
{
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

static inline void detach(struct side *s)
{
	struct homad *d = s->d;

	homad_call(s->app.thread, homad_session_close, &s->app);
	while (!__atomic_load_n(&d->dead, __ATOMIC_ACQUIRE))
		sched_yield();
	d->dead = NULL;
	detach_closed(s);
}

static inline void kick(struct side *s, u32 what)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&s->app.queues->need_kick, __ATOMIC_RELAXED) & what)
		assert_int_equal(eventfd_write(s->app.kick_fd, 1), 0);
}

static inline void submit(struct side *s, const struct homa_sqe *sqe)
{
	struct homa_shm_queues *q = queues_of(s);

	q->sqe[0][s->sq_tail++ & (HOMA_SHM_SQ_ENTRIES - 1)] = *sqe;
	__atomic_store_n(&q->h.sq[0].tail, s->sq_tail, __ATOMIC_RELEASE);
	kick(s, HOMA_SHM_KICK_SUBMIT);
}

static inline struct homa_cqe receive(struct side *s)
{
	struct homa_shm_queues *q = queues_of(s);
	struct homa_cqe cqe;

	while (__atomic_load_n(&q->h.cq.tail, __ATOMIC_ACQUIRE) == s->cq_head)
		sched_yield();
	cqe = q->cqe[s->cq_head++ & (HOMA_SHM_CQ_ENTRIES - 1)];
	__atomic_store_n(&q->h.cq.head, s->cq_head, __ATOMIC_RELEASE);
	kick(s, HOMA_SHM_KICK_CONSUME);
	return cqe;
}

static inline void release(struct side *s, const struct homa_cqe *cqe)
{
	struct homa_shm_queues *q = queues_of(s);
	u32 i;

	for (i = 0; i < cqe->num_pages; i++)
		q->released[s->rel_tail++ & (HOMA_SHM_RELEASES - 1)] =
			cqe->pages[i];
	__atomic_store_n(&q->h.release.tail, s->rel_tail, __ATOMIC_RELEASE);
	kick(s, HOMA_SHM_KICK_RELEASE);
}

static inline struct homa_sqe request_to(struct side *to, u64 token, u32 length)
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

static inline void bind_to(struct side *s, u16 port)
{
	struct homad_bind bind = { &s->app, port };

	assert_int_equal(homad_call(s->app.thread, homad_session_bind, &bind), 0);
}

/* ---- the daemon ---- */

/* Short RPCs as packets, too; the tests run both ways. */
static bool world_through_the_engine;
/* How many threads a daemon has whose test says nothing else. */
__attribute__((unused)) static u32 world_threads = 1;

static inline struct homad *daemon_new(u32 threads)
{
	struct homad *d = calloc(1, sizeof(*d));
	char err[256];

	homad_log_init(HOMAD_ERROR, HOMAD_LOG_TEXT);
	homad_config_default(&d->config);
	d->config.afxdp = 0;
	if (threads > 1) {
		d->config.mode = HOMAD_DEDICATED;
		d->config.num_cores = threads;
		d->config.cores[1] = 1;
	}
	d->config.udp_port = 0;
	d->config.direct = !world_through_the_engine;
	/* A starved machine is not what is tested. */
	d->config.params.timeout_us = 60000000;
	d->dead_fd = eventfd(0, EFD_NONBLOCK);
	if (homad_start(d, err, sizeof(err)))
		fail_msg("%s", err);
	return d;
}

static inline int count_direct(struct homad_thread *t, void *arg)
{
	(void)arg;
	return (int)t->counters.direct;
}

/* RPCs that went from memory to memory. */
static inline u32 direct_rpcs(struct homad *d)
{
	u32 i, n = 0;

	for (i = 0; i < d->num_threads; i++)
		n += (u32)homad_call(d->threads[i], count_direct, NULL);
	return n;
}

static inline void daemon_free(struct homad *d)
{
	homad_stop(d);
	close(d->dead_fd);
	free(d);
}

#endif
