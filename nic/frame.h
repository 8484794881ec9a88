/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Ethernet and IP headers around a Homa packet: building them from a template
 * that is made once per peer, and taking a received frame apart. Pure
 * functions over bytes; nothing here does I/O.
 *
 * Guarded by: the owner of the path that a template belongs to.
 */
#ifndef HOMA_NIC_FRAME_H
#define HOMA_NIC_FRAME_H

#include "nic_backend.h"

#define NIC_ETH_HLEN 14
#define NIC_IPV4_HLEN 20
#define NIC_IPV6_HLEN 40
#define NIC_UDP_HLEN 8
#define NIC_FRAME_HLEN_MAX (NIC_ETH_HLEN + NIC_IPV6_HLEN)

/**
 * struct nic_frame_template - Ethernet and IP header towards one peer
 * @bytes: the headers, in which length, priority, checksum and flow label are 0.
 * @len: their length in bytes: 34 for IPv4, 54 for IPv6.
 * @v4: true for IPv4.
 * @sum: the sum of the IPv4 header's 16-bit words, not folded; 0 for IPv6.
 */
struct nic_frame_template {
	u8 bytes[NIC_FRAME_HLEN_MAX];
	u8 len;
	bool v4;
	u32 sum;
};

/** nic_frame_template_init() - make a template; @src and @dst must be of the same family. */
void nic_frame_template_init(struct nic_frame_template *t, const u8 *dst_mac,
			     const u8 *src_mac, const struct homa_addr *src,
			     const struct homa_addr *dst);

/**
 * nic_frame_build() - write the headers for one packet
 * @out: receives t->len bytes; the caller puts the Homa header right behind.
 * @l4_len: the length of Homa header and payload in bytes; the caller keeps it within the MTU.
 * @prio: the priority, 0 to 7.
 * @hdr: the Homa header, of which the IPv6 flow label is made.
 */
void nic_frame_build(const struct nic_frame_template *t, u8 *out, u32 l4_len,
		     u8 prio, const u8 *hdr);

/** nic_frame_build_tcp() - the same for a TCP segment, with its own source and ECN. */
void nic_frame_build_tcp(const struct nic_frame_template *t, u8 *out,
			 const struct nic_tx *pkt);

/**
 * nic_frame_parse() - find the Homa packet, or the TCP segment, in a frame
 * @frame: the Ethernet frame.
 * @len: its length in bytes.
 * @out: receives data, len, prio, ecn, proto, src and dst, but not the token.
 * Returns 0, or -EBADMSG if the frame is not IPv4 or IPv6 with protocol 146 or 6, is
 * truncated or a fragment, or has a wrong IPv4 header checksum.
 */
int nic_frame_parse(const u8 *frame, u32 len, struct nic_rx *out);

/** nic_addr_no_host() - is this an address that no single host has: multicast, broadcast or
 *  0.x.x.x? No answers and no calls are sent to such an address (RFC 1122, 3.2.2). */
static inline bool nic_addr_no_host(const struct homa_addr *addr)
{
	if (homa_addr_is_v4(addr))
		return addr->ip[12] >= 224 || !addr->ip[12];
	return addr->ip[0] == 0xff;
}

/** nic_checksum() - the Internet checksum of @len bytes; @sum is added. */
u16 nic_checksum(const void *data, u32 len, u32 sum);

#endif
