// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Raw header fields and the TCP checksum (RFC 9293, section 3.1; the sum
 * itself after RFC 1071): see homa_wire_raw.h for who needs them.
 */
#include "homa_wire_raw.h"

void homa_wire_raw_get(struct homa_wire_raw *raw, const void *buf)
{
	const struct homa_wire_data *data = buf;
	const struct homa_wire_common *w = buf;

	raw->sequence = homa_get_be32(&w->sequence);
	raw->seg_offset =
		w->type == HOMA_DATA ? homa_get_be32(&data->seg_offset) : 0;
	raw->window = homa_get_be16(&w->window);
	raw->checksum = homa_get_be16(&w->checksum);
	raw->urgent = homa_get_be16(&w->urgent);
	raw->doff = w->doff;
	raw->flags = w->flags;
	memcpy(raw->ack_high, w->ack_high, sizeof(raw->ack_high));
}

void homa_wire_raw_put(void *buf, const struct homa_wire_raw *raw)
{
	struct homa_wire_data *data = buf;
	struct homa_wire_common *w = buf;

	homa_put_be32(&w->sequence, raw->sequence);
	if (w->type == HOMA_DATA)
		homa_put_be32(&data->seg_offset, raw->seg_offset);
	homa_put_be16(&w->window, raw->window);
	homa_put_be16(&w->checksum, raw->checksum);
	homa_put_be16(&w->urgent, raw->urgent);
	w->doff = raw->doff;
	w->flags = raw->flags;
	memcpy(w->ack_high, raw->ack_high, sizeof(w->ack_high));
}

static u64 homa_sum16(u64 sum, const void *bytes, u32 len)
{
	const u8 *b = bytes;

	for (; len >= 2; len -= 2, b += 2)
		sum += homa_get_be16(b);
	if (len)
		sum += (u32)b[0] << 8;
	return sum;
}

static u16 homa_fold16(u64 sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (u16)sum;
}

u16 homa_wire_pseudo_sum(u32 len, const void *src, const void *dst, u32 addr_len)
{
	u64 sum = HOMA_IPPROTO_HIJACK;

	sum += len >> 16;
	sum += len & 0xffff;
	sum = homa_sum16(sum, src, addr_len);
	return homa_fold16(homa_sum16(sum, dst, addr_len));
}

u16 homa_wire_checksum(const void *packet, u32 len, const void *src,
		       const void *dst, u32 addr_len)
{
	const struct homa_wire_common *w = packet;
	u64 sum = homa_wire_pseudo_sum(len, src, dst, addr_len);

	sum = homa_sum16(sum, packet, len);
	/* The field itself counts as zero. */
	sum -= homa_get_be16(&w->checksum);
	return (u16)~homa_fold16(sum);
}
