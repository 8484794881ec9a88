/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Ethernet and IP headers around a Homa packet: building them from a template
 * that is made once per peer, and taking a received frame apart. Pure
 * functions over bytes; nothing here does I/O.
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
 * @bytes: the headers with length, priority, checksum and flow label zero.
 * @len: 34 (IPv4) or 54 (IPv6).
 * @v4: IPv4.
 * @sum: IPv4: sum of the header's 16-bit words, not folded.
 */
struct nic_frame_template {
	u8 bytes[NIC_FRAME_HLEN_MAX];
	u8 len;
	bool v4;
	u32 sum;
};

/** nic_frame_template_init() - @src and @dst must be of the same family. */
void nic_frame_template_init(struct nic_frame_template *t, const u8 *dst_mac,
			     const u8 *src_mac, const struct homa_addr *src,
			     const struct homa_addr *dst);

/**
 * nic_frame_build() - write the headers for one packet
 * @out: room for t->len bytes; the Homa header goes right behind.
 * @l4_len: Homa header and payload, bytes; the caller keeps it within the MTU.
 * @prio: 0..7.
 * @hdr: the Homa header, for the IPv6 flow label.
 */
void nic_frame_build(const struct nic_frame_template *t, u8 *out, u32 l4_len,
		     u8 prio, const u8 *hdr);

/** nic_frame_build_tcp() - the same for a TCP segment, with its own source and ECN. */
void nic_frame_build_tcp(const struct nic_frame_template *t, u8 *out,
			 const struct nic_tx *pkt);

/**
 * nic_frame_parse() - find the Homa packet, or the TCP segment, in a frame
 * @frame: Ethernet frame.
 * @len: its bytes.
 * @out: data, len, prio, ecn, proto, src and dst are filled; not the token.
 * Returns 0 or -EBADMSG: not IPv4 or IPv6 with protocol 146 or 6, truncated, a
 * fragment, or a wrong IPv4 header checksum.
 */
int nic_frame_parse(const u8 *frame, u32 len, struct nic_rx *out);

/** nic_addr_no_host() - no single host has this address: multicast, broadcast, 0.x.x.x. Nobody
 *  is answered there (RFC 1122, 3.2.2), and nobody is called. */
static inline bool nic_addr_no_host(const struct homa_addr *addr)
{
	if (homa_addr_is_v4(addr))
		return addr->ip[12] >= 224 || !addr->ip[12];
	return addr->ip[0] == 0xff;
}

/** nic_checksum() - Internet checksum of @len bytes, starting from @sum. */
u16 nic_checksum(const void *data, u32 len, u32 sum);

#endif
