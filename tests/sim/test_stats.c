// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Statistics from made-up messages whose results are known, and of the network
 * from made-up packets.
 */
#include "unit.h"

#include <errno.h>
#include <math.h>

#include "blast.h"
#include "sim_stats.h"
#include "traffic_run.h"

static struct sim *world(struct sim_config *cfg)
{
	sim_config_default(cfg);
	cfg->transport = &sim_blast;
	cfg->topology = SIM_ONE_SWITCH;
	cfg->hosts = 4;
	cfg->incast = 1;
	cfg->incast_bytes = 1;
	cfg->incast_ps = SIM_S;
	cfg->load = 0;
	cfg->warmup_ps = SIM_MS;
	cfg->measure_ps = 10 * SIM_MS;
	return traffic_begin(cfg, NULL);
}

static struct sim_msg message(u32 length, double quantile)
{
	return (struct sim_msg){ .length = length, .quantile = (float)quantile };
}

/* ---- messages ---- */

static void record__into_bin_and_decile(void **state)
{
	struct sim_config cfg;
	struct sim *sim = world(&cfg);
	struct sim_stats *stats = sim->stats;
	u32 i;

	(void)state;
	for (i = 0; i < 1000; i++) {
		struct sim_msg msg = message(i + 1, (i + 0.5) / 1000);

		sim_stats_record(stats, &msg, &msg, (i + 1) * 3 * SIM_US, SIM_US);
	}
	for (i = 0; i < SIM_BINS; i++) {
		assert_int_equal(stats->bin[i].slowdown.count, 20);
		assert_int_equal(stats->bin[i].min_bytes, 20 * i + 1);
		assert_int_equal(stats->bin[i].max_bytes, 20 * i + 20);
		assert_int_equal(stats->bin[i].slowdown.min, (20 * i + 1) * 3000);
	}
	for (i = 0; i < HOMA_DECILES; i++) {
		assert_int_equal(stats->latency[i].count, 100);
		assert_int_equal(stats->latency[i].min, (100 * i + 1) * 3000);
		assert_int_equal(stats->latency[i].max, (100 * i + 100) * 3000);
	}
	traffic_end(sim);
}

static void record__last_quantile_has_a_bin(void **state)
{
	struct sim_config cfg;
	struct sim *sim = world(&cfg);
	struct sim_msg msg = message(7, 0.99999999999);

	(void)state;
	assert_true(msg.quantile == 1.0f);
	sim_stats_record(sim->stats, &msg, &msg, SIM_US, SIM_US);
	assert_int_equal(sim->stats->bin[SIM_BINS - 1].slowdown.count, 1);
	assert_int_equal(sim->stats->bin[SIM_BINS - 1].slowdown.min, 1000);
	traffic_end(sim);
}

static void record__one_packet_or_more(void **state)
{
	struct sim_config cfg;
	struct sim *sim = world(&cfg);
	struct sim_msg one = message(1442, 0.5), more = message(1443, 0.5);

	(void)state;
	sim_stats_record(sim->stats, &one, &one, 2 * SIM_US, SIM_US);
	sim_stats_record(sim->stats, &more, &more, 5 * SIM_US, SIM_US);
	assert_int_equal(sim->stats->one.count, 1);
	assert_int_equal(sim->stats->one.max, 2000);
	assert_int_equal(sim->stats->more.count, 1);
	assert_int_equal(sim->stats->more.max, 5000);
	traffic_end(sim);
}

static void failed__never_better_than_alone(void **state)
{
	struct sim_config cfg;
	struct sim *sim = world(&cfg);
	struct sim_msg msg = message(100, 0.55);

	(void)state;
	sim_stats_failed(sim->stats, &msg, SIM_US, 3 * SIM_US, ETIME);
	sim_stats_failed(sim->stats, &msg, 9 * SIM_US, 3 * SIM_US, ETIMEDOUT);
	assert_int_equal(sim->stats->one.min, 1000);
	assert_int_equal(sim->stats->one.max, 3000);
	assert_int_equal(sim->stats->latency[5].min, 3000);
	assert_int_equal(sim->stats->latency[5].max, 9000);
	assert_int_equal(sim->stats->unfinished, 1);
	assert_int_equal(sim->stats->timeouts, 1);
	assert_int_equal(sim->stats->failed[5], 2);
	traffic_end(sim);
}

/* Messages of incast bursts have no size class, so they count in no decile. */
static void failed__of_an_incast_is_in_no_decile(void **state)
{
	struct sim_config cfg;
	struct sim *sim = world(&cfg);
	struct sim_msg msg = message(100, 0);

	(void)state;
	msg.incast = true;
	sim_stats_failed(sim->stats, &msg, 9 * SIM_US, 3 * SIM_US, ETIMEDOUT);
	assert_int_equal(sim->stats->failed[0], 0);
	assert_int_equal(sim->stats->censored[0], 0);
	assert_int_equal(sim->stats->incast_failed, 1);
	assert_int_equal(sim->stats->incast.count, 1);
	assert_int_equal(sim->stats->timeouts, 1);
	traffic_end(sim);
}

/* ---- Figure 11 ---- */

/* 1,000 slowdowns, all different: exactly those from 98 % to 99.5 % count. */
static void causes__of_the_98th_to_99_5th_percentile(void **state)
{
	struct sim_causes *causes = sim_causes_new();
	double wait = 0, lag = 0;
	cJSON *json;
	u32 i;

	(void)state;
	for (i = 0; i < 1000; i++) {
		u32 k = i * 617 % 1000; /* in any order */
		struct sim_msg msg = { .wait_ps = k * SIM_US + 500,
				       .lag_ps = k * 250 };

		sim_causes_add(causes, 1000 + k, k * SIM_US, &msg);
		if (k >= 980 && k < 995) {
			wait += (double)(msg.wait_ps - msg.lag_ps) / 15;
			lag += (double)msg.lag_ps / 15;
		}
	}
	json = sim_causes_json(causes);
	assert_true(homa_json_number(json, "messages", 0) == 15);
	assert_true(fabs(homa_json_number(json, "wait_us", 0) - wait / SIM_US) <
		    1e-3);
	assert_true(fabs(homa_json_number(json, "lag_us", 0) - lag / SIM_US) <
		    1e-3);
	assert_true(fabs(homa_json_number(json, "late_us", 0) - 987) < 1e-3);
	assert_true(fabs(homa_json_number(json, "share_lag", 0) -
			 lag / (wait + lag)) < 1e-3);
	cJSON_Delete(json);
	sim_causes_free(causes);
}

static void causes__shortest_fifth_in_one_packet(void **state)
{
	static const struct {
		u32 length;
		double quantile;
		bool counts;
	} cases[] = {
		{ 100, 0, true },	{ 1442, 0.199, true },
		{ 1442, 0.201, false }, { 1443, 0.1, false },
		{ 8, 0.9, false },
	};
	struct sim_config cfg;
	struct sim *sim;
	cJSON *json;
	u32 i, j;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sim_msg msg = message(cases[i].length, cases[i].quantile);

		sim = world(&cfg);
		for (j = 0; j < 100; j++)
			sim_stats_record(sim->stats, &msg, &msg, 2 * SIM_US,
					 SIM_US);
		json = sim_causes_json(sim->stats->causes);
		assert_int_equal(homa_json_number(json, "messages", -1) > 0,
				 cases[i].counts);
		cJSON_Delete(json);
		traffic_end(sim);
	}
}

/* ---- the backlog ---- */

static void trend__a_line(void **state)
{
	struct sim_stats stats = { .sample_ps = SIM_US };
	struct sim_reference reference = { .samples = 90 };
	struct sim_trend t;
	u32 i;

	(void)state;
	for (i = 0; i < 100; i++) {
		stats.backlog[i] = 5000 + 20.0 * i + (i % 2 ? 7 : -7);
		reference.backlog[i] = 1000 + 15.0 * i + (i % 2 ? 7 : -7);
	}
	stats.samples = 100;
	sim_stats_trend(&stats, NULL, &t);
	assert_true(fabs(t.growth - 20e6) < 1e5);
	assert_true(fabs(t.start - 5000) < 10 && fabs(t.end - 6980) < 10);
	stats.trend = t;
	assert_true(fabs(sim_stats_growth(&stats, 20e8) - 0.01) < 1e-4);
	sim_stats_trend(&stats, &reference, &stats.excess);
	assert_true(fabs(stats.excess.growth - 5e6) < 1);
	assert_true(fabs(stats.excess.start - 4000) < 1 &&
		    fabs(stats.excess.end - 4445) < 1);
	stats.reference = &reference;
	assert_true(fabs(sim_stats_growth(&stats, 5e8) - 0.01) < 1e-6);
	for (i = 0; i < 100; i++)
		stats.backlog[i] = 1e9 - 1e6 * i;
	sim_stats_trend(&stats, NULL, &t);
	assert_true(t.growth < 0);
}

/* ---- the network ---- */

/*
 * In the window, 1 ms to 11 ms, hosts 1 and 2 send 1,000 packets each to host 0
 * at full rate, from time 2 ms on: its link is busy for 2,000 packet times, and
 * the queue before it grows to 1,000 packets and shrinks again.
 */
static void network__two_to_one(void **state)
{
	const u64 packet = 1538 * 800;
	const struct sim_net_stats *net;
	struct sim_config cfg;
	struct sim *sim = world(&cfg);
	double mean;
	u32 i;

	(void)state;
	for (i = 0; i < 1000; i++) {
		blast_send_at(sim, blast_pkt(sim, 1, 0, 1538, 3), 2 * SIM_MS);
		blast_send_at(sim, blast_pkt(sim, 2, 0, 1538, 5), 2 * SIM_MS);
		/* Outside the window. */
		blast_send_at(sim, blast_pkt(sim, 3, 1, 1538, 7), 12 * SIM_MS);
	}
	sim_run(sim, 20 * SIM_MS);
	sim_traffic_finish(sim);
	net = &sim->stats->net;
	assert_true(sim->traffic->closed);
	assert_int_equal(net->down_bytes, 2000 * 1538);
	assert_int_equal(net->up_bytes, 2000 * 1538);
	assert_int_equal(net->prio_bytes[3], 1000 * 1538);
	assert_int_equal(net->prio_bytes[5], 1000 * 1538);
	assert_int_equal(net->prio_bytes[7], 0);
	assert_in_range(net->level[SIM_HOST_DOWN].max, 998 * 1538, 1001 * 1538);
	assert_int_equal(net->level[SIM_HOST_DOWN].ports, 4);
	/* A triangle: half its height for 2,000 packet times of 10 ms, at one of 4 ports. */
	mean = 500.0 * 1538 * 2000 * (double)packet / (10.0 * SIM_MS);
	assert_true(fabs(net->level[SIM_HOST_DOWN].mean_worst / mean - 1) < 0.01);
	assert_true(fabs(net->level[SIM_HOST_DOWN].mean * 4 / mean - 1) < 0.01);
	assert_in_range(net->switch_peak, 950 * 1538, 1001 * 1538);
	assert_int_equal(net->waste_ps, 0);
	traffic_end(sim);
}

/* Host 0 holds back messages from 3 ms on; its link is busy for a while only. */
static void waste__idle_while_holding_back(void **state)
{
	const u64 packet = 1538 * 800;
	struct sim_config cfg;
	struct sim *sim = world(&cfg);
	u32 i;

	(void)state;
	for (i = 0; i < 1000; i++)
		blast_send_at(sim, blast_pkt(sim, 1, 0, 1538, 3), 5 * SIM_MS);
	sim_run(sim, 3 * SIM_MS);
	sim_withheld(sim, &sim->hosts[0], 2);
	sim_withheld(sim, &sim->hosts[1], 1);
	sim_run(sim, 4 * SIM_MS);
	sim_withheld(sim, &sim->hosts[1], 0);
	sim_run(sim, 20 * SIM_MS);
	sim_traffic_finish(sim);
	/* 3 to 11 ms without 1,000 packets, and 1 ms of host 1. */
	assert_int_equal(sim->stats->net.waste_ps, 9 * SIM_MS - 1000 * packet);
	traffic_end(sim);
}

static void nothing_to_send__refused(void **state)
{
	struct sim_config cfg;
	char err[256] = "";
	struct sim *sim;

	(void)state;
	sim_config_default(&cfg);
	cfg.transport = &sim_blast;
	cfg.load = 0;
	sim = sim_new(&cfg, err, sizeof(err));
	assert_int_equal(sim_traffic_start(sim, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "nothing to send"));
	sim_traffic_free(sim);
	sim->cfg.incast = 144;
	assert_int_equal(sim_traffic_start(sim, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, "more than 144 hosts"));
	traffic_end(sim);
}

/* ---- the report ---- */

static double number(const cJSON *json, const char *path)
{
	char copy[128], *word, *save = NULL;

	snprintf(copy, sizeof(copy), "%s", path);
	for (word = strtok_r(copy, "/", &save); word;
	     word = strtok_r(NULL, "/", &save))
		json = cJSON_GetObjectItemCaseSensitive(json, word);
	if (!cJSON_IsNumber(json))
		fail_msg("%s is no number in the report", path);
	return json->valuedouble;
}

static void report__says_what_was_counted(void **state)
{
	struct sim_report_run about = { .wall_s = 2 };
	struct sim_config cfg;
	struct sim *sim = world(&cfg);
	cJSON *json, *bins, *list;
	u32 i;

	(void)state;
	for (i = 0; i < 1000; i++)
		blast_send_at(sim, blast_pkt(sim, 1, 0, 1538, 3), 5 * SIM_MS);
	for (i = 0; i < 100; i++) {
		struct sim_msg msg = message(50, 0.03);

		sim->stats->measured++;
		sim_stats_record(sim->stats, &msg, &msg, (i + 1) * 10 * SIM_US,
				 10 * SIM_US);
	}
	sim_run(sim, 12 * SIM_MS);
	sim_traffic_finish(sim);
	json = sim_report(sim, &about);
	assert_true(number(json, "time/window_s") == 0.01);
	assert_true(number(json, "rpcs/completed") == 100);
	assert_true(fabs(number(json, "sim/utilisation/total") - 0.0308) < 1e-4);
	assert_true(fabs(number(json, "throughput/wire_gbps") - 1.2304) < 1e-3);
	assert_true(fabs(number(json, "sim/hops_per_s") - 1000) < 1);
	assert_true(fabs(number(json, "sim/short/p50_us") - 500) < 0.5);
	assert_true(fabs(number(json, "slowdown/p99") - 99) < 0.1);
	assert_true(fabs(number(json, "sim/single_packet/p50") - 50) < 0.1);
	list = cJSON_GetObjectItem(cJSON_GetObjectItem(json, "sim"),
				   "priorities");
	assert_int_equal(cJSON_GetArraySize(list), 8);
	assert_true(fabs(cJSON_GetArrayItem(list, 3)->valuedouble - 0.0308) <
		    1e-4);
	bins = cJSON_GetObjectItem(cJSON_GetObjectItem(json, "sim"), "bins");
	assert_int_equal(cJSON_GetArraySize(bins), 50);
	assert_true(number(cJSON_GetArrayItem(bins, 1), "count") == 100);
	assert_true(number(cJSON_GetArrayItem(bins, 1), "mean") == 50.5);
	assert_true(number(cJSON_GetArrayItem(bins, 2), "count") == 0);
	cJSON_Delete(json);
	traffic_end(sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(record__into_bin_and_decile),
		cmocka_unit_test(record__last_quantile_has_a_bin),
		cmocka_unit_test(record__one_packet_or_more),
		cmocka_unit_test(failed__never_better_than_alone),
		cmocka_unit_test(failed__of_an_incast_is_in_no_decile),
		cmocka_unit_test(causes__of_the_98th_to_99_5th_percentile),
		cmocka_unit_test(causes__shortest_fifth_in_one_packet),
		cmocka_unit_test(trend__a_line),
		cmocka_unit_test(network__two_to_one),
		cmocka_unit_test(waste__idle_while_holding_back),
		cmocka_unit_test(nothing_to_send__refused),
		cmocka_unit_test(report__says_what_was_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
