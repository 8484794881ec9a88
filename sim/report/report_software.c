// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* What hosts' software cost, for the report. */
#include "json.h"
#include "sim_stats.h"
#include "software.h"

cJSON *sim_software_json(const struct sim *sim)
{
	const struct sim_software *soft = &sim->cfg.software;
	cJSON *item = cJSON_CreateObject(), *part;
	double sum = 0;
	u32 i;

	cJSON_AddNumberToObject(item, "cores", soft->cores);
	cJSON_AddBoolToObject(item, "rss", soft->offload & SIM_OFFLOAD_RSS);
	cJSON_AddBoolToObject(item, "lso", soft->offload & SIM_OFFLOAD_LSO);
	cJSON_AddBoolToObject(item, "lro", soft->offload & SIM_OFFLOAD_LRO);
	part = cJSON_AddObjectToObject(item, "costs");
	for (i = 0; i < SIM_COSTS; i++)
		cJSON_AddNumberToObject(part, sim_costs[i].name, (double)soft->cost[i]);
	part = cJSON_AddObjectToObject(item, "cores_used");
	for (i = 0; i < SIM_PARTS; i++) {
		double used = sim_software_use(sim, i);

		homa_json_round(part, sim_part_names[i], used, 6);
		sum += used;
	}
	homa_json_round(part, "total", sum, 6);
	homa_json_round(item, "packets_per_pass", sim_software_batch(sim), 4);
	return item;
}
