// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * homa-sim --help for people, --list for programs: what there is to choose.
 */
#include <stdio.h>

#include "json.h"
#include "sim_options.h"

void sim_options_help(void)
{
	const struct sim_flag *flag;
	char left[40];

	fputs("usage: homa-sim [--protocol NAME] [--workload W] [--load F] [options] [--json FILE]\n"
	      "\n"
	      "Simulates a data center network, packet by packet, whose hosts speak Homa (this\n"
	      "project's own engine) or a protocol that it is compared with. Without options:\n"
	      "the 144 hosts of the SIGCOMM'18 Homa study, workload W4 at 80 % load. Prints a\n"
	      "summary; docs/simulator.md explains the terms.\n",
	      stdout);
	for (flag = sim_flags; flag->name; flag++) {
		if (!flag->set) {
			printf("\n%s\n", flag->name);
			continue;
		}
		snprintf(left, sizeof(left), "--%s %s", flag->name,
			 flag->value ? flag->value : "");
		printf("  %-29s %s\n", left, flag->text);
	}
	fputs("\n"
	      "Units: 10gbit 400mbit; 250ns 1.5us 20ms 1s; 1500 64kb (64,000) 1MiB.\n"
	      "Exit status: 0 simulated, 1 failed while running, 2 the request made no sense.\n",
	      stdout);
}

static cJSON *settings_json(const struct sim_transport *t)
{
	const struct sim_option *o = t->options;
	cJSON *list = cJSON_CreateArray(), *item;

	for (; o && o->name; o++) {
		item = cJSON_CreateObject();
		cJSON_AddStringToObject(item, "name", o->name);
		cJSON_AddNumberToObject(item, "default", (double)o->def);
		cJSON_AddNumberToObject(item, "min", (double)o->min);
		cJSON_AddNumberToObject(item, "max", (double)o->max);
		cJSON_AddStringToObject(item, "unit", o->unit ? o->unit : "");
		cJSON_AddStringToObject(item, "text", o->text ? o->text : "");
		cJSON_AddItemToArray(list, item);
	}
	return list;
}

/* Returns the engine's parameters as JSON, from the same list as the engine itself. */
static cJSON *engine_json(void)
{
	static const struct {
		/* The parameter's name. */
		const char *name;
		/* Its default, least and greatest value, in @unit. */
		double def, min, max;
		/* Its unit, and what it does. */
		const char *unit, *text;
	} params[] = {
#define PARAM(name, def, min, max, unit, text) { #name, def, min, max, unit, text },
#include "homa_params.def"
#undef PARAM
	};
	cJSON *list = cJSON_CreateArray(), *item;
	size_t i;

	for (i = 0; i < sizeof(params) / sizeof(params[0]); i++) {
		item = cJSON_CreateObject();
		cJSON_AddStringToObject(item, "name", params[i].name);
		cJSON_AddNumberToObject(item, "default", params[i].def);
		cJSON_AddNumberToObject(item, "min", params[i].min);
		cJSON_AddNumberToObject(item, "max", params[i].max);
		cJSON_AddStringToObject(item, "unit", params[i].unit);
		cJSON_AddStringToObject(item, "text", params[i].text);
		cJSON_AddItemToArray(list, item);
	}
	return list;
}

static cJSON *protocol_json(const struct sim_transport *t)
{
	cJSON *item = cJSON_CreateObject(), *presets;
	u32 i;

	cJSON_AddStringToObject(item, "name", t->name);
	cJSON_AddStringToObject(item, "title", t->title);
	cJSON_AddStringToObject(item, "text", t->text);
	presets = cJSON_AddArrayToObject(item, "presets");
	for (i = 0; t->presets && t->presets[i]; i++)
		cJSON_AddItemToArray(presets, cJSON_CreateString(t->presets[i]));
	cJSON_AddItemToObject(item, "settings", settings_json(t));
	if (t->set)
		cJSON_AddItemToObject(item, "engine", engine_json());
	return item;
}

static cJSON *flags_json(void)
{
	cJSON *list = cJSON_CreateArray(), *item;
	const struct sim_flag *flag;

	for (flag = sim_flags; flag->name; flag++) {
		if (!flag->set)
			continue;
		item = cJSON_CreateObject();
		cJSON_AddStringToObject(item, "name", flag->name);
		if (flag->value)
			cJSON_AddStringToObject(item, "value", flag->value);
		cJSON_AddStringToObject(item, "text", flag->text);
		cJSON_AddItemToArray(list, item);
	}
	return list;
}

static cJSON *costs_json(void)
{
	cJSON *list = cJSON_CreateArray(), *item;
	u32 i;

	for (i = 0; i < SIM_COSTS; i++) {
		item = cJSON_CreateObject();
		cJSON_AddStringToObject(item, "name", sim_costs[i].name);
		cJSON_AddNumberToObject(item, "default",
					(double)sim_costs[i].value[SIM_STACK_HOMA]);
		cJSON_AddNumberToObject(item, "tcp_default",
					(double)sim_costs[i].value[SIM_STACK_TCP]);
		cJSON_AddNumberToObject(item, "min", (double)sim_costs[i].min);
		cJSON_AddNumberToObject(item, "max", (double)sim_costs[i].max);
		cJSON_AddStringToObject(item, "unit", sim_costs[i].unit);
		cJSON_AddStringToObject(item, "text", sim_costs[i].text);
		cJSON_AddStringToObject(item, "source",
					sim_costs[i].source[SIM_STACK_HOMA]);
		cJSON_AddStringToObject(item, "tcp_source",
					sim_costs[i].source[SIM_STACK_TCP]);
		cJSON_AddItemToArray(list, item);
	}
	return list;
}

int sim_options_list(void)
{
	cJSON *json = cJSON_CreateObject(), *list;
	char err[256];
	int res;
	u32 i;

	list = cJSON_AddArrayToObject(json, "protocols");
	for (i = 0; sim_transports[i]; i++)
		cJSON_AddItemToArray(list, protocol_json(sim_transports[i]));
	cJSON_AddItemToObject(json, "costs", costs_json());
	cJSON_AddItemToObject(json, "flags", flags_json());
	res = homa_json_write(json, "-", err, sizeof(err));
	cJSON_Delete(json);
	if (res)
		fprintf(stderr, "homa-sim: %s\n", err);
	return res ? SIM_EXIT_RUNTIME : 0;
}
