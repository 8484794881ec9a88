// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The codec of homa_codec.h. Every received packet passes through
 * homa_packet_decode() before anything else looks at it, so this is where
 * hostile bytes end: a packet leaves either as values within their documented
 * bounds or as a reason for a drop. What has a sensible nearest legal value
 * (a priority, a limit) is clamped, because peers of other revisions send
 * such values in good faith; what has none is refused.
 */
#include "homa_codec.h"

static u32 homa_clamp_length(u32 v)
{
	return homa_min_u32(v, HOMA_MAX_WIRE_LENGTH);
}

static u8 homa_clamp_priority(u8 v)
{
	return v < HOMA_PRIORITIES ? v : HOMA_PRIORITIES - 1;
}

static bool homa_length_ok(u32 length)
{
	return length - 1 < HOMA_MAX_WIRE_LENGTH;
}

static void homa_get_ack(struct homa_ack *ack, const struct homa_wire_ack *w)
{
	ack->client_id = homa_get_be64(&w->client_id);
	ack->server_port = homa_get_be16(&w->server_port);
}

static void homa_put_ack(struct homa_wire_ack *w, const struct homa_ack *ack)
{
	homa_put_be64(&w->client_id, ack->client_id);
	homa_put_be16(&w->server_port, ack->server_port);
}

static void homa_decode_common(struct homa_hdr *hdr,
			       const struct homa_wire_common *w)
{
	hdr->sport = homa_get_be16(&w->sport);
	hdr->dport = homa_get_be16(&w->dport);
	hdr->sender_id = homa_get_be64(&w->sender_id);
	hdr->type = w->type;
}

/* Reads fields that most DATA packets have not: only those that are sent again or begin a
 * request have them. */
static HOMA_HOT void homa_decode_rare(const struct homa_hdr *hdr,
				      struct homa_data *data,
				      const struct homa_wire_data *w)
{
	data->resp_limit_kib = homa_get_be16(&w->resp_limit_kib);
	data->retransmit = w->retransmit != 0;
	data->incast = (w->ext & HOMA_EXT_INCAST) != 0;
	data->sender_congested = (w->ext & HOMA_EXT_CONGESTED) != 0;
	data->may_reject = (w->ext & HOMA_EXT_REJECT) != 0;
	data->wishes = data->may_reject || data->resp_limit_kib;
	if (!(hdr->sender_id & 1)) {
		if (unlikely(w->ext & HOMA_EXT_LEFT)) {
			data->left = homa_get_be16(&w->common.window);
			data->wishes = true;
		}
	} else if (data->may_reject) {
		data->error =
			(u16)homa_min_u32(data->resp_limit_kib, HOMA_MAX_ERRNO);
		data->resp_limit_kib = 0;
	}
}

HOMA_HOT int homa_data_decode(struct homa_hdr *hdr, struct homa_data *data,
			      const void *buf, u32 len)
{
	const struct homa_wire_data *w = buf;
	u32 offset;
	u32 rare;

	if (unlikely(len <= HOMA_DATA_HDR))
		return len < HOMA_DATA_HDR ? -HOMA_WIRE_SHORT : -HOMA_WIRE_EMPTY;
	homa_decode_common(hdr, &w->common);
	hdr->hdr_len = HOMA_DATA_HDR;

	data->length = homa_get_be32(&w->length);
	if (unlikely(!homa_length_ok(data->length)))
		return -HOMA_WIRE_LENGTH;
	offset = homa_get_be32(&w->seg_offset);
	if (offset == HOMA_OFFSET_IN_SEQUENCE)
		offset = homa_get_be32(&w->common.sequence);
	data->offset = offset;
	data->payload_len = len - HOMA_DATA_HDR;
	if (unlikely((u64)offset + data->payload_len > data->length))
		return -HOMA_WIRE_OFFSET;
	data->incoming = homa_min_u32(homa_get_be32(&w->incoming), data->length);
	homa_get_ack(&data->ack, &w->ack);
	data->cutoff_version = homa_get_be16(&w->cutoff_version);
	data->resp_limit_kib = 0;
	data->error = 0; /* and left */
	data->retransmit = false;
	data->incast = false;
	data->sender_congested = false;
	data->may_reject = false;
	data->wishes = false;
	/* Nearly always all zero: retransmit, ext and resp_limit_kib. */
	memcpy(&rare, (const u8 *)w + offsetof(struct homa_wire_data, retransmit),
	       sizeof(rare));
	if (unlikely(rare))
		homa_decode_rare(hdr, data, w);
	return 0;
}

static int homa_decode_cutoffs(struct homa_cutoffs *cutoffs,
			       const struct homa_wire_cutoffs *w)
{
	int i;

	for (i = 0; i < HOMA_PRIORITIES; i++)
		cutoffs->cutoff[i] =
			homa_clamp_length(homa_get_be32(&w->cutoff[i]));
	cutoffs->version = homa_get_be16(&w->version);
	return 0;
}

static int homa_decode_acks(struct homa_acks *acks,
			    const struct homa_wire_acks *w)
{
	int i;

	acks->num = homa_get_be16(&w->num);
	if (acks->num > HOMA_MAX_ACKS)
		return -HOMA_WIRE_COUNT;
	for (i = 0; i < acks->num; i++)
		homa_get_ack(&acks->ack[i], &w->ack[i]);
	return 0;
}

static int homa_decode_start(struct homa_start *start,
			     const struct homa_wire_start *w)
{
	start->length = homa_get_be32(&w->length);
	return homa_length_ok(start->length) ? 0 : -HOMA_WIRE_LENGTH;
}

/* Number of bytes that a packet of each type must have. */
static u32 homa_type_size(u8 type)
{
	static const u8 size[HOMA_TYPES] = {
		[HOMA_DATA - HOMA_TYPE_FIRST] = HOMA_DATA_HDR,
		[HOMA_GRANT - HOMA_TYPE_FIRST] = HOMA_GRANT_LEN,
		[HOMA_RESEND - HOMA_TYPE_FIRST] = HOMA_RESEND_LEN,
		[HOMA_RPC_UNKNOWN - HOMA_TYPE_FIRST] = HOMA_COMMON_HDR,
		[HOMA_BUSY - HOMA_TYPE_FIRST] = HOMA_COMMON_HDR,
		[HOMA_CUTOFFS - HOMA_TYPE_FIRST] = HOMA_CUTOFFS_LEN,
		[HOMA_FREEZE - HOMA_TYPE_FIRST] = HOMA_COMMON_HDR,
		[HOMA_NEED_ACK - HOMA_TYPE_FIRST] = HOMA_COMMON_HDR,
		[HOMA_ACK - HOMA_TYPE_FIRST] = HOMA_ACK_LEN,
		[HOMA_START_MSG - HOMA_TYPE_FIRST] = HOMA_START_LEN,
	};
	u32 i = (u32)type - HOMA_TYPE_FIRST;

	return i < HOMA_TYPES ? size[i] : 0;
}

static int homa_decode_control(struct homa_packet *p, const void *buf, u32 len)
{
	const struct homa_wire_grant *grant = buf;
	const struct homa_wire_resend *resend = buf;
	u8 type = homa_peek_type(buf);
	u32 size = homa_type_size(type);

	if (!size)
		return -HOMA_WIRE_TYPE;
	if (len < size)
		return -HOMA_WIRE_SHORT;
	homa_decode_common(&p->hdr, buf);
	p->hdr.hdr_len = (u8)size;

	switch (type) {
	case HOMA_GRANT:
		p->grant.offset =
			homa_clamp_length(homa_get_be32(&grant->offset));
		p->grant.priority = homa_clamp_priority(grant->priority);
		return 0;
	case HOMA_RESEND:
		p->resend.offset =
			homa_clamp_length(homa_get_be32(&resend->offset));
		p->resend.length = homa_get_be32(&resend->length);
		if (p->resend.length != HOMA_RESEND_ALL)
			p->resend.length = homa_clamp_length(p->resend.length);
		p->resend.priority = homa_clamp_priority(resend->priority);
		return 0;
	case HOMA_CUTOFFS:
		return homa_decode_cutoffs(&p->cutoffs, buf);
	case HOMA_ACK:
		return homa_decode_acks(&p->ack, buf);
	case HOMA_START_MSG:
		return homa_decode_start(&p->start, buf);
	default:
		return 0;
	}
}

HOMA_HOT int homa_packet_decode(struct homa_packet *p, const void *buf, u32 len)
{
	if (unlikely(len < HOMA_COMMON_HDR))
		return -HOMA_WIRE_SHORT;
	if (likely(homa_peek_type(buf) == HOMA_DATA))
		return homa_data_decode(&p->hdr, &p->data, buf, len);
	return homa_decode_control(p, buf, len);
}

/* Bytes 0 to 27, all of them: none may carry what was in memory before. */
static void homa_encode_common(struct homa_wire_common *w,
			       const struct homa_hdr *hdr, u32 sequence, u32 doff)
{
	homa_put_be16(&w->sport, hdr->sport);
	homa_put_be16(&w->dport, hdr->dport);
	homa_put_be32(&w->sequence, sequence);
	/* Neighbours in one store: type; doff, flags, window; checksum, urgent. */
	homa_put_be32(w->ack_high, hdr->type);
	homa_put_be32(&w->doff, doff << 28 | HOMA_FLAGS << 16);
	homa_put_be32(&w->checksum, HOMA_URGENT);
	homa_put_be64(&w->sender_id, hdr->sender_id);
}

static u32 homa_encode_data(struct homa_wire_data *w, const struct homa_packet *p)
{
	const struct homa_data *data = &p->data;
	const bool client = !(p->hdr.sender_id & 1);
	const u32 error = client ? 0 : data->error;
	u32 rare = (u32)data->retransmit << 24 | data->resp_limit_kib | error;

	if (unlikely(data->incast))
		rare |= HOMA_EXT_INCAST << 16;
	if (unlikely(data->sender_congested))
		rare |= HOMA_EXT_CONGESTED << 16;
	if (data->may_reject || error)
		rare |= HOMA_EXT_REJECT << 16;
	homa_encode_common(&w->common, &p->hdr, data->offset, HOMA_DOFF_DATA);
	homa_put_be32(&w->length, data->length);
	homa_put_be32(&w->incoming, data->incoming);
	homa_put_ack(&w->ack, &data->ack);
	homa_put_be16(&w->cutoff_version, data->cutoff_version);
	/* retransmit, ext, resp_limit_kib. */
	homa_put_be32(&w->retransmit, rare);
	homa_put_be32(&w->seg_offset, data->offset);
	if (unlikely(data->left) && client)
		homa_wire_set_left(w, data->left);
	return HOMA_DATA_HDR;
}

static void homa_encode_cutoffs(struct homa_wire_cutoffs *w,
				const struct homa_cutoffs *cutoffs)
{
	int i;

	for (i = 0; i < HOMA_PRIORITIES; i++)
		homa_put_be32(&w->cutoff[i], cutoffs->cutoff[i]);
	homa_put_be16(&w->version, cutoffs->version);
}

static void homa_encode_acks(struct homa_wire_acks *w,
			     const struct homa_acks *acks)
{
	int i;

	homa_put_be16(&w->num, acks->num);
	memset(w->ack, 0, sizeof(w->ack));
	for (i = 0; i < acks->num && i < HOMA_MAX_ACKS; i++)
		homa_put_ack(&w->ack[i], &acks->ack[i]);
}

u32 homa_packet_encode(void *buf, const struct homa_packet *p)
{
	struct homa_wire_grant *grant = buf;
	struct homa_wire_resend *resend = buf;
	struct homa_wire_start *start = buf;
	u8 type = p->hdr.type;
	u32 size;

	if (likely(type == HOMA_DATA))
		return homa_encode_data(buf, p);
	size = homa_type_size(type);
	if (!size)
		return 0;
	homa_encode_common(buf, &p->hdr, 0, HOMA_DOFF_CONTROL);

	switch (type) {
	case HOMA_GRANT:
		homa_put_be32(&grant->offset, p->grant.offset);
		grant->priority = p->grant.priority;
		break;
	case HOMA_RESEND:
		homa_put_be32(&resend->offset, p->resend.offset);
		homa_put_be32(&resend->length, p->resend.length);
		resend->priority = p->resend.priority;
		break;
	case HOMA_CUTOFFS:
		homa_encode_cutoffs(buf, &p->cutoffs);
		break;
	case HOMA_ACK:
		homa_encode_acks(buf, &p->ack);
		break;
	case HOMA_START_MSG:
		homa_put_be32(&start->length, p->start.length);
		break;
	}
	return size;
}

const char *homa_type_name(u8 type)
{
	static const char *const name[HOMA_TYPES] = {
		"DATA",	   "GRANT",  "RESEND",	 "RPC_UNKNOWN", "BUSY",
		"CUTOFFS", "FREEZE", "NEED_ACK", "ACK",		"START_MSG",
	};
	u32 i = (u32)type - HOMA_TYPE_FIRST;

	return i < HOMA_TYPES ? name[i] : "?";
}

const char *homa_wire_error_text(int error)
{
	switch (error) {
	case HOMA_WIRE_OK:
		return "no error";
#define HOMA_WIRE_TEXT(NAME, name, text) \
	case HOMA_WIRE_##NAME:           \
		return text;
		HOMA_WIRE_ERRORS(HOMA_WIRE_TEXT)
#undef HOMA_WIRE_TEXT
	default:
		return "unknown error";
	}
}
