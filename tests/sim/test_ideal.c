// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The ideal time against the network itself: a sender without protocol puts a
 * message's packets on the wire one after the other, and the last one's
 * arrival must be what the formula says, to the picosecond.
 */
#include "unit.h"

#include "blast.h"

struct arrival {
	u64 last;
	u32 packets;
};

static void note(struct sim *sim, struct sim_pkt *pkt, void *arg)
{
	struct arrival *a = arg;

	(void)pkt;
	a->last = sim->now;
	a->packets++;
}

/* Sends @length bytes from @src to @dst on the idle network. */
static u64 measured(struct sim *sim, u32 src, u32 dst, u32 length)
{
	const u32 segment = sim_homa_segment(&sim->cfg);
	struct arrival a = { 0 };
	u64 begun = sim->now;
	u32 left = length;

	blast_on_rx(sim, note, &a);
	while (left) {
		u32 bytes = left < segment ? left : segment;
		u32 wire = sim_wire(sim_homa_data_ip(&sim->cfg, bytes));

		blast_send(sim, blast_pkt(sim, src, dst, wire, 0));
		left -= bytes;
	}
	sim_run(sim, begun + 10 * SIM_S);
	assert_int_equal(a.packets, (length - 1) / segment + 1);
	return a.last - begun;
}

static void compare(struct sim *sim, u32 src, u32 dst, u32 length)
{
	u64 ideal = sim_ideal_ps(sim, src, dst, length);
	u64 real = measured(sim, src, dst, length);

	if (ideal != real)
		fail_msg("%u bytes from %u to %u: ideal %llu, simulated %llu",
			 length, src, dst, (unsigned long long)ideal,
			 (unsigned long long)real);
}

static void base(struct sim_config *cfg)
{
	sim_config_default(cfg);
	cfg->balance = SIM_ECMP; /* packets stay in order */
}

/* simulation-facts: 84 bytes on the wire, 2.418 us across racks, 1.884 us within. */
static void ideal_84_bytes__as_in_the_study(void **state)
{
	struct sim_config cfg;
	struct sim *sim;
	u32 payload;

	(void)state;
	base(&cfg);
	sim = blast_new(&cfg);
	/* The smallest DATA packet of the header model is longer than 84 bytes. */
	payload = 1;
	assert_int_equal(sim_homa_data_ip(&cfg, payload), 28 + 30 + 1);
	assert_int_equal(sim_ideal_ps(sim, 0, 143, 1) -
				 (97 - 84) * (2 * 800 + 2 * 200),
			 2418000);
	assert_int_equal(sim_ideal_ps(sim, 0, 1, 1) - (97 - 84) * 2 * 800,
			 1884400);
	sim_free(sim);
}

static void ideal_headers__both_models(void **state)
{
	struct sim_config cfg;

	(void)state;
	sim_config_default(&cfg);
	assert_int_equal(sim_homa_segment(&cfg), 1442);
	assert_int_equal(sim_homa_ctrl_ip(&cfg, 33), 44);
	cfg.sigcomm_headers = false;
	assert_int_equal(sim_homa_segment(&cfg), 1500 - 20 - 56);
	assert_int_equal(sim_homa_ctrl_ip(&cfg, 33), 53);
}

static void sizes(struct sim_config *cfg, u32 near, u32 far)
{
	static const u32 fixed[] = { 1,	    2,	   100,	   1441,   1442,
				     1443,  1500,  2884,   2885,   14419,
				     14420, 14421, 100000, 3000001 };
	struct homa_prng rng;
	struct sim *sim = blast_new(cfg);
	u32 i;

	assert_non_null(sim);
	homa_prng_seed(&rng, unit_seed(), 1);
	for (i = 0; i < sizeof(fixed) / sizeof(*fixed); i++) {
		compare(sim, 0, near, fixed[i]);
		compare(sim, 0, far, fixed[i]);
		compare(sim, far, 0, fixed[i]);
	}
	for (i = 0; i < 300; i++)
		compare(sim, 1, i & 1 ? far : near,
			1 + homa_prng_below(&rng, 30000));
	sim_free(sim);
}

static void ideal_leaf_spine__as_simulated(void **state)
{
	struct sim_config cfg;

	(void)state;
	base(&cfg);
	sizes(&cfg, 2, 143);
	cfg.sigcomm_headers = false;
	cfg.host_prop_ps = 123457;
	cfg.fabric_prop_ps = 999;
	cfg.mtu = 3000;
	sizes(&cfg, 2, 143);
}

static void ideal_one_switch__as_simulated(void **state)
{
	struct sim_config cfg;

	(void)state;
	base(&cfg);
	cfg.topology = SIM_ONE_SWITCH;
	cfg.hosts = 5;
	cfg.host_mbps = 25000;
	sizes(&cfg, 2, 4);
}

static void ideal_fat_tree__as_simulated(void **state)
{
	struct sim_config cfg;

	(void)state;
	base(&cfg);
	cfg.topology = SIM_FAT_TREE;
	cfg.k = 4;
	cfg.hosts = 0;
	sizes(&cfg, 2, 15); /* 2: another edge switch of the same pod */
	cfg.hosts = 0;
	sizes(&cfg, 3, 4);
	cfg.hosts = 0;
	cfg.fabric_mbps = 10000;
	sizes(&cfg, 2, 15);
}

/* The fabric may be the slowest link: then a short last packet waits there. */
static void ideal_slow_fabric__as_simulated(void **state)
{
	static const u32 fabric[] = { 10000, 4000, 2000, 8000, 20000, 100000 };
	struct sim_config cfg;
	u32 i;

	(void)state;
	for (i = 0; i < sizeof(fabric) / sizeof(*fabric); i++) {
		base(&cfg);
		cfg.fabric_mbps = fabric[i];
		sizes(&cfg, 2, 143);
	}
}

/* Across racks with a faster, an equal and a slower fabric, and on one switch. */
static void passed_on_early(bool cut_through, bool shaped)
{
	static const u32 fabric[] = { 40000, 10000, 4000 };
	struct sim_config cfg;
	u32 i;

	for (i = 0; i < sizeof(fabric) / sizeof(*fabric); i++) {
		base(&cfg);
		cfg.cut_through = cut_through;
		cfg.shaped = shaped;
		cfg.fabric_mbps = fabric[i];
		sizes(&cfg, 2, 143);
	}
	base(&cfg);
	cfg.cut_through = cut_through;
	cfg.shaped = shaped;
	cfg.topology = SIM_ONE_SWITCH;
	sizes(&cfg, 2, 143);
}

static void ideal_cut_through__as_simulated(void **state)
{
	(void)state;
	passed_on_early(true, false);
}

static void ideal_shaped__as_simulated(void **state)
{
	(void)state;
	passed_on_early(false, true);
	passed_on_early(true, true);
}

static void ideal_failed_link__is_no_excuse(void **state)
{
	struct sim_config cfg;
	struct sim *sim;
	u64 before;

	(void)state;
	base(&cfg);
	cfg.spines = 1;
	cfg.failures[0] = (struct sim_failure){ 144, 153, 100, SIM_NEVER };
	cfg.num_failures = 1;
	sim = blast_new(&cfg);
	before = sim_ideal_ps(sim, 0, 143, 5000);
	sim_run(sim, SIM_US);
	assert_int_equal(sim_ideal_ps(sim, 0, 143, 5000), before);
	sim_free(sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ideal_84_bytes__as_in_the_study),
		cmocka_unit_test(ideal_headers__both_models),
		cmocka_unit_test(ideal_leaf_spine__as_simulated),
		cmocka_unit_test(ideal_one_switch__as_simulated),
		cmocka_unit_test(ideal_fat_tree__as_simulated),
		cmocka_unit_test(ideal_slow_fabric__as_simulated),
		cmocka_unit_test(ideal_cut_through__as_simulated),
		cmocka_unit_test(ideal_shaped__as_simulated),
		cmocka_unit_test(ideal_failed_link__is_no_excuse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
