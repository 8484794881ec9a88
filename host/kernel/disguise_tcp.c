// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Homa disguised as TCP, received: packets of IP protocol 6 whose flags are SYN
 * and RST, which TCP never sends, and whose urgent pointer is our mark. A
 * netfilter hook on what IP delivers to this host takes them, after every rule
 * of the host's firewall has had its say. It does not depend on GRO (TCP's
 * leaves packets with such flags alone), nor on there being a TCP socket.
 *
 * ICMP errors about disguised packets are read here too: TCP, to which the
 * kernel gives them, knows of no such connection. This comes before the kernel
 * looks at their checksums, so the hook does.
 */
#include <linux/icmp.h>
#include <linux/icmpv6.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/tcp.h>
#include <net/ip.h>
#include <net/ipv6.h>

#include "homa_receive.h"

#ifdef CONFIG_NETFILTER

#define HOMAK_TCP_HDR 20

/* Is there a header of a disguised packet at @at? */
static bool homak_disguise_marked(const struct sk_buff *skb, int at)
{
	const struct homa_wire_common *hdr;
	u8 buf[HOMAK_TCP_HDR];

	hdr = skb_header_pointer(skb, at, sizeof(buf), buf);
	return hdr && hdr->flags == HOMA_FLAGS &&
	       homa_get_be16(&hdr->urgent) == HOMA_URGENT;
}

static unsigned int homak_disguise_take(struct sk_buff *skb, struct net *net,
					int at)
{
	__skb_pull(skb, at);
	skb_reset_transport_header(skb);
	homak_rx_skb(homak_net(net), skb, HOMAK_DISGUISE_TCP, false);
	return NF_STOLEN;
}

/* Handles an ICMP message at @at, which is only read. */
static void homak_tcp_icmp_v4(struct sk_buff *skb, struct net *net, int at)
{
	struct {
		/* The ICMP header. */
		struct icmphdr icmp;
		/* The IP header of the packet that it quotes. */
		struct iphdr ip;
	} buf, *q;
	struct homa_addr peer;
	int quoted;

	q = skb_header_pointer(skb, at, sizeof(buf), &buf);
	if (!q || q->icmp.type != ICMP_DEST_UNREACH || q->ip.version != 4 ||
	    q->ip.ihl < 5 || q->ip.protocol != IPPROTO_TCP)
		return;
	quoted = at + sizeof(q->icmp) + q->ip.ihl * 4;
	if (!homak_disguise_marked(skb, quoted) ||
	    nf_ip_checksum(skb, NF_INET_LOCAL_IN, at, IPPROTO_ICMP))
		return;
	homak_addr_v4(&peer, q->ip.daddr, HOMAK_DISGUISE_TCP);
	homak_icmp_quoted(homak_net(net), skb, quoted, &peer,
			  homak_icmp_errno_v4(q->icmp.type, q->icmp.code),
			  ntohs(q->icmp.un.frag.mtu));
}

static void homak_tcp_icmp_v6(struct sk_buff *skb, struct net *net, int at)
{
	struct {
		/* The ICMP header. */
		struct icmp6hdr icmp;
		/* The IP header of the packet that it quotes. */
		struct ipv6hdr ip;
	} buf, *q;
	struct homa_addr peer;
	int err, quoted;

	q = skb_header_pointer(skb, at, sizeof(buf), &buf);
	if (!q || q->ip.version != 6 || q->ip.nexthdr != IPPROTO_TCP)
		return;
	err = homak_icmp_errno_v6(q->icmp.icmp6_type, q->icmp.icmp6_code);
	quoted = at + sizeof(*q);
	if (!err || !homak_disguise_marked(skb, quoted) ||
	    nf_ip6_checksum(skb, NF_INET_LOCAL_IN, at, IPPROTO_ICMPV6))
		return;
	homak_addr_v6_at(&peer, &q->ip.daddr, HOMAK_DISGUISE_TCP,
			 skb->dev->ifindex);
	homak_icmp_quoted(homak_net(net), skb, quoted, &peer, err,
			  ntohl(q->icmp.icmp6_mtu));
}

static unsigned int homak_tcp_hook_v4(void *priv, struct sk_buff *skb,
				      const struct nf_hook_state *state)
{
	const struct iphdr *ip = ip_hdr(skb);
	int at = ip->ihl * 4;

	if (ip->protocol == IPPROTO_TCP) {
		if (unlikely(homak_disguise_marked(skb, at)))
			return homak_disguise_take(skb, state->net, at);
	} else if (ip->protocol == IPPROTO_ICMP) {
		homak_tcp_icmp_v4(skb, state->net, at);
	}
	return NF_ACCEPT;
}

static unsigned int homak_tcp_hook_v6(void *priv, struct sk_buff *skb,
				      const struct nf_hook_state *state)
{
	const struct ipv6hdr *ip = ipv6_hdr(skb);
	int at = sizeof(*ip);

	if (ip->nexthdr == IPPROTO_TCP) {
		if (unlikely(homak_disguise_marked(skb, at)))
			return homak_disguise_take(skb, state->net, at);
	} else if (ip->nexthdr == IPPROTO_ICMPV6) {
		homak_tcp_icmp_v6(skb, state->net, at);
	}
	return NF_ACCEPT;
}

static const struct nf_hook_ops homak_disguise_hooks[] = {
	{
		.hook = homak_tcp_hook_v4,
		.pf = NFPROTO_IPV4,
		.hooknum = NF_INET_LOCAL_IN,
		.priority = NF_IP_PRI_LAST,
	},
	{
		.hook = homak_tcp_hook_v6,
		.pf = NFPROTO_IPV6,
		.hooknum = NF_INET_LOCAL_IN,
		.priority = NF_IP6_PRI_LAST,
	},
};

int homak_disguise_on(struct net *net)
{
	return nf_register_net_hooks(net, homak_disguise_hooks,
				     ARRAY_SIZE(homak_disguise_hooks));
}

void homak_disguise_off(struct net *net)
{
	nf_unregister_net_hooks(net, homak_disguise_hooks,
				ARRAY_SIZE(homak_disguise_hooks));
}

#else

int homak_disguise_on(struct net *net)
{
	return -EOPNOTSUPP;
}

void homak_disguise_off(struct net *net)
{
}

#endif
