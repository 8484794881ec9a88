// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The part of a result that says how it was made: the whole configuration, as
 * it was after the protocol settled what it derives. Times are seconds and
 * rates bits per second, as in homa-bench.
 */

#include "sim_stats.h"
#include "traffic.h"
#include "sim_transport.h"

static const char *const topologies[] = { "one-switch", "leaf-spine", "fat-tree" };
static const char *const queues[] = { "priority", "rank", "trim" };

static double seconds(u64 ps)
{
	return (double)ps / SIM_S;
}

static void add_network(cJSON *json, const struct sim_config *cfg)
{
	cJSON *net = cJSON_AddObjectToObject(json, "network");

	cJSON_AddStringToObject(net, "topology", topologies[cfg->topology]);
	cJSON_AddNumberToObject(net, "hosts", cfg->hosts);
	if (cfg->topology == SIM_LEAF_SPINE) {
		cJSON_AddNumberToObject(net, "racks", cfg->racks);
		cJSON_AddNumberToObject(net, "hosts_per_rack", cfg->hosts / cfg->racks);
		cJSON_AddNumberToObject(net, "spines", cfg->spines);
	} else if (cfg->topology == SIM_FAT_TREE) {
		cJSON_AddNumberToObject(net, "k", cfg->k);
	}
	if (cfg->topology != SIM_ONE_SWITCH) {
		cJSON_AddNumberToObject(net, "fabric_bps", cfg->fabric_mbps * 1e6);
		cJSON_AddNumberToObject(net, "fabric_delay_s",
					seconds(cfg->fabric_prop_ps));
	}
	cJSON_AddNumberToObject(net, "link_delay_s", seconds(cfg->host_prop_ps));
	cJSON_AddNumberToObject(net, "switch_delay_s", seconds(cfg->switch_ps));
	cJSON_AddNumberToObject(net, "send_delay_s", seconds(cfg->send_ps));
	cJSON_AddNumberToObject(net, "receive_delay_s", seconds(cfg->recv_ps));
	cJSON_AddBoolToObject(net, "cut_through", cfg->cut_through);
	cJSON_AddBoolToObject(net, "shaped", cfg->shaped);
	if (cfg->burst_ps)
		cJSON_AddNumberToObject(net, "htb_burst_s", seconds(cfg->burst_ps));
	cJSON_AddStringToObject(net, "balance",
				cfg->balance == SIM_SPRAY ? "spray" : "ecmp");
	cJSON_AddStringToObject(net, "queue", queues[cfg->queue]);
	cJSON_AddNumberToObject(net, "port_buffer_bytes", (double)cfg->port_bytes);
	cJSON_AddNumberToObject(net, "shared_buffer_bytes", (double)cfg->shared_bytes);
	homa_json_round(net, "shared_alpha", cfg->shared_alpha / 256.0, 6);
	cJSON_AddNumberToObject(net, "ecn_bytes", (double)cfg->ecn_bytes);
	cJSON_AddNumberToObject(net, "trim_packets", cfg->trim_packets);
	cJSON_AddNumberToObject(net, "loss", cfg->loss_ppm / 1e6);
	cJSON_AddNumberToObject(net, "failures", cfg->num_failures);
}

static void add_engine(cJSON *json, const struct sim_config *cfg)
{
	cJSON *engine = cJSON_AddObjectToObject(json, "engine");

#define PARAM(name, def, min, max, unit, text) \
	cJSON_AddNumberToObject(engine, #name, cfg->homa.name);
#include "homa_params.def"
#undef PARAM
}

static void add_settings(cJSON *json, const struct sim_config *cfg)
{
	const struct sim_option *o = cfg->transport->options;
	cJSON *settings = cJSON_AddObjectToObject(json, "settings");
	u32 i;

	for (i = 0; o && i < SIM_MAX_OPTIONS && o[i].name; i++)
		cJSON_AddNumberToObject(settings, o[i].name, (double)cfg->option[i]);
	if (cfg->transport->set)
		add_engine(json, cfg);
}

static void add_load(cJSON *json, const struct sim *sim)
{
	const struct sim_config *cfg = &sim->cfg;
	const struct sim_load *load = &sim->traffic->load;
	cJSON *format;

	cJSON_AddStringToObject(json, "mode", cfg->rpc ? "rpc" : "oneway");
	if (cfg->arrivals[0]) {
		cJSON_AddStringToObject(json, "arrivals", cfg->arrivals);
		cJSON_AddNumberToObject(json, "arrivals_count",
					(double)sim->traffic->recording.count);
	} else {
		cJSON_AddStringToObject(json, "workload", sim->workload.name);
		homa_json_round(json, "mean_bytes", load->payload, 2);
		homa_json_round(json, "mean_wire_bytes", load->wire, 2);
		homa_json_round(json, "mean_packets", load->packets, 4);
		cJSON_AddNumberToObject(json, "cut_bytes", cfg->cut);
		if (cfg->closed) {
			cJSON_AddNumberToObject(json, "closed", cfg->closed);
			cJSON_AddNumberToObject(json, "servers", cfg->servers);
		}
		cJSON_AddNumberToObject(json, "load", cfg->load);
		cJSON_AddStringToObject(json, "load_kind",
					cfg->load_kind == SIM_LOAD_WIRE ? "wire" :
									  "payload");
		homa_json_round(json, "wire_load", load->wire_load, 6);
		homa_json_round(json, "payload_load", load->payload_load, 6);
		homa_json_round(json, "rate_rps",
				load->gap_ns > 0 ? 1e9 / load->gap_ns : 0, 3);
	}
	cJSON_AddNumberToObject(json, "link_bps", cfg->host_mbps * 1e6);
	cJSON_AddStringToObject(json, "headers",
				cfg->sigcomm_headers ? "sigcomm18" : "true");
	format = cJSON_AddObjectToObject(json, "wire_format");
	cJSON_AddNumberToObject(format, "mtu", cfg->mtu);
	cJSON_AddNumberToObject(format, "headers", sim_homa_data_ip(cfg, 0));
	cJSON_AddNumberToObject(format, "framing", SIM_FRAMING);
	if (cfg->response)
		cJSON_AddNumberToObject(json, "response_bytes", cfg->response);
	if (cfg->max_messages)
		cJSON_AddNumberToObject(json, "max_messages", (double)cfg->max_messages);
	if (!cfg->incast)
		return;
	cJSON_AddNumberToObject(json, "incast_senders", cfg->incast);
	cJSON_AddNumberToObject(json, "incast_bytes", cfg->incast_bytes);
	cJSON_AddNumberToObject(json, "incast_period_s", seconds(cfg->incast_ps));
}

cJSON *sim_config_json(const struct sim *sim)
{
	const struct sim_config *cfg = &sim->cfg;
	cJSON *json = cJSON_CreateObject();

	cJSON_AddStringToObject(json, "transport", cfg->transport->name);
	cJSON_AddStringToObject(json, "preset", cfg->preset);
	cJSON_AddNumberToObject(json, "seed", (double)cfg->seed);
	add_load(json, sim);
	cJSON_AddNumberToObject(json, "warmup_s", seconds(cfg->warmup_ps));
	cJSON_AddNumberToObject(json, "duration_s", seconds(cfg->measure_ps));
	cJSON_AddNumberToObject(json, "drain_s", seconds(cfg->drain_ps));
	add_network(json, cfg);
	add_settings(json, cfg);
	return json;
}
