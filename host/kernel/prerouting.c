// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The early path. IP looks up in its routing tables, for each packet, that it is
 * for this host. TCP and UDP are spared that by their sockets; other protocols
 * cannot have it. So a netfilter hook before routing gives a Homa packet the
 * input route of its flow, if that is remembered (flow.c).
 *
 * Where a packet with such a route would only walk on to us - no firewall on
 * the way in, no IPsec, no raw socket that wants a copy - it is taken at once.
 *
 * The hook is asked for other packets, too, which costs them some ten
 * instructions each; hence a switch, and none while the namespace has no Homa
 * socket. It comes last of its place: after NAT, connection tracking and rules.
 */
#include <linux/netfilter.h>
#include <linux/netfilter_bridge.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <net/addrconf.h>
#include <net/ip.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/raw.h>
#include <net/rawv6.h>
#include <net/xfrm.h>

#include "homa_dst.h"
#include "homa_flow.h"
#include "homa_net.h"
#include "homa_receive.h"

#ifdef CONFIG_NETFILTER

/* Does no other code look at packets that are delivered here? */
static bool homak_prerouting_alone(const struct net *net,
				   struct nf_hook_entries __rcu *const *input,
				   const struct raw_hashinfo *raw)
{
	return !rcu_access_pointer(*input) &&
	       hlist_empty(&raw->ht[raw_hashfunc(net, HOMA_IPPROTO)]);
}

/* Does br_netfilter show us the packet, before a bridge has decided about it? */
static __always_inline bool homak_prerouting_bridged(const struct sk_buff *skb)
{
#if IS_ENABLED(CONFIG_BRIDGE_NETFILTER)
	return nf_bridge_info_exists(skb);
#else
	return false;
#endif
}

/*
 * Is this the way from a device to IP? Flows are of this CPU as long as bottom halves are off. A
 * packet that a firewall handed to a program (NFQUEUE) comes back in the task that brings the
 * program's verdict, with bottom halves on, and goes on by IP, which turns them off. br_netfilter
 * shows us packets that a bridge has not decided about: it may drop them, or they are for another
 * Ethernet address, which does not show here. What it lets pass to IP does not come here again.
 */
static __always_inline bool homak_prerouting_owns(const struct sk_buff *skb)
{
	return softirq_count() && !homak_prerouting_bridged(skb);
}

/* Does the route of a flow of the namespace @net still hold? What IPv4 has made for packets to us
 * is known by its function. */
static __always_inline bool homak_prerouting_holds(const struct net *net,
						   struct dst_entry *dst,
						   u32 cookie, bool v4)
{
	if (likely(v4 && READ_ONCE(dst->input) == ip_local_deliver))
		return homak_dst_holds_v4(net, dst);
	return dst_check(dst, cookie);
}

/* Gives @skb the route of @flow, which is the one of its addresses, if that still holds; returns
 * the struct of its device, or NULL. */
static __always_inline struct homak_dev *
homak_prerouting_route(const struct net *net, struct homak_rx_flow *flow,
		       struct sk_buff *skb, bool v4)
{
	struct dst_entry *dst = flow->dst;

	if (unlikely(!dst || rcu_access_pointer(flow->hdev->dev) != skb->dev))
		return NULL;
	if (unlikely(!homak_prerouting_holds(net, dst, flow->cookie, v4)))
		return NULL;
	skb_dst_set_noref(skb, dst);
	return flow->hdev;
}

static __always_inline struct homak_dev *
homak_prerouting_find_v4(const struct net *net,
			 struct homak_rx_flows __percpu *flows,
			 struct sk_buff *skb)
{
	const struct iphdr *ip = ip_hdr(skb);
	u64 how = homak_flow_how(skb);
	struct homak_dev *hdev = NULL;
	struct homak_rx_flow *flow;

	homak_own();
	flow = homak_flow_slot_v4(flows, ip, how);
	if (likely(homak_flow_is_v4(flow, ip, how)))
		hdev = homak_prerouting_route(net, flow, skb, true);
	homak_disown();
	return hdev;
}

static __always_inline struct homak_dev *
homak_prerouting_find_v6(const struct net *net,
			 struct homak_rx_flows __percpu *flows,
			 struct sk_buff *skb)
{
	u64 how = homak_flow_how(skb) | HOMAK_FLOW_V6;
	struct homak_dev *hdev = NULL;
	struct homak_rx_flow *flow;
	u64 ends[4] HOMA_NOINIT;

	memcpy(ends, &ipv6_hdr(skb)->saddr, sizeof(ends));
	homak_own();
	flow = homak_flow_slot_v6(flows, ends, how);
	if (likely(homak_flow_is_v6(flow, ends, how)))
		hdev = homak_prerouting_route(net, flow, skb, false);
	homak_disown();
	return hdev;
}

/* Takes @skb, with an IP header of @len bytes and a route, unless something else has to see
 * it on the way to us. */
static __always_inline unsigned int
homak_prerouting_take(struct homak_net *hnet, struct sk_buff *skb,
		      struct homak_dev *hdev, u32 len)
{
	__skb_pull(skb, len);
	skb_reset_transport_header(skb);
	homak_rx_routed(hnet, skb, 0, hdev, false);
	return NF_STOLEN;
}

static unsigned int homak_prerouting_v4(void *priv, struct sk_buff *skb,
					const struct nf_hook_state *state)
{
	const struct iphdr *ip = ip_hdr(skb);
	struct homak_rx_flows __percpu *flows;
	struct homak_net *hnet = priv;
	struct homak_dev *hdev;

	if (likely(ip->protocol != HOMA_IPPROTO))
		return NF_ACCEPT;
	if (ip->ihl != 5 || ip_is_fragment(ip) || skb_dst(skb) ||
	    skb->pkt_type != PACKET_HOST || !homak_prerouting_owns(skb))
		return NF_ACCEPT;
	flows = READ_ONCE(hnet->flows);
	hdev = likely(flows) ? homak_prerouting_find_v4(state->net, flows, skb) :
			       NULL;
	if (!hdev)
		return NF_ACCEPT;
	if (!homak_prerouting_alone(state->net,
				    &state->net->nf.hooks_ipv4[NF_INET_LOCAL_IN],
				    &raw_v4_hashinfo) ||
	    !xfrm4_policy_check(NULL, XFRM_POLICY_IN, skb))
		return NF_ACCEPT;
	__IP_INC_STATS(state->net, IPSTATS_MIB_INDELIVERS);
	return homak_prerouting_take(hnet, skb, hdev, sizeof(*ip));
}

static unsigned int homak_prerouting_v6(void *priv, struct sk_buff *skb,
					const struct nf_hook_state *state)
{
	const struct ipv6hdr *ip = ipv6_hdr(skb);
	struct homak_rx_flows __percpu *flows;
	struct homak_net *hnet = priv;
	struct homak_dev *hdev;

	if (likely(ip->nexthdr != HOMA_IPPROTO))
		return NF_ACCEPT;
	if (skb_dst(skb) || skb->pkt_type != PACKET_HOST ||
	    !homak_prerouting_owns(skb))
		return NF_ACCEPT;
	flows = READ_ONCE(hnet->flows);
	hdev = likely(flows) ? homak_prerouting_find_v6(state->net, flows, skb) :
			       NULL;
	if (!hdev)
		return NF_ACCEPT;
	if (!homak_prerouting_alone(state->net,
				    &state->net->nf.hooks_ipv6[NF_INET_LOCAL_IN],
				    &raw_v6_hashinfo) ||
	    !xfrm6_policy_check(NULL, XFRM_POLICY_IN, skb))
		return NF_ACCEPT;
	__IP6_INC_STATS(state->net, __in6_dev_get(skb->dev),
			IPSTATS_MIB_INDELIVERS);
	return homak_prerouting_take(hnet, skb, hdev, sizeof(*ip));
}

static const struct nf_hook_ops homak_prerouting_hooks[] = {
	{
		.hook = homak_prerouting_v4,
		.pf = NFPROTO_IPV4,
		.hooknum = NF_INET_PRE_ROUTING,
		.priority = NF_IP_PRI_LAST,
	},
	{
		.hook = homak_prerouting_v6,
		.pf = NFPROTO_IPV6,
		.hooknum = NF_INET_PRE_ROUTING,
		.priority = NF_IP6_PRI_LAST,
	},
};

int homak_prerouting_on(struct homak_net *hnet)
{
	int err = homak_flows_make(hnet);
	u32 i;

	BUILD_BUG_ON(ARRAY_SIZE(hnet->early) !=
		     ARRAY_SIZE(homak_prerouting_hooks));
	if (err)
		return err;
	for (i = 0; i < ARRAY_SIZE(hnet->early); i++) {
		hnet->early[i] = homak_prerouting_hooks[i];
		hnet->early[i].priv = hnet;
	}
	err = nf_register_net_hooks(hnet->net, hnet->early,
				    ARRAY_SIZE(hnet->early));
	if (err)
		homak_flows_free(hnet);
	return err;
}

void homak_prerouting_off(struct homak_net *hnet)
{
	nf_unregister_net_hooks(hnet->net, hnet->early, ARRAY_SIZE(hnet->early));
	homak_flows_free(hnet);
}

#else

int homak_prerouting_on(struct homak_net *hnet)
{
	return -EOPNOTSUPP;
}

void homak_prerouting_off(struct homak_net *hnet)
{
}

#endif
