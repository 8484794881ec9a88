// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Homa under random traffic, with and without losses: every message arrives,
 * nothing is left, nothing depends on anything but configuration and seed.
 */
#include "sim_homa.h"

/* Sends messages of random sizes and times until @left is 0. */
struct source {
	struct sim_event ev;
	struct homa_prng rng;
	u32 host, left;
	u64 gap_ps;
};

static struct source sources[144];

static void source_fires(struct sim *sim, struct sim_event *ev)
{
	struct source *s = homa_container_of(ev, struct source, ev);
	u32 dst = homa_prng_below(&s->rng, sim->cfg.hosts - 1);

	world_send(s->host, dst + (dst >= s->host),
		   homa_workload_size(&sim->workload, homa_prng_double(&s->rng)));
	if (--s->left)
		sim_event_add(sim->agenda, ev,
			      sim->now + (u64)homa_prng_exp(&s->rng,
							    (double)s->gap_ps));
}

/* @n messages of each host, @gap_ns apart on average. */
static struct sim *run_random(const struct sim_config *cfg, u32 n, u64 gap_ns)
{
	struct sim *sim = world_new(cfg);
	u32 i;

	memset(sources, 0, sizeof(sources));
	for (i = 0; i < cfg->hosts; i++) {
		homa_prng_seed(&sources[i].rng, cfg->seed, 1000 + i);
		sources[i].ev.fn = source_fires;
		sources[i].host = i;
		sources[i].left = n;
		sources[i].gap_ps = gap_ns * 1000;
		sim_event_add(sim->agenda, &sources[i].ev,
			      homa_prng_below(&sources[i].rng, 1000));
	}
	sim_run(sim, SIM_NEVER);
	return sim;
}

static void expect_all(u32 requests)
{
	const struct sim *sim = homa_world.sim;

	assert_int_equal(homa_world.failed, 0);
	assert_int_equal(homa_world.msgs, sim->cfg.rpc ? 2 * requests : requests);
	assert_int_equal(homa_world.delivered, homa_world.msgs);
	assert_int_equal(sim->counts.msgs_started, homa_world.msgs);
}

/* What a host gets cannot be faster than alone but by an overtaking packet. */
static void expect_not_faster_than_alone(void)
{
	const struct sim *sim = homa_world.sim;
	u32 i;

	for (i = 0; i < homa_world.msgs; i++) {
		const struct sim_msg *msg = homa_world.msg[i];
		u64 ideal = sim_ideal_ps(sim, msg->src, msg->dst, msg->length);

		assert_true(msg->done - msg->created >= ideal / 20 * 19);
	}
}

static void run__lossless_every_workload(void **state)
{
	static const struct {
		const char *name;
		u32 n;
		u64 gap_ns;
	} w[] = { { "w1", 1000, 300 },
		  { "w2", 500, 600 },
		  { "w3", 150, 3000 },
		  { "w4", 10, 110000 },
		  { "w5", 2, 1500000 } };
	u32 i;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(w); i++) {
		struct sim_config cfg = world_config("sigcomm18");

		cfg.racks = 3;
		cfg.hosts = 18;
		strcpy(cfg.workload, w[i].name);
		run_random(&cfg, w[i].n, w[i].gap_ns);
		expect_all(w[i].n * cfg.hosts);
		expect_not_faster_than_alone();
		/* Nothing was lost, so nothing is sent twice. */
		assert_int_equal(world_metric(HOMA_M_tx_retransmits), 0);
		assert_int_equal(world_metric(HOMA_M_tx_resend), 0);
		assert_int_equal(world_metric(HOMA_M_rx_fresh_bytes),
				 homa_world.sim->counts.bytes_delivered);
		world_end();
	}
}

static void run__rpcs(void **state)
{
	struct sim_config cfg = world_config("linux");

	(void)state;
	cfg.hosts = 10;
	strcpy(cfg.workload, "w3");
	run_random(&cfg, 150, 4000);
	expect_all(1500);
	expect_not_faster_than_alone();
	assert_int_equal(world_metric(HOMA_M_tx_retransmits), 0);
	assert_int_equal(world_metric(HOMA_M_requests_received), 1500);
	assert_int_equal(world_metric(HOMA_M_responses_taken), 1500);
	world_end();
}

static void run_lossy(const char *preset, bool rpc, u32 loss_ppm,
		      u64 port_bytes, u64 seed)
{
	struct sim_config cfg = world_one_switch(preset, 8);

	cfg.seed = seed;
	cfg.rpc = rpc;
	strcpy(cfg.workload, "w3");
	cfg.loss_ppm = loss_ppm;
	cfg.port_bytes = port_bytes;
	cfg.homa.resend_interval_us = 1000;
	cfg.homa.timeout_us = 1000000;
	run_random(&cfg, 100, 3000);
	expect_all(800);
	assert_true(homa_world.sim->counts.pkts_dropped > 0);
	assert_true(world_metric(HOMA_M_tx_retransmits) > 0);
	world_end();
}

static void run__losses_are_recovered(void **state)
{
	u64 seed;

	(void)state;
	for (seed = unit_seed(); seed < unit_seed() + 3; seed++) {
		run_lossy("sigcomm18", false, 10000, 0, seed);
		run_lossy("sigcomm18", true, 10000, 0, seed);
		run_lossy("linux", false, 10000, 0, seed);
		run_lossy("linux", true, 100000, 0, seed);
		run_lossy("sigcomm18", false, 0, 10000, seed);
	}
}

/* Duplicates of messages that are over, with engines that have no memory of
 * them: RESENDs that are asked too early in a network that loses nothing. */
static void run__late_duplicates_leave_nothing(void **state)
{
	struct sim_config cfg = world_one_switch("sigcomm18", 8);
	u32 i;

	(void)state;
	cfg.homa.resend_interval_us = 20;
	cfg.homa.timeout_us = 10000000;
	world_new(&cfg);
	for (i = 1; i < 8; i++)
		world_send(i, 0, 2000000 + i * 10000);
	sim_run(homa_world.sim, SIM_NEVER);
	expect_all(7);
	assert_true(world_metric(HOMA_M_tx_retransmits) > 0);
	world_end();
}

/* Everybody sends to one at once. */
static void run__incast(void **state)
{
	struct sim_config cfg = world_config("sigcomm18");
	u32 i;

	(void)state;
	world_new(&cfg);
	for (i = 1; i < 144; i++)
		world_send(i, 0, 20000);
	sim_run(homa_world.sim, SIM_NEVER);
	expect_all(143);
	/* 143 x 20,000 bytes at 10 Gbit/s and little more. */
	for (i = 0; i < 143; i++)
		assert_true(homa_world.msg[i]->done < 2700 * SIM_US);
	world_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(run__lossless_every_workload),
		cmocka_unit_test(run__rpcs),
		cmocka_unit_test(run__losses_are_recovered),
		cmocka_unit_test(run__late_duplicates_leave_nothing),
		cmocka_unit_test(run__incast),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
