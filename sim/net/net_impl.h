/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the files of the network share: net.c moves packets, topology.c makes
 * nodes and ports, routes.c knows where to, queue_*.c in what order.
 *
 * Written by: the one thread that runs the simulation.
 */
#ifndef SIM_NET_IMPL_H
#define SIM_NET_IMPL_H

#include "sim_transport.h"

/* Bytes of a packet after which a cut-through switch knows its way. */
#define SIM_CUT_BYTES 64u
/* Value of an index of a port that says that there is no port. */
#define SIM_NO_PORT UINT32_MAX

struct pkt_slab;

/**
 * struct sim_group - ports of a switch that lead equally near to an edge switch
 * @first: index of the first of them in sim_net.members.
 * @count: number of ports.
 */
struct sim_group {
	u32 first;
	u32 count;
};

/**
 * struct sim_switch - what a switch has besides its ports
 * @buffered: bytes in all its queues.
 * @edge: number of the switch among the edge switches; SIM_NO_PORT: it has no hosts.
 * @salt: number by which its ECMP hash differs from those of other switches.
 */
struct sim_switch {
	u64 buffered;
	u32 edge;
	u32 salt;
};

/**
 * struct sim_link_failure - a failure of the configuration
 * @begin: event at which the link goes down.
 * @end: event at which it comes up again.
 * @net: the network of the run.
 * @ports: indices of the two ports of the link.
 */
struct sim_link_failure {
	struct sim_event begin, end;
	struct sim_net *net;
	u32 ports[2];
};

/**
 * struct sim_net - the network's own
 * @hosts: number of hosts.
 * @switches: number of switches.
 * @edges: number of edge switches.
 * @host_edge: node of each host's edge switch.
 * @host_down: index of the port toward each host.
 * @sw: the switches, by node less @hosts.
 * @next: for [switch][edge switch] the index in @groups of the ports by which packets go.
 * @groups: groups of ports that lead equally near to an edge switch.
 * @num_groups: number of entries of @groups that are used.
 * @max_groups: number of entries of @groups for which there is memory.
 * @members: indices of the ports of all groups.
 * @num_members: number of entries of @members that are used.
 * @max_members: number of entries of @members for which there is memory.
 * @first_port: index in @adjacent of each node's first port.
 * @adjacent: indices of the ports of each node, in their order.
 * @max_ports: number of ports for which there is memory.
 * @failed_at: time of each port's last failure, ps.
 * @failures_now: number of failures that are in effect at each port.
 * @headers_in_row: number of headers that each port sent in a row while data waited
 *	(queue_trim.c).
 * @failures: the failures of the configuration.
 * @pulling: host port whose transport is being asked right now; NULL: none is.
 * @slabs: memory of all packets.
 */
struct sim_net {
	u32 hosts, switches, edges;
	u32 *host_edge, *host_down;
	struct sim_switch *sw;
	u16 *next;
	struct sim_group *groups;
	u32 num_groups, max_groups;
	u32 *members;
	u32 num_members, max_members;
	u32 *first_port;
	u32 *adjacent;
	u32 max_ports;
	u64 *failed_at;
	u32 *failures_now;
	u8 *headers_in_row;
	struct sim_link_failure failures[SIM_MAX_FAILURES];
	struct sim_port *pulling;
	struct pkt_slab *slabs;
};

/* ---- packet.c ---- */

/** sim_pkts_free() - frees the slabs of all packets, at the end of a run */
void sim_pkts_free(struct sim_net *net);

/* ---- topology.c ---- */

/**
 * sim_topology_build() - make nodes and ports; -EINVAL or -ENOMEM with a sentence in @err
 */
int sim_topology_build(struct sim *sim, char *err, size_t errlen);
/** sim_port_between() - return the index of the port from @node to @peer, or SIM_NO_PORT */
u32 sim_port_between(const struct sim *sim, u32 node, u32 peer);

/* ---- routes.c ---- */

/**
 * sim_routes_build() - compute next hops over the links that are up; call it again when a
 * link changes
 */
int sim_routes_build(struct sim *sim);
void sim_routes_free(struct sim_net *net);
/* Maps the upper bits of @word to a number below @n. As @n is far below 2^32, the bias is
 * negligible. */
static inline u32 sim_spread(u32 word, u32 n)
{
	return (u32)((u64)word * n >> 32);
}

static inline u32 sim_flow_hash(const struct sim_pkt *pkt, u32 salt)
{
	u64 h = (u64)pkt->flow << 32 | (u32)pkt->src << 16 | pkt->dst;

	h = (h ^ salt) * 0x9e3779b97f4a7c15ull;
	h = (h ^ h >> 32) * 0xd6e8feb86659fd93ull;
	h = (h ^ h >> 32) * 0xd6e8feb86659fd93ull;
	return (u32)(h >> 32);
}

/**
 * sim_route() - return the port by which @pkt leaves switch @node; NULL: there is no way
 */
static inline struct sim_port *sim_route(struct sim *sim, u32 node,
					 const struct sim_pkt *pkt)
{
	const struct sim_net *net = sim->net;
	const u32 edge = net->host_edge[pkt->dst];
	const struct sim_group *group;
	u32 word;

	if (edge == node)
		return &sim->ports[net->host_down[pkt->dst]];
	group = &net->groups[net->next[(node - net->hosts) * net->edges + edge - net->hosts]];
	if (group->count <= 1)
		return group->count ? &sim->ports[net->members[group->first]] : NULL;
	if (sim->cfg.balance == SIM_SPRAY)
		word = (u32)(homa_prng_next(&sim->rng_net) >> 32);
	else
		word = sim_flow_hash(pkt, net->sw[node - net->hosts].salt);
	return &sim->ports[net->members[group->first + sim_spread(word, group->count)]];
}

/* ---- queue_*.c ---- */

int sim_rank_init(struct sim *sim, struct sim_port *port);
void sim_rank_free(struct sim_port *port);

static inline void sim_fifo_init(struct sim_fifo *fifo)
{
	fifo->head = NULL;
	fifo->tail = &fifo->head;
	fifo->bytes = 0;
	fifo->packets = 0;
}

static inline void sim_fifo_put(struct sim_fifo *fifo, struct sim_pkt *pkt)
{
	pkt->next = NULL;
	*fifo->tail = pkt;
	fifo->tail = &pkt->next;
	fifo->bytes += pkt->wire;
	fifo->packets++;
}

/* Takes the first packet out of a fifo that is not empty. */
static inline struct sim_pkt *sim_fifo_get(struct sim_fifo *fifo)
{
	struct sim_pkt *pkt = fifo->head;

	fifo->head = pkt->next;
	if (!fifo->head)
		fifo->tail = &fifo->head;
	fifo->bytes -= pkt->wire;
	fifo->packets--;
	return pkt;
}

/** sim_port_level() - return the highest level at which a packet waits; one must */
static inline u32 sim_port_level(const struct sim_port *port)
{
	return 31 - (u32)__builtin_clz(port->busy_levels);
}

/**
 * sim_port_room() - does the buffer have room for @bytes more? Both the port's own limit
 * and the shared buffer must allow them; a port may hold alpha / 256 times what is free of
 * the shared buffer. Links as Linux' HTB (burst_ps) count their packets without what only a
 * cable has.
 */
static inline bool sim_port_room(const struct sim *sim, const struct sim_port *port,
				 u32 bytes)
{
	const u64 shared = sim->cfg.shared_bytes;
	u64 used, uncounted = 0;

	if (sim->cfg.burst_ps)
		uncounted = (port->packets + 1ull) * SIM_UNCOUNTED;
	if (port->limit && port->bytes + bytes > port->limit + uncounted)
		return false;
	if (!shared)
		return true;
	used = sim->net->sw[port->node - sim->net->hosts].buffered;
	if (used + bytes > shared)
		return false;
	return port->bytes + bytes <= (shared - used) * sim->cfg.shared_alpha / 256;
}

#endif
