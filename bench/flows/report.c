/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What has been measured, as JSON and as a line for people. */
#include <errno.h>
#include <stdio.h>

#include "flow_load.h"
#include "json.h"

/* Adds the latencies of each part of the window. */
static void add_parts(cJSON *json, const struct flows_config *config,
		      const struct flows_result *result)
{
	cJSON *parts = cJSON_AddArrayToObject(json, "parts");

	homa_json_round(json, "part_s", (double)config->part_ns / 1e9, 6);
	for (uint32_t i = 0; i < result->nparts; i++)
		cJSON_AddItemToArray(parts, homa_json_hist(&result->parts[i]));
}

int flows_report(const struct flows_config *config,
		 const struct flows_result *result)
{
	double seconds = (double)result->window_ns / 1e9;
	cJSON *json = cJSON_CreateObject();
	char err[200] = "no memory";
	int rc = 0;

	if (!json)
		return -ENOMEM;
	cJSON_AddStringToObject(json, "schema", "homa-flows/1");
	cJSON_AddNumberToObject(json, "connections", config->connections);
	cJSON_AddNumberToObject(json, "size", config->size);
	homa_json_round(json, "opened_at_s", (double)result->opened_ns / 1e9, 6);
	homa_json_round(json, "window_s", seconds, 6);
	cJSON_AddNumberToObject(json, "requests", (double)result->requests);
	cJSON_AddNumberToObject(json, "all_requests", (double)result->all);
	cJSON_AddNumberToObject(json, "opened", (double)result->opened);
	cJSON_AddNumberToObject(json, "failed", (double)result->failed);
	cJSON_AddNumberToObject(json, "wrong", (double)result->wrong);
	cJSON_AddNumberToObject(json, "bytes", (double)result->bytes);
	homa_json_round(json, "rate", (double)result->requests / seconds, 1);
	homa_json_round(json, "bits_per_s", (double)result->bytes * 8 / seconds,
			0);
	homa_json_round(json, "jain", result->jain, 5);
	cJSON_AddItemToObject(json, "latency_ns",
			      homa_json_summary(&result->latency, 1));
	cJSON_AddItemToObject(json, "latency_histogram",
			      homa_json_hist(&result->latency));
	if (config->part_ns)
		add_parts(json, config, result);
	cJSON_AddItemToObject(json, "interval_bytes",
			      homa_json_summary(&result->interval, 1));
	if (config->json)
		rc = homa_json_write(json, config->json, err, sizeof(err));
	else
		printf("%.0f requests/s, %.3f Gbit/s, %llu opened, %llu failed\n",
		       (double)result->requests / seconds,
		       (double)result->bytes * 8e-9 / seconds,
		       (unsigned long long)result->opened,
		       (unsigned long long)result->failed);
	if (rc)
		fprintf(stderr, "homa-flows: %s\n", err);
	cJSON_Delete(json);
	return rc;
}
