// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The device by which packets leave. VLANs, macvlans, bonds and bridges are devices above
 * others: what several of them send goes through one network card, so it is to be in one
 * queue, ordered and paced together (dev.c). Here is said which device that is. The answer
 * is looked for when a device is first used and when something changes, never for a packet.
 *
 * Downwards it goes as long as there is one way: from a VLAN, a macvlan and anything else
 * that has one device below it to that device; from a bond that uses one of its devices at
 * a time to the one in use. Bonds that spread packets choose for each, so they are the end.
 * So is a device in another network namespace, because that has an engine of its own; one
 * in a routing domain (VRF), because what is sent by a link is routed in its device's
 * domain; and one that is down.
 *
 * A bridge chooses by the receiver's address, which is not known here. Where all its ports
 * that lead to hardware lead to one card, that is taken: what it sends to machines behind
 * its other ports is paced by the card, too, which makes it slower and never harms others.
 */
#include <linux/netdevice.h>
#include <net/bonding.h>

#include "homa_kernel.h"

/* The most devices above each other, which is the kernel's limit, too. */
#define HOMAK_LOWER_DEPTH 8

/* Returns the only device directly below @dev; NULL: there is none, or there are several. */
static struct net_device *homak_lower_only(struct net_device *dev)
{
	struct list_head *iter = &dev->adj_list.lower;
	struct net_device *first = netdev_next_lower_dev_rcu(dev, &iter);

	return first && !netdev_next_lower_dev_rcu(dev, &iter) ? first : NULL;
}

/* Returns the device that a bond sends all packets to; NULL: there is none, or it spreads them. */
static struct net_device *homak_lower_active(struct net_device *dev)
{
	struct bonding *bond = netdev_priv(dev);

	return BOND_MODE(bond) == BOND_MODE_ACTIVEBACKUP ?
		       bond_option_active_slave_get_rcu(bond) :
		       NULL;
}

/* Returns the one device directly below @dev that all packets go to; NULL: there is none. */
static struct net_device *homak_lower_step(struct net_device *dev)
{
	struct net_device *to;

	if (netif_is_bridge_master(dev) || netif_is_l3_master(dev) ||
	    netif_is_l3_slave(dev))
		return NULL;
	if (IS_ENABLED(CONFIG_BONDING) && netif_is_bond_master(dev))
		to = homak_lower_active(dev);
	else
		to = homak_lower_only(dev);
	if (!to || !net_eq(dev_net(to), dev_net(dev)) || !netif_running(to) ||
	    netif_is_l3_slave(to))
		return NULL;
	return to;
}

/* Returns the last device on the way down from @dev, which may be @dev. */
static struct net_device *homak_lower_end(struct net_device *dev)
{
	struct net_device *to;
	int depth;

	for (depth = 0; depth < HOMAK_LOWER_DEPTH; depth++) {
		to = homak_lower_step(dev);
		if (!to)
			break;
		dev = to;
	}
	return dev;
}

/* Returns the card that the ports of @bridge lead to; if none leads to hardware, its only
 * port; else @bridge. */
static struct net_device *homak_lower_port(struct net_device *bridge)
{
	struct net_device *port, *end, *card = NULL;
	struct list_head *iter = &bridge->adj_list.lower;

	while ((port = netdev_next_lower_dev_rcu(bridge, &iter))) {
		end = homak_lower_end(port);
		if (!end->dev.parent || !netif_running(port))
			continue;
		if (card && card != end)
			return bridge;
		card = end;
	}
	if (card)
		return card;
	port = homak_lower_only(bridge);
	return port && netif_running(port) ? homak_lower_end(port) : bridge;
}

struct net_device *homak_lower(struct net_device *dev)
{
	struct net_device *end = homak_lower_end(dev);

	if (netif_is_bridge_master(end) && !netif_is_l3_slave(end))
		return homak_lower_port(end);
	return end;
}
