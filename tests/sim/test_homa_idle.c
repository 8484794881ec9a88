// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A message that is alone in the network takes exactly as long as ideal.c
 * says, whatever its size: Homa's slowdown is 1. So grants come early enough,
 * no packet is a runt, no acknowledgment is in the way.
 */
#include "sim_homa.h"

/*
 * One message (and its response) after the other between two hosts, far enough
 * apart in time that every engine is at rest.
 */
static void one_alone(u32 src, u32 dst, u32 length, bool overtakes)
{
	struct sim *sim = homa_world.sim;
	u32 first = homa_world.msgs, i;

	world_send(src, dst, length);
	sim_run(sim, sim->now + 50 * SIM_MS);
	for (i = first; i < homa_world.msgs; i++) {
		struct sim_msg *msg = homa_world.msg[i];
		u64 took = msg->done - msg->created;
		u64 ideal = sim_ideal_ps(sim, msg->src, msg->dst, length);

		assert_true(msg->delivered);
		if (overtakes && took < ideal && took > ideal / 20 * 19)
			continue;
		if (took != ideal)
			fail_msg("%u bytes from %u to %u: %llu ps, ideal %llu",
				 length, msg->src, msg->dst,
				 (unsigned long long)took,
				 (unsigned long long)ideal);
	}
	assert_int_equal(homa_world.msgs, first + (sim->cfg.rpc ? 2 : 1));
}

static void sizes_alone(const struct sim_config *cfg, u32 src, u32 dst)
{
	struct sim *sim = world_new(cfg);
	u32 segment = sim_homa_segment(&sim->cfg), k, i;
	bool spray = cfg->topology != SIM_ONE_SWITCH && cfg->balance == SIM_SPRAY;

	for (i = 1; i <= 40; i++)
		one_alone(src, dst, i, false);
	for (k = 1; k < 60; k += k < 20 ? 1 : 7)
		for (i = k * segment - 1; i <= k * segment + 2; i++)
			one_alone(src, dst, i,
				  spray && i > segment && i < 2 * segment);
	for (i = 2000; i < 20000000; i = i * 5 / 3 + 1)
		one_alone(src, dst, i, spray && i < 2 * segment);
	for (i = 0; i < 100; i++) {
		u32 length =
			1 +
			homa_prng_below(&homa_world.rng,
					1u << (1 + homa_prng_below(&homa_world.rng,
								   20)));

		one_alone(src, dst, length,
			  spray && length > segment && length < 2 * segment);
	}
	world_end();
}

static void idle__sigcomm_across_racks(void **state)
{
	struct sim_config cfg = world_config("sigcomm18");

	(void)state;
	cfg.balance = SIM_ECMP;
	sizes_alone(&cfg, 3, 140);
}

static void idle__sigcomm_sprayed(void **state)
{
	struct sim_config cfg = world_config("sigcomm18");

	(void)state;
	sizes_alone(&cfg, 17, 16 * 8 + 1);
}

static void idle__sigcomm_within_a_rack(void **state)
{
	struct sim_config cfg = world_config("sigcomm18");

	(void)state;
	sizes_alone(&cfg, 3, 4);
}

static void idle__sigcomm_true_headers_and_rpcs(void **state)
{
	struct sim_config cfg = world_config("sigcomm18");

	(void)state;
	cfg.balance = SIM_ECMP;
	cfg.sigcomm_headers = false;
	cfg.rpc = true;
	sizes_alone(&cfg, 0, 143);
}

static void idle__linux_rpcs(void **state)
{
	struct sim_config cfg = world_config("linux");

	(void)state;
	assert_int_equal(cfg.hosts, 40);
	assert_true(cfg.rpc);
	assert_false(cfg.sigcomm_headers);
	/* News of cutoffs would go before a response, rarely. */
	cfg.homa.cutoff_interval_ms = 0;
	sizes_alone(&cfg, 7, 39);
}

static void idle__linux_one_way_study_headers(void **state)
{
	struct sim_config cfg = world_config("linux");

	(void)state;
	cfg.rpc = false;
	cfg.sigcomm_headers = true;
	sizes_alone(&cfg, 39, 0);
}

static void idle__sigcomm_other_networks(void **state)
{
	struct sim_config cfg = world_config("sigcomm18");

	(void)state;
	cfg.balance = SIM_ECMP;
	cfg.cut_through = true;
	sizes_alone(&cfg, 20, 100);
	cfg.cut_through = false;
	cfg.topology = SIM_FAT_TREE;
	cfg.k = 4;
	cfg.hosts = 16;
	cfg.host_mbps = 25000;
	cfg.fabric_mbps = 25000;
	sizes_alone(&cfg, 1, 15);
	cfg.host_mbps = 100000;
	cfg.fabric_mbps = 100000;
	cfg.fabric_prop_ps = 300 * SIM_NS;
	sizes_alone(&cfg, 0, 14);
}

/* RTTbytes of the study's network, facts section 1. */
static void idle__rtt_bytes_of_the_study(void **state)
{
	struct sim_config cfg = world_config("sigcomm18");
	struct sim *sim = world_new(&cfg);

	(void)state;
	assert_int_equal(homa_engine_params(world_host(0)->engine)->unsched_bytes,
			 9328);
	/* A frame of 84 bytes: across racks, within one. */
	assert_int_equal(sim_ideal_ps(sim, 0, 143, 1) -
				 (sim_wire(sim_homa_data_ip(&cfg, 1)) - 84ull) *
					 2000,
			 2418000);
	world_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(idle__sigcomm_across_racks),
		cmocka_unit_test(idle__sigcomm_sprayed),
		cmocka_unit_test(idle__sigcomm_within_a_rack),
		cmocka_unit_test(idle__sigcomm_true_headers_and_rpcs),
		cmocka_unit_test(idle__linux_rpcs),
		cmocka_unit_test(idle__linux_one_way_study_headers),
		cmocka_unit_test(idle__sigcomm_other_networks),
		cmocka_unit_test(idle__rtt_bytes_of_the_study),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
