/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Beginning and end of hosts and sockets. A host that stops keeps nothing; its
 * successor has the same address and a new seed, as after a power failure.
 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

void pair_host_start(struct pair_host *h)
{
	struct pair_world *w = h->world;
	struct homa_seeds seeds;
	u32 i;
	int err;

	h->life++;
	h->born = w->now;
	h->up = true;
	h->crashed = false;
	h->crash_rx = h->crash_tx = 0;
	h->paused_until = 0;
	h->polling = false;
	h->rx_scheduled = false;
	h->wake_at = HOMA_NEVER;
	h->nic_wake_at = HOMA_NEVER;
	h->nic_free_at = w->now;
	h->pins = 0;
	pair_queue_init(&h->rx);
	for (i = 0; i < 8; i++)
		pair_queue_init(&h->port.queue[i]);
	h->port.bytes = 0;
	h->port.busy = false;
	h->engine = pair_alloc(h, homa_engine_size(&w->limits), PAIR_MEM_MISC);
	homa_seeds_fixed(&seeds,
			 pair_mix(w->cfg.seed + h->index * 1000 + h->life));
	err = homa_engine_init(h->engine, &w->limits, &w->cfg.params, &seeds,
			       pair_now(h));
	pair_check(w, !err, "homa_engine_init: %d", err);
	homa_ctx_init(&h->ctx, h->engine, h->index);
	h->ctx.now = pair_now(h);
	h->link = pair_alloc(h, homa_link_size(w->cfg.ctrl_slots), PAIR_MEM_MISC);
	homa_link_init(h->link, h->engine, w->cfg.rate_mbps, w->cfg.mtu,
		       w->cfg.ctrl_slots);
	if (w->cfg.by_room)
		homa_link_pace_by_room(h->link);
	for (i = 0; i < 64; i++)
		h->deadline[i] = pair_now(h);
	memset(h->socks, 0, sizeof(h->socks));
	pair_poll(h); /* spares */
	if (!h->bare) {
		pair_sock_open(h, PAIR_SERVER_PORT);
		pair_sock_open(h, 0);
	}
	pair_poll(h);
}

static void forget_queue(struct pair_queue *q)
{
	struct pair_pkt *pkt;

	while ((pkt = pair_queue_get(q)))
		free(pkt);
}

/* Incoming bytes of living RPCs hang off their private part. */
static void free_rpc_buffers(struct pair_host *h)
{
	struct pair_alloc *a;

	for (a = h->mem.next; a != &h->mem; a = a->next)
		if (a->kind == PAIR_MEM_RPC)
			pair_priv_retire(homa_rpc_priv((void *)a->body));
}

void pair_host_stop(struct pair_host *h)
{
	struct pair_world *w = h->world;
	u32 i;

	for (i = 0; i < HOMA_M_COUNT; i++)
		h->metrics[i] += h->ctx.metrics[i];
	forget_queue(&h->rx);
	for (i = 0; i < 8; i++)
		forget_queue(&h->port.queue[i]);
	free_rpc_buffers(h);
	pair_free_all(h);
	for (i = 0; i < PAIR_MAX_SOCKS; i++)
		free(h->socks[i].region);
	memset(h->socks, 0, sizeof(h->socks));
	memset(&h->ctx, 0, sizeof(h->ctx));
	h->up = false;
	h->engine = NULL;
	h->link = NULL;
	for (i = 0; i < w->num_rpcs; i++) {
		struct pair_rpc *rpc = w->book[i];

		if (rpc->client == h->index && rpc->client_life == h->life &&
		    rpc->state == PAIR_PENDING)
			pair_rpc_ended(w, rpc, PAIR_GONE, 0);
	}
}

bool pair_dies(struct pair_host *h, u32 *packets, enum pair_did how)
{
	if (!*packets || --*packets)
		return false;
	h->crashed = true;
	h->world->did[how]++;
	return true;
}

void pair_crash(struct pair_host *h)
{
	if (h->world->on_crash)
		h->world->on_crash(h);
	else
		pair_restart(h);
}

void pair_restart(struct pair_host *h)
{
	h->world->did[PAIR_DID_RESTART]++;
	pair_host_stop(h);
	pair_host_start(h);
}

u32 pair_sock_open(struct pair_host *h, u16 port)
{
	struct pair_world *w = h->world;
	struct pair_sock *s;
	u32 i;
	int err;

	for (i = 0; i < PAIR_MAX_SOCKS && h->socks[i].sock; i++)
		;
	pair_check(w, i < PAIR_MAX_SOCKS, "too many sockets");
	s = &h->socks[i];
	memset(s, 0, sizeof(*s));
	s->sock = pair_alloc(h, homa_sock_size(&w->limits), PAIR_MEM_MISC);
	h->ctx.now = pair_now(h);
	err = homa_sock_open(&h->ctx, s->sock);
	pair_check(w, !err, "homa_sock_open: %d", err);
	if (port) {
		err = homa_sock_bind(&h->ctx, s->sock, port);
		pair_check(w, !err, "homa_sock_bind: %d", err);
		s->server = true;
	}
	s->port = homa_sock_port(s->sock);
	pair_check(w, port ? s->port == port : s->port >= HOMA_MIN_CLIENT_PORT,
		   "socket has port %u", s->port);
	if (w->cfg.pool_pages) {
		s->region_pages = w->cfg.pool_pages;
		s->region = malloc((size_t)s->region_pages * HOMA_BPAGE_SIZE);
		s->pool = pair_alloc(h, homa_pool_size(s->region_pages),
				     PAIR_MEM_MISC);
		if (!s->region)
			abort();
		err = homa_sock_set_pool(&h->ctx, s->sock, s->pool,
					 s->region_pages);
		pair_check(w, !err, "homa_sock_set_pool: %d", err);
		homa_sock_deliver_whole(s->sock, w->cfg.deliver_whole);
	}
	s->open = true;
	s->serial = ++w->sock_serial;
	return i;
}

struct closing {
	u32 index;
	u32 budget;
	u32 calls;
};

static void close_step(struct pair_host *h, void *arg, bool stale)
{
	struct pair_world *w = h->world;
	struct closing *c = arg;
	struct pair_sock *s = &h->socks[c->index];
	int err;

	if (stale) {
		free(c);
		return;
	}
	h->ctx.now = pair_now(h);
	err = homa_sock_close(&h->ctx, s->sock, c->budget);
	pair_check(w, err == 0 || err == -HOMA_EAGAIN, "homa_sock_close: %d",
		   err);
	/* Events that nobody fetches hold RPCs; that is not its fault. */
	pair_check(w, h->hold_events || ++c->calls < 1000000,
		   "homa_sock_close does not end");
	if (err) {
		pair_poll(h);
		pair_event_add(h, w->now + PAIR_US, close_step, c);
		return;
	}
	pair_free(h, s->sock);
	if (s->pool)
		pair_free(h, s->pool);
	free(s->region);
	memset(s, 0, sizeof(*s));
	free(c);
	pair_poll(h);
}

void pair_sock_close(struct pair_host *h, u32 index, u32 budget)
{
	struct pair_world *w = h->world;
	struct closing *c = calloc(1, sizeof(*c));
	u32 i;

	if (!c)
		abort();
	c->index = index;
	c->budget = budget;
	h->socks[index].open = false;
	for (i = 0; i < w->num_rpcs; i++) {
		struct pair_rpc *rpc = w->book[i];

		if (rpc->client == h->index && rpc->client_life == h->life &&
		    rpc->client_sock == index && rpc->state == PAIR_PENDING &&
		    rpc->client_port == h->socks[index].port)
			pair_rpc_ended(w, rpc, PAIR_GONE, 0);
	}
	close_step(h, c, false);
}
