// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Answers of the C code, for the tests of the hardware.
 */
#include "hw_oracle.h"

void hw_decode(struct hw_decoded *out, const void *buf, uint32_t len)
{
	struct homa_packet p;
	int err = homa_packet_decode(&p, buf, len);

	memset(out, 0, sizeof(*out));
	if (err) {
		out->error = (uint32_t)-err;
		return;
	}
	out->type = p.hdr.type;
	out->hdr_len = p.hdr.hdr_len;
	out->sport = p.hdr.sport;
	out->dport = p.hdr.dport;
	out->sender_id = p.hdr.sender_id;
	switch (p.hdr.type) {
	case HOMA_DATA:
		out->offset = p.data.offset;
		out->length = p.data.length;
		out->incoming = p.data.incoming;
		break;
	case HOMA_GRANT:
		out->offset = p.grant.offset;
		out->level = p.grant.priority;
		break;
	case HOMA_RESEND:
		out->offset = p.resend.offset;
		out->length = p.resend.length;
		out->level = p.resend.priority;
		break;
	case HOMA_START_MSG:
		out->length = p.start.length;
		break;
	}
}

void hw_segment(void *out, const void *hdr, uint32_t skip)
{
	const struct homa_wire_data *w = hdr;
	struct homa_tx_desc desc = { .hdr_len = HOMA_DATA_HDR };

	memcpy(desc.hdr, hdr, HOMA_DATA_HDR);
	desc.offset = homa_get_be32(&w->seg_offset);
	if (desc.offset == HOMA_OFFSET_IN_SEQUENCE)
		desc.offset = homa_get_be32(&w->common.sequence);
	homa_tx_segment(&desc, skip, out);
}
