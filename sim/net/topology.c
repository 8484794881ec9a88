// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Nodes and links of the three topologies. Hosts come first, then switches
 * from the edge to the core:
 *
 *	one switch	all hosts on it.
 *	leaf-spine	a switch in every rack, each linked to every spine.
 *	fat tree	parameter k (Al-Fares et al., SIGCOMM 2008): k pods of k/2
 *			edge and k/2 aggregation switches, (k/2)^2 cores; each edge
 *			switch has k/2 hosts; aggregation switch number a of every
 *			pod is linked to cores a * k/2 ... a * k/2 + k/2 - 1.
 *
 * The ports of a node lie side by side in sim->ports, so that what a switch
 * touches for a packet is near what it touched for the last one.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net_impl.h"

#define MAX_HOSTS 65535u
#define MAX_K 40u
#define MAX_RACKS 2048u
#define MAX_PORTS 2000000ull

/* ---- is it a network? ---- */

static int topology_bad_rate(const char *what, u32 mbps, char *err, size_t errlen)
{
	if (mbps && 8000000 % mbps == 0)
		return 0;
	snprintf(err, errlen,
		 "%s of %u Mbit/s: a byte would not take a whole number of picoseconds; take a divisor of 8000000, such as 10000, 25000, 40000 or 100000",
		 what, mbps);
	return -EINVAL;
}

static int leaf_spine_check(const struct sim_config *cfg, char *err, size_t errlen)
{
	if (!cfg->racks || cfg->hosts % cfg->racks) {
		snprintf(err, errlen, "%u hosts cannot be spread evenly over %u racks",
			 cfg->hosts, cfg->racks);
		return -EINVAL;
	}
	if (cfg->racks > 1 && !cfg->spines) {
		snprintf(err, errlen, "%u racks need at least one spine switch",
			 cfg->racks);
		return -EINVAL;
	}
	if (cfg->racks > MAX_RACKS) {
		snprintf(err, errlen, "%u racks are more than %u", cfg->racks, MAX_RACKS);
		return -EINVAL;
	}
	if ((u64)cfg->hosts * 2 + 2ull * cfg->racks * cfg->spines > MAX_PORTS) {
		snprintf(err, errlen, "%u racks and %u spine switches are too many",
			 cfg->racks, cfg->spines);
		return -EINVAL;
	}
	return 0;
}

static int fat_tree_check(struct sim_config *cfg, char *err, size_t errlen)
{
	u32 edges = cfg->k * cfg->k / 2, hosts = edges * (cfg->k / 2);

	if (cfg->k < 2 || cfg->k % 2 || cfg->k > MAX_K) {
		snprintf(err, errlen, "a fat tree needs an even k from 2 to %u, not %u",
			 MAX_K, cfg->k);
		return -EINVAL;
	}
	/* With another number of hosts than @hosts, links upward have less or more capacity
	 * than the hosts. */
	if (cfg->hosts % edges) {
		snprintf(err, errlen,
			 "a fat tree with k = %u has %u hosts, or another multiple of %u, not %u",
			 cfg->k, hosts, edges, cfg->hosts);
		return -EINVAL;
	}
	if (!cfg->hosts)
		cfg->hosts = hosts;
	return 0;
}

static int topology_check(struct sim_config *cfg, char *err, size_t errlen)
{
	int res = topology_bad_rate("host links", cfg->host_mbps, err, errlen);

	if (!res && cfg->topology != SIM_ONE_SWITCH)
		res = topology_bad_rate("fabric links", cfg->fabric_mbps, err, errlen);
	if (!res && cfg->topology == SIM_FAT_TREE)
		res = fat_tree_check(cfg, err, errlen);
	if (res)
		return res;
	if (cfg->hosts < 2 || cfg->hosts > MAX_HOSTS) {
		snprintf(err, errlen, "a network has 2 to %u hosts, not %u", MAX_HOSTS,
			 cfg->hosts);
		return -EINVAL;
	}
	if (cfg->topology == SIM_LEAF_SPINE)
		return leaf_spine_check(cfg, err, errlen);
	return 0;
}

/* ---- sizes ---- */

static void topology_sizes(const struct sim_config *cfg, struct sim_net *net)
{
	const u32 half = cfg->k / 2;

	net->hosts = cfg->hosts;
	net->max_ports = 2 * cfg->hosts;
	switch (cfg->topology) {
	case SIM_ONE_SWITCH:
		net->edges = 1;
		net->switches = 1;
		break;
	case SIM_LEAF_SPINE:
		net->edges = cfg->racks;
		net->switches = cfg->racks + cfg->spines;
		net->max_ports += 2 * cfg->racks * cfg->spines;
		break;
	case SIM_FAT_TREE:
		net->edges = cfg->k * half;
		net->switches = 2 * cfg->k * half + half * half;
		net->max_ports += 4 * cfg->k * half * half;
		break;
	}
}

static int topology_alloc(struct sim *sim)
{
	struct sim_net *net = sim->net;
	const size_t bytes = net->max_ports * sizeof(struct sim_port);

	sim->num_nodes = net->hosts + net->switches;
	sim->hosts = calloc(net->hosts, sizeof(*sim->hosts));
	sim->ports = aligned_alloc(64, (bytes + 63) / 64 * 64);
	if (sim->ports)
		memset(sim->ports, 0, bytes);
	net->host_edge = calloc(net->hosts, sizeof(*net->host_edge));
	net->host_down = calloc(net->hosts, sizeof(*net->host_down));
	net->sw = calloc(net->switches, sizeof(*net->sw));
	net->first_port = calloc(sim->num_nodes + 1, sizeof(*net->first_port));
	net->failed_at = calloc(net->max_ports, sizeof(*net->failed_at));
	net->failures_now = calloc(net->max_ports, sizeof(*net->failures_now));
	net->headers_in_row = calloc(net->max_ports, sizeof(*net->headers_in_row));
	if (!sim->hosts || !sim->ports || !net->host_edge || !net->host_down ||
	    !net->sw || !net->first_port || !net->failed_at || !net->failures_now ||
	    !net->headers_in_row)
		return -ENOMEM;
	return 0;
}

/* ---- links ---- */

/* Ports are added node by node, so that a node's lie side by side. */
static void port_add(struct sim *sim, u32 node, u32 peer, enum sim_level level)
{
	const struct sim_config *cfg = &sim->cfg;
	struct sim_port *port = &sim->ports[sim->num_ports];
	bool host_link = level == SIM_HOST_UP || level == SIM_HOST_DOWN;

	port->node = node;
	port->peer = peer;
	port->index = sim->num_ports;
	port->level = level;
	port->ps_per_byte = 8000000 / (host_link ? cfg->host_mbps : cfg->fabric_mbps);
	port->delay_ps = host_link ? cfg->host_prop_ps : cfg->fabric_prop_ps;
	port->delay_ps += level == SIM_HOST_DOWN ? cfg->recv_ps : cfg->switch_ps;
	if (level == SIM_HOST_UP) {
		port->delay_ps += cfg->send_ps;
		sim->hosts[node].index = node;
		sim->hosts[node].up = port;
	} else if (level == SIM_HOST_DOWN) {
		sim->hosts[peer].down = port;
		sim->net->host_down[peer] = port->index;
		sim->net->host_edge[peer] = node;
	}
	sim->num_ports++;
	sim->net->first_port[node + 1] = sim->num_ports;
}

static void ports_to_hosts(struct sim *sim, u32 node, u32 first, u32 count)
{
	u32 i;

	for (i = 0; i < count; i++)
		port_add(sim, node, first + i, SIM_HOST_DOWN);
}

static void one_switch_build(struct sim *sim)
{
	const u32 hosts = sim->net->hosts;
	u32 i;

	for (i = 0; i < hosts; i++)
		port_add(sim, i, hosts, SIM_HOST_UP);
	ports_to_hosts(sim, hosts, 0, hosts);
}

static void leaf_spine_build(struct sim *sim)
{
	const struct sim_config *cfg = &sim->cfg;
	const u32 hosts = cfg->hosts, per_rack = hosts / cfg->racks;
	u32 i, j;

	for (i = 0; i < hosts; i++)
		port_add(sim, i, hosts + i / per_rack, SIM_HOST_UP);
	for (i = 0; i < cfg->racks; i++) {
		ports_to_hosts(sim, hosts + i, i * per_rack, per_rack);
		for (j = 0; j < cfg->spines; j++)
			port_add(sim, hosts + i, hosts + cfg->racks + j, SIM_TOR_UP);
	}
	for (j = 0; j < cfg->spines; j++)
		for (i = 0; i < cfg->racks; i++)
			port_add(sim, hosts + cfg->racks + j, hosts + i, SIM_TOR_DOWN);
}

static void fat_tree_build(struct sim *sim)
{
	const u32 k = sim->cfg.k, half = k / 2, hosts = sim->net->hosts;
	const u32 below = hosts / (k * half);
	const u32 edge = hosts, agg = edge + k * half, core = agg + k * half;
	u32 i, j;

	for (i = 0; i < hosts; i++)
		port_add(sim, i, edge + i / below, SIM_HOST_UP);
	for (i = 0; i < k * half; i++) {
		ports_to_hosts(sim, edge + i, i * below, below);
		for (j = 0; j < half; j++)
			port_add(sim, edge + i, agg + i / half * half + j, SIM_TOR_UP);
	}
	for (i = 0; i < k * half; i++) {
		for (j = 0; j < half; j++)
			port_add(sim, agg + i, edge + i / half * half + j, SIM_TOR_DOWN);
		for (j = 0; j < half; j++)
			port_add(sim, agg + i, core + i % half * half + j, SIM_CORE_UP);
	}
	for (i = 0; i < half * half; i++)
		for (j = 0; j < k; j++)
			port_add(sim, core + i, agg + j * half + i / half, SIM_CORE_DOWN);
}

int sim_topology_build(struct sim *sim, char *err, size_t errlen)
{
	struct sim_net *net = sim->net;
	u32 i;

	if (topology_check(&sim->cfg, err, errlen))
		return -EINVAL;
	topology_sizes(&sim->cfg, net);
	if (topology_alloc(sim)) {
		snprintf(err, errlen, "out of memory");
		return -ENOMEM;
	}
	switch (sim->cfg.topology) {
	case SIM_ONE_SWITCH:
		one_switch_build(sim);
		break;
	case SIM_LEAF_SPINE:
		leaf_spine_build(sim);
		break;
	case SIM_FAT_TREE:
		fat_tree_build(sim);
		break;
	}
	for (i = 0; i < net->switches; i++) {
		net->sw[i].edge = i < net->edges ? i : SIM_NO_PORT;
		net->sw[i].salt = (i + 1) * 0x9e3779b9u;
	}
	return 0;
}

u32 sim_port_between(const struct sim *sim, u32 node, u32 peer)
{
	u32 i;

	if (node >= sim->num_nodes || peer >= sim->num_nodes)
		return SIM_NO_PORT;
	for (i = sim->net->first_port[node]; i < sim->net->first_port[node + 1]; i++)
		if (sim->ports[i].peer == peer)
			return i;
	return SIM_NO_PORT;
}
