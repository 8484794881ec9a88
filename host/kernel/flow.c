// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The table of flows: for packets between two addresses on a device, the input route that
 * the last of them had, and the struct of the device. The route is used as long as routing
 * says that it holds (dst_check(), homa_dst.h). A change of addresses or routes ends it, and the
 * next packet is looked up and judged (reverse path filter) anew. So does a change of IPv4's rules;
 * that IPv6 says so when nothing but a rule has changed was not tested. prerouting.c says what
 * flows are for.
 *
 * Each CPU has its own table, used with bottom halves off. A route found here is borrowed for
 * the RCU read side that the packet's whole way in runs in. A flow has one place where it can
 * be, and the last that is learned has it: a stranger whose packets mean something to the
 * engine can push out others' flows, and a packet of theirs is then looked up by IP, which
 * is what happens without the table.
 */
#include <linux/slab.h>
#include <net/ip6_fib.h>
#include <net/ip6_route.h>

#include "homa_flow.h"
#include "homa_receive.h"

#ifdef CONFIG_NETFILTER

/* Finds the place of @skb's flow, and writes the key of that flow to @flow. */
static struct homak_rx_flow *homak_flow_of(struct homak_rx_flows __percpu *flows,
					   struct homak_rx_flow *flow,
					   const struct sk_buff *skb)
{
	flow->how = homak_flow_how(skb);
	memset(flow->ends, 0, sizeof(flow->ends));
	if (ip_hdr(skb)->version == 4) {
		memcpy(flow->ends, &ip_hdr(skb)->saddr, 8);
		return homak_flow_slot_v4(flows, ip_hdr(skb), flow->how);
	}
	flow->how |= HOMAK_FLOW_V6;
	memcpy(flow->ends, &ipv6_hdr(skb)->saddr, sizeof(flow->ends));
	flow->cookie =
		rt6_get_cookie(container_of(skb_dst(skb), struct rt6_info, dst));
	return homak_flow_slot_v6(flows, flow->ends, flow->how);
}

void homak_flow_learn(struct homak_net *hnet, struct homak_dev *hdev,
		      const struct sk_buff *skb)
{
	struct dst_entry *old = NULL, *dst = skb_dst(skb);
	struct homak_rx_flow flow = { .dst = dst, .hdev = hdev };
	struct homak_rx_flows __percpu *flows;
	struct homak_rx_flow *slot;

	if (!dst)
		return;
	homak_own();
	flows = READ_ONCE(hnet->flows);
	if (!flows)
		goto out;
	slot = homak_flow_of(flows, &flow, skb);
	if (!memcmp(slot, &flow, offsetofend(struct homak_rx_flow, cookie)) ||
	    !dst_hold_safe(dst))
		goto out;
	old = slot->dst;
	*slot = flow;
out:
	homak_disown();
	if (unlikely(old))
		dst_release(old);
}

int homak_flows_make(struct homak_net *hnet)
{
	struct homak_rx_flows __percpu *flows =
		alloc_percpu_gfp(struct homak_rx_flows, homak_net_gfp(hnet));

	if (!flows)
		return -ENOMEM;
	WRITE_ONCE(hnet->flows, flows);
	return 0;
}

void homak_flows_free(struct homak_net *hnet)
{
	struct homak_rx_flows __percpu *flows = hnet->flows;
	u32 i;
	int c;

	WRITE_ONCE(hnet->flows, NULL);
	synchronize_net();
	for_each_possible_cpu(c)
		for (i = 0; i < HOMAK_FLOW_SLOTS; i++)
			dst_release(per_cpu_ptr(flows, c)->slot[i].dst);
	free_percpu(flows);
}

#else

void homak_flow_learn(struct homak_net *hnet, struct homak_dev *hdev,
		      const struct sk_buff *skb)
{
}

#endif
