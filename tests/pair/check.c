/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What must hold, whatever the network did: every RPC ends, and when all have
 * ended and the last timers have run, no RPC, no pinned object, no receive page
 * and no gap record is left at any host.
 */
#include "harness.h"
#include "homa_impl.h"
#include "homa_look.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void (*pair_fail_hook)(const char *text);

void pair_fail(struct pair_world *w, const char *fmt, ...)
{
	char text[512];
	va_list args;
	int n;

	n = snprintf(text, sizeof(text), "PAIR_SEED=%llu at %.6f s: ",
		     (unsigned long long)w->cfg.seed, (double)w->now / 1e9);
	va_start(args, fmt);
	vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, args);
	va_end(args);
	if (getenv("PAIR_DUMP"))
		pair_dump(w);
	if (pair_fail_hook)
		pair_fail_hook(text);
	fprintf(stderr, "%s\n", text);
	abort();
}

u64 pair_host_metric(struct pair_host *host, enum homa_metric metric)
{
	return host->metrics[metric] + (host->up ? host->ctx.metrics[metric] : 0);
}

u64 pair_metric(struct pair_world *w, enum homa_metric metric)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < w->cfg.hosts; i++)
		sum += pair_host_metric(&w->hosts[i], metric);
	return sum;
}

u32 pair_count_state(struct pair_world *w, enum pair_state state)
{
	u32 i, n = 0;

	for (i = 0; i < w->num_rpcs; i++)
		n += w->book[i]->state == state;
	return n;
}

static void dump_rpc(const struct pair_rpc *r)
{
	static const char *const names[] = { "pending", "ok", "failed",
					     "aborted", "gone" };

	fprintf(stderr,
		"rpc %u id %llx: %u:%u -> %u:%u, %u/%u bytes, %s %d, executed %u at %.6f, replied %.6f, %.6f .. %.6f\n",
		r->index, (unsigned long long)r->handle.id, r->client,
		r->client_port, r->server, r->server_port, r->request_length,
		r->response_length, names[r->state], r->error, r->executed,
		(double)r->executed_at / 1e9, (double)r->replied_at / 1e9,
		(double)r->start / 1e9, (double)r->end / 1e9);
}

void pair_dump(struct pair_world *w)
{
	u32 i, j, shown = 0;

	for (i = 0; i < w->cfg.hosts; i++) {
		struct pair_host *h = &w->hosts[i];
		struct homa_counts c = { 0 };

		if (h->up)
			homa_engine_counts(h->engine, &c);
		fprintf(stderr,
			"host %u life %u: %u rpcs %u peers %u socks, memory %u rpcs %u peers %u ranges, pins %u\n",
			i, h->life, c.rpcs, c.peers, c.socks,
			h->live[PAIR_MEM_RPC], h->live[PAIR_MEM_PEER],
			h->live[PAIR_MEM_RANGE], h->pins);
		for (j = 0; j < PAIR_MAX_SOCKS; j++)
			if (h->socks[j].sock && h->socks[j].pool)
				fprintf(stderr,
					"  port %u: %u of %u pages free, %u with applications\n",
					h->socks[j].port,
					h->socks[j].pool->num_free,
					h->socks[j].region_pages,
					h->socks[j].pages_out);
		for (j = 0; j < HOMA_M_COUNT; j++)
			if (pair_host_metric(h, j))
				fprintf(stderr, "  %s %llu\n",
					homa_metric_table[j].name,
					(unsigned long long)pair_host_metric(h,
									     j));
	}
	for (i = 0; i < w->num_rpcs; i++)
		if (w->book[i]->state == PAIR_PENDING && shown++ < 20)
			dump_rpc(w->book[i]);
	for (i = 0; i < w->num_rpcs && shown < 40; i++)
		if (w->book[i]->state == PAIR_FAILED || w->book[i]->executed > 1) {
			dump_rpc(w->book[i]);
			shown++;
		}
}

/* Living RPCs of applications that never answer are not the engine's fault. */
bool pair_quiet(struct pair_world *w)
{
	struct homa_counts c;
	u32 i;

	if (w->pending)
		return false;
	for (i = 0; i < w->cfg.hosts; i++) {
		if (!w->hosts[i].up)
			continue;
		homa_engine_counts(w->hosts[i].engine, &c);
		if (c.rpcs || w->hosts[i].pins || w->hosts[i].rx.head)
			return false;
	}
	return true;
}

void pair_drain(struct pair_world *w, u64 limit)
{
	u64 end = w->now + limit;

	while (!pair_quiet(w)) {
		if (w->now >= end) {
			pair_dump(w);
			pair_fail(w, "not drained: %u of %u RPCs pending",
				  w->pending, w->num_rpcs);
		}
		pair_run_for(w, 10 * PAIR_MS);
	}
}

/* Every page of @s is free, out, or exactly one RPC's; promises add up. Returns the number of
 * RPCs. */
static u32 check_pages(struct pair_host *h, const struct pair_sock *s, bool exact)
{
	const struct homa_pool *pool = s->pool;
	u32 words = pool->num_pages * (HOMA_BPAGE_SIZE / 64 / 64);
	u32 i, out = 0, owed = 0, num_long = 0, gaps = 0, rpcs = 0;
	u64 *bits = malloc(words * sizeof(*bits));
	struct homa_list *pos;

	memcpy(bits, pool->out, words * sizeof(*bits));
	homa_list_for_each(pos, &s->sock->rpcs) {
		const struct homa_rpc *rpc =
			homa_list_entry(pos, struct homa_rpc, sock_rpcs);

		rpcs++;
		owed += rpc->owed;
		gaps += rpc->ranges.gaps;
		num_long += homa_list_linked(&rpc->holding) && rpc->num_pages > 1;
		pair_check(h->world,
			   !homa_list_linked(&rpc->holding) ||
				   rpc->state == HOMA_RPC_INCOMING,
			   "host %u: holds pages in state %u", h->index,
			   rpc->state);
		for (i = 0;
		     i < rpc->num_pages && rpc->flags & HOMA_RPC_OWN_PAGES; i++) {
			u32 granule = rpc->pages[i] / 64;

			if (rpc->pages[i] == HOMA_NO_PAGE)
				continue;
			pair_check(h->world,
				   granule / 64 < words &&
					   bits[granule / 64] >> granule % 64 & 1,
				   "host %u port %u: page %x is nobody's, or two RPCs'",
				   h->index, s->port, rpc->pages[i]);
			bits[granule / 64] &= ~(1ull << granule % 64);
		}
	}
	for (i = 0; i < words; i++)
		out += (u32)__builtin_popcountll(bits[i]);
	free(bits);
	/* RPCs that ended keep pages as long as somebody copies there. */
	pair_check(h->world,
		   out >= s->pages_out && (!exact || h->pins || h->hold_events ||
					   out == s->pages_out),
		   "host %u port %u: %u pages are out, applications have %u",
		   h->index, s->port, out, s->pages_out);
	pair_check(h->world,
		   gaps <= s->sock->gaps && (!exact || h->pins || h->hold_events ||
					     gaps == s->sock->gaps),
		   "host %u port %u: %llu gaps are counted, RPCs have %u",
		   h->index, s->port, (unsigned long long)s->sock->gaps, gaps);
	pair_check(h->world,
		   owed == s->sock->owed && num_long == s->sock->num_long,
		   "host %u port %u: %u pages promised, not %u, to %u messages, not %u",
		   h->index, s->port, s->sock->owed, owed, s->sock->num_long,
		   num_long);
	return rpcs;
}

u32 pair_check_pages(struct pair_host *h, bool exact)
{
	u32 i, rpcs = 0;

	for (i = 0; i < PAIR_MAX_SOCKS; i++)
		if (h->socks[i].open && h->socks[i].pool)
			rpcs += check_pages(h, &h->socks[i], exact);
	return rpcs;
}

static void audit_pool(struct pair_host *h, struct pair_sock *s)
{
	const struct homa_pool *pool = s->pool;
	u32 i, leased = 0;

	for (i = 0; i < HOMA_LEASES; i++)
		leased += pool->lease[i].used < HOMA_BPAGE_SIZE;
	pair_check(h->world, s->pages_out == 0, "test: pages not given back");
	pair_check(h->world, pool->num_free + leased >= pool->num_pages,
		   "host %u port %u: %u + %u leased of %u receive pages free",
		   h->index, s->port, pool->num_free, leased, pool->num_pages);
}

static void audit(struct pair_host *h)
{
	struct pair_world *w = h->world;
	struct homa_link_state state;
	struct homa_counts c;
	u32 i;

	h->ctx.now = pair_now(h);
	homa_engine_counts(h->engine, &c);
	homa_link_state(&h->ctx, h->link, &state);
	pair_check(w, !state.sending && !state.granting && !state.waiting,
		   "host %u: schedulers hold %u out, %u + %u in", h->index,
		   state.sending, state.granting, state.waiting);
	pair_check(w, h->live[PAIR_MEM_RPC] == h->ctx.spare_rpcs,
		   "host %u: %u RPC objects, %u spare: leaked", h->index,
		   h->live[PAIR_MEM_RPC], h->ctx.spare_rpcs);
	pair_check(w, h->live[PAIR_MEM_RANGE] == h->ctx.spare_ranges + c.once,
		   "host %u: %u ranges, %u spare, %u remember: leaked", h->index,
		   h->live[PAIR_MEM_RANGE], h->ctx.spare_ranges, c.once);
	pair_check(w, h->live[PAIR_MEM_PEER] == h->ctx.spare_peers + c.peers,
		   "host %u: %u peer objects, %u spare, %u known: leaked",
		   h->index, h->live[PAIR_MEM_PEER], h->ctx.spare_peers, c.peers);
	for (i = 0; i < PAIR_MAX_SOCKS; i++)
		if (h->socks[i].open && h->socks[i].pool)
			audit_pool(h, &h->socks[i]);
	pair_check_pages(h, true);
}

void pair_finish(struct pair_world *w)
{
	static const struct pair_faults none;
	u32 i;

	pair_drain(w, 200 * PAIR_S);
	/* What is still under way in the network must wake nothing up. */
	pair_run_for(w, 3 * PAIR_S);
	pair_faults_all(w, &none);
	pair_drain(w, 200 * PAIR_S);
	for (i = 0; i < w->cfg.hosts; i++)
		if (w->hosts[i].up && !w->hosts[i].hostile)
			audit(&w->hosts[i]);
	for (i = 0; i < w->num_rpcs; i++) {
		struct pair_rpc *rpc = w->book[i];

		pair_check(w,
			   rpc->executed <= 1 || rpc->may || w->corrupting ||
				   !pair_judged(w, rpc),
			   "rpc %u executed %u times", i, rpc->executed);
		pair_check(w, rpc->state != PAIR_PENDING, "rpc %u never ended",
			   i);
	}
	pair_world_free(w);
}
