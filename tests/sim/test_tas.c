// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The TCP engine in simulated hosts: all arrives once, links are used, queues are short. */
#include "tas_host.h"
#include "window_world.h"

static void tas_cfg(struct sim_config *cfg, u32 hosts, u64 control)
{
	world_cfg(cfg, &sim_tas, hosts);
	cfg->option[SIM_TAS_LOW] = 30; /* where other models have their streams */
	cfg->option[SIM_TAS_CONGESTION] = control;
}

/* Random traffic and random loss: every message arrives once, and no packet is left. */
static void lossy(u64 seed, u32 loss_ppm, u64 control)
{
	const struct sim_counts *c;
	struct sim_config cfg;

	tas_cfg(&cfg, 8, control);
	cfg.topology = SIM_LEAF_SPINE;
	cfg.racks = 2;
	cfg.spines = 2;
	cfg.seed = seed;
	cfg.loss_ppm = loss_ppm;
	world_new(&cfg);
	world_random_traffic(400);
	world_run(60 * SIM_S);
	c = &world.sim->counts;
	unit_assert(seed, world.arrived == world.sent);
	unit_assert(seed, c->msgs_delivered == c->msgs_started);
	unit_assert(seed, c->msgs_failed == 0);
	unit_assert(seed, c->pkts_sent == c->pkts_received + c->pkts_dropped);
	unit_assert(seed, c->pkts_live == 0);
	unit_assert(seed, !loss_ppm == !c->pkts_dropped);
	world_end();
}

static void test_every_control_and_loss(void **state)
{
	u64 control;

	(void)state;
	for (control = 0; control < TAS_CONTROLS; control++) {
		lossy(control + 1, 0, control);
		lossy(control + 10, 10000, control);
	}
}

/* Four senders to one receiver, each 10 MB: its link is busy, and the queue is about K. */
static void test_many_to_one(void **state)
{
	const struct sim_port_stats *stats;
	struct sim_config cfg;
	u64 took;
	u32 i;

	(void)state;
	tas_cfg(&cfg, 5, TAS_RATE_DCTCP);
	cfg.host_prop_ps = 5 * SIM_US;
	world_new(&cfg);
	for (i = 1; i < 5; i++)
		world_send(i, 0, 10000000);
	world_run(200 * SIM_MS);
	assert_int_equal(world.arrived, 4);
	took = world.done[world.order[0] ? 1 : 0];
	for (i = 0; i < 4; i++)
		took = world.done[i] > took ? world.done[i] : took;
	stats = &world_port(SIM_HOST_DOWN)->stats;
	/* 40 MB at 10 Gbit/s are 32 ms, 34 with headers. */
	assert_true(took < 43 * SIM_MS);
	assert_true(stats->marks > 0);
	assert_true(stats->drops == 0);
	assert_true(stats->byte_ns / (took / SIM_NS) < 200000);
	world_end();
}

/* The same run twice is the same. */
static void test_deterministic(void **state)
{
	struct sim_config cfg;
	u64 digest[2];
	u32 i;

	(void)state;
	for (i = 0; i < 2; i++) {
		tas_cfg(&cfg, 6, TAS_RATE_DCTCP);
		cfg.loss_ppm = 1000;
		world_new(&cfg);
		world_random_traffic(200);
		world_run(SIM_S);
		digest[i] = world.sim->digest;
		world_end();
	}
	assert_true(digest[0] == digest[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_control_and_loss),
		cmocka_unit_test(test_many_to_one),
		cmocka_unit_test(test_deterministic),
	};

	return cmocka_run_group_tests_name("tas", tests, NULL, NULL);
}
