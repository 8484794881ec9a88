// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Traffic: does a load mean what it says, are the right messages measured, is
 * an overloaded network recognised.
 */
#include "unit.h"

#include <math.h>
#include <unistd.h>

#include "pipe.h"
#include "sim_stats.h"
#include "traffic_run.h"

struct watch {
	struct sim_tap tap;
	u64 sent, bytes;
	double squares;
	struct {
		u64 at;
		u32 length;
		u16 src, dst;
		bool measured;
	} msg[32768];
};

static void on_started(void *arg, struct sim *sim, const struct sim_msg *msg)
{
	struct watch *w = arg;

	if (w->sent < sizeof(w->msg) / sizeof(w->msg[0])) {
		w->msg[w->sent].at = sim->now;
		w->msg[w->sent].length = msg->length;
		w->msg[w->sent].src = msg->src;
		w->msg[w->sent].dst = msg->dst;
		w->msg[w->sent].measured = msg->measured;
	}
	w->sent++;
	w->bytes += msg->length;
	w->squares += (double)msg->length * msg->length;
}

static struct watch watch;

static void base(struct sim_config *cfg)
{
	pipe_settings = (struct pipe_settings){ 0 };
	memset(&watch, 0, sizeof(watch));
	sim_config_default(cfg);
	cfg->transport = &sim_pipe;
	cfg->topology = SIM_ONE_SWITCH;
	cfg->hosts = 10;
	cfg->warmup_ps = SIM_MS;
	cfg->measure_ps = 10 * SIM_MS;
	cfg->drain_ps = 20 * SIM_MS;
}

static struct sim *begin(const struct sim_config *cfg)
{
	watch.tap = (struct sim_tap){ .arg = &watch, .started = on_started };
	return traffic_begin(cfg, &watch.tap);
}

static struct sim *run(const struct sim_config *cfg)
{
	struct sim *sim = begin(cfg);

	traffic_run(sim);
	return sim;
}

/* ---- is as much offered as was asked for ---- */

/* Offered and asked for agree within five standard errors of the sampling. */
static void offered(struct sim_config *cfg, double ways)
{
	struct sim *sim = run(cfg);
	const struct sim_traffic *t = sim->traffic;
	double n = (double)t->offered.msgs / ways;
	double mean = (double)t->offered.payload / (double)t->offered.msgs;
	double square = watch.squares / (double)watch.sent;
	double seconds = (double)(t->closed_at - t->opened_at) / SIM_S;
	double link = cfg->hosts * cfg->host_mbps * 1e6 / 8 * seconds;
	double got = cfg->load_kind == SIM_LOAD_WIRE ?
			     (double)t->offered.wire / link :
			     (double)t->offered.payload / link;
	double error = sqrt(square / n) / mean;

	assert_true(n > 1000);
	if (fabs(got / cfg->load - 1) > 5 * error)
		fail_msg("%s: load %.4f instead of %.4f, standard error %.4f of it",
			 cfg->workload, got, cfg->load, error);
	/* In RPC runs some responses fall out of the window, and some into it. */
	assert_true(fabs((double)sim->stats->measured * ways /
				 (double)t->offered.msgs -
			 1) < (ways > 1 ? 0.01 : 1e-9));
	traffic_end(sim);
}

static void load_offered__as_asked(void **state)
{
	struct sim_config cfg;

	(void)state;
	base(&cfg);
	strcpy(cfg.workload, "w2");
	cfg.load = 0.5;
	offered(&cfg, 1);
	cfg.load_kind = SIM_LOAD_PAYLOAD;
	offered(&cfg, 1);
	cfg.rpc = true;
	offered(&cfg, 2);
	strcpy(cfg.workload, "w3");
	cfg.load_kind = SIM_LOAD_WIRE;
	offered(&cfg, 2);
	strcpy(cfg.workload, "fixed:1000");
	offered(&cfg, 2);
	cfg.sigcomm_headers = false;
	cfg.host_mbps = 25000;
	offered(&cfg, 2);
}

/* ---- who and when ---- */

static void messages__measured_in_the_window_only(void **state)
{
	u32 seen[10] = { 0 }, i;
	struct sim_config cfg;
	u64 measured = 0, last = 0;
	struct sim *sim;

	(void)state;
	base(&cfg);
	strcpy(cfg.workload, "fixed:20000");
	sim = run(&cfg);
	assert_in_range(watch.sent, 1000, 32767);
	for (i = 0; i < watch.sent; i++) {
		bool in = watch.msg[i].at >= SIM_MS &&
			  watch.msg[i].at < 11 * SIM_MS;

		assert_int_equal(watch.msg[i].measured, in);
		assert_true(watch.msg[i].at >= last);
		last = watch.msg[i].at;
		assert_true(watch.msg[i].src != watch.msg[i].dst);
		assert_true(watch.msg[i].dst < 10);
		seen[watch.msg[i].dst]++;
		measured += in;
	}
	for (i = 0; i < 10; i++)
		assert_in_range(seen[i], watch.sent / 20, watch.sent / 5);
	assert_int_equal(sim->stats->measured, measured);
	/* All takes its ideal time: the run is over at the last measured one. */
	assert_true(sim->now < 12 * SIM_MS);
	assert_int_equal(sim->stats->one.count + sim->stats->more.count,
			 measured);
	assert_int_equal(sim->stats->more.min, 1000);
	assert_int_equal(sim->stats->more.max, 1000);
	traffic_end(sim);
}

/* The load stays on while measured messages are under way, for half a window. */
static void load_after_the_window__half_as_long(void **state)
{
	struct sim_config cfg;
	u64 last = 0;
	struct sim *sim;
	u32 i;

	(void)state;
	base(&cfg);
	strcpy(cfg.workload, "fixed:20000");
	pipe_settings.lose = 50;
	sim = run(&cfg);
	assert_int_equal(sim->now, 31 * SIM_MS);
	for (i = 0; i < watch.sent; i++)
		last = watch.msg[i].at;
	assert_in_range(watch.sent, 1000, 32767);
	assert_in_range(last, 15800 * SIM_US, 16 * SIM_MS);
	assert_true(sim->stats->unfinished > 10);
	traffic_end(sim);
}

static void unfinished__counted_with_their_age(void **state)
{
	struct sim_config cfg;
	struct sim *sim;
	u64 failed = 0;
	u32 i;

	(void)state;
	base(&cfg);
	strcpy(cfg.workload, "fixed:20000");
	cfg.load = 0.3;
	pipe_settings.lose = 10;
	sim = run(&cfg);
	for (i = 0; i < HOMA_DECILES; i++)
		failed += sim->stats->failed[i];
	assert_in_range(failed, sim->stats->measured / 11,
			sim->stats->measured / 9);
	assert_int_equal(failed, sim->stats->unfinished);
	assert_int_equal(sim->stats->more.count, sim->stats->measured);
	/* The first of them was created 1 ms after the start and is judged at 31 ms. */
	assert_true(homa_hist_percentile(&sim->stats->more, 89) == 1000);
	assert_true(homa_hist_percentile(&sim->stats->more, 91) > 1000 * 900);
	assert_int_equal(sim->traffic->num_open, 0);
	traffic_end(sim);
}

static void failed__counted_by_kind(void **state)
{
	struct sim_config cfg;
	struct sim *sim;

	(void)state;
	base(&cfg);
	strcpy(cfg.workload, "w2");
	cfg.load = 0.1;
	pipe_settings.fail = 5;
	sim = run(&cfg);
	assert_in_range(sim->stats->timeouts, sim->stats->measured / 6,
			sim->stats->measured / 4);
	assert_int_equal(sim->stats->unfinished, 0);
	assert_int_equal(sim->traffic->num_open, 0);
	cfg.rpc = true;
	traffic_end(sim);
	sim = run(&cfg);
	assert_in_range(sim->stats->timeouts, sim->stats->measured / 4,
			sim->stats->measured / 2);
	assert_int_equal(sim->traffic->num_open, 0);
	traffic_end(sim);
}

/* RPC: there and back, and every message slot comes back. */
static void rpc__answered_by_as_many_bytes(void **state)
{
	struct sim_config cfg;
	struct sim_msg *msg;
	struct sim *sim;
	u64 slots = 0;

	(void)state;
	base(&cfg);
	cfg.rpc = true;
	strcpy(cfg.workload, "fixed:5000");
	cfg.load = 0.2;
	sim = run(&cfg);
	assert_int_equal(sim->stats->more.min, 1000);
	assert_int_equal(sim->stats->more.max, 1000);
	assert_true(sim->stats->latency[5].min >=
		    2 * sim_ns(sim_ideal_ps(sim, 0, 1, 5000)));
	/* Payload both ways: what was created in the window arrived, more or less. */
	assert_in_range(sim->stats->window_bytes,
			sim->traffic->offered.payload * 9 / 10,
			sim->traffic->offered.payload * 11 / 10);
	sim->traffic->calm = true;
	sim->stop = false;
	while (sim->traffic->pending)
		sim_run(sim, sim->now + SIM_MS);
	for (msg = sim->free_msgs; msg; msg = msg->next)
		slots++;
	assert_int_equal(slots % 1024, 0);
	assert_int_equal(sim->traffic->backlog, 0);
	traffic_end(sim);
}

static void max_messages__no_more(void **state)
{
	struct sim_config cfg;
	struct sim *sim;

	(void)state;
	base(&cfg);
	cfg.warmup_ps = 0;
	cfg.max_messages = 777;
	strcpy(cfg.workload, "w3");
	sim = run(&cfg);
	assert_int_equal(watch.sent, 777);
	assert_int_equal(sim->stats->measured, 777);
	assert_true(sim->now < 10 * SIM_MS);
	assert_true(sim->traffic->closed);
	traffic_end(sim);
}

/* What one run leaves unfinished another one begins with, unmeasured. */
static void rest__begins_the_next_run(void **state)
{
	struct sim_config cfg;
	struct sim_rest rest;
	struct sim *sim;
	u64 bytes = 0, i;

	(void)state;
	base(&cfg);
	cfg.warmup_ps = 0;
	cfg.drain_ps = 0;
	strcpy(cfg.workload, "fixed:50000");
	pipe_settings.lose = 3;
	sim = begin(&cfg);
	sim_run(sim, SIM_S);
	assert_int_equal(sim_traffic_rest(sim, &rest), 0);
	assert_true(rest.count > 50);
	for (i = 0; i < rest.count; i++)
		bytes += rest.list[i].length;
	assert_int_equal(bytes, sim->traffic->backlog);
	traffic_end(sim);
	base(&cfg);
	cfg.max_messages = rest.count; /* no others */
	sim = begin(&cfg);
	sim_traffic_begin_with(sim, &rest);
	sim_run(sim, SIM_NS);
	assert_int_equal(watch.sent, rest.count);
	for (i = 0; i < rest.count; i++) {
		assert_int_equal(watch.msg[i].length, rest.list[i].length);
		assert_int_equal(watch.msg[i].src, rest.list[i].src);
		assert_int_equal(watch.msg[i].dst, rest.list[i].dst);
		assert_false(watch.msg[i].measured);
	}
	free(rest.list);
	traffic_end(sim);
}

static u64 digest(struct sim_config *cfg, u64 step)
{
	struct sim *sim = begin(cfg);
	u64 sum;

	while (!sim->stop)
		sim_run(sim, sim->now + step);
	sum = sim->digest ^ sim->now;
	traffic_end(sim);
	return sum;
}

static void seed__same_messages_however_the_run_is_cut(void **state)
{
	struct sim_config cfg;
	u64 one;

	(void)state;
	base(&cfg);
	cfg.measure_ps = 3 * SIM_MS;
	strcpy(cfg.workload, "w4");
	one = digest(&cfg, SIM_MS);
	assert_true(digest(&cfg, 777 * SIM_NS) == one);
	cfg.seed++;
	assert_true(digest(&cfg, SIM_MS) != one);
}

/* ---- overload ---- */

/* Growth as a share of what is created. */
static double growth(struct sim_config *cfg, double load)
{
	struct sim *sim;
	double share;

	cfg->load = load;
	sim = run(cfg);
	share = sim_stats_growth(sim->stats, sim_traffic_offered(sim));
	traffic_end(sim);
	return share;
}

static void backlog__grows_if_the_load_is_too_much(void **state)
{
	struct sim_config cfg;

	(void)state;
	base(&cfg);
	cfg.load_kind = SIM_LOAD_PAYLOAD;
	strcpy(cfg.workload, "fixed:1000");
	cfg.measure_ps = 20 * SIM_MS;
	cfg.drain_ps = 0;
	pipe_settings.percent = 50;
	assert_true(growth(&cfg, 0.4) <= SIM_STABLE_SHARE);
	/* What comes in beyond 50 % piles up. */
	assert_true(fabs(growth(&cfg, 0.55) * 0.55 / 0.05 - 1) < 0.2);
	assert_true(fabs(growth(&cfg, 0.8) * 0.8 / 0.3 - 1) < 0.1);
}

/* ---- incast ---- */

static void incast__all_to_one_at_once(void **state)
{
	struct sim_config cfg;
	struct sim *sim;
	u32 i, j, burst, rpc;

	(void)state;
	for (rpc = 0; rpc < 2; rpc++) {
		base(&cfg);
		cfg.rpc = rpc;
		cfg.load = 0;
		cfg.incast = 9;
		cfg.incast_bytes = 5000;
		cfg.incast_ps = 500 * SIM_US;
		sim = run(&cfg);
		burst = rpc ? 18 : 9;
		assert_true(watch.sent >= 20 * burst && watch.sent % burst == 0);
		for (i = 0; i < watch.sent; i += burst) {
			u32 seen = 0;

			for (j = i; j < i + 9; j++) {
				u16 one = rpc ? watch.msg[j].src :
						watch.msg[j].dst;
				u16 first = rpc ? watch.msg[i].src :
						  watch.msg[i].dst;
				u16 other = rpc ? watch.msg[j].dst :
						  watch.msg[j].src;

				assert_int_equal(watch.msg[j].length, 5000);
				assert_int_equal(watch.msg[j].at % (500 * SIM_US),
						 0);
				assert_int_equal(one, first);
				seen |= 1u << other;
			}
			assert_int_equal(__builtin_popcount(seen), 9);
		}
		assert_int_equal(sim->stats->incast.count, sim->stats->measured);
		assert_int_equal(sim->stats->one.count + sim->stats->more.count,
				 0);
		traffic_end(sim);
	}
}

/* ---- recordings ---- */

static char path[64];

static void write_file(const char *text)
{
	FILE *file;
	int fd;

	strcpy(path, "/tmp/homa-sim-test-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	file = fdopen(fd, "w");
	fputs(text, file);
	fclose(file);
}

static void recording__played_as_written(void **state)
{
	struct sim_config cfg;
	struct sim *sim;

	(void)state;
	base(&cfg);
	write_file(
		"# a comment\ntime_ns,src,dst,bytes\n\n5000,3,4,100\n 7 , 0 ,1, 9999\r\n5000,2,1,1\n");
	snprintf(cfg.arrivals, sizeof(cfg.arrivals), "%s", path);
	cfg.warmup_ps = 0;
	cfg.measure_ps = 0;
	sim = run(&cfg);
	assert_int_equal(watch.sent, 3);
	assert_int_equal(watch.msg[0].at, 7 * SIM_NS);
	assert_int_equal(watch.msg[0].length, 9999);
	assert_int_equal(watch.msg[1].at, 5 * SIM_US);
	assert_int_equal(watch.msg[1].src, 3);
	assert_int_equal(watch.msg[2].src, 2);
	assert_int_equal(sim->stats->measured, 3);
	/* By size: the shortest in the first third of the bins, ... */
	assert_int_equal(sim->stats->bin[8].max_bytes, 1);
	assert_int_equal(sim->stats->bin[25].max_bytes, 100);
	assert_int_equal(sim->stats->bin[41].max_bytes, 9999);
	traffic_end(sim);
	unlink(path);
}

/* Small requests to two hosts at once, long responses: both are as long as asked for. */
static void recording__answered_by_as_many_bytes_as_asked(void **state)
{
	struct sim_config cfg;
	struct sim *sim;

	(void)state;
	base(&cfg);
	write_file("0,0,1,100\n0,0,2,100\n");
	snprintf(cfg.arrivals, sizeof(cfg.arrivals), "%s", path);
	cfg.rpc = true;
	cfg.response = 9000;
	cfg.warmup_ps = 0;
	cfg.measure_ps = 0;
	sim = run(&cfg);
	assert_int_equal(watch.sent, 4);
	assert_int_equal(watch.msg[0].length, 100);
	assert_int_equal(watch.msg[2].length, 9000);
	assert_int_equal(watch.msg[2].dst, 0);
	assert_int_equal(watch.msg[3].length, 9000);
	assert_int_equal(sim->stats->window_bytes, 2 * (100 + 9000));
	assert_int_equal(sim->traffic->num_open, 0);
	assert_int_equal(sim->traffic->backlog, 0);
	traffic_end(sim);
	unlink(path);
}

/* What one host sends and gets is in no bin. */
static void apart__is_counted_by_itself(void **state)
{
	struct sim_config cfg;
	struct sim *sim;
	u64 binned = 0;
	u32 i;

	(void)state;
	base(&cfg);
	write_file("0,0,1,100\n0,1,2,100\n0,2,0,100\n5000,1,2,700\n");
	snprintf(cfg.arrivals, sizeof(cfg.arrivals), "%s", path);
	cfg.apart = 1;
	cfg.warmup_ps = 0;
	cfg.measure_ps = 0;
	sim = run(&cfg);
	assert_int_equal(sim->stats->apart_latency.count, 2);
	assert_int_equal(sim->stats->apart_error.count, 0);
	for (i = 0; i < HOMA_DECILES; i++)
		binned += sim->stats->latency[i].count;
	assert_int_equal(binned, 2);
	traffic_end(sim);
	/* The third one fails. */
	pipe_settings.fail = 3;
	sim = run(&cfg);
	assert_int_equal(sim->stats->apart_latency.count +
				 sim->stats->apart_error.count,
			 2);
	assert_int_equal(sim->stats->apart_error.count, 1);
	assert_int_equal(sim->stats->timeouts, 1);
	traffic_end(sim);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(load_offered__as_asked),
		cmocka_unit_test(messages__measured_in_the_window_only),
		cmocka_unit_test(load_after_the_window__half_as_long),
		cmocka_unit_test(unfinished__counted_with_their_age),
		cmocka_unit_test(failed__counted_by_kind),
		cmocka_unit_test(rpc__answered_by_as_many_bytes),
		cmocka_unit_test(max_messages__no_more),
		cmocka_unit_test(rest__begins_the_next_run),
		cmocka_unit_test(seed__same_messages_however_the_run_is_cut),
		cmocka_unit_test(backlog__grows_if_the_load_is_too_much),
		cmocka_unit_test(incast__all_to_one_at_once),
		cmocka_unit_test(recording__played_as_written),
		cmocka_unit_test(recording__answered_by_as_many_bytes_as_asked),
		cmocka_unit_test(apart__is_counted_by_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
