// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Clients that wait for answers: how many RPCs are under way, to whom, and how fast. */
#include "unit.h"

#include "pipe.h"
#include "sim_stats.h"
#include "traffic_run.h"

#define MAX_HOSTS 16

/* What was seen: RPCs under way of each client, the most of them, requests to each host. */
static struct {
	struct sim_tap tap;
	u32 now[MAX_HOSTS], most[MAX_HOSTS], asked[MAX_HOSTS];
	u64 requests;
} seen;

static void on_started(void *arg, struct sim *sim, const struct sim_msg *msg)
{
	(void)arg;
	(void)sim;
	if (msg->request || msg->incast)
		return;
	/* far more than any test asks for */
	if (++seen.requests > 1000000)
		fail_msg("time stands still");
	seen.asked[msg->dst]++;
	seen.now[msg->src]++;
	seen.most[msg->src] =
		homa_max_u32(seen.most[msg->src], seen.now[msg->src]);
}

static void on_delivered(void *arg, struct sim *sim, const struct sim_msg *msg)
{
	(void)arg;
	(void)sim;
	if (msg->request && !msg->incast)
		seen.now[msg->dst]--;
}

static void base(struct sim_config *cfg)
{
	pipe_settings = (struct pipe_settings){ 0 };
	memset(&seen, 0, sizeof(seen));
	sim_config_default(cfg);
	cfg->transport = &sim_pipe;
	cfg->topology = SIM_ONE_SWITCH;
	cfg->hosts = 6;
	cfg->rpc = true;
	cfg->closed = 3;
	cfg->warmup_ps = SIM_MS;
	cfg->measure_ps = 5 * SIM_MS;
	cfg->drain_ps = 20 * SIM_MS;
	strcpy(cfg->workload, "w2");
}

static struct sim *run(const struct sim_config *cfg)
{
	struct sim *sim;

	seen.tap = (struct sim_tap){ .started = on_started,
				     .delivered = on_delivered };
	sim = traffic_begin(cfg, &seen.tap);
	traffic_run(sim);
	return sim;
}

static void all_ask_all(void **state)
{
	struct sim_config cfg;
	struct sim *sim;
	u32 i;

	(void)state;
	base(&cfg);
	sim = run(&cfg);
	assert_int_equal(sim->traffic->error, 0);
	assert_true(sim->stats->measured > 1000);
	for (i = 0; i < cfg.hosts; i++) {
		assert_int_equal(seen.most[i], cfg.closed);
		/* six standard deviations of a fair draw */
		assert_in_range(seen.asked[i], seen.requests / 8,
				seen.requests / 4);
	}
	traffic_end(sim);
}

static void some_answer_and_the_others_ask(void **state)
{
	struct sim_config cfg;
	struct sim *sim;
	u32 i;

	(void)state;
	base(&cfg);
	cfg.servers = 2;
	sim = run(&cfg);
	for (i = 0; i < cfg.hosts; i++) {
		assert_int_equal(seen.most[i], i < 2 ? 0 : cfg.closed);
		assert_true(i < 2 ? seen.asked[i] > 0 : seen.asked[i] == 0);
	}
	traffic_end(sim);
}

/* How many hosts a fat tree or a file's network has is known only when it is built. */
static void servers__of_which_no_client_is_left_are_refused(void **state)
{
	struct sim_config cfg;
	char err[256] = "";
	struct sim *sim;

	(void)state;
	base(&cfg);
	cfg.servers = cfg.hosts;
	sim = sim_new(&cfg, err, sizeof(err));
	assert_non_null(sim);
	assert_int_equal(sim_traffic_start(sim, err, sizeof(err)), -EINVAL);
	assert_string_equal(err,
			    "--servers: of 6 hosts at most 5 can be servers");
	traffic_end(sim);
}

/* One RPC at a time takes what request and response take alone, and so many are done. */
static void one_at_a_time__follow_each_other(void **state)
{
	struct sim_config cfg;
	struct sim *sim;
	u64 rpc;

	(void)state;
	base(&cfg);
	cfg.hosts = 2;
	cfg.servers = 1;
	cfg.closed = 1;
	strcpy(cfg.workload, "fixed:5000");
	sim = run(&cfg);
	rpc = 2 * sim_ideal_ps(sim, 0, 1, 5000);
	assert_in_range(sim->stats->window_msgs, cfg.measure_ps / rpc - 1,
			cfg.measure_ps / rpc + 1);
	traffic_end(sim);
}

/* An RPC that fails or is lost is over, or is not; a client goes on with the others. */
static void failures__end_no_client(void **state)
{
	struct sim_config cfg;
	struct sim *sim;

	(void)state;
	base(&cfg);
	pipe_settings.fail = 7;
	sim = run(&cfg);
	assert_true(sim->stats->measured > 1000);
	traffic_end(sim);
	base(&cfg);
	pipe_settings.lose = 1; /* nothing is ever delivered */
	sim = run(&cfg);
	assert_int_equal(seen.requests, cfg.hosts * cfg.closed);
	traffic_end(sim);
}

/* An RPC may fail while it is sent. Its client must not ask again and again at that instant. */
static void failures_at_once__let_time_go_on(void **state)
{
	struct sim_config cfg;
	struct sim *sim;

	(void)state;
	base(&cfg);
	pipe_settings.room = 4;
	sim = run(&cfg);
	assert_true(sim->stats->measured > 1000);
	assert_true(sim->now >= cfg.warmup_ps + cfg.measure_ps);
	traffic_end(sim);
}

/* RPCs of incast are nobody's answers: when they are over no client sends another one. */
static void incast__adds_nothing_to_what_is_under_way(void **state)
{
	struct sim_config cfg;
	struct sim *sim;
	u32 i;

	(void)state;
	base(&cfg);
	cfg.incast = 3;
	cfg.incast_bytes = 1000;
	cfg.incast_ps = 20 * SIM_US;
	sim = run(&cfg);
	for (i = 0; i < cfg.hosts; i++)
		assert_int_equal(seen.most[i], cfg.closed);
	traffic_end(sim);
}

static void limit_of_messages__ends_the_run(void **state)
{
	struct sim_config cfg;
	struct sim *sim;

	(void)state;
	base(&cfg);
	cfg.max_messages = 500;
	sim = run(&cfg);
	assert_int_equal(sim->traffic->created, 500);
	assert_int_equal(seen.requests, 500);
	traffic_end(sim);
}

/*
 * A server of Homa remembers each request for more than a second, so a run of short ones that is
 * shorter than that ends with all of them remembered. It must have room for that: a request that it
 * has no room for is refused, and its client waits.
 */
static void homa__a_server_remembers_all_short_requests_of_a_run(void **state)
{
	struct sim_config cfg;
	struct sim *sim;

	(void)state;
	base(&cfg);
	cfg.transport = &sim_homa;
	strcpy(cfg.preset, "linux");
	assert_int_equal(sim_homa.defaults(&cfg), 0);
	cfg.topology = SIM_ONE_SWITCH;
	cfg.hosts = 6;
	cfg.closed = 40;
	cfg.servers = 1;
	cfg.measure_ps = 100 * SIM_MS;
	/* 1,024 blocks of 128 requests were too few for so many. */
	cfg.max_messages = 160000;
	strcpy(cfg.workload, "fixed:100");
	sim = run(&cfg);
	assert_int_equal(seen.requests, cfg.max_messages);
	assert_int_equal(sim->counts.msgs_failed, 0);
	traffic_end(sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_ask_all),
		cmocka_unit_test(some_answer_and_the_others_ask),
		cmocka_unit_test(servers__of_which_no_client_is_left_are_refused),
		cmocka_unit_test(one_at_a_time__follow_each_other),
		cmocka_unit_test(failures__end_no_client),
		cmocka_unit_test(failures_at_once__let_time_go_on),
		cmocka_unit_test(incast__adds_nothing_to_what_is_under_way),
		cmocka_unit_test(limit_of_messages__ends_the_run),
		cmocka_unit_test(
			homa__a_server_remembers_all_short_requests_of_a_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
