// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * homad's fast path with the memory of an application that the input writes.
 * The input is a script: words of the rings and headers, commands with any
 * field, message bytes, kicks, time, binding, a new pool, shutdown, eviction
 * and a new start. A second application, which does everything right, lives in
 * the same daemon; a nic leads to a network where nobody answers, or where the
 * input makes up packets.
 *
 * Whatever the first one did: an echo of the second one with itself works and
 * has its content, and when both are gone the engine holds nothing of theirs.
 * Each piece of shared memory is an allocation of its own, so that ASan sees
 * every access beside it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "fuzz_clock.h"
#include "log.h"
#include "nic_memory.h"
#include "route.h"
#include "service.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);
int LLVMFuzzerInitialize(int *argc, char ***argv);

#define MUST(cond)                        \
	do {                              \
		if (!(cond))              \
			__builtin_trap(); \
	} while (0)

#define RPCS 16u /* the last one: of the good one to the other */
#define EVIL_POOL (3u << HOMA_BPAGE_SHIFT)
#define GOOD_POOL (32u << HOMA_BPAGE_SHIFT)
#define DATA (160u << 10)
#define GOOD_PORT 77
#define EVIL_PORT 78
#define WIRE 7 /* interface index of the nic */
#define MAX_OPS 400
#define ROUND_NS 2000u
#define MAX_ROUNDS 20000

u64 fuzz_clock;

enum op {
	OP_ROUNDS,
	OP_COMMAND,
	OP_POKE,
	OP_INDEX,
	OP_CONSUME,
	OP_RELEASE,
	OP_BYTES,
	OP_TIME,
	OP_BIND,
	OP_POOL,
	OP_SHUTDOWN,
	OP_RESTART,
	OP_PACKET,
	OP_ASK_EVIL,
	OP_REPLY,
	OP_BURST,
	OPS,
};

struct script {
	const u8 *at, *end;
};

/**
 * struct side - an application
 * @tail, @head: its submission ring 0 and completion ring, as it believes.
 * @released: of the release ring.
 * @open: attached.
 * @asking: has an RPC to the other one.
 */
struct side {
	struct homad_app app;
	u32 tail, head, released;
	u32 serial;
	bool open, asking;
};

static struct homad d;
static struct nic_memory *network;
static struct nic *outside;
static struct side evil, good;
static u64 inputs, handled;

/* Commands count like packets here. */
static void report(void)
{
	fprintf(stderr,
		"%llu inputs, %llu packets and commands, %.1f s of processor time\n",
		(unsigned long long)inputs, (unsigned long long)handled,
		(double)clock() / CLOCKS_PER_SEC);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	atexit(report);
	return 0;
}

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

/* ---- the script ---- */

static u32 byte(struct script *s)
{
	return s->at < s->end ? *s->at++ : 0;
}

static u32 word(struct script *s)
{
	u32 low = byte(s);

	return low | byte(s) << 8;
}

/* Mostly small, sometimes at an edge, sometimes anything. */
static u32 number(struct script *s)
{
	static const u32 edges[] = { 0,		 1,	     4096,
				     4097,	 65535,	     65536,
				     DATA - 1,	 DATA,	     1000000,
				     1000001,	 0x7fffffff, 0x80000000,
				     0xfffffffe, 0xffffffff };
	u32 how = byte(s);

	if (how < 128)
		return how;
	if (how < 200)
		return edges[how % (sizeof(edges) / sizeof(edges[0]))];
	return word(s) | word(s) << 16;
}

/* ---- the daemon ---- */

static void *aligned(size_t size)
{
	void *mem = aligned_alloc(64, (size + 63) / 64 * 64);

	MUST(mem);
	memset(mem, 0, size);
	return mem;
}

static void add_port(const char *name, struct nic *nic)
{
	struct homad_port *port = &d.ports[d.num_ports];

	memset(port, 0, sizeof(*port));
	port->link = aligned(homa_link_size(64));
	port->nic = nic;
	port->info = nic ? nic_info(nic) : NULL;
	port->index = d.num_ports++;
	port->tx_at = HOMA_NEVER;
	port->ifindex = nic ? WIRE : 0;
	memcpy(port->name, name, strlen(name) + 1);
	homa_link_init(port->link, d.engine, 0, nic ? 1500 : 65535, 64);
}

static void start(void)
{
	static const struct nic_memory_config link = { .seed = 1 };
	struct homa_addr here = { .ip = { [10] = 0xff, 0xff, 10, 0, 0, 1 } };
	struct homa_addr there = { .ip = { [10] = 0xff, 0xff, 10, 0, 0, 2 } };
	struct nic *nic;

	memset(&d, 0, sizeof(d));
	homa_plat_alone = true;
	homa_params_default(&d.config.params);
	d.config.params.max_rpcs = 2000;
	d.config.params.max_peers = 1000;
	d.config.params.timeout_us = 100000;
	d.config.spin_us = 50;
	d.limits.shards = 1;
	d.limits.buckets = d.limits.tombstones = 256;
	d.limits.sock_priv = sizeof(struct homad_app *);
	d.limits.rpc_priv = sizeof(struct homad_rpc);
	d.num_threads = d.num_active = 1;
	d.dead_fd = eventfd(0, EFD_NONBLOCK);
	d.engine = aligned(homa_engine_size(&d.limits));
	MUST(!homa_engine_init(d.engine, &d.limits, &d.config.params, 1,
			       fuzz_clock));
	MUST(!nic_memory_create(&network, &link));
	MUST(!nic_memory_attach(network, &here, &nic));
	MUST(!nic_memory_attach(network, &there, &outside));
	add_port("wire", nic);
	add_port("local", NULL);
	d.local = &d.ports[1];
	MUST(!homad_thread_make(&d, 0));
	d.threads[0]->active = true;
	MUST(!homad_thread_serve(d.threads[0], &d.ports[0]));
}

static void stop(void)
{
	const struct homad_counters *c = &d.threads[0]->counters;

	inputs++;
	handled += c->commands + c->local_packets + c->completions;
	homad_thread_free(d.threads[0]);
	nic_close(d.ports[0].nic);
	nic_close(outside);
	nic_memory_destroy(network);
	free(d.ports[0].link);
	free(d.ports[1].link);
	free(d.engine);
	close(d.dead_fd);
}

/* What reaches the network ends there. */
static void swallow(void)
{
	struct nic_rx rx[32];
	int n;

	while ((n = nic_rx(outside, rx, 32)) > 0)
		nic_rx_release(outside, rx, n);
}

static void rounds(u32 n)
{
	while (n--) {
		fuzz_clock += ROUND_NS;
		homad_round(d.threads[0]);
		swallow();
	}
}

/* ---- applications ---- */

/* The kernel's clearing of fresh pages would be most of the work: what is not
 * read before it is written is kept from one input to the next. */
static void attach(struct side *s, u32 pool)
{
	struct homad_app *app = &s->app;
	struct homa_shm_queues *queues = app->queues;
	u8 *old_pool = app->pool, *data = app->seg[0].base;

	if (old_pool && app->pool_bytes != pool) {
		free(old_pool);
		old_pool = NULL;
	}
	memset(s, 0, sizeof(*s));
	app->id = 1;
	app->queues = queues ? queues : aligned(sizeof(*app->queues));
	memset(app->queues, 0, sizeof(*app->queues));
	app->pool = old_pool ? old_pool : aligned(pool);
	app->pool_bytes = pool;
	app->seg[0].base = data ? data : aligned(DATA);
	app->seg[0].bytes = DATA;
	app->num_segs = 1;
	app->max_rpcs = RPCS;
	app->wake_fd = app->ready_fd = -1;
	app->kick_fd = eventfd(0, EFD_NONBLOCK);
	MUST(app->kick_fd >= 0);
	app->queues->h.sqs = 1;
	MUST(!homad_call(d.threads[0], homad_session_open, app));
	s->open = true;
}

static void detach(struct side *s)
{
	struct homad_app *app = &s->app;
	u32 i;

	homad_call(d.threads[0], homad_session_close, app);
	for (i = 0; i < MAX_ROUNDS && app->phase != HOMAD_APP_DEAD; i++) {
		rounds(1);
		fuzz_clock += 100000;
	}
	MUST(app->phase == HOMAD_APP_DEAD);
	MUST(app->rpcs == 0);
	d.dead = NULL;
	homad_session_free(app);
	close(app->kick_fd);
	s->open = false;
}

static void push(struct side *s, const struct homa_sqe *sqe)
{
	struct homa_shm_queues *q = s->app.queues;

	q->sqe[0][s->tail++ & (HOMA_SHM_SQ_ENTRIES - 1)] = *sqe;
	q->h.sq[0].tail = s->tail;
	/* As a kick does. */
	homad_poll_app(d.threads[0], &s->app);
}

static struct homa_sqe request(struct side *s, u16 port, u32 length)
{
	struct homa_sqe sqe = {
		.op = HOMA_SQE_REQUEST,
		.flags = length <= HOMA_SHM_COPY_MAX ? HOMA_SQE_COPY : 0,
		.port = port,
		.length = length,
		.ip = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
		.token = (u64)(s->serial / (RPCS - 1) + 1) << 16 |
			 s->serial % (RPCS - 1),
	};

	s->serial++;
	return sqe;
}

static bool next(struct side *s, struct homa_cqe *cqe)
{
	struct homa_shm_queues *q = s->app.queues;

	if (q->h.cq.tail == s->head)
		return false;
	*cqe = q->cqe[s->head++ & (HOMA_SHM_CQ_ENTRIES - 1)];
	q->h.cq.head = s->head;
	homad_poll_app(d.threads[0], &s->app);
	return true;
}

static void release(struct side *s, const u32 *pages, u32 n)
{
	struct homa_shm_queues *q = s->app.queues;

	while (n--)
		q->released[s->released++ & (HOMA_SHM_RELEASES - 1)] = *pages++;
	q->h.release.tail = s->released;
	homad_poll_app(d.threads[0], &s->app);
}

static void bind_to(struct side *s, u16 port)
{
	struct homad_bind bind = { &s->app, port };

	homad_call(d.threads[0], homad_session_bind, &bind);
}

/* The good one, also answering what the other asks it; true: its response. */
static bool serve(u32 length, u8 mark)
{
	struct homa_cqe cqe;
	struct homa_sqe sqe;
	bool mine = false;
	u32 i;

	while (next(&good, &cqe)) {
		if (cqe.kind != HOMA_CQE_REQUEST && cqe.kind != HOMA_CQE_FREE &&
		    (cqe.token & 0xffff) == RPCS - 1) {
			MUST(good.asking && cqe.num_pages <= HOMA_SHM_PAGES);
			good.asking = false;
		} else if (cqe.kind == HOMA_CQE_RESPONSE) {
			MUST(cqe.length == length);
			MUST(cqe.num_pages ==
			     (length - 1) / HOMA_BPAGE_SIZE + 1);
			for (i = 0; i < length; i += 97)
				MUST(good.app.pool
					     [cqe.pages[i >> HOMA_BPAGE_SHIFT] +
					      (i & (HOMA_BPAGE_SIZE - 1))] ==
				     mark);
			mine = true;
		} else if (cqe.kind == HOMA_CQE_REQUEST) {
			/* The same memory is sent again: an echo of our own. */
			sqe = (struct homa_sqe){
				.op = HOMA_SQE_REPLY,
				.length = length,
				.token = cqe.token,
			};
			push(&good, &sqe);
		} else {
			MUST(cqe.kind == HOMA_CQE_FREE);
		}
		if (cqe.kind != HOMA_CQE_FREE)
			release(&good, cqe.pages, cqe.num_pages);
	}
	return mine;
}

static void good_works(u32 length)
{
	u8 mark = (u8)(length * 7 + 1);
	struct homa_sqe sqe;
	bool done = false;
	u32 i;

	/* Answers to the other one are still being sent from there; its
	 * contents are its own affair. */
	memset(good.app.seg[0].base, mark, length);
	sqe = request(&good, GOOD_PORT, length);
	push(&good, &sqe);
	for (i = 0; i < MAX_ROUNDS && !done; i++) {
		rounds(1);
		fuzz_clock += 50000;
		done = serve(length, mark);
	}
	MUST(done);
	MUST(!good.app.evicted && good.app.phase == HOMAD_APP_OPEN);
}

/* ---- what the input can do ---- */

static void command(struct script *s)
{
	struct homa_sqe sqe = request(&evil, GOOD_PORT, 1 + byte(s) * 300);
	u32 spoil = byte(s);

	if (spoil & 1)
		sqe.port = spoil & 2 ? EVIL_PORT : (u16)word(s);
	if (spoil & 4)
		sqe.ip[15] = (u8)byte(s);
	if (spoil & 8)
		sqe.op = (u8)(byte(s) % 5);
	if (spoil & 16)
		sqe.token = (u64)byte(s) << 16 | byte(s) % (RPCS + 1);
	if (spoil & 32)
		sqe.flags = (u8)byte(s);
	if (spoil & 64)
		sqe.length = number(s);
	if (spoil & 128) {
		sqe.offset = number(s);
		sqe.segment = (u16)(byte(s) > 250 ? word(s) : 0);
		sqe.encap = (u16)(byte(s) > 200 ? word(s) : 0);
	}
	push(&evil, &sqe);
}

static void poke(struct script *s)
{
	u8 *q = (u8 *)evil.app.queues;
	u32 at = word(s) * 5 % sizeof(*evil.app.queues);
	u32 n = byte(s) % 64;

	/* Half of the time where it matters. */
	if (byte(s) & 1)
		at %= sizeof(struct homa_shm_header);
	while (n-- && at < sizeof(*evil.app.queues))
		q[at++] = (u8)byte(s);
}

static void set_index(struct script *s)
{
	struct homa_shm_header *h = &evil.app.queues->h;
	struct homa_shm_ring *ring = &h->sq[byte(s) % (HOMA_SHM_SQS + 2)];
	u32 *index = byte(s) & 1 ? &ring->tail : &ring->head;
	u32 how = byte(s);

	*index = how & 1 ? *index + (u32)(int8_t)byte(s) : number(s);
	if (how & 2)
		h->sqs = number(s);
	homad_poll_app(d.threads[0], &evil.app);
}

static void consume(struct script *s)
{
	struct homa_cqe cqe;
	u32 n = byte(s) % 32;

	while (n-- && next(&evil, &cqe)) {
		if (cqe.kind == HOMA_CQE_REQUEST && byte(s) & 1) {
			struct homa_sqe sqe = {
				.op = HOMA_SQE_REPLY,
				.length = 1 + byte(s),
				.token = cqe.token,
			};

			push(&evil, &sqe);
		}
		if (cqe.num_pages <= HOMA_SHM_PAGES && byte(s) & 3)
			release(&evil, cqe.pages, cqe.num_pages);
	}
}

static void change_pool(struct script *s)
{
	u32 pages = 1 + byte(s) % 8;
	struct homad_pool change = {
		.app = &evil.app,
		.pool = aligned((size_t)pages << HOMA_BPAGE_SHIFT),
		.bytes = (size_t)pages << HOMA_BPAGE_SHIFT,
		.pool_mem = aligned(homa_pool_size(pages)),
	};
	u8 *old = evil.app.pool;

	if (homad_call(d.threads[0], homad_session_pool, &change))
		free(change.pool);
	else
		free(old);
	free(change.pool_mem);
}

/* Anything, from the network, but not to the good one: it has no way to tell
 * a forged message from a true one, and its buffers are as many as they are. */
static void packet(struct script *s)
{
	static const u8 types[] = { 0x10, 0x10, 0x11, 0x12,
				    0x13, 0x14, 0x17, 0x18 };
	struct nic_tx tx = {
		.dst = { .ip = { [10] = 0xff, 0xff, 10, 0, 0, 1 } },
	};
	u8 bytes[256];
	u32 i, n = 28 + byte(s) % 200;

	for (i = 0; i < n; i++)
		bytes[i] = (u8)byte(s);
	if (byte(s) & 1) {
		homa_put_be16(bytes + 2, EVIL_PORT);
		bytes[11] = types[byte(s) % sizeof(types)];
		bytes[12] = 0x50;
	}
	if (homa_get_be16(bytes + 2) == GOOD_PORT)
		homa_put_be16(bytes + 2, EVIL_PORT);
	tx.hdr = bytes;
	tx.hdr_len = n;
	nic_tx(outside, &tx, 1);
}

/* It may answer, refuse, or never answer. */
static void ask_evil(struct script *s)
{
	struct homa_sqe sqe = request(&good, EVIL_PORT, 1 + byte(s));

	if (good.asking)
		return;
	good.asking = true;
	sqe.token = (u64)good.serial << 16 | (RPCS - 1);
	push(&good, &sqe);
}

static void step(struct script *s)
{
	struct homa_sqe sqe;
	u32 op = byte(s) % OPS, n;

	if (!evil.open)
		attach(&evil, EVIL_POOL);
	switch (op) {
	case OP_ROUNDS:
		rounds(1 + byte(s) % 8);
		break;
	case OP_COMMAND:
		command(s);
		break;
	case OP_POKE:
		poke(s);
		break;
	case OP_INDEX:
		set_index(s);
		break;
	case OP_CONSUME:
		consume(s);
		break;
	case OP_RELEASE:
		n = number(s);
		if (byte(s) & 1)
			n = n % 8 << HOMA_BPAGE_SHIFT;
		release(&evil, &n, 1);
		break;
	case OP_BYTES:
		memset(evil.app.seg[0].base, (int)byte(s), 4096);
		break;
	case OP_TIME:
		fuzz_clock += (u64)word(s) << (byte(s) % 16);
		break;
	case OP_BIND:
		bind_to(&evil, byte(s) & 1 ? EVIL_PORT : (u16)word(s));
		break;
	case OP_POOL:
		change_pool(s);
		break;
	case OP_SHUTDOWN:
		homad_call(d.threads[0], homad_session_shutdown, &evil.app);
		break;
	case OP_RESTART:
		detach(&evil);
		break;
	case OP_PACKET:
		packet(s);
		break;
	case OP_ASK_EVIL:
		ask_evil(s);
		break;
	case OP_REPLY:
		sqe = request(&evil, 0, 1 + byte(s));
		sqe.op = HOMA_SQE_REPLY;
		sqe.token = (u64)(byte(s) % 8) << 16 | byte(s) % RPCS;
		push(&evil, &sqe);
		break;
	case OP_BURST:
		for (n = byte(s); n; n--) {
			sqe = request(&evil,
				      byte(s) & 1 ? EVIL_PORT : GOOD_PORT,
				      1 + word(s));
			push(&evil, &sqe);
		}
		break;
	}
	serve(1, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct script s = { bytes, bytes + len };
	u32 ops = 0;

	fuzz_clock = 1000000000;
	start();
	attach(&good, GOOD_POOL);
	bind_to(&good, GOOD_PORT);
	while (s.at < s.end && ops++ < MAX_OPS)
		step(&s);
	good_works(1);
	good_works(100000);
	if (evil.open)
		detach(&evil);
	good_works(5000);
	detach(&good);
	MUST(homa_list_empty(&d.threads[0]->apps));
	MUST(homa_list_empty(&d.threads[0]->closing));
	stop();
	return 0;
}
