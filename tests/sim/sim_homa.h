/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the tests of the Homa transport share: a run without traffic.c, in
 * which the test sends messages and, in RPC runs, every request is answered
 * with as many bytes. At the end nothing may be left anywhere.
 */
#ifndef SIM_HOMA_H
#define SIM_HOMA_H

#include <errno.h>

#include "unit.h"

#include "homa_host.h"
#include "homa_look.h"

#define WORLD_MSGS 20000

/* struct homa_world - @msg: all messages in order of sending; a reference is held */
struct homa_world {
	struct sim *sim;
	struct sim_msg *msg[WORLD_MSGS];
	u32 msgs;
	u32 delivered, failed;
	struct homa_prng rng;
};

static struct homa_world homa_world;

static inline struct sim_msg *world_send(u32 src, u32 dst, u32 length)
{
	struct sim_msg *msg = sim_msg_new(homa_world.sim);

	assert_true(homa_world.msgs < WORLD_MSGS);
	homa_world.msg[homa_world.msgs++] = msg;
	msg->src = (u16)src;
	msg->dst = (u16)dst;
	msg->length = length;
	sim_send(homa_world.sim, msg);
	return msg;
}

static inline void world_delivered(struct sim *sim, struct sim_msg *msg)
{
	struct sim_msg *response;

	homa_world.delivered++;
	if (!sim->cfg.rpc || msg->request)
		return;
	response = sim_msg_new(sim);
	assert_true(homa_world.msgs < WORLD_MSGS);
	homa_world.msg[homa_world.msgs++] = response;
	response->src = msg->dst;
	response->dst = msg->src;
	response->length = msg->length;
	response->request = msg;
	sim_msg_get(msg);
	sim_send(sim, response);
}

static inline void world_failed(struct sim *sim, struct sim_msg *msg, int error)
{
	(void)sim;
	(void)msg;
	assert_true(error > 0);
	homa_world.failed++;
}

/* A configuration of Homa that may still be changed. */
static inline struct sim_config world_config(const char *preset)
{
	struct sim_config cfg;

	sim_config_default(&cfg);
	cfg.transport = &sim_homa;
	strcpy(cfg.preset, preset);
	assert_int_equal(sim_homa.defaults(&cfg), 0);
	return cfg;
}

static inline struct sim_config world_one_switch(const char *preset, u32 hosts)
{
	struct sim_config cfg = world_config(preset);

	cfg.topology = SIM_ONE_SWITCH;
	cfg.hosts = hosts;
	return cfg;
}

static inline struct sim *world_new(const struct sim_config *cfg)
{
	char err[256] = "";

	memset(&homa_world, 0, sizeof(homa_world));
	homa_world.sim = sim_new(cfg, err, sizeof(err));
	if (!homa_world.sim)
		fail_msg("%s", err);
	homa_world.sim->on_delivered = world_delivered;
	homa_world.sim->on_failed = world_failed;
	homa_prng_seed(&homa_world.rng, cfg->seed, 7);
	return homa_world.sim;
}

static inline struct sim_homa_host *world_host(u32 index)
{
	return homa_world.sim->hosts[index].proto;
}

static inline u64 world_metric(enum homa_metric metric)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < homa_world.sim->cfg.hosts; i++)
		sum += world_host(i)->ctx.metrics[metric];
	return sum;
}

/* Packets, messages, RPCs: everything is back where it came from; gives the
 * test's references back, too. */
static inline void world_empty(void)
{
	struct sim *sim = homa_world.sim;
	struct homa_link_state state;
	struct homa_counts counts;
	u32 i;

	assert_int_equal(sim->counts.pkts_live, 0);
	assert_int_equal(sim->counts.pkts_sent,
			 sim->counts.pkts_received + sim->counts.pkts_dropped);
	assert_int_equal(sim->counts.wire_sent,
			 sim->counts.wire_received + sim->counts.wire_dropped);
	for (i = 0; i < sim->cfg.hosts; i++) {
		struct sim_homa_host *hh = world_host(i);

		homa_engine_counts(hh->engine, &counts);
		assert_int_equal(counts.rpcs, 0);
		homa_link_state(&hh->ctx, hh->link, &state);
		assert_int_equal(state.sending + state.granting + state.waiting,
				 0);
		assert_int_equal(sim->hosts[i].withheld, 0);
		assert_int_equal(hh->ctx.metrics[HOMA_M_tx_ctrl_full], 0);
		assert_false(sim_event_pending(&hh->timer));
	}
	/* A response holds its request. */
	for (i = 0; i < homa_world.msgs; i++)
		if (homa_world.msg[i]->request)
			sim_msg_put(sim, homa_world.msg[i]->request);
	for (i = 0; i < homa_world.msgs; i++) {
		assert_int_equal(homa_world.msg[i]->refs, 1);
		homa_world.msg[i]->request = NULL;
		sim_msg_put(sim, homa_world.msg[i]);
	}
	homa_world.msgs = 0;
}

static inline void world_end(void)
{
	sim_run(homa_world.sim, SIM_NEVER);
	world_empty();
	sim_free(homa_world.sim);
}

#endif
