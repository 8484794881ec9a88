/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What must hold in a world, besides what the harness looks at by itself (each byte,
 * each execution, each end): nobody has more than his share while faults go on, and
 * when they have stopped everything ends within SETTLE_NS, after which each host
 * serves each other one as if nothing had been.
 */
#include "world.h"

#include "homa_impl.h"
#include "homa_look.h"

/* Virtual time from the end of all faults to the end of all RPCs, at most: six timeouts
 * of the hosts of user space, and what the slowest application takes to take a request,
 * to answer (see load.c) and to take the response. */
#define SETTLE_NS (3 * PAIR_S + 3 * PAIR_S)
#define PROBE_NS (5 * PAIR_S)
#define SPARES 64 /* objects that hosts keep ready, or have yet to free */
#define ROUNDING 1

static void check_owner(struct world *world, struct pair_host *h, u32 who)
{
	const struct homa_params *p = &h->engine->params;
	u64 backlog = world->owners[h->index][who].backlog;
	u64 have = world->owners[h->index][who].rpcs;
	u64 most = p->max_rpcs / 2 + ROUNDING;
	/* One that was delivered whole waits although its RPC may have ended. */
	u32 part = world->w->cfg.deliver_whole ? 2 : 3;

	/* As much as is left for others, when it took the last one. */
	pair_check(world->w, have <= most, "host %u: user %u has %llu RPCs of %u",
		   h->index, who, (unsigned long long)have, p->max_rpcs);
	pair_check(world->w,
		   backlog <= p->max_owner_backlog &&
			   backlog <= p->max_rpcs / part + ROUNDING,
		   "host %u: %llu requests wait for applications of user %u; limit %u, max_rpcs %u",
		   h->index, (unsigned long long)backlog, who,
		   p->max_owner_backlog, p->max_rpcs);
}

static void check_sock(struct world *world, struct pair_host *h,
		       struct pair_sock *s)
{
	const struct homa_params *p = &h->engine->params;
	u64 backlog = s->sock->backlog;
	/* One that was delivered whole waits although its RPC may have ended. */
	u32 part = world->w->cfg.deliver_whole ? 2 : 3;

	pair_check(world->w,
		   backlog <= p->max_backlog &&
			   backlog <= p->max_rpcs / part + ROUNDING,
		   "host %u port %u: %llu requests wait for the application; limit %u, max_rpcs %u",
		   h->index, s->port, (unsigned long long)backlog,
		   p->max_backlog, p->max_rpcs);
}

static void check_host(struct world *world, struct pair_host *h)
{
	const struct homa_params *p = &h->engine->params;
	struct pair_world *w = world->w;
	struct homa_link_state state;
	struct homa_counts c;
	u32 i;

	h->ctx.now = pair_now(h);
	homa_engine_counts(h->engine, &c);
	homa_link_state(&h->ctx, h->link, &state);
	pair_check(w,
		   c.rpcs <= p->max_rpcs &&
			   h->live[PAIR_MEM_RPC] <= p->max_rpcs + SPARES,
		   "host %u: %u RPCs, %u objects of them, limit %u", h->index,
		   c.rpcs, h->live[PAIR_MEM_RPC], p->max_rpcs);
	pair_check(w,
		   c.peers <= p->max_peers &&
			   h->live[PAIR_MEM_PEER] <= p->max_peers + SPARES,
		   "host %u: %u peers, %u objects of them, limit %u", h->index,
		   c.peers, h->live[PAIR_MEM_PEER], p->max_peers);
	pair_check(w, c.once <= w->limits.tombstones,
		   "host %u: %u blocks remember requests, limit %u", h->index,
		   c.once, w->limits.tombstones);
	pair_check(w, state.granting <= p->max_overcommit,
		   "host %u: %u messages get grants, limit %u", h->index,
		   state.granting, p->max_overcommit);
	check_owner(world, h, 0);
	check_owner(world, h, 1);
	for (i = 0; i < PAIR_MAX_SOCKS; i++)
		if (h->socks[i].open)
			check_sock(world, h, &h->socks[i]);
	pair_check_pages(h, false);
}

void world_limits(struct world *world)
{
	u32 i;

	for (i = 0; i < world_honest(world); i++)
		if (world->w->hosts[i].up)
			check_host(world, &world->w->hosts[i]);
}

/* Each host begins an RPC with the one that is @distance on. */
static void probe_round(struct world *world, u32 distance, u32 longest)
{
	struct pair_world *w = world->w;
	u32 honest = world_honest(world), first = w->num_rpcs, i;

	for (i = 0; i < honest; i++) {
		struct pair_host *h = &w->hosts[i];
		int sock = world_sock(h, WORLD_CLIENT), err = 0;
		u32 length = (i + distance) % 3 ? 100 : longest;

		pair_check(w,
			   h->up && sock >= 0 && world_sock(h, WORLD_SERVER) >= 0,
			   "test: host %u has not come back", i);
		if (length > longest)
			length = longest;
		pair_check(w,
			   pair_rpc_start(w, (u8)i, (u8)sock,
					  (u8)((i + distance) % honest),
					  PAIR_SERVER_PORT, length, length, &err),
			   "afterwards host %u cannot begin an RPC: %d", i, err);
	}
	pair_check(w, pair_run_while_pending(w, PROBE_NS),
		   "afterwards %u of %u RPCs do not end in time", w->pending,
		   w->num_rpcs - first);
	for (i = first; i < w->num_rpcs; i++)
		pair_check(w, w->book[i]->state == PAIR_OK,
			   "afterwards RPC %u of host %u with host %u ends in state %d, error %d",
			   i, w->book[i]->client, w->book[i]->server,
			   w->book[i]->state, w->book[i]->error);
}

/* Does everybody serve everybody? Nothing is wrong any more, so nothing may fail. */
static void probe(struct world *world)
{
	u32 longest = world->plan->cfg.params.max_message_length, i;

	if (longest > 100000)
		longest = 100000;
	for (i = 0; i < world_honest(world); i++)
		probe_round(world, i, longest);
}

void world_settle(struct world *world)
{
	struct pair_world *w = world->w;
	u64 took;

	pair_run(w, world->calm_at);
	pair_check(w, pair_run_while_pending(w, SETTLE_NS),
		   "all is well since %llu ms, but %u of %u RPCs have not ended",
		   (unsigned long long)(w->now - world->calm_at) / 1000000,
		   w->pending, w->num_rpcs);
	/* Hosts that were down come back, sockets that close make room. */
	pair_run_for(w, 4 * PAIR_S);
	took = w->now - world->calm_at - 4 * PAIR_S;
	if (took > world_cover.settle_ns) {
		world_cover.settle_ns = took;
		world_cover.settle_seed = w->cfg.seed;
	}
	world_limits(world);
	probe(world);
}
