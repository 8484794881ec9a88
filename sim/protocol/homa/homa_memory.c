// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Memory for engines, which allocate nothing themselves. What every host has
 * - engine, link, sockets, context - lies in one piece of a few KB, because a
 * run goes from host to host with every event and each should find its state
 * in few cache lines and few pages. Tables are sized for a simulated host: it
 * has some dozen RPCs open and as many peers as there are hosts.
 *
 * RPCs, peers and gap records come from slabs that all hosts share and that
 * are returned with the run. Whatever is large is asked for in huge pages: with
 * small ones a visit to a host costs more in page tables than in cache misses.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "homa_host.h"

#define ALIGN 64u
#define CTRL_SLOTS 128u
#define BUCKETS 128u
/* Blocks of 128 requests that a host remembers with RPCs, as many as in host/embedded. */
#define RPC_TOMBSTONES (1u << 17)
#define SLAB_FIRST (64u << 10)
#define HUGE (2u << 20)

struct sim_homa_slab {
	/* The slab that was made before this one; NULL: none was. */
	struct sim_homa_slab *next;
	char pad[ALIGN - sizeof(void *)];
};

static size_t aligned(size_t n)
{
	return (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

/* ---- objects ---- */

/* Returns zeroed memory, aligned to huge pages if it fills some. */
static void *memory_new(size_t bytes)
{
	bool huge = bytes >= HUGE;
	void *mem;

	if (huge)
		bytes = (bytes + HUGE - 1) / HUGE * HUGE;
	mem = aligned_alloc(huge ? HUGE : ALIGN, bytes);
	if (!mem)
		return NULL;
	if (huge)
		madvise(mem, bytes, MADV_HUGEPAGE);
	memset(mem, 0, bytes);
	return mem;
}

/* Puts zeroed objects of @size bytes on @list; returns false if there is no memory. */
static bool slab_add(struct sim_homa_pool *pool, void **list, size_t size)
{
	size_t head = aligned(sizeof(struct sim_homa_slab));
	size_t bytes = pool->bytes < 64 * SLAB_FIRST ? SLAB_FIRST : HUGE;
	struct sim_homa_slab *slab = memory_new(bytes);
	char *at;

	if (!slab)
		return false;
	slab->next = pool->slabs;
	pool->slabs = slab;
	pool->bytes += bytes;
	/* Objects are put in from the highest address down, so that the lowest is given out
	 * first. */
	for (at = (char *)slab + head + (bytes - head) / size * size - size;
	     at >= (char *)slab + head; at -= size) {
		*(void **)at = *list;
		*list = at;
	}
	return true;
}

static inline void *take(struct sim_homa_pool *pool, void **list, size_t size)
{
	void *object = *list;

	if (unlikely(!object)) {
		if (!slab_add(pool, list, size))
			return NULL;
		object = *list;
	}
	*list = *(void **)object;
	return object;
}

static inline void put(void **list, void *object)
{
	*(void **)object = *list;
	*list = object;
}

bool sim_homa_refill(struct sim_homa *homa, struct homa_ctx *ctx)
{
	struct sim_homa_pool *pool = &homa->pool;
	void *mem;

	if (!ctx->spare_rpcs) {
		mem = take(pool, &pool->rpcs, pool->rpc_size);
		if (!mem)
			return false;
		homa_ctx_give_rpc(ctx, mem);
	}
	if (unlikely(!ctx->spare_peers)) {
		mem = take(pool, &pool->peers, pool->peer_size);
		if (!mem)
			return false;
		homa_ctx_give_peer(ctx, mem);
	}
	while (unlikely(ctx->spare_ranges < 2)) {
		mem = take(pool, &pool->ranges, pool->range_size);
		if (!mem)
			return false;
		homa_ctx_give_range(ctx, mem);
	}
	return true;
}

void sim_homa_release_rpc(struct sim_homa *homa, struct homa_rpc *rpc)
{
	put(&homa->pool.rpcs, rpc);
}

void sim_homa_release_peer(struct sim_homa *homa, struct homa_peer *peer)
{
	put(&homa->pool.peers, peer);
}

/* ---- hosts ---- */

/* Makes an IPv4 address that contains the host's number. */
static void host_addr(struct homa_addr *addr, u32 index)
{
	memset(addr, 0, sizeof(*addr));
	addr->ip[10] = 0xff;
	addr->ip[11] = 0xff;
	addr->ip[12] = 10;
	addr->ip[13] = (u8)(index >> 16);
	addr->ip[14] = (u8)(index >> 8);
	addr->ip[15] = (u8)index;
}

static int host_init(struct sim *sim, struct sim_homa *homa, struct sim_homa_host *hh)
{
	struct homa_seeds seeds;
	int err;

	homa_seeds_fixed(&seeds, homa_prng_next(&sim->rng_proto));
	err = homa_engine_init(hh->engine, &homa->limits, &homa->params, &seeds, 0);
	if (!err && homa->levels)
		err = homa_engine_set_cutoffs(hh->engine, homa->levels, homa->cutoffs);
	if (err)
		return err;
	homa_ctx_init(&hh->ctx, hh->engine, 0);
	hh->ctx.now = SIM_HOMA_EPOCH_NS;
	homa_link_init(hh->link, hh->engine, sim->cfg.host_mbps, homa->mtu, CTRL_SLOTS);
	sim_homa_card_init(&hh->card);
	hh->card.due.fn = sim_homa_card_due;
	if (!sim->cfg.option[SIM_HOMA_CARD]) {
		/* The port asks for a packet only when it can send one, so there is
		 * always room. */
		homa_link_pace_by_room(hh->link);
		homa_link_room(hh->link, HOMA_NEVER);
	}
	if (homa->sample)
		err = homa_engine_learn_cutoffs(&hh->ctx, hh->link, homa->sample,
						SIM_HOMA_SAMPLE);
	if (err)
		return err;
	host_addr(&hh->addr, hh->host->index);
	err = homa_sock_open(&hh->ctx, hh->client);
	if (!err)
		err = homa_sock_open(&hh->ctx, hh->server);
	if (!err)
		err = homa_sock_bind(&hh->ctx, hh->server, SIM_HOMA_PORT);
	return err;
}

/* Late duplicates of a message that is over exist only where packets are lost; homa.c ends the few
 * others by itself. Servers of RPCs remember all that can come in a second, as in other hosts. */
static u32 tombstones(const struct sim_config *cfg)
{
	if (cfg->rpc)
		return RPC_TOMBSTONES;
	return cfg->loss_ppm || cfg->port_bytes || cfg->shared_bytes || cfg->num_failures ?
		       1024 :
		       0;
}

static void limits_init(struct sim *sim, struct sim_homa *homa)
{
	const struct sim_config *cfg = &sim->cfg;
	u32 peer_buckets = 4;

	while (peer_buckets * 16 < cfg->hosts)
		peer_buckets *= 2;
	homa->limits = (struct homa_limits){
		.shards = 1,
		.buckets = BUCKETS,
		.tombstones = tombstones(cfg),
		.peer_buckets = peer_buckets,
		/* There are many hosts, and each has few RPCs. */
		.max_buckets = BUCKETS,
		.max_peer_buckets = peer_buckets,
		.rpc_priv = sizeof(struct sim_homa_priv),
	};
	homa->pool.rpc_size = aligned(homa_rpc_size(&homa->limits));
	homa->pool.peer_size = aligned(homa_peer_size(&homa->limits));
	homa->pool.range_size = homa_range_size();
}

int sim_homa_memory_init(struct sim *sim, struct sim_homa *homa)
{
	size_t engine, link, sock, each;
	u32 i;

	limits_init(sim, homa);
	engine = aligned(homa_engine_size(&homa->limits));
	link = aligned(homa_link_size(CTRL_SLOTS));
	sock = aligned(homa_sock_size(&homa->limits));
	/* The number of lines of a host is odd, so that hosts do not share few cache
	 * sets. */
	each = (engine + link + 2 * sock) | ALIGN;
	homa->host_mem = memory_new(each * sim->cfg.hosts);
	homa->hosts = memory_new(aligned(sizeof(*homa->hosts) * sim->cfg.hosts));
	if (!homa->host_mem || !homa->hosts)
		return -ENOMEM;
	homa->pool.bytes += (each + sizeof(*homa->hosts)) * sim->cfg.hosts;
	for (i = 0; i < sim->cfg.hosts; i++) {
		struct sim_homa_host *hh = &homa->hosts[i];
		char *mem = (char *)homa->host_mem + i * each;
		int err;

		hh->host = &sim->hosts[i];
		hh->host->proto = hh;
		hh->timer.fn = sim_homa_timer;
		hh->engine = (struct homa_engine *)mem;
		hh->link = (struct homa_link *)(mem + engine);
		hh->client = (struct homa_sock *)(mem + engine + link);
		hh->server = (struct homa_sock *)(mem + engine + link + sock);
		err = host_init(sim, homa, hh);
		if (err)
			return err;
	}
	return 0;
}

void sim_homa_memory_free(struct sim_homa *homa)
{
	while (homa->pool.slabs) {
		struct sim_homa_slab *slab = homa->pool.slabs;

		homa->pool.slabs = slab->next;
		free(slab);
	}
	free(homa->sample);
	free(homa->hosts);
	free(homa->host_mem);
}
