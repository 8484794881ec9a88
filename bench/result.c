/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A run's result as JSON, schema.json describes it. Everything that was
 * counted is in it; what is derived (rates, percentiles) is there for readers,
 * the histograms are there so that results of several hosts can be merged.
 */
#include <errno.h>
#include <string.h>

#include "json.h"
#include "run.h"

/* Generator lag (P99) that is never worth a warning, ns. */
#define LAG_LIMIT_NS 100e3

/* Returns the name of an error, of which the program itself gives some a meaning of their
 * own. */
static const char *error_name(int code)
{
	switch (code) {
	case 0:
		return "other";
	case ENOBUFS:
		return "overflow";
	case ETIME:
		return "unfinished";
	case ETIMEDOUT:
		return "timeout";
	default:
		return strerrorname_np(code) ? strerrorname_np(code) : "other";
	}
}

static void add_errors(cJSON *json, const struct bench_errors *errors)
{
	cJSON *item = cJSON_AddObjectToObject(json, "errors");
	int i;

	for (i = 0; i < BENCH_ERROR_KINDS; i++)
		if (errors->counts[i])
			cJSON_AddNumberToObject(item,
						error_name(errors->codes[i]),
						(double)errors->counts[i]);
}

/* Adds a latency or slowdown: the summary, and the buckets if @buckets. */
static void add_hist(cJSON *json, const char *name, const struct homa_hist *h,
		     double scale, bool buckets)
{
	cJSON *summary = homa_json_summary(h, scale);

	if (buckets && h->count)
		cJSON_AddItemToObject(summary, "histogram", homa_json_hist(h));
	cJSON_AddItemToObject(json, name, summary);
}

static int add_overall(cJSON *json, const struct bench_run *run)
{
	const struct bench_stats *stats = &run->stats;
	struct homa_hist latency = { 0 }, slowdown = { 0 };
	bool buckets = run->config->histograms && stats->class_count == 1;
	uint32_t i;
	int ret = -ENOMEM;

	if (homa_hist_init(&latency) || homa_hist_init(&slowdown))
		goto out;
	for (i = 0; i < stats->class_count; i++) {
		homa_hist_merge(&latency, &stats->classes[i].latency);
		homa_hist_merge(&slowdown, &stats->classes[i].slowdown);
	}
	/* The deciles' histograms add up to this one, so its buckets are stored only if
	 * there is one class. */
	add_hist(json, "latency_ns", &latency, 1, buckets);
	if (stats->denominators.count)
		add_hist(json, "slowdown", &slowdown, BENCH_SLOWDOWN_SCALE,
			 buckets);
	ret = 0;
out:
	homa_hist_free(&latency);
	homa_hist_free(&slowdown);
	return ret;
}

static void add_deciles(cJSON *json, const struct bench_run *run)
{
	const struct bench_stats *stats = &run->stats;
	const struct homa_workload *workload = &run->config->workload;
	bool buckets = run->config->histograms;
	cJSON *list = cJSON_AddArrayToObject(json, "deciles");
	uint32_t i;

	if (stats->class_count == 1)
		return;
	for (i = 0; i < stats->class_count; i++) {
		const struct bench_class *c = &stats->classes[i];
		cJSON *item = cJSON_CreateObject();

		cJSON_AddNumberToObject(item, "decile", i + 1);
		cJSON_AddNumberToObject(item, "size_min",
					homa_workload_size(workload,
							   i / 10.0 + 1e-9));
		cJSON_AddNumberToObject(item, "size_max",
					homa_workload_size(workload,
							   (i + 1) / 10.0));
		cJSON_AddNumberToObject(item, "failed", (double)c->failed);
		cJSON_AddNumberToObject(item, "censored", (double)c->censored);
		add_hist(item, "latency_ns", &c->latency, 1, buckets);
		if (stats->denominators.count)
			add_hist(item, "slowdown", &c->slowdown,
				 BENCH_SLOWDOWN_SCALE, buckets);
		cJSON_AddItemToArray(list, item);
	}
}

/* RPCs with the peer of --apart, which are in no decile. */
static void add_apart(cJSON *json, const struct bench_run *run)
{
	const struct bench_stats *stats = &run->stats;
	const struct bench_class *c = &stats->classes[BENCH_APART];
	bool buckets = run->config->histograms;
	cJSON *item;

	if (!run->config->apart_text)
		return;
	item = cJSON_AddObjectToObject(json, "apart");
	cJSON_AddStringToObject(item, "peer", run->config->apart_text);
	cJSON_AddNumberToObject(item, "completed", (double)c->latency.count);
	cJSON_AddNumberToObject(item, "failed", (double)c->failed);
	add_hist(item, "latency_ns", &c->latency, 1, buckets);
	add_hist(item, "error_ns", &stats->apart_error_ns, 1, buckets);
	add_errors(item, &stats->apart_errors);
}

static void add_throughput(cJSON *json, const struct bench_run *run,
			   double seconds)
{
	const struct bench_stats *stats = &run->stats;
	const struct bench_config *config = run->config;
	cJSON *item = cJSON_AddObjectToObject(json, "throughput");
	double payload =
		(double)(stats->window_tx_bytes + stats->window_rx_bytes);
	double share = config->role == BENCH_NODE ? 1 : 0.5;

	if (seconds <= 0)
		seconds = 1e-9;
	homa_json_round(item, "rps", (double)stats->window_completed / seconds,
			1);
	homa_json_round(item, "request_gbps",
			(double)stats->window_tx_bytes * 8e-9 / seconds, 6);
	homa_json_round(item, "response_gbps",
			(double)stats->window_rx_bytes * 8e-9 / seconds, 6);
	homa_json_round(item, "goodput_gbps", payload * 8e-9 / seconds, 6);
	homa_json_round(item, "wire_gbps",
			(double)stats->window_wire_bytes * 8e-9 / seconds, 6);
	if (config->loop != BENCH_OPEN)
		return;
	homa_json_round(item, "offered_rps", (double)stats->measured / seconds,
			1);
	homa_json_round(item, "offered_gbps",
			(double)stats->offered_bytes * 8e-9 / seconds, 6);
	homa_json_round(item, "offered_wire_gbps",
			(double)stats->offered_wire_bytes * 8e-9 / seconds, 6);
	if (config->link_bps > 0) {
		/* Each direction of a node's link carries requests and responses. */
		homa_json_round(item, "offered_load",
				(double)stats->offered_wire_bytes * 8 * share /
					seconds / config->link_bps,
				4);
		homa_json_round(item, "achieved_load",
				(double)stats->window_wire_bytes * 8 * share /
					seconds / config->link_bps,
				4);
	}
}

/* What was under way, at equal intervals: it grows if the load is not carried. */
static void add_backlog(cJSON *json, const struct bench_run *run)
{
	const struct bench_stats *stats = &run->stats;
	cJSON *item = cJSON_AddObjectToObject(json, "backlog"), *list;
	uint32_t i;

	homa_json_round(item, "interval_s",
			run->config->duration / (BENCH_SAMPLES - 1), 9);
	list = cJSON_AddArrayToObject(item, "samples");
	for (i = 0; i < stats->samples; i++)
		cJSON_AddItemToArray(list, cJSON_CreateNumber(stats->backlog[i]));
}

static void add_generator(cJSON *json, const struct bench_run *run)
{
	const struct bench_stats *stats = &run->stats;
	cJSON *item = cJSON_AddObjectToObject(json, "generator");
	double p99 = (double)homa_hist_percentile(&stats->lag, 99);
	double limit = run->config->lag_limit_us * 1e3;
	double small =
		(double)homa_hist_percentile(&stats->classes[0].latency, 99);

	/* By default the lag may be a tenth of the tail of short messages. */
	if (limit <= 0)
		limit = small / 10 > LAG_LIMIT_NS ? small / 10 : LAG_LIMIT_NS;
	add_hist(item, "lag_ns", &stats->lag, 1, run->config->histograms);
	cJSON_AddItemToObject(item, "from_send_ns",
			      homa_json_summary(&stats->from_send, 1));
	homa_json_round(item, "limit_ns", limit, 0);
	cJSON_AddBoolToObject(item, "limited", p99 > limit);
}

static void add_cpu(cJSON *json, const struct bench_run *run, double seconds)
{
	const struct bench_cpu *a = &run->stats.cpu_start;
	const struct bench_cpu *b = &run->stats.cpu_end;
	double used = b->user + b->system - a->user - a->system;
	double machine = b->busy - a->busy;
	double rpcs = (double)run->stats.window_completed;
	cJSON *item = cJSON_AddObjectToObject(json, "cpu");

	homa_json_round(item, "user_s", b->user - a->user, 6);
	homa_json_round(item, "system_s", b->system - a->system, 6);
	homa_json_round(item, "cores", seconds > 0 ? used / seconds : 0, 3);
	homa_json_round(item, "machine_busy_s", machine, 3);
	homa_json_round(item, "machine_total_s", b->total - a->total, 3);
	homa_json_round(item, "machine_steal_s", b->steal - a->steal, 3);
	cJSON_AddNumberToObject(item, "voluntary_switches",
				(double)(b->voluntary - a->voluntary));
	cJSON_AddNumberToObject(item, "involuntary_switches",
				(double)(b->involuntary - a->involuntary));
	if (used > 0 && rpcs > 0)
		homa_json_round(item, "rpcs_per_cpu_s", rpcs / used, 1);
	if (machine > 0 && rpcs > 0)
		homa_json_round(item, "rpcs_per_machine_cpu_s", rpcs / machine,
				1);
}

/* Adds the devices that carried something in the window. */
static void add_netdevs(cJSON *json, const struct bench_run *run)
{
	const struct bench_netdevs *end = &run->stats.net_end;
	cJSON *list = cJSON_AddArrayToObject(json, "interfaces"), *item;
	uint32_t i;

	for (i = 0; i < end->count; i++) {
		const struct bench_netdev *b = &end->list[i];
		const struct bench_netdev *a =
			bench_netdev_find(&run->stats.net_start, b->name);

		if (!a || (a->rx_packets == b->rx_packets &&
			   a->tx_packets == b->tx_packets))
			continue;
		item = cJSON_CreateObject();
		cJSON_AddStringToObject(item, "name", b->name);
		cJSON_AddNumberToObject(item, "rx_bytes",
					(double)(b->rx_bytes - a->rx_bytes));
		cJSON_AddNumberToObject(item, "rx_packets",
					(double)(b->rx_packets - a->rx_packets));
		cJSON_AddNumberToObject(item, "rx_dropped",
					(double)(b->rx_dropped - a->rx_dropped));
		cJSON_AddNumberToObject(item, "tx_bytes",
					(double)(b->tx_bytes - a->tx_bytes));
		cJSON_AddNumberToObject(item, "tx_packets",
					(double)(b->tx_packets - a->tx_packets));
		cJSON_AddNumberToObject(item, "tx_dropped",
					(double)(b->tx_dropped - a->tx_dropped));
		cJSON_AddItemToArray(list, item);
	}
}

static void add_counts(cJSON *json, const struct bench_run *run)
{
	const struct bench_stats *stats = &run->stats;
	const struct bench_class *apart = &stats->classes[BENCH_APART];
	cJSON *item = cJSON_AddObjectToObject(json, "rpcs");
	uint64_t failed = 0, censored = 0, recorded = 0;
	uint64_t others = apart->latency.count + apart->failed;
	uint32_t i;

	for (i = 0; i < stats->class_count; i++) {
		failed += stats->classes[i].failed;
		censored += stats->classes[i].censored;
		recorded += stats->classes[i].latency.count;
	}
	cJSON_AddNumberToObject(item, "issued", (double)stats->issued);
	cJSON_AddNumberToObject(item, "measured",
				(double)(stats->measured - others));
	cJSON_AddNumberToObject(item, "completed", (double)(recorded - censored));
	cJSON_AddNumberToObject(item, "failed", (double)failed);
	cJSON_AddNumberToObject(item, "censored", (double)censored);
	cJSON_AddNumberToObject(item, "dropped", (double)stats->overflow);
	cJSON_AddNumberToObject(item, "unfinished", (double)stats->unfinished);
	cJSON_AddNumberToObject(item, "completed_in_window",
				(double)stats->window_completed);
}

static void add_server(cJSON *json, const struct bench_endpoint *ep)
{
	cJSON *item = cJSON_AddObjectToObject(json, "server");

	cJSON_AddNumberToObject(item, "requests", (double)ep->served);
	cJSON_AddNumberToObject(item, "request_bytes",
				(double)ep->served_rx_bytes);
	cJSON_AddNumberToObject(item, "response_bytes",
				(double)ep->served_tx_bytes);
}

static void add_transport(cJSON *json, struct bench_endpoint *ep)
{
	cJSON *item = cJSON_CreateObject();
	int64_t retransmits;

	cJSON_AddStringToObject(item, "name", ep->transport->name);
	retransmits = ep->transport->report(ep, item);
	cJSON_AddNumberToObject(item, "protocol_errors",
				(double)ep->protocol_errors);
	if (retransmits >= 0)
		cJSON_AddNumberToObject(json, "retransmits", (double)retransmits);
	else
		cJSON_AddNullToObject(json, "retransmits");
	cJSON_AddItemToObject(json, "transport", item);
}

static void add_unloaded(cJSON *json, const struct bench_run *run)
{
	cJSON *list = cJSON_AddArrayToObject(json, "unloaded");
	uint32_t i;

	for (i = 0; i < run->config->size_count; i++) {
		const struct homa_hist *h = &run->unloaded[i].rtt;
		cJSON *item;

		if (!h->counts || !h->count)
			continue;
		item = cJSON_CreateObject();
		cJSON_AddNumberToObject(item, "size", run->unloaded[i].size);
		cJSON_AddNumberToObject(item, "count", (double)h->count);
		cJSON_AddNumberToObject(item, "min_ns", (double)h->min);
		cJSON_AddNumberToObject(item, "p50_ns",
					(double)homa_hist_percentile(h, 50));
		cJSON_AddNumberToObject(item, "p99_ns",
					(double)homa_hist_percentile(h, 99));
		cJSON_AddStringToObject(item, "transport",
					run->config->transport);
		cJSON_AddItemToArray(list, item);
	}
}

cJSON *bench_result(struct bench_run *run)
{
	const struct bench_config *config = run->config;
	const struct bench_stats *stats = &run->stats;
	cJSON *json = cJSON_CreateObject(), *item;
	double seconds =
		(double)(stats->window_end_ns - stats->window_start_ns) * 1e-9;
	int outcome = run->outcome;

	cJSON_AddStringToObject(json, "schema", BENCH_SCHEMA);
	cJSON_AddStringToObject(json, "program", "homa-bench " BENCH_VERSION);
	cJSON_AddStringToObject(json, "role", config->role_name);
	if (config->label)
		cJSON_AddStringToObject(json, "label", config->label);
	cJSON_AddBoolToObject(json, "complete", outcome == 0);
	cJSON_AddBoolToObject(json, "interrupted", run->interrupted);
	if (outcome && outcome != -EINTR)
		cJSON_AddStringToObject(json, "ended_by", strerror(-outcome));
	cJSON_AddItemToObject(json, "config", bench_config_json(config));
	cJSON_AddItemToObject(json, "machine", homa_json_machine());
	item = cJSON_AddObjectToObject(json, "time");
	cJSON_AddNumberToObject(item, "unix_s", (double)time(NULL));
	homa_json_round(item, "window_s", seconds, 6);
	homa_json_round(item, "start_late_s", (double)run->late_ns * 1e-9, 6);
	homa_json_round(item, "drained_s", (double)stats->drained_ns * 1e-9, 6);
	if (config->loop == BENCH_UNLOADED)
		add_unloaded(json, run);
	else if (config->role & BENCH_CLIENT) {
		add_counts(json, run);
		add_throughput(json, run, seconds);
		if (config->loop == BENCH_OPEN) {
			add_generator(json, run);
			add_backlog(json, run);
		}
		add_overall(json, run);
		add_deciles(json, run);
		add_errors(json, &stats->errors);
		add_apart(json, run);
	}
	if (config->role & BENCH_SERVER)
		add_server(json, run->ep);
	add_cpu(json, run, seconds);
	add_netdevs(json, run);
	add_transport(json, run->ep);
	return json;
}
