// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * One's complement sums, eight bytes at a time. Such a sum may be computed in any byte
 * order and with words of any size, as long as the result goes back as it came (RFC 1071,
 * 2). An IPv4 address is written here as ::ffff:a.b.c.d; its ffff is a zero of this
 * arithmetic.
 */
#include "tcp_sum.h"

#include <netinet/in.h>
#include <string.h>

static u64 add(u64 sum, u64 word)
{
	sum += word;
	return sum + (sum < word);
}

u64 nic_sum(const void *data, u32 len, u64 sum)
{
	const u8 *p = data;
	u64 w[4], tail = 0;

	for (; len >= sizeof(w); p += sizeof(w), len -= (u32)sizeof(w)) {
		memcpy(w, p, sizeof(w));
		sum = add(add(add(add(sum, w[0]), w[1]), w[2]), w[3]);
	}
	for (; len >= 8; p += 8, len -= 8) {
		memcpy(w, p, 8);
		sum = add(sum, w[0]);
	}
	memcpy(&tail, p, len);
	return add(sum, tail);
}

u64 nic_sum_pseudo(const struct homa_addr *src, const struct homa_addr *dst,
		   u32 len)
{
	u8 words[8] = { 0 };

	homa_put_be32(words, len);
	words[7] = IPPROTO_TCP;
	return nic_sum(words, sizeof(words),
		       nic_sum(dst->ip, 16, nic_sum(src->ip, 16, 0)));
}

u16 nic_sum_fold(u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (u16)sum;
}

/* Adds the bytes of @pkt to @sum. */
static u64 sum_packet(const struct nic_rx *pkt, u64 sum)
{
	const struct nic_piece *piece = pkt->pieces;
	u32 left = pkt->len, len;
	bool odd = false;
	u64 part;

	if (likely(!piece))
		return nic_sum(pkt->data, left, sum);
	for (; left; piece++, left -= len) {
		len = homa_min_u32(piece->len, left);
		part = nic_sum(piece->data, len, 0);
		/* Behind an odd number of bytes each one is in the other half of its word. */
		sum = add(sum, odd ? part << 8 | part >> 56 : part);
		odd ^= len & 1;
	}
	return sum;
}

bool nic_tcp_sound(const struct nic_rx *pkt, bool partial)
{
	u64 pseudo = nic_sum_pseudo(&pkt->src, &pkt->dst, pkt->len);
	u16 field;

	if (pkt->len < NIC_TCP_CHECKSUM_AT + 2)
		return false;
	memcpy(&field, pkt->data + NIC_TCP_CHECKSUM_AT, sizeof(field));
	if (partial && field == nic_sum_fold(pseudo))
		return true;
	return nic_sum_fold(sum_packet(pkt, pseudo)) == 0xffff;
}
