/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A world's life: hosts come up, load and faults begin, the span passes; then
 * everything that went wrong stops, and judge.c wants to see the end of it.
 */
#include "world.h"

#include <stdlib.h>
#include <string.h>

#define LOOKS 40 /* at everybody's limits */

int world_sock(const struct pair_host *h, u32 role)
{
	int i;

	for (i = 0; i < PAIR_MAX_SOCKS; i++)
		if (h->socks[i].open && h->socks[i].role == role)
			return i;
	return -1;
}

static void open_one(struct pair_host *h, u16 port, u8 role)
{
	struct world *world = world_of(h->world);
	u32 i = pair_sock_open(h, port);

	h->socks[i].role = role;
	homa_sock_charge(h->socks[i].sock, &world->owners[h->index][0]);
}

void world_open(struct pair_host *h)
{
	if (world_sock(h, WORLD_SERVER) < 0)
		open_one(h, PAIR_SERVER_PORT, WORLD_SERVER);
	if (world_sock(h, WORLD_CLIENT) < 0)
		open_one(h, 0, WORLD_CLIENT);
}

static void up_due(struct pair_host *h, void *arg, bool stale)
{
	struct world *world = world_of(h->world);

	(void)arg;
	(void)stale; /* it is not up, that is the point */
	if (world->over || h->up)
		return;
	memset(world->owners[h->index], 0, sizeof(world->owners[h->index]));
	pair_host_start(h);
	world_load(h);
	if (!world->bare[h->index] || world->calm)
		world_open(h);
}

void world_down(struct pair_host *h, u64 ns)
{
	if (!h->up)
		return;
	h->world->did[PAIR_DID_RESTART]++;
	pair_host_stop(h);
	pair_event_wire(h, h->world->now + ns, up_due, NULL);
}

/* It was told to die; the time that it is down follows from where it was. */
static void crashed(struct pair_host *h)
{
	world_down(h, h->world->now % 3 ? h->world->now % (500 * PAIR_MS) : 0);
}

static void look_due(struct pair_host *h, void *arg, bool stale)
{
	struct world *world = world_of(h->world);

	(void)arg;
	(void)stale;
	if (world->over)
		return;
	world_limits(world);
	pair_event_wire(h, h->world->now + world->plan->span / LOOKS + 1,
			look_due, NULL);
}

/* Sockets that the harness opened get their owners and roles. */
static void adopt(struct world *world)
{
	struct pair_world *w = world->w;
	u32 i;

	for (i = 0; i < w->cfg.hosts; i++) {
		struct pair_host *h = &w->hosts[i];

		h->bare = true;
		h->hostile = i >= world_honest(world);
		h->socks[0].role = WORLD_SERVER;
		h->socks[1].role = WORLD_CLIENT;
		homa_sock_charge(h->socks[0].sock, &world->owners[i][0]);
		homa_sock_charge(h->socks[1].sock, &world->owners[i][0]);
		world->load[i].s = pair_mix(w->cfg.seed ^ (0x6c6f6164ull + i));
		world_load(h);
	}
}

void world_run(struct world_plan *plan)
{
	struct world world = { .plan = plan };
	struct pair_world *w;

	world.forged = calloc(WORLD_FORGED, sizeof(*world.forged));
	world.w = w = pair_world_new(&plan->cfg);
	if (!world.forged)
		abort();
	w->user = &world;
	w->on_end = world_load_ended;
	w->on_crash = crashed;
	w->strangers = plan->liars;
	if (plan->liars) {
		w->tap = world_tap;
		w->forged = world_forged;
	}
	adopt(&world);
	look_due(&w->hosts[0], NULL, false);
	world_faults_begin(&world);
	pair_run_for(w, plan->span);
	world_faults_end(&world);
	world_settle(&world);
	world.over = true;
	world_cover_add(&world);
	w->on_end = NULL;
	w->tap = NULL;
	pair_finish(w);
	free(world.forged);
}
