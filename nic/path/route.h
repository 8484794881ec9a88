/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Asking the kernel's routing table. The answer is the kernel's own, policy
 * routing and learned path MTUs included.
 */
#ifndef HOMA_NIC_ROUTE_H
#define HOMA_NIC_ROUTE_H

#include "rtnl.h"

/**
 * struct nic_route_result - the kernel's answer
 * @ifindex: device.
 * @local: one of this host's own addresses.
 * @via: a gateway was named.
 * @hop: next hop: the gateway, else the destination.
 * @src: source address that the kernel would take; unspecified if none.
 * @mtu: MTU from the route or a learned path MTU, bytes; 0: the device's.
 */
struct nic_route_result {
	int ifindex;
	bool local;
	bool via;
	struct homa_addr hop;
	struct homa_addr src;
	u32 mtu;
};

/**
 * nic_route_get() - look @dst up
 * @oif: device to go through, 0 for any. With a device the kernel assumes the
 *	destination on the link when it has no route.
 * Returns 0, -ENETUNREACH, -EHOSTUNREACH, or another negative errno.
 */
int nic_route_get(struct nic_rtnl *rtnl, const struct homa_addr *dst, int oif,
		  struct nic_route_result *result);

#endif
