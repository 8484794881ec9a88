// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The machine in a result: who compares two results has to know whether they
 * are of the same one, and how busy it was.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "json.h"

static void cpu_model(char *text, size_t size)
{
	char line[256];
	FILE *file = fopen("/proc/cpuinfo", "re");

	snprintf(text, size, "unknown");
	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		char *colon = strchr(line, ':');

		if (strncmp(line, "model name", 10) || !colon)
			continue;
		snprintf(text, size, "%.200s", colon + 2);
		text[strcspn(text, "\n")] = '\0';
		break;
	}
	fclose(file);
}

cJSON *homa_json_machine(void)
{
	cJSON *json = cJSON_CreateObject();
	double load[1] = { 0 };
	struct utsname name;
	char text[256];

	cpu_model(text, sizeof(text));
	cJSON_AddStringToObject(json, "cpu", text);
	cJSON_AddNumberToObject(json, "cores",
				(double)sysconf(_SC_NPROCESSORS_ONLN));
	if (!uname(&name)) {
		snprintf(text, sizeof(text), "%.60s %.60s", name.sysname,
			 name.release);
		cJSON_AddStringToObject(json, "kernel", text);
		cJSON_AddStringToObject(json, "arch", name.machine);
	}
	cJSON_AddNumberToObject(json, "memory_mib",
				(double)sysconf(_SC_PHYS_PAGES) *
					(double)sysconf(_SC_PAGESIZE) / 1048576);
	if (getloadavg(load, 1) == 1)
		homa_json_round(json, "load_average", load[0], 2);
	return json;
}
