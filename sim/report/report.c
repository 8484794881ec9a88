// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A run's result as JSON, in the schema of homa-bench (bench/schema.json) with
 * what only a simulator can see under "sim". A message of a one-way run stands
 * where homa-bench has an RPC.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "sim_stats.h"
#include "traffic.h"
#include "sim_transport.h"

#define SIM_SCHEMA "homa-bench/1"
#define SIM_VERSION "0.1.0"

static const char *const level_names[SIM_LEVELS] = {
	[SIM_TOR_UP] = "tor-up",       [SIM_CORE_UP] = "core-up",
	[SIM_CORE_DOWN] = "core-down", [SIM_TOR_DOWN] = "tor-down",
	[SIM_HOST_DOWN] = "host-down",
};

static void count(cJSON *json, const char *name, u64 n)
{
	cJSON_AddNumberToObject(json, name, (double)n);
}

static double window_s(const struct sim *sim)
{
	const struct sim_traffic *t = sim->traffic;

	return t->closed ? (double)(t->closed_at - t->opened_at) / SIM_S : 0;
}

/* Returns @part / @whole, or 0 if @whole is 0. */
static double share(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}

/* Returns the bytes that all hosts' links could have carried one way in the window. */
static double capacity(const struct sim *sim)
{
	return window_s(sim) * sim->cfg.hosts * sim->cfg.host_mbps * 1e6 / 8;
}

/* ---- as homa-bench ---- */

static void add_hist(cJSON *json, const char *name, const struct homa_hist *h,
		     double scale, bool buckets)
{
	cJSON *summary = homa_json_summary(h, scale);

	if (buckets && h->count)
		cJSON_AddItemToObject(summary, "histogram", homa_json_hist(h));
	cJSON_AddItemToObject(json, name, summary);
}

static void add_time(cJSON *json, const struct sim *sim)
{
	const struct sim_traffic *t = sim->traffic;
	cJSON *item = cJSON_AddObjectToObject(json, "time");

	count(item, "unix_s", (u64)time(NULL));
	homa_json_round(item, "window_s", window_s(sim), 9);
	cJSON_AddNumberToObject(item, "start_late_s", 0);
	homa_json_round(item, "drained_s",
			t->closed && !t->late ? (double)(sim->now - t->closed_at) / SIM_S :
						0,
			9);
}

static void add_counts(cJSON *json, const struct sim *sim)
{
	const struct sim_stats *stats = sim->stats;
	cJSON *item = cJSON_AddObjectToObject(json, "rpcs");
	u64 failed = stats->incast_failed + stats->apart_error.count, censored = failed;
	u32 i;

	for (i = 0; i < HOMA_DECILES; i++) {
		failed += stats->failed[i];
		censored += stats->censored[i];
	}
	count(item, "issued", sim->traffic->created);
	count(item, "measured", stats->measured);
	count(item, "completed", stats->measured - failed);
	count(item, "failed", failed);
	count(item, "censored", censored);
	count(item, "dropped", 0);
	count(item, "unfinished", stats->unfinished);
	count(item, "completed_in_window", stats->window_msgs);
}

/* Returns the share of an RPC's bytes that its request has. */
static double request_share(const struct sim *sim)
{
	const struct sim_recording *rec = &sim->traffic->recording;
	double requests = 0;
	size_t i;

	if (!sim->cfg.rpc)
		return 1;
	if (!sim->cfg.response)
		return 0.5;
	for (i = 0; i < rec->count; i++)
		requests += rec->list[i].length;
	return requests / (requests + (double)rec->count * sim->cfg.response);
}

static void add_throughput(cJSON *json, const struct sim *sim)
{
	const struct sim_stats *stats = sim->stats;
	const struct sim_bytes *offered = &sim->traffic->offered;
	const double s = window_s(sim) > 0 ? window_s(sim) : 1e-12;
	const double goodput = (double)stats->window_bytes * 8e-9 / s;
	const double requests = request_share(sim), messages = sim->cfg.rpc ? 0.5 : 1;
	cJSON *item = cJSON_AddObjectToObject(json, "throughput");

	homa_json_round(item, "rps", (double)stats->window_msgs / s, 1);
	homa_json_round(item, "request_gbps", goodput * requests, 6);
	homa_json_round(item, "response_gbps", goodput * (1 - requests), 6);
	homa_json_round(item, "goodput_gbps", goodput, 6);
	homa_json_round(item, "wire_gbps", (double)stats->net.down_bytes * 8e-9 / s, 6);
	homa_json_round(item, "offered_rps", (double)offered->msgs * messages / s, 1);
	homa_json_round(item, "offered_gbps", (double)offered->payload * 8e-9 / s, 6);
	homa_json_round(item, "offered_wire_gbps", (double)offered->wire * 8e-9 / s, 6);
	homa_json_round(item, "offered_load", share((double)offered->wire, capacity(sim)),
			5);
	homa_json_round(item, "offered_payload_load",
			share((double)offered->payload, capacity(sim)), 5);
	homa_json_round(item, "achieved_load",
			share((double)stats->net.down_bytes, capacity(sim)), 5);
}

static bool one_size(const struct sim *sim)
{
	return !sim->cfg.arrivals[0] && homa_workload_is_fixed(&sim->workload);
}

static bool add_overall(cJSON *json, const struct sim *sim)
{
	const struct sim_stats *stats = sim->stats;
	struct homa_hist latency = { 0 }, slowdown = { 0 };
	bool ok = !homa_hist_init(&latency) && !homa_hist_init(&slowdown);
	u32 i;

	if (ok) {
		for (i = 0; i < HOMA_DECILES; i++)
			homa_hist_merge(&latency, &stats->latency[i]);
		for (i = 0; i < SIM_BINS; i++)
			homa_hist_merge(&slowdown, &stats->bin[i].slowdown);
		add_hist(json, "latency_ns", &latency, 1, one_size(sim));
		add_hist(json, "slowdown", &slowdown, SIM_SLOWDOWN_SCALE, true);
	}
	homa_hist_free(&latency);
	homa_hist_free(&slowdown);
	return ok;
}

static bool add_decile(cJSON *list, const struct sim_stats *stats, u32 n)
{
	const struct sim_bin *bin = &stats->bin[n * SIM_BINS_PER_DECILE];
	cJSON *item = cJSON_CreateObject();
	struct homa_hist slowdown = { 0 };
	u32 i, min = UINT32_MAX, max = 0;

	cJSON_AddItemToArray(list, item);
	if (homa_hist_init(&slowdown))
		return false;
	for (i = 0; i < SIM_BINS_PER_DECILE; i++) {
		homa_hist_merge(&slowdown, &bin[i].slowdown);
		if (bin[i].min_bytes < min)
			min = bin[i].min_bytes;
		if (bin[i].max_bytes > max)
			max = bin[i].max_bytes;
	}
	cJSON_AddNumberToObject(item, "decile", n + 1);
	cJSON_AddNumberToObject(item, "size_min", max ? min : 0);
	cJSON_AddNumberToObject(item, "size_max", max);
	count(item, "failed", stats->failed[n]);
	count(item, "censored", stats->censored[n]);
	add_hist(item, "latency_ns", &stats->latency[n], 1, true);
	add_hist(item, "slowdown", &slowdown, SIM_SLOWDOWN_SCALE, true);
	homa_hist_free(&slowdown);
	return true;
}

static bool add_deciles(cJSON *json, const struct sim *sim)
{
	cJSON *list = cJSON_AddArrayToObject(json, "deciles");
	u32 i;

	for (i = 0; i < HOMA_DECILES && !one_size(sim); i++)
		if (!add_decile(list, sim->stats, i))
			return false;
	return true;
}

static void add_errors(cJSON *json, const struct sim_stats *stats)
{
	cJSON *errors = cJSON_AddObjectToObject(json, "errors");

	if (stats->unfinished)
		count(errors, "unfinished", stats->unfinished);
	if (stats->timeouts)
		count(errors, "timeout", stats->timeouts);
	if (stats->memory_errors)
		count(errors, "ENOMEM", stats->memory_errors);
	if (stats->other_errors)
		count(errors, "other", stats->other_errors);
}

static double cpu_seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec * 1e-6;
}

static void add_cpu(cJSON *json, const struct sim_report_run *run)
{
	cJSON *item = cJSON_AddObjectToObject(json, "cpu");
	struct rusage usage = { 0 };
	double used;

	getrusage(RUSAGE_SELF, &usage);
	used = cpu_seconds(usage.ru_utime) + cpu_seconds(usage.ru_stime);
	homa_json_round(item, "user_s", cpu_seconds(usage.ru_utime), 6);
	homa_json_round(item, "system_s", cpu_seconds(usage.ru_stime), 6);
	homa_json_round(item, "cores", share(used, run->wall_s), 3);
	homa_json_round(item, "machine_busy_s", used, 3);
}

static void put_metric(void *arg, const char *name, double value)
{
	cJSON_AddNumberToObject(arg, name, value);
}

static void add_transport(cJSON *json, struct sim *sim)
{
	const struct sim_transport *transport = sim->cfg.transport;
	cJSON *item = cJSON_AddObjectToObject(json, "transport"), *metrics;

	cJSON_AddStringToObject(item, "name", transport->name);
	cJSON_AddNumberToObject(item, "protocol_errors", 0);
	metrics = cJSON_AddObjectToObject(item, "metrics");
	if (transport->metrics)
		transport->metrics(sim, put_metric, metrics);
	cJSON_AddItemToObject(json, "retransmits",
			      cJSON_HasObjectItem(metrics, "retransmits") ?
				      cJSON_CreateNumber(
					      homa_json_number(metrics, "retransmits", 0)) :
				      cJSON_CreateNull());
}

/* ---- what only a simulator sees ---- */

static void add_bins(cJSON *json, const struct sim *sim)
{
	cJSON *list = cJSON_AddArrayToObject(json, "bins");
	u32 i;

	for (i = 0; i < SIM_BINS; i++) {
		const struct sim_bin *bin = &sim->stats->bin[i];
		cJSON *item = cJSON_CreateObject();

		homa_json_round(item, "from", (double)i / SIM_BINS, 4);
		homa_json_round(item, "to", (double)(i + 1) / SIM_BINS, 4);
		cJSON_AddNumberToObject(item, "min_bytes",
					bin->max_bytes ? bin->min_bytes : 0);
		cJSON_AddNumberToObject(item, "max_bytes", bin->max_bytes);
		count(item, "count", bin->slowdown.count);
		if (bin->slowdown.count) {
			const struct homa_hist *h = &bin->slowdown;

			homa_json_round(item, "mean",
					homa_hist_mean(h) / SIM_SLOWDOWN_SCALE, 4);
			homa_json_round(item, "p50",
					(double)homa_hist_percentile(h, 50) / 1000, 3);
			homa_json_round(item, "p99",
					(double)homa_hist_percentile(h, 99) / 1000, 3);
			homa_json_round(item, "p999",
					(double)homa_hist_percentile(h, 99.9) / 1000, 3);
			cJSON_AddItemToObject(item, "histogram", homa_json_hist(h));
		}
		cJSON_AddItemToArray(list, item);
	}
}

static void add_network(cJSON *json, const struct sim *sim)
{
	const struct sim_net_stats *net = &sim->stats->net;
	cJSON *queues = cJSON_AddObjectToObject(json, "queues"), *item;
	u32 i;

	for (i = 0; i < SIM_LEVELS; i++) {
		if (!level_names[i] || !net->level[i].ports)
			continue;
		item = cJSON_AddObjectToObject(queues, level_names[i]);
		homa_json_round(item, "mean_bytes", net->level[i].mean, 2);
		count(item, "max_bytes", net->level[i].max);
		homa_json_round(item, "mean_bytes_worst_port", net->level[i].mean_worst, 2);
	}
	count(json, "switch_peak_bytes", net->switch_peak);
	item = cJSON_AddObjectToObject(json, "utilisation");
	homa_json_round(item, "application",
			share((double)sim->stats->window_bytes, capacity(sim)), 5);
	homa_json_round(item, "total", share((double)net->down_bytes, capacity(sim)), 5);
	homa_json_round(item, "once",
			share((double)net->down_bytes - (double)sim->stats->repeated_bytes,
			      capacity(sim)),
			5);
	homa_json_round(json, "waste",
			share((double)net->waste_ps / SIM_S, window_s(sim) * sim->cfg.hosts),
			5);
	item = cJSON_AddArrayToObject(json, "priorities");
	for (i = 0; i < SIM_PRIORITIES; i++)
		cJSON_AddItemToArray(item,
				     cJSON_CreateNumber(share((double)net->prio_bytes[i],
							      capacity(sim))));
}

static void add_samples(cJSON *json, const char *name, const double *at, u32 n)
{
	cJSON *list = cJSON_AddArrayToObject(json, name);
	u32 i;

	for (i = 0; i < n; i++)
		cJSON_AddItemToArray(list, cJSON_CreateNumber(at[i]));
}

static void add_backlog(cJSON *json, const struct sim *sim)
{
	const struct sim_trend *trend = &sim->stats->trend;
	cJSON *item = cJSON_AddObjectToObject(json, "backlog");
	double offered = share((double)sim->traffic->offered.payload, window_s(sim));

	homa_json_round(item, "start_bytes", trend->start, 0);
	homa_json_round(item, "end_bytes", trend->end, 0);
	homa_json_round(item, "growth_per_s", trend->growth, 0);
	homa_json_round(item, "growth_share", share(trend->growth, offered), 5);
	if (sim->stats->reference) {
		homa_json_round(item, "excess_share",
				share(sim->stats->excess.growth, offered), 5);
		homa_json_round(item, "offered_gbps",
				sim->stats->reference->offered * 8e-9, 6);
		homa_json_round(item, "interval_s", (double)sim->stats->sample_ps / SIM_S,
				9);
		add_samples(item, "samples", sim->stats->backlog, sim->stats->samples);
		add_samples(item, "reference", sim->stats->reference->backlog,
			    sim->stats->reference->samples);
	}
	/* A load above 1 is not stable, even if the backlog grows no faster than the
	 * oracle's. */
	cJSON_AddBoolToObject(item, "stable",
			      !sim->traffic->aborted && sim->traffic->load.wire_load <= 1 &&
				      sim_stats_growth(sim->stats, offered) <=
					      SIM_STABLE_SHARE);
	cJSON_AddBoolToObject(item, "aborted", sim->traffic->aborted);
}

static void add_sizes(cJSON *json, const struct sim_stats *stats)
{
	const struct homa_hist *h = &stats->latency[0];
	cJSON *item;

	add_hist(json, "single_packet", &stats->one, SIM_SLOWDOWN_SCALE, true);
	add_hist(json, "multi_packet", &stats->more, SIM_SLOWDOWN_SCALE, true);
	item = cJSON_AddObjectToObject(json, "short");
	count(item, "count", h->count);
	if (h->count) {
		homa_json_round(item, "p50_us", (double)homa_hist_percentile(h, 50) / 1e3,
				3);
		homa_json_round(item, "p99_us", (double)homa_hist_percentile(h, 99) / 1e3,
				3);
		homa_json_round(item, "mean_us", homa_hist_mean(h) / 1e3, 3);
	}
	if (stats->apart) {
		item = cJSON_AddObjectToObject(json, "apart");
		add_hist(item, "latency_ns", &stats->apart_latency, 1, false);
		add_hist(item, "error_ns", &stats->apart_error, 1, false);
	}
	if (!stats->incast.count)
		return;
	item = cJSON_AddObjectToObject(json, "incast");
	add_hist(item, "slowdown", &stats->incast, SIM_SLOWDOWN_SCALE, false);
	add_hist(item, "latency_ns", &stats->incast_latency, 1, false);
	count(item, "failed", stats->incast_failed);
}

static void add_run_counts(cJSON *json, const struct sim *sim)
{
	const struct sim_net_stats *net = &sim->stats->net;
	const struct sim_counts *c = &sim->counts;
	cJSON *item = cJSON_AddObjectToObject(json, "counts");

	count(item, "packets_sent", c->pkts_sent);
	count(item, "packets_received", c->pkts_received);
	count(item, "packets_dropped", c->pkts_dropped);
	count(item, "packets_live", c->pkts_live);
	count(item, "packets_on_their_way", sim_pkts_on_their_way(sim));
	count(item, "hops", c->hops);
	count(item, "events", c->events);
	count(item, "messages_started", c->msgs_started);
	count(item, "messages_delivered", c->msgs_delivered);
	count(item, "messages_failed", c->msgs_failed);
	count(item, "bytes_delivered", c->bytes_delivered);
	count(item, "window_drops", net->drops);
	count(item, "window_drop_bytes", net->drop_bytes);
	count(item, "window_marks", net->marks);
	count(item, "window_trims", net->trims);
	count(item, "window_lost", net->lost);
}

static const char *build_name(void)
{
#if defined(__SANITIZE_ADDRESS__)
	return SIM_VERSION " " __VERSION__ " sanitized";
#elif defined(__OPTIMIZE__)
	return SIM_VERSION " " __VERSION__ " optimized";
#else
	return SIM_VERSION " " __VERSION__ " debug";
#endif
}

static void add_speed(cJSON *json, const struct sim *sim, const struct sim_report_run *run)
{
	struct rusage usage = { 0 };
	char digest[20];

	getrusage(RUSAGE_SELF, &usage);
	snprintf(digest, sizeof(digest), "%016" PRIx64, (uint64_t)sim->digest);
	cJSON_AddStringToObject(json, "digest", digest);
	homa_json_round(json, "wall_s", run->wall_s, 3);
	homa_json_round(json, "cpu_s", run->cpu_s, 3);
	homa_json_round(json, "simulated_s", (double)sim->now / SIM_S, 9);
	homa_json_round(json, "hops_per_s", share((double)sim->counts.hops, run->wall_s),
			0);
	count(json, "memory_bytes", (u64)usage.ru_maxrss * 1024);
	cJSON_AddStringToObject(json, "build", build_name());
}

static void add_sim(cJSON *json, struct sim *sim, const struct sim_report_run *run)
{
	cJSON *item = cJSON_AddObjectToObject(json, "sim"), *metrics;

	add_bins(item, sim);
	add_network(item, sim);
	cJSON_AddItemToObject(item, "causes", sim_causes_json(sim->stats->causes));
	add_backlog(item, sim);
	add_sizes(item, sim->stats);
	count(item, "unfinished", sim->stats->unfinished);
	metrics = cJSON_AddObjectToObject(item, "metrics");
	if (sim->cfg.transport->metrics)
		sim->cfg.transport->metrics(sim, put_metric, metrics);
	if (sim->cores)
		cJSON_AddItemToObject(item, "software", sim_software_json(sim));
	add_run_counts(item, sim);
	add_speed(item, sim, run);
}

cJSON *sim_report(struct sim *sim, const struct sim_report_run *run)
{
	const struct sim_traffic *t = sim->traffic;
	cJSON *json = cJSON_CreateObject();

	cJSON_AddStringToObject(json, "schema", SIM_SCHEMA);
	cJSON_AddStringToObject(json, "program", "homa-sim " SIM_VERSION);
	cJSON_AddStringToObject(json, "role", "simulation");
	if (run->label)
		cJSON_AddStringToObject(json, "label", run->label);
	cJSON_AddBoolToObject(json, "complete",
			      !run->interrupted && !t->aborted && !t->error);
	cJSON_AddBoolToObject(json, "interrupted", run->interrupted);
	if (t->error)
		cJSON_AddStringToObject(json, "ended_by", strerror(t->error));
	else if (t->aborted)
		cJSON_AddStringToObject(json, "ended_by", "the backlog grew: unstable");
	cJSON_AddItemToObject(json, "config", sim_config_json(sim));
	cJSON_AddItemToObject(json, "machine", homa_json_machine());
	add_time(json, sim);
	add_counts(json, sim);
	add_throughput(json, sim);
	if (!add_overall(json, sim) || !add_deciles(json, sim)) {
		cJSON_Delete(json);
		return NULL;
	}
	add_errors(json, sim->stats);
	add_cpu(json, run);
	add_transport(json, sim);
	add_sim(json, sim, run);
	return json;
}
