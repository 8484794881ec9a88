// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Runs that end before their time: does one end when the network cannot carry its load, and only
 * then.
 */
#include "unit.h"

#include "pipe.h"
#include "sim_stats.h"
#include "traffic_run.h"

/* A network of ten hosts that delivers @percent of its links' rate. */
static void base(struct sim_config *cfg, u32 percent)
{
	pipe_settings = (struct pipe_settings){ .percent = percent };
	sim_config_default(cfg);
	cfg->transport = &sim_pipe;
	cfg->topology = SIM_ONE_SWITCH;
	cfg->hosts = 10;
	cfg->warmup_ps = SIM_MS;
	cfg->measure_ps = 12 * SIM_MS;
	cfg->drain_ps = 0;
	strcpy(cfg->workload, "fixed:1000");
}

static void abort_unstable__ends_early(void **state)
{
	struct sim_config cfg;
	struct sim *sim;

	(void)state;
	base(&cfg, 50);
	sim = traffic_begin(&cfg, NULL);
	sim->traffic->abort_unstable = true;
	sim_run(sim, SIM_S);
	assert_true(sim->traffic->aborted);
	assert_true(sim->now < 6 * SIM_MS);
	traffic_end(sim);
	base(&cfg, 100);
	sim = traffic_begin(&cfg, NULL);
	sim->traffic->abort_unstable = true;
	sim_run(sim, SIM_S);
	assert_false(sim->traffic->aborted);
	traffic_end(sim);
}

/*
 * Runs a network that delivers @percent, at a load of 0.8, beside a reference whose backlog
 * grows by @theirs of what is offered. Returns whether it ended early.
 */
static bool stopped(u32 percent, double theirs, double limit)
{
	struct sim_reference reference = { .samples = SIM_SAMPLES,
					   .offered = 10e9 };
	struct sim_config cfg;
	struct sim *sim;
	bool early;
	u32 i;

	base(&cfg, percent);
	sim = traffic_begin(&cfg, NULL);
	for (i = 0; i < SIM_SAMPLES; i++)
		reference.backlog[i] = theirs * reference.offered * i *
				       (double)sim->stats->sample_ps / SIM_S;
	sim->stats->reference = &reference;
	sim->traffic->stop_growth = limit;
	sim_run(sim, SIM_S);
	sim_traffic_finish(sim);
	early = sim->traffic->aborted;
	assert_int_equal(sim->stats->samples,
			 early ? SIM_FIRST_WINDOW : SIM_SAMPLES);
	/* The window opens after 1 ms and has 12. */
	assert_true(sim->now > (early ? 4900 : 12900) * SIM_US);
	assert_true(sim->now < (early ? 5100 : 13100) * SIM_US);
	traffic_end(sim);
	return early;
}

static void stop_growth__ends_after_a_third(void **state)
{
	(void)state;
	/* At 50 % of the links some 27 % of what is offered stay behind, at 100 % none does. */
	assert_true(stopped(50, 0, 0.04));
	assert_false(stopped(100, 0, 0.04));
	/* Not asked to. */
	assert_false(stopped(50, 0, 0));
	/* It grows by less than the limit. */
	assert_false(stopped(50, 0, 0.5));
	/* The oracle's grows as much: the network is not to blame. */
	assert_false(stopped(50, 0.3, 0.04));
	/* The oracle's shrinks, the protocol's own does not grow. */
	assert_false(stopped(100, -0.1, 0.04));
}

static void offered__of_the_window(void **state)
{
	struct sim_config cfg;
	struct sim *sim;

	(void)state;
	base(&cfg, 100);
	cfg.load_kind = SIM_LOAD_PAYLOAD;
	sim = traffic_begin(&cfg, NULL);
	assert_true(sim_traffic_offered(sim) == 0);
	sim_run(sim, SIM_S);
	sim_traffic_finish(sim);
	/* 80 % of ten links of 10 Gbit/s. */
	assert_true(sim_traffic_offered(sim) > 9.5e9 &&
		    sim_traffic_offered(sim) < 10.5e9);
	traffic_end(sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(abort_unstable__ends_early),
		cmocka_unit_test(stop_growth__ends_after_a_third),
		cmocka_unit_test(offered__of_the_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
