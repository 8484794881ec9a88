// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The highest load that is sustained, by bisection. A load is sustained if in
 * most of some runs with different seeds the backlog does not grow over the
 * measured window faster than the oracle's (stats.c says why). The search begins with both
 * ends of the interval, so that the answer is always bracketed by a load that
 * was seen to hold and one that was seen not to; runs of a load end early as
 * soon as the majority is clear, and runs that fall behind hopelessly are cut
 * short.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "limit.h"

struct limit {
	const struct sim_options *options;
	struct sim_options run;		/* the same, for one run */
	cJSON *probes;
	bool *usage;
	char *err;
	size_t errlen;
};

static const cJSON *get(const cJSON *json, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(json, name);
}

static void note(struct limit *limit, double load, u64 seed, const cJSON *result)
{
	const cJSON *sim = get(result, "sim"), *backlog = get(sim, "backlog");
	const cJSON *use = get(sim, "utilisation");
	cJSON *item = cJSON_CreateObject();

	homa_json_round(item, "load", load, 5);
	cJSON_AddNumberToObject(item, "seed", (double)seed);
	cJSON_AddBoolToObject(item, "stable", cJSON_IsTrue(get(backlog, "stable")));
	cJSON_AddBoolToObject(item, "aborted", cJSON_IsTrue(get(backlog, "aborted")));
	cJSON_AddNumberToObject(item, "growth_share",
				homa_json_number(backlog, "growth_share", 0));
	cJSON_AddNumberToObject(item, "excess_share",
				homa_json_number(backlog, "excess_share", 0));
	cJSON_AddNumberToObject(item, "application", homa_json_number(use, "application", 0));
	cJSON_AddNumberToObject(item, "total", homa_json_number(use, "total", 0));
	cJSON_AddNumberToObject(item, "wall_s", homa_json_number(sim, "wall_s", 0));
	cJSON_AddItemToArray(limit->probes, item);
	fprintf(stderr, "load %.4f seed %llu: %s, backlog grows by %.2f %% of the load more than the oracle's\n",
		load, (unsigned long long)seed,
		cJSON_IsTrue(get(backlog, "stable")) ? "stable" : "unstable",
		homa_json_number(backlog, "excess_share", 0) * 100);
}

/* 1: @load is sustained, 0: not, -1: with a sentence. */
static int probe(struct limit *limit, double load)
{
	const u32 runs = limit->options->seeds;
	u32 i, stable = 0;

	for (i = 0; i < runs; i++) {
		struct sim_config cfg = limit->options->cfg;
		cJSON *result;

		cfg.load = load;
		cfg.seed += i;
		cfg.drain_ps = 0;	/* the window tells all */
		result = sim_run_once(&limit->run, &cfg, limit->usage, limit->err,
				      limit->errlen);
		if (!result)
			return -1;
		if (sim_interrupted()) {
			cJSON_Delete(result);
			snprintf(limit->err, limit->errlen, "interrupted");
			return -1;
		}
		note(limit, load, cfg.seed, result);
		stable += cJSON_IsTrue(get(get(get(result, "sim"), "backlog"), "stable"));
		cJSON_Delete(result);
		if (stable * 2 > runs)
			return 1;
		if ((i + 1 - stable) * 2 >= runs)
			return 0;
	}
	return 0;
}

/* Mean over the stable runs at @load. */
static double mean_of(const cJSON *probes, double load, const char *name)
{
	const cJSON *item;
	double sum = 0, n = 0;

	cJSON_ArrayForEach(item, probes) {
		if (fabs(homa_json_number(item, "load", 0) - load) > 1e-5 ||
		    !cJSON_IsTrue(get(item, "stable")))
			continue;
		sum += homa_json_number(item, name, 0);
		n++;
	}
	return n > 0 ? sum / n : 0;
}

static int search(struct limit *limit, double *low, double *high)
{
	const double step = limit->options->limit_step;
	int res;

	res = probe(limit, *low);
	if (res <= 0)
		return res;
	res = probe(limit, *high);
	if (res)
		return res;
	while (*high - *low > step * 1.000001) {
		/* On the grid of steps from the lower end. */
		double mid = *low + step * floor((*high - *low) / step / 2 + 1e-9);

		if (mid <= *low)
			mid = (*low + *high) / 2;
		res = probe(limit, mid);
		if (res < 0)
			return res;
		if (res)
			*low = mid;
		else
			*high = mid;
	}
	return 2;
}

cJSON *sim_limit_find(const struct sim_options *o, bool *usage, char *err, size_t errlen)
{
	struct limit limit = { .options = o, .run = *o, .usage = usage, .err = err,
			       .errlen = errlen };
	double low = o->limit_low, high = o->limit_high;
	cJSON *json = cJSON_CreateObject(), *item;
	int res;

	limit.run.abort_unstable = true;
	limit.run.against_oracle = true;
	limit.probes = cJSON_AddArrayToObject(json, "probes");
	res = search(&limit, &low, &high);
	if (res < 0) {
		cJSON_Delete(json);
		return NULL;
	}
	cJSON_AddStringToObject(json, "program", "homa-sim --find-limit");
	cJSON_AddStringToObject(json, "protocol", o->cfg.transport->name);
	cJSON_AddStringToObject(json, "workload", o->cfg.workload);
	/* Not bracketed: the limit lies beyond an end of the interval. */
	cJSON_AddBoolToObject(json, "bracketed", res == 2);
	item = cJSON_AddObjectToObject(json, "limit");
	if (res == 0)
		high = low;
	if (res == 1)
		low = high;
	homa_json_round(item, "sustained", res == 0 ? 0 : low, 5);
	if (res == 1)
		cJSON_AddNullToObject(item, "not_sustained");
	else
		homa_json_round(item, "not_sustained", high, 5);
	homa_json_round(item, "application", mean_of(limit.probes, low, "application"), 5);
	homa_json_round(item, "total", mean_of(limit.probes, low, "total"), 5);
	return json;
}

void sim_limit_print(const cJSON *json)
{
	const cJSON *limit = get(json, "limit");

	printf("%s, %s: load %.4f is sustained", get(json, "protocol")->valuestring,
	       get(json, "workload")->valuestring, homa_json_number(limit, "sustained", 0));
	if (cJSON_IsNumber(get(limit, "not_sustained")))
		printf(", %.4f is not", homa_json_number(limit, "not_sustained", 0));
	printf("; then the receivers' links carry %.4f, of which %.4f are messages\n",
	       homa_json_number(limit, "total", 0), homa_json_number(limit, "application", 0));
}
