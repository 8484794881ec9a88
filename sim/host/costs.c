// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The costs. Instructions were counted (docs/kernel-performance.md): "RPC" is
 * 100 bytes each way, 1 outstanding, blocking, 27.1 k instructions of both
 * kernels, of which homa.ko 9.5, wake-ups 6.2, system calls 3.2, copies of
 * addresses and control structures 2.1, skbs 1.8, veth and softirq 1.4, locks
 * 1.1, the rest (IP) 1.8. An RPC has two messages, so each is sent once and
 * received once, with four system calls. "500 KB" is a message one way, of 356
 * packets or 8 units of 64 KB: 1,365 k without units and 292 k with them, so
 * a packet costs 3,083 instructions more than its share of a unit; 550 of them
 * cut the unit at the sender, 2,533 are the receiver's.
 *
 * Where the counts do not say which side or which stage spent them, they are
 * halved; the text beside such a number says so. Nothing here was chosen by
 * looking at a figure. Times that no count can show are others' measurements:
 * "notes" are the performance notes of the Homa module's author, item 32.
 */
#include <string.h>

#include "costs.h"

#define INSN "instructions"

const struct sim_cost_info sim_costs[SIM_COSTS] = {
	[SIM_COST_MIPS] = { "mips", 2400, 1, 1000000, "million instructions/s",
			    "speed of a core",
			    "ATC'21, Table 1: 2.4 GHz; one instruction a cycle is assumed" },
	[SIM_COST_SEND] = { "send-call", 3975, 0, 1000000000, INSN,
			    "system call that sends a message",
			    "RPC: 3.2/4 + 2.1/4 + half of 9.5/2 + half of 1.1/2 k of both, i.e. 800 + 525 + 2375 + 275" },
	[SIM_COST_RECV] = { "recv-call", 2650, 0, 1000000000, INSN,
			    "system call that receives a message",
			    "RPC: 800 + 525 and half of what homa.ko and locks take to receive (halved)" },
	[SIM_COST_COPY] = { "copy", 8, 1, 64, "bytes/instruction",
			    "bytes that an instruction copies between a message and packets",
			    "500 KB: 360 instructions copy a packet of 1404 bytes twice" },
	[SIM_COST_WAKE] = { "wake-up", 3100, 0, 1000000000, INSN,
			    "waking a thread and switching to it", "RPC: 6.2/2 k" },
	[SIM_COST_UNIT_OUT] = { "unit-out", 1250, 0, 1000000000, INSN,
				"unit through IP and driver of the sender",
				"RPC: skb 1.8, IP 1.8, veth 1.4 k, by two messages (halved)" },
	[SIM_COST_SEGMENT] = { "segment", 550, 0, 1000000000, INSN,
			       "cutting a unit, each packet; not with lso",
			       "500 KB: gso.c" },
	[SIM_COST_PASS] = { "napi-pass", 350, 0, 1000000000, INSN,
			    "a pass of NAPI over the card's queue",
			    "RPC: half of veth and softirq at the receiver (halved)" },
	[SIM_COST_NAPI] = { "napi-packet", 670, 0, 1000000000, INSN, "a packet in NAPI",
			    "500 KB: veth and softirq 310, half of skb 720" },
	[SIM_COST_SOFTIRQ] = { "softirq-packet", 1863, 0, 1000000000, INSN,
			       "a packet in IP and homa.ko",
			       "500 KB: 2533 less napi-packet" },
	[SIM_COST_BUDGET] = { "napi-budget", 64, 1, 65535, "packets",
			      "most packets of a pass", "Linux: NAPI_POLL_WEIGHT" },
	[SIM_COST_UNIT] = { "unit-bytes", 65535, 1, 16777216, "bytes", "longest unit",
			    "length of an IP packet" },
	[SIM_COST_INTERRUPT] = { "interrupt", 530, 0, 1000000000, "ns",
				 "from an interrupt to NAPI", "notes: 560 and 500" },
	[SIM_COST_HANDOFF] = { "handoff", 475, 0, 1000000000, "ns",
			       "starting softirq on another core", "notes: 480 and 470" },
	[SIM_COST_SLEEP] = { "sleep", 1208, 0, 1000000000, "ns",
			     "from a wake-up to the thread, beside the instructions",
			     "ATC'21, Section 4.4: 2.5 us, less 3100 instructions" },
	[SIM_COST_POLL] = { "poll", 50000, 0, 1000000000, "ns",
			    "time that a thread polls before it sleeps",
			    "ATC'21, Section 4.4" },
};

void sim_costs_default(struct sim_software *soft)
{
	u32 i;

	for (i = 0; i < SIM_COSTS; i++)
		soft->cost[i] = sim_costs[i].value;
}

bool sim_cost_set(struct sim_software *soft, const char *name, u64 value)
{
	u32 i;

	for (i = 0; i < SIM_COSTS; i++) {
		if (strcmp(sim_costs[i].name, name))
			continue;
		if (value < sim_costs[i].min || value > sim_costs[i].max)
			return false;
		soft->cost[i] = value;
		return true;
	}
	return false;
}
