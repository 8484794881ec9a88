/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Virtual time: a heap of events ordered by time and then by order of
 * scheduling, so that a run is a function of its seed alone. Each event belongs
 * to one life of one host; events of a former life still run, marked stale, to
 * give back what they hold.
 */
#include "harness.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

u64 pair_mix(u64 v)
{
	v += 0x9e3779b97f4a7c15ull;
	v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9ull;
	v = (v ^ (v >> 27)) * 0x94d049bb133111ebull;
	return v ^ (v >> 31);
}

u64 pair_rand(struct pair_rng *rng)
{
	rng->s += 0x9e3779b97f4a7c15ull;
	return pair_mix(rng->s);
}

u32 pair_below(struct pair_rng *rng, u32 n)
{
	return n ? (u32)(((pair_rand(rng) >> 32) * n) >> 32) : 0;
}

bool pair_chance(struct pair_rng *rng, u32 permille)
{
	return permille && pair_below(rng, 1000) < permille;
}

bool pair_seed_fixed(void)
{
	return getenv("PAIR_SEED") != NULL;
}

u64 pair_seed(u64 def)
{
	const char *text = getenv("PAIR_SEED");

	return text ? strtoull(text, NULL, 0) : def;
}

/* ---- memory: one malloc() per object, all of a host in one list ---- */

void *pair_alloc(struct pair_host *host, size_t size, u32 kind)
{
	struct pair_alloc *a = calloc(1, sizeof(*a));
	void *mem;

	/* The pointer back to the header lies before the body, so that the
	 * end of the body is the end of the block for ASan. */
	if (!a || posix_memalign(&mem, 64, size + 64))
		abort();
	memset(mem, 0, size + 64);
	a->body = (u8 *)mem + 64;
	a->size = size;
	a->kind = kind;
	memcpy(mem, &a, sizeof(a));
	a->next = host->mem.next;
	a->prev = &host->mem;
	host->mem.next->prev = a;
	host->mem.next = a;
	host->live[kind]++;
	return a->body;
}

void pair_free(struct pair_host *host, void *mem)
{
	struct pair_alloc *a;

	memcpy(&a, (u8 *)mem - 64, sizeof(a));
	a->prev->next = a->next;
	a->next->prev = a->prev;
	host->live[a->kind]--;
	memset(a->body, 0xdb, a->size);
	free((u8 *)mem - 64);
	free(a);
}

void pair_free_all(struct pair_host *host)
{
	while (host->mem.next != &host->mem)
		pair_free(host, host->mem.next->body);
}

/* ---- events ---- */

static bool earlier(const struct pair_event *a, const struct pair_event *b)
{
	if (a->at != b->at)
		return a->at < b->at;
	return a->due != b->due ? a->due < b->due : a->seq < b->seq;
}

static void event_put(struct pair_world *w, struct pair_event ev)
{
	u32 i;

	if (w->heap_len == w->heap_cap) {
		w->heap_cap = w->heap_cap ? 2 * w->heap_cap : 256;
		w->heap = realloc(w->heap, w->heap_cap * sizeof(*w->heap));
		if (!w->heap)
			abort();
	}
	for (i = w->heap_len++; i && earlier(&ev, &w->heap[(i - 1) / 2]);
	     i = (i - 1) / 2)
		w->heap[i] = w->heap[(i - 1) / 2];
	w->heap[i] = ev;
}

static void event_add(struct pair_host *host, u64 at, bool wire,
		      void (*fn)(struct pair_host *host, void *arg, bool stale),
		      void *arg)
{
	struct pair_world *w = host->world;

	if (at < w->now)
		at = w->now;
	event_put(w, (struct pair_event){ .at = at,
					  .due = at,
					  .host = host,
					  .life = host->life,
					  .seq = w->event_seq++,
					  .wire = wire,
					  .fn = fn,
					  .arg = arg });
}

void pair_event_add(struct pair_host *host, u64 at,
		    void (*fn)(struct pair_host *host, void *arg, bool stale),
		    void *arg)
{
	event_add(host, at, false, fn, arg);
}

void pair_event_wire(struct pair_host *host, u64 at,
		     void (*fn)(struct pair_host *host, void *arg, bool stale),
		     void *arg)
{
	event_add(host, at, true, fn, arg);
}

static struct pair_event event_pop(struct pair_world *w)
{
	struct pair_event top = w->heap[0];
	struct pair_event last = w->heap[--w->heap_len];
	u32 i = 0, child;

	while ((child = 2 * i + 1) < w->heap_len) {
		if (child + 1 < w->heap_len &&
		    earlier(&w->heap[child + 1], &w->heap[child]))
			child++;
		if (!earlier(&w->heap[child], &last))
			break;
		w->heap[i] = w->heap[child];
		i = child;
	}
	if (w->heap_len)
		w->heap[i] = last;
	return top;
}

static void run_one(struct pair_world *w)
{
	struct pair_event ev = event_pop(w);

	w->now = ev.at;
	w->events++;
	/* In their order, all of them at once when the host goes on. */
	if (!ev.wire && ev.host->paused_until > w->now) {
		ev.at = ev.host->paused_until;
		event_put(w, ev);
		return;
	}
	ev.fn(ev.host, ev.arg, ev.life != ev.host->life || !ev.host->up);
}

void pair_run(struct pair_world *w, u64 until)
{
	while (w->heap_len && w->heap[0].at <= until)
		run_one(w);
	if (w->now < until)
		w->now = until;
}

void pair_run_for(struct pair_world *w, u64 ns)
{
	pair_run(w, w->now + ns);
}

bool pair_run_while_pending(struct pair_world *w, u64 limit)
{
	u64 end = w->now + limit;

	while (w->pending && w->heap_len && w->heap[0].at <= end)
		run_one(w);
	return w->pending == 0;
}

/* ---- worlds ---- */

void pair_config_default(struct pair_config *cfg)
{
	memset(cfg, 0, sizeof(*cfg));
	cfg->seed = pair_seed(1);
	cfg->hosts = 2;
	cfg->rate_mbps = 10000;
	cfg->latency_ns = 2000;
	cfg->mtu = 1500;
	cfg->max_segs = 1;
	cfg->shards = 1;
	cfg->buckets = 256;
	cfg->tombstones = 65536;
	cfg->ctrl_slots = 1024;
	cfg->pool_pages = 64;
	cfg->nic_queue_ns = 20000;
	cfg->timer_budget = 1000;
	cfg->within = 100;
	cfg->max_packets = 20000000;
	homa_params_default(&cfg->params);
}

struct pair_world *pair_world_new(const struct pair_config *cfg)
{
	struct pair_world *w = calloc(1, sizeof(*w));
	u32 i;

	if (!w)
		abort();
	w->cfg = *cfg;
	w->now = PAIR_S;
	w->digest = 0xcbf29ce484222325ull;
	w->rng_net.s = pair_mix(cfg->seed ^ 0x6e6574);
	w->rng_host.s = pair_mix(cfg->seed ^ 0x686f7374);
	w->rng_app.s = pair_mix(cfg->seed ^ 0x617070);
	w->rng_test.s = pair_mix(cfg->seed ^ 0x74657374);
	w->limits = (struct homa_limits){
		.tell_gone = cfg->tell_gone,
		.shards = cfg->shards,
		.buckets = cfg->buckets,
		.max_buckets = 4096,
		.max_peer_buckets = 128,
		.tombstones = cfg->tombstones,
		.sock_priv = 16,
		.peer_priv = 16,
		.rpc_priv = sizeof(struct pair_priv),
	};
	pair_faults_all(w, &cfg->faults);
	for (i = 0; i < cfg->hosts; i++) {
		struct pair_host *h = &w->hosts[i];

		h->world = w;
		h->index = (u8)i;
		h->mem.next = h->mem.prev = &h->mem;
		h->addr.encap = cfg->encap;
		if (cfg->v6) {
			h->addr.ip[0] = 0xfd;
		} else {
			h->addr.ip[10] = h->addr.ip[11] = 0xff;
			h->addr.ip[12] = 10;
		}
		h->addr.ip[15] = (u8)(i + 1);
		pair_host_start(h);
	}
	/* Past the time in which young servers distrust retransmissions. */
	pair_run_for(w, PAIR_S);
	return w;
}

void pair_world_free(struct pair_world *w)
{
	u32 i;

	for (i = 0; i < w->cfg.hosts; i++)
		if (w->hosts[i].up)
			pair_host_stop(&w->hosts[i]);
	while (w->heap_len) {
		struct pair_event ev = event_pop(w);

		ev.fn(ev.host, ev.arg, true);
	}
	for (i = 0; i < w->num_rpcs; i++)
		free(w->book[i]);
	free(w->book);
	free(w->heap);
	free(w);
}
