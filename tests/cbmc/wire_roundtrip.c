/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Any packet that homa_packet_encode() may be given fits in HOMA_MAX_HDR bytes, and decodes
 * to the same values.
 *
 * cbmc: engine/wire/homa/homa_codec.c --unwind 10
 */
#include "homa_codec.h"
#include "proof.h"

#define PAYLOAD 1u /* of DATA: any other is the same to the header */

static void any_data(struct homa_data *d, bool client)
{
	d->length = nondet_u32();
	d->incoming = nondet_u32();
	d->offset = nondet_u32();
	d->payload_len = PAYLOAD;
	d->ack.client_id = nondet_u64();
	d->ack.server_port = nondet_u16();
	d->cutoff_version = nondet_u16();
	d->resp_limit_kib = nondet_u16();
	d->retransmit = nondet_bool();
	d->incast = nondet_bool();
	d->sender_congested = nondet_bool();
	d->may_reject = false;
	d->left = client ? nondet_u16() : 0;
	given(d->length >= 1 && d->length <= HOMA_MAX_WIRE_LENGTH);
	given(d->offset < d->length && d->incoming <= d->length);
}

static void any_control(struct homa_packet *p)
{
	u32 i;

	switch (p->hdr.type) {
	case HOMA_GRANT:
		p->grant.offset = nondet_u32();
		p->grant.priority = nondet_u8();
		given(p->grant.offset <= HOMA_MAX_WIRE_LENGTH);
		given(p->grant.priority < HOMA_PRIORITIES);
		break;
	case HOMA_RESEND:
		p->resend.offset = nondet_u32();
		p->resend.length = nondet_u32();
		p->resend.priority = nondet_u8();
		given(p->resend.offset <= HOMA_MAX_WIRE_LENGTH);
		given(p->resend.length <= HOMA_MAX_WIRE_LENGTH ||
		      p->resend.length == HOMA_RESEND_ALL);
		given(p->resend.priority < HOMA_PRIORITIES);
		break;
	case HOMA_CUTOFFS:
		for (i = 0; i < HOMA_PRIORITIES; i++) {
			p->cutoffs.cutoff[i] = nondet_u32();
			given(p->cutoffs.cutoff[i] <= HOMA_MAX_WIRE_LENGTH);
		}
		p->cutoffs.version = nondet_u16();
		break;
	case HOMA_ACK:
		p->ack.num = nondet_u16();
		given(p->ack.num <= HOMA_MAX_ACKS);
		for (i = 0; i < HOMA_MAX_ACKS; i++) {
			p->ack.ack[i].client_id = nondet_u64();
			p->ack.ack[i].server_port = nondet_u16();
		}
		break;
	case HOMA_START_MSG:
		p->start.length = nondet_u32();
		given(p->start.length >= 1 &&
		      p->start.length <= HOMA_MAX_WIRE_LENGTH);
		break;
	}
}

static void same_data(const struct homa_data *a, const struct homa_data *b)
{
	prove(a->length == b->length && a->incoming == b->incoming);
	prove(a->offset == b->offset && a->payload_len == b->payload_len);
	prove(a->ack.client_id == b->ack.client_id &&
	      a->ack.server_port == b->ack.server_port);
	prove(a->cutoff_version == b->cutoff_version);
	prove(a->resp_limit_kib == b->resp_limit_kib);
	prove(a->retransmit == b->retransmit && a->incast == b->incast);
	prove(a->sender_congested == b->sender_congested && a->left == b->left);
}

static void same_control(const struct homa_packet *a, const struct homa_packet *b)
{
	u32 i;

	switch (a->hdr.type) {
	case HOMA_GRANT:
		prove(a->grant.offset == b->grant.offset);
		prove(a->grant.priority == b->grant.priority);
		break;
	case HOMA_RESEND:
		prove(a->resend.offset == b->resend.offset);
		prove(a->resend.length == b->resend.length);
		prove(a->resend.priority == b->resend.priority);
		break;
	case HOMA_CUTOFFS:
		for (i = 0; i < HOMA_PRIORITIES; i++)
			prove(a->cutoffs.cutoff[i] == b->cutoffs.cutoff[i]);
		prove(a->cutoffs.version == b->cutoffs.version);
		break;
	case HOMA_ACK:
		prove(a->ack.num == b->ack.num);
		for (i = 0; i < a->ack.num; i++) {
			prove(a->ack.ack[i].client_id == b->ack.ack[i].client_id);
			prove(a->ack.ack[i].server_port ==
			      b->ack.ack[i].server_port);
		}
		break;
	case HOMA_START_MSG:
		prove(a->start.length == b->start.length);
		break;
	}
}

int main(void)
{
	u8 *buf = malloc(HOMA_MAX_HDR);
	struct homa_packet in, out;
	u32 len;

	in.hdr.sport = nondet_u16();
	in.hdr.dport = nondet_u16();
	in.hdr.sender_id = nondet_u64();
	in.hdr.type = nondet_u8();
	if (in.hdr.type == HOMA_DATA)
		any_data(&in.data, !(in.hdr.sender_id & 1));
	else
		any_control(&in);
	len = homa_packet_encode(buf, &in);
	prove(len <= HOMA_MAX_HDR);
	if (!len) {
		prove(in.hdr.type < HOMA_TYPE_FIRST ||
		      in.hdr.type >= HOMA_TYPE_FIRST + HOMA_TYPES);
		return 0;
	}
	if (in.hdr.type == HOMA_DATA)
		len += PAYLOAD;
	prove(homa_packet_decode(&out, buf, len) == 0);
	prove(in.hdr.sport == out.hdr.sport && in.hdr.dport == out.hdr.dport);
	prove(in.hdr.sender_id == out.hdr.sender_id &&
	      in.hdr.type == out.hdr.type);
	if (in.hdr.type == HOMA_DATA)
		same_data(&in.data, &out.data);
	else
		same_control(&in, &out);
	reached();
	return 0;
}
