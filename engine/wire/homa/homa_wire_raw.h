/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The header fields that the protocol ignores: kept apart from struct
 * homa_packet, so that the packet path does not carry them. They matter to
 * whoever must reproduce or judge a packet byte by byte - tests against
 * captures, traces, a sender disguised as TCP, whose checksum must be right.
 *
 * Written by: the decoder or who wants to encode, into a variable of one call.
 */
#ifndef HOMA_WIRE_RAW_H
#define HOMA_WIRE_RAW_H

#include "homa_codec.h"

/**
 * struct homa_wire_raw - fields as they stand in the packet
 * @sequence, @seg_offset: both forms of DATA's offset; @seg_offset is valid
 *	for DATA only.
 * @window, @checksum, @urgent: see struct homa_wire_common.
 * @doff: the whole byte; the data offset is its high nibble.
 * @flags, @ack_high: see struct homa_wire_common.
 */
struct homa_wire_raw {
	u32 sequence;
	u32 seg_offset;
	u16 window;
	u16 checksum;
	u16 urgent;
	u8 doff;
	u8 flags;
	u8 ack_high[3];
};

/** homa_wire_raw_get() - read them from a packet that decodes */
void homa_wire_raw_get(struct homa_wire_raw *raw, const void *buf);

/** homa_wire_raw_put() - write them over those of an encoded header */
void homa_wire_raw_put(void *buf, const struct homa_wire_raw *raw);

/**
 * homa_wire_checksum() - the TCP checksum that the packet would have as TCP
 * @packet: Homa header and payload; its checksum field counts as zero.
 * @len: bytes, at least HOMA_COMMON_HDR.
 * @src, @dst: addresses in network order.
 * @addr_len: 4 or 16.
 *
 * The pseudo-header says protocol 6 whatever the IP header says. Returns the
 * value for the checksum field, host order.
 */
u16 homa_wire_checksum(const void *packet, u32 len, const void *src,
		       const void *dst, u32 addr_len);

/**
 * homa_wire_pseudo_sum() - folded sum of the pseudo-header alone: what the
 *	field holds while the device is still to complete the checksum
 */
u16 homa_wire_pseudo_sum(u32 len, const void *src, const void *dst, u32 addr_len);

#endif
