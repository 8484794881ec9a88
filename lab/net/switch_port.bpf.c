/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The classifier of one switch port: chooses the priority class of a packet
 * from the top three bits of its IPv4 TOS or IPv6 traffic class, drops it
 * when the port's buffer is full or by chance, and marks it when much is
 * queued (ECN).
 *
 * Linux limits a queue per class, but the ports of a real switch take memory
 * from one pool, whatever the class. Here the pool is the backlog of the
 * port's root qdisc (HTB counts all classes there), and its limit in bytes is
 * read from the device's tx_queue_len, which nothing else uses on these ports;
 * so the limit is set with "ip link set PORT txqueuelen BYTES". What else the
 * port does is written into the head of its .bss once, before traffic.
 *
 * Class ids are 1:10 for level 0 up to 1:17 for level 7 (hexadecimal), as
 * lab/net/switch.py makes them. What is not IP takes the highest level.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define KERNEL_TYPE __attribute__((preserve_access_index))
#define MILLION 1000000u

/* Only the members read here; their places are found at load time (CO-RE). */
struct gnet_stats_queue {
	__u32 backlog;
} KERNEL_TYPE;

struct Qdisc {
	struct gnet_stats_queue qstats;
} KERNEL_TYPE;

struct net_device {
	unsigned int tx_queue_len;
	struct Qdisc *qdisc;
} KERNEL_TYPE;

struct sk_buff {
	struct net_device *dev;
} KERNEL_TYPE;

/**
 * struct switch_port - what lab/net/switch.py writes and reads (PortMemory)
 * @peak: most bytes that were ever queued at this port; written here.
 * @marked: packets that were marked, written here.
 * @lost: packets dropped by chance, written here.
 * @ecn_bytes: with more queued a packet is marked, 0: never; written by the laboratory.
 * @loss_ppm: of a million packets so many are dropped; written by the laboratory.
 * @levels: priorities that the port has, 0: eight; written by the laboratory.
 */
struct switch_port {
	__u32 peak;
	__u32 marked;
	__u32 lost;
	__u32 ecn_bytes;
	__u32 loss_ppm;
	__u32 levels;
} memory;

static __always_inline __u32 priority_level(struct __sk_buff *skb)
{
	__u8 head[2];

	if (bpf_skb_load_bytes(skb, ETH_HLEN, head, sizeof(head)))
		return 7;
	if (skb->protocol == bpf_htons(ETH_P_IP))
		return head[1] >> 5;
	if (skb->protocol == bpf_htons(ETH_P_IPV6))
		return (head[0] >> 1) & 7;
	return 7;
}

SEC("tc")
int switch_port(struct __sk_buff *skb)
{
	/* The context of a classifier is the packet buffer itself. */
	struct sk_buff *packet = (void *)skb;
	struct net_device *dev = BPF_CORE_READ(packet, dev);
	__u32 before = BPF_CORE_READ(dev, qdisc, qstats.backlog);
	__u32 after = before + skb->len;
	__u32 level = priority_level(skb);

	/* The qdisc's lock is held here, so no count is lost. */
	if (memory.loss_ppm && bpf_get_prandom_u32() % MILLION < memory.loss_ppm) {
		memory.lost++;
		return TC_ACT_SHOT;
	}
	if (after > BPF_CORE_READ(dev, tx_queue_len))
		return TC_ACT_SHOT;
	if (after > memory.peak)
		memory.peak = after;
	/* Only a packet whose sender understands it is marked; the helper looks. */
	if (memory.ecn_bytes && before >= memory.ecn_bytes &&
	    bpf_skb_ecn_set_ce(skb))
		memory.marked++;
	if (memory.levels && level >= memory.levels)
		level = memory.levels - 1;
	skb->tc_classid = 0x10 + level; /* the major number is the filter's */
	return TC_ACT_OK;
}

/* BPF_CORE_READ needs a helper that the kernel keeps for GPL-compatible programs. */
char LICENSE[] SEC("license") = "Dual BSD/GPL";
