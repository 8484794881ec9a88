// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What a 100-byte RPC costs in homad's fast path: instructions of the rounds
 * of both daemons, commands, engine, packets and completions included, the
 * applications' own not. Two daemons over a link in memory, each with one
 * application, or two applications of one daemon (--local). The clock is ours
 * and goes on with every look at it, so that the same rounds are run each time
 * and the count is repeatable. --look counts a turn of an attachment in whose
 * rings nothing is, which is most turns.
 *
 * The applications here are as terse as can be: they fill and empty the rings
 * of the ABI by hand.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <valgrind/callgrind.h>

#include "callgrind.h"
#include "json.h"
#include "log.h"
#include "nic_memory.h"
#include "fast.h"

#define MESSAGE 100u
#define SERVER_PORT 4000
#define WARM_UP 2000u
#define TIMED 4000u
#define TICK_NS 400u /* of our clock for each look */
#define POOL_BYTES (64u << 16)
#define DATA_BYTES (1u << 20)
#define MTU 1500u
#define RPCS 1024u

/**
 * struct program - an application; the rings' indices it owns
 * @peer: where its requests go; unspecified: this host.
 * @in_flight, @done: as a client.
 */
struct program {
	struct homad_app app;
	struct homad_bytes bytes;
	u32 sq_tail, cq_head, release_tail;
	struct homa_addr peer;
	u32 in_flight, done, failed;
	u16 free[RPCS];
	u32 num_free;
	u64 uses;
};

static struct homad daemons[2];
static struct program client, server;
static u64 our_time = 1000000000u;
static bool counting;

/* Instead of the C library's: everything here sees the same, repeatable time. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
	(void)id;
	our_time += TICK_NS;
	ts->tv_sec = (time_t)(our_time / 1000000000u);
	ts->tv_nsec = (long)(our_time % 1000000000u);
	return 0;
}

static void *must_alloc(size_t size)
{
	void *mem = aligned_alloc(64, (size + 63) / 64 * 64);

	if (!mem)
		abort();
	memset(mem, 0, size);
	return mem;
}

static void must(int rc, const char *what)
{
	if (!rc)
		return;
	fprintf(stderr, "service_cost: %s: %s\n", what, strerror(-rc));
	exit(1);
}

/* ---- a daemon without its main thread ---- */

static struct homad_port *add_port(struct homad *d, struct nic *nic,
				   const char *name)
{
	struct homad_port *port = &d->ports[d->num_ports];

	port->index = d->num_ports++;
	port->nic = nic;
	port->info = nic ? nic_info(nic) : NULL;
	port->tx_at = HOMA_NEVER;
	snprintf(port->name, sizeof(port->name), "%s", name);
	port->link = must_alloc(homa_link_size(1024));
	homa_link_init(port->link, d->engine, 0, nic ? MTU : 65535, 1024);
	return port;
}

static void daemon_start(struct homad *d, struct nic *nic, u64 seed)
{
	struct homa_seeds seeds;

	homad_config_default(&d->config);
	homad_copies_limit(d);
	d->num_threads = d->num_active = 1;
	d->dead_fd = -1;
	d->limits = (struct homa_limits){
		.shards = 1,
		.buckets = 16384,
		.tombstones = 65536,
		.sock_priv = sizeof(struct homad_app *),
		.rpc_priv = sizeof(struct homad_rpc),
	};
	d->engine = must_alloc(homa_engine_size(&d->limits));
	homa_seeds_fixed(&seeds, seed);
	must(homa_engine_init(d->engine, &d->limits, &d->config.params, &seeds, 0),
	     "engine");
	must(homad_thread_make(d, 0), "thread");
	if (nic) {
		struct homad_port *port = add_port(d, nic, "memory");

		must(homad_thread_serve(d->threads[0], port), "port");
	}
	d->local = add_port(d, NULL, "local");
}

/* Every destination is @addr, over the first port: no routing table is asked. */
static void know(struct homad *d, const struct homa_addr *addr)
{
	struct homad_dests *dests = &d->threads[0]->dests;
	u32 i;

	for (i = 0; i < HOMAD_DEST_SETS; i++) {
		struct homad_dest *dest = &dests->sets[i][0];

		dest->addr = dest->way = *addr;
		dest->port = &d->ports[0];
		dest->checked = our_time;
	}
}

/* ---- applications ---- */

static void attach(struct program *p, struct homad *d, u16 port)
{
	struct homad_app *app = &p->app;
	struct homad_bind bind = { .app = app, .port = port };
	u32 i;

	app->id = port;
	app->bytes = &p->bytes;
	app->id_key[0] = 1 + port;
	app->queues = must_alloc(sizeof(struct homa_shm_queues));
	app->pool = must_alloc(POOL_BYTES);
	app->pool_bytes = POOL_BYTES;
	app->seg[0].base = must_alloc(DATA_BYTES);
	app->seg[0].bytes = DATA_BYTES;
	app->num_segs = 1;
	app->wake_fd = app->ready_fd = -1;
	app->kick_fd = eventfd(0, EFD_CLOEXEC);
	app->max_rpcs = RPCS;
	must(homad_session_open(d->threads[0], app), "attachment");
	if (port)
		must(homad_session_bind(d->threads[0], &bind), "port");
	for (i = 0; i < RPCS; i++)
		p->free[p->num_free++] = (u16)i;
}

static void submit(struct program *p, const struct homa_sqe *sqe)
{
	struct homa_shm_queues *q = (struct homa_shm_queues *)p->app.queues;

	q->sqe[0][p->sq_tail++ % HOMA_SHM_SQ_ENTRIES] = *sqe;
	__atomic_store_n(&q->h.sq[0].tail, p->sq_tail, __ATOMIC_RELEASE);
}

static void request(struct program *p)
{
	struct homa_sqe sqe = {
		.op = HOMA_SQE_REQUEST,
		.flags = HOMA_SQE_COPY | HOMA_SQE_NUMBERED,
		.port = SERVER_PORT,
		.length = MESSAGE,
	};
	u16 slot = p->free[--p->num_free];

	memcpy(sqe.ip, p->peer.ip, sizeof(sqe.ip));
	sqe.token = ++p->uses << 16 | slot;
	submit(p, &sqe);
	p->in_flight++;
}

static void release(struct program *p, const struct homa_cqe *cqe)
{
	struct homa_shm_queues *q = (struct homa_shm_queues *)p->app.queues;
	u32 i;

	for (i = 0; i < cqe->num_pages; i++)
		q->released[p->release_tail++ % HOMA_SHM_RELEASES] =
			cqe->pages[i];
	__atomic_store_n(&q->h.release.tail, p->release_tail, __ATOMIC_RELEASE);
}

static void complete(struct program *p, const struct homa_cqe *cqe)
{
	struct homa_sqe sqe = {
		.op = HOMA_SQE_REPLY,
		.flags = HOMA_SQE_COPY,
		.length = MESSAGE,
		.token = cqe->token,
	};

	release(p, cqe);
	if (cqe->kind == HOMA_CQE_REQUEST) {
		submit(p, &sqe);
		return;
	}
	p->failed += cqe->kind != HOMA_CQE_RESPONSE;
	p->free[p->num_free++] = (u16)cqe->token;
	p->in_flight--;
	p->done++;
}

static void run_program(struct program *p, u32 outstanding)
{
	struct homa_shm_queues *q = (struct homa_shm_queues *)p->app.queues;
	u32 tail = __atomic_load_n(&q->h.cq.tail, __ATOMIC_ACQUIRE);

	while (p->cq_head != tail)
		complete(p, &q->cqe[p->cq_head++ % HOMA_SHM_CQ_ENTRIES]);
	__atomic_store_n(&q->h.cq.head, p->cq_head, __ATOMIC_RELEASE);
	while (p->in_flight < outstanding)
		request(p);
}

/* ---- the run ---- */

static void round_of(struct homad *d)
{
	if (counting)
		CALLGRIND_TOGGLE_COLLECT;
	homad_round(d->threads[0]);
	if (counting)
		CALLGRIND_TOGGLE_COLLECT;
}

static void run_until(u32 done, u32 outstanding, bool local)
{
	u64 limit = our_time + 60000000000u;

	while (client.done < done) {
		run_program(&client, outstanding);
		round_of(&daemons[0]);
		if (!local)
			round_of(&daemons[1]);
		run_program(&server, 0);
		if (!local)
			round_of(&daemons[1]);
		round_of(&daemons[0]);
		if (our_time > limit) {
			fprintf(stderr, "service_cost: RPCs do not end\n");
			exit(1);
		}
	}
}

static void start(bool local)
{
	struct nic_memory_config config = { .seed = 1, .mtu = MTU };
	struct homa_addr addr[2] = { 0 };
	struct nic_memory *link;
	struct nic *nic[2];
	int i;

	homa_plat_alone = true;
	must(nic_memory_create(&link, &config), "link");
	for (i = 0; i < 2; i++) {
		addr[i].ip[10] = addr[i].ip[11] = 0xff;
		addr[i].ip[12] = 10;
		addr[i].ip[15] = (u8)(i + 1);
		must(nic_memory_attach(link, &addr[i], &nic[i]), "nic");
		daemon_start(&daemons[i], nic[i], (u64)(1 + i));
	}
	know(&daemons[0], &addr[1]);
	know(&daemons[1], &addr[0]);
	attach(&client, &daemons[0], 0);
	attach(&server, &daemons[local ? 0 : 1], SERVER_PORT);
	if (!local)
		client.peer = addr[1];
}

static int trace(u32 outstanding, bool local)
{
	start(local);
	run_until(WARM_UP, outstanding, local);
	counting = true;
	run_until(WARM_UP + TIMED, outstanding, local);
	printf("%u %u\n", client.done - WARM_UP, client.failed);
	return client.failed > 0;
}

/* Turns of an attachment that uses @rings submission rings, with nothing in any of them. */
static int look(u32 rings)
{
	struct homad_thread *t;
	u32 i, found = 0;

	start(true);
	t = daemons[0].threads[0];
	client.app.rings_bell = true;
	homad_unpoll_app(t, &server.app);
	client.app.queues->sqs = rings;
	/* The first look after an attachment began is not like the others. */
	homad_commands(t);
	CALLGRIND_TOGGLE_COLLECT;
	for (i = 0; i < TIMED; i++)
		found += (u32)homad_commands(t);
	CALLGRIND_TOGGLE_COLLECT;
	printf("%u %u\n", TIMED, found);
	return found > 0;
}

static int measure(const char *argument, const char *profile, bool misses,
		   double *cost)
{
	unsigned int rpcs, failed;
	char line[128];
	double sum;
	int rc;

	if (misses)
		rc = bench_misses(argument, profile, "service_cost.c", line,
				  sizeof(line), &sum);
	else
		rc = bench_callgrind(argument, profile, "service_cost.c", line,
				     sizeof(line), &sum);
	if (rc || sscanf(line, "%u %u", &rpcs, &failed) != 2 || failed)
		return 1;
	*cost = sum / rpcs;
	return 0;
}

static int usage(void)
{
	fprintf(stderr,
		"usage: service_cost [--json FILE] [--profile FILE [--local | --one | --look] [--misses]]\n"
		"  --profile keeps callgrind's output for callgrind_annotate: of 64 RPCs\n"
		"  between two daemons, --one: one at a time, --local: within one daemon,\n"
		"  --look: of turns of an attachment with 8 rings that has nothing to say;\n"
		"  --misses: with the misses of a cache of 32 KiB\n");
	return 2;
}

static int measure_all(const char *json_file)
{
	static const struct {
		const char *argument, *name, *text;
		bool misses;
	} cases[] = {
		{ "--run 64", "rate", "RPC: 64 outstanding, two daemons", false },
		{ "--run 1", "one", "RPC: one at a time, two daemons", false },
		{ "--run-local 64", "local", "RPC: 64 outstanding, one daemon",
		  false },
		{ "--run-look 1", "look_1",
		  "turn without work: one submission ring", false },
		{ "--run-look 8", "look_8",
		  "turn without work: eight submission rings", false },
		{ "--run 64", "misses", "RPC: 64 outstanding, two daemons", true },
		{ "--run 1", "misses_one", "RPC: one at a time, two daemons",
		  true },
	};
	cJSON *json = cJSON_CreateObject();
	char err[200];
	int ret = 0;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]) && !ret; i++) {
		double cost;

		ret = measure(cases[i].argument, NULL, cases[i].misses, &cost);
		if (ret)
			break;
		printf("%6.0f %s per %s\n", cost,
		       cases[i].misses ? "misses of the first cache" :
					 "instructions",
		       cases[i].text);
		homa_json_round(json, cases[i].name, cost, 1);
	}
	if (!ret && json_file)
		ret = homa_json_write(json, json_file, err, sizeof(err));
	if (ret > 0 && json_file)
		fprintf(stderr, "service_cost: %s\n", err);
	cJSON_Delete(json);
	return ret != 0;
}

int main(int argc, char **argv)
{
	const char *json = NULL, *profile = NULL, *argument = "--run 64";
	bool misses = false;
	double cost;
	int i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--run") && i + 1 < argc)
			return trace((u32)atoi(argv[i + 1]), false);
		if (!strcmp(argv[i], "--run-local") && i + 1 < argc)
			return trace((u32)atoi(argv[i + 1]), true);
		if (!strcmp(argv[i], "--run-look") && i + 1 < argc)
			return look((u32)atoi(argv[i + 1]));
		if (!strcmp(argv[i], "--json") && i + 1 < argc)
			json = argv[++i];
		else if (!strcmp(argv[i], "--profile") && i + 1 < argc)
			profile = argv[++i];
		else if (!strcmp(argv[i], "--misses"))
			misses = true;
		else if (!strcmp(argv[i], "--one"))
			argument = "--run 1";
		else if (!strcmp(argv[i], "--local"))
			argument = "--run-local 64";
		else if (!strcmp(argv[i], "--look"))
			argument = "--run-look 8";
		else
			return usage();
	}
	if (!profile)
		return measure_all(json);
	if (measure(argument, profile, misses, &cost))
		return 1;
	printf("%.0f %s for each; now callgrind_annotate %s\n", cost,
	       misses ? "misses" : "instructions", profile);
	return 0;
}
