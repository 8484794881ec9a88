/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The part of a result that says how it was made.
 */
#include "json.h"
#include "run.h"

static const char *const wait_names[] = {
	[BENCH_WAIT_EPOLL] = "epoll",
	[BENCH_WAIT_BLOCK] = "block",
	[BENCH_WAIT_SPIN] = "spin",
	[BENCH_WAIT_YIELD] = "yield",
};

static const char *const loop_names[] = {
	[BENCH_CLOSED] = "closed",
	[BENCH_OPEN] = "open",
	[BENCH_UNLOADED] = "unloaded",
};

static void add_string(cJSON *json, const char *name, const char *value)
{
	if (value)
		cJSON_AddStringToObject(json, name, value);
	else
		cJSON_AddNullToObject(json, name);
}

static void add_load(cJSON *json, const struct bench_config *config)
{
	cJSON *item;

	cJSON_AddStringToObject(json, "loop", loop_names[config->loop]);
	cJSON_AddStringToObject(json, "workload", config->workload.name);
	homa_json_round(json, "mean_bytes", config->payload_mean, 2);
	homa_json_round(json, "mean_wire_bytes", config->wire_mean, 2);
	cJSON_AddNumberToObject(json, "cut_bytes", BENCH_MAX_MESSAGE);
	cJSON_AddNumberToObject(json, "response_bytes", config->response);
	item = cJSON_AddObjectToObject(json, "wire_format");
	cJSON_AddNumberToObject(item, "mtu", config->wire.mtu);
	cJSON_AddNumberToObject(item, "headers", config->wire.headers);
	cJSON_AddNumberToObject(item, "framing", config->wire.framing);
	if (config->link_bps > 0)
		cJSON_AddNumberToObject(json, "link_bps", config->link_bps);
	if (config->loop == BENCH_OPEN) {
		if (config->load > 0)
			cJSON_AddNumberToObject(json, "load", config->load);
		if (config->gbps > 0)
			cJSON_AddNumberToObject(json, "gbps", config->gbps);
		homa_json_round(json, "rate_rps", config->rate, 3);
		if (config->burst)
			cJSON_AddBoolToObject(json, "burst", true);
		cJSON_AddNumberToObject(json, "max_outstanding",
					config->max_outstanding);
		homa_json_round(json, "lead_us", config->lead_us, 3);
	} else {
		cJSON_AddNumberToObject(json, "outstanding",
					config->loop == BENCH_CLOSED ?
						config->outstanding :
						1);
		if (config->loop == BENCH_UNLOADED)
			homa_json_round(json, "pause_us", config->pause_us, 3);
	}
}

cJSON *bench_config_json(const struct bench_config *config)
{
	cJSON *json = cJSON_CreateObject(), *list;
	uint32_t i;

	cJSON_AddStringToObject(json, "transport", config->transport);
	add_string(json, "mode", config->mode);
	add_string(json, "bind", config->bind);
	list = cJSON_AddArrayToObject(json, "peers");
	for (i = 0; i < config->peer_count; i++)
		cJSON_AddItemToArray(list, cJSON_CreateString(config->peers[i]));
	if (config->role & BENCH_CLIENT)
		add_load(json, config);
	cJSON_AddNumberToObject(json, "seed", (double)config->seed);
	cJSON_AddNumberToObject(json, "host_index", config->host_index);
	cJSON_AddNumberToObject(json, "warmup_s", config->warmup);
	cJSON_AddNumberToObject(json, "duration_s", config->duration);
	cJSON_AddNumberToObject(json, "drain_s", config->drain);
	cJSON_AddNumberToObject(json, "stay_s", config->stay);
	cJSON_AddNumberToObject(json, "timeout_s", config->timeout);
	cJSON_AddNumberToObject(json, "start_at_ns", (double)config->start_at_ns);
	cJSON_AddStringToObject(json, "wait", wait_names[config->wait]);
	cJSON_AddNumberToObject(json, "cpu", config->cpu);
	cJSON_AddNumberToObject(json, "connections", config->connections);
	cJSON_AddBoolToObject(json, "coalesce", config->coalesce);
	add_string(json, "cc", config->congestion);
	add_string(json, "via", config->via);
	add_string(json, "interface", config->interface);
	add_string(json, "homa_config", config->homa_config);
	cJSON_AddNumberToObject(json, "udp_port", config->udp_port);
	cJSON_AddNumberToObject(json, "rcvbuf", config->rcvbuf);
	cJSON_AddNumberToObject(json, "spin_us", config->spin_us);
	add_string(json, "denominators", config->denominators);
	return json;
}
