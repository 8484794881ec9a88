/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A result for people. It is read from the JSON, so that what is printed and
 * what is stored cannot differ.
 */
#include <stdio.h>

#include "json.h"
#include "run.h"

static const cJSON *get(const cJSON *json, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(json, name);
}

static double number(const cJSON *json, const char *name)
{
	return homa_json_number(json, name, 0);
}

/* Writes a time with three digits and a fitting unit. */
static const char *duration(double ns, char text[16])
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	int unit = 0;

	while (unit < 3 && ns >= 1000) {
		ns /= 1000;
		unit++;
	}
	snprintf(text, 16,
		 ns < 10  ? "%.2f %s" :
		 ns < 100 ? "%.1f %s" :
			    "%.0f %s",
		 ns, units[unit]);
	return text;
}

static void print_latency(const cJSON *latency, const cJSON *slowdown)
{
	char a[16], b[16], c[16], d[16], e[16];

	if (number(latency, "count") < 1) {
		printf("  no RPC was measured\n");
		return;
	}
	printf("  %.0f RPCs: P50 %s, P90 %s, P99 %s, P99.9 %s, max %s",
	       number(latency, "count"), duration(number(latency, "p50"), a),
	       duration(number(latency, "p90"), b),
	       duration(number(latency, "p99"), c),
	       duration(number(latency, "p999"), d),
	       duration(number(latency, "max"), e));
	if (slowdown)
		printf("; slowdown P50 %.2f, P99 %.2f", number(slowdown, "p50"),
		       number(slowdown, "p99"));
	printf("\n");
}

static void print_deciles(const cJSON *deciles)
{
	const cJSON *item;
	char a[16], b[16];

	if (!deciles || !deciles->child)
		return;
	printf("  %8s %10s %8s %10s %10s  %9s %9s %7s\n", "decile",
	       "size <=", "RPCs", "P50", "P99", "slow P50", "slow P99", "failed");
	cJSON_ArrayForEach(item, deciles) {
		const cJSON *latency = get(item, "latency_ns");
		const cJSON *slowdown = get(item, "slowdown");

		printf("  %8.0f %10.0f %8.0f %10s %10s", number(item, "decile"),
		       number(item, "size_max"), number(latency, "count"),
		       duration(number(latency, "p50"), a),
		       duration(number(latency, "p99"), b));
		if (slowdown)
			printf("  %9.2f %9.2f", number(slowdown, "p50"),
			       number(slowdown, "p99"));
		else
			printf("  %9s %9s", "-", "-");
		printf(" %7.0f\n", number(item, "failed"));
	}
}

static void print_errors(const cJSON *result)
{
	const cJSON *errors = get(result, "errors"), *item;

	cJSON_ArrayForEach(item, errors)
		printf("  failed: %.0f x %s\n", item->valuedouble, item->string);
}

static void print_generator(const cJSON *generator)
{
	char a[16], b[16];

	if (!generator || !cJSON_IsTrue(get(generator, "limited")))
		return;
	printf("  WARNING: the generator was the bottleneck: requests left up to %s late (P99 %s);\n"
	       "  latencies include that. Lower the load, or give it a core (--pin, --wait spin).\n",
	       duration(number(get(generator, "lag_ns"), "max"), a),
	       duration(number(get(generator, "lag_ns"), "p99"), b));
}

static void print_unloaded(const cJSON *list)
{
	const cJSON *item;
	char a[16], b[16], c[16];

	printf("  %10s %7s %10s %10s %10s\n", "size", "RPCs", "min", "P50",
	       "P99");
	cJSON_ArrayForEach(item, list)
		printf("  %10.0f %7.0f %10s %10s %10s\n", number(item, "size"),
		       number(item, "count"), duration(number(item, "min_ns"), a),
		       duration(number(item, "p50_ns"), b),
		       duration(number(item, "p99_ns"), c));
}

void bench_report(const cJSON *result)
{
	const cJSON *config = get(result, "config");
	const cJSON *throughput = get(result, "throughput");
	const cJSON *cpu = get(result, "cpu");
	const cJSON *server = get(result, "server");
	const cJSON *ended = get(result, "ended_by");

	printf("%s %s, %.3f s%s\n", get(result, "role")->valuestring,
	       get(config, "transport")->valuestring,
	       number(get(result, "time"), "window_s"),
	       cJSON_IsTrue(get(result, "interrupted")) ? ", INTERRUPTED" :
	       ended					? ", ENDED EARLY" :
							  "");
	if (get(result, "unloaded"))
		print_unloaded(get(result, "unloaded"));
	if (throughput) {
		print_latency(get(result, "latency_ns"), get(result, "slowdown"));
		print_deciles(get(result, "deciles"));
		printf("  %.0f RPC/s, requests %.3f Gbps, responses %.3f Gbps",
		       number(throughput, "rps"),
		       number(throughput, "request_gbps"),
		       number(throughput, "response_gbps"));
		if (get(throughput, "achieved_load"))
			printf(", load %.3f of %.3f offered",
			       number(throughput, "achieved_load"),
			       number(throughput, "offered_load"));
		printf("\n");
	}
	if (server)
		printf("  served %.0f requests\n", number(server, "requests"));
	printf("  CPU: %.2f cores (%.3f s user, %.3f s system)",
	       number(cpu, "cores"), number(cpu, "user_s"),
	       number(cpu, "system_s"));
	if (get(cpu, "rpcs_per_cpu_s"))
		printf(", %.0f RPCs per CPU-second",
		       number(cpu, "rpcs_per_cpu_s"));
	printf("; retransmits %.0f\n", number(result, "retransmits"));
	print_errors(result);
	print_generator(get(result, "generator"));
}
