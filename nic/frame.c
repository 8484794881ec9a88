// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Ethernet, IPv4 and IPv6 headers. IPv4 packets leave with DF set and id 0 (RFC
 * 6864: a datagram that is never fragmented needs no id); priority is the top
 * three bits of TOS or traffic class, the ECN bits are 0. The IPv6 flow label
 * is a hash of the ports and the RPC id, so that equal-cost paths spread RPCs
 * but the packets of one message stay in order.
 */
#include "frame.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define IPV4_DF 0x4000
#define IPV4_FRAGMENT 0x3fff /* more-fragments bit and offset */
#define HOP_LIMIT 64

static u32 sum_words(const u8 *p, u32 len, u32 sum)
{
	for (; len > 1; p += 2, len -= 2)
		sum += homa_get_be16(p);
	if (len)
		sum += (u32)*p << 8;
	return sum;
}

static u16 fold(u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (u16)~sum;
}

u16 nic_checksum(const void *data, u32 len, u32 sum)
{
	return fold(sum_words(data, len, sum));
}

void nic_frame_template_init(struct nic_frame_template *t, const u8 *dst_mac,
			     const u8 *src_mac, const struct homa_addr *src,
			     const struct homa_addr *dst)
{
	u8 *ip = t->bytes + NIC_ETH_HLEN;

	memset(t, 0, sizeof(*t));
	memcpy(t->bytes, dst_mac, 6);
	memcpy(t->bytes + 6, src_mac, 6);
	t->v4 = homa_addr_is_v4(dst);
	if (t->v4) {
		homa_put_be16(t->bytes + 12, ETHERTYPE_IPV4);
		t->len = NIC_ETH_HLEN + NIC_IPV4_HLEN;
		ip[0] = 0x45;
		homa_put_be16(ip + 6, IPV4_DF);
		ip[8] = HOP_LIMIT;
		ip[9] = IPPROTO_HOMA;
		memcpy(ip + 12, src->ip + 12, 4);
		memcpy(ip + 16, dst->ip + 12, 4);
		t->sum = sum_words(ip, NIC_IPV4_HLEN, 0);
	} else {
		homa_put_be16(t->bytes + 12, ETHERTYPE_IPV6);
		t->len = NIC_ETH_HLEN + NIC_IPV6_HLEN;
		ip[0] = 0x60;
		ip[6] = IPPROTO_HOMA;
		ip[7] = HOP_LIMIT;
		memcpy(ip + 8, src->ip, 16);
		memcpy(ip + 24, dst->ip, 16);
	}
}

static u32 flow_label(const u8 *hdr)
{
	u64 ports = homa_get_be32(hdr);
	u64 id = homa_get_be64(hdr + 20) & ~(u64)1;

	return (u32)((((ports << 32) ^ id) * 0x9e3779b97f4a7c15ULL) >> 44);
}

/* The flow label of a TCP segment is a hash of its ports. */
static u32 tcp_flow_label(const u8 *hdr)
{
	return (homa_get_be32(hdr) * 0x9e3779b1U) >> 12;
}

void nic_frame_build_tcp(const struct nic_frame_template *t, u8 *out,
			 const struct nic_tx *pkt)
{
	u32 l4_len = pkt->hdr_len + pkt->payload_len;
	u8 *ip = out + NIC_ETH_HLEN, tos = (u8)(pkt->dscp << 2 | pkt->ecn);

	memcpy(out, t->bytes, t->len);
	if (t->v4) {
		ip[1] = tos;
		homa_put_be16(ip + 2, (u16)(NIC_IPV4_HLEN + l4_len));
		ip[9] = IPPROTO_TCP;
		if (pkt->src)
			memcpy(ip + 12, pkt->src->ip + 12, 4);
		homa_put_be16(ip + 10, nic_checksum(ip, NIC_IPV4_HLEN, 0));
	} else {
		homa_put_be32(ip, 6U << 28 | (u32)tos << 20 |
					  tcp_flow_label(pkt->hdr));
		homa_put_be16(ip + 4, (u16)l4_len);
		ip[6] = IPPROTO_TCP;
		if (pkt->src)
			memcpy(ip + 8, pkt->src->ip, 16);
	}
}

void nic_frame_build(const struct nic_frame_template *t, u8 *out, u32 l4_len,
		     u8 prio, const u8 *hdr)
{
	u8 *ip = out + NIC_ETH_HLEN;

	memcpy(out, t->bytes, t->len);
	if (t->v4) {
		u32 total = NIC_IPV4_HLEN + l4_len;
		u8 tos = (u8)(prio << 5);

		ip[1] = tos;
		homa_put_be16(ip + 2, (u16)total);
		homa_put_be16(ip + 10, fold(t->sum + tos + total));
	} else {
		homa_put_be32(ip, 6U << 28 | (u32)(prio & 7) << 25 |
					  flow_label(hdr));
		homa_put_be16(ip + 4, (u16)l4_len);
	}
}

static void set_v4(struct homa_addr *addr, const u8 *ip)
{
	memset(addr, 0, sizeof(*addr));
	addr->ip[10] = 0xff;
	addr->ip[11] = 0xff;
	memcpy(addr->ip + 12, ip, 4);
}

static int set_proto(u8 proto, struct nic_rx *out)
{
	out->proto = NIC_HOMA;
	if (likely(proto == IPPROTO_HOMA))
		return 0;
	out->proto = NIC_TCP;
	return proto == IPPROTO_TCP ? 0 : -EBADMSG;
}

static int parse_v4(const u8 *ip, u32 len, struct nic_rx *out)
{
	u32 hlen, total;

	if (len < NIC_IPV4_HLEN || ip[0] >> 4 != 4)
		return -EBADMSG;
	hlen = (u32)(ip[0] & 15) * 4;
	total = homa_get_be16(ip + 2);
	if (hlen < NIC_IPV4_HLEN || total > len || total <= hlen)
		return -EBADMSG;
	if (homa_get_be16(ip + 6) & IPV4_FRAGMENT || set_proto(ip[9], out))
		return -EBADMSG;
	if (nic_checksum(ip, hlen, 0))
		return -EBADMSG;
	out->prio = ip[1] >> 5;
	out->ecn = ip[1] & 3;
	set_v4(&out->src, ip + 12);
	set_v4(&out->dst, ip + 16);
	out->data = ip + hlen;
	out->len = total - hlen;
	return 0;
}

static int parse_v6(const u8 *ip, u32 len, struct nic_rx *out)
{
	u32 payload;
	u8 tclass;

	if (len < NIC_IPV6_HLEN || ip[0] >> 4 != 6)
		return -EBADMSG;
	payload = homa_get_be16(ip + 4);
	if (!payload || payload > len - NIC_IPV6_HLEN || set_proto(ip[6], out))
		return -EBADMSG;
	tclass = (u8)(homa_get_be16(ip) >> 4);
	out->prio = tclass >> 5;
	out->ecn = tclass & 3;
	memset(&out->src, 0, sizeof(out->src));
	memset(&out->dst, 0, sizeof(out->dst));
	memcpy(out->src.ip, ip + 8, 16);
	memcpy(out->dst.ip, ip + 24, 16);
	/* A v4-mapped address never belongs on the wire (RFC 4291 2.5.5.2). A packet with one
	 * would be taken for one of an IPv4 host. */
	if (homa_addr_is_v4(&out->src) || homa_addr_is_v4(&out->dst))
		return -EBADMSG;
	out->data = ip + NIC_IPV6_HLEN;
	out->len = payload;
	return 0;
}

static int parse(const u8 *frame, u32 len, struct nic_rx *out)
{
	if (len < NIC_ETH_HLEN)
		return -EBADMSG;
	switch (homa_get_be16(frame + 12)) {
	case ETHERTYPE_IPV4:
		return parse_v4(frame + NIC_ETH_HLEN, len - NIC_ETH_HLEN, out);
	case ETHERTYPE_IPV6:
		return parse_v6(frame + NIC_ETH_HLEN, len - NIC_ETH_HLEN, out);
	default:
		return -EBADMSG;
	}
}

int nic_frame_parse(const u8 *frame, u32 len, struct nic_rx *out)
{
	int rc = parse(frame, len, out);

	out->pieces = NULL;
	/* TCP answers every segment, so both of its addresses must be those of hosts. */
	if (!rc && unlikely(out->proto == NIC_TCP) &&
	    (nic_addr_no_host(&out->src) || nic_addr_no_host(&out->dst)))
		return -EBADMSG;
	return rc;
}
