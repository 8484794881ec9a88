/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A captured frame taken apart: the IP header that the tests look at, written
 * independently of nic/, and the Homa packet behind it.
 */
#ifndef HOMA_TEST_IP_FRAME_H
#define HOMA_TEST_IP_FRAME_H

#include "homa_plat.h"

/**
 * struct ip_frame - an IPv4 or IPv6 packet
 * @version: 4 or 6.
 * @proto: what follows the IP header.
 * @tos: TOS or traffic class.
 * @hops: TTL or hop limit.
 * @df: IPv4: do not fragment.
 * @id: IPv4 identification, or IPv6 flow label.
 * @length: bytes that the IP header claims: all (4), payload (6).
 * @addr_len: 4 or 16.
 * @src, @dst: in the frame.
 * @homa: behind the IP header.
 * @homa_len: bytes there according to the IP header.
 */
struct ip_frame {
	int version;
	u8 proto;
	u8 tos;
	u8 hops;
	bool df;
	u32 id;
	u32 length;
	u32 addr_len;
	const u8 *src;
	const u8 *dst;
	const u8 *homa;
	u32 homa_len;
};

/** ip_frame_parse() - returns whether there is a plain IP header in @bytes */
static inline bool ip_frame_parse(struct ip_frame *ip, const u8 *bytes, size_t len)
{
	if (len >= 20 && bytes[0] == 0x45) {
		ip->version = 4;
		ip->tos = bytes[1];
		ip->length = homa_get_be16(bytes + 2);
		ip->id = homa_get_be16(bytes + 4);
		ip->df = homa_get_be16(bytes + 6) == 0x4000;
		ip->hops = bytes[8];
		ip->proto = bytes[9];
		ip->addr_len = 4;
		ip->src = bytes + 12;
		ip->dst = bytes + 16;
		ip->homa = bytes + 20;
		ip->homa_len = ip->length - 20;
		return ip->length >= 20;
	}
	if (len >= 40 && bytes[0] >> 4 == 6) {
		ip->version = 6;
		ip->tos = (u8)(homa_get_be16(bytes) >> 4);
		ip->id = homa_get_be32(bytes) & 0xfffff;
		ip->length = homa_get_be16(bytes + 4);
		ip->df = false;
		ip->proto = bytes[6];
		ip->hops = bytes[7];
		ip->addr_len = 16;
		ip->src = bytes + 8;
		ip->dst = bytes + 24;
		ip->homa = bytes + 40;
		ip->homa_len = ip->length;
		return true;
	}
	return false;
}

#endif
