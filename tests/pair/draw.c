/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Worlds of all kinds: every setting of the harness and many of the protocol, drawn.
 */
#include "harness.h"

u32 pair_one_of(struct pair_rng *rng, u32 a, u32 b, u32 c)
{
	u32 r = pair_below(rng, 3);

	return r == 0 ? a : r == 1 ? b : c;
}

static u64 up_to(struct pair_rng *rng, u64 max)
{
	return pair_chance(rng, 500) ? 0 : pair_rand(rng) % max;
}

static void draw_params(struct pair_rng *r, struct homa_params *p)
{
	if (pair_chance(r, 200))
		homa_params_sigcomm(p);
	if (pair_chance(r, 300))
		p->max_overcommit = 1 + pair_below(r, 10);
	if (pair_chance(r, 300))
		p->num_priorities = 1 + pair_below(r, 8);
	if (pair_chance(r, 200))
		p->unsched_bytes = 1 + pair_below(r, 100000);
	if (pair_chance(r, 200))
		p->max_incoming = 1 + pair_below(r, 500000);
	if (pair_chance(r, 200))
		p->window = 1 + pair_below(r, 200000);
	if (pair_chance(r, 200))
		p->grant_quantum = 1 + pair_below(r, 50000);
	if (pair_chance(r, 200))
		p->grant_fifo_fraction = pair_below(r, 501);
	if (pair_chance(r, 200))
		p->fifo_grant_increment = 1 + pair_below(r, 200000);
	if (pair_chance(r, 200))
		p->cutoff_interval_ms = 1 + pair_below(r, 50);
	if (pair_chance(r, 200))
		p->incast_rpcs = 1 + pair_below(r, 20);
	if (pair_chance(r, 100))
		p->max_rpcs = 10 + pair_below(r, 100);
	if (pair_chance(r, 100))
		p->max_server_rpcs_per_peer = 1 + pair_below(r, 10);
	if (pair_chance(r, 100))
		p->max_peers = 16;
	if (pair_chance(r, 200))
		p->peer_idle_ms = 1 + pair_below(r, 100);
	if (pair_chance(r, 100))
		p->max_message_length = 1 + pair_below(r, 300000);
	if (pair_chance(r, 200))
		p->bpage_lease_us = 1 + pair_below(r, 20000);
}

void pair_draw_config(struct pair_rng *r, struct pair_config *cfg)
{
	cfg->hosts = 2 + pair_below(r, 5);
	cfg->rate_mbps =
		pair_one_of(r, 10000, 1000, pair_chance(r, 300) ? 0 : 25000);
	cfg->latency_ns = 500 + pair_below(r, 50000);
	cfg->mtu = pair_one_of(r, 1500, 9000, 600 + pair_below(r, 3000));
	cfg->v6 = pair_chance(r, 300);
	cfg->encap = pair_chance(r, 300) ? 54321 : 0;
	cfg->max_segs = pair_one_of(r, 1, 4, 45);
	cfg->shards = pair_one_of(r, 1, 1, 16);
	cfg->buckets = pair_one_of(r, 4, 256, 256);
	cfg->tombstones = 4096;
	cfg->ctrl_slots = pair_one_of(r, 1024, 1024, 16);
	cfg->pool_pages = pair_one_of(r, 0, 256, 17 + pair_below(r, 40));
	cfg->by_room = pair_chance(r, 300);
	cfg->nic_queue_ns = 1000 + pair_below(r, 50000);
	cfg->port_limit = pair_chance(r, 200) ? 20000 + pair_below(r, 300000) : 0;
	cfg->rx_delay_ns = up_to(r, 20000);
	cfg->copy_delay_ns = up_to(r, 100000);
	cfg->done_delay_ns = up_to(r, 100000);
	cfg->take_delay_ns = up_to(r, PAIR_MS);
	cfg->reply_delay_ns = up_to(r, 5 * PAIR_MS);
	cfg->release_delay_ns = up_to(r, 5 * PAIR_MS);
	cfg->tx_fail = (u32)up_to(r, 100);
	cfg->starve = (u32)up_to(r, 800);
	cfg->supply_step = (u32)up_to(r, 60000);
	cfg->timer_budget = pair_one_of(r, 1, 10, 1000);
	cfg->faults.loss = (u32)up_to(r, 150);
	cfg->faults.dup = (u32)up_to(r, 200);
	cfg->faults.dup_max_ns = up_to(r, 500 * PAIR_MS);
	cfg->faults.reorder = (u32)up_to(r, 500);
	cfg->faults.reorder_max_ns = 1 + up_to(r, PAIR_MS);
	cfg->faults.corrupt = pair_chance(r, 150) ? pair_below(r, 200) : 0;
	draw_params(r, &cfg->params);
	cfg->deliver_whole = pair_chance(r, 500);
	cfg->at_once = pair_chance(r, 500);
	cfg->no_lives = cfg->seed % 4 == 0;
}
