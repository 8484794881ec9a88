/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Captures that Wireshark and tcpdump open: blocks of pcapng (IETF
 * draft-ietf-opsawg-pcapng) and the IP headers in front of a packet that is
 * known without them. The simulator writes its runs with this, homad what its
 * fast path moved. Nothing here does I/O: a block is built in the caller's memory
 * and is whole when its length is returned.
 */
#ifndef HOMA_PCAPNG_H
#define HOMA_PCAPNG_H

#include <stddef.h>
#include <stdint.h>

enum { HOMA_PCAPNG_ETHERNET = 1, HOMA_PCAPNG_RAW_IP = 101 };
enum { HOMA_PCAPNG_IN = 1, HOMA_PCAPNG_OUT = 2 };

#define HOMA_PCAPNG_IP_MAX 48 /* IPv6 and UDP */

/**
 * struct homa_pcapng_interface - what an interface block says
 * @link: HOMA_PCAPNG_ETHERNET or HOMA_PCAPNG_RAW_IP.
 * @snap: bytes captured of a packet at most.
 * @name, @description: NULL: none.
 * @mac, @ipv4: NULL or 6 and 4 bytes. @bits_per_s: 0: not known.
 */
struct homa_pcapng_interface {
	uint16_t link;
	uint32_t snap;
	const char *name, *description;
	const uint8_t *mac, *ipv4;
	uint64_t bits_per_s;
};

/**
 * struct homa_pcapng_packet - what a packet block says
 * @interface: number of its interface block, from 0.
 * @ns: time. @captured: bytes at @frame. @length: bytes on the wire.
 * @direction: HOMA_PCAPNG_IN, _OUT or 0. @comment: NULL: none.
 */
struct homa_pcapng_packet {
	uint32_t interface;
	uint64_t ns;
	uint32_t captured, length;
	const uint8_t *frame;
	uint32_t direction;
	const char *comment;
};

/* Each builds a whole block at @data and returns its bytes, 0: it did not fit. */
uint32_t homa_pcapng_section(uint8_t *data, uint32_t size,
			     const char *application, const char *comment);
uint32_t homa_pcapng_interface(uint8_t *data, uint32_t size,
			       const struct homa_pcapng_interface *i);
uint32_t homa_pcapng_packet(uint8_t *data, uint32_t size,
			    const struct homa_pcapng_packet *p);
/** homa_pcapng_stats() - at the end: packets seen and lost by the recorder */
uint32_t homa_pcapng_stats(uint8_t *data, uint32_t size, uint32_t interface,
			   uint64_t ns, uint64_t seen, uint64_t lost);

/**
 * struct homa_pcapng_ip - an IP packet's header, to be made up
 * @src, @dst: IPv4 as ::ffff:a.b.c.d; IPv6 if either is not.
 * @protocol: of the payload; @udp_src, @udp_dst: not 0: a UDP header, too.
 * @tos, @ttl: as in the header. @payload: bytes behind these headers.
 */
struct homa_pcapng_ip {
	const uint8_t *src, *dst;
	uint8_t protocol, tos, ttl;
	uint16_t udp_src, udp_dst;
	uint32_t payload;
};

/** homa_pcapng_ip_header() - into @out (HOMA_PCAPNG_IP_MAX bytes); its length */
uint32_t homa_pcapng_ip_header(uint8_t *out, const struct homa_pcapng_ip *ip);

#endif
