/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Which of a host's transmit queues a packet takes: all packets of a connection the same one (but
 * after a timeout TCP may choose another), as with a network card that has a queue for each core.
 * Class ids are 1:10 to 1:23 (hexadecimal), as lab/net/uplink.py makes them; their major number is
 * the filter's.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

#define QUEUES 20
#define FIRST 0x10

SEC("tc")
int uplink_queue(struct __sk_buff *skb)
{
	skb->tc_classid = FIRST + bpf_get_hash_recalc(skb) % QUEUES;
	return TC_ACT_OK;
}

char _license[] SEC("license") = "Dual BSD/GPL";
