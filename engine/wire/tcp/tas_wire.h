/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * TCP segments on the wire (RFC 9293, options of RFC 7323 and RFC 2018): one decoder
 * and one encoder. The decoder believes nothing: lengths are checked before they are
 * used, and options that do not fit are an error or, where the RFCs say so, ignored.
 * Sequence numbers are compared modulo 2^32 (RFC 9293, 3.4).
 *
 * Written by: the decoder or who wants to encode, into a variable of one call.
 */
#ifndef HOMA_TAS_WIRE_H
#define HOMA_TAS_WIRE_H

#include "homa_plat.h"

#define TAS_HDR 20u	   /* bytes of the header without options */
#define TAS_HDR_MAX 60u	   /* bytes of the longest header */
#define TAS_SACKS 4u	   /* most blocks of one SACK option */
#define TAS_WSCALE_MAX 14u /* largest shift of a window (RFC 7323, 2.3) */

enum tas_flags {
	TAS_FIN = 0x01,
	TAS_SYN = 0x02,
	TAS_RST = 0x04,
	TAS_PSH = 0x08,
	TAS_ACK = 0x10,
	TAS_URG = 0x20,
	TAS_ECE = 0x40,
	TAS_CWR = 0x80,
};

/* Which options a segment has; see struct tas_segment. */
enum tas_options {
	TAS_OPT_MSS = 1,
	TAS_OPT_WSCALE = 2,
	TAS_OPT_SACK_OK = 4,
	TAS_OPT_TS = 8,
	TAS_OPT_SACK = 16,
};

/** struct tas_range - sequence numbers from @start up to and without @end */
struct tas_range {
	u32 start;
	u32 end;
};

/**
 * struct tas_segment - a segment's header, in host order
 * @sport: port of the sender.
 * @dport: port of the receiver.
 * @seq: sequence number of the first byte of payload.
 * @ack: acknowledgment number.
 * @length: number of bytes of payload.
 * @window: window as it stands in the header, not scaled.
 * @payload: offset of the payload from the beginning of the header, in bytes.
 * @urgent: urgent pointer; it means something only with TAS_URG.
 * @flags: bits TAS_FIN to TAS_CWR.
 * @options: bits TAS_OPT_* of the options that are there and sound.
 * @wscale: shift of windows, with TAS_OPT_WSCALE; more than 14 counts as 14.
 * @num_sacks: number of entries of @sack that are filled.
 * @mss: largest segment that the sender takes, in bytes, with TAS_OPT_MSS.
 * @ts: timestamp of the sender, with TAS_OPT_TS.
 * @ts_echo: timestamp that the sender echoes, with TAS_OPT_TS.
 * @sack: blocks of TAS_OPT_SACK in the order in which they stand there.
 */
struct tas_segment {
	u16 sport;
	u16 dport;
	u32 seq;
	u32 ack;
	u32 length;
	u16 window;
	u16 payload;
	u16 urgent;
	u8 flags;
	u8 options;
	u8 wscale;
	u8 num_sacks;
	u16 mss;
	u32 ts;
	u32 ts_echo;
	struct tas_range sack[TAS_SACKS];
};

static inline bool tas_before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

static inline bool tas_after(u32 a, u32 b)
{
	return (s32)(a - b) > 0;
}

/** tas_decode() - read a header
 * @packet: header and payload.
 * @length: length of @packet, in bytes.
 * Returns 0, or -1 if @packet is no segment: it is too short, or its data or an option would
 * reach beyond its end. What is in @seg is undefined then.
 */
int tas_decode(struct tas_segment *seg, const void *packet, u32 length);

/** tas_encode() - write a header, with a checksum of 0
 * @buf: room for TAS_HDR_MAX bytes.
 * SACK blocks that do not fit behind the other options are left out. Returns the
 * length, a multiple of 4.
 */
u32 tas_encode(const struct tas_segment *seg, void *buf);

#endif
