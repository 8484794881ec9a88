/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Packets as values: what the engine reasons about, and the only functions
 * that turn received bytes into them. Decoding checks or clamps every field,
 * so that the engine may compute with what it gets: no length is 0 or above
 * HOMA_MAX_WIRE_LENGTH, no range leaves its message, no sum of an offset and a
 * length overflows 32 bits, no priority or count indexes past its array.
 *
 * Written by: the decoder or who wants to encode, into a variable of one call.
 */
#ifndef HOMA_CODEC_H
#define HOMA_CODEC_H

#include "homa_wire.h"

/*
 * Why a packet does not decode: one drop counter each. X(NAME, name, text).
 */
#define HOMA_WIRE_ERRORS(X)                                                \
	X(SHORT, short, "packet ends before the fields of its type do")    \
	X(TYPE, type, "unknown packet type")                               \
	X(LENGTH, length, "message length is 0 or above 2^31 - 1")         \
	X(OFFSET, offset, "payload reaches beyond the end of its message") \
	X(EMPTY, empty, "DATA without payload")                            \
	X(COUNT, count, "ACK says that it carries more than five acks")

/* clang-format off */
enum homa_wire_error {
	HOMA_WIRE_OK = 0,
#define HOMA_WIRE_ENUM(NAME, name, text) HOMA_WIRE_##NAME,
	HOMA_WIRE_ERRORS(HOMA_WIRE_ENUM)
#undef HOMA_WIRE_ENUM
	HOMA_WIRE_ERROR_LIMIT,
};
/* clang-format on */

/**
 * struct homa_hdr - what all packets have (the rest: struct homa_wire_raw)
 * @sport: port of the sender.
 * @dport: port of the receiver.
 * @sender_id: the RPC's id at the sender.
 * @type: type of the packet, an enum homa_type.
 * @hdr_len: bytes of header and body, without payload; only homa_packet_decode() sets it.
 */
struct homa_hdr {
	u16 sport;
	u16 dport;
	u64 sender_id;
	u8 type;
	u8 hdr_len;
};

/**
 * struct homa_ack - one finished RPC
 * @client_id: its id at the client, even; 0 means none.
 * @server_port: port of the server's socket.
 */
struct homa_ack {
	u64 client_id;
	u16 server_port;
};

/**
 * struct homa_data - body of DATA
 * @length: bytes in the message, 1..HOMA_MAX_WIRE_LENGTH.
 * @incoming: the sender sends the bytes before this offset unasked; at most @length; 0 from
 *	senders of wholly scheduled messages.
 * @offset: message offset of the payload, whichever field carried it.
 * @payload_len: at least 1; @offset + @payload_len <= @length.
 * @ack: an RPC that the sender has finished.
 * @cutoff_version: version of the receiver's CUTOFFS that the sender has; 0: it has none.
 * @resp_limit_kib: extension: unscheduled bytes that the response may have, in KiB; 0: the
 *	server decides.
 * @error: extension, from servers: the server's application rejects the request with this
 *	errno, at most HOMA_MAX_ERRNO, and the payload means nothing; 0: it does not.
 * @left: extension, from clients: how much longer the client waits for the response, for
 *	homa_left_ns(); 0: it does not say.
 * @retransmit: the packet answers a RESEND or an RPC_UNKNOWN.
 * @incast: extension: the client has many RPCs open.
 * @sender_congested: extension: the sender's uplink is the bottleneck.
 * @may_reject: extension: the client understands a rejection; in packets with the
 *	first byte of a request, where others need not have it.
 * @wishes: @may_reject, @resp_limit_kib or @left is set; decoding only.
 */
struct homa_data {
	u32 length;
	u32 incoming;
	u32 offset;
	u32 payload_len;
	struct homa_ack ack;
	u16 cutoff_version;
	u16 resp_limit_kib;
	union {
		u16 error;
		u16 left;
	};
	bool retransmit;
	bool incast;
	bool sender_congested;
	bool may_reject;
	bool wishes;
};

/** struct homa_grant - GRANT: @offset <= HOMA_MAX_WIRE_LENGTH, @priority 0..7 */
struct homa_grant {
	u32 offset;
	u8 priority;
};

/**
 * struct homa_resend - RESEND
 * @offset: first byte wanted, at most HOMA_MAX_WIRE_LENGTH.
 * @length: at most HOMA_MAX_WIRE_LENGTH (so @offset + @length fits 32 bits),
 *	or HOMA_RESEND_ALL.
 * @priority: 0..7.
 */
struct homa_resend {
	u32 offset;
	u32 length;
	u8 priority;
};

/**
 * struct homa_cutoffs - CUTOFFS
 * @cutoff: longest message in bytes that goes at each level, at most HOMA_MAX_WIRE_LENGTH.
 * @version: which CUTOFFS of the sender they are, to be echoed in DATA.
 */
struct homa_cutoffs {
	u32 cutoff[HOMA_PRIORITIES];
	u16 version;
};

/** struct homa_acks - ACK: @num of @ack are valid, 0..HOMA_MAX_ACKS */
struct homa_acks {
	u16 num;
	struct homa_ack ack[HOMA_MAX_ACKS];
};

/** struct homa_start - START_MSG: @length is 1..HOMA_MAX_WIRE_LENGTH */
struct homa_start {
	u32 length;
};

/**
 * struct homa_packet - any packet; the member for hdr.type is valid
 * @hdr: what all packets have.
 */
struct homa_packet {
	struct homa_hdr hdr;
	union {
		/* Body of DATA. */
		struct homa_data data;
		/* Body of GRANT. */
		struct homa_grant grant;
		/* Body of RESEND. */
		struct homa_resend resend;
		/* Body of CUTOFFS. */
		struct homa_cutoffs cutoffs;
		/* Body of ACK. */
		struct homa_acks ack;
		/* Body of START_MSG. */
		struct homa_start start;
	};
};

/**
 * homa_packet_decode() - check a received packet and read its fields
 * @p: receives the values; unspecified after an error.
 * @buf: first byte of the Homa header, any alignment.
 * @len: bytes from there to the end of the packet. Bytes after a control
 *	packet's last field are ignored; DATA's payload is what is left.
 *
 * Reads only @len bytes of @buf, at most HOMA_MAX_HDR. Returns 0 or a negative
 * enum homa_wire_error.
 */
HOMA_HOT int homa_packet_decode(struct homa_packet *p, const void *buf, u32 len);
/** homa_data_decode() - do the same for a packet whose type was seen to be DATA */
HOMA_HOT int homa_data_decode(struct homa_hdr *hdr, struct homa_data *data,
			      const void *buf, u32 len);

/**
 * homa_packet_encode() - write the header of a packet
 * @buf: HOMA_MAX_HDR bytes.
 * @p: hdr.sport, dport, sender_id, type and the body; values as decode
 *	would return them. DATA's payload_len is not on the wire.
 *
 * DATA gets its offset both in sequence and in seg.offset. The checksum is 0
 * (see homa_wire_raw.h). Returns bytes written, 0 for an unknown type.
 */
u32 homa_packet_encode(void *buf, const struct homa_packet *p);

/**
 * homa_data_segment() - turn an encoded DATA header into that of another
 *	segment of the same message
 * @hdr: HOMA_DATA_HDR bytes that homa_packet_encode() wrote.
 * @offset: message offset of the segment's payload.
 */
static inline void homa_data_segment(void *hdr, u32 offset)
{
	struct homa_wire_data *w = hdr;

	homa_put_be32(&w->common.sequence, offset);
	homa_put_be32(&w->seg_offset, offset);
}

/**
 * homa_data_begin() - write the header that the DATA packets of a message have in common
 * @buf: HOMA_DATA_HDR bytes.
 * @hdr: ports and id of the sender.
 * @life: as for homa_wire_set_life().
 * @d: length, incoming, resp_limit_kib at a client or error at a server, incast; other members
 *	are not read, and what they stand for is 0 in the header.
 */
static inline void homa_data_begin(void *buf, const struct homa_hdr *hdr,
				   u32 life, const struct homa_data *d)
{
	struct homa_wire_data *w = buf;
	u32 rare = hdr->sender_id & 1 ? d->error : d->resp_limit_kib;

	if (unlikely(rare) && hdr->sender_id & 1)
		rare |= HOMA_EXT_REJECT << 16;
	if (unlikely(d->incast))
		rare |= HOMA_EXT_INCAST << 16;
	homa_put_be16(&w->common.sport, hdr->sport);
	homa_put_be16(&w->common.dport, hdr->dport);
	homa_put_be32(w->common.ack_high, life << 8 | HOMA_DATA);
	homa_put_be32(&w->common.doff,
		      (u32)HOMA_DOFF_DATA << 28 | HOMA_FLAGS << 16);
	homa_put_be32(&w->common.checksum, HOMA_URGENT);
	homa_put_be64(&w->common.sender_id, hdr->sender_id);
	homa_put_be32(&w->length, d->length);
	homa_put_be32(&w->incoming, d->incoming);
	homa_put_be64(&w->ack.client_id, 0);
	/* The ack's port and the version of the cutoffs. */
	homa_put_be32(&w->ack.server_port, 0);
	homa_put_be32(&w->retransmit, rare);
	homa_data_segment(buf, 0);
}

/** homa_data_set_ack() - replace the acknowledgment of an encoded DATA header */
static inline void homa_data_set_ack(void *hdr, const struct homa_ack *ack)
{
	struct homa_wire_data *w = hdr;

	homa_put_be64(&w->ack.client_id, ack->client_id);
	homa_put_be16(&w->ack.server_port, ack->server_port);
}

/** homa_peek_type() - type byte of a packet of at least 12 bytes, unchecked */
static inline u8 homa_peek_type(const void *buf)
{
	return ((const struct homa_wire_common *)buf)->type;
}

/** homa_type_name() - "DATA", "GRANT", ...; "?" if unknown */
const char *homa_type_name(u8 type);
/** homa_wire_error_text() - a sentence for a (positive) enum homa_wire_error */
const char *homa_wire_error_text(int error);

#endif
