// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* A host's cores with the kernel's TCP on them: what differs from Homa's software. */
#include "packets_world.h"

#include "jobs.h"
#include "software.h"

static struct sim_config config_of(u32 hosts, u32 cores)
{
	struct sim_config cfg;

	world_cfg(&cfg, &sim_tcp, hosts);
	cfg.software.cores = cores;
	return cfg;
}

static u64 insns(u64 n)
{
	return n * SIM_US / sim_costs[SIM_COST_MIPS].value[SIM_STACK_TCP];
}

static u64 cost(enum sim_cost which)
{
	return insns(sim_costs[which].value[SIM_STACK_TCP]);
}

/* The time of a message of one packet, alone, to a thread that sleeps. */
static void host__message_alone(void **state)
{
	const u32 length = 800;
	struct sim_config cfg = config_of(2, 1);
	u64 wanted, ns;

	(void)state;
	world_new(&cfg);
	world_send(0, 1, length);
	wanted = world_alone_ps(0, 1, length);
	world_finish();
	wanted += cost(SIM_COST_SEND) + cost(SIM_COST_UNIT_OUT) +
		  2 * insns(length / 8);
	wanted += cost(SIM_COST_PASS) + cost(SIM_COST_NAPI) +
		  cost(SIM_COST_SOFTIRQ);
	wanted += cost(SIM_COST_WAKE) + cost(SIM_COST_RECV);
	ns = sim_costs[SIM_COST_INTERRUPT].value[SIM_STACK_TCP] +
	     sim_costs[SIM_COST_SLEEP].value[SIM_STACK_TCP];
	assert_int_equal(world_took(world.msg[0]), wanted + ns * SIM_NS);
	world_end();
}

/* Returns what a message of @length takes when its hosts have the software of @stack, with
 * copies of a byte an instruction, so that they take longer than the wire. */
static u64 alone_with(enum sim_stack stack, u32 length)
{
	struct sim_config cfg = config_of(2, 64);
	u64 took;

	cfg.software.stack = stack;
	cfg.software.cost[SIM_COST_COPY] = 1;
	world_new(&cfg);
	world_send(0, 1, length);
	world_finish();
	took = world_took(world.msg[0]);
	world_end();
	return took;
}

/* A stream is copied while it is sent and while it comes: what Homa's software copies before
 * the first packet and after the last one is not in its time. */
static void host__stream_is_copied_as_it_goes(void **state)
{
	const u32 length = 1000000, unit = 65535;
	u64 whole, pieces;

	(void)state;
	whole = alone_with(SIM_STACK_HOMA, length);
	pieces = alone_with(SIM_STACK_TCP, length);
	assert_true(whole > pieces);
	/* The sender's copy of all but the first unit, nearly all of the reader's. */
	assert_true(whole - pieces > insns(length - unit) + insns(length) / 2);
	/* A message of one unit is copied as a whole by both. */
	assert_true(alone_with(SIM_STACK_HOMA, 1000) ==
		    alone_with(SIM_STACK_TCP, 1000));
}

/* Sums the softirq's time of @n messages that two hosts send at once to a slow one. */
static double softirq(u32 cores, u32 length, u32 n)
{
	struct sim_config cfg = config_of(3, cores);
	double used;
	u32 i;

	cfg.warmup_ps = 0;
	cfg.measure_ps = 1000 * SIM_MS;
	cfg.software.cost[SIM_COST_MIPS] = 300;
	world_new(&cfg);
	for (i = 0; i < n; i++)
		world_send(1 + i % 2, 0, length);
	world_finish();
	used = sim_software_use(world.sim, SIM_PART_SOFTIRQ);
	world_end();
	return used;
}

/* Packets of a flow that wait for NAPI are one unit for the softirq, so a packet of a long
 * message costs less than one that comes alone. */
static void host__packets_of_a_flow_are_joined(void **state)
{
	const u32 packets = 1000000 / 1460 + 1;

	(void)state;
	assert_true(softirq(1, 1000000, 1) < 0.7 * packets * softirq(1, 100, 1));
}

/* A flow has the same softirq core for all its packets: with many cores a message loses no
 * order, which TCP would take for a loss. */
static void host__order_is_kept(void **state)
{
	struct sim_config cfg = config_of(4, 16);
	u32 i;

	(void)state;
	world_new(&cfg);
	for (i = 0; i < 60; i++)
		world_send(i % 3, 3, 1 + i * 5000);
	world_finish();
	assert_int_equal(world_metric("retransmitted_packets"), 0);
	world_end();
}

/* All packets of a response are the work of the core whose thread answers, which is the one that
 * got the request. */
static void host__packets_of_a_response_have_its_threads_core(void **state)
{
	struct sim_config cfg = config_of(2, 64);
	struct sim_msg *request, *response;
	struct sim_pkt *pkt;
	u32 wanted, i;

	(void)state;
	world_new(&cfg);
	request = sim_msg_new(world.sim);
	response = sim_msg_new(world.sim);
	pkt = sim_pkt_new(world.sim);
	assert_true(request && response && pkt);
	response->request = request;
	pkt->src = 1;
	pkt->payload = 1000;
	pkt->offset = 100000;
	pkt->msg = response;
	pkt->msg_serial = response->serial;
	sim_software_tx(world.sim, pkt);
	world_run(SIM_MS);
	wanted = sim_core_by_hash(world.sim, 1, request->serial);
	for (i = 0; i < 2 * cfg.software.cores; i++)
		assert_int_equal(world.sim->cores->core[i].busy > 0, i == wanted);
	sim_pkt_free(world.sim, pkt);
	sim_msg_put(world.sim, response); /* and the request */
	world_end();
}

static void costs__are_an_rpc(void **state)
{
	static const enum sim_cost once[] = {
		SIM_COST_SEND, SIM_COST_UNIT_OUT, SIM_COST_PASS,
		SIM_COST_NAPI, SIM_COST_SOFTIRQ,  SIM_COST_WAKE,
		SIM_COST_RECV
	};
	u64 sum = 0;
	u32 i;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(once); i++)
		sum += sim_costs[once[i]].value[SIM_STACK_TCP];
	/* 30.6 k instructions of an RPC over the kernel's TCP without GRO (docs/
	 * kernel-performance.md), and 586 for GRO of each of its packets */
	assert_in_range(2 * sum, 31750 * 99 / 100, 31750 * 101 / 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(host__message_alone),
		cmocka_unit_test(host__stream_is_copied_as_it_goes),
		cmocka_unit_test(host__packets_of_a_flow_are_joined),
		cmocka_unit_test(host__order_is_kept),
		cmocka_unit_test(host__packets_of_a_response_have_its_threads_core),
		cmocka_unit_test(costs__are_an_rpc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
