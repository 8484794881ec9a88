// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The bed's network: IP around the engine's segments, checksums, ICMP. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "bed_impl.h"

/* a byte's value is its position in the stream modulo this */
#define PATTERN 251u
#define IP4 20u
#define IP6 40u
#define TCP_PROTOCOL 6
#define ICMP4 1
#define ICMP6 58

static u32 sum(const u8 *p, u32 length, u32 start)
{
	u32 i;

	for (i = 0; i + 1 < length; i += 2)
		start += (u32)p[i] << 8 | p[i + 1];
	if (length & 1)
		start += (u32)p[length - 1] << 8;
	return start;
}

static u16 fold(u32 value)
{
	while (value >> 16)
		value = (value & 0xffff) + (value >> 16);
	return (u16)~value;
}

static u32 pseudo(const struct pkt_bed *bed, const struct tas_pair *pair,
		  u32 length)
{
	u32 at = bed->v6 ? 0 : 12, n = 16 - at;

	return sum(pair->local + at, n,
		   sum(pair->remote + at, n, TCP_PROTOCOL + length));
}

static u32 ip_header(const struct pkt_bed *bed, const struct tas_out *out,
		     u8 *p, u32 length)
{
	u32 header = bed->v6 ? IP6 : IP4;

	memset(p, 0, header);
	if (bed->v6) {
		p[0] = 0x60;
		p[1] = (u8)(out->ecn << 4);
		homa_put_be16(p + 4, (u16)length);
		p[6] = TCP_PROTOCOL;
		p[7] = 64;
		memcpy(p + 8, out->pair->local, 16);
		memcpy(p + 24, out->pair->remote, 16);
		return header;
	}
	p[0] = 0x45;
	p[1] = out->ecn;
	homa_put_be16(p + 2, (u16)(length + header));
	p[6] = 0x40; /* do not fragment */
	p[8] = 64;
	p[9] = TCP_PROTOCOL;
	memcpy(p + 12, out->pair->local + 12, 4);
	memcpy(p + 16, out->pair->remote + 12, 4);
	homa_put_be16(p + 10, fold(sum(p, header, 0)));
	return header;
}

static void queue(struct pkt_bed *bed, const struct tas_out *out, u32 from,
		  u32 length, bool last)
{
	struct bed_packet *packet = &bed->queue[bed->tail % BED_QUEUE];
	u32 i, tcp = out->header_length + length;
	u8 *p;

	if (bed->tail - bed->head == BED_QUEUE)
		return;
	packet->bytes = malloc(IP6 + tcp);
	if (!packet->bytes)
		return;
	bed->tail++;
	p = packet->bytes + ip_header(bed, out, packet->bytes, tcp);
	packet->length = (u32)(p - packet->bytes) + tcp;
	memcpy(p, out->header, out->header_length);
	homa_put_be32(p + 4, homa_get_be32(p + 4) + from);
	if (!last)
		p[13] &= (u8)~(TAS_FIN | TAS_PSH);
	if (from)
		p[13] &= (u8)~TAS_CWR;
	for (i = 0; i < length; i++)
		p[out->header_length + i] =
			(u8)((out->from + from + i) % PATTERN);
	homa_put_be16(p + 16, fold(sum(p, tcp, pseudo(bed, out->pair, tcp))));
}

void bed_send(struct pkt_bed *bed, const struct tas_out *out)
{
	u32 from = 0, piece;

	do {
		piece = out->length - from;
		if (out->mss && piece > out->mss)
			piece = out->mss;
		queue(bed, out, from, piece, from + piece == out->length);
		from += piece;
	} while (from < out->length);
}

int pkt_bed_out(struct pkt_bed *bed, void *ip_packet, uint32_t room)
{
	struct bed_packet *packet = &bed->queue[bed->head % BED_QUEUE];
	int length;

	if (bed->head == bed->tail)
		return 0;
	bed->head++;
	length = packet->length <= room ? (int)packet->length : -ENOBUFS;
	if (length > 0)
		memcpy(ip_packet, packet->bytes, packet->length);
	free(packet->bytes);
	packet->bytes = NULL;
	return length;
}

/* Addresses and protocol of a packet, and where its payload is; 0: not one of ours. */
static u32 parse(const struct pkt_bed *bed, const u8 *p, u32 length,
		 struct tas_pair *pair, u8 *ecn, u8 *protocol, u32 *end)
{
	static const u8 mapped[12] = { [10] = 0xff, [11] = 0xff };
	u32 header;

	if (bed->v6) {
		if (length < IP6 || p[0] >> 4 != 6)
			return 0;
		memcpy(pair->remote, p + 8, 16);
		memcpy(pair->local, p + 24, 16);
		*ecn = p[1] >> 4 & 3;
		*protocol = p[6];
		*end = IP6 + homa_get_be16(p + 4);
		return *end <= length ? IP6 : 0;
	}
	if (length < IP4 || p[0] >> 4 != 4)
		return 0;
	header = (p[0] & 15u) * 4;
	*end = homa_get_be16(p + 2);
	if (header < IP4 || *end < header || *end > length)
		return 0;
	memcpy(pair->remote, mapped, 12);
	memcpy(pair->local, mapped, 12);
	memcpy(pair->remote + 12, p + 12, 4);
	memcpy(pair->local + 12, p + 16, 4);
	*ecn = p[1] & 3;
	*protocol = p[9];
	return header;
}

static void copy_bytes(struct pkt_bed *bed, const u8 *payload,
		       const struct tas_copy *copy)
{
	u8 *buffer = bed_buffer_of(copy->conn);
	u32 i, mask = (1u << copy->conn->f.rx_shift) - 1;

	(void)bed;
	for (i = 0; buffer && i < copy->length; i++)
		buffer[(copy->to + i) & mask] = payload[copy->from + i];
}

/* What an error means to a connection; 1: nothing. */
static int meaning(const struct pkt_bed *bed, const u8 *icmp, u32 *mtu)
{
	*mtu = homa_get_be32(icmp + 4);
	if (bed->v6)
		return icmp[0] == 2 ? 0 : icmp[0] == 1 ? -EHOSTUNREACH : 1;
	*mtu &= 0xffff;
	if (icmp[0] != 3)
		return 1;
	switch (icmp[1]) {
	case 4:
		return 0;
	case 2:
		return -EPROTO;
	case 3:
		return -ECONNREFUSED;
	default:
		return -EHOSTUNREACH;
	}
}

static void icmp_in(struct pkt_bed *bed, const u8 *icmp, u32 length)
{
	struct tas_pair quoted, pair;
	u32 header, end, mtu;
	u8 ecn, protocol;
	const u8 *tcp;
	int error;

	if (length < 8 + (bed->v6 ? IP6 : IP4) + 8)
		return;
	error = meaning(bed, icmp, &mtu);
	/* The quote may be shorter than the packet was. */
	header = parse(bed, icmp + 8, 0xffff, &quoted, &ecn, &protocol, &end);
	if (error > 0 || !header || protocol != TCP_PROTOCOL ||
	    8 + header + 8 > length)
		return;
	tcp = icmp + 8 + header;
	memcpy(pair.local, quoted.remote, 16);
	memcpy(pair.remote, quoted.local, 16);
	pair.local_port = homa_get_be16(tcp);
	pair.remote_port = homa_get_be16(tcp + 2);
	tas_icmp(&bed->engine, &pair, homa_get_be32(tcp + 4), error, mtu);
}

void pkt_bed_in(struct pkt_bed *bed, const void *ip_packet, uint32_t length)
{
	const u8 *p = ip_packet;
	struct tas_pair pair;
	struct tas_copy copy;
	u8 ecn, protocol;
	u32 header, end;

	header = parse(bed, p, length, &pair, &ecn, &protocol, &end);
	if (!header)
		return;
	bed_settle(bed);
	tas_set_now(&bed->engine, bed->now, 64);
	if (protocol == (bed->v6 ? ICMP6 : ICMP4)) {
		icmp_in(bed, p + header, end - header);
	} else if (protocol == TCP_PROTOCOL &&
		   !tas_rx_packet(&bed->engine, &pair, p + header, end - header,
				  ecn, &copy)) {
		if (copy.conn)
			copy_bytes(bed, p + header, &copy);
	}
	bed_settle(bed);
}
