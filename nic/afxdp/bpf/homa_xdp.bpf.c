// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Takes Homa packets (IP protocol 146) that are addressed to this host, and TCP
 * segments to the ports that homad serves, out of the receive path and into the
 * AF_XDP socket of their queue. Everything else goes on to the kernel: other
 * protocols and ports, fragments (the kernel reassembles), packets that are only
 * passing through, and queues nobody has bound.
 *
 * Ports belong to a queue, as its socket does: what a process that was killed had
 * set does nothing without the socket, and whoever has the queue next clears it.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "homa_xdp.h"

#define IPPROTO_HOMA 146
#define IPPROTO_TCP 6
#define IP_MF_OFFSET 0x3fff

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, HOMA_XDP_QUEUES);
	__type(key, __u32);
	__type(value, __u32);
} homa_xsks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct homa_xdp_addrs);
} homa_addrs SEC(".maps");

/* The bits of the TCP ports whose segments are taken on one queue. */
struct homa_xdp_ports {
	/* Bit port % 64 of word port / 64 is 1 if segments to that port are taken. Written by:
	 * any thread of the loader's process, one bit at a time; read by: the program. */
	__u64 word[HOMA_XDP_PORT_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, HOMA_XDP_QUEUES);
	__type(key, __u32);
	__type(value, struct homa_xdp_ports);
} homa_ports SEC(".maps");

/* Is the segment, whose TCP header is at @l4, to a port that is taken? */
static __always_inline int port_taken(__u32 queue, const void *l4, const void *end)
{
	const struct homa_xdp_ports *ports;
	const __be16 *dport = (const __be16 *)l4 + 1;
	__u32 port;

	if ((const void *)(dport + 1) > end)
		return 0;
	ports = bpf_map_lookup_elem(&homa_ports, &queue);
	if (!ports)
		return 0;
	port = bpf_ntohs(*dport);
	return ports->word[(port >> 6) & (HOMA_XDP_PORT_WORDS - 1)] >>
		       (port & 63) &
	       1;
}

/* May the packet be for us? @plain is true if no IP options lie before @l4. With options the
 * offset of the port is not constant, which the kernel allows to root alone, so such segments go
 * on to the kernel. */
static __always_inline int wanted(__u8 proto, __u32 queue, int plain,
				  const void *l4, const void *end)
{
	return proto == IPPROTO_HOMA ||
	       (proto == IPPROTO_TCP && plain && port_taken(queue, l4, end));
}

/* Is a packet to an address that is not in the map ours? If there are too many addresses for the
 * map, a Homa packet is, as nobody else wants it; a TCP segment may be on its way elsewhere. */
static __always_inline int unknown_ours(const struct homa_xdp_addrs *addrs,
					__u8 proto)
{
	return addrs->any && proto == IPPROTO_HOMA;
}

static __always_inline int ours_v4(const struct homa_xdp_addrs *addrs,
				   __u8 proto, __u32 dst)
{
#pragma unroll
	for (__u32 i = 0; i < HOMA_XDP_ADDRS; i++) {
		if (i >= addrs->n4)
			break;
		if (addrs->v4[i] == dst)
			return 1;
	}
	return unknown_ours(addrs, proto);
}

static __always_inline int ours_v6(const struct homa_xdp_addrs *addrs,
				   __u8 proto, const struct in6_addr *dst)
{
	__u64 a, b;

	__builtin_memcpy(&a, &dst->in6_u.u6_addr8[0], 8);
	__builtin_memcpy(&b, &dst->in6_u.u6_addr8[8], 8);
#pragma unroll
	for (__u32 i = 0; i < HOMA_XDP_ADDRS; i++) {
		if (i >= addrs->n6)
			break;
		if (addrs->v6[i][0] == a && addrs->v6[i][1] == b)
			return 1;
	}
	return unknown_ours(addrs, proto);
}

SEC("xdp.frags")
int homa_xdp(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	const struct homa_xdp_addrs *addrs;
	struct ethhdr *eth = data;
	__u32 zero = 0, queue = ctx->rx_queue_index;

	if ((void *)(eth + 1) > end)
		return XDP_PASS;
	if (eth->h_proto == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = (void *)(eth + 1);

		if ((void *)(ip + 1) > end ||
		    ip->frag_off & bpf_htons(IP_MF_OFFSET) ||
		    !wanted(ip->protocol, queue, ip->ihl == 5, ip + 1, end))
			return XDP_PASS;
		addrs = bpf_map_lookup_elem(&homa_addrs, &zero);
		if (!addrs || !ours_v4(addrs, ip->protocol, ip->daddr))
			return XDP_PASS;
	} else if (eth->h_proto == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip = (void *)(eth + 1);

		if ((void *)(ip + 1) > end ||
		    !wanted(ip->nexthdr, queue, 1, ip + 1, end))
			return XDP_PASS;
		addrs = bpf_map_lookup_elem(&homa_addrs, &zero);
		if (!addrs || !ours_v6(addrs, ip->nexthdr, &ip->daddr))
			return XDP_PASS;
	} else {
		return XDP_PASS;
	}
	return bpf_redirect_map(&homa_xsks, queue, XDP_PASS);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
