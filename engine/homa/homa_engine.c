// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Making an engine out of memory the host hands in, and the tables that
 * describe its settings and counters. All sizes are fixed here, but for hash tables
 * that grow by memory from the host.
 */
#include "homa_life.h"
#include "homa_rx.h"

#define HOMA_ALIGN 64u
/* Buckets to which all shards together, and a part of the peer table, may grow, unless
 * limits say otherwise. */
#define HOMA_MAX_BUCKETS 262144u
#define HOMA_MAX_PEER_BUCKETS 4096u
#define HOMA_MAX_SHARDS (1u << (32 - HOMA_SHARD_SHIFT))
#define HOMA_WHEEL_TICK_NS 500000u

const struct homa_param_info homa_param_table[] = {
#define PARAM(name, def, min, max, unit, text) \
	{ #name, unit, text, def, min, max, offsetof(struct homa_params, name) },
#include "homa_params.def"
#undef PARAM
};
const u32 homa_param_count = HOMA_ARRAY_SIZE(homa_param_table);

const struct homa_metric_info homa_metric_table[HOMA_M_COUNT] = {
#define METRIC(name, text) { #name, text },
#include "homa_metrics.def"
#undef METRIC
};

static u32 *homa_param_field(struct homa_params *params, u32 i)
{
	return (u32 *)((char *)params + homa_param_table[i].offset);
}

void homa_params_default(struct homa_params *params)
{
	u32 i;

	for (i = 0; i < homa_param_count; i++)
		*homa_param_field(params, i) = homa_param_table[i].def;
}

void homa_params_sigcomm(struct homa_params *params)
{
	homa_params_default(params);
	params->sigcomm_grants = 1;
	params->last_rtt_unsched = 1;
	params->prio_by_remaining = 1;
	params->max_overcommit = 7;
	params->grant_fifo_fraction = 0;
	params->pacer_fifo_fraction = 0;
	params->incast_rpcs = 0;
	params->unsched_bytes = 10000;
}

static bool homa_name_equal(const char *a, const char *b)
{
	while (*a && *a == *b) {
		a++;
		b++;
	}
	return *a == *b;
}

int homa_param_set(struct homa_params *params, const char *name, u32 value)
{
	u32 i;

	for (i = 0; i < homa_param_count; i++) {
		const struct homa_param_info *info = &homa_param_table[i];

		if (!homa_name_equal(info->name, name))
			continue;
		if (value < info->min || value > info->max)
			return -HOMA_EINVAL;
		*homa_param_field(params, i) = value;
		return 0;
	}
	return -HOMA_EINVAL;
}

bool homa_params_valid(const struct homa_params *params)
{
	struct homa_params copy = *params;
	u32 i;

	for (i = 0; i < homa_param_count; i++) {
		u32 value = *homa_param_field(&copy, i);

		if (value < homa_param_table[i].min ||
		    value > homa_param_table[i].max)
			return false;
	}
	return true;
}

/* ---- sizes ---- */

static size_t homa_align(size_t n)
{
	return (n + HOMA_ALIGN - 1) & ~(size_t)(HOMA_ALIGN - 1);
}

/* Number of segments by which a table may grow. */
static u32 homa_table_limit(u32 first, u32 most)
{
	return most > first ? (most - first) / HOMA_SEGMENT_BUCKETS : 0;
}

static size_t homa_table_bytes(u32 first, u32 most)
{
	return homa_align(first * sizeof(struct homa_list)) +
	       homa_align(homa_table_limit(first, most) *
			  sizeof(struct homa_segment *));
}

static char *homa_table_make(struct homa_table *table, u32 first, u32 most,
			     char *mem)
{
	char *segments = mem + homa_align(first * sizeof(struct homa_list));

	homa_table_init(table, (struct homa_list *)mem, first,
			(struct homa_segment **)segments,
			homa_table_limit(first, most));
	return mem + homa_table_bytes(first, most);
}

static u32 homa_max_buckets(const struct homa_limits *limits)
{
	return limits->max_buckets ? limits->max_buckets :
				     HOMA_MAX_BUCKETS / limits->shards;
}

static u32 homa_max_peer_buckets(const struct homa_limits *limits)
{
	return limits->max_peer_buckets ? limits->max_peer_buckets :
					  HOMA_MAX_PEER_BUCKETS;
}

static size_t homa_shard_bytes(const struct homa_limits *limits)
{
	return homa_table_bytes(limits->buckets, homa_max_buckets(limits));
}

static u32 homa_peer_buckets(const struct homa_limits *limits)
{
	return limits->peer_buckets ? limits->peer_buckets : HOMA_PEER_BUCKETS;
}

size_t homa_engine_size(const struct homa_limits *limits)
{
	return homa_align(sizeof(struct homa_engine)) +
	       homa_align(limits->shards * sizeof(struct homa_shard)) +
	       limits->shards * homa_shard_bytes(limits) +
	       homa_align(homa_once_bytes(limits)) +
	       HOMA_PEER_STRIPES *
		       homa_table_bytes(homa_peer_buckets(limits),
					homa_max_peer_buckets(limits)) +
	       homa_sock_buckets(limits) * sizeof(struct homa_list);
}

size_t homa_sock_size(const struct homa_limits *limits)
{
	return sizeof(struct homa_sock) + limits->sock_priv;
}

size_t homa_peer_size(const struct homa_limits *limits)
{
	return sizeof(struct homa_peer) + limits->peer_priv;
}

size_t homa_rpc_size(const struct homa_limits *limits)
{
	return sizeof(struct homa_rpc) + limits->rpc_priv;
}

size_t homa_segment_size(void)
{
	return sizeof(struct homa_segment);
}

size_t homa_range_size(void)
{
	return HOMA_RECORD_SIZE;
}

/* ---- set-up ---- */

static bool homa_power_of_two(u32 n)
{
	return n && !(n & (n - 1));
}

static char *homa_shard_init(struct homa_engine *engine, u32 index, char *mem,
			     u64 now)
{
	const struct homa_limits *limits = &engine->limits;
	struct homa_shard *shard = &engine->shards[index];

	homa_lock_init(&shard->lock, HOMA_LOCK_SHARD);
	shard->index = index;
	shard->next_generation = 0;
	mem = homa_table_make(&shard->rpcs, limits->buckets,
			      homa_max_buckets(limits), mem);
	homa_wheel_init(&shard->wheel, HOMA_WHEEL_TICK_NS, now);
	return mem;
}

static char *homa_peers_init(struct homa_engine *engine, char *mem)
{
	const struct homa_limits *limits = &engine->limits;
	u32 i;

	engine->max_peers_per_stripe =
		homa_max_u32(1, engine->params.max_peers / HOMA_PEER_STRIPES);
	for (i = 0; i < HOMA_PEER_STRIPES; i++) {
		struct homa_peer_stripe *stripe = &engine->peers[i];

		homa_lock_init(&stripe->lock, HOMA_LOCK_PEER_TABLE);
		homa_list_init(&stripe->turns);
		homa_list_init(&stripe->owed);
		mem = homa_table_make(&stripe->peers, homa_peer_buckets(limits),
				      homa_max_peer_buckets(limits), mem);
	}
	return mem;
}

static void homa_guard_set(struct homa_engine *engine)
{
	const struct homa_params *params = &engine->params;
	u64 us = params->restart_guard_us;

	/* A client that met the former life of this server gives up within its timeout and
	 * a quarter (homa_timer.c); only after that may its requests count as new. */
	if (!us)
		us = (params->timeout_us ? params->timeout_us : 100000) * 5ull /
		     4;
	engine->guard_until = us == 1 ? 0 : engine->start + us * 1000;
}

void homa_seeds_fixed(struct homa_seeds *seeds, u64 seed)
{
	struct homa_rng rng;
	u32 i;

	homa_rng_init(&rng, seed);
	seeds->keys[0] = homa_rng_next(&rng);
	seeds->id = homa_rng_next(&rng);
	seeds->port = homa_rng_next(&rng);
	for (i = 1; i < HOMA_ARRAY_SIZE(seeds->keys); i++)
		seeds->keys[i] = homa_rng_next(&rng);
	seeds->places = homa_rng_next(&rng);
	seeds->life = homa_rng_next(&rng);
}

int homa_engine_init(struct homa_engine *engine, const struct homa_limits *limits,
		     const struct homa_params *params,
		     const struct homa_seeds *seeds, u64 now)
{
	char *mem = (char *)engine + homa_align(sizeof(*engine));
	u32 i;

	if (!homa_power_of_two(limits->shards) ||
	    limits->shards > HOMA_MAX_SHARDS ||
	    !homa_power_of_two(limits->buckets) ||
	    !homa_power_of_two(homa_peer_buckets(limits)) ||
	    !homa_power_of_two(homa_sock_buckets(limits)) ||
	    !homa_params_valid(params))
		return -HOMA_EINVAL;
	memset(engine, 0, sizeof(*engine));
	engine->params = *params;
	engine->limits = *limits;
	engine->seeds = *seeds;
	/* A restarted engine begins with other ids, so that they do not meet those of its
	 * former life. */
	engine->id_epoch = (seeds->id >> 1 & ~1ull) + 2;
	engine->next_port = (u16)seeds->port;
	engine->start = now;
	engine->maintain_at = now;
	homa_guard_set(engine);
	engine->life = homa_life_drawn(engine);
	homa_lock_init(&engine->sock_lock, HOMA_LOCK_SOCK_TABLE);
	engine->shards = (struct homa_shard *)mem;
	mem += homa_align(limits->shards * sizeof(struct homa_shard));
	for (i = 0; i < limits->shards; i++)
		mem = homa_shard_init(engine, i, mem, now);
	homa_once_init(engine, mem);
	mem += homa_align(homa_once_bytes(limits));
	mem = homa_peers_init(engine, mem);
	engine->sock_buckets = (struct homa_list *)mem;
	for (i = 0; i < homa_sock_buckets(limits); i++)
		homa_list_init(&engine->sock_buckets[i]);
	homa_prio_init(engine);
	return 0;
}

int homa_engine_set_params(struct homa_ctx *ctx, const struct homa_params *params)
{
	struct homa_engine *engine = ctx->engine;

	if (!homa_params_valid(params))
		return -HOMA_EINVAL;
	engine->params = *params;
	engine->max_peers_per_stripe =
		homa_max_u32(1, params->max_peers / HOMA_PEER_STRIPES);
	return 0;
}

const struct homa_params *homa_engine_params(const struct homa_engine *engine)
{
	return &engine->params;
}

void homa_ctx_init(struct homa_ctx *ctx, struct homa_engine *engine, u32 cpu)
{
	struct homa_addr zero;

	memset(ctx, 0, sizeof(*ctx));
	ctx->engine = engine;
	ctx->cpu = cpu;
	/* An address of zeros is valid, so the key that belongs to it must be secret,
	 * too. */
	memset(&zero, 0, sizeof(zero));
	homa_addr_key_new(ctx, &zero);
}

/* ---- memory that goes back to the host ---- */

void *homa_engine_segment(struct homa_engine *engine)
{
	void *segment = NULL;
	u32 i;

	for (i = 0; i < engine->limits.shards && !segment; i++)
		segment = homa_table_cut(&engine->shards[i].rpcs);
	for (i = 0; i < HOMA_PEER_STRIPES && !segment; i++)
		segment = homa_table_cut(&engine->peers[i].peers);
	return segment;
}

struct homa_rpc *homa_retired_rpc(struct homa_ctx *ctx)
{
	struct homa_rpc *rpc;

	if (ctx->num_acks)
		homa_rx_owed(ctx);
	rpc = ctx->retired_rpc;
	if (rpc)
		ctx->retired_rpc = (struct homa_rpc *)rpc->hash.next;
	return rpc;
}

struct homa_peer *homa_retired_peer(struct homa_ctx *ctx)
{
	struct homa_peer *peer = ctx->retired_peer;

	if (peer)
		ctx->retired_peer = (struct homa_peer *)peer->hash.next;
	return peer;
}

u32 homa_engine_shards(const struct homa_engine *engine)
{
	return engine->limits.shards;
}

void homa_engine_counts(const struct homa_engine *engine,
			struct homa_counts *counts)
{
	counts->rpcs = (u32)HOMA_READ_ONCE(engine->num_rpcs);
	counts->peers = (u32)HOMA_READ_ONCE(engine->num_peers);
	counts->socks = (u32)HOMA_READ_ONCE(engine->num_socks);
	counts->once = (u32)HOMA_READ_ONCE(engine->num_once);
}
