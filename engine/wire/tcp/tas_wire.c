// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#include "tas_wire.h"

enum {
	OPT_END = 0,
	OPT_NOP = 1,
	OPT_MSS = 2,
	OPT_WSCALE = 3,
	OPT_SACK_OK = 4,
	OPT_SACK = 5,
	OPT_TS = 8,
};

enum {
	LEN_MSS = 4,
	LEN_WSCALE = 3,
	LEN_SACK_OK = 2,
	LEN_TS = 10,
	LEN_BLOCK = 8, /* of a SACK, behind two bytes of kind and length */
};

/* NOP, NOP, kind, length: how options are usually aligned to four bytes. */
#define NOP_NOP (OPT_NOP << 24 | OPT_NOP << 16)
#define TS_WORD (NOP_NOP | OPT_TS << 8 | LEN_TS)

static void decode_sack(struct tas_segment *seg, const u8 *opt, u32 len)
{
	u32 i, blocks = (len - 2) / LEN_BLOCK;

	if (len < 2 + LEN_BLOCK || (len - 2) % LEN_BLOCK)
		return;
	for (i = 0; i < blocks && i < TAS_SACKS; i++) {
		seg->sack[i].start = homa_get_be32(opt + 2 + i * LEN_BLOCK);
		seg->sack[i].end = homa_get_be32(opt + 6 + i * LEN_BLOCK);
	}
	seg->num_sacks = (u8)i;
	seg->options |= TAS_OPT_SACK;
}

/* An option whose length is not the one that it must have is ignored. */
static void decode_option(struct tas_segment *seg, const u8 *opt, u32 len)
{
	switch (opt[0]) {
	case OPT_MSS:
		if (len != LEN_MSS || !(seg->flags & TAS_SYN))
			return;
		seg->mss = homa_get_be16(opt + 2);
		if (seg->mss)
			seg->options |= TAS_OPT_MSS;
		return;
	case OPT_WSCALE:
		if (len != LEN_WSCALE || !(seg->flags & TAS_SYN))
			return;
		seg->wscale = (u8)homa_min_u32(opt[2], TAS_WSCALE_MAX);
		seg->options |= TAS_OPT_WSCALE;
		return;
	case OPT_SACK_OK:
		if (len == LEN_SACK_OK && (seg->flags & TAS_SYN))
			seg->options |= TAS_OPT_SACK_OK;
		return;
	case OPT_SACK:
		decode_sack(seg, opt, len);
		return;
	case OPT_TS:
		if (len != LEN_TS)
			return;
		seg->ts = homa_get_be32(opt + 2);
		seg->ts_echo = homa_get_be32(opt + 6);
		seg->options |= TAS_OPT_TS;
		return;
	}
}

static int decode_options(struct tas_segment *seg, const u8 *opt, u32 left)
{
	u32 len;

	/* What nearly every segment of a connection with timestamps has. */
	if (likely(left == 12 && homa_get_be32(opt) == TS_WORD)) {
		seg->ts = homa_get_be32(opt + 4);
		seg->ts_echo = homa_get_be32(opt + 8);
		seg->options = TAS_OPT_TS;
		return 0;
	}
	while (left && opt[0] != OPT_END) {
		if (opt[0] == OPT_NOP) {
			opt++;
			left--;
			continue;
		}
		if (left < 2 || opt[1] < 2 || opt[1] > left)
			return -1;
		len = opt[1];
		decode_option(seg, opt, len);
		opt += len;
		left -= len;
	}
	return 0;
}

int tas_decode(struct tas_segment *seg, const void *packet, u32 length)
{
	const u8 *p = packet;
	u32 header;

	if (unlikely(length < TAS_HDR))
		return -1;
	header = (u32)(p[12] >> 4) * 4;
	if (unlikely(header < TAS_HDR || header > length))
		return -1;
	seg->sport = homa_get_be16(p);
	seg->dport = homa_get_be16(p + 2);
	seg->seq = homa_get_be32(p + 4);
	seg->ack = homa_get_be32(p + 8);
	seg->flags = p[13];
	seg->window = homa_get_be16(p + 14);
	seg->payload = (u16)header;
	seg->urgent = homa_get_be16(p + 18);
	seg->length = length - header;
	seg->options = 0;
	seg->num_sacks = 0;
	return header > TAS_HDR ?
		       decode_options(seg, p + TAS_HDR, header - TAS_HDR) :
		       0;
}

static u8 *encode_sacks(const struct tas_segment *seg, u8 *opt, u32 room)
{
	u32 i, blocks = homa_min_u32(seg->num_sacks, TAS_SACKS);

	if (room < 4 + LEN_BLOCK || !blocks)
		return opt;
	blocks = homa_min_u32(blocks, (room - 4) / LEN_BLOCK);
	homa_put_be32(opt, NOP_NOP | OPT_SACK << 8 | (2 + blocks * LEN_BLOCK));
	opt += 4;
	for (i = 0; i < blocks; i++, opt += LEN_BLOCK) {
		homa_put_be32(opt, seg->sack[i].start);
		homa_put_be32(opt + 4, seg->sack[i].end);
	}
	return opt;
}

/* The order in which Linux puts them, so that who looks at both sees the same. */
static u8 *encode_options(const struct tas_segment *seg, u8 *opt)
{
	const u8 *begin = opt;

	if (seg->options & TAS_OPT_MSS) {
		homa_put_be32(opt, OPT_MSS << 24 | LEN_MSS << 16 | seg->mss);
		opt += 4;
	}
	if (seg->options & TAS_OPT_TS) {
		/* A SYN has "SACK permitted" in the place of the two NOPs. */
		homa_put_be32(opt, seg->options & TAS_OPT_SACK_OK ?
					   OPT_SACK_OK << 24 | LEN_SACK_OK << 16 |
						   OPT_TS << 8 | LEN_TS :
					   TS_WORD);
		homa_put_be32(opt + 4, seg->ts);
		homa_put_be32(opt + 8, seg->ts_echo);
		opt += 12;
	} else if (seg->options & TAS_OPT_SACK_OK) {
		homa_put_be32(opt, NOP_NOP | OPT_SACK_OK << 8 | LEN_SACK_OK);
		opt += 4;
	}
	if (seg->options & TAS_OPT_WSCALE) {
		homa_put_be32(opt, OPT_NOP << 24 | OPT_WSCALE << 16 |
					   LEN_WSCALE << 8 | seg->wscale);
		opt += 4;
	}
	if (seg->options & TAS_OPT_SACK)
		opt = encode_sacks(seg, opt,
				   TAS_HDR_MAX - TAS_HDR - (u32)(opt - begin));
	return opt;
}

u32 tas_encode(const struct tas_segment *seg, void *buf)
{
	u8 *p = buf;
	u32 header = (u32)(encode_options(seg, p + TAS_HDR) - p);

	homa_put_be16(p, seg->sport);
	homa_put_be16(p + 2, seg->dport);
	homa_put_be32(p + 4, seg->seq);
	homa_put_be32(p + 8, seg->ack);
	p[12] = (u8)(header / 4 << 4);
	p[13] = seg->flags;
	homa_put_be16(p + 14, seg->window);
	homa_put_be32(p + 16, seg->urgent); /* behind the checksum */
	return header;
}
