/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A lossy wire, as a traffic control classifier of a switch port: drops packets of TCP at
 * random and nothing else. A section for each rate that can be chosen, named by its tenths
 * of a percent. The qdisc netem would do this, but not every kernel has it.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define TCP 6
#define IPV4_PROTOCOL 9
#define IPV6_NEXT_HEADER 6

static __always_inline int lossy(struct __sk_buff *skb, __u32 per_mille)
{
	__u32 at = skb->protocol == bpf_htons(ETH_P_IP) ? IPV4_PROTOCOL :
							  IPV6_NEXT_HEADER;
	__u8 protocol = 0;

	if (skb->protocol != bpf_htons(ETH_P_IP) &&
	    skb->protocol != bpf_htons(ETH_P_IPV6))
		return TC_ACT_OK;
	if (bpf_skb_load_bytes(skb, ETH_HLEN + at, &protocol, 1) ||
	    protocol != TCP)
		return TC_ACT_OK;
	return bpf_get_prandom_u32() % 1000 < per_mille ? TC_ACT_SHOT : TC_ACT_OK;
}

#define RATE(per_mille)                              \
	SEC("tc/" #per_mille)                        \
	int lossy_##per_mille(struct __sk_buff *skb) \
	{                                            \
		return lossy(skb, per_mille);        \
	}

RATE(1)
RATE(2)
RATE(5)
RATE(10)
RATE(20)
RATE(50)

char _license[] SEC("license") = "Dual BSD/GPL";
