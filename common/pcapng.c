// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Words of a block are in this machine's byte order, which its section header
 * tells the reader; what is inside packets is big-endian. Every block ends with
 * its length again, so that a file can be read backwards, and is a multiple of
 * four bytes.
 */
#include <string.h>

#include "pcapng.h"

#define BLOCK_SECTION 0x0a0d0d0au
#define BLOCK_INTERFACE 1u
#define BLOCK_STATISTICS 5u
#define BLOCK_PACKET 6u
#define BYTE_ORDER_MAGIC 0x1a2b3c4du

/*
 * struct pcapng_block - a block being built
 * @data: memory of @size bytes. @len: filled so far; @size + 1: it did not fit.
 */
struct pcapng_block {
	uint8_t *data;
	uint32_t size;
	uint32_t len;
};

enum { OPT_END = 0, OPT_COMMENT = 1 };
enum { SECTION_APPLICATION = 4 };
enum {
	IF_NAME = 2,
	IF_DESCRIPTION = 3,
	IF_IPV4 = 4,
	IF_MAC = 6,
	IF_SPEED = 8,
	IF_TSRESOL = 9,
};
enum { PACKET_FLAGS = 2 };
enum { STATS_RECEIVED = 4, STATS_LOST = 5 };

static void put_bytes(struct pcapng_block *b, const void *data, uint32_t len)
{
	const uint32_t padded = (len + 3) & ~3u;

	if (b->len > b->size || padded < len || padded > b->size - b->len) {
		b->len = b->size + 1;
		return;
	}
	if (len)
		memcpy(b->data + b->len, data, len);
	memset(b->data + b->len + len, 0, padded - len);
	b->len += padded;
}

static void put32(struct pcapng_block *b, uint32_t v)
{
	put_bytes(b, &v, 4);
}

static void put_pair(struct pcapng_block *b, uint16_t first, uint16_t second)
{
	const uint16_t pair[2] = { first, second };

	put_bytes(b, pair, 4);
}

static void put_option(struct pcapng_block *b, uint16_t code, const void *data,
		       size_t len)
{
	put_pair(b, code, (uint16_t)len);
	put_bytes(b, data, (uint32_t)len);
}

static void put_text(struct pcapng_block *b, uint16_t code, const char *text)
{
	if (text && *text)
		put_option(b, code, text, strlen(text));
}

static struct pcapng_block begin(uint8_t *data, uint32_t size, uint32_t type)
{
	struct pcapng_block b = { .data = data, .size = size };

	put32(&b, type);
	put32(&b, 0); /* length: end() */
	return b;
}

static uint32_t end(struct pcapng_block *b)
{
	const uint32_t total = b->len + 4;

	put32(b, total);
	if (b->len > b->size)
		return 0;
	memcpy(b->data + 4, &total, 4);
	return total;
}

uint32_t homa_pcapng_section(uint8_t *data, uint32_t size,
			     const char *application, const char *comment)
{
	struct pcapng_block b = begin(data, size, BLOCK_SECTION);

	put32(&b, BYTE_ORDER_MAGIC);
	put_pair(&b, 1, 0);
	put32(&b, UINT32_MAX); /* length of the section: 64 ones, not known */
	put32(&b, UINT32_MAX);
	put_text(&b, OPT_COMMENT, comment);
	put_text(&b, SECTION_APPLICATION, application);
	put_option(&b, OPT_END, NULL, 0);
	return end(&b);
}

uint32_t homa_pcapng_interface(uint8_t *data, uint32_t size,
			       const struct homa_pcapng_interface *i)
{
	struct pcapng_block b = begin(data, size, BLOCK_INTERFACE);
	const uint8_t nanoseconds = 9;
	uint8_t ip[8] = { [4] = 255 };

	put_pair(&b, i->link, 0);
	put32(&b, i->snap);
	put_text(&b, IF_NAME, i->name);
	put_text(&b, IF_DESCRIPTION, i->description);
	if (i->ipv4) {
		memcpy(ip, i->ipv4, 4);
		put_option(&b, IF_IPV4, ip, sizeof(ip));
	}
	if (i->mac)
		put_option(&b, IF_MAC, i->mac, 6);
	if (i->bits_per_s)
		put_option(&b, IF_SPEED, &i->bits_per_s, 8);
	put_option(&b, IF_TSRESOL, &nanoseconds, 1);
	put_option(&b, OPT_END, NULL, 0);
	return end(&b);
}

uint32_t homa_pcapng_packet(uint8_t *data, uint32_t size,
			    const struct homa_pcapng_packet *p)
{
	struct pcapng_block b = begin(data, size, BLOCK_PACKET);

	put32(&b, p->interface);
	put32(&b, (uint32_t)(p->ns >> 32));
	put32(&b, (uint32_t)p->ns);
	put32(&b, p->captured);
	put32(&b, p->length);
	put_bytes(&b, p->frame, p->captured);
	put_text(&b, OPT_COMMENT, p->comment);
	if (p->direction)
		put_option(&b, PACKET_FLAGS, &p->direction, 4);
	if (p->direction || p->comment)
		put_option(&b, OPT_END, NULL, 0);
	return end(&b);
}

uint32_t homa_pcapng_stats(uint8_t *data, uint32_t size, uint32_t interface,
			   uint64_t ns, uint64_t seen, uint64_t lost)
{
	struct pcapng_block b = begin(data, size, BLOCK_STATISTICS);

	put32(&b, interface);
	put32(&b, (uint32_t)(ns >> 32));
	put32(&b, (uint32_t)ns);
	put_option(&b, STATS_RECEIVED, &seen, 8);
	put_option(&b, STATS_LOST, &lost, 8);
	put_option(&b, OPT_END, NULL, 0);
	return end(&b);
}

/* ---- IP ---- */

static void be16(uint8_t *at, uint32_t v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

static int is_v4(const uint8_t *ip)
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(ip, prefix, sizeof(prefix)) == 0;
}

/* Lengths do not fit if a whole message went through memory at once. */
static uint32_t fit16(uint32_t v)
{
	return v < 65535 ? v : 65535;
}

static uint32_t ipv4(uint8_t *out, const struct homa_pcapng_ip *ip,
		     uint8_t protocol, uint32_t payload)
{
	uint32_t sum = 0, i;

	memset(out, 0, 20);
	out[0] = 0x45;
	out[1] = ip->tos;
	be16(out + 2, fit16(20 + payload));
	out[6] = 0x40; /* do not fragment */
	out[8] = ip->ttl;
	out[9] = protocol;
	memcpy(out + 12, ip->src + 12, 4);
	memcpy(out + 16, ip->dst + 12, 4);
	for (i = 0; i < 20; i += 2)
		sum += (uint32_t)out[i] << 8 | out[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	be16(out + 10, ~sum);
	return 20;
}

static uint32_t ipv6(uint8_t *out, const struct homa_pcapng_ip *ip,
		     uint8_t protocol, uint32_t payload)
{
	memset(out, 0, 8);
	out[0] = (uint8_t)(0x60 | ip->tos >> 4);
	out[1] = (uint8_t)(ip->tos << 4);
	be16(out + 4, fit16(payload));
	out[6] = protocol;
	out[7] = ip->ttl;
	memcpy(out + 8, ip->src, 16);
	memcpy(out + 24, ip->dst, 16);
	return 40;
}

uint32_t homa_pcapng_ip_header(uint8_t *out, const struct homa_pcapng_ip *ip)
{
	const int udp = ip->udp_src || ip->udp_dst;
	const uint32_t payload = ip->payload + (udp ? 8 : 0);
	const uint8_t protocol = udp ? 17 : ip->protocol;
	uint32_t len;

	len = is_v4(ip->src) && is_v4(ip->dst) ?
		      ipv4(out, ip, protocol, payload) :
		      ipv6(out, ip, protocol, payload);
	if (!udp)
		return len;
	be16(out + len, ip->udp_src);
	be16(out + len + 2, ip->udp_dst);
	be16(out + len + 4, fit16(payload));
	be16(out + len + 6, 0); /* no checksum */
	return len + 8;
}
