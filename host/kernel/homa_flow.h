/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Flows: what was found out about packets between two addresses on a device, and need not be
 * found out again for the next one. flow.c fills the table, prerouting.c looks into it.
 *
 * Written by: the owner of the CPU (homa_own.h) that the table belongs to; what takes a route
 * away from other CPUs does so by xchg().
 */
#ifndef HOMA_FLOW_H
#define HOMA_FLOW_H

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <net/dst.h>

#include "homa_kernel.h"

#define HOMAK_FLOW_BITS 7u
#define HOMAK_FLOW_SLOTS (1u << HOMAK_FLOW_BITS)
/* bit of homak_rx_flow.how for IPv6; indices of devices are lower */
#define HOMAK_FLOW_V6 (1ull << 31)

/*
 * struct homak_rx_flow - a slot of a CPU's table. It has no reference to a network device
 * but the one in @dst, which routing takes back (dst_dev_put()) when the device goes.
 */
struct homak_rx_flow {
	/* The addresses: of IPv4 both in the first word, of IPv6 two words each. */
	u64 ends[4];
	/* The mark of packets, HOMAK_FLOW_V6 and the device's index. */
	u64 how;
	/* The input route, with a reference; NULL: the slot is empty. The route is valid as
	 * long as dst_check() says so. */
	struct dst_entry *dst;
	/* The struct of the device, which lives until the namespace ends. It may have been
	 * given to another device, so homak_dev.dev is compared at each use. */
	struct homak_dev *hdev;
	/* A number that dst_check() needs with @dst. */
	u32 cookie;
};

/* struct homak_rx_flows - the flows that a CPU remembers for a namespace */
struct homak_rx_flows {
	/* The flows, each at the place that its hash says. */
	struct homak_rx_flow slot[HOMAK_FLOW_SLOTS];
};

static __always_inline u64 homak_flow_how(const struct sk_buff *skb)
{
	return (u64)skb->mark << 32 | (u32)skb->dev->ifindex;
}

/* Returns the slot for a flow whose addresses are mixed in @ends. */
static __always_inline struct homak_rx_flow *
homak_flow_slot(struct homak_rx_flows __percpu *flows, u64 ends, u64 how)
{
	u64 hash = (ends ^ ends >> 32 ^ how) * GOLDEN_RATIO_64;

	return &this_cpu_ptr(flows)->slot[hash >> (64 - HOMAK_FLOW_BITS)];
}

static __always_inline struct homak_rx_flow *
homak_flow_slot_v4(struct homak_rx_flows __percpu *flows,
		   const struct iphdr *ip, u64 how)
{
	return homak_flow_slot(flows, get_unaligned((const u64 *)&ip->saddr),
			       how);
}

/* Returns the slot for a flow; @ends receives both addresses. */
static __always_inline struct homak_rx_flow *
homak_flow_slot_v6(struct homak_rx_flows __percpu *flows, const u64 ends[4],
		   u64 how)
{
	return homak_flow_slot(flows,
			       ends[0] ^ ends[1] ^ ends[2] << 7 ^ ends[3], how);
}

/* Is @flow that of an IPv4 packet? */
static __always_inline bool homak_flow_is_v4(const struct homak_rx_flow *flow,
					     const struct iphdr *ip, u64 how)
{
	return !((flow->ends[0] ^ get_unaligned((const u64 *)&ip->saddr)) |
		 (flow->how ^ how));
}

static __always_inline bool homak_flow_is_v6(const struct homak_rx_flow *flow,
					     const u64 ends[4], u64 how)
{
	return !((flow->ends[0] ^ ends[0]) | (flow->ends[1] ^ ends[1]) |
		 (flow->ends[2] ^ ends[2]) | (flow->ends[3] ^ ends[3]) |
		 (flow->how ^ how));
}

#endif
