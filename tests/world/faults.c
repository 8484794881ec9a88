/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Faults begin and end. What a path does follows from all faults that are active on
 * it; what concerns a host is done by the host itself, so a pause delays it.
 */
#include "world.h"

#include "homa_impl.h"

#include <stdlib.h>

const char *const world_fault_name[WORLD_KINDS] = {
#define X(name, text) #name,
	WORLD_FAULTS(X)
#undef X
};

const char *const world_fault_text[WORLD_KINDS] = {
#define X(name, text) text,
	WORLD_FAULTS(X)
#undef X
};

struct turn {
	struct world *world;
	struct world_fault *f;
	void (*fn)(struct world *world, struct world_fault *f,
		   struct pair_host *h);
};

static u32 more(u32 a, u32 b)
{
	return a > b ? a : b;
}

/* Does @f concern packets from @i to @j? */
static bool on_path(const struct world_fault *f, u32 i, u32 j)
{
	bool from = f->mask >> i & 1, to = f->mask >> j & 1;

	switch (f->kind) {
	case WORLD_cut:
		return i == f->a && j == f->b;
	case WORLD_partition:
		return from != to;
	case WORLD_isolate:
	case WORLD_silence:
		return (i == f->a) != (j == f->a);
	default:
		return from;
	}
}

static void add_to_path(const struct world_fault *f, struct pair_faults *path)
{
	switch (f->kind) {
	case WORLD_loss:
		path->loss = more(path->loss, f->amount);
		break;
	case WORLD_copies:
	case WORLD_late_copies:
		path->dup = more(path->dup, f->amount);
		path->dup_max_ns = homa_max_u64(path->dup_max_ns, f->ns);
		break;
	case WORLD_reorder:
		path->reorder = more(path->reorder, f->amount * 3);
		path->reorder_max_ns = homa_max_u64(path->reorder_max_ns, f->ns);
		break;
	case WORLD_damage:
		path->corrupt = more(path->corrupt, f->amount);
		break;
	case WORLD_cut:
	case WORLD_partition:
	case WORLD_isolate:
	case WORLD_silence:
		path->cut = true;
		break;
	default:
		break;
	}
}

static void make_paths(struct world *world)
{
	struct pair_world *w = world->w;
	u32 i, j, k;

	w->cfg.tx_fail = w->cfg.starve = 0;
	for (i = 0; i < w->cfg.hosts; i++) {
		w->hosts[i].no_way = false;
		for (j = 0; j < w->cfg.hosts; j++)
			w->paths[i][j] = (struct pair_faults){ 0 };
	}
	for (k = 0; k < world->plan->num_faults; k++) {
		const struct world_fault *f = &world->plan->faults[k];

		if (!f->active)
			continue;
		if (f->kind == WORLD_tx_fail)
			w->cfg.tx_fail = more(w->cfg.tx_fail, f->amount);
		else if (f->kind == WORLD_starve)
			w->cfg.starve = more(w->cfg.starve, f->amount * 3);
		else if (f->kind == WORLD_no_way)
			w->hosts[f->a].no_way = true;
		for (i = 0; i < w->cfg.hosts; i++)
			for (j = 0; j < w->cfg.hosts; j++)
				if (on_path(f, i, j))
					add_to_path(f, &w->paths[i][j]);
		if (f->kind == WORLD_damage)
			w->corrupting = true;
	}
}

/* ---- what a host does by itself ---- */

static void turn_due(struct pair_host *h, void *arg, bool stale)
{
	struct turn *t = arg;

	if (!stale && !t->world->over)
		t->fn(t->world, t->f, h);
	free(t);
}

static void turn(struct world *world, struct world_fault *f, u8 host,
		 void (*fn)(struct world *world, struct world_fault *f,
			    struct pair_host *h))
{
	struct turn *t = malloc(sizeof(*t));

	if (!t)
		abort();
	*t = (struct turn){ world, f, fn };
	pair_event_add(&world->w->hosts[host], world->w->now, turn_due, t);
}

/* The harness' slots are few, and one that closes is still taken. */
static bool room(const struct pair_host *h)
{
	u32 i;

	for (i = 0; i < PAIR_MAX_SOCKS; i++)
		if (!h->socks[i].sock)
			return true;
	return false;
}

static void reopen(struct world *world, struct world_fault *f,
		   struct pair_host *h)
{
	int i = world_sock(h, f->kind == WORLD_reopen ? WORLD_SERVER :
							WORLD_CLIENT);

	(void)world;
	if (i >= 0)
		pair_sock_close(h, (u32)i, 1 + pair_below(&f->rng, 5));
}

static void open_again(struct world *world, struct world_fault *f,
		       struct pair_host *h);

static void open_later(struct pair_host *h, void *arg, bool stale)
{
	struct world *world = world_of(h->world);

	if (!stale && !world->over)
		open_again(world, arg, h);
}

/* A port is free again when the last RPC of its socket has gone. */
static void open_again(struct world *world, struct world_fault *f,
		       struct pair_host *h)
{
	u32 i;

	for (i = 0; i < PAIR_MAX_SOCKS; i++)
		if (h->socks[i].sock && !h->socks[i].open && h->socks[i].server)
			break;
	if (i == PAIR_MAX_SOCKS && room(h))
		world_open(h);
	else
		pair_event_add(h, world->w->now + PAIR_MS, open_later, f);
}

static void aborts(struct world *world, struct world_fault *f,
		   struct pair_host *h)
{
	struct pair_world *w = world->w;
	u32 i, n = w->num_rpcs < 200 ? w->num_rpcs : 200;

	for (i = 0; i < n; i++) {
		struct pair_rpc *rpc = w->book[w->num_rpcs - 1 - i];

		if (rpc->client == h->index && rpc->client_life == h->life &&
		    rpc->state == PAIR_PENDING && pair_chance(&f->rng, 200))
			pair_rpc_abort(w, rpc,
				       pair_chance(&f->rng, 500) ? HOMA_EINTR :
								   0);
	}
}

/* ---- the beginning and the end ---- */

static void restart(struct world_fault *f, struct pair_host *h)
{
	switch (f->kind) {
	case WORLD_crash_rx:
		h->crash_rx = 1 + pair_below(&f->rng, 300);
		return;
	case WORLD_crash_tx:
		h->crash_tx = 1 + pair_below(&f->rng, 300);
		return;
	default:
		break;
	}
	world_of(h->world)->bare[h->index] = f->kind == WORLD_restart_bare;
	world_down(h, f->kind == WORLD_restart ? f->ns : 0);
}

static void begin(struct world *world, struct world_fault *f)
{
	struct pair_host *h = &world->w->hosts[f->a];

	world_cover.faults[f->kind]++;
	switch (f->kind) {
	case WORLD_pause:
		if (h->up)
			pair_pause(h, f->ns);
		return;
	case WORLD_restart:
	case WORLD_restart_bare:
	case WORLD_crash_rx:
	case WORLD_crash_tx:
		restart(f, h);
		return;
	case WORLD_leap:
		pair_clock_set(h, f->ns, h->clock.ppm);
		return;
	case WORLD_drift:
		pair_clock_set(h, 0, (s32)f->amount - 500);
		return;
	case WORLD_reopen:
	case WORLD_reclose:
		turn(world, f, f->a, reopen);
		return;
	case WORLD_aborts:
		turn(world, f, f->a, aborts);
		return;
	default:
		break;
	}
	if (f->kind >= WORLD_lie_change)
		world_lie_begin(world, f);
	else if (f->kind >= WORLD_app_deaf)
		world_app_begin(world, f);
}

static void end(struct world *world, struct world_fault *f)
{
	switch (f->kind) {
	case WORLD_restart_bare:
	case WORLD_reopen:
	case WORLD_reclose:
		turn(world, f, f->a, open_again);
		break;
	default:
		if (f->kind >= WORLD_app_deaf && f->kind < WORLD_lie_change)
			world_app_end(world, f);
		break;
	}
}

struct edge {
	struct world *world;
	struct world_fault *f;
	bool begin;
};

static void edge_due(struct pair_host *h, void *arg, bool stale)
{
	struct edge *e = arg;
	struct world *world = e->world;

	(void)h;
	(void)stale;
	if (!world->calm && !world->over) {
		e->f->active = e->begin;
		make_paths(world);
		if (e->begin)
			begin(world, e->f);
		else
			end(world, e->f);
	}
	free(e);
}

static void edge(struct world *world, struct world_fault *f, u64 at, bool begin)
{
	struct edge *e = malloc(sizeof(*e));

	if (!e)
		abort();
	*e = (struct edge){ world, f, begin };
	pair_event_wire(&world->w->hosts[0], at, edge_due, e);
}

void world_faults_begin(struct world *world)
{
	u32 i;

	for (i = 0; i < world->plan->num_faults; i++) {
		struct world_fault *f = &world->plan->faults[i];

		if (f->off)
			continue;
		edge(world, f, world->w->now + f->at, true);
		edge(world, f, world->w->now + f->end, false);
	}
}

static void calm_down(struct world *world, struct world_fault *f,
		      struct pair_host *h)
{
	world_apps_gone(h);
	open_again(world, f, h);
	pair_poll(h); /* spares, if it had none */
}

/* A host that is down comes up by itself, with everything; one that is paused goes on
 * when it would have. */
static void calm_host(struct world *world, struct pair_host *h)
{
	h->crash_rx = h->crash_tx = 0;
	world->calm_at = homa_max_u64(world->calm_at, h->paused_until);
	turn(world, world->plan->faults, h->index, calm_down);
}

void world_faults_end(struct world *world)
{
	struct pair_world *w = world->w;
	u32 i;

	world->calm = true;
	world->calm_at = w->now;
	for (i = 0; i < world->plan->num_faults; i++)
		world->plan->faults[i].active = false;
	make_paths(world);
	for (i = 0; i < w->cfg.hosts; i++) {
		struct pair_host *h = &w->hosts[i];

		if (!h->hostile)
			calm_host(world, h);
		else if (h->up)
			pair_host_stop(h);
	}
}
