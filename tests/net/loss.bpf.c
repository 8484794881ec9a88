/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A lossy wire, as a traffic control classifier: drops packets of IP protocol
 * 146 and of UDP at random, and nothing else, so that neighbour discovery and
 * ICMP work. LOSS_PERCENT is set when it is compiled.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#ifndef LOSS_PERCENT
#define LOSS_PERCENT 5
#endif
#define PROTO_UDP 17
#define PROTO_HOMA 146
#define IPV4_PROTOCOL 9
#define IPV6_NEXT_HEADER 6

SEC("tc")
int lossy(struct __sk_buff *skb)
{
	__u32 at = skb->protocol == bpf_htons(ETH_P_IP) ? IPV4_PROTOCOL :
							  IPV6_NEXT_HEADER;
	__u8 protocol = 0;

	if (skb->protocol != bpf_htons(ETH_P_IP) &&
	    skb->protocol != bpf_htons(ETH_P_IPV6))
		return TC_ACT_OK;
	if (bpf_skb_load_bytes(skb, ETH_HLEN + at, &protocol, 1))
		return TC_ACT_OK;
	if (protocol != PROTO_UDP && protocol != PROTO_HOMA)
		return TC_ACT_OK;
	return bpf_get_prandom_u32() % 100 < LOSS_PERCENT ? TC_ACT_SHOT :
							    TC_ACT_OK;
}

char _license[] SEC("license") = "Dual BSD/GPL";
