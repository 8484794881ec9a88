// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A result for people. It is read from the JSON, so that what is printed and
 * what is stored cannot differ.
 */
#include <stdio.h>

#include "sim_stats.h"

static const cJSON *get(const cJSON *json, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(json, name);
}

static double number(const cJSON *json, const char *name)
{
	return homa_json_number(json, name, 0);
}

static const char *text(const cJSON *json, const char *name)
{
	const cJSON *item = get(json, name);

	return cJSON_IsString(item) ? item->valuestring : "";
}

static void print_head(const cJSON *json, const cJSON *sim)
{
	const cJSON *config = get(json, "config"), *net = get(config, "network");
	const char *how = "";

	if (cJSON_IsTrue(get(json, "interrupted")))
		how = ", INTERRUPTED";
	else if (get(json, "ended_by"))
		how = ", ENDED EARLY";
	printf("%s, %.0f hosts (%s), %s, %.0f us measured%s\n", text(config, "transport"),
	       number(net, "hosts"), text(net, "topology"),
	       get(config, "workload") ? text(config, "workload") :
					 text(config, "arrivals"),
	       number(get(json, "time"), "window_s") * 1e6, how);
	if (get(json, "ended_by"))
		printf("  ended early: %s\n", text(json, "ended_by"));
	printf("  %.3f simulated ms in %.2f s: %.1f ms/s, %.2f million packet-hops/s, %.0f MiB\n",
	       number(sim, "simulated_s") * 1e3, number(sim, "wall_s"),
	       number(sim, "wall_s") > 0 ?
		       number(sim, "simulated_s") * 1e3 / number(sim, "wall_s") :
		       0,
	       number(sim, "hops_per_s") / 1e6, number(sim, "memory_bytes") / 1048576);
}

static void print_slowdown(const char *name, const cJSON *item)
{
	if (number(item, "count") > 0)
		printf("  %-14s %9.0f messages, slowdown P50 %7.3f  P99 %8.3f  P99.9 %8.3f\n",
		       name, number(item, "count"), number(item, "p50"),
		       number(item, "p99"), number(item, "p999"));
}

static void print_deciles(const cJSON *list)
{
	const cJSON *item;

	if (!list || !list->child)
		return;
	printf("  %8s %9s %9s %9s %10s %10s %9s %9s\n", "bytes >=", "<=", "messages",
	       "failed", "P50 us", "P99 us", "slow P50", "slow P99");
	cJSON_ArrayForEach(item, list) {
		const cJSON *latency = get(item, "latency_ns");
		const cJSON *slowdown = get(item, "slowdown");

		if (number(latency, "count") > 0)
			printf("  %8.0f %9.0f %9.0f %9.0f %10.2f %10.2f %9.3f %9.3f\n",
			       number(item, "size_min"), number(item, "size_max"),
			       number(latency, "count"), number(item, "failed"),
			       number(latency, "p50") / 1e3, number(latency, "p99") / 1e3,
			       number(slowdown, "p50"), number(slowdown, "p99"));
	}
}

static void print_network(const cJSON *json, const cJSON *sim)
{
	const cJSON *throughput = get(json, "throughput"), *item, *backlog;
	const cJSON *use = get(sim, "utilisation");

	printf("  load: offered %.4f of the wire, %.4f payload; carried %.4f, %.4f payload; wasted %.4f\n",
	       number(throughput, "offered_load"),
	       number(throughput, "offered_payload_load"), number(use, "total"),
	       number(use, "application"), number(sim, "waste"));
	cJSON_ArrayForEach(item, get(sim, "queues"))
		printf("  queues %-9s mean %9.1f B, worst port %9.1f B, max %9.0f B\n",
		       item->string, number(item, "mean_bytes"),
		       number(item, "mean_bytes_worst_port"), number(item, "max_bytes"));
	printf("  priorities 0..7, share of host uplinks:");
	cJSON_ArrayForEach(item, get(sim, "priorities"))
		printf(" %.4f", item->valuedouble);
	item = get(sim, "causes");
	if (number(item, "messages") > 0)
		printf("\n  late short messages: %.3f us queueing, %.3f us preemption lag",
		       number(item, "wait_us"), number(item, "lag_us"));
	backlog = get(sim, "backlog");
	printf("\n  backlog: %.0f B, then %.0f B, grows by %.2f %% of the load",
	       number(backlog, "start_bytes"), number(backlog, "end_bytes"),
	       number(backlog, "growth_share") * 100);
	if (get(backlog, "excess_share"))
		printf(" (%.2f %% more than the oracle's)",
		       number(backlog, "excess_share") * 100);
	printf(": %s\n", cJSON_IsTrue(get(backlog, "stable")) ? "stable" : "UNSTABLE");
	item = get(sim, "counts");
	printf("  dropped %.0f, lost %.0f, trimmed %.0f, marked %.0f; digest %s\n",
	       number(item, "window_drops") - number(item, "window_lost"),
	       number(item, "window_lost"), number(item, "window_trims"),
	       number(item, "window_marks"), text(sim, "digest"));
}

void sim_report_print(const cJSON *json)
{
	const cJSON *sim = get(json, "sim"), *incast = get(sim, "incast"), *item;

	print_head(json, sim);
	print_deciles(get(json, "deciles"));
	print_slowdown("all", get(json, "slowdown"));
	print_slowdown("one packet", get(sim, "single_packet"));
	print_slowdown("more packets", get(sim, "multi_packet"));
	if (incast)
		print_slowdown("incast", get(incast, "slowdown"));
	cJSON_ArrayForEach(item, get(json, "errors"))
		printf("  not delivered: %.0f x %s\n", item->valuedouble, item->string);
	print_network(json, sim);
}
