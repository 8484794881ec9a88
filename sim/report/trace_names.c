// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* How traces name packets and nodes. */
#include <stdio.h>
#include <string.h>

#include "homa_codec.h"
#include "trace_impl.h"

/* Types of the models are small numbers from 1; Homa's are the packet's own. */
static const struct {
	/* Name of the protocol. */
	const char *protocol;
	/* Name of each type of packet, the first one of type 1. */
	const char *types[5];
} type_names[] = {
	{ "pfabric", { "DATA", "ACK", "PROBE", "PROBE ACK" } },
	{ "phost", { "DATA", "RTS", "TOKEN", "ACK" } },
	{ "ndp", { "DATA", "ACK", "NACK", "PULL" } },
};

const char *trace_type_name(const struct sim *sim, const struct sim_pkt *pkt)
{
	const char *protocol = sim->cfg.transport->name;
	const u32 type = pkt->type - 1u;
	u32 i;

	if (!strcmp(protocol, "homa"))
		return homa_type_name(pkt->type);
	for (i = 0; i < sizeof(type_names) / sizeof(type_names[0]); i++)
		if (!strcmp(protocol, type_names[i].protocol) && type < 5 &&
		    type_names[i].types[type])
			return type_names[i].types[type];
	return pkt->flags & SIM_CONTROL ? "ACK" : "DATA";
}

void trace_node_name(const struct sim *sim, u32 node, char *name, size_t size)
{
	snprintf(name, size, "%s %u", node < sim->cfg.hosts ? "host" : "switch", node);
}
