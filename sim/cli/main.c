// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * homa-sim: one run of the simulator, told by options, with a result as JSON.
 * The run goes on in small steps of simulated time, between which the program
 * looks at the clock and for signals; they do not influence what is simulated.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim_options.h"
#include "sim_stats.h"
#include "sim_trace.h"
#include "traffic.h"

#define STEP (5 * SIM_US)
#define PROGRESS_MS 200

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

static double clock_s(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static double wall(void)
{
	return clock_s(CLOCK_MONOTONIC);
}

/* Returns the processor time of this program's one thread, in which other programs do not count. */
static double processor(void)
{
	return clock_s(CLOCK_PROCESS_CPUTIME_ID);
}

static int complain(const char *sentence)
{
	fprintf(stderr, "homa-sim: %s\n", sentence);
	return SIM_EXIT_RUNTIME;
}

static void report_progress(const struct sim *sim, int fd, double begun)
{
	char line[128];
	int len = snprintf(line, sizeof(line), "%llu %llu %llu %.0f\n",
			   (unsigned long long)sim_ns(sim->now),
			   (unsigned long long)sim_ns(sim->traffic->end_at),
			   (unsigned long long)sim->counts.msgs_delivered,
			   (wall() - begun) * 1e3);

	/* Whoever reads the progress may have ended; the run goes on without a reader. */
	if (write(fd, line, (size_t)len) < 0)
		return;
}

static void run(struct sim *sim, const struct sim_options *o, double begun)
{
	double next = begun, now;
	u32 i = 0;

	while (!sim->stop && !interrupted) {
		sim_run(sim, sim->now + STEP);
		if (++i % 8 || o->progress < 0)
			continue;
		now = wall();
		if (now < next)
			continue;
		next = now + PROGRESS_MS * 1e-3;
		report_progress(sim, o->progress, begun);
	}
	if (o->progress >= 0)
		report_progress(sim, o->progress, begun);
}

/* What the oracle tells about a run before it begins. */
struct foreknowledge {
	/* The messages that the run begins with, unfinished. */
	struct sim_rest rest;
	/* How the oracle does under the same load, for comparison. */
	struct sim_reference reference;
};

/*
 * Runs the oracle under the same load and stores in @known what it tells. @start: run it
 * for o->warm_start, with other messages than the run's, and keep the messages that are
 * unfinished then. Else run it to the end of the run's window, with the same messages.
 */
static bool ask_oracle(const struct sim_options *o, const struct sim_config *cfg,
		       bool start, struct foreknowledge *known, char *err, size_t errlen)
{
	struct sim_config oracle = *cfg;
	struct sim *sim;
	bool ok;

	oracle.transport = sim_transport_find("oracle");
	oracle.drain_ps = 0;
	if (start) {
		oracle.warmup_ps = 0;
		oracle.measure_ps = o->warm_start;
		oracle.max_messages = 0;
		oracle.incast = 0;
		oracle.seed = ~cfg->seed;
	}
	sim = sim_new(&oracle, err, errlen);
	if (!sim)
		return false;
	ok = !sim_traffic_start(sim, err, errlen);
	if (ok) {
		if (known->rest.count)
			sim_traffic_begin_with(sim, &known->rest);
		run(sim, o, wall());
		if (start && sim_traffic_rest(sim, &known->rest)) {
			snprintf(err, errlen, "out of memory");
			ok = false;
		}
		sim_traffic_finish(sim);
		known->reference.samples = sim->stats->samples;
		known->reference.offered = sim_traffic_offered(sim);
		memcpy(known->reference.backlog, sim->stats->backlog,
		       sizeof(known->reference.backlog));
	}
	sim_traffic_free(sim);
	sim_free(sim);
	return ok;
}

static bool foresee(const struct sim_options *o, const struct sim_config *cfg,
		    struct foreknowledge *known, char *err, size_t errlen)
{
	free(known->rest.list);
	memset(known, 0, sizeof(*known));
	if (o->warm_start && !ask_oracle(o, cfg, true, known, err, errlen))
		return false;
	return !o->against_oracle || ask_oracle(o, cfg, false, known, err, errlen);
}

/*
 * Makes one run from beginning to end. Returns the result, or NULL with a sentence in @err;
 * sets *@usage if the request made no sense.
 */
static cJSON *run_once(const struct sim_options *o, bool *usage, char *err, size_t errlen)
{
	const struct sim_config *cfg = &o->cfg;
	struct sim_trace_options trace = { .json = o->trace,
					   .pcap = o->pcap,
					   .from = o->trace_from,
					   .until = o->trace_until };
	struct sim_report_run about = { .label = o->label };
	static struct foreknowledge known;
	double begun, used;
	cJSON *json = NULL;
	char warning[256];
	struct sim_recorder *rec = NULL;
	struct sim *sim;

	*usage = true;
	if (!foresee(o, cfg, &known, err, errlen))
		return NULL;
	begun = wall();
	used = processor();
	sim = sim_new(cfg, err, errlen);
	if (!sim)
		return NULL;
	if (sim_traffic_start(sim, err, errlen) ||
	    (o->record && sim_recorder_open(sim, &rec, o->record, err, errlen)) ||
	    sim_trace_open(sim, &trace, err, errlen))
		goto out;
	*usage = false;
	sim->traffic->abort_unstable = o->abort_unstable;
	sim->traffic->stop_growth = o->stop_growth;
	if (known.rest.count)
		sim_traffic_begin_with(sim, &known.rest);
	if (o->against_oracle)
		sim->stats->reference = &known.reference;
	run(sim, o, begun);
	sim_traffic_finish(sim);
	about.wall_s = wall() - begun;
	about.cpu_s = processor() - used;
	about.interrupted = interrupted;
	json = sim_report(sim, &about);
	if (!json)
		snprintf(err, errlen, "out of memory");
	else if (sim->traffic->error)
		complain(strerror(sim->traffic->error));
	if (sim_trace_close(sim, warning, sizeof(warning)))
		complain(warning);
out:
	if (sim_recorder_close(sim, rec, warning, sizeof(warning)))
		complain(warning);
	sim_traffic_free(sim);
	sim_free(sim);
	return json;
}

static int put_result(const struct sim_options *o, const cJSON *json)
{
	char err[512];

	if (o->json && homa_json_write(json, o->json, err, sizeof(err)))
		return complain(err);
	if (!o->quiet && (!o->json || strcmp(o->json, "-") != 0))
		sim_report_print(json);
	return 0;
}

static int do_it(const struct sim_options *o)
{
	char err[512] = "";
	bool usage = false;
	cJSON *json;
	int code;

	json = run_once(o, &usage, err, sizeof(err));
	if (!json) {
		complain(err);
		return usage ? SIM_EXIT_USAGE : SIM_EXIT_RUNTIME;
	}
	code = put_result(o, json);
	if (cJSON_HasObjectItem(json, "ended_by") &&
	    !cJSON_IsTrue(
		    cJSON_GetObjectItem(cJSON_GetObjectItem(cJSON_GetObjectItem(json, "sim"),
							    "backlog"),
					"aborted")))
		code = SIM_EXIT_RUNTIME;
	cJSON_Delete(json);
	return code;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };
	static struct sim_options options;
	char err[512] = "";

	if (sim_options_parse(&options, argc, argv, err, sizeof(err))) {
		complain(err);
		return SIM_EXIT_USAGE;
	}
	if (options.version) {
		puts("homa-sim 0.1.0");
		return 0;
	}
	if (options.help) {
		sim_options_help();
		return 0;
	}
	if (options.list)
		return sim_options_list();
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	return do_it(&options);
}
