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

#include "trace_impl.h"
#include "homa_wire.h"

#define BLOCK_SECTION	0x0a0d0d0au
#define BLOCK_INTERFACE 1u
#define BLOCK_PACKET	6u
#define BYTE_ORDER_MAGIC 0x1a2b3c4du
#define LINK_ETHERNET	1u
#define SNAPLEN		256u
#define BLOCK_MAX	1024u

enum { OPT_END = 0, OPT_COMMENT = 1, OPT_NAME = 2, OPT_DESCRIPTION = 3, OPT_FLAGS = 2,
       OPT_USERAPPL = 4, OPT_IPV4 = 4, OPT_MAC = 6, OPT_SPEED = 8, OPT_TSRESOL = 9 };

#define ETHERNET_HDR 14u
#define IP_HDR	     20u
#define UDP_HDR	     8u
#define TRACE_PORT   54399u
#define TRACE_MAGIC  0x48534d31u	/* "HSM1" */

/** struct model_header - stands for the header of a model's packet; big-endian */
struct model_header {
	homa_be32 magic;
	u8 type, flags, prio, hops;
	homa_be64 message;
	homa_be32 length;	/* of the message, 0 if it is over */
	homa_be32 offset, payload, wire;
	homa_be64 rank;
} __attribute__((packed));

/** struct block - a pcapng block being built; words are in this machine's order */
struct block {
	u8 data[BLOCK_MAX];
	u32 len;
};

static void put_bytes(struct block *b, const void *data, u32 len)
{
	const u32 padded = (len + 3) & ~3u;

	if (len)
		memcpy(b->data + b->len, data, len);
	memset(b->data + b->len + len, 0, padded - len);
	b->len += padded;
}

static void put32(struct block *b, u32 v)
{
	put_bytes(b, &v, 4);
}

static void put_pair(struct block *b, u16 first, u16 second)
{
	const u16 pair[2] = { first, second };

	put_bytes(b, pair, 4);
}

static void put_option(struct block *b, u16 code, const void *data, size_t len)
{
	put_pair(b, code, (u16)len);
	put_bytes(b, data, (u32)len);
}

static void block_begin(struct block *b, u32 type)
{
	b->len = 0;
	put32(b, type);
	put32(b, 0); /* length: block_end() */
}

static void block_end(struct block *b, struct trace_file *f)
{
	u32 total = b->len + 4;

	put32(b, total);
	memcpy(b->data + 4, &total, 4);
	trace_file_add(f, b->data, total);
}

/* ---- head ---- */

static void host_mac(u8 mac[6], u32 host)
{
	mac[0] = 2; /* locally administered */
	mac[1] = 0;
	homa_put_be32((homa_be32 *)(mac + 2), host);
}

static void host_ip(u8 ip[4], u32 host)
{
	homa_put_be32((homa_be32 *)ip, 0x0a000001u + host);
}

static void section(struct trace_pcap *p, const struct sim *sim)
{
	static const char program[] = "homa-sim";
	struct block b;
	char comment[128];

	snprintf(comment, sizeof(comment), "protocol %s, %u hosts, seed %llu",
		 sim->cfg.transport->name, sim->cfg.hosts,
		 (unsigned long long)sim->cfg.seed);
	block_begin(&b, BLOCK_SECTION);
	put32(&b, BYTE_ORDER_MAGIC);
	put_pair(&b, 1, 0);
	put32(&b, UINT32_MAX); /* length of the section: 64 ones, not known */
	put32(&b, UINT32_MAX);
	put_option(&b, OPT_COMMENT, comment, strlen(comment));
	put_option(&b, OPT_USERAPPL, program, strlen(program));
	put_option(&b, OPT_END, NULL, 0);
	block_end(&b, &p->file);
}

/* @host: sim->cfg.hosts stands for the network. */
static void interface(struct trace_pcap *p, const struct sim *sim, u32 host)
{
	const u64 speed = sim->cfg.host_mbps * 1000000ull;
	const u8 resolution = 9;
	u8 mac[6], ip[8] = { [4] = 255 };
	struct block b;
	char name[32];

	if (host < sim->cfg.hosts)
		snprintf(name, sizeof(name), "host%u", host);
	else
		snprintf(name, sizeof(name), "dropped");
	block_begin(&b, BLOCK_INTERFACE);
	put_pair(&b, LINK_ETHERNET, 0);
	put32(&b, SNAPLEN);
	put_option(&b, OPT_NAME, name, strlen(name));
	if (host < sim->cfg.hosts) {
		host_mac(mac, host);
		host_ip(ip, host);
		put_option(&b, OPT_IPV4, ip, sizeof(ip));
		put_option(&b, OPT_MAC, mac, sizeof(mac));
		put_option(&b, OPT_SPEED, &speed, sizeof(speed));
	}
	put_option(&b, OPT_TSRESOL, &resolution, 1);
	put_option(&b, OPT_END, NULL, 0);
	block_end(&b, &p->file);
}

int trace_pcap_open(struct trace_pcap *p, struct sim *sim, const struct sim_trace_options *o,
		    char *err, size_t errlen)
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

/* The header behind IP's; *@left receives the bytes of payload that follow it. */
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

static void ip_header(u8 *ip, const struct sim_pkt *pkt, u32 total)
{
	const u8 ecn = pkt->flags & SIM_ECN_CE ? 3 : pkt->flags & SIM_ECN_CAPABLE ? 2 : 0;
	u32 sum = 0, i;

	memset(ip, 0, IP_HDR);
	ip[0] = 0x45;
	ip[1] = (u8)(pkt->prio << 5 | ecn);
	homa_put_be16((homa_be16 *)(ip + 2), (u16)total);
	ip[6] = 0x40; /* do not fragment */
	ip[8] = (u8)(64 - pkt->hops);
	ip[9] = pkt->hdr_len ? HOMA_IPPROTO : 17;
	host_ip(ip + 12, pkt->src);
	host_ip(ip + 16, pkt->dst);
	for (i = 0; i < IP_HDR; i += 2)
		sum += (u32)ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	homa_put_be16((homa_be16 *)(ip + 10), (u16)~sum);
}

/* @frame: room for SNAPLEN. Returns the bytes captured; *@whole: on the wire, without FCS. */
static u32 frame_build(u8 *frame, const struct sim_pkt *pkt, u32 *whole)
{
	u32 header, left;

	host_mac(frame, pkt->dst);
	host_mac(frame + 6, pkt->src);
	frame[12] = 8; /* IPv4 */
	frame[13] = 0;
	header = transport_header(frame + ETHERNET_HDR + IP_HDR, pkt, &left);
	ip_header(frame + ETHERNET_HDR, pkt, IP_HDR + header + left);
	*whole = ETHERNET_HDR + IP_HDR + header + left;
	return ETHERNET_HDR + IP_HDR + header;
}

void trace_pcap_packet(struct trace_pcap *p, struct sim *sim, const struct sim_pkt *pkt,
		       enum trace_fate fate, const struct sim_port *port)
{
	const u32 interface = fate == TRACE_SENT ? pkt->src :
			      fate == TRACE_RECEIVED ? pkt->dst : sim->cfg.hosts;
	const u64 ns = sim_ns(sim->now);
	char from[32], to[32], comment[96];
	u32 captured, whole;
	u8 frame[SNAPLEN];
	struct block b;

	if (sim->now < p->from || sim->now >= p->until || !trace_file_room(&p->file))
		return;
	captured = frame_build(frame, pkt, &whole);
	block_begin(&b, BLOCK_PACKET);
	put32(&b, interface);
	put32(&b, (u32)(ns >> 32));
	put32(&b, (u32)ns);
	put32(&b, captured);
	put32(&b, whole);
	put_bytes(&b, frame, captured);
	if (fate == TRACE_DROPPED) {
		trace_node_name(sim, port->node, from, sizeof(from));
		trace_node_name(sim, port->peer, to, sizeof(to));
		snprintf(comment, sizeof(comment), "dropped at %s on the way to %s", from, to);
		put_option(&b, OPT_COMMENT, comment, strlen(comment));
	} else {
		u32 flags = fate;

		put_option(&b, OPT_FLAGS, &flags, sizeof(flags));
	}
	put_option(&b, OPT_END, NULL, 0);
	block_end(&b, &p->file);
}
