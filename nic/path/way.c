// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* This asks the kernel for a way: first its routing table, then its table of neighbours. */
#include "way.h"

#include "netif.h"
#include "nic_backend.h"

/* Ask for the route. It must lead through the device, or our frames would contradict the routing
 * table. */
static void ask_route(struct nic_rtnl *rtnl, struct nic_way *way)
{
	int oif = nic_addr_link_local(&way->dst) ? way->ifindex : 0;

	way->error = nic_route_get(rtnl, &way->dst, oif, &way->route);
	way->other = !way->error && !way->route.local &&
		     way->route.ifindex != way->ifindex;
	/* If two interfaces are in one subnet, ours may do, too. */
	if (way->other)
		way->error = nic_route_get(rtnl, &way->dst, way->ifindex,
					   &way->route);
}

void nic_way_ask(struct nic_rtnl *rtnl, struct nic_way *way)
{
	way->asked_ms = nic_now_ms();
	ask_route(rtnl, way);
	if (!way->error && !way->route.local)
		way->neigh_error = nic_neigh_get(rtnl, way->ifindex,
						 &way->route.hop, &way->neigh);
}
