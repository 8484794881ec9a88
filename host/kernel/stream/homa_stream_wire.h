/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* The header of messages of streams; docs/protocol.md, "Streams over Homa". */
#ifndef HOMA_STREAM_WIRE_H
#define HOMA_STREAM_WIRE_H

#include <linux/build_bug.h>
#include <linux/types.h>

#define HOMAK_STREAM_MAGIC 0x4853
#define HOMAK_STREAM_VERSION 1

enum homak_stream_kind {
	HOMAK_STREAM_OPEN = 1, /* a request for a new connection */
	HOMAK_STREAM_DATA, /* a request to a connection, with bytes of the stream or without */
	HOMAK_STREAM_ANSWER, /* the response to either */
};

/* Bits of homak_stream_hdr.flags of a DATA. */
#define HOMAK_STREAM_FIN 1 /* the stream ends behind these bytes */
#define HOMAK_STREAM_RESET \
	2 /* the connection is given up, and bytes may be lost */
#define HOMAK_STREAM_FLAGS 3 /* all bits that there are */

/*
 * struct homak_stream_hdr - the beginning of each message. Written by: who sends it, in memory of
 * its own; who receives one has a copy.
 * @magic: the number HOMAK_STREAM_MAGIC, by which a message of a stream is known.
 * @version: the number HOMAK_STREAM_VERSION.
 * @kind: an enum homak_stream_kind.
 * @flags: in DATA bits HOMAK_STREAM_FIN and HOMAK_STREAM_RESET, else 0.
 * @status: in an answer 0, or a positive errno that says why the request is refused.
 * @key: in DATA the key of the receiver's connection (homak_conn.key).
 * @zero: always 0.
 * @secret: in DATA the secret of the receiver's connection (homak_conn.secret).
 * @offset: in DATA the offset in the stream at which the payload begins, in bytes. In an answer
 *	to DATA the offset up to which all bytes have come.
 * @edge: the offset up to which the receiver of this message may send bytes.
 */
struct homak_stream_hdr {
	__be16 magic;
	u8 version;
	u8 kind;
	__be16 flags;
	__be16 status;
	__be32 key;
	__be32 zero;
	__be64 secret;
	__be64 offset;
	__be64 edge;
};

/*
 * struct homak_stream_open - what follows the header in OPEN and in the answer to it: the sender's
 * end. Written by: who sends it; constant after that.
 * @key: the key of the sender's connection, which the other end's requests name.
 * @zero: always 0.
 * @secret: the secret of the sender's connection, which they name, too.
 */
struct homak_stream_open {
	__be32 key;
	__be32 zero;
	__be64 secret;
};

#define HOMAK_STREAM_HDR 40u
static_assert(sizeof(struct homak_stream_hdr) == HOMAK_STREAM_HDR);
static_assert(sizeof(struct homak_stream_open) == 16);

/* A message takes one page of a receive region. */
#define HOMAK_STREAM_CHUNK (65536u - HOMAK_STREAM_HDR)
/* Offsets never come near to where they would wrap. */
#define HOMAK_STREAM_OFFSETS (1ull << 62)

static inline void homak_stream_hdr_init(struct homak_stream_hdr *hdr, u8 kind)
{
	*hdr = (struct homak_stream_hdr){
		.magic = cpu_to_be16(HOMAK_STREAM_MAGIC),
		.version = HOMAK_STREAM_VERSION,
		.kind = kind,
	};
}

static inline bool homak_stream_hdr_valid(const struct homak_stream_hdr *hdr)
{
	return hdr->magic == cpu_to_be16(HOMAK_STREAM_MAGIC) &&
	       hdr->version == HOMAK_STREAM_VERSION;
}

#endif
