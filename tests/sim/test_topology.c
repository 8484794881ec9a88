/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * sim/net/topology.c and routes.c: the right nodes and links, every pair of
 * hosts joined by shortest ways, load spread over equal ones, and sentences
 * for what is not a network.
 */
#include "homa_plat.h"
#include "unit.h"

#include "blast.h"
#include "net_impl.h"

static void fat_tree(struct sim_config *cfg, u32 k)
{
	sim_config_default(cfg);
	cfg->topology = SIM_FAT_TREE;
	cfg->k = k;
	cfg->hosts = 0;
}

static void refused(const struct sim_config *cfg, const char *why)
{
	struct sim_config copy = *cfg;
	char err[256] = "";

	copy.transport = &sim_blast;
	assert_null(sim_new(&copy, err, sizeof(err)));
	if (!strstr(err, why))
		fail_msg("\"%s\" does not say \"%s\"", err, why);
}

static void topology_bad__says_why(void **state)
{
	struct sim_config cfg;

	(void)state;
	sim_config_default(&cfg);
	cfg.hosts = 100;
	refused(&cfg, "100 hosts cannot be spread evenly over 9 racks");
	cfg.racks = 0;
	refused(&cfg, "over 0 racks");
	sim_config_default(&cfg);
	cfg.spines = 0;
	refused(&cfg, "at least one spine");
	sim_config_default(&cfg);
	cfg.host_mbps = 3000;
	refused(&cfg, "host links of 3000 Mbit/s");
	sim_config_default(&cfg);
	cfg.fabric_mbps = 0;
	refused(&cfg, "fabric links of 0 Mbit/s");
	sim_config_default(&cfg);
	cfg.topology = SIM_ONE_SWITCH;
	cfg.hosts = 1;
	refused(&cfg, "2 to 65535 hosts, not 1");
	cfg.hosts = 65536;
	refused(&cfg, "not 65536");
	fat_tree(&cfg, 5);
	refused(&cfg, "an even k");
	fat_tree(&cfg, 0);
	refused(&cfg, "an even k");
	fat_tree(&cfg, 400);
	refused(&cfg, "not 400");
	fat_tree(&cfg, 4);
	cfg.hosts = 17;
	refused(&cfg, "k = 4 has 16 hosts, or another multiple of 8, not 17");
	sim_config_default(&cfg);
	cfg.num_failures = 1;
	cfg.failures[0].node = 0;
	cfg.failures[0].peer = 145;
	cfg.failures[0].until = 1;
	refused(&cfg, "nodes 0 and 145, whose link is to fail, have no link");
	cfg.failures[0].peer = 1000000;
	refused(&cfg, "have no link");
	cfg.failures[0].peer = 144;
	cfg.failures[0].from = 1;
	refused(&cfg, "ends before it begins");
}

static void topology_study__has_its_nodes_and_links(void **state)
{
	u32 count[SIM_LEVELS] = { 0 }, i;
	struct sim_config cfg;
	struct sim *sim;

	(void)state;
	sim_config_default(&cfg);
	sim = blast_new(&cfg);
	assert_int_equal(sim->num_nodes, 144 + 9 + 4);
	assert_int_equal(sim->num_ports, 2 * 144 + 2 * 36);
	for (i = 0; i < sim->num_ports; i++) {
		const struct sim_port *port = &sim->ports[i];
		const struct sim_port *back;

		assert_int_equal(port->index, i);
		count[port->level]++;
		/* The other direction of the link. */
		assert_int_not_equal(sim_port_between(sim, port->peer, port->node),
				     SIM_NO_PORT);
		back = &sim->ports[sim_port_between(sim, port->peer, port->node)];
		assert_int_equal(back->ps_per_byte, port->ps_per_byte);
		assert_int_equal(port->ps_per_byte,
				 port->node < 144 || port->peer < 144 ? 800 :
									200);
	}
	assert_int_equal(count[SIM_HOST_UP], 144);
	assert_int_equal(count[SIM_HOST_DOWN], 144);
	assert_int_equal(count[SIM_TOR_UP], 36);
	assert_int_equal(count[SIM_TOR_DOWN], 36);
	for (i = 0; i < 144; i++) {
		assert_int_equal(sim->hosts[i].index, i);
		assert_int_equal(sim->hosts[i].up->node, i);
		assert_int_equal(sim->hosts[i].down->peer, i);
		assert_int_equal(sim->hosts[i].up->peer, 144 + i / 16);
		assert_int_equal(sim->hosts[i].down->node, 144 + i / 16);
	}
	sim_free(sim);
}

static void topology_fat_tree__has_its_nodes_and_links(void **state)
{
	u32 count[SIM_LEVELS] = { 0 }, i, k;

	(void)state;
	for (k = 2; k <= 8; k += 2) {
		struct sim_config cfg;
		struct sim *sim;

		fat_tree(&cfg, k);
		sim = blast_new(&cfg);
		assert_int_equal(sim->cfg.hosts, k * k * k / 4);
		assert_int_equal(sim->num_nodes,
				 k * k * k / 4 + k * k + k * k / 4);
		memset(count, 0, sizeof(count));
		for (i = 0; i < sim->num_ports; i++) {
			const struct sim_port *port = &sim->ports[i];

			count[port->level]++;
			assert_int_not_equal(sim_port_between(sim, port->peer,
							      port->node),
					     SIM_NO_PORT);
		}
		for (i = 0; i < SIM_LEVELS; i++)
			assert_int_equal(count[i], k * k * k / 4);
		/* Every switch has k ports. */
		for (i = sim->cfg.hosts; i < sim->num_nodes; i++)
			assert_int_equal(sim->net->first_port[i + 1] -
						 sim->net->first_port[i],
					 k);
		sim_free(sim);
	}
}

/* ---- ways ---- */

struct arrivals {
	u32 *hops; /* [src][dst] */
	u32 n;
};

static void note_hops(struct sim *sim, struct sim_pkt *pkt, void *arg)
{
	struct arrivals *a = arg;

	assert_int_equal(sim->net->host_edge[pkt->dst], pkt->via->node);
	assert_int_equal(pkt->via->peer, pkt->dst);
	a->hops[pkt->src * sim->cfg.hosts + pkt->dst] = pkt->hops;
	a->n++;
}

static u32 fat_tree_hops(u32 k, u32 hosts, u32 src, u32 dst)
{
	u32 below = hosts / (k * k / 2);

	if (src / below == dst / below)
		return 2;
	return src / (hosts / k) == dst / (hosts / k) ? 4 : 6;
}

static void check_all_pairs(struct sim_config *cfg)
{
	struct sim *sim = blast_new(cfg);
	const u32 n = sim->cfg.hosts;
	struct arrivals a = { calloc(n * n, sizeof(u32)), 0 };
	u32 src, dst, ps_per_byte[8];
	u64 delay[8];

	blast_on_rx(sim, note_hops, &a);
	for (src = 0; src < n; src++)
		for (dst = 0; dst < n; dst++)
			if (src != dst)
				blast_send(sim, blast_pkt(sim, src, dst, 84, 0));
	sim_run(sim, SIM_NEVER);
	assert_int_equal(a.n, n * (n - 1));
	for (src = 0; src < n; src++) {
		for (dst = 0; dst < n; dst++) {
			u32 want = src / 4 == dst / 4 ? 2 : 4;

			if (src == dst)
				continue;
			if (cfg->topology == SIM_FAT_TREE)
				want = fat_tree_hops(cfg->k, n, src, dst);
			else if (cfg->topology == SIM_ONE_SWITCH)
				want = 2;
			assert_int_equal(a.hops[src * n + dst], want);
			assert_int_equal(sim_path(sim, src, dst, ps_per_byte,
						  delay),
					 want);
		}
	}
	free(a.hops);
	sim_free(sim);
}

static void routes_all__reach_everyone_by_a_shortest_way(void **state)
{
	struct sim_config cfg;

	(void)state;
	sim_config_default(&cfg);
	cfg.hosts = 12;
	cfg.racks = 3;
	cfg.spines = 2;
	check_all_pairs(&cfg);
	cfg.balance = SIM_ECMP;
	check_all_pairs(&cfg);
	cfg.topology = SIM_ONE_SWITCH;
	check_all_pairs(&cfg);
	fat_tree(&cfg, 4);
	check_all_pairs(&cfg);
	cfg.hosts = 32; /* more than its uplinks carry */
	check_all_pairs(&cfg);
	fat_tree(&cfg, 6);
	cfg.balance = SIM_ECMP;
	check_all_pairs(&cfg);
	fat_tree(&cfg, 2);
	check_all_pairs(&cfg);
	sim_config_default(&cfg);
	cfg.hosts = 4;
	cfg.racks = 1;
	cfg.spines = 0;
	check_all_pairs(&cfg);
}

/* A switch stores as many groups as it has different answers. */
static void routes_groups__are_few(void **state)
{
	struct sim_config cfg;
	struct sim *sim;

	(void)state;
	fat_tree(&cfg, 8);
	sim = blast_new(&cfg);
	/* Edge: up. Aggregation: 4 edges, up. Core: 8 pods. And the empty one. */
	assert_int_equal(sim->net->num_groups, 1 + 32 * 1 + 32 * 5 + 16 * 8);
	sim_free(sim);
}

/* ---- spreading ---- */

/* Packets from rack 0 to rack 1 that each uplink of rack 0 takes. */
static void uplinks(enum sim_balance balance, u32 flows, u32 packets,
		    u64 count[4])
{
	struct sim_config cfg;
	struct sim *sim;
	u32 i;

	sim_config_default(&cfg);
	cfg.balance = balance;
	sim = blast_new(&cfg);
	for (i = 0; i < packets; i++) {
		struct sim_pkt *pkt = blast_pkt(sim, 3, 17, 200, 0);

		pkt->flow = i % flows;
		blast_send(sim, pkt);
	}
	sim_run(sim, SIM_NEVER);
	for (i = 0; i < 4; i++)
		count[i] = sim->ports[sim_port_between(sim, 144, 153 + i)]
				   .stats.tx_packets;
	assert_int_equal(count[0] + count[1] + count[2] + count[3], packets);
	sim_free(sim);
}

static void routes_spray__spreads_one_flow(void **state)
{
	u64 count[4];
	u32 i;

	(void)state;
	uplinks(SIM_SPRAY, 1, 4000, count);
	/* 1000 each; six sigma are 164. */
	for (i = 0; i < 4; i++)
		assert_in_range(count[i], 836, 1164);
}

static void routes_ecmp__keeps_a_flow_and_spreads_flows(void **state)
{
	u32 i, flow, used = 0;
	u64 count[4];

	(void)state;
	for (flow = 1; flow < 12; flow++) {
		uplinks(SIM_ECMP, 1, 50 * flow, count);
		for (i = 0, used = 0; i < 4; i++)
			used += count[i] != 0;
		assert_int_equal(used, 1);
	}
	uplinks(SIM_ECMP, 4000, 4000, count);
	for (i = 0; i < 4; i++)
		assert_in_range(count[i], 836, 1164);
}

/* The choice at one switch says nothing about the choice at the next. */
static void routes_ecmp__levels_choose_independently(void **state)
{
	struct sim_config cfg;
	struct sim *sim;
	u32 i, j;

	(void)state;
	fat_tree(&cfg, 4);
	cfg.balance = SIM_ECMP;
	sim = blast_new(&cfg);
	for (i = 0; i < 4000; i++) {
		struct sim_pkt *pkt = blast_pkt(sim, 0, 15, 84, 0);

		pkt->flow = i;
		blast_send(sim, pkt);
	}
	sim_run(sim, SIM_NEVER);
	for (i = 0; i < 4; i++) {
		const u32 core = 16 + 16 + i;
		u64 sum = 0;

		for (j = sim->net->first_port[core];
		     j < sim->net->first_port[core + 1]; j++)
			sum += sim->ports[j].stats.tx_packets;
		assert_in_range(sum, 836, 1164);
	}
	sim_free(sim);
}

/* Eight hosts at 10G behind one 10G uplink: it decides, and is never idle. */
static void topology_oversubscribed__the_uplink_decides(void **state)
{
	struct sim_config cfg;
	struct sim *sim;
	u32 i;

	(void)state;
	sim_config_default(&cfg);
	cfg.racks = 2;
	cfg.hosts = 16;
	cfg.spines = 1;
	cfg.fabric_mbps = 10000;
	sim = blast_new(&cfg);
	for (i = 0; i < 800; i++)
		blast_send(sim, blast_pkt(sim, i % 8, 8 + i % 8, 1538, 0));
	sim_run(sim, SIM_NEVER);
	/* The first bit is at the uplink after one packet, then 800 and two more links. */
	assert_int_equal(sim->now, 1538ull * 800 * (1 + 800 + 2) +
					   (1000 + 3 * 250 + 500) * SIM_NS);
	assert_int_equal(sim->ports[sim_port_between(sim, 16, 18)].stats.tx_packets,
			 800);
	assert_true(sim->ports[sim_port_between(sim, 16, 18)].stats.peak >
		    600 * 1538);
	assert_int_equal(sim->ports[sim_port_between(sim, 18, 17)].stats.peak, 0);
	sim_free(sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(topology_bad__says_why),
		cmocka_unit_test(topology_study__has_its_nodes_and_links),
		cmocka_unit_test(topology_fat_tree__has_its_nodes_and_links),
		cmocka_unit_test(routes_all__reach_everyone_by_a_shortest_way),
		cmocka_unit_test(routes_groups__are_few),
		cmocka_unit_test(routes_spray__spreads_one_flow),
		cmocka_unit_test(routes_ecmp__keeps_a_flow_and_spreads_flows),
		cmocka_unit_test(routes_ecmp__levels_choose_independently),
		cmocka_unit_test(topology_oversubscribed__the_uplink_decides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
