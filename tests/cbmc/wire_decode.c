/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * homa_packet_decode() of any bytes of any length: no byte beyond the packet or beyond
 * HOMA_MAX_HDR is read, nothing is undefined, and each value that comes out is within
 * the bounds of homa_codec.h, which the engine counts on.
 *
 * cbmc: engine/wire/homa/homa_codec.c --unwind 10
 */
#include "homa_codec.h"
#include "proof.h"

static void data_is_bounded(const struct homa_packet *p, u32 len)
{
	const struct homa_data *d = &p->data;

	prove(p->hdr.hdr_len == HOMA_DATA_HDR);
	prove(d->length >= 1 && d->length <= HOMA_MAX_WIRE_LENGTH);
	prove(d->payload_len >= 1 && d->payload_len == len - HOMA_DATA_HDR);
	prove(d->offset < d->length && d->payload_len <= d->length - d->offset);
	prove(d->incoming <= d->length);
}

static void control_is_bounded(const struct homa_packet *p)
{
	u32 i;

	switch (p->hdr.type) {
	case HOMA_GRANT:
		prove(p->grant.offset <= HOMA_MAX_WIRE_LENGTH);
		prove(p->grant.priority < HOMA_PRIORITIES);
		break;
	case HOMA_RESEND:
		prove(p->resend.offset <= HOMA_MAX_WIRE_LENGTH);
		prove(p->resend.length <= HOMA_MAX_WIRE_LENGTH ||
		      p->resend.length == HOMA_RESEND_ALL);
		prove(p->resend.priority < HOMA_PRIORITIES);
		break;
	case HOMA_CUTOFFS:
		for (i = 0; i < HOMA_PRIORITIES; i++)
			prove(p->cutoffs.cutoff[i] <= HOMA_MAX_WIRE_LENGTH);
		break;
	case HOMA_ACK:
		prove(p->ack.num <= HOMA_MAX_ACKS);
		break;
	case HOMA_START_MSG:
		prove(p->start.length >= 1 &&
		      p->start.length <= HOMA_MAX_WIRE_LENGTH);
		break;
	}
}

int main(void)
{
	struct homa_packet p;
	u32 len = nondet_u32();
	u8 *buf = malloc(homa_min_u32(len, HOMA_MAX_HDR));
	int err = homa_packet_decode(&p, buf, len);

	prove(err <= 0 && err > -HOMA_WIRE_ERROR_LIMIT);
	if (err)
		return 0;
	prove(p.hdr.type >= HOMA_TYPE_FIRST &&
	      p.hdr.type < HOMA_TYPE_FIRST + HOMA_TYPES);
	prove(p.hdr.hdr_len <= len && p.hdr.hdr_len <= HOMA_MAX_HDR);
	if (p.hdr.type == HOMA_DATA)
		data_is_bounded(&p, len);
	else
		control_is_bounded(&p);
	reached();
	return 0;
}
