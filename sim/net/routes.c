// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Routing: the port by which a packet leaves a switch. Hosts hang on edge switches, so a
 * switch needs an entry for each edge switch and not for each host: a group of ports that
 * lead there in the fewest hops. Groups are found by a breadth-first search from every edge
 * switch over the links that are up; equal groups of a switch are stored once (a fat tree's
 * edge switch has one for everything above it).
 *
 * Among the ports of a group a packet takes a random one (spraying) or the one
 * that a hash of its flow and its ends chooses (ECMP), with another salt at
 * each switch, for otherwise all that reaches an aggregation switch by one
 * choice would make the same choice again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net_impl.h"

#define FAR UINT32_MAX
#define NO_GROUP 0 /* index of the group without ports */

/* Is this a link between switches that works? */
static bool port_leads(const struct sim *sim, const struct sim_port *port)
{
	return !port->down && port->peer >= sim->net->hosts;
}

/*
 * Computes the number of hops from each switch to edge switch @edge. Links fail both ways
 * together, so searching outward from the edge finds the ways toward it.
 */
static void routes_search(const struct sim *sim, u32 edge, u32 *hops, u32 *todo)
{
	const struct sim_net *net = sim->net;
	u32 head = 0, tail = 0, i;

	for (i = 0; i < net->switches; i++)
		hops[i] = FAR;
	hops[edge] = 0;
	todo[tail++] = edge;
	while (head < tail) {
		u32 s = todo[head++];
		u32 node = net->hosts + s;

		for (i = net->first_port[node]; i < net->first_port[node + 1]; i++) {
			u32 next;

			if (!port_leads(sim, &sim->ports[i]))
				continue;
			next = sim->ports[i].peer - net->hosts;
			if (hops[next] != FAR)
				continue;
			hops[next] = hops[s] + 1;
			todo[tail++] = next;
		}
	}
}

static int group_reserve(struct sim_net *net, u32 members)
{
	if (net->num_groups == net->max_groups) {
		u32 max = net->max_groups ? 2 * net->max_groups : 64;
		void *more = realloc(net->groups, max * sizeof(*net->groups));

		if (!more)
			return -ENOMEM;
		net->groups = more;
		net->max_groups = max;
	}
	if (net->num_members + members > net->max_members) {
		u32 max = 2 * (net->num_members + members);
		void *more = realloc(net->members, max * sizeof(*net->members));

		if (!more)
			return -ENOMEM;
		net->members = more;
		net->max_members = max;
	}
	return 0;
}

/* Returns the group with these members: one from number @from on, or a new one; 0 if there is no
 * memory. */
static u32 group_find(struct sim_net *net, u32 from, const u32 *members, u32 count)
{
	struct sim_group *group;
	u32 i;

	for (i = from; i < net->num_groups; i++) {
		group = &net->groups[i];
		if (group->count == count && !memcmp(&net->members[group->first], members,
						     count * sizeof(*members)))
			return i;
	}
	if (net->num_groups > UINT16_MAX || group_reserve(net, count))
		return NO_GROUP;
	group = &net->groups[net->num_groups];
	group->first = net->num_members;
	group->count = count;
	memcpy(&net->members[group->first], members, count * sizeof(*members));
	net->num_members += count;
	return net->num_groups++;
}

/* Finds the groups of switch @s for all edge switches and stores them in net->next. @hops:
 * number of hops, by [edge switch][switch]. */
static int routes_of_switch(struct sim *sim, u32 s, const u32 *hops, u32 *members)
{
	struct sim_net *net = sim->net;
	const u32 from = net->num_groups, node = net->hosts + s;
	u32 edge, i;

	for (edge = 0; edge < net->edges; edge++) {
		const u32 *to = &hops[edge * net->switches];
		u32 count = 0, group = NO_GROUP;

		for (i = net->first_port[node]; i < net->first_port[node + 1]; i++) {
			const struct sim_port *port = &sim->ports[i];

			if (to[s] != FAR && port_leads(sim, port) &&
			    to[port->peer - net->hosts] + 1 == to[s])
				members[count++] = i;
		}
		if (count) {
			group = group_find(net, from, members, count);
			if (group == NO_GROUP)
				return -ENOMEM;
		}
		net->next[s * net->edges + edge] = group;
	}
	return 0;
}

int sim_routes_build(struct sim *sim)
{
	struct sim_net *net = sim->net;
	u32 *hops = malloc((size_t)net->edges * net->switches * sizeof(*hops));
	u32 *scratch = malloc((sim->num_ports + net->switches) * sizeof(*scratch));
	u32 i;
	int res = -ENOMEM;

	if (!net->next)
		net->next = malloc((size_t)net->switches * net->edges * sizeof(*net->next));
	if (!hops || !scratch || !net->next || group_reserve(net, 0))
		goto out;
	net->num_members = 0;
	net->num_groups = 1;
	net->groups[NO_GROUP] = (struct sim_group){ 0, 0 };
	for (i = 0; i < net->edges; i++)
		routes_search(sim, i, &hops[i * net->switches], scratch);
	for (i = 0, res = 0; i < net->switches && !res; i++)
		res = routes_of_switch(sim, i, hops, scratch);
out:
	free(hops);
	free(scratch);
	return res;
}

void sim_routes_free(struct sim_net *net)
{
	free(net->next);
	free(net->groups);
	free(net->members);
}

/* ---- per packet ---- */

u32 sim_path(const struct sim *sim, u32 src, u32 dst, u32 *ps_per_byte, u64 *delay_ps)
{
	const struct sim_net *net = sim->net;
	const struct sim_port *port = sim->hosts[src].up;
	const u32 edge = net->host_edge[dst];
	u32 hops = 0;

	for (;;) {
		const struct sim_group *group;

		ps_per_byte[hops] = port->ps_per_byte;
		delay_ps[hops++] = port->delay_ps;
		if (port->level == SIM_HOST_DOWN || hops == 8)
			return hops;
		if (port->peer == edge) {
			port = sim->hosts[dst].down;
			continue;
		}
		group = &net->groups[net->next[(port->peer - net->hosts) * net->edges +
					       edge - net->hosts]];
		if (!group->count)
			return 0;
		port = &sim->ports[net->members[group->first]];
	}
}
