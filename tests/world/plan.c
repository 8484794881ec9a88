/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a seed means. Two thirds of the worlds are busy for seconds, others idle for hours with
 * something to do now and then: what piles up, expires or wraps around needs time, and
 * what collides needs traffic. Each fault has random numbers of its own, so that the
 * others stay what they are when it is left out.
 */
#include "world.h"

#include <string.h>

static u64 between(struct pair_rng *r, u64 least, u64 most)
{
	return least + pair_rand(r) % (most - least + 1);
}

/* Log-uniform: times of all magnitudes. */
static u64 magnitude(struct pair_rng *r, u64 least, u64 most)
{
	u64 n = 0, v;

	while (least << n < most)
		n++;
	v = least << pair_below(r, (u32)n + 1);
	v += pair_rand(r) % v;
	return v < most ? v : most;
}

/* Hosts as they are delivered; in every second world of all kinds. */
static void draw_hosts(struct pair_rng *r, struct world_plan *p, u32 hosts)
{
	struct pair_config *cfg = &p->cfg;
	u32 most = WORLD_MAX_HOSTS - WORLD_MIN_HOSTS + 1;

	pair_config_default(cfg);
	if (pair_chance(r, 500)) {
		pair_draw_config(r, cfg);
	} else {
		cfg->latency_ns = 1000 + pair_below(r, 30000);
		cfg->mtu = pair_one_of(r, 1500, 1500, 9000);
		cfg->v6 = pair_chance(r, 300);
		cfg->encap = pair_chance(r, 300) ? 54321 : 0;
		cfg->deliver_whole = cfg->at_once = true;
		cfg->max_segs = pair_one_of(r, 1, 16, 45);
		cfg->pool_pages = pair_one_of(r, 64, 256, 256);
	}
	if (!cfg->params.timeout_us && pair_chance(r, 700))
		cfg->params.timeout_us = 500000; /* as the hosts of user space */
	/* The table has 16 parts, and all hosts may meet in one of them. */
	if (pair_chance(r, 300))
		cfg->params.max_peers = 16 * WORLD_MAX_HOSTS + pair_below(r, 200);
	else if (cfg->params.max_peers < 16 * WORLD_MAX_HOSTS)
		cfg->params.max_peers = 16 * WORLD_MAX_HOSTS;
	memset(&cfg->faults, 0, sizeof(cfg->faults));
	cfg->tx_fail = cfg->starve = 0;
	cfg->seed = p->seed;
	cfg->tombstones = 16384;
	cfg->max_packets = 100000000;
	cfg->hosts = WORLD_MIN_HOSTS + pair_below(r, most);
	if (hosts)
		cfg->hosts = hosts;
	p->liars = pair_chance(r, 400) ? 1 + pair_chance(r, 300) : 0;
	if (cfg->hosts - p->liars < 2)
		p->liars = 1;
}

static void draw_load(struct pair_rng *r, struct world_plan *p)
{
	u64 rpcs = magnitude(r, 50, 3000);

	p->idle = pair_chance(r, 333);
	p->span = p->idle ? magnitude(r, 600 * PAIR_S, 24 * 3600 * PAIR_S) :
			    magnitude(r, 200 * PAIR_MS, 8 * PAIR_S);
	p->pattern = pair_below(r, WORLD_PATTERNS);
	p->hot = (u8)pair_below(r, p->cfg.hosts);
	p->burst = pair_chance(r, 300) ? 1 + pair_below(r, 40) : 1;
	p->gap_ns = p->span / rpcs * p->cfg.hosts * p->burst;
	/* Long messages are the simulator's time, and seldom what goes wrong. */
	p->bits = 4 + pair_below(r, pair_chance(r, 150) ? 17 : 12);
	p->most = (u32)magnitude(r, 4, 300);
	p->slow = pair_chance(r, 500) ? pair_below(r, 500) : 0;
	if (pair_chance(r, 200))
		p->cfg.take_delay_ns = magnitude(r, 10 * PAIR_US, 500 * PAIR_MS);
	if (pair_chance(r, 200))
		p->cfg.release_delay_ns =
			magnitude(r, 10 * PAIR_US, 500 * PAIR_MS);
}

/* A random set of hosts, neither none nor all. */
static u32 some(struct pair_rng *r, u32 hosts)
{
	u32 all = (1u << hosts) - 1, mask;

	do
		mask = (u32)pair_rand(r) & all;
	while (!mask || mask == all);
	return mask;
}

/* How long a fault lasts; most worlds have hundreds of timeouts. */
static u64 length_of(struct pair_rng *r, const struct world_plan *p, u32 kind)
{
	u64 most = p->span / 4;

	/* Costs packets all the time. */
	if (kind >= WORLD_lie_change || kind == WORLD_app_greedy)
		most = most < PAIR_S ? most : PAIR_S;
	else if (kind >= WORLD_app_deaf)
		most = most < 20 * PAIR_S ? most : 20 * PAIR_S;
	else if (most > 600 * PAIR_S)
		most = 600 * PAIR_S;
	return magnitude(r, most / 64 + 1, most);
}

static void draw_fault(const struct world_plan *p, struct world_fault *f)
{
	struct pair_rng *r = &f->rng;
	u32 hosts = p->cfg.hosts, honest = hosts - p->liars;

	f->at = pair_rand(r) % p->span;
	f->end = f->at + length_of(r, p, f->kind);
	f->mask = some(r, hosts);
	f->a = (u8)pair_below(r, honest);
	f->b = (u8)((f->a + 1 + pair_below(r, hosts - 1)) % hosts);
	f->amount = 1 + pair_below(r, 300);
	f->ns = magnitude(r, PAIR_US, PAIR_S);
	switch (f->kind) {
	case WORLD_copies:
		f->ns = between(r, PAIR_MS, 1000 * PAIR_MS);
		break;
	case WORLD_late_copies:
		f->ns = between(r, PAIR_S, 8 * PAIR_S);
		break;
	case WORLD_reorder:
		f->ns = magnitude(r, PAIR_US, 20 * PAIR_MS);
		break;
	case WORLD_pause:
		f->ns = magnitude(r, PAIR_MS, 10 * PAIR_S);
		break;
	case WORLD_restart:
	case WORLD_crash_rx:
	case WORLD_crash_tx:
		f->ns = pair_chance(r, 500) ? 0 :
					      magnitude(r, PAIR_MS, 3 * PAIR_S);
		break;
	case WORLD_leap:
		f->ns = magnitude(r, PAIR_MS, 100 * PAIR_S);
		break;
	case WORLD_drift:
		f->amount = pair_below(r, 1001); /* less 500: ppm */
		break;
	case WORLD_damage:
		f->amount = 1 + pair_below(r, 100);
		break;
	default:
		if (f->kind >= WORLD_lie_change)
			f->ns = magnitude(r, 5 * PAIR_US, 20 * PAIR_MS);
		break;
	}
}

static bool wanted(const struct world_plan *p, u32 kind)
{
	if (kind >= WORLD_lie_change)
		return p->liars;
	/* Nothing that was said can be judged after it; only a few worlds. */
	if (kind == WORLD_damage)
		return pair_mix(p->seed ^ kind) % 16 == 0;
	/* What runs again there is not promised; the others are judged strictly. */
	if (kind == WORLD_late_copies || kind == WORLD_leap)
		return pair_mix(p->seed ^ kind) % 4 == 0;
	return true;
}

static void draw_faults(struct pair_rng *r, struct world_plan *p)
{
	u32 n = pair_below(r, WORLD_MAX_FAULTS + 1), i, kind;

	for (i = 0; i < n; i++) {
		struct world_fault *f = &p->faults[p->num_faults];

		kind = pair_below(r, WORLD_KINDS);
		if (p->liars && pair_chance(r, 300))
			kind = WORLD_lie_change +
			       pair_below(r, WORLD_KINDS - WORLD_lie_change);
		if (!wanted(p, kind))
			continue;
		f->kind = (u8)kind;
		f->rng.s = pair_mix(p->seed ^ (u64)(i + 1) << 48);
		draw_fault(p, f);
		p->num_faults++;
	}
}

void world_draw(struct world_plan *p, u64 seed, u32 hosts)
{
	struct pair_rng r = { .s = pair_mix(seed ^ 0x776f726c64) };

	memset(p, 0, sizeof(*p));
	p->seed = seed;
	draw_hosts(&r, p, hosts);
	draw_load(&r, p);
	/* Whoever takes all he can needs an end that is near. */
	if (pair_chance(&r, 300))
		p->cfg.params.max_rpcs = 300 + pair_below(&r, 3000);
	draw_faults(&r, p);
}
