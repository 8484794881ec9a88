// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The daemon that fuzz_shm attacks, and its applications' side of the rings;
 * see shm_bed.h. Time passes as told, the routing table is made up, and log
 * lines go nowhere.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "log.h"
#include "nic_memory.h"
#include "route.h"
#include "shm_bed.h"

#define WIRE 7 /* interface index of the nic */
#define ROUND_NS 2000u

u64 fuzz_clock;
struct homad shm_homad;
struct nic *shm_outside;
u64 shm_handled;
static struct nic_memory *network;

/* ---- what the fast path asks of the rest ---- */

void homad_log(int level, const char *format, ...)
{
	(void)level;
	(void)format;
}

/* 10.0.0.1 is ours, 10.0.0.2 on the wire, nothing else anywhere. */
int nic_route_get(struct nic_rtnl *rtnl, const struct homa_addr *dst, int oif,
		  struct nic_route_result *result)
{
	(void)rtnl;
	(void)oif;
	memset(result, 0, sizeof(*result));
	if (!homa_addr_is_v4(dst) || dst->ip[12] != 10)
		return -ENETUNREACH;
	result->local = dst->ip[15] == 1;
	result->ifindex = WIRE;
	return 0;
}

/* ---- the daemon ---- */

void *shm_aligned(size_t size)
{
	void *mem = aligned_alloc(64, (size + 63) / 64 * 64);

	MUST(mem);
	memset(mem, 0, size);
	return mem;
}

static void add_port(const char *name, struct nic *nic)
{
	struct homad_port *port = &shm_homad.ports[shm_homad.num_ports];

	memset(port, 0, sizeof(*port));
	port->link = shm_aligned(homa_link_size(64));
	port->nic = nic;
	port->info = nic ? nic_info(nic) : NULL;
	port->index = shm_homad.num_ports++;
	port->tx_at = HOMA_NEVER;
	port->ifindex = nic ? WIRE : 0;
	memcpy(port->name, name, strlen(name) + 1);
	homa_link_init(port->link, shm_homad.engine, 0, nic ? 1500 : 65535, 64);
}

void shm_start(void)
{
	static const struct nic_memory_config link = { .seed = 1 };
	struct homa_addr here = { .ip = { [10] = 0xff, 0xff, 10, 0, 0, 1 } };
	struct homa_addr there = { .ip = { [10] = 0xff, 0xff, 10, 0, 0, 2 } };
	struct homa_seeds seeds;
	struct nic *nic;

	memset(&shm_homad, 0, sizeof(shm_homad));
	homa_plat_alone = true;
	homa_params_default(&shm_homad.config.params);
	shm_homad.config.params.max_rpcs = 2000;
	shm_homad.config.params.max_peers = 1000;
	shm_homad.config.params.timeout_us = 100000;
	shm_homad.config.spin_us = 50;
	shm_homad.limits.shards = 1;
	shm_homad.limits.buckets = shm_homad.limits.tombstones = 256;
	shm_homad.limits.sock_priv = sizeof(struct homad_app *);
	shm_homad.limits.rpc_priv = sizeof(struct homad_rpc);
	shm_homad.num_threads = shm_homad.num_active = 1;
	shm_homad.dead_fd = eventfd(0, EFD_NONBLOCK);
	shm_homad.engine = shm_aligned(homa_engine_size(&shm_homad.limits));
	homa_seeds_fixed(&seeds, 1);
	MUST(!homa_engine_init(shm_homad.engine, &shm_homad.limits,
			       &shm_homad.config.params, &seeds, fuzz_clock));
	MUST(!nic_memory_create(&network, &link));
	MUST(!nic_memory_attach(network, &here, &nic));
	MUST(!nic_memory_attach(network, &there, &shm_outside));
	add_port("wire", nic);
	add_port("local", NULL);
	shm_homad.local = &shm_homad.ports[1];
	MUST(!homad_thread_make(&shm_homad, 0));
	shm_homad.threads[0]->active = true;
	MUST(!homad_thread_serve(shm_homad.threads[0], &shm_homad.ports[0]));
}

void shm_stop(void)
{
	const struct homad_counters *c = &shm_homad.threads[0]->counters;

	/* Commands of streams are among them. */
	shm_handled += c->commands + c->local_packets + c->completions;
	homad_thread_free(shm_homad.threads[0]);
	nic_close(shm_homad.ports[0].nic);
	nic_close(shm_outside);
	nic_memory_destroy(network);
	free(shm_homad.ports[0].link);
	free(shm_homad.ports[1].link);
	free(shm_homad.engine);
	close(shm_homad.dead_fd);
}

/* What reaches the network ends there. */
static void swallow(void)
{
	struct nic_rx rx[32];
	int n;

	while ((n = nic_rx(shm_outside, rx, 32)) > 0)
		nic_rx_release(shm_outside, rx, n);
}

void shm_rounds(u32 n)
{
	while (n--) {
		fuzz_clock += ROUND_NS;
		homad_round(shm_homad.threads[0]);
		swallow();
	}
}

/* ---- applications ---- */

/* The kernel's clearing of fresh pages would be most of the work: what is not
 * read before it is written is kept from one input to the next. */
void shm_attach(struct shm_side *s, u32 pool)
{
	struct homad_app *app = &s->app;
	struct homa_shm_header *queues = app->queues;
	u8 *old_pool = app->pool, *data = app->seg[0].base;

	if (old_pool && app->pool_bytes != pool) {
		free(old_pool);
		old_pool = NULL;
	}
	memset(s, 0, sizeof(*s));
	app->id = 1;
	app->queues =
		queues ? queues : shm_aligned(sizeof(struct homa_shm_queues));
	memset(app->queues, 0, sizeof(struct homa_shm_queues));
	app->pool = old_pool ? old_pool : shm_aligned(pool);
	app->pool_bytes = pool;
	app->seg[0].base = data ? data : shm_aligned(SHM_DATA);
	app->seg[0].bytes = SHM_DATA;
	app->num_segs = 1;
	app->max_rpcs = SHM_RPCS;
	app->wake_fd = app->ready_fd = -1;
	app->kick_fd = eventfd(0, EFD_NONBLOCK);
	MUST(app->kick_fd >= 0);
	app->queues->sqs = 1;
	MUST(!homad_call(shm_homad.threads[0], homad_session_open, app));
	s->open = true;
}

void shm_detach(struct shm_side *s, void (*meanwhile)(void))
{
	struct homad_app *app = &s->app;
	u32 i;

	homad_call(shm_homad.threads[0], homad_session_close, app);
	for (i = 0; i < SHM_MAX_ROUNDS && app->phase != HOMAD_APP_DEAD; i++) {
		shm_rounds(1);
		fuzz_clock += 100000;
		if (meanwhile)
			meanwhile();
	}
	MUST(app->phase == HOMAD_APP_DEAD);
	MUST(app->rpcs == 0);
	shm_homad.dead = NULL;
	homad_session_free(app);
	close(app->kick_fd);
	s->open = false;
}

void shm_push(struct shm_side *s, const struct homa_sqe *sqe)
{
	struct homa_shm_queues *q = (struct homa_shm_queues *)s->app.queues;

	q->sqe[0][s->tail++ & (HOMA_SHM_SQ_ENTRIES - 1)] = *sqe;
	q->h.sq[0].tail = s->tail;
	/* As a kick does. */
	homad_poll_app(shm_homad.threads[0], &s->app);
}

struct homa_sqe shm_request(struct shm_side *s, u16 port, u32 length)
{
	struct homa_sqe sqe = {
		.op = HOMA_SQE_REQUEST,
		.flags = length <= HOMA_SHM_COPY_MAX ? HOMA_SQE_COPY : 0,
		.port = port,
		.length = length,
		.ip = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
		.token = (u64)(s->serial / (SHM_RPCS - 1) + 1) << 16 |
			 s->serial % (SHM_RPCS - 1),
	};

	s->serial++;
	return sqe;
}

bool shm_next(struct shm_side *s, struct homa_cqe *cqe)
{
	struct homa_shm_queues *q = (struct homa_shm_queues *)s->app.queues;

	if (q->h.cq.tail == s->head)
		return false;
	*cqe = q->cqe[s->head++ & (HOMA_SHM_CQ_ENTRIES - 1)];
	q->h.cq.head = s->head;
	homad_poll_app(shm_homad.threads[0], &s->app);
	return true;
}

void shm_release(struct shm_side *s, const u32 *pages, u32 n)
{
	struct homa_shm_queues *q = (struct homa_shm_queues *)s->app.queues;

	while (n--)
		q->released[s->released++ & (HOMA_SHM_RELEASES - 1)] = *pages++;
	q->h.release.tail = s->released;
	homad_poll_app(shm_homad.threads[0], &s->app);
}

void shm_bind(struct shm_side *s, u16 port)
{
	struct homad_bind bind = { &s->app, port };

	homad_call(shm_homad.threads[0], homad_session_bind, &bind);
}
