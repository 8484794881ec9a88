/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What a host's software costs, by name; costs.c has the numbers and where they are from.
 * Written by: the one thread that runs the simulation. */
#ifndef SIM_COSTS_H
#define SIM_COSTS_H

#include "homa_plat.h"

enum sim_cost {
	SIM_COST_MIPS,
	SIM_COST_SEND,
	SIM_COST_RECV,
	SIM_COST_COPY,
	SIM_COST_WAKE,
	SIM_COST_UNIT_OUT,
	SIM_COST_SEGMENT,
	SIM_COST_PASS,
	SIM_COST_NAPI,
	SIM_COST_SOFTIRQ,
	SIM_COST_BUDGET,
	SIM_COST_UNIT,
	SIM_COST_INTERRUPT,
	SIM_COST_HANDOFF,
	SIM_COST_SLEEP,
	SIM_COST_POLL,
	SIM_COSTS,
};

/* What a network card does for its host. */
enum sim_offload {
	SIM_OFFLOAD_RSS = 1, /* spreads packets by RPC, not by the sender's address */
	SIM_OFFLOAD_LSO = 2, /* cuts long units into packets */
	SIM_OFFLOAD_LRO = 4, /* joins packets of an RPC that wait for the host */
};

/**
 * struct sim_cost_info - a cost
 * @name: name of the cost on the command line.
 * @value: its value unless something else is given.
 * @min: smallest value that is allowed.
 * @max: largest value that is allowed.
 * @unit: unit of the value.
 * @text: what is paid with it.
 * @source: where @value is from.
 */
struct sim_cost_info {
	const char *name;
	u64 value, min, max;
	const char *unit, *text, *source;
};

/**
 * struct sim_software - a host's software; all zero: it costs nothing
 * @cores: number of cores of each host; 0: software is not modelled.
 * @offload: bits of enum sim_offload.
 * @cost: the costs.
 */
struct sim_software {
	u32 cores;
	u32 offload;
	u64 cost[SIM_COSTS];
};

extern const struct sim_cost_info sim_costs[SIM_COSTS];

/** sim_costs_default() - write the table's values to @soft */
void sim_costs_default(struct sim_software *soft);
/** sim_cost_set() - set one by name; false: there is none, or it cannot have this value */
bool sim_cost_set(struct sim_software *soft, const char *name, u64 value);

#endif
