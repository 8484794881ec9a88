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

/* Whose costs a host's software has, and how its applications get their messages. */
enum sim_stack {
	SIM_STACK_HOMA, /* homa.ko: a message is handed over when all of it is there */
	SIM_STACK_TCP, /* the kernel's TCP: a reader takes a stream's bytes as they come */
	SIM_STACKS,
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
 * @value: its value for each stack unless something else is given.
 * @min: smallest value that is allowed.
 * @max: largest value that is allowed.
 * @unit: unit of the value.
 * @text: what is paid with it.
 * @source: where @value is from, for each stack.
 */
struct sim_cost_info {
	const char *name;
	u64 value[SIM_STACKS], min, max;
	const char *unit, *text, *source[SIM_STACKS];
};

/**
 * struct sim_software - a host's software; all zero: it costs nothing
 * @cores: number of cores of each host; 0: software is not modelled.
 * @offload: bits of enum sim_offload.
 * @stack: whose software it is.
 * @cost: the costs.
 */
struct sim_software {
	u32 cores;
	u32 offload;
	enum sim_stack stack;
	u64 cost[SIM_COSTS];
};

extern const struct sim_cost_info sim_costs[SIM_COSTS];

/** sim_costs_default() - make @soft's software that of @stack, with the table's values */
void sim_costs_default(struct sim_software *soft, enum sim_stack stack);
/** sim_cost_set() - set one by name; false: there is none, or it cannot have this value */
bool sim_cost_set(struct sim_software *soft, const char *name, u64 value);

#endif
