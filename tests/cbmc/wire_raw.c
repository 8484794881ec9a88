/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The raw fields and the checksum of any packet of 28 to 64 bytes: nothing outside of it is
 * read or written, and the fields that were put are those that are got.
 *
 * cbmc: engine/wire/homa/homa_wire_raw.c --unwind 34
 */
#include "homa_wire_raw.h"
#include "proof.h"

#define LONGEST 64u

int main(void)
{
	u32 len = nondet_u32(), addr_len = nondet_bool() ? 4 : 16;
	struct homa_wire_raw in, out;
	u8 *buf, *src, *dst;

	given(len >= HOMA_COMMON_HDR && len <= LONGEST);
	buf = malloc(len);
	src = malloc(addr_len);
	dst = malloc(addr_len);
	given(buf[11] != HOMA_DATA || len >= HOMA_DATA_HDR);
	in.sequence = nondet_u32();
	in.seg_offset = nondet_u32();
	in.window = nondet_u16();
	in.checksum = nondet_u16();
	in.urgent = nondet_u16();
	in.doff = nondet_u8();
	in.flags = nondet_u8();
	in.ack_high[0] = nondet_u8();
	in.ack_high[1] = nondet_u8();
	in.ack_high[2] = nondet_u8();
	homa_wire_raw_put(buf, &in);
	homa_wire_raw_get(&out, buf);
	prove(in.sequence == out.sequence && in.window == out.window);
	prove(in.checksum == out.checksum && in.urgent == out.urgent);
	prove(in.doff == out.doff && in.flags == out.flags);
	prove(in.ack_high[0] == out.ack_high[0] &&
	      in.ack_high[2] == out.ack_high[2]);
	prove(buf[11] != HOMA_DATA || in.seg_offset == out.seg_offset);
	homa_wire_checksum(buf, len, src, dst, addr_len);
	reached();
	return 0;
}
