/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Applications that misbehave, of a user of their own beside the well-behaved one: a
 * server that never takes, answers, or gives back, a client that sends it more than ten
 * times as much as others do. When the fault ends they close their sockets, and all that
 * they held must come back.
 */
#include "world.h"

#define GREEDY_MOST 1500 /* RPCs of one greedy phase */
#define GREEDY_BITS 10

static struct pair_sock *bad_sock(struct pair_host *h, u16 port, u8 role)
{
	struct world *world = world_of(h->world);
	u32 i, used = 0;

	if (world_sock(h, role) >= 0)
		return NULL;
	for (i = 0; i < PAIR_MAX_SOCKS; i++) {
		used += h->socks[i].sock != NULL;
		/* Its predecessor still closes. */
		if (h->socks[i].sock && port && h->socks[i].port == port)
			return NULL;
	}
	/* Others' slots are theirs. */
	if (used > PAIR_MAX_SOCKS - 4)
		return NULL;
	i = pair_sock_open(h, port);
	h->socks[i].role = role;
	homa_sock_charge(h->socks[i].sock, &world->owners[h->index][1]);
	return &h->socks[i];
}

static void close_all(struct pair_host *h, u32 role)
{
	int i = world_sock(h, role);

	if (i >= 0)
		pair_sock_close(h, (u32)i, 3);
}

/* What a client that takes all it can sends at a time; another one far less. */
static void send_some(struct pair_host *h, struct world_fault *f)
{
	struct world *world = world_of(h->world);
	int sock = world_sock(h, WORLD_BAD_CLIENT);
	bool greedy = f->kind == WORLD_app_greedy;
	u32 bits = greedy ? GREEDY_BITS : world->plan->bits;
	u32 i, n = greedy ? 50 : 1 + pair_below(&f->rng, 3);

	if (sock < 0)
		return;
	for (i = 0; i < n && f->amount; i++) {
		if (!pair_rpc_start(h->world, h->index, (u8)sock, f->a,
				    WORLD_BAD_PORT, world_length(&f->rng, bits),
				    world_length(&f->rng, bits), NULL))
			break;
		f->amount--;
	}
	if (f->kind == WORLD_app_fickle && pair_chance(&f->rng, 20))
		close_all(h, WORLD_BAD_CLIENT);
}

static void abort_some(struct pair_host *h, struct world_fault *f)
{
	struct pair_world *w = h->world;
	u32 i, n = w->num_rpcs < 50 ? w->num_rpcs : 50;

	for (i = 0; i < n; i++) {
		struct pair_rpc *rpc = w->book[w->num_rpcs - 1 - i];

		if (rpc->client == h->index && rpc->client_life == h->life &&
		    rpc->server_port == WORLD_BAD_PORT &&
		    rpc->state == PAIR_PENDING && pair_chance(&f->rng, 300))
			pair_rpc_abort(w, rpc, 0);
	}
}

static void client_due(struct pair_host *h, void *arg, bool stale)
{
	struct world *world = world_of(h->world);
	struct world_fault *f = arg;

	if (stale || world->over || !f->active)
		return;
	send_some(h, f);
	if (f->kind == WORLD_app_fickle)
		abort_some(h, f);
	pair_event_add(h,
		       h->world->now + 1 +
			       pair_rand(&f->rng) % ((f->end - f->at) / 20 + 1),
		       client_due, f);
}

static void client_begins(struct pair_host *h, void *arg, bool stale)
{
	struct world_fault *f = arg;

	if (stale || !f->active)
		return;
	bad_sock(h, 0, WORLD_BAD_CLIENT);
	client_due(h, f, false);
}

static void server_begins(struct pair_host *h, void *arg, bool stale)
{
	struct world_fault *f = arg;
	struct pair_sock *s;

	if (stale || !f->active)
		return;
	s = bad_sock(h, WORLD_BAD_PORT, WORLD_BAD_SERVER);
	if (!s)
		return;
	s->deaf = f->kind == WORLD_app_deaf ||
		  (f->kind == WORLD_app_greedy && pair_chance(&f->rng, 500));
	s->hoard = f->kind == WORLD_app_hoard;
	s->mute = f->kind == WORLD_app_mute;
	s->twice = f->kind == WORLD_app_twice;
}

void world_app_begin(struct world *world, struct world_fault *f)
{
	struct pair_world *w = world->w;

	f->amount = f->kind == WORLD_app_greedy ? GREEDY_MOST : f->amount;
	pair_event_add(&w->hosts[f->a], w->now, server_begins, f);
	pair_event_add(&w->hosts[f->b], w->now + 1, client_begins, f);
}

void world_apps_gone(struct pair_host *h)
{
	close_all(h, WORLD_BAD_SERVER);
	close_all(h, WORLD_BAD_CLIENT);
}

static void gone_due(struct pair_host *h, void *arg, bool stale)
{
	(void)arg;
	if (!stale && !world_of(h->world)->over)
		world_apps_gone(h);
}

void world_app_end(struct world *world, struct world_fault *f)
{
	pair_event_add(&world->w->hosts[f->a], world->w->now, gone_due, NULL);
	pair_event_add(&world->w->hosts[f->b], world->w->now, gone_due, NULL);
}
