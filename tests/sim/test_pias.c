// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* PIAS: thresholds, levels that fall with bytes sent, short messages first. */
#include <errno.h>

#include "window_world.h"

#define MSS 1460u

/* ---- thresholds ---- */

static void thresholds_of(const char *text, double load, u64 *threshold)
{
	struct homa_workload workload;
	char err[200];
	u32 i;

	assert_int_equal(homa_workload_parse(&workload, text, UINT32_MAX, err,
					     sizeof(err)),
			 0);
	pias_thresholds(&workload, load, MSS, threshold);
	for (i = 0; i < WINDOW_LEVELS - 1; i++) {
		assert_true(threshold[i] >= 1);
		assert_true(threshold[i] <=
			    homa_workload_size(&workload, 0.9999999999));
		if (i)
			assert_true(threshold[i] >= threshold[i - 1]);
	}
	homa_workload_free(&workload);
}

static void test_thresholds_rise(void **state)
{
	static const char *const name[] = { "w1",	   "w2", "w3",
					    "w4",	   "w5", "fixed:100",
					    "fixed:100000" };
	u64 low[7], high[7];
	u32 i, j;

	(void)state;
	for (i = 0; i < 7; i++) {
		thresholds_of(name[i], 0.5, low);
		thresholds_of(name[i], 0.8, high);
		if (i >= 5)
			continue;
		/* Real workloads use all the levels. */
		for (j = 1; j < 7; j++)
			assert_true(high[j] > high[j - 1]);
		assert_true(high[0] >= MSS);
	}
}

static void nsdi_cfg(struct sim_config *cfg, u32 hosts)
{
	world_cfg(cfg, &sim_pias, hosts);
	strcpy(cfg->preset, "nsdi15");
	assert_int_equal(sim_pias.defaults(cfg), 0);
}

/* The study's numbers for the study's workloads, the best ones for others. */
static void test_thresholds_are_used(void **state)
{
	struct sim_config cfg;
	struct window *w;
	u64 best[7];
	u32 i;

	(void)state;
	world_cfg(&cfg, &sim_pias, 2);
	w = world_new(&cfg);
	assert_int_equal(w->threshold[0], 38210);
	world_end();
	nsdi_cfg(&cfg, 2);
	thresholds_of("w4", 0.8, best);
	w = world_new(&cfg);
	for (i = 0; i < 7; i++)
		assert_int_equal(w->threshold[i], best[i]);
	world_end();
	/* A setting holds, and what would begin before it moves. */
	cfg.option[WINDOW_THRESHOLD + 2] = 1u << 30;
	w = world_new(&cfg);
	assert_int_equal(w->threshold[1], best[1]);
	for (i = 2; i < 7; i++)
		assert_int_equal(w->threshold[i], 1u << 30);
	world_end();
}

static void test_presets(void **state)
{
	struct sim_config cfg;

	(void)state;
	world_cfg(&cfg, &sim_pias, 2);
	assert_int_equal(cfg.option[WINDOW_INITIAL], 7);
	assert_int_equal(cfg.option[WINDOW_K], 15);
	assert_int_equal(cfg.balance, SIM_SPRAY);
	nsdi_cfg(&cfg, 2);
	assert_int_equal(cfg.option[WINDOW_INITIAL], 70);
	assert_int_equal(cfg.option[WINDOW_K], 65);
	assert_int_equal(cfg.balance, SIM_ECMP);
	strcpy(cfg.preset, "linux");
	assert_int_equal(sim_pias.defaults(&cfg), -EINVAL);
}

/* ---- levels ---- */

static void pias_cfg(struct sim_config *cfg, u32 hosts)
{
	u32 i;

	nsdi_cfg(cfg, hosts);
	for (i = 0; i < 7; i++)
		cfg->option[WINDOW_THRESHOLD + i] = (10 + 10 * i) * MSS;
}

static u32 seen[WINDOW_LEVELS];

static bool check_level(struct sim *sim, const struct sim_pkt *pkt)
{
	u32 level = pkt->offset / (10 * MSS);

	(void)sim;
	if (pkt->type == WINDOW_ACK) {
		assert_int_equal(pkt->prio, 7);
		return false;
	}
	assert_int_equal(pkt->prio, 7 - (level < 7 ? level : 7));
	seen[7 - pkt->prio]++;
	return false;
}

static void test_level_falls(void **state)
{
	struct sim_config cfg;
	u32 i;

	(void)state;
	pias_cfg(&cfg, 3);
	world_new(&cfg);
	world.eat = check_level;
	memset(seen, 0, sizeof(seen));
	world_send(0, 1, 100 * MSS);
	world_send(0, 2, 100 * MSS);
	world_run(100 * SIM_MS);
	assert_int_equal(world.arrived, 2);
	for (i = 0; i < 7; i++)
		assert_int_equal(seen[i], 20);
	assert_int_equal(seen[7], 60);
	world_end();
}

static void test_initial_window(void **state)
{
	struct sim_config cfg;
	struct window *w;

	(void)state;
	pias_cfg(&cfg, 2);
	cfg.host_prop_ps = 500 * SIM_US;
	w = world_new(&cfg);
	world_send(0, 1, 1000 * MSS);
	world_run(1000 * SIM_US);
	assert_int_equal(w->counts.data, 70);
	world_end();
}

/* How long does a message of @length take while a long one holds the downlink? */
static u64 short_takes(bool levels, u32 src, u32 length)
{
	struct sim_config cfg;
	u64 start, took;
	u32 i;

	pias_cfg(&cfg, 3);
	if (!levels)
		for (i = 0; i < 7; i++)
			cfg.option[WINDOW_THRESHOLD + i] = 1u << 30;
	world_new(&cfg);
	world_send(0, 1, 20000000);
	world_send(2, 1, 20000000);
	world_run(5 * SIM_MS);
	assert_int_equal(world.arrived, 0);
	start = world.sim->now;
	world_send(src, 1, length);
	world_run(100 * SIM_MS);
	assert_int_equal(world.arrived, 3);
	assert_int_equal(world.order[2], 0);
	took = world.done[2] - start;
	world_end();
	return took;
}

static void test_short_goes_first(void **state)
{
	(void)state;
	/* 500 bytes: 2.5 us alone, and a full packet ahead of it twice. */
	assert_true(short_takes(true, 0, 500) < 6 * SIM_US);
	/* In one queue it waits for what two windows keep there. */
	assert_true(short_takes(false, 0, 500) > 30 * SIM_US);
	/* Ten packets, still on the highest level: 14 us alone. */
	assert_true(short_takes(true, 0, 10 * MSS) < 21 * SIM_US);
}

static u64 wire_data, wire_acks;

static bool count_wire(struct sim *sim, const struct sim_pkt *pkt)
{
	(void)sim;
	*(pkt->type == WINDOW_ACK ? &wire_acks : &wire_data) += pkt->wire;
	return false;
}

static void check_sizes(u64 ns2, u32 length, u64 data, u64 acks)
{
	struct sim_config cfg;

	pias_cfg(&cfg, 2);
	cfg.option[WINDOW_NS2_SIZES] = ns2;
	world_new(&cfg);
	world.eat = count_wire;
	wire_data = 0;
	wire_acks = 0;
	world_send(0, 1, length);
	world_run(10 * SIM_MS);
	assert_int_equal(world.arrived, 1);
	assert_int_equal(wire_data, data);
	assert_int_equal(wire_acks, acks);
	world_end();
}

static void test_sizes(void **state)
{
	(void)state;
	check_sizes(0, 1, 84, 84);
	check_sizes(0, 1461, 1538 + 84, 168);
	check_sizes(1, 1, 41, 40);
	check_sizes(1, 1461, 1500 + 41, 80);
}

/* ---- losses ---- */

static u64 deaf_until;
static u8 last_prio;

static bool eat_middle(struct sim *sim, const struct sim_pkt *pkt)
{
	if (pkt->type != WINDOW_DATA)
		return false;
	if (pkt->flags & SIM_RETRANSMIT)
		last_prio = pkt->prio;
	return pkt->offset >= 65 * MSS && sim->now < deaf_until;
}

/* A stream that is starved for two time-outs in a row begins again at the top. */
static void test_two_time_outs(void **state)
{
	struct sim_config cfg;

	(void)state;
	pias_cfg(&cfg, 2);
	world_new(&cfg);
	world.eat = eat_middle;
	deaf_until = 20 * SIM_MS;
	world_send(0, 1, 70 * MSS);
	world_run(4 * SIM_MS);
	assert_int_equal(window_of(world.sim)->counts.timeouts, 1);
	assert_int_equal(last_prio, 7 - 6);
	world_run(4 * SIM_MS);
	assert_int_equal(window_of(world.sim)->counts.timeouts, 2);
	assert_int_equal(last_prio, 7);
	world_run(100 * SIM_MS);
	assert_int_equal(world.arrived, 1);
	world_end();
}

/* Streams are recycled; packets of one that is over find nobody. */
static void test_streams_end(void **state)
{
	struct window_slab *slabs;
	struct sim_config cfg;
	struct window *w;
	u32 i;

	(void)state;
	pias_cfg(&cfg, 4);
	w = world_new(&cfg);
	for (i = 0; i < 2000; i++) {
		world_send(i % 3, 3, 1 + i);
		world_run(2 * SIM_US);
		if (i == 100)
			slabs = w->slabs;
	}
	world_run(100 * SIM_MS);
	assert_int_equal(world.arrived, 2000);
	assert_int_equal(w->counts.streams, 2000);
	assert_ptr_equal(w->slabs, slabs);
	assert_int_equal(w->hosts[0].mask, 0);
	world_end();
}

static void test_loss(void **state)
{
	(void)state;
	world_test_loss(&sim_pias);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_thresholds_rise),
		cmocka_unit_test(test_thresholds_are_used),
		cmocka_unit_test(test_presets),
		cmocka_unit_test(test_level_falls),
		cmocka_unit_test(test_initial_window),
		cmocka_unit_test(test_short_goes_first),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_two_time_outs),
		cmocka_unit_test(test_streams_end),
		cmocka_unit_test(test_loss),
	};

	return cmocka_run_group_tests_name("pias", tests, NULL, NULL);
}
