/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A small world for the window protocols' tests: a run whose receivers lose
 * just the packets that the test chooses, which remembers when its messages
 * arrived and shows the streams. One run at a time.
 */
#ifndef SIM_TEST_WINDOW_WORLD_H
#define SIM_TEST_WINDOW_WORLD_H

#include "unit.h"
#include "window.h"

#define WORLD_MSGS 4096

/**
 * struct world - what the test set and sees
 * @eat: true: this packet is lost at the receiver; NULL: none is. Sees all.
 * @done: by order of sending: when it arrived; @order: how many came before.
 */
struct world {
	struct sim *sim;
	struct sim_transport transport;
	const struct sim_transport *real;
	bool (*eat)(struct sim *sim, const struct sim_pkt *pkt);
	u32 sent, arrived;
	u64 first_serial;
	u64 done[WORLD_MSGS];
	u32 order[WORLD_MSGS];
};

static struct world world;
/* Runs of TCP find losses as in window_sack.c. */
static bool world_sack;

static void world_rx(struct sim *sim, struct sim_host *host, struct sim_pkt *pkt)
{
	if (world.eat && world.eat(sim, pkt))
		sim_pkt_free(sim, pkt);
	else
		world.real->rx(sim, host, pkt);
}

static void world_delivered(struct sim *sim, struct sim_msg *msg)
{
	u64 index = msg->serial - world.first_serial;

	world.done[index] = sim->now;
	world.order[index] = world.arrived++;
	sim_msg_put(sim, msg);
}

/** world_cfg() - the protocol's own wishes on one switch without delays */
static inline void world_cfg(struct sim_config *cfg,
			     const struct sim_transport *transport, u32 hosts)
{
	sim_config_default(cfg);
	cfg->topology = SIM_ONE_SWITCH;
	cfg->hosts = hosts;
	cfg->transport = transport;
	assert_int_equal(transport->defaults(cfg), 0);
	/* One stream each way, which a test can look at. */
	if (transport != &sim_pias)
		cfg->option[WINDOW_STREAMS] = 1;
	if (transport == &sim_tcp)
		cfg->option[WINDOW_SACK] = world_sack;
}

/** world_neck() - two racks of @hosts joined by one link of 1 Gbit/s */
static inline void world_neck(struct sim_config *cfg,
			      const struct sim_transport *transport, u32 hosts)
{
	world_cfg(cfg, transport, 2 * hosts);
	cfg->topology = SIM_LEAF_SPINE;
	cfg->racks = 2;
	cfg->spines = 1;
	cfg->fabric_mbps = 1000;
	cfg->shared_bytes = 0;
}

static inline struct window *world_new(const struct sim_config *cfg)
{
	struct sim_config mine = *cfg;
	char err[200];

	memset(&world, 0, sizeof(world));
	world.real = cfg->transport;
	world.transport = *cfg->transport;
	world.transport.rx = world_rx;
	mine.transport = &world.transport;
	world.sim = sim_new(&mine, err, sizeof(err));
	if (!world.sim)
		fail_msg("%s", err);
	world.sim->on_delivered = world_delivered;
	world.first_serial = 1;
	return window_of(world.sim);
}

static inline void world_end(void)
{
	sim_free(world.sim);
	world.sim = NULL;
}

/** world_send() - now; returns its index */
static inline u32 world_send(u32 src, u32 dst, u32 length)
{
	struct sim_msg *msg = sim_msg_new(world.sim);

	assert_true(world.sent < WORLD_MSGS);
	msg->src = (u16)src;
	msg->dst = (u16)dst;
	msg->length = length;
	sim_send(world.sim, msg);
	return world.sent++;
}

/** world_run() - for another @ps */
static inline void world_run(u64 ps)
{
	sim_run(world.sim, world.sim->now + ps);
}

static inline struct window_flow *world_flow(u32 src, u32 dst)
{
	struct window *w = window_of(world.sim);

	return w->hosts[src].to[window_slot(w, dst, false, 0)];
}

/** world_port() - the busiest port of @level */
static inline struct sim_port *world_port(enum sim_level level)
{
	struct sim_port *best = NULL, *port;
	u32 i;

	for (i = 0; i < world.sim->num_ports; i++) {
		port = &world.sim->ports[i];
		if (port->level == level &&
		    (!best || port->stats.tx_bytes > best->stats.tx_bytes))
			best = port;
	}
	return best;
}

/* @count messages of 1 byte to 60 KB between random hosts, some at once, some later. */
static inline void world_random_traffic(u32 count)
{
	struct homa_prng rng;
	u32 i, src, dst, hosts = world.sim->cfg.hosts;

	homa_prng_seed(&rng, world.sim->cfg.seed, 77);
	for (i = 0; i < count; i++) {
		src = (u32)homa_prng_below(&rng, hosts);
		dst = (u32)(src + 1 + homa_prng_below(&rng, hosts - 1)) % hosts;
		world_send(src, dst,
			   1 + (u32)homa_prng_below(&rng, i % 4 ? 3000 : 60000));
		world_run(homa_prng_below(&rng, 20 * SIM_US));
	}
}

/* A run with random loss: all is delivered, nothing is left over. */
static inline void world_lossy(const struct sim_transport *transport, u64 seed,
			       u32 loss_ppm, u32 ack_every)
{
	struct sim_config cfg;
	struct sim_counts *c;

	world_cfg(&cfg, transport, 8);
	cfg.topology = SIM_LEAF_SPINE;
	cfg.racks = 2;
	cfg.spines = 2;
	cfg.seed = seed;
	cfg.loss_ppm = loss_ppm;
	cfg.option[WINDOW_RTO_MIN] = 1000;
	cfg.option[WINDOW_ACK_EVERY] = ack_every;
	if (transport != &sim_pias)
		cfg.option[WINDOW_STREAMS] = seed % 4;
	world_new(&cfg);
	world_random_traffic(400);
	world_run(60 * SIM_S);
	c = &world.sim->counts;
	unit_assert(seed, world.arrived == world.sent);
	unit_assert(seed, c->msgs_delivered == c->msgs_started);
	unit_assert(seed, c->pkts_sent == c->pkts_received + c->pkts_dropped);
	unit_assert(seed, c->wire_sent == c->wire_received + c->wire_dropped);
	unit_assert(seed, c->pkts_live == 0);
	unit_assert(seed, !loss_ppm == !c->pkts_dropped);
	unit_assert(seed, !loss_ppm == !window_of(world.sim)->counts.retransmits);
	world_end();
}

/* A link of the core and one host's fail in mid-traffic and come back: all is delivered. */
static inline void world_test_failure(const struct sim_transport *transport)
{
	struct sim_config cfg;

	world_cfg(&cfg, transport, 8);
	cfg.topology = SIM_LEAF_SPINE;
	cfg.racks = 2;
	cfg.spines = 2;
	cfg.option[WINDOW_RTO_MIN] = 1000;
	cfg.num_failures = 2;
	cfg.failures[0] = (struct sim_failure){ 8, 10, 500 * SIM_US, 3 * SIM_MS };
	cfg.failures[1] = (struct sim_failure){ 3, 8, 1 * SIM_MS, 4 * SIM_MS };
	world_new(&cfg);
	world_random_traffic(200);
	world_run(10 * SIM_S);
	assert_int_equal(world.arrived, world.sent);
	assert_int_equal(world.sim->counts.pkts_live, 0);
	assert_true(world.sim->counts.pkts_dropped > 0);
	world_end();
}

/* The properties that every window protocol must keep under loss. */
static inline void world_test_loss(const struct sim_transport *transport)
{
	u64 seed = unit_seed();
	u32 i;

	for (i = 0; i < 4; i++) {
		world_lossy(transport, seed + i, 10000, 1 + i % 2);
		world_lossy(transport, seed + i, 200000, 1 + i % 2);
		world_lossy(transport, seed + i, 0, 1 + i % 2);
	}
	world_test_failure(transport);
}

#endif
