// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* What all answers of the monitoring socket need of JSON beyond what cJSON has. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include "monitor.h"

void homad_json_u64(cJSON *object, const char *name, u64 value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	cJSON_AddRawToObject(object, name, text);
}

void homad_json_addr(cJSON *object, const char *name, const struct homa_addr *addr)
{
	char ip[INET6_ADDRSTRLEN] = "", text[64];

	if (homa_addr_is_v4(addr))
		inet_ntop(AF_INET, addr->ip + 12, ip, sizeof(ip));
	else
		inet_ntop(AF_INET6, addr->ip, ip, sizeof(ip));
	if (addr->encap)
		snprintf(text, sizeof(text),
			 homa_addr_is_v4(addr) ? "%s:%u" : "[%s]:%u", ip,
			 addr->encap);
	else
		snprintf(text, sizeof(text), "%s", ip);
	cJSON_AddStringToObject(object, name, text);
}
