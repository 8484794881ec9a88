/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Arbitrary bytes into the packet parser. Whatever decodes must keep every
 * promise of homa_codec.h, since the engine computes with these values
 * unchecked, and must survive encoding: decode, encode, decode again is
 * stable. The input is copied to a heap block of its size, so that the
 * address sanitizer sees a read beyond it.
 */
#include <stdlib.h>
#include <string.h>

#include "homa_wire_raw.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#define MUST(cond)                        \
	do {                              \
		if (!(cond))              \
			__builtin_trap(); \
	} while (0)

static void check_data(const struct homa_packet *p, u32 len)
{
	const struct homa_data *d = &p->data;

	MUST(d->length >= 1 && d->length <= HOMA_MAX_WIRE_LENGTH);
	MUST(d->payload_len >= 1 && d->payload_len == len - p->hdr.hdr_len);
	MUST(d->offset < d->length && d->payload_len <= d->length - d->offset);
	MUST(d->incoming <= d->length);
}

static void check_values(const struct homa_packet *p, u32 len)
{
	int i;

	MUST(p->hdr.hdr_len <= len && p->hdr.hdr_len <= HOMA_MAX_HDR);
	switch (p->hdr.type) {
	case HOMA_DATA:
		check_data(p, len);
		break;
	case HOMA_GRANT:
		MUST(p->grant.offset <= HOMA_MAX_WIRE_LENGTH);
		MUST(p->grant.priority < HOMA_PRIORITIES);
		break;
	case HOMA_RESEND:
		MUST(p->resend.offset <= HOMA_MAX_WIRE_LENGTH);
		MUST(p->resend.length <= HOMA_MAX_WIRE_LENGTH ||
		     p->resend.length == HOMA_RESEND_ALL);
		MUST(p->resend.priority < HOMA_PRIORITIES);
		break;
	case HOMA_CUTOFFS:
		for (i = 0; i < HOMA_PRIORITIES; i++)
			MUST(p->cutoffs.cutoff[i] <= HOMA_MAX_WIRE_LENGTH);
		break;
	case HOMA_ACK:
		MUST(p->ack.num <= HOMA_MAX_ACKS);
		break;
	case HOMA_START_MSG:
		MUST(p->start.length >= 1 &&
		     p->start.length <= HOMA_MAX_WIRE_LENGTH);
		break;
	default:
		MUST(p->hdr.type >= HOMA_TYPE_FIRST &&
		     p->hdr.type <= HOMA_TYPE_LAST);
	}
}

/* Decoded values and raw fields together are the header, and stay so. */
static void check_again(const struct homa_packet *p, u8 *packet, u32 len)
{
	u8 once[HOMA_MAX_HDR], twice[HOMA_MAX_HDR];
	struct homa_packet again;
	struct homa_wire_raw raw;

	memset(once, 0x55, sizeof(once));
	memset(twice, 0xaa, sizeof(twice));
	MUST(homa_packet_encode(once, p) == p->hdr.hdr_len);

	homa_wire_raw_get(&raw, packet);
	memcpy(packet, once, p->hdr.hdr_len);
	MUST(homa_packet_decode(&again, packet, len) == 0);
	check_values(&again, len);
	MUST(homa_packet_encode(twice, &again) == p->hdr.hdr_len);
	MUST(!memcmp(once, twice, p->hdr.hdr_len));

	/* Both forms of the offset mean the same. */
	homa_wire_raw_put(packet, &raw);
	MUST(homa_packet_decode(&again, packet, len) == 0);
	homa_packet_encode(twice, &again);
	MUST(!memcmp(once, twice, p->hdr.hdr_len));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct homa_packet p;
	u8 *packet = malloc(len ? len : 1);
	int err;

	MUST(packet);
	memcpy(packet, bytes, len);
	err = homa_packet_decode(&p, packet, (u32)len);
	MUST(err <= 0 && err > -HOMA_WIRE_ERROR_LIMIT);
	if (!err) {
		check_values(&p, (u32)len);
		check_again(&p, packet, (u32)len);
	}
	free(packet);
	return 0;
}
