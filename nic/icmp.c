// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * ICMP messages as bytes: building "port unreachable" and reading errors. The
 * quoted packet is rebuilt from what nic_rx still knows of it; the receiver
 * uses its addresses, ports and RPC id, which are exact.
 */
#include "icmp.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "frame.h"

#define ICMP4_UNREACH 3
#define ICMP4_TIME_EXCEEDED 11
#define ICMP4_PARAMETER 12
#define ICMP6_UNREACH 1
#define ICMP6_TOO_BIG 2
#define ICMP6_TIME_EXCEEDED 3
#define ICMP6_PARAMETER 4
#define ICMP_HLEN 8
#define PROTO_UDP 17
#define IPV4_OFFSET 0x1fff
#define TCP_SEQ_AT 4u

static u32 quote_v4(u8 *ip, const struct nic_rx *pkt, u32 udp)
{
	memset(ip, 0, NIC_IPV4_HLEN);
	ip[0] = 0x45;
	ip[1] = (u8)(pkt->prio << 5 | pkt->ecn);
	homa_put_be16(ip + 2, (u16)(NIC_IPV4_HLEN + udp + pkt->len));
	ip[6] = 0x40;
	ip[8] = 64;
	ip[9] = udp ? PROTO_UDP : IPPROTO_HOMA;
	memcpy(ip + 12, pkt->src.ip + 12, 4);
	memcpy(ip + 16, pkt->dst.ip + 12, 4);
	homa_put_be16(ip + 10, nic_checksum(ip, NIC_IPV4_HLEN, 0));
	return NIC_IPV4_HLEN;
}

static u32 quote_v6(u8 *ip, const struct nic_rx *pkt, u32 udp)
{
	u8 tclass = (u8)(pkt->prio << 5 | pkt->ecn);

	homa_put_be32(ip, 6U << 28 | (u32)tclass << 20);
	homa_put_be16(ip + 4, (u16)(udp + pkt->len));
	ip[6] = udp ? PROTO_UDP : IPPROTO_HOMA;
	ip[7] = 64;
	memcpy(ip + 8, pkt->src.ip, 16);
	memcpy(ip + 24, pkt->dst.ip, 16);
	return NIC_IPV6_HLEN;
}

u32 nic_icmp_build(u8 *out, const struct nic_rx *pkt, u16 local_port)
{
	bool v4 = homa_addr_is_v4(&pkt->src);
	u32 udp = pkt->src.encap ? NIC_UDP_HLEN : 0;
	u32 max = v4 ? NIC_ICMP_MAX_V4 : NIC_ICMP_MAX_V6;
	u32 len = ICMP_HLEN, body;

	memset(out, 0, ICMP_HLEN);
	out[0] = v4 ? ICMP4_UNREACH : ICMP6_UNREACH;
	out[1] = v4 ? 3 : 4;
	len += v4 ? quote_v4(out + len, pkt, udp) : quote_v6(out + len, pkt, udp);
	if (udp) {
		homa_put_be16(out + len, pkt->src.encap);
		homa_put_be16(out + len + 2, local_port);
		homa_put_be16(out + len + 4, (u16)(udp + pkt->len));
		homa_put_be16(out + len + 6, 0);
		len += udp;
	}
	body = homa_min_u32(pkt->len, max - len);
	memcpy(out + len, pkt->data, body);
	len += body;
	if (v4)
		homa_put_be16(out + 2, nic_checksum(out, len, 0));
	return len;
}

int nic_icmp_errno(u8 type, u8 code, bool v6)
{
	static const u8 unreach4[] = {
		ENETUNREACH,  EHOSTUNREACH, EPROTONOSUPPORT, ECONNREFUSED,
		EMSGSIZE,     EHOSTUNREACH, ENETUNREACH,     EHOSTUNREACH,
		EHOSTUNREACH, ENETUNREACH,  EHOSTUNREACH,    ENETUNREACH,
		EHOSTUNREACH, EHOSTUNREACH, EHOSTUNREACH,    EHOSTUNREACH,
	};
	static const u8 unreach6[] = {
		ENETUNREACH,  EHOSTUNREACH, EHOSTUNREACH, EHOSTUNREACH,
		ECONNREFUSED, EHOSTUNREACH, EHOSTUNREACH,
	};

	if (v6) {
		switch (type) {
		case ICMP6_UNREACH:
			return code < sizeof(unreach6) ? unreach6[code] :
							 EHOSTUNREACH;
		case ICMP6_TOO_BIG:
			return EMSGSIZE;
		case ICMP6_TIME_EXCEEDED:
			return EHOSTUNREACH;
		case ICMP6_PARAMETER:
			return EPROTONOSUPPORT;
		default:
			return 0;
		}
	}
	switch (type) {
	case ICMP4_UNREACH:
		return code < sizeof(unreach4) ? unreach4[code] : EHOSTUNREACH;
	case ICMP4_TIME_EXCEEDED:
		return EHOSTUNREACH;
	case ICMP4_PARAMETER:
		return EPROTONOSUPPORT;
	default:
		return 0;
	}
}

/* Read the quoted Homa or TCP header. Only its first 8 bytes are sure to be there: the ports of a
 * Homa packet, or the ports and the sequence number of a TCP segment. */
static int quote_l4(u8 proto, const u8 *hdr, u32 len, struct nic_error *error)
{
	if (proto != IPPROTO_HOMA && proto != IPPROTO_TCP)
		return -EBADMSG;
	if (proto == IPPROTO_TCP && len < TCP_SEQ_AT + 4)
		return -EBADMSG;
	if (len >= 4) {
		error->sport = homa_get_be16(hdr);
		error->dport = homa_get_be16(hdr + 2);
	}
	if (proto == IPPROTO_TCP) {
		error->proto = NIC_TCP;
		error->seq = homa_get_be32(hdr + TCP_SEQ_AT);
	} else if (len >= 28) {
		error->sender_id = homa_get_be64(hdr + 20);
	}
	return 0;
}

static int quote_ip(const u8 *ip, u32 len, bool v6, struct nic_error *error)
{
	u32 hlen = NIC_IPV6_HLEN;

	if (v6) {
		if (len < hlen || ip[0] >> 4 != 6)
			return -EBADMSG;
		memcpy(error->src.ip, ip + 8, 16);
		memcpy(error->dst.ip, ip + 24, 16);
		return quote_l4(ip[6], ip + hlen, len - hlen, error);
	}
	if (len < NIC_IPV4_HLEN || ip[0] >> 4 != 4)
		return -EBADMSG;
	hlen = (u32)(ip[0] & 15) * 4;
	/* We send no fragments, and a later fragment has no ports behind its IP header. */
	if (hlen < NIC_IPV4_HLEN || len < hlen ||
	    homa_get_be16(ip + 6) & IPV4_OFFSET)
		return -EBADMSG;
	error->src.ip[10] = error->src.ip[11] = 0xff;
	error->dst.ip[10] = error->dst.ip[11] = 0xff;
	memcpy(error->src.ip + 12, ip + 12, 4);
	memcpy(error->dst.ip + 12, ip + 16, 4);
	return quote_l4(ip[9], ip + hlen, len - hlen, error);
}

int nic_icmp_parse(const u8 *msg, u32 len, bool v6, struct nic_error *error)
{
	memset(error, 0, sizeof(*error));
	if (len < ICMP_HLEN)
		return -EBADMSG;
	error->error = nic_icmp_errno(msg[0], msg[1], v6);
	if (!error->error)
		return -EBADMSG;
	if (error->error == EMSGSIZE)
		error->mtu = v6 ? homa_get_be32(msg + 4) : homa_get_be16(msg + 6);
	return quote_ip(msg + ICMP_HLEN, len - ICMP_HLEN, v6, error);
}
