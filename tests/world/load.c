/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What well-behaved applications send: bursts at random times, from everybody to
 * everybody, from all to one, or mostly to one.
 */
#include "world.h"

u32 world_length(struct pair_rng *rng, u32 bits)
{
	return 1 + pair_below(rng, 1u << pair_below(rng, bits));
}

static u8 server_for(const struct world_plan *p, u8 client, struct pair_rng *r)
{
	u8 any = (u8)pair_below(r, p->cfg.hosts);

	if (p->pattern == WORLD_INCAST && client != p->hot)
		return p->hot;
	if (p->pattern == WORLD_HOT_SPOT && pair_chance(r, 800))
		return p->hot;
	return any;
}

static void burst(struct pair_host *h)
{
	struct world *world = world_of(h->world);
	const struct world_plan *p = world->plan;
	struct pair_rng *r = &world->load[h->index];
	struct pair_rpc *rpc;
	u32 i;

	for (i = 0; i < p->burst; i++) {
		/* As homa-bench does: servers send requests, too. */
		int sock = world_sock(h, pair_chance(r, 100) ? WORLD_SERVER :
							       WORLD_CLIENT);
		u8 server = server_for(p, h->index, r);
		u32 request = world_length(r, p->bits),
		    response = world_length(r, p->bits);

		if (sock < 0 || world->open_rpcs[h->index] >= p->most)
			continue;
		rpc = pair_rpc_start(h->world, h->index, (u8)sock, server,
				     PAIR_SERVER_PORT, request, response, NULL);
		if (!rpc)
			continue;
		world->open_rpcs[h->index]++;
		/* The book knows before the request can have arrived. */
		if (pair_chance(r, p->slow)) {
			rpc->reply_delay_set = true;
			rpc->reply_delay = PAIR_MS << pair_below(r, 12);
		}
	}
}

static void load_due(struct pair_host *h, void *arg, bool stale)
{
	struct world *world = world_of(h->world);
	const struct world_plan *p = world->plan;

	(void)arg;
	if (stale || world->calm || world->over)
		return;
	pair_event_add(h,
		       h->world->now + pair_rand(&world->load[h->index]) %
					       (2 * p->gap_ns + 1),
		       load_due, NULL);
	burst(h);
}

void world_load(struct pair_host *h)
{
	struct world *world = world_of(h->world);

	world->open_rpcs[h->index] = 0;
	if (!world->calm)
		pair_event_add(h,
			       h->world->now + pair_rand(&world->load[h->index]) %
						       (world->plan->gap_ns + 1),
			       load_due, NULL);
}

void world_load_ended(struct pair_world *w, struct pair_rpc *rpc)
{
	u32 *open_rpcs = &world_of(w)->open_rpcs[rpc->client];

	if (rpc->server_port == PAIR_SERVER_PORT && *open_rpcs &&
	    rpc->client_life == w->hosts[rpc->client].life)
		--*open_rpcs;
}
