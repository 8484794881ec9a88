/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A small world for the tests of pFabric and pHost: a run that remembers its
 * messages, sees what is sent and dropped, and lets receivers lose just the
 * packets that a test chooses. One run at a time.
 */
#ifndef SIM_TEST_PACKETS_WORLD_H
#define SIM_TEST_PACKETS_WORLD_H

#include "unit.h"

#include "packets.h"

#define WORLD_MSGS 1024
#define WORLD_PKT_PS (1538 * 800ull) /* a full packet at 10 Gbit/s */

/**
 * struct world - what the test set and sees
 * @eat: true: this packet is lost at the receiver; NULL: none is.
 * @sent, @dropped: packets with message bytes, by serial of the message.
 * @watch: sees every packet that leaves a host; may be NULL.
 */
struct world {
	struct sim *sim;
	struct sim_transport transport;
	const struct sim_transport *real;
	struct sim_tap tap;
	bool (*eat)(struct sim *sim, const struct sim_pkt *pkt);
	void (*watch)(struct sim *sim, const struct sim_pkt *pkt);
	struct sim_msg *msg[WORLD_MSGS];
	u32 num;
	u32 sent[WORLD_MSGS + 1], dropped[WORLD_MSGS + 1];
};

static struct world world;

static void world_rx(struct sim *sim, struct sim_host *host, struct sim_pkt *pkt)
{
	if (world.eat && world.eat(sim, pkt))
		sim_pkt_free(sim, pkt);
	else
		world.real->rx(sim, host, pkt);
}

static void world_sent(void *arg, struct sim *sim, const struct sim_pkt *pkt)
{
	(void)arg;
	if (!(pkt->flags & SIM_CONTROL))
		world.sent[pkt->msg_serial]++;
	if (world.watch)
		world.watch(sim, pkt);
}

static void world_dropped(void *arg, struct sim *sim,
			  const struct sim_port *port, const struct sim_pkt *pkt)
{
	(void)arg;
	(void)sim;
	(void)port;
	if (!(pkt->flags & SIM_CONTROL))
		world.dropped[pkt->msg_serial]++;
}

/** world_cfg() - the protocol's own wishes; @hosts on one switch, or 0: the 144 hosts */
static inline void world_cfg(struct sim_config *cfg,
			     const struct sim_transport *transport, u32 hosts)
{
	sim_config_default(cfg);
	cfg->transport = transport;
	assert_int_equal(transport->defaults(cfg), 0);
	if (!hosts)
		return;
	cfg->topology = SIM_ONE_SWITCH;
	cfg->hosts = hosts;
}

static inline void world_new(const struct sim_config *cfg)
{
	struct sim_config mine = *cfg;
	char err[256] = "";

	memset(&world, 0, sizeof(world));
	world.real = cfg->transport;
	world.transport = *cfg->transport;
	world.transport.rx = world_rx;
	mine.transport = &world.transport;
	world.sim = sim_new(&mine, err, sizeof(err));
	if (!world.sim)
		fail_msg("%s", err);
	world.tap.sent = world_sent;
	world.tap.dropped = world_dropped;
	world.sim->taps = &world.tap;
}

static inline void world_end(void)
{
	sim_free(world.sim);
	world.sim = NULL;
}

/** world_send() - now */
static inline struct sim_msg *world_send(u32 src, u32 dst, u32 length)
{
	struct sim_msg *msg = sim_msg_new(world.sim);

	assert_non_null(msg);
	assert_true(world.num < WORLD_MSGS);
	msg->src = (u16)src;
	msg->dst = (u16)dst;
	msg->length = length;
	world.msg[world.num++] = msg;
	sim_send(world.sim, msg);
	return msg;
}

/** world_run() - for another @ps */
static inline void world_run(u64 ps)
{
	sim_run(world.sim, world.sim->now + ps);
}

static inline u64 world_took(const struct sim_msg *msg)
{
	assert_true(msg->delivered);
	return msg->done - msg->created;
}

/** world_finish() - all arrives, and afterwards nothing is left over or unaccounted for */
static inline void world_finish(void)
{
	const struct sim_counts *counts = &world.sim->counts;
	u32 i;

	sim_run(world.sim, SIM_NEVER);
	for (i = 0; i < world.num; i++) {
		assert_true(world.msg[i]->delivered);
		assert_int_equal(world.msg[i]->refs, 1);
	}
	assert_int_equal(counts->msgs_failed, 0);
	assert_int_equal(counts->msgs_delivered, world.num);
	assert_int_equal(counts->pkts_live, 0);
	assert_int_equal(counts->pkts_sent,
			 counts->pkts_received + counts->pkts_dropped);
	assert_int_equal(counts->wire_sent,
			 counts->wire_received + counts->wire_dropped);
	for (i = 0; i < world.sim->cfg.hosts; i++)
		assert_int_equal(world.sim->hosts[i].withheld, 0);
}

struct world_wanted {
	const char *name;
	double value;
};

static inline void world_metric_put(void *arg, const char *name, double value)
{
	struct world_wanted *wanted = arg;

	if (!strcmp(name, wanted->name))
		wanted->value = value;
}

static inline u64 world_metric(const char *name)
{
	struct world_wanted wanted = { name, -1 };

	world.real->metrics(world.sim, world_metric_put, &wanted);
	assert_true(wanted.value >= 0);
	return (u64)wanted.value;
}

/** world_data_ps() - what the packets of a message take on a link of 10 Gbit/s */
static inline u64 world_data_ps(u32 length)
{
	u64 wire = (u64)(length / 1460) * 1538;

	if (length % 1460)
		wire += sim_wire(SIM_MODEL_HEADERS + length % 1460);
	return wire * 800;
}

/** world_alone_ps() - one packet with @payload, alone in the network */
static inline u64 world_alone_ps(u32 src, u32 dst, u32 payload)
{
	u64 delay[8], ps = 0;
	u32 rate[8], links, i;

	links = sim_path(world.sim, src, dst, rate, delay);
	for (i = 0; i < links; i++)
		ps += (u64)sim_wire(SIM_MODEL_HEADERS + payload) * rate[i] +
		      delay[i];
	return ps;
}

/* Random messages between a dozen hosts in different racks. */
static inline void world_storm(const struct sim_transport *transport, u64 seed,
			       u32 loss_ppm, u64 *lost)
{
	struct sim_config cfg;
	struct homa_prng rng;
	u32 i;

	world_cfg(&cfg, transport, 0);
	cfg.seed = seed;
	cfg.loss_ppm = loss_ppm;
	world_new(&cfg);
	homa_prng_seed(&rng, 77, 0);
	for (i = 0; i < 300; i++) {
		u32 src = (u32)homa_prng_below(&rng, 12),
		    dst = (u32)homa_prng_below(&rng, 11);
		u32 most = homa_prng_below(&rng, 3) ? 2000 : 200000;

		world_send(src * 12, (dst + (dst >= src)) * 12,
			   1 + (u32)homa_prng_below(&rng, most));
		world_run(homa_prng_below(&rng, 10 * SIM_US));
	}
	world_finish();
	*lost = world.sim->counts.pkts_dropped;
	world_end();
}

/* What every protocol must keep: delivery in spite of loss and failures. */
static inline void world_test_storms(const struct sim_transport *transport)
{
	u64 seed = unit_seed(), lost;
	u32 i;

	for (i = 0; i < 3; i++) {
		world_storm(transport, seed + i, 30000, &lost);
		unit_assert(seed, lost > 100);
	}
	world_storm(transport, seed, 300000, &lost); /* three of ten, on each link */
	unit_assert(seed, lost > 1000);
}

static inline void world_test_failure(const struct sim_transport *transport)
{
	struct sim_config cfg;
	u32 i;

	world_cfg(&cfg, transport, 8);
	cfg.topology = SIM_LEAF_SPINE;
	cfg.racks = 2;
	cfg.spines = 2;
	cfg.num_failures = 2;
	cfg.failures[0] =
		(struct sim_failure){ 8, 10, 50 * SIM_US, 300 * SIM_US };
	cfg.failures[1] =
		(struct sim_failure){ 3, 8, 100 * SIM_US, 400 * SIM_US };
	world_new(&cfg);
	for (i = 0; i < 64; i++)
		world_send(i % 8, (i + 1 + i / 8) % 8, 40000);
	world_finish();
	assert_true(world.sim->counts.pkts_dropped > 0);
	world_end();
}

/* The run may end at any time. */
static inline void world_test_stop(const struct sim_transport *transport)
{
	struct sim_config cfg;
	u32 i;

	world_cfg(&cfg, transport, 21);
	world_new(&cfg);
	for (i = 1; i <= 20; i++)
		world_send(i, 0, 100000);
	world_run(SIM_MS);
	assert_true(world.sim->counts.msgs_delivered > 0);
	assert_true(world.sim->counts.msgs_delivered < 20);
	world_end();
}

#endif
