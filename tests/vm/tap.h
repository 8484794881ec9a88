/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A host that is none: frames written to and read from a tap device, so that a
 * program decides about every bit that the machine receives, and sees every bit
 * that it sends. The machine has 10.9.0.1 and fd09::1 on the device, and .200 and
 * ::c8, which its routing never chooses by itself; all other addresses of these
 * networks are the program's, which is a host of any number of addresses behind one
 * Ethernet address.
 *
 * The victim's sockets are in the same process: what is said to them on the wire
 * and what becomes of it stand side by side in one function.
 */
#ifndef TESTS_VM_TAP_H
#define TESTS_VM_TAP_H

#include <linux/virtio_net.h>
#include "guest.h"
#include "homa_wire.h"

/* How frames enter the kernel. */
enum flavour {
	TAP_PLAIN, /* netif_rx(): linear, no GRO */
	TAP_NAPI,  /* napi_gro_receive(): linear, GRO */
	TAP_FRAGS, /* napi_gro_frags(): headers spread over fragments, GRO */
};

extern int version;	     /* 4 or 6 */
extern enum flavour flavour; /* of the device */
extern int tap_fd;
extern int machine; /* last byte of the machine's address that make() sends to: 1 or 200 */

#define MTU 1500
#define ETH 14u
#define IP_HEADER (version == 4 ? 20u : 40u)
#define PACKET \
	(MTU - IP_HEADER - HOMA_DATA_HDR) /* message bytes in a full one */

/**
 * struct frame - to be sent
 * @vnet: what the device is told about it.
 * @bytes: from the Ethernet header on.
 * @size: of it all.
 * @l4: where the Homa header is.
 */
struct frame {
	struct virtio_net_hdr vnet;
	uint8_t bytes[66000];
	size_t size, l4;
};

/**
 * struct seen - a packet of the machine
 * @homa: where its Homa header is, NULL: it is no Homa packet.
 * @bytes: from the Homa header on.
 * @tos: TOS byte or traffic class.
 * @peer: last byte of the address it goes to, @from: of that it comes from.
 * @icmp, @code: if it is ICMP or ICMPv6, else -1.
 */
struct seen {
	uint8_t frame[66000];
	size_t size;
	const uint8_t *homa;
	size_t bytes;
	int proto, tos, peer, from, icmp, code;
	int type, sport, dport;
	uint64_t id;
};

/** tap_open() - with addresses, neighbours and all; exits if that fails. */
void tap_open(void);
/** device_shell() - run a command with up to three "%s" that stand for the device's name;
 *  exits if it fails. */
void device_shell(const char *format);

/**
 * make() - a Homa packet of @type from address .@peer to the machine, @bytes long
 * behind the IP header; everything but the common header is 0. Returns the Homa
 * header, to be changed; send() then fills in IP's lengths and checksum.
 */
uint8_t *make(struct frame *f, int peer, int type, int sport, int dport,
	      uint64_t id, size_t bytes);
/** make_data() - DATA: payload is byte_at() of the message offset. */
uint8_t *make_data(struct frame *f, int peer, int sport, int dport, uint64_t id,
		   uint32_t length, uint32_t offset, uint32_t payload);
/** seal() - IP's lengths and checksum, as the frame is now. */
void seal(struct frame *f);
/** send_frame() - as it is; send_packet(): after seal(). */
void send_frame(const struct frame *f);
void send_packet(struct frame *f);
/** send_split() - a frame in fragments that end at @cuts (TAP_FRAGS). */
void send_split(const struct frame *f, const size_t *cuts, int n);

/** next_seen() - the next Homa or ICMP packet within @ms; false: there is none. */
bool next_seen(struct seen *p, int ms);
/** await() - the next packet of @type for RPC @id (as the machine names it; 0: any);
 *  others are passed over. */
bool await(struct seen *p, int type, uint64_t id, int ms);
/** quiet() - pass over what was sent until now. */
void quiet(void);
/** barrier() - wait until all that was sent is worked off; counts what the machine
 *  sent meanwhile, of @type (-1: anything), leaving aside what answers the barrier. */
unsigned int barrier(int type);
/** seen_offset() - message offset of a DATA packet's payload. */
uint32_t seen_offset(const struct seen *p);

/** new_id() - for a request of ours: even, never the same. */
uint64_t new_id(void);
/** byte_at() - of messages made by make_data(). */
static inline uint8_t byte_at(uint32_t offset)
{
	return (uint8_t)(offset % 251);
}

/* The address of a host behind the tap. */
union address peer_address(int peer, int port);

static inline void put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline void put32(uint8_t *p, uint32_t v)
{
	put16(p, v >> 16);
	put16(p + 2, v);
}

static inline void put64(uint8_t *p, uint64_t v)
{
	put32(p, (uint32_t)(v >> 32));
	put32(p + 4, (uint32_t)v);
}

static inline uint32_t get16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static inline uint32_t get32(const uint8_t *p)
{
	return get16(p) << 16 | get16(p + 2);
}

static inline uint64_t get64(const uint8_t *p)
{
	return (uint64_t)get32(p) << 32 | get32(p + 4);
}

#endif
