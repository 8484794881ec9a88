/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Asking the kernel's routing table. The answer is the kernel's own, policy
 * routing and learned path MTUs included.
 *
 * Written by: the function that asks, into memory of its caller's.
 */
#ifndef HOMA_NIC_ROUTE_H
#define HOMA_NIC_ROUTE_H

#include "rtnl.h"

/**
 * struct nic_route_result - the kernel's answer
 * @ifindex: the index of the interface.
 * @local: true if the destination is an address of this host.
 * @via: true if the route names a gateway.
 * @hop: the next hop: the gateway, else the destination.
 * @src: the source address that the kernel would take; unspecified if there is none.
 * @mtu: the MTU in bytes of the route, or a path MTU that the kernel has learned; 0 if that of
 *	the device counts.
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
 * @oif: the index of the device to go through, 0 for any. With a device the kernel assumes the
 *	destination on the link when it has no route.
 * Returns 0, -ENETUNREACH, -EHOSTUNREACH, or another negative errno.
 */
int nic_route_get(struct nic_rtnl *rtnl, const struct homa_addr *dst, int oif,
		  struct nic_route_result *result);

#endif
