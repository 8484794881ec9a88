/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a Homa packet looks like on the wire, revision "jul26": the one place
 * where layout, sizes and limits stand. Everything is big-endian and nothing
 * is aligned; homa_codec.h turns these bytes into values and back, so nobody
 * else dereferences these structures. docs/protocol.md draws the same layout.
 *
 * The first 20 bytes imitate a TCP header so that NICs segment, hash and
 * offload Homa packets as if they were TCP. There is no version field: peers
 * of another revision are recognised only by lengths that do not fit.
 *
 * Written by: the codec of the sender; read by: that of the receiver, which believes nothing.
 */
#ifndef HOMA_WIRE_H
#define HOMA_WIRE_H

#include "homa_plat.h"

/* Encapsulations. */
#define HOMA_IPPROTO 146      /* IP protocol of native packets */
#define HOMA_IPPROTO_HIJACK 6 /* IP protocol under disguise; see HOMA_FLAGS */
#define HOMA_UDP_PORT 54321   /* both ports under UDP encapsulation */

/**
 * enum homa_type - packet types, byte 11 of the header
 * @HOMA_DATA: a range of a message, perhaps with an acknowledgment.
 * @HOMA_GRANT: receiver to sender: send up to this offset.
 * @HOMA_RESEND: receiver to sender: this range is missing.
 * @HOMA_RPC_UNKNOWN: answer to a packet for an RPC we do not have.
 * @HOMA_BUSY: answer to RESEND: alive, but not sending that now.
 * @HOMA_CUTOFFS: priorities for unscheduled packets toward the sender of this.
 * @HOMA_FREEZE: debugging aid of the Linux module.
 * @HOMA_NEED_ACK: server to client: acknowledge, I want to forget the RPC.
 * @HOMA_ACK: client to server: these RPCs are finished.
 * @HOMA_START_MSG: a wholly scheduled message begins (newer revision; we
 *	accept it and do not send it).
 */
enum homa_type {
	HOMA_DATA = 0x10,
	HOMA_GRANT = 0x11,
	HOMA_RESEND = 0x12,
	HOMA_RPC_UNKNOWN = 0x13,
	HOMA_BUSY = 0x14,
	HOMA_CUTOFFS = 0x15,
	HOMA_FREEZE = 0x16,
	HOMA_NEED_ACK = 0x17,
	HOMA_ACK = 0x18,
	HOMA_START_MSG = 0x19,
};

#define HOMA_TYPE_FIRST HOMA_DATA
#define HOMA_TYPE_LAST HOMA_START_MSG
#define HOMA_TYPES (HOMA_TYPE_LAST - HOMA_TYPE_FIRST + 1)

/* Values of fields that carry no information. */
#define HOMA_FLAGS 6	    /* TCP flags SYN|RST, which TCP never sends */
#define HOMA_URGENT 0xb97d  /* with HOMA_FLAGS: "this TCP is Homa" */
#define HOMA_DOFF_DATA 14   /* header length in 32-bit words */
#define HOMA_DOFF_GSO 13    /* multi-segment: seg.offset counts as payload */
#define HOMA_DOFF_CONTROL 5 /* some NICs drop other values */

/* Limits. */
#define HOMA_MAX_ACKS 5	  /* most acks in an ACK packet */
#define HOMA_PRIORITIES 8 /* number of priority levels */
/* Length of the longest message, in bytes. */
#define HOMA_MAX_WIRE_LENGTH 0x7fffffffu
/* Clients' ports begin here; servers have 1 to 0x7fff. */
#define HOMA_MIN_CLIENT_PORT 0x8000
/* Value of seg_offset which says that the sequence field is the offset. */
#define HOMA_OFFSET_IN_SEQUENCE 0xffffffffu
/* Length in a RESEND that asks for everything that was sent. */
#define HOMA_RESEND_ALL 0xffffffffu
/* Largest errno of a rejection: from 512 on numbers mean something to Linux
 * (ERESTARTSYS). */
#define HOMA_MAX_ERRNO 511u

/* Our extension in DATA's padding; zero means the reference's behaviour. */
/* A client wants few unscheduled bytes of the response. */
#define HOMA_EXT_INCAST 0x01
/* The sender's uplink is the bottleneck. */
#define HOMA_EXT_CONGESTED 0x02
/* A client understands rejections; a server rejects. */
#define HOMA_EXT_REJECT 0x04
/* The field "window" says how much longer a client waits. */
#define HOMA_EXT_LEFT 0x08

/**
 * struct homa_wire_common - first 28 bytes of every packet
 * @sport, @dport: Homa ports of sender and receiver.
 * @sequence: DATA: message offset of the payload, authoritative only if
 *	seg_offset is HOMA_OFFSET_IN_SEQUENCE (TCP segmentation advances it).
 *	A server's RPC_UNKNOWN: our extension, see homa_wire_up().
 * @ack_high: our extension, unused in the reference: which life of its host the server of
 *	the RPC is in, see homa_wire_life(); 0: not said.
 * @type: enum homa_type.
 * @doff: high nibble: TCP data offset; ignored by receivers.
 * @flags: HOMA_FLAGS.
 * @window: DATA with HOMA_EXT_LEFT: our extension, see homa_wire_left(). Else unused, 0.
 * @checksum: 0, or a TCP checksum; not verified.
 * @urgent: HOMA_URGENT.
 * @sender_id: the RPC's id at the sender; even at clients. The receiver's
 *	id of the same RPC is this XOR 1.
 */
struct homa_wire_common {
	homa_be16 sport;
	homa_be16 dport;
	homa_be32 sequence;
	u8 ack_high[3];
	u8 type;
	u8 doff;
	u8 flags;
	homa_be16 window;
	homa_be16 checksum;
	homa_be16 urgent;
	homa_be64 sender_id;
} __attribute__((packed));

/* Our extension in the common header: lives of servers. */
/* The bits of a life's number; 0 names no life. */
#define HOMA_WIRE_LIFE 0xffffffu
/* The age of a life counts in units of 2^10 ns. */
#define HOMA_WIRE_UP_SHIFT 10u
/* An age of 4.3 s or more is said as this, so that nobody learns more. */
#define HOMA_WIRE_UP_MAX 0x3fffffu

/** homa_wire_life() - the life that a server is in, or for which a client's packet is */
static inline u32 homa_wire_life(const void *buf)
{
	return homa_get_be32(((const struct homa_wire_common *)buf)->ack_high) >>
	       8;
}

/** homa_wire_set_life() - write the life into an encoded packet */
static inline void homa_wire_set_life(void *buf, u32 life)
{
	struct homa_wire_common *w = buf;

	homa_put_be32(w->ack_high, life << 8 | w->type);
}

/** homa_wire_up() - age of a server's life by its RPC_UNKNOWN, see HOMA_WIRE_UP_SHIFT; 0: it
 *  does not say */
static inline u32 homa_wire_up(const void *buf)
{
	return homa_min_u32(homa_get_be32(&((const struct homa_wire_common *)buf)
						   ->sequence),
			    HOMA_WIRE_UP_MAX);
}

/** homa_wire_set_up() - write the age of the life into an encoded RPC_UNKNOWN */
static inline void homa_wire_set_up(void *buf, u32 up)
{
	homa_put_be32(&((struct homa_wire_common *)buf)->sequence, up);
}

/**
 * struct homa_wire_ack - one finished RPC
 * @client_id: its id at the client; 0 means none.
 * @server_port: which socket of the server.
 */
struct homa_wire_ack {
	homa_be64 client_id;
	homa_be16 server_port;
} __attribute__((packed));

/**
 * struct homa_wire_data - DATA, payload follows
 * @common: what every packet begins with.
 * @length: bytes in the whole message.
 * @incoming: the sender will send up to here without a grant.
 * @ack: an RPC that the sender, as a client, has finished.
 * @cutoff_version: which CUTOFFS of the receiver the sender used.
 * @retransmit: 1 if this answers a RESEND or RPC_UNKNOWN.
 * @ext: our extension, HOMA_EXT_*; padding in the reference.
 * @resp_limit_kib: our extension: unscheduled limit for the response, KiB;
 *	0 means the sender's default. In a rejection (HOMA_EXT_REJECT from a
 *	server): the errno.
 * @seg_offset: message offset of the payload or HOMA_OFFSET_IN_SEQUENCE.
 */
struct homa_wire_data {
	struct homa_wire_common common;
	homa_be32 length;
	homa_be32 incoming;
	struct homa_wire_ack ack;
	homa_be16 cutoff_version;
	u8 retransmit;
	u8 ext;
	homa_be16 resp_limit_kib;
	homa_be32 seg_offset;
} __attribute__((packed));

/**
 * struct homa_wire_grant - GRANT
 * @common: what every packet begins with.
 * @offset: the sender may transmit all bytes before this one.
 * @priority: level for the message's scheduled packets from now on.
 */
struct homa_wire_grant {
	struct homa_wire_common common;
	homa_be32 offset;
	u8 priority;
} __attribute__((packed));

/**
 * struct homa_wire_resend - RESEND
 * @common: what every packet begins with.
 * @offset: first missing byte.
 * @length: bytes missing, or HOMA_RESEND_ALL.
 * @priority: level for the retransmission.
 */
struct homa_wire_resend {
	struct homa_wire_common common;
	homa_be32 offset;
	homa_be32 length;
	u8 priority;
} __attribute__((packed));

/**
 * struct homa_wire_cutoffs - CUTOFFS
 * @common: what every packet begins with.
 * @cutoff: longest message that goes at each level; 0 for unused levels.
 * @version: to be echoed in DATA.
 */
struct homa_wire_cutoffs {
	struct homa_wire_common common;
	homa_be32 cutoff[HOMA_PRIORITIES];
	homa_be16 version;
} __attribute__((packed));

/**
 * struct homa_wire_acks - ACK
 * @common: what every packet begins with.
 * @num: how many of @ack are valid, 0..HOMA_MAX_ACKS. The RPC of the common
 *	header is acknowledged in any case.
 */
struct homa_wire_acks {
	struct homa_wire_common common;
	homa_be16 num;
	struct homa_wire_ack ack[HOMA_MAX_ACKS];
} __attribute__((packed));

/*
 * Our extension in the common header of DATA with HOMA_EXT_LEFT: how much longer the client
 * waits for the response. The value is a small floating-point number: the lower
 * HOMA_LEFT_BITS bits, shifted left by the number in the others, count units of 1024 ns.
 */
#define HOMA_LEFT_SHIFT 10u   /* a unit is 2^10 ns */
#define HOMA_LEFT_BITS 11u    /* bits that count units */
#define HOMA_LEFT_MAX 0xffffu /* the code of 52 days or more */

/** homa_left_code() - the code of @ns, which rounds up by at most a 1024th and a unit; it is
 *  never 0 */
static inline u16 homa_left_code(u64 ns)
{
	u64 units = (ns >> HOMA_LEFT_SHIFT) + 1;
	u32 shift = 0;

	while (units >> HOMA_LEFT_BITS) {
		units = (units + 1) >> 1;
		shift++;
	}
	if (shift > HOMA_LEFT_MAX >> HOMA_LEFT_BITS)
		return HOMA_LEFT_MAX;
	return (u16)(shift << HOMA_LEFT_BITS | units);
}

/** homa_left_ns() - time that a code means, in ns, less than 2^53 */
static inline u64 homa_left_ns(u16 code)
{
	u64 units = code & ((1u << HOMA_LEFT_BITS) - 1);

	return units << (code >> HOMA_LEFT_BITS) << HOMA_LEFT_SHIFT;
}

/** homa_wire_set_left() - write the code into an encoded DATA packet */
static inline void homa_wire_set_left(void *buf, u16 code)
{
	struct homa_wire_data *w = buf;

	homa_put_be16(&w->common.window, code);
	w->ext |= HOMA_EXT_LEFT;
}

/**
 * struct homa_wire_start - START_MSG
 * @common: what every packet begins with.
 * @length: number of bytes in the whole message.
 */
struct homa_wire_start {
	struct homa_wire_common common;
	homa_be32 length;
} __attribute__((packed));

/* Sizes: the whole packet, for DATA without payload. */
#define HOMA_COMMON_HDR 28
#define HOMA_DATA_HDR 56
#define HOMA_GRANT_LEN 33
#define HOMA_RESEND_LEN 37
#define HOMA_CUTOFFS_LEN 62
#define HOMA_ACK_LEN 80
#define HOMA_START_LEN 32
#define HOMA_MAX_HDR 80

#define HOMA_WIRE_AT(type, member, offset)                                        \
	HOMA_STATIC_ASSERT(offsetof(struct homa_wire_##type, member) == (offset), \
			   #type "." #member " is at byte " #offset)

HOMA_WIRE_AT(common, sequence, 4);
HOMA_WIRE_AT(common, type, 11);
HOMA_WIRE_AT(common, doff, 12);
HOMA_WIRE_AT(common, flags, 13);
HOMA_WIRE_AT(common, window, 14);
HOMA_WIRE_AT(common, checksum, 16);
HOMA_WIRE_AT(common, urgent, 18);
HOMA_WIRE_AT(common, sender_id, 20);
HOMA_WIRE_AT(data, length, 28);
HOMA_WIRE_AT(data, incoming, 32);
HOMA_WIRE_AT(data, ack, 36);
HOMA_WIRE_AT(data, cutoff_version, 46);
HOMA_WIRE_AT(data, retransmit, 48);
HOMA_WIRE_AT(data, ext, 49);
HOMA_WIRE_AT(data, resp_limit_kib, 50);
HOMA_WIRE_AT(data, seg_offset, 52);
HOMA_WIRE_AT(grant, priority, 32);
HOMA_WIRE_AT(resend, length, 32);
HOMA_WIRE_AT(resend, priority, 36);
HOMA_WIRE_AT(cutoffs, cutoff, 28);
HOMA_WIRE_AT(cutoffs, version, 60);
HOMA_WIRE_AT(acks, num, 28);
HOMA_WIRE_AT(acks, ack, 30);
HOMA_WIRE_AT(start, length, 28);
HOMA_STATIC_ASSERT(sizeof(struct homa_wire_common) == HOMA_COMMON_HDR, "size");
HOMA_STATIC_ASSERT(sizeof(struct homa_wire_ack) == 10, "size");
HOMA_STATIC_ASSERT(sizeof(struct homa_wire_data) == HOMA_DATA_HDR, "size");
HOMA_STATIC_ASSERT(sizeof(struct homa_wire_grant) == HOMA_GRANT_LEN, "size");
HOMA_STATIC_ASSERT(sizeof(struct homa_wire_resend) == HOMA_RESEND_LEN, "size");
HOMA_STATIC_ASSERT(sizeof(struct homa_wire_cutoffs) == HOMA_CUTOFFS_LEN, "size");
HOMA_STATIC_ASSERT(sizeof(struct homa_wire_acks) == HOMA_ACK_LEN, "size");
HOMA_STATIC_ASSERT(sizeof(struct homa_wire_start) == HOMA_START_LEN, "size");
HOMA_STATIC_ASSERT(HOMA_MAX_HDR >= HOMA_ACK_LEN, "largest header");

#endif
