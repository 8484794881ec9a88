// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * To the device. IP's own way out is general: tunnels, transformations, filters
 * of cgroups, fragments, routing domains. A packet of ours to a neighbour of an
 * ordinary route needs none of it and knows already that it fits, so it gets its
 * header's last fields and its neighbour here, which takes half the instructions.
 * POST_ROUTING hooks see it on both ways; where there are hooks for local
 * packets, or anything else of the above, IP's own way is taken.
 */
#include <linux/bpf-cgroup.h>
#include <linux/netfilter.h>
#include <net/addrconf.h>
#include <net/arp.h>
#include <net/ip.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/ndisc.h>
#include <net/route.h>

#include "homa_dst.h"
#include "homa_transmit.h"

/* Has a hook changed the route into one that encrypts? */
static bool homak_out_transforms(const struct dst_entry *dst)
{
#ifdef CONFIG_XFRM
	return dst->xfrm;
#else
	return false;
#endif
}

/* Sends the packet after POST_ROUTING. */
static __always_inline int homak_out_next(struct net *net, struct sock *sk,
					  struct sk_buff *skb)
{
	struct dst_entry *dst = skb_dst(skb);
	struct neighbour *neigh;
	bool v6_gateway = false;

	if (unlikely(homak_out_transforms(dst))) {
		IPCB(skb)->flags |= IPSKB_REROUTED;
		return dst_output(net, sk, skb);
	}
	neigh = ip_neigh_for_gw(container_of(dst, struct rtable, dst), skb,
				&v6_gateway);
	if (IS_ERR(neigh)) {
		kfree_skb_reason(skb, SKB_DROP_REASON_NEIGH_CREATEFAIL);
		return (int)PTR_ERR(neigh);
	}
	return neigh_output(neigh, skb, v6_gateway);
}

/* Does the same, for the hooks of POST_ROUTING. */
static int homak_out_finish(struct net *net, struct sock *sk, struct sk_buff *skb)
{
	return homak_out_next(net, sk, skb);
}

static int homak_out_finish_v6(struct net *net, struct sock *sk,
			       struct sk_buff *skb)
{
	struct dst_entry *dst = skb_dst(skb);
	const struct in6_addr *hop;
	struct neighbour *neigh;

	if (unlikely(homak_out_transforms(dst))) {
		IP6CB(skb)->flags |= IP6SKB_REROUTED;
		return dst_output(net, sk, skb);
	}
	hop = rt6_nexthop(container_of(dst, struct rt6_info, dst),
			  &ipv6_hdr(skb)->daddr);
	neigh = ip_neigh_gw6(homak_dst_dev(dst), hop);
	if (IS_ERR(neigh)) {
		kfree_skb_reason(skb, SKB_DROP_REASON_NEIGH_CREATEFAIL);
		return (int)PTR_ERR(neigh);
	}
	return neigh_output(neigh, skb, false);
}

static bool homak_out_hooks(const struct net *net, bool v4)
{
#ifdef CONFIG_NETFILTER
	return v4 ? rcu_access_pointer(net->nf.hooks_ipv4[NF_INET_LOCAL_OUT]) :
		    rcu_access_pointer(net->nf.hooks_ipv6[NF_INET_LOCAL_OUT]);
#else
	return false;
#endif
}

/*
 * Shows the packet to the hooks of POST_ROUTING, as nf_hook() does, which clears what it tells them
 * before it is filled. Returns 1 if the packet goes on, or what @next has returned, or an error.
 * RCU read side.
 */
static __always_inline int
homak_out_post(u8 family, struct net *net, struct sock *sk, struct sk_buff *skb,
	       struct net_device *dev,
	       int (*next)(struct net *, struct sock *, struct sk_buff *))
{
#ifdef CONFIG_NETFILTER
	const struct nf_hook_entries *hooks =
		family == NFPROTO_IPV4 ?
			rcu_dereference(net->nf.hooks_ipv4[NF_INET_POST_ROUTING]) :
			rcu_dereference(net->nf.hooks_ipv6[NF_INET_POST_ROUTING]);
	struct nf_hook_state state HOMA_NOINIT;

	if (!hooks)
		return 1;
	nf_hook_state_init(&state, NF_INET_POST_ROUTING, family, NULL, dev, sk,
			   net, next);
	return nf_hook_slow(skb, &state, hooks, 0);
#else
	return 1;
#endif
}

/* Is there nothing but a neighbour between @skb and @dst's device, which is @dev? */
static __always_inline bool homak_out_plain(const struct net *net,
					    const struct dst_entry *dst,
					    const struct net_device *dev,
					    const struct sk_buff *skb, bool v4)
{
	if (READ_ONCE(dst->output) != (v4 ? ip_output : ip6_output) ||
	    dst->lwtstate || homak_out_hooks(net, v4) ||
	    (dev->priv_flags & (IFF_L3MDEV_MASTER | IFF_L3MDEV_SLAVE)))
		return false;
#ifdef CONFIG_CGROUP_BPF
	if (cgroup_bpf_enabled(CGROUP_INET_EGRESS))
		return false;
#endif
	return skb->len <= READ_ONCE(dev->mtu) || skb_is_gso(skb);
}

static int homak_out_v6(struct net *net, struct sock *sk, struct sk_buff *skb)
{
	struct dst_entry *dst = skb_dst(skb);
	struct net_device *dev = homak_dst_dev(dst);
	struct inet6_dev *idev = ip6_dst_idev(dst);
	struct ipv6hdr *ip = ipv6_hdr(skb);
	int err;

	if (unlikely(!homak_out_plain(net, dst, dev, skb, false) || !idev ||
		     READ_ONCE(idev->cnf.disable_ipv6) ||
		     ipv6_addr_is_multicast(&ip->daddr)))
		return ip6_local_out(net, sk, skb);
	ip->payload_len = htons((u16)(skb->len - sizeof(*ip)));
	IP6CB(skb)->nhoff = offsetof(struct ipv6hdr, nexthdr);
	skb->protocol = htons(ETH_P_IPV6);
	skb->dev = dev;
	homak_ip6_count_out(net, idev, skb->len);
	err = homak_out_post(NFPROTO_IPV6, net, sk, skb, dev,
			     homak_out_finish_v6);
	return err == 1 ? homak_out_finish_v6(net, sk, skb) : err;
}

HOMAK_HOT int homak_tx_out(struct net *net, struct sock *sk,
			   struct sk_buff *skb, bool v4)
{
	struct dst_entry *dst = skb_dst(skb);
	struct net_device *dev;
	int err;

	if (unlikely(!v4))
		return homak_out_v6(net, sk, skb);
	dev = homak_dst_dev(dst);
	if (unlikely(!homak_out_plain(net, dst, dev, skb, true)))
		return ip_local_out(net, sk, skb);
	skb->protocol = htons(ETH_P_IP);
	skb->dev = dev;
	homak_ip_count_out(net, skb->len);
	err = homak_out_post(NFPROTO_IPV4, net, sk, skb, dev, homak_out_finish);
	return err == 1 ? homak_out_next(net, sk, skb) : err;
}
