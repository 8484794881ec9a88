// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The costs. Instructions were counted on 30 November 2026 under Linux 6.1.0-57
 * (./homa bench kernel profile, docs/kernel-performance.md), in thousands:
 *
 *	RPC, 100 bytes each way, 1 outstanding, blocking	homa.ko	TCP
 *	the transport's own				6.0	8.5
 *	wake-up and schedule				6.3	7.9
 *	system calls					3.2	2.3
 *	copies of data, addresses, control structures	2.1	1.8
 *	skbs						1.9	3.3
 *	veth and softirq				1.4	1.7
 *	IP in						0.6	1.0
 *	IP out						0.1	1.0
 *	locks						0.9	1.4
 *	timers, lists, the rest				1.3	1.6
 *	all						23.7	30.6
 *
 * An RPC has two messages, each sent once and received once, with four system
 * calls; so a message costs half of each line. Where a line does not say which
 * side or which stage spent it, it is halved between sending and receiving
 * (skbs: half for the sender, a quarter for NAPI, a quarter for softirq), and
 * half of what a transport does to receive is softirq's, half the reader's.
 *
 * "500 KB" is a message one way: homa.ko 1,228 k as 354 packets, 239 k as units
 * of 64 KB, so that a packet costs 2,793 more than its share of a unit, of which
 * 550 cut the unit at the sender. TCP with GRO: 1,477 k and 390 k, 345 packets,
 * 3,147 a packet; 1,100 cut the unit, 275 are the reader's for each fragment,
 * which no cost here has.
 *
 * The first counts, of homa.ko of 22 November, gave 27.1 k for an RPC and were
 * what all protocols had until 30 November. Nothing here was chosen by looking
 * at a figure. Times that no count can show are others' measurements: "notes"
 * are the performance notes of the Homa module's author, item 32.
 */
#include <string.h>

#include "costs.h"

#define INSN "instructions"

#define BOTH(value) { value, value }
#define SAME(source) { source, source }

const struct sim_cost_info sim_costs[SIM_COSTS] = {
	[SIM_COST_MIPS] = { "mips", BOTH(2400), 1, 1000000, "million instructions/s",
			    "speed of a core",
			    SAME("ATC'21, Table 1: 2.4 GHz; one instruction a cycle is assumed") },
	[SIM_COST_SEND] = { "send-call",
			    { 3374, 3914 },
			    0,
			    1000000000,
			    INSN,
			    "system call that sends a message",
			    { "RPC: a quarter of system calls, copies, transport, locks, timers, lists, rest",
			      "RPC: the same of TCP's" } },
	[SIM_COST_RECV] = { "recv-call",
			    { 2625, 2850 },
			    0,
			    1000000000,
			    INSN,
			    "system call that receives a message",
			    { "RPC: the same, but an eighth of the transport",
			      "RPC: the same of TCP's" } },
	[SIM_COST_COPY] = { "copy", BOTH(8), 1, 64, "bytes/instruction",
			    "bytes that an instruction copies between a message and packets",
			    SAME("500 KB: 360 instructions copy a packet of 1404 bytes twice") },
	[SIM_COST_WAKE] = { "wake-up",
			    { 3139, 3964 },
			    0,
			    1000000000,
			    INSN,
			    "waking a thread and switching to it",
			    { "RPC: 6.3/2 k", "RPC: 7.9/2 k" } },
	[SIM_COST_UNIT_OUT] = { "unit-out",
				{ 863, 1748 },
				0,
				1000000000,
				INSN,
				"unit through IP and driver of the sender",
				{ "RPC: a quarter of skbs and veth, half of IP out",
				  "RPC: the same of TCP's" } },
	[SIM_COST_SEGMENT] = { "segment",
			       { 550, 1100 },
			       0,
			       1000000000,
			       INSN,
			       "cutting a unit, each packet; not with lso",
			       { "500 KB: gso.c",
				 "500 KB: skb_segment() and what it calls" } },
	[SIM_COST_PASS] = { "napi-pass",
			    { 175, 215 },
			    0,
			    1000000000,
			    INSN,
			    "a pass of NAPI over the card's queue",
			    { "RPC: an eighth of veth and softirq",
			      "RPC: the same of TCP's" } },
	[SIM_COST_NAPI] = { "napi-packet",
			    { 626, 1770 },
			    0,
			    1000000000,
			    INSN,
			    "a packet in NAPI",
			    { "500 KB: veth and softirq 281, half of skbs 690",
			      "500 KB with GRO: 3147 less segment and 275 of the reader" } },
	[SIM_COST_SOFTIRQ] = { "softirq-packet",
			       { 1617, 1420 },
			       0,
			       1000000000,
			       INSN,
			       "a packet (TCP: packets of a flow that are joined) in IP and transport",
			       { "500 KB: 2793 less segment and napi-packet",
				 "RPC, 15.3 k a message and 586 for GRO: what the others leave" } },
	[SIM_COST_BUDGET] = { "napi-budget", BOTH(64), 1, 65535, "packets",
			      "most packets of a pass", SAME("Linux: NAPI_POLL_WEIGHT") },
	[SIM_COST_UNIT] = { "unit-bytes", BOTH(65535), 1, 16777216, "bytes",
			    "longest unit", SAME("length of an IP packet") },
	[SIM_COST_INTERRUPT] = { "interrupt", BOTH(530), 0, 1000000000, "ns",
				 "from an interrupt to NAPI", SAME("notes: 560 and 500") },
	[SIM_COST_HANDOFF] = { "handoff", BOTH(475), 0, 1000000000, "ns",
			       "starting softirq on another core",
			       SAME("notes: 480 and 470") },
	[SIM_COST_SLEEP] = { "sleep",
			     { 1192, 848 },
			     0,
			     1000000000,
			     "ns",
			     "from a wake-up to the thread, beside the instructions",
			     SAME("ATC'21, Section 4.4: 2.5 us, less those of wake-up") },
	[SIM_COST_POLL] = { "poll",
			    { 50000, 0 },
			    0,
			    1000000000,
			    "ns",
			    "time that a thread polls before it sleeps",
			    { "ATC'21, Section 4.4", "a blocking read() sleeps at once" } },
};

void sim_costs_default(struct sim_software *soft, enum sim_stack stack)
{
	u32 i;

	soft->stack = stack;
	for (i = 0; i < SIM_COSTS; i++)
		soft->cost[i] = sim_costs[i].value[stack];
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
