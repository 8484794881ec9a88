/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a DATA packet costs in the engine: instructions of both ends, grants,
 * acks and timers included, for a W4 trace between two engines in virtual
 * time. The program runs itself under callgrind, which counts only between
 * the marks around engine calls, so the loop around them is free.
 *
 * The same is counted beside a crowd (crowd.h): 100,000 RPCs from 10,000 peers are open
 * at both ends. A table that does not grow, or a walk over one, would show.
 *
 * The host here is a plain one: AF_XDP-like, one packet per descriptor, receive
 * in batches of what arrived since the last poll, pools, no loss.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <valgrind/callgrind.h>

#include "callgrind.h"
#include "crowd.h"
#include "homa_engine.h"
#include "json.h"
#include "prng.h"
#include "workload.h"

#define RATE_MBPS 25000u
#define LATENCY_NS 5000u
#define POLL_NS 2000u /* how often a busy host looks at its NIC */
#define MTU 1500u
#define LOAD 0.8
#define RING 8192u
#define BATCH 32u
#define POOL_PAGES 2048u
#define SERVER_PORT 100
#define WARM_UP_RPCS 300u
#define TIMED_RPCS 1500u

struct packet {
	u64 at;
	u32 len;
	u8 prio;
	u8 hdr[96];
};

/* One end; its ring holds what is on its way to it. */
struct end {
	struct homa_engine *engine;
	struct homa_link *link;
	struct homa_ctx ctx;
	struct homa_sock *client, *server;
	struct homa_addr addr;
	struct packet *ring;
	u32 head, tail;
	u64 nic_free_at, deadline, tx_at, send_at, poll_at;
	struct homa_limits limits;
	struct homa_prng rng;
	u64 delivered, started, done, failed;
	u32 open; /* RPCs of the crowd */
};

static struct end ends[2];
static struct homa_workload workload;
static double gap_ns; /* between the RPCs of an end */
static bool counting;

/* Marks around every call into the engine. */
static inline void engine_enter(void)
{
	if (counting)
		CALLGRIND_TOGGLE_COLLECT;
}

static inline void engine_leave(void)
{
	if (counting)
		CALLGRIND_TOGGLE_COLLECT;
}

static void *must_alloc(size_t size)
{
	void *mem;

	if (posix_memalign(&mem, 64, size))
		abort();
	memset(mem, 0, size);
	return mem;
}

static void refill(struct end *e)
{
	struct homa_rpc *rpc;
	struct homa_peer *peer;

	/* What retires becomes a spare again, as in a real host. */
	while ((rpc = homa_retired_rpc(&e->ctx)))
		homa_ctx_reuse_rpc(&e->ctx, rpc);
	while ((peer = homa_retired_peer(&e->ctx)))
		homa_ctx_give_peer(&e->ctx, peer);
	while (e->ctx.spare_rpcs < 64)
		homa_ctx_give_rpc(&e->ctx, must_alloc(homa_rpc_size(&e->limits)));
	while (e->ctx.spare_peers < 4)
		homa_ctx_give_peer(&e->ctx,
				   must_alloc(homa_peer_size(&e->limits)));
	while (e->ctx.spare_ranges < 64)
		homa_ctx_give_range(&e->ctx, must_alloc(homa_range_size()));
	while (e->ctx.spare_segments < 4)
		homa_ctx_give_segment(&e->ctx, must_alloc(homa_segment_size()));
}

static void refill_end(void *arg)
{
	refill(arg);
}

static void end_init(struct end *e, u32 i, bool crowd)
{
	struct homa_params params;
	struct homa_seeds seeds;

	e->limits = (struct homa_limits){ .shards = 1,
					  .buckets = 1024,
					  .tombstones = 16384 };
	homa_params_default(&params);
	params.max_peers = 2 * CROWD_PEERS;
	e->engine = must_alloc(homa_engine_size(&e->limits));
	homa_seeds_fixed(&seeds, 100 + i);
	if (homa_engine_init(e->engine, &e->limits, &params, &seeds, 0))
		abort();
	homa_ctx_init(&e->ctx, e->engine, 0);
	e->link = must_alloc(homa_link_size(1024));
	homa_link_init(e->link, e->engine, RATE_MBPS, MTU, 1024);
	refill(e);
	e->client = must_alloc(homa_sock_size(&e->limits));
	e->server = must_alloc(homa_sock_size(&e->limits));
	if (homa_sock_open(&e->ctx, e->client) ||
	    homa_sock_open(&e->ctx, e->server) ||
	    homa_sock_bind(&e->ctx, e->server, SERVER_PORT) ||
	    homa_sock_set_pool(&e->ctx, e->client,
			       must_alloc(homa_pool_size(POOL_PAGES)),
			       POOL_PAGES) ||
	    homa_sock_set_pool(&e->ctx, e->server,
			       must_alloc(homa_pool_size(POOL_PAGES)), POOL_PAGES))
		abort();
	e->addr.ip[10] = e->addr.ip[11] = 0xff;
	e->addr.ip[12] = 10;
	e->addr.ip[15] = (u8)(i + 1);
	e->ring = must_alloc(RING * sizeof(*e->ring));
	e->tx_at = HOMA_NEVER;
	e->poll_at = HOMA_NEVER;
	homa_prng_seed(&e->rng, 1, i);
	e->open = crowd ? bench_crowd(&e->ctx, e->link, SERVER_PORT, refill_end,
				      e) :
			  0;
	if (e->open != (crowd ? CROWD_RPCS : 0))
		abort();
}

/* ---- applications ---- */

static double mean_gap_ns(void)
{
	struct homa_wire_format format = HOMA_WIRE_V4(MTU);
	/* Requests there, responses of the same size back: one of each per
	 * RPC and direction. */
	return 2 * homa_workload_wire_mean(&workload, &format) * 8000 /
	       RATE_MBPS / LOAD;
}

static void start_rpc(struct end *e, struct end *peer, u64 now)
{
	struct homa_send send = { .dst = peer->addr, .port = SERVER_PORT };
	struct homa_handle handle;
	struct homa_rpc *rpc;
	int err;

	send.length = homa_workload_size(&workload, homa_prng_double(&e->rng));
	send.available = send.length;
	send.cookie = send.length;
	e->ctx.now = now;
	engine_enter();
	err = homa_rpc_send(&e->ctx, e->client, e->link, &send, &handle, &rpc);
	engine_leave();
	if (err)
		abort();
	e->started++;
	e->send_at += 1 + (u64)homa_prng_exp(&e->rng, gap_ns);
}

static void take_events(struct end *e)
{
	struct homa_msg_info info;
	struct homa_event ev;
	struct homa_rpc *rpc;
	bool more;

	for (;;) {
		engine_enter();
		more = homa_event_next(&e->ctx, &ev);
		if (!more) {
			engine_leave();
			return;
		}
		if (homa_rx_take(&e->ctx, ev.handle, &info)) {
			engine_leave();
			continue;
		}
		if (info.num_pages)
			homa_pool_release(&e->ctx, ev.sock, info.pages,
					  info.num_pages);
		if (info.kind == HOMA_EV_REQUEST)
			homa_rpc_reply(&e->ctx, ev.handle, info.length,
				       info.length, &rpc);
		engine_leave();
		e->done += info.kind == HOMA_EV_RESPONSE;
		e->failed += info.kind == HOMA_EV_FAILED;
	}
}

/* ---- packets ---- */

static void receive(struct end *e, struct end *peer, u64 now)
{
	struct homa_rx_pkt rx[BATCH];
	u32 n = 0, i;

	memset(rx, 0, sizeof(rx));
	while (n < BATCH && e->head != e->tail &&
	       e->ring[e->head % RING].at <= now) {
		struct packet *p = &e->ring[e->head++ % RING];

		rx[n].data = p->hdr;
		rx[n].len = p->len;
		rx[n].prio = p->prio;
		rx[n].src = &peer->addr;
		n++;
	}
	if (!n)
		return;
	e->ctx.now = now;
	engine_enter();
	homa_rx(&e->ctx, e->link, rx, n);
	engine_leave();
	for (i = 0; i < n; i++) {
		u32 room;

		if (rx[i].verdict != HOMA_RX_DATA)
			continue;
		engine_enter();
		homa_rx_place(rx[i].rpc, rx[i].offset, &room);
		homa_rx_copied(&e->ctx, &rx[i]);
		engine_leave();
		e->delivered++;
	}
	engine_enter();
	homa_rx_flush(&e->ctx);
	engine_leave();
	take_events(e);
}

/* The first turn of the host's loop after @at. */
static u64 turn_after(u64 at)
{
	return at == HOMA_NEVER ? at : (at / POLL_NS + 1) * POLL_NS;
}

static void transmit(struct end *e, struct end *peer, u64 now)
{
	struct homa_tx_desc desc;
	enum homa_tx_result result;

	e->tx_at = HOMA_NEVER;
	e->ctx.tx_link = NULL;
	e->ctx.now = now;
	for (;;) {
		struct packet *p;

		engine_enter();
		result = homa_tx(&e->ctx, e->link, 1, &desc);
		engine_leave();
		if (result != HOMA_TX_PACKET)
			break;
		p = &peer->ring[peer->tail++ % RING];
		if (peer->tail - peer->head > RING)
			abort();
		memcpy(p->hdr, desc.hdr, desc.hdr_len);
		p->len = desc.hdr_len + (desc.rpc ? desc.length : 0);
		p->prio = desc.prio;
		if (e->nic_free_at < now)
			e->nic_free_at = now;
		e->nic_free_at += (p->len + 58ull) * 8000 / RATE_MBPS;
		p->at = e->nic_free_at + LATENCY_NS;
		engine_enter();
		homa_tx_done(&e->ctx, &desc, 0);
		engine_leave();
	}
	if (result == HOMA_TX_WAIT)
		e->tx_at = turn_after(desc.not_before);
	engine_enter();
	if (now >= e->deadline)
		e->deadline = homa_timer(&e->ctx, 0, 1000);
	engine_leave();
	refill(e);
}

static u64 next_poll(const struct end *e, u64 now)
{
	u64 at;

	if (e->head == e->tail)
		return HOMA_NEVER;
	at = e->ring[e->head % RING].at;
	return turn_after(at < now ? now : at);
}

static u64 min64(u64 a, u64 b)
{
	return a < b ? a : b;
}

static u64 step(u64 now, bool sending)
{
	u64 next = HOMA_NEVER;
	u32 i;

	for (i = 0; i < 2; i++) {
		struct end *e = &ends[i];

		e->poll_at = next_poll(e, now);
		next = min64(next, min64(e->poll_at, e->tx_at));
		if (e->deadline != HOMA_NEVER)
			next = min64(next, e->deadline);
		else if (e->head != e->tail)
			e->deadline = now;
		if (sending)
			next = min64(next, e->send_at);
	}
	if (next == HOMA_NEVER)
		next = now + 1000000;
	if (next <= now)
		next = now + 1;
	for (i = 0; i < 2; i++) {
		struct end *e = &ends[i], *peer = &ends[i ^ 1];

		if (sending && e->send_at <= next)
			start_rpc(e, peer, next);
		if (e->poll_at <= next)
			receive(e, peer, next);
		if (e->ctx.tx_link || e->tx_at <= next || e->deadline <= next)
			transmit(e, peer, next);
	}
	return next;
}

static int run_trace(bool crowd)
{
	u64 now = 1, started = 0, base = 0, sum = 0, limit;
	struct homa_counts counts[2];
	char err[200];
	u32 i;

	if (homa_workload_parse(&workload, "w4", HOMA_WORKLOAD_CUT, err,
				sizeof(err)))
		return 1;
	gap_ns = mean_gap_ns();
	for (i = 0; i < 2; i++)
		end_init(&ends[i], i, crowd);
	while (started < WARM_UP_RPCS + TIMED_RPCS) {
		if (!counting && started >= WARM_UP_RPCS) {
			counting = true;
			base = ends[0].delivered + ends[1].delivered;
		}
		now = step(now, true);
		started = ends[0].started + ends[1].started;
	}
	limit = now + 10000000000ull;
	do {
		now = step(now, false);
		for (i = 0; i < 2; i++)
			homa_engine_counts(ends[i].engine, &counts[i]);
	} while (counts[0].rpcs + counts[1].rpcs > ends[0].open + ends[1].open &&
		 now < limit);
	for (i = 0; i < 2; i++)
		sum += ends[i].ctx.metrics[HOMA_M_tx_grant] +
		       ends[i].ctx.metrics[HOMA_M_tx_ack] +
		       ends[i].ctx.metrics[HOMA_M_tx_need_ack];
	printf("%llu %llu %llu %llu %llu\n",
	       (unsigned long long)(ends[0].delivered + ends[1].delivered - base),
	       (unsigned long long)(ends[0].done + ends[1].done),
	       (unsigned long long)(ends[0].failed + ends[1].failed +
				    counts[0].rpcs + counts[1].rpcs -
				    ends[0].open - ends[1].open),
	       (unsigned long long)sum, (unsigned long long)now);
	return 0;
}

/* ---- under callgrind ---- */

static int usage(void)
{
	fprintf(stderr,
		"usage: engine_cost [--json FILE] [--profile FILE]\n"
		"  --profile keeps callgrind's output for callgrind_annotate\n");
	return 2;
}

/* A run's cost, instructions, and what it printed. */
struct run {
	double cost, packets, rpcs, failed, control, end_ns;
};

static int count_run(const char *argument, const char *profile, struct run *run)
{
	char line[256];

	if (bench_callgrind(argument, profile, "engine_cost.c", line,
			    sizeof(line), &run->cost))
		return -1;
	return sscanf(line, "%lf %lf %lf %lf %lf", &run->packets, &run->rpcs,
		      &run->failed, &run->control, &run->end_ns) == 5 ?
		       0 :
		       -1;
}

static int report(const char *path, const struct run *alone,
		  const struct run *crowd)
{
	cJSON *json = cJSON_CreateObject();
	char err[200];
	int ret;

	printf("%.0f instructions per DATA packet (%.0f packets, %.0f RPCs, %.3f grants and acks per packet)\n",
	       alone->cost / alone->packets, alone->packets, alone->rpcs,
	       alone->control / alone->packets);
	printf("%.0f beside %u RPCs from %u peers\n",
	       crowd->cost / crowd->packets, CROWD_RPCS, CROWD_PEERS);
	homa_json_round(json, "instructions_per_data_packet",
			alone->cost / alone->packets, 1);
	homa_json_round(json, "instructions_beside_crowd",
			crowd->cost / crowd->packets, 1);
	homa_json_round(json, "instructions", alone->cost, 0);
	homa_json_round(json, "data_packets", alone->packets, 0);
	homa_json_round(json, "rpcs", alone->rpcs, 0);
	homa_json_round(json, "failed", alone->failed + crowd->failed, 0);
	ret = path ? homa_json_write(json, path, err, sizeof(err)) : 0;
	if (ret)
		fprintf(stderr, "engine_cost: %s\n", err);
	cJSON_Delete(json);
	return ret || alone->failed + crowd->failed > 0;
}

static int measure(const char *json, const char *profile)
{
	struct run alone, crowd;

	if (count_run("--trace", profile, &alone) ||
	    count_run("--crowd", NULL, &crowd))
		return 1;
	return report(json, &alone, &crowd);
}

int main(int argc, char **argv)
{
	const char *json = NULL, *profile = NULL;
	int i;

	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--trace"))
			return run_trace(false);
		if (!strcmp(argv[i], "--crowd"))
			return run_trace(true);
		if (!strcmp(argv[i], "--json") && i + 1 < argc)
			json = argv[++i];
		else if (!strcmp(argv[i], "--profile") && i + 1 < argc)
			profile = argv[++i];
		else
			return usage();
	}
	return measure(json, profile);
}
