// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Whose packet is it? The "homa" queueing discipline sees all that leaves a device,
 * forwarded packets as well, so nothing but their headers tells: Homa in each of
 * its disguises, by the network's priority; pure acknowledgments of TCP, which
 * carry nothing that could be late and without which the other direction stops;
 * others.
 */
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/dsfield.h>
#include <net/ip.h>

#include "homa_qdisc_impl.h"

/*
 * struct homak_q_ip - fields of a packet's IP header
 * @proto: protocol behind it.
 * @prio: priority, the top three bits of TOS or traffic class.
 * @at: offset of the header that follows.
 */
struct homak_q_ip {
	u8 proto;
	u8 prio;
	int at;
};

/* Reads the IP header; false: there is none, or this is a later fragment. */
static bool homak_q_parse(struct sk_buff *skb, struct homak_q_ip *ip)
{
	int at = skb_network_offset(skb);

	if (skb_protocol(skb, true) == htons(ETH_P_IP)) {
		const struct iphdr *h;
		struct iphdr buf;

		h = skb_header_pointer(skb, at, sizeof(buf), &buf);
		if (!h || h->ihl < 5 || h->frag_off & htons(IP_OFFSET))
			return false;
		*ip = (struct homak_q_ip){ h->protocol, h->tos >> 5,
					   at + h->ihl * 4 };
		return true;
	}
	if (skb_protocol(skb, true) == htons(ETH_P_IPV6)) {
		const struct ipv6hdr *h;
		struct ipv6hdr buf;

		h = skb_header_pointer(skb, at, sizeof(buf), &buf);
		if (!h)
			return false;
		*ip = (struct homak_q_ip){ h->nexthdr, ipv6_get_dsfield(h) >> 5,
					   at + (int)sizeof(*h) };
		return true;
	}
	return false;
}

static enum homak_q_class homak_q_tcp(struct sk_buff *skb,
				      const struct homak_q_ip *ip)
{
	const struct tcphdr *th;
	struct tcphdr buf;

	th = skb_header_pointer(skb, ip->at, sizeof(buf), &buf);
	if (!th)
		return HOMAK_Q_OTHER;
	if (((const u8 *)th)[13] == HOMA_FLAGS &&
	    th->urg_ptr == htons(HOMA_URGENT))
		return HOMAK_Q_HOMA;
	if (th->ack && !th->syn && !th->fin && !th->rst &&
	    (int)skb->len <= ip->at + th->doff * 4)
		return HOMAK_Q_ACK;
	return HOMAK_Q_OTHER;
}

enum homak_q_class homak_q_classify(struct sk_buff *skb, u32 *prio)
{
	struct homak_q_ip ip;

	if (!homak_q_parse(skb, &ip))
		return HOMAK_Q_OTHER;
	*prio = ip.prio;
	if (ip.proto == HOMA_IPPROTO)
		return HOMAK_Q_HOMA;
	if (ip.proto == IPPROTO_TCP)
		return homak_q_tcp(skb, &ip);
	if (ip.proto == IPPROTO_UDP) {
		const struct udphdr *uh;
		struct udphdr buf;

		/* A program may bind a UDP socket of its own to the port. */
		if (skb->sk && sk_fullsock(skb->sk) &&
		    skb->sk->sk_protocol == IPPROTO_UDP)
			return HOMAK_Q_OTHER;
		uh = skb_header_pointer(skb, ip.at, sizeof(buf), &buf);
		if (uh && uh->source == htons(HOMA_UDP_PORT))
			return HOMAK_Q_HOMA;
	}
	return HOMAK_Q_OTHER;
}
