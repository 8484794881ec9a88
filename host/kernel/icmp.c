// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * ICMP errors about packets we sent. The error quotes our packet; the RPC it
 * was for is named by the id in it, which nobody can guess, and the engine
 * believes nothing else. An error that quotes too little to know the id does not
 * get there: timeouts do the work then. All is scoped to the namespace that the
 * error arrived in.
 */
#include <linux/icmp.h>
#include <linux/icmpv6.h>
#include <net/icmp.h>
#include <net/ip.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/route.h>

#include "homa_receive.h"

int homak_icmp_errno_v4(u8 type, u8 code)
{
	if (type != ICMP_DEST_UNREACH || code > NR_ICMP_UNREACH)
		return 0;
	switch (code) {
	case ICMP_PROT_UNREACH:
		return EPROTONOSUPPORT;
	case ICMP_PORT_UNREACH:
		return ENOTCONN;
	case ICMP_FRAG_NEEDED:
		return EMSGSIZE;
	}
	return EHOSTUNREACH;
}

int homak_icmp_errno_v6(u8 type, u8 code)
{
	switch (type) {
	case ICMPV6_DEST_UNREACH:
		return code == ICMPV6_PORT_UNREACH ? ENOTCONN : EHOSTUNREACH;
	case ICMPV6_PKT_TOOBIG:
		return EMSGSIZE;
	case ICMPV6_PARAMPROB:
		return code == ICMPV6_UNK_NEXTHDR ? EPROTONOSUPPORT : 0;
	}
	return 0;
}

bool homak_icmp_quoted(struct homak_net *hnet, struct sk_buff *skb, int at,
		       const struct homa_addr *peer, int err, u32 mtu)
{
	const struct homa_wire_common *hdr;
	struct homa_wire_common buf;
	struct homak_cpu *cpu;
	u16 sport, dport;
	bool ours = false;
	u64 id;

	/* Routers of old do not say how much would not be too long. */
	if (!err || at < 0 || (err == EMSGSIZE && !mtu))
		return false;
	hdr = skb_header_pointer(skb, at, HOMA_COMMON_HDR, &buf);
	if (!hdr)
		return false;
	sport = homa_get_be16(&hdr->sport);
	dport = homa_get_be16(&hdr->dport);
	id = homa_get_be64(&hdr->sender_id);
	cpu = homak_enter(hnet);
	if (!cpu)
		return false;
	if (err == EMSGSIZE)
		ours = homa_icmp_mtu(&cpu->ctx, peer, sport, dport, id, mtu);
	else
		homa_icmp(&cpu->ctx, peer, sport, dport, id, err);
	homak_leave(cpu);
	return ours;
}

/* Handles an ICMP error. skb->data is at the quoted IP header; IP has checked that it is
 * all there and 8 bytes more. */
int homak_icmp_err_v4(struct sk_buff *skb, u32 info)
{
	const struct iphdr *ip = (const struct iphdr *)skb->data;
	u8 type = icmp_hdr(skb)->type, code = icmp_hdr(skb)->code;
	struct net *net = dev_net(skb->dev);
	struct homa_addr peer;
	int err;

	if (type == ICMP_REDIRECT) {
		ipv4_redirect(skb, net, 0, HOMA_IPPROTO);
		return 0;
	}
	err = homak_icmp_errno_v4(type, code);
	homak_addr_v4(&peer, ip->daddr, 0);
	if (homak_icmp_quoted(homak_net(net), skb, ip->ihl * 4, &peer, err, info))
		ipv4_update_pmtu(skb, net, info, 0, HOMA_IPPROTO);
	return 0;
}

int homak_icmp_err_v6(struct sk_buff *skb, struct inet6_skb_parm *opt, u8 type,
		      u8 code, int offset, __be32 info)
{
	const struct ipv6hdr *ip = (const struct ipv6hdr *)skb->data;
	struct net *net = dev_net(skb->dev);
	struct homa_addr peer;
	int err;

	if (type == NDISC_REDIRECT) {
		ip6_redirect(skb, net, skb->dev->ifindex, 0,
			     sock_net_uid(net, NULL));
		return 0;
	}
	err = homak_icmp_errno_v6(type, code);
	homak_addr_v6_at(&peer, &ip->daddr, 0, skb->dev->ifindex);
	if (homak_icmp_quoted(homak_net(net), skb, offset, &peer, err,
			      ntohl(info)))
		ip6_update_pmtu(skb, net, info, 0, 0, sock_net_uid(net, NULL));
	return 0;
}
