// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The early path. IP looks up in its routing tables, for each packet, that it is
 * for this host. TCP and UDP are spared that by their sockets; other protocols
 * cannot have it. So a netfilter hook before routing gives a Homa packet the
 * input route that the last packet between the same addresses on the same device
 * had, as long as routing says that it holds: every change of addresses, routes
 * or rules ends it, and the next packet is looked up and judged (reverse path
 * filter) anew.
 *
 * Where a packet with such a route would only walk on to us - no firewall on
 * the way in, no IPsec, no raw socket that wants a copy - it is taken at once.
 *
 * The hook is asked for other packets, too, which costs them some ten
 * instructions each; hence a switch, and none while the namespace has no Homa
 * socket. It comes last of its place: after NAT, connection tracking and rules.
 *
 * Each CPU has its own table, used with bottom halves off. A route found here
 * is borrowed for the RCU read side that the packet's whole way in runs in.
 */
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <net/ip.h>
#include <net/ip6_fib.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/raw.h>
#include <net/rawv6.h>
#include <net/xfrm.h>

#include "homa_net.h"
#include "homa_receive.h"

#define HOMAK_EARLY_BITS 5u
#define HOMAK_EARLY_SLOTS (1u << HOMAK_EARLY_BITS)

/* Addresses, then the device's index and the mark. */
struct homak_early_key {
	u64 w[5];
};

struct homak_early_slot {
	struct dst_entry *dst;
	u32 cookie;
	struct homak_early_key key;
};

struct homak_early {
	struct homak_early_slot slot[HOMAK_EARLY_SLOTS];
};

#ifdef CONFIG_NETFILTER

static void homak_early_key(struct homak_early_key *key, const struct sk_buff *skb)
{
	if (ip_hdr(skb)->version == 4) {
		key->w[0] = (__force u64)ip_hdr(skb)->saddr << 32 |
			    (__force u32)ip_hdr(skb)->daddr;
		key->w[1] = key->w[2] = key->w[3] = 0;
	} else {
		memcpy(&key->w[0], &ipv6_hdr(skb)->saddr, 16);
		memcpy(&key->w[2], &ipv6_hdr(skb)->daddr, 16);
	}
	key->w[4] = (u64)skb->mark << 32 | (u32)skb->dev->ifindex;
}

static bool homak_early_same(const struct homak_early_key *a,
			     const struct homak_early_key *b)
{
	return !((a->w[0] ^ b->w[0]) | (a->w[1] ^ b->w[1]) | (a->w[2] ^ b->w[2]) |
		 (a->w[3] ^ b->w[3]) | (a->w[4] ^ b->w[4]));
}

static struct homak_early_slot *homak_early_slot(struct homak_net *hnet,
						 const struct homak_early_key *key)
{
	struct homak_early __percpu *tables = READ_ONCE(hnet->early);
	const u64 *w = key->w;
	u64 hash;

	if (!tables)
		return NULL;
	hash = (w[0] ^ w[1] ^ (w[2] << 7) ^ w[3] ^ w[4]) * GOLDEN_RATIO_64;
	return &this_cpu_ptr(tables)->slot[hash >> (64 - HOMAK_EARLY_BITS)];
}

void homak_early_learn(struct homak_net *hnet, const struct sk_buff *skb)
{
	struct dst_entry *dst = skb_dst(skb);
	struct homak_early_slot *slot;
	struct dst_entry *old = NULL;
	struct homak_early_key key HOMA_NOINIT;

	if (!dst)
		return;
	homak_early_key(&key, skb);
	homak_own();
	slot = homak_early_slot(hnet, &key);
	if (!slot || (slot->dst == dst && homak_early_same(&slot->key, &key)) ||
	    !dst_hold_safe(dst))
		goto out;
	old = slot->dst;
	slot->dst = dst;
	slot->key = key;
	slot->cookie = 0;
	if (ip_hdr(skb)->version == 6)
		slot->cookie = rt6_get_cookie(container_of(dst, struct rt6_info,
							   dst));
out:
	homak_disown();
	if (unlikely(old))
		dst_release(old);
}

/* The input route for @skb, borrowed; NULL: IP must look. */
static struct dst_entry *homak_early_find(struct homak_net *hnet,
					  const struct sk_buff *skb)
{
	struct homak_early_slot *slot;
	struct dst_entry *dst = NULL;
	struct homak_early_key key HOMA_NOINIT;

	homak_early_key(&key, skb);
	homak_own();
	slot = homak_early_slot(hnet, &key);
	if (slot && slot->dst && homak_early_same(&slot->key, &key))
		dst = dst_check(slot->dst, slot->cookie);
	homak_disown();
	return dst;
}

/* Does nobody else look at what is delivered here? */
static bool homak_early_alone(const struct net *net,
			      const struct nf_hook_entries __rcu *input,
			      const struct raw_hashinfo *raw)
{
	return !rcu_access_pointer(input) &&
	       hlist_empty(&raw->ht[raw_hashfunc(net, HOMA_IPPROTO)]);
}

/* @skb, with its IP header of @len bytes and a route, has nothing before it but
 * the way to us. */
static unsigned int homak_early_take(struct homak_net *hnet, struct sk_buff *skb,
				     u32 len)
{
	__skb_pull(skb, len);
	skb_reset_transport_header(skb);
	homak_rx_skb(hnet, skb, 0);
	return NF_STOLEN;
}

static unsigned int homak_early_v4(void *priv, struct sk_buff *skb,
				   const struct nf_hook_state *state)
{
	const struct iphdr *ip = ip_hdr(skb);
	struct homak_net *hnet;
	struct dst_entry *dst;

	if (likely(ip->protocol != HOMA_IPPROTO))
		return NF_ACCEPT;
	if (ip->ihl != 5 || ip_is_fragment(ip) || skb_dst(skb) ||
	    skb->pkt_type != PACKET_HOST)
		return NF_ACCEPT;
	hnet = homak_net(state->net);
	dst = homak_early_find(hnet, skb);
	if (!dst)
		return NF_ACCEPT;
	skb_dst_set_noref(skb, dst);
	if (!homak_early_alone(state->net,
			       state->net->nf.hooks_ipv4[NF_INET_LOCAL_IN],
			       &raw_v4_hashinfo) ||
	    !xfrm4_policy_check(NULL, XFRM_POLICY_IN, skb))
		return NF_ACCEPT;
	__IP_INC_STATS(state->net, IPSTATS_MIB_INDELIVERS);
	return homak_early_take(hnet, skb, sizeof(*ip));
}

static unsigned int homak_early_v6(void *priv, struct sk_buff *skb,
				   const struct nf_hook_state *state)
{
	const struct ipv6hdr *ip = ipv6_hdr(skb);
	struct homak_net *hnet;
	struct dst_entry *dst;

	if (likely(ip->nexthdr != HOMA_IPPROTO))
		return NF_ACCEPT;
	if (skb_dst(skb) || skb->pkt_type != PACKET_HOST)
		return NF_ACCEPT;
	hnet = homak_net(state->net);
	dst = homak_early_find(hnet, skb);
	if (!dst)
		return NF_ACCEPT;
	skb_dst_set_noref(skb, dst);
	if (!homak_early_alone(state->net,
			       state->net->nf.hooks_ipv6[NF_INET_LOCAL_IN],
			       &raw_v6_hashinfo) ||
	    !xfrm6_policy_check(NULL, XFRM_POLICY_IN, skb))
		return NF_ACCEPT;
	__IP6_INC_STATS(state->net, __in6_dev_get(skb->dev),
			IPSTATS_MIB_INDELIVERS);
	return homak_early_take(hnet, skb, sizeof(*ip));
}

static const struct nf_hook_ops homak_early_hooks[] = {
	{
		.hook = homak_early_v4,
		.pf = NFPROTO_IPV4,
		.hooknum = NF_INET_PRE_ROUTING,
		.priority = NF_IP_PRI_LAST,
	}, {
		.hook = homak_early_v6,
		.pf = NFPROTO_IPV6,
		.hooknum = NF_INET_PRE_ROUTING,
		.priority = NF_IP6_PRI_LAST,
	},
};

int homak_early_on(struct homak_net *hnet)
{
	struct homak_early __percpu *tables = alloc_percpu_gfp(struct homak_early,
							       homak_net_gfp(hnet));
	int err;

	if (!tables)
		return -ENOMEM;
	WRITE_ONCE(hnet->early, tables);
	err = nf_register_net_hooks(hnet->net, homak_early_hooks,
				    ARRAY_SIZE(homak_early_hooks));
	if (err) {
		WRITE_ONCE(hnet->early, NULL);
		free_percpu(tables);
	}
	return err;
}

void homak_early_off(struct homak_net *hnet)
{
	struct homak_early __percpu *tables = hnet->early;
	u32 i;
	int c;

	nf_unregister_net_hooks(hnet->net, homak_early_hooks,
				ARRAY_SIZE(homak_early_hooks));
	WRITE_ONCE(hnet->early, NULL);
	synchronize_net();
	for_each_possible_cpu(c)
		for (i = 0; i < HOMAK_EARLY_SLOTS; i++)
			dst_release(per_cpu_ptr(tables, c)->slot[i].dst);
	free_percpu(tables);
}

#else

void homak_early_learn(struct homak_net *hnet, const struct sk_buff *skb)
{
}

int homak_early_on(struct homak_net *hnet)
{
	return -EOPNOTSUPP;
}

void homak_early_off(struct homak_net *hnet)
{
}

#endif
