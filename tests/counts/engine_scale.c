/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Do several threads get more out of one engine than one does? Each thread has
 * a socket, a context and its own packets, and sends short and longer RPCs to
 * itself; they meet only inside the engine: RPC table, peers, and one link
 * with its two schedulers, as the threads of a daemon do. Everything that would
 * measure this program instead (queues, malloc) is private to its thread.
 *
 * Threads are not pinned; what counts is the ratio to one thread in the same
 * run, the best of three rounds each. Rates are per second of processor time
 * of each thread, added up, so that other programs on the machine do not count
 * as contention, while waiting for a lock does.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "homa_engine.h"
#include "json.h"

#define MAX_THREADS 16
#define SHARDS_PER_THREAD 16
#define RING 4096u
#define BATCH 16u
#define OUTSTANDING 32
#define LONG_BYTES 20000u /* every eighth message */
#define PORT 100
#define LIMBO 4096u
#define ROUNDS 3
#define ROUND_NS 400000000ull

struct packet {
	u32 len;
	u8 hdr[96];
};

struct worker {
	struct bench *bench;
	u32 index;
	struct homa_ctx ctx;
	struct homa_link *link;
	struct homa_sock *client, *server;
	struct homa_addr self;
	struct packet *ring;
	u32 head, tail;
	s32 open;  /* atomic: another thread may see an RPC of ours end */
	u64 loops; /* atomic */
	u64 deadline, count, packets, rpcs, cpu_ns;
	struct homa_rpc *limbo[LIMBO]; /* retired, perhaps still looked at */
	u32 num_limbo, num_seen;
	u64 seen[MAX_THREADS];
};

struct bench {
	struct homa_limits limits;
	struct homa_engine *engine;
	struct homa_link *link;
	u32 threads;
	int stop;
	struct worker worker[MAX_THREADS];
};

static u64 clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (u64)ts.tv_sec * 1000000000ull + (u64)ts.tv_nsec;
}

static u64 now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static void *must_alloc(size_t size)
{
	void *mem;

	if (posix_memalign(&mem, 64, size))
		abort();
	memset(mem, 0, size);
	return mem;
}

/* Where are the others in their loops? */
static void see_all(struct worker *w)
{
	u32 i;

	for (i = 0; i < w->bench->threads; i++)
		w->seen[i] = __atomic_load_n(&w->bench->worker[i].loops,
					     __ATOMIC_ACQUIRE);
}

/* Has everybody begun a new turn since? */
static bool all_passed(struct worker *w)
{
	u32 i;

	for (i = 0; i < w->bench->threads; i++)
		if (__atomic_load_n(&w->bench->worker[i].loops,
				    __ATOMIC_ACQUIRE) < w->seen[i] + 2)
			return false;
	return true;
}

static void refill(struct worker *w)
{
	struct homa_limits *l = &w->bench->limits;
	struct homa_rpc *rpc;
	struct homa_peer *peer;
	u32 i;

	while (w->num_limbo < LIMBO && (rpc = homa_retired_rpc(&w->ctx))) {
		w->limbo[w->num_limbo++] = rpc;
	}
	/* Only those that were here when we looked around may go. */
	if (w->num_seen && all_passed(w)) {
		for (i = 0; i < w->num_seen; i++)
			homa_ctx_give_rpc(&w->ctx, w->limbo[i]);
		w->num_limbo -= w->num_seen;
		memmove(w->limbo, w->limbo + w->num_seen,
			w->num_limbo * sizeof(w->limbo[0]));
		w->num_seen = 0;
	}
	if (!w->num_seen && w->num_limbo) {
		w->num_seen = w->num_limbo;
		see_all(w);
	}
	while ((peer = homa_retired_peer(&w->ctx)))
		homa_ctx_give_peer(&w->ctx, peer);
	while (w->ctx.spare_rpcs < 64)
		homa_ctx_give_rpc(&w->ctx, must_alloc(homa_rpc_size(l)));
	while (w->ctx.spare_peers < 4)
		homa_ctx_give_peer(&w->ctx, must_alloc(homa_peer_size(l)));
	while (w->ctx.spare_ranges < 64)
		homa_ctx_give_range(&w->ctx, must_alloc(homa_range_size()));
}

static void send_one(struct worker *w)
{
	struct homa_send send = { .dst = w->self, .port = (u16)(PORT + w->index) };
	struct homa_handle handle;
	struct homa_rpc *rpc;

	send.length = ++w->count % 8 ? 100 : LONG_BYTES;
	send.available = send.length;
	send.cookie = w->index;
	if (!homa_rpc_send(&w->ctx, w->client, w->link, &send, &handle, &rpc))
		__atomic_fetch_add(&w->open, 1, __ATOMIC_RELAXED);
}

static void events(struct worker *w)
{
	struct homa_msg_info info;
	struct homa_event ev;
	struct homa_rpc *rpc;

	while (homa_event_next(&w->ctx, &ev)) {
		if (homa_rx_take(&w->ctx, ev.handle, &info))
			continue;
		if (info.kind == HOMA_EV_REQUEST) {
			homa_rpc_reply(&w->ctx, ev.handle, info.length,
				       info.length, &rpc);
		} else {
			__atomic_fetch_sub(&w->bench->worker[info.cookie].open,
					   1, __ATOMIC_RELAXED);
			w->rpcs++;
		}
	}
}

static void receive(struct worker *w)
{
	struct homa_rx_pkt rx[BATCH];
	u32 n = 0, i;

	while (n < BATCH && w->head != w->tail) {
		struct packet *p = &w->ring[w->head++ % RING];

		rx[n] = (struct homa_rx_pkt){ .data = p->hdr,
					      .len = p->len,
					      .src = &w->self };
		n++;
	}
	if (!n)
		return;
	homa_rx(&w->ctx, w->link, rx, n);
	for (i = 0; i < n; i++)
		if (rx[i].verdict == HOMA_RX_DATA) {
			homa_rx_copied(&w->ctx, &rx[i]);
			w->packets++;
		}
	homa_rx_flush(&w->ctx);
}

static void transmit(struct worker *w)
{
	struct homa_tx_desc desc;

	while (w->tail - w->head < RING &&
	       homa_tx(&w->ctx, w->link, 1, &desc) == HOMA_TX_PACKET) {
		/* It may be another thread's; the bytes say all there is. */
		struct packet *p = &w->ring[w->tail++ % RING];

		memcpy(p->hdr, desc.hdr, desc.hdr_len);
		p->len = desc.hdr_len + (desc.rpc ? desc.length : 0);
		homa_tx_done(&w->ctx, &desc, 0);
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct bench *b = w->bench;
	u32 i;

	while (!__atomic_load_n(&b->stop, __ATOMIC_RELAXED)) {
		w->ctx.now = now_ns();
		__atomic_fetch_add(&w->loops, 1, __ATOMIC_RELEASE);
		for (i = 0;
		     i < OUTSTANDING &&
		     __atomic_load_n(&w->open, __ATOMIC_RELAXED) < OUTSTANDING;
		     i++)
			send_one(w);
		transmit(w);
		receive(w);
		events(w);
		if (w->ctx.now >= w->deadline) {
			for (i = w->index; i < b->limits.shards; i += b->threads)
				homa_timer(&w->ctx, i, 100);
			w->deadline = w->ctx.now + 1000000;
		}
		refill(w);
	}
	w->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

static struct homa_sock *make_sock(struct worker *w, u16 port)
{
	struct homa_sock *sock = must_alloc(homa_sock_size(&w->bench->limits));

	if (homa_sock_open(&w->ctx, sock) ||
	    (port && homa_sock_bind(&w->ctx, sock, port)))
		abort();
	return sock;
}

static struct bench *bench_new(u32 threads, bool own_links)
{
	struct bench *b = must_alloc(sizeof(*b));
	struct homa_params params;
	struct homa_seeds seeds;
	u32 i;

	b->limits = (struct homa_limits){ .shards = 256,
					  .buckets = 64,
					  .tombstones = 65536 };
	b->threads = threads;
	homa_params_default(&params);
	b->engine = must_alloc(homa_engine_size(&b->limits));
	homa_seeds_fixed(&seeds, 7);
	if (homa_engine_init(b->engine, &b->limits, &params, &seeds, now_ns()))
		abort();
	for (i = 0; i < threads; i++) {
		struct worker *w = &b->worker[i];

		w->bench = b;
		w->index = i;
		if (!i || own_links) {
			b->link = must_alloc(homa_link_size(4096));
			homa_link_init(b->link, b->engine, 0, 1500, 4096);
		}
		w->link = b->link;
		homa_ctx_init(&w->ctx, b->engine, i);
		w->ctx.now = now_ns();
		w->self.ip[10] = w->self.ip[11] = 0xff;
		w->self.ip[12] = 10;
		w->self.ip[15] = (u8)(own_links ? i + 1 : 1);
		w->ring = must_alloc(RING * sizeof(*w->ring));
		refill(w);
		w->client = make_sock(w, 0);
		w->server = make_sock(w, (u16)(PORT + i));
	}
	return b;
}

/* DATA packets per second. Memory is left to the end of the program. */
static double round_of(u32 threads, bool own_links)
{
	struct bench *b = bench_new(threads, own_links);
	struct timespec pause = { 0, ROUND_NS };
	pthread_t ids[MAX_THREADS];
	double rate = 0;
	u32 i;

	for (i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, work, &b->worker[i]))
			abort();
	nanosleep(&pause, NULL);
	__atomic_store_n(&b->stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	for (i = 0; i < threads; i++)
		rate += (double)b->worker[i].packets * 1e9 /
			(double)b->worker[i].cpu_ns;
	return rate;
}

static double best_of(u32 threads, bool own_links)
{
	double best = 0;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		double rate = round_of(threads, own_links);

		if (rate > best)
			best = rate;
	}
	return best;
}

int main(int argc, char **argv)
{
	u32 cores = (u32)sysconf(_SC_NPROCESSORS_ONLN), threads;
	const char *path = NULL;
	cJSON *json = cJSON_CreateObject(), *rows;
	double one = 0, last = 0, each = 0;
	char err[200];
	int i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--json") && i + 1 < argc) {
			path = argv[++i];
		} else {
			fprintf(stderr, "usage: engine_scale [--json FILE]\n");
			return 2;
		}
	}
	if (cores > MAX_THREADS)
		cores = MAX_THREADS;
	rows = cJSON_AddArrayToObject(json, "threads");
	for (threads = 1; threads <= cores; threads++) {
		cJSON *row = cJSON_CreateObject();

		last = best_of(threads, false);
		each = best_of(threads, true);
		if (threads == 1)
			one = last > each ? last : each;
		printf("%2u threads: %.2f M packets/s on one link (x%.2f), %.2f M on a link each (x%.2f)\n",
		       threads, last / 1e6, last / one, each / 1e6, each / one);
		homa_json_round(row, "threads", threads, 0);
		homa_json_round(row, "packets_per_second", last, 0);
		homa_json_round(row, "packets_per_second_own_links", each, 0);
		cJSON_AddItemToArray(rows, row);
	}
	homa_json_round(json, "speedup", last / one, 3);
	homa_json_round(json, "speedup_own_links", each / one, 3);
	i = path ? homa_json_write(json, path, err, sizeof(err)) : 0;
	if (i)
		fprintf(stderr, "engine_scale: %s\n", err);
	cJSON_Delete(json);
	return i ? 1 : 0;
}
