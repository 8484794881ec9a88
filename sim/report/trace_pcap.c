// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The run as a capture: pcapng (IETF draft-ietf-opsawg-pcapng), with time
 * stamps in nanoseconds of virtual time. Each host is an interface that sees
 * what it sends and what it receives, as if it captured at its own link; one
 * more interface sees what was dropped in the network.
 *
 * No payload exists, so only headers are captured; the "original length" is
 * that of the whole frame. A Homa packet has the bytes that the engine wrote,
 * as IP protocol 146. A model has no bytes: its packets are UDP to port
 * TRACE_PORT with a header of ours (struct model_header), so that they can be
 * told apart, filtered and counted.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "homa_wire.h"
#include "pcapng.h"
#include "trace_impl.h"

#define SNAPLEN 256u
#define BLOCK_MAX 1024u

#define ETHERNET_HDR 14u
#define IP_HDR 20u
#define UDP_HDR 8u
#define TRACE_PORT 54399u
#define TRACE_MAGIC 0x48534d31u /* "HSM1" */

/** struct model_header - stands for the header of a model's packet; big-endian */
struct model_header {
	/* A number by which the dissector knows the header. */
	homa_be32 magic;
	/* The packet's type, its flags, its priority and the number of switches that it has
	 * passed. */
	u8 type, flags, prio, hops;
	/* Serial number of the message. */
	homa_be64 message;
	homa_be32 length; /* length of the message, 0 if it is over */
	/* Offset of the payload in the message, its length, and the packet's bytes on the wire. */
	homa_be32 offset, payload, wire;
	/* The packet's rank, for protocols whose switches sort by it. */
	homa_be64 rank;
} __attribute__((packed));

/* ---- head ---- */

static void host_mac(u8 mac[6], u32 host)
{
	mac[0] = 2; /* a locally administered address */
	mac[1] = 0;
	homa_put_be32((homa_be32 *)(mac + 2), host);
}

static void host_ip(u8 ip[4], u32 host)
{
	homa_put_be32((homa_be32 *)ip, 0x0a000001u + host);
}

static void section(struct trace_pcap *p, const struct sim *sim)
{
	u8 block[BLOCK_MAX];
	char comment[128];

	snprintf(comment, sizeof(comment), "protocol %s, %u hosts, seed %llu",
		 sim->cfg.transport->name, sim->cfg.hosts,
		 (unsigned long long)sim->cfg.seed);
	trace_file_add(&p->file, block,
		       homa_pcapng_section(block, sizeof(block), "homa-sim", comment));
}

/* Adds the interface of @host; sim->cfg.hosts stands for the network. */
static void interface(struct trace_pcap *p, const struct sim *sim, u32 host)
{
	struct homa_pcapng_interface i = { .link = HOMA_PCAPNG_ETHERNET, .snap = SNAPLEN };
	u8 block[BLOCK_MAX], mac[6], ip[4];
	char name[32];

	if (host < sim->cfg.hosts) {
		snprintf(name, sizeof(name), "host%u", host);
		host_mac(mac, host);
		host_ip(ip, host);
		i.mac = mac;
		i.ipv4 = ip;
		i.bits_per_s = sim->cfg.host_mbps * 1000000ull;
	} else {
		snprintf(name, sizeof(name), "dropped");
	}
	i.name = name;
	trace_file_add(&p->file, block, homa_pcapng_interface(block, sizeof(block), &i));
}

int trace_pcap_open(struct trace_pcap *p, struct sim *sim,
		    const struct sim_trace_options *o, char *err, size_t errlen)
{
	int res = trace_file_open(&p->file, o->pcap, "", o->max_bytes, err, errlen);
	u32 i;

	if (res)
		return res;
	p->from = o->from;
	p->until = o->until;
	section(p, sim);
	for (i = 0; i <= sim->cfg.hosts; i++)
		interface(p, sim, i);
	return 0;
}

int trace_pcap_close(struct trace_pcap *p, const char *path, char *err, size_t errlen)
{
	return trace_file_close(&p->file, path, err, errlen);
}

/* ---- frames ---- */

/* Writes the header behind IP's; *@left receives the bytes of payload that follow it. */
static u32 transport_header(u8 *at, const struct sim_pkt *pkt, u32 *left)
{
	const struct sim_msg *msg = sim_pkt_msg(pkt);
	struct model_header *h = (struct model_header *)(at + UDP_HDR);

	*left = pkt->flags & (SIM_CONTROL | SIM_TRIMMED) ? 0 : pkt->payload;
	if (pkt->hdr_len) {
		memcpy(at, pkt->hdr, pkt->hdr_len);
		return pkt->hdr_len;
	}
	homa_put_be16((homa_be16 *)at, TRACE_PORT);
	homa_put_be16((homa_be16 *)(at + 2), TRACE_PORT);
	homa_put_be16((homa_be16 *)(at + 4), (u16)(UDP_HDR + sizeof(*h) + *left));
	homa_put_be16((homa_be16 *)(at + 6), 0);
	homa_put_be32(&h->magic, TRACE_MAGIC);
	h->type = pkt->type;
	h->flags = pkt->flags;
	h->prio = pkt->prio;
	h->hops = pkt->hops;
	homa_put_be64(&h->message, pkt->msg_serial);
	homa_put_be32(&h->length, msg ? msg->length : 0);
	homa_put_be32(&h->offset, pkt->offset);
	homa_put_be32(&h->payload, pkt->payload);
	homa_put_be32(&h->wire, pkt->wire);
	homa_put_be64(&h->rank, pkt->rank);
	return UDP_HDR + (u32)sizeof(*h);
}

static void ip_header(u8 *out, const struct sim_pkt *pkt, u32 payload)
{
	const u8 ecn = pkt->flags & SIM_ECN_CE ? 3 : pkt->flags & SIM_ECN_CAPABLE ? 2 : 0;
	u8 src[16] = { [10] = 0xff, [11] = 0xff }, dst[16] = { [10] = 0xff, [11] = 0xff };
	const struct homa_pcapng_ip ip = {
		.src = src,
		.dst = dst,
		.protocol = pkt->hdr_len ? HOMA_IPPROTO : 17,
		.tos = (u8)(pkt->prio << 5 | ecn),
		.ttl = (u8)(64 - pkt->hops),
		.payload = payload,
	};

	host_ip(src + 12, pkt->src);
	host_ip(dst + 12, pkt->dst);
	homa_pcapng_ip_header(out, &ip);
}

/* Writes the headers to @frame, which has room for SNAPLEN bytes. Returns the number of
 *	bytes captured; *@whole receives the number on the wire, without FCS. */
static u32 frame_build(u8 *frame, const struct sim_pkt *pkt, u32 *whole)
{
	u32 header, left;

	host_mac(frame, pkt->dst);
	host_mac(frame + 6, pkt->src);
	frame[12] = 8; /* IPv4 */
	frame[13] = 0;
	header = transport_header(frame + ETHERNET_HDR + IP_HDR, pkt, &left);
	ip_header(frame + ETHERNET_HDR, pkt, header + left);
	*whole = ETHERNET_HDR + IP_HDR + header + left;
	return ETHERNET_HDR + IP_HDR + header;
}

void trace_pcap_packet(struct trace_pcap *p, struct sim *sim, const struct sim_pkt *pkt,
		       enum trace_fate fate, const struct sim_port *port)
{
	struct homa_pcapng_packet out = {
		.interface = fate == TRACE_SENT	    ? pkt->src :
			     fate == TRACE_RECEIVED ? pkt->dst :
						      sim->cfg.hosts,
		.ns = sim_ns(sim->now),
	};
	char from[32], to[32], comment[96];
	u8 frame[SNAPLEN], block[BLOCK_MAX];

	if (sim->now < p->from || sim->now >= p->until || !trace_file_room(&p->file))
		return;
	out.frame = frame;
	out.captured = frame_build(frame, pkt, &out.length);
	if (fate == TRACE_DROPPED) {
		trace_node_name(sim, port->node, from, sizeof(from));
		trace_node_name(sim, port->peer, to, sizeof(to));
		snprintf(comment, sizeof(comment), "dropped at %s on the way to %s", from,
			 to);
		out.comment = comment;
	} else {
		out.direction = fate; /* enum trace_fate has pcapng's numbers */
	}
	trace_file_add(&p->file, block, homa_pcapng_packet(block, sizeof(block), &out));
}
