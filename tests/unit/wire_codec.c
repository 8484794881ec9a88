/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * engine/wire/homa/homa_codec.c: every reason for a drop, every clamp, and that
 * encoding and decoding are inverse. Buffers come from the heap in exactly
 * the packet's size, so that the address sanitizer sees any byte too many.
 */
#include "unit.h"

#include "homa_codec.h"

/* Decode from a heap block of exactly @len bytes. */
static int decode(struct homa_packet *p, const void *bytes, u32 len)
{
	u8 *exact = malloc(len ? len : 1);
	int err;

	assert_non_null(exact);
	memcpy(exact, bytes, len);
	err = homa_packet_decode(p, exact, len);
	free(exact);
	return err;
}

static void random_ack(struct homa_rng *rng, struct homa_ack *ack)
{
	ack->client_id = homa_rng_next(rng);
	ack->server_port = (u16)homa_rng_next(rng);
}

static u32 random_length(struct homa_rng *rng)
{
	u32 bits = 1 + homa_rng_below(rng, 31);

	return 1 + homa_rng_below(rng, (u32)((1ull << bits) - 1));
}

/* A packet of this type in which every field is legal. */
static void random_packet(struct homa_rng *rng, u8 type, struct homa_packet *p)
{
	int i;

	memset(p, 0, sizeof(*p));
	p->hdr.type = type;
	p->hdr.sport = (u16)homa_rng_next(rng);
	p->hdr.dport = (u16)homa_rng_next(rng);
	p->hdr.sender_id = homa_rng_next(rng);
	switch (type) {
	case HOMA_DATA:
		p->data.length = random_length(rng);
		p->data.payload_len =
			1 +
			homa_rng_below(rng, homa_min_u32(1500, p->data.length));
		p->data.offset =
			homa_rng_below(rng,
				       p->data.length - p->data.payload_len + 1);
		p->data.incoming = homa_rng_below(rng, p->data.length) + 1;
		random_ack(rng, &p->data.ack);
		p->data.cutoff_version = (u16)homa_rng_next(rng);
		p->data.resp_limit_kib = (u16)homa_rng_next(rng);
		p->data.retransmit = homa_rng_below(rng, 2);
		p->data.incast = homa_rng_below(rng, 2);
		p->data.sender_congested = homa_rng_below(rng, 2);
		p->data.may_reject = homa_rng_below(rng, 2);
		if (!(p->hdr.sender_id & 1))
			p->data.left = (u16)homa_rng_next(rng);
		if (p->data.may_reject && p->hdr.sender_id & 1) {
			p->data.error =
				(u16)homa_rng_below(rng, HOMA_MAX_ERRNO + 1);
			p->data.resp_limit_kib = 0;
		}
		break;
	case HOMA_GRANT:
		p->grant.offset = random_length(rng);
		p->grant.priority = (u8)homa_rng_below(rng, HOMA_PRIORITIES);
		break;
	case HOMA_RESEND:
		p->resend.offset = random_length(rng);
		p->resend.length = homa_rng_below(rng, 4) ? random_length(rng) :
							    HOMA_RESEND_ALL;
		p->resend.priority = (u8)homa_rng_below(rng, HOMA_PRIORITIES);
		break;
	case HOMA_CUTOFFS:
		for (i = 0; i < HOMA_PRIORITIES; i++)
			p->cutoffs.cutoff[i] = random_length(rng);
		p->cutoffs.version = (u16)homa_rng_next(rng);
		break;
	case HOMA_ACK:
		p->ack.num = (u16)homa_rng_below(rng, HOMA_MAX_ACKS + 1);
		for (i = 0; i < p->ack.num; i++)
			random_ack(rng, &p->ack.ack[i]);
		break;
	case HOMA_START_MSG:
		p->start.length = random_length(rng);
		break;
	}
}

static bool same_ack(const struct homa_ack *a, const struct homa_ack *b)
{
	return a->client_id == b->client_id && a->server_port == b->server_port;
}

static bool same_data(const struct homa_data *a, const struct homa_data *b)
{
	return a->length == b->length && a->incoming == b->incoming &&
	       a->offset == b->offset && a->payload_len == b->payload_len &&
	       same_ack(&a->ack, &b->ack) &&
	       a->cutoff_version == b->cutoff_version &&
	       a->resp_limit_kib == b->resp_limit_kib &&
	       a->retransmit == b->retransmit && a->incast == b->incast &&
	       a->sender_congested == b->sender_congested &&
	       a->may_reject == b->may_reject && a->error == b->error &&
	       a->left == b->left;
}

static bool same_packet(const struct homa_packet *a, const struct homa_packet *b)
{
	int i;

	if (a->hdr.sport != b->hdr.sport || a->hdr.dport != b->hdr.dport ||
	    a->hdr.sender_id != b->hdr.sender_id || a->hdr.type != b->hdr.type)
		return false;
	switch (a->hdr.type) {
	case HOMA_DATA:
		return same_data(&a->data, &b->data);
	case HOMA_GRANT:
		return a->grant.offset == b->grant.offset &&
		       a->grant.priority == b->grant.priority;
	case HOMA_RESEND:
		return a->resend.offset == b->resend.offset &&
		       a->resend.length == b->resend.length &&
		       a->resend.priority == b->resend.priority;
	case HOMA_CUTOFFS:
		return !memcmp(a->cutoffs.cutoff, b->cutoffs.cutoff,
			       sizeof(a->cutoffs.cutoff)) &&
		       a->cutoffs.version == b->cutoffs.version;
	case HOMA_ACK:
		for (i = 0; i < a->ack.num; i++) {
			if (!same_ack(&a->ack.ack[i], &b->ack.ack[i]))
				return false;
		}
		return a->ack.num == b->ack.num;
	case HOMA_START_MSG:
		return a->start.length == b->start.length;
	}
	return true;
}

/* Encode @p, with room for its payload behind it; returns the packet's size. */
static u32 encode(u8 *buf, size_t room, const struct homa_packet *p)
{
	u32 len;

	memset(buf, 0xa5, room);
	len = homa_packet_encode(buf, p);
	if (p->hdr.type == HOMA_DATA)
		len += p->data.payload_len;
	return len;
}

static void packet_encode__decode_gives_the_same_values(void **state)
{
	u64 seed, base = unit_seed();
	u8 buf[2048];
	int type;

	(void)state;
	for (seed = base; seed < base + 5000; seed++) {
		struct homa_packet in, out;
		struct homa_rng rng;
		u32 len;

		homa_rng_init(&rng, seed);
		for (type = HOMA_TYPE_FIRST; type <= HOMA_TYPE_LAST; type++) {
			random_packet(&rng, (u8)type, &in);
			len = encode(buf, sizeof(buf), &in);
			unit_assert(seed, decode(&out, buf, len) == 0);
			unit_assert(seed, same_packet(&in, &out));
		}
	}
}

static void packet_encode__writes_every_byte_and_no_more(void **state)
{
	static const u8 size[] = { 56, 33, 37, 28, 28, 62, 28, 28, 80, 32 };
	struct homa_packet p;
	struct homa_rng rng;
	u8 a[128], b[128];
	int type;

	(void)state;
	homa_rng_init(&rng, unit_seed());
	for (type = HOMA_TYPE_FIRST; type <= HOMA_TYPE_LAST; type++) {
		u32 len = size[type - HOMA_TYPE_FIRST];

		random_packet(&rng, (u8)type, &p);
		memset(a, 0x00, sizeof(a));
		memset(b, 0xff, sizeof(b));
		assert_int_equal(homa_packet_encode(a, &p), len);
		assert_int_equal(homa_packet_encode(b, &p), len);
		assert_memory_equal(a, b, len);
		assert_int_equal(a[len], 0x00);
		assert_int_equal(b[len], 0xff);
	}
}

static void packet_encode__fixed_fields(void **state)
{
	struct homa_packet p;
	struct homa_rng rng;
	u8 buf[HOMA_MAX_HDR];
	int type;

	(void)state;
	homa_rng_init(&rng, unit_seed());
	for (type = HOMA_TYPE_FIRST; type <= HOMA_TYPE_LAST; type++) {
		random_packet(&rng, (u8)type, &p);
		if (type == HOMA_DATA)
			p.data.left = 0;
		homa_packet_encode(buf, &p);
		assert_int_equal(buf[12], type == HOMA_DATA ? 0xe0 : 0x50);
		assert_int_equal(buf[13], 6);
		assert_memory_equal(buf + 14, "\0\0\0\0\xb9\x7d", 6);
		assert_memory_equal(buf + 8, "\0\0\0", 3);
	}
	p.hdr.type = 0x1a;
	assert_int_equal(homa_packet_encode(buf, &p), 0);
}

static void packet_encode__offset_in_both_places(void **state)
{
	struct homa_packet p;
	struct homa_rng rng;
	u8 buf[HOMA_MAX_HDR], want[HOMA_MAX_HDR];

	(void)state;
	homa_rng_init(&rng, unit_seed());
	random_packet(&rng, HOMA_DATA, &p);
	p.data.offset = 0x01020304;
	homa_packet_encode(want, &p);
	assert_memory_equal(want + 4, "\x01\x02\x03\x04", 4);
	assert_memory_equal(want + 52, "\x01\x02\x03\x04", 4);
	p.data.offset = 0;
	homa_packet_encode(buf, &p);
	homa_data_segment(buf, 0x01020304);
	assert_memory_equal(buf, want, HOMA_DATA_HDR);
}

static void data_set_ack__like_encoding_it(void **state)
{
	struct homa_packet p;
	struct homa_rng rng;
	struct homa_ack ack;
	u8 buf[HOMA_MAX_HDR], want[HOMA_MAX_HDR];

	(void)state;
	homa_rng_init(&rng, unit_seed());
	random_packet(&rng, HOMA_DATA, &p);
	homa_packet_encode(buf, &p);
	random_ack(&rng, &ack);
	homa_data_set_ack(buf, &ack);
	p.data.ack = ack;
	homa_packet_encode(want, &p);
	assert_memory_equal(buf, want, HOMA_DATA_HDR);
}

static void data_begin__like_encoding_it(void **state)
{
	u8 buf[HOMA_MAX_HDR], want[HOMA_MAX_HDR];
	struct homa_packet p;
	struct homa_rng rng;
	int i;

	(void)state;
	homa_rng_init(&rng, unit_seed());
	for (i = 0; i < 1000; i++) {
		u32 life = (u32)homa_rng_next(&rng) & HOMA_WIRE_LIFE;

		random_packet(&rng, HOMA_DATA, &p);
		if (p.hdr.sender_id & 1)
			p.data.resp_limit_kib = 0;
		else
			p.data.error = 0;
		p.data.offset = 0;
		p.data.cutoff_version = 0;
		p.data.retransmit = false;
		p.data.sender_congested = false;
		p.data.may_reject = false;
		memset(&p.data.ack, 0, sizeof(p.data.ack));
		homa_packet_encode(want, &p);
		homa_wire_set_life(want, life);
		memset(buf, 0xa5, sizeof(buf));
		homa_data_begin(buf, &p.hdr, life, &p.data);
		assert_memory_equal(buf, want, HOMA_DATA_HDR);
	}
}

static void packet_decode__short(void **state)
{
	static const u8 size[] = { 56, 33, 37, 28, 28, 62, 28, 28, 80, 32 };
	struct homa_packet p, out;
	struct homa_rng rng;
	u8 buf[128];
	u32 len;
	int type;

	(void)state;
	homa_rng_init(&rng, unit_seed());
	for (type = HOMA_TYPE_FIRST; type <= HOMA_TYPE_LAST; type++) {
		random_packet(&rng, (u8)type, &p);
		encode(buf, sizeof(buf), &p);
		for (len = 0; len < size[type - HOMA_TYPE_FIRST]; len++)
			assert_int_equal(decode(&out, buf, len),
					 -HOMA_WIRE_SHORT);
	}
}

static void packet_decode__trailing_bytes_of_control_are_ignored(void **state)
{
	struct homa_packet p, out;
	struct homa_rng rng;
	u8 buf[128];
	u32 len;
	int type;

	(void)state;
	homa_rng_init(&rng, unit_seed());
	for (type = HOMA_GRANT; type <= HOMA_TYPE_LAST; type++) {
		random_packet(&rng, (u8)type, &p);
		len = encode(buf, sizeof(buf), &p);
		assert_int_equal(decode(&out, buf, len + 20), 0);
		assert_int_equal(out.hdr.hdr_len, len);
		assert_true(same_packet(&p, &out));
	}
}

static void packet_decode__unknown_types(void **state)
{
	u8 buf[128] = { 0 };
	struct homa_packet p;
	int type;

	(void)state;
	for (type = 0; type < 256; type++) {
		if (type >= HOMA_TYPE_FIRST && type <= HOMA_TYPE_LAST)
			continue;
		buf[11] = (u8)type;
		assert_int_equal(decode(&p, buf, sizeof(buf)), -HOMA_WIRE_TYPE);
	}
}

/* DATA of 10 bytes at offset 0 of 100; the caller damages it. */
static void small_data(u8 *buf)
{
	struct homa_packet p;

	memset(&p, 0, sizeof(p));
	p.hdr.type = HOMA_DATA;
	p.data.length = 100;
	p.data.incoming = 100;
	memset(buf, 0, 128);
	homa_packet_encode(buf, &p);
}

static int decode_small(struct homa_packet *p, u8 *buf, u32 length, u32 offset,
			u32 payload)
{
	homa_put_be32(buf + 28, length);
	homa_put_be32(buf + 52, offset);
	return decode(p, buf, HOMA_DATA_HDR + payload);
}

static void packet_decode__data_lengths_and_offsets(void **state)
{
	struct homa_packet p;
	u8 buf[128];

	(void)state;
	small_data(buf);
	assert_int_equal(decode_small(&p, buf, 100, 0, 0), -HOMA_WIRE_EMPTY);
	assert_int_equal(decode_small(&p, buf, 0, 0, 10), -HOMA_WIRE_LENGTH);
	assert_int_equal(decode_small(&p, buf, 0x80000000, 0, 10),
			 -HOMA_WIRE_LENGTH);
	assert_int_equal(decode_small(&p, buf, 0xffffffff, 0, 10),
			 -HOMA_WIRE_LENGTH);
	assert_int_equal(decode_small(&p, buf, 0x7fffffff, 0x7ffffff5, 10), 0);
	assert_int_equal(decode_small(&p, buf, 0x7fffffff, 0x7ffffff6, 10),
			 -HOMA_WIRE_OFFSET);
	assert_int_equal(decode_small(&p, buf, 100, 90, 10), 0);
	assert_int_equal(decode_small(&p, buf, 100, 91, 10), -HOMA_WIRE_OFFSET);
	assert_int_equal(decode_small(&p, buf, 9, 0, 10), -HOMA_WIRE_OFFSET);
	/* The sum must not wrap round. */
	assert_int_equal(decode_small(&p, buf, 100, 0xfffffff8, 10),
			 -HOMA_WIRE_OFFSET);
}

static void packet_decode__offset_from_sequence_or_segment(void **state)
{
	struct homa_packet p;
	u8 buf[128];

	(void)state;
	small_data(buf);
	homa_put_be32(buf + 4, 30);
	assert_int_equal(decode_small(&p, buf, 100, HOMA_OFFSET_IN_SEQUENCE, 9),
			 0);
	assert_int_equal(p.data.offset, 30);
	assert_int_equal(decode_small(&p, buf, 100, 40, 9), 0);
	assert_int_equal(p.data.offset, 40);
	homa_put_be32(buf + 4, 0xffffffff);
	assert_int_equal(decode_small(&p, buf, 100, HOMA_OFFSET_IN_SEQUENCE, 9),
			 -HOMA_WIRE_OFFSET);
}

static void packet_decode__incoming_is_clamped_to_the_message(void **state)
{
	struct homa_packet p;
	u8 buf[128];

	(void)state;
	small_data(buf);
	homa_put_be32(buf + 32, 0xfffffff0);
	assert_int_equal(decode_small(&p, buf, 100, 0, 10), 0);
	assert_int_equal(p.data.incoming, 100);
	homa_put_be32(buf + 32, 0);
	assert_int_equal(decode_small(&p, buf, 100, 0, 10), 0);
	assert_int_equal(p.data.incoming, 0);
}

static void packet_decode__extension_bits(void **state)
{
	struct homa_packet p;
	u8 buf[128];

	(void)state;
	small_data(buf);
	buf[49] = 0xf0;
	assert_int_equal(decode_small(&p, buf, 100, 0, 10), 0);
	assert_false(p.data.incast || p.data.sender_congested ||
		     p.data.retransmit || p.data.may_reject || p.data.left);
	buf[48] = 0x80;
	buf[49] = 0x01;
	homa_put_be16(buf + 50, 60);
	assert_int_equal(decode_small(&p, buf, 100, 0, 10), 0);
	assert_true(p.data.incast && !p.data.sender_congested &&
		    p.data.retransmit);
	assert_int_equal(p.data.resp_limit_kib, 60);
	buf[49] = 0x02;
	assert_int_equal(decode_small(&p, buf, 100, 0, 10), 0);
	assert_true(!p.data.incast && p.data.sender_congested);
}

static void packet_decode__rejection(void **state)
{
	struct homa_packet p;
	u8 buf[128];

	(void)state;
	small_data(buf);
	/* A client says that it understands one. */
	homa_put_be64(buf + 20, 1000);
	buf[49] = HOMA_EXT_REJECT;
	assert_int_equal(decode_small(&p, buf, 100, 0, 10), 0);
	assert_true(p.data.may_reject);
	assert_int_equal(p.data.error, 0);
	/* Its bytes 50 and 51 stay what they are. */
	homa_put_be16(buf + 50, 60);
	assert_int_equal(decode_small(&p, buf, 100, 0, 10), 0);
	assert_true(p.data.may_reject);
	assert_int_equal(p.data.error, 0);
	assert_int_equal(p.data.resp_limit_kib, 60);
	/* A server rejects. */
	homa_put_be64(buf + 20, 1001);
	assert_int_equal(decode_small(&p, buf, 100, 0, 10), 0);
	assert_int_equal(p.data.error, 60);
	assert_int_equal(p.data.resp_limit_kib, 0);
	homa_put_be16(buf + 50, 0xffff);
	assert_int_equal(decode_small(&p, buf, 100, 0, 10), 0);
	assert_int_equal(p.data.error, HOMA_MAX_ERRNO);
	/* Without the bit, or without an errno, it does not. */
	buf[49] = 0;
	assert_int_equal(decode_small(&p, buf, 100, 0, 10), 0);
	assert_int_equal(p.data.error, 0);
	buf[49] = HOMA_EXT_REJECT;
	homa_put_be16(buf + 50, 0);
	assert_int_equal(decode_small(&p, buf, 100, 0, 10), 0);
	assert_int_equal(p.data.error, 0);
}

static void packet_decode__control_values_are_clamped(void **state)
{
	u8 buf[128] = { 0 };
	struct homa_packet p;

	(void)state;
	buf[11] = HOMA_GRANT;
	homa_put_be32(buf + 28, 0xffffffff);
	buf[32] = 255;
	assert_int_equal(decode(&p, buf, HOMA_GRANT_LEN), 0);
	assert_int_equal(p.grant.offset, HOMA_MAX_WIRE_LENGTH);
	assert_int_equal(p.grant.priority, 7);

	buf[11] = HOMA_RESEND;
	homa_put_be32(buf + 28, 0x80000000);
	homa_put_be32(buf + 32, 0xfffffffe);
	buf[36] = 8;
	assert_int_equal(decode(&p, buf, HOMA_RESEND_LEN), 0);
	assert_int_equal(p.resend.offset, HOMA_MAX_WIRE_LENGTH);
	assert_int_equal(p.resend.length, HOMA_MAX_WIRE_LENGTH);
	assert_int_equal(p.resend.priority, 7);
	homa_put_be32(buf + 32, HOMA_RESEND_ALL);
	assert_int_equal(decode(&p, buf, HOMA_RESEND_LEN), 0);
	assert_true(p.resend.length == HOMA_RESEND_ALL);

	buf[11] = HOMA_CUTOFFS;
	homa_put_be32(buf + 28 + 4 * 7, 0x80000000);
	assert_int_equal(decode(&p, buf, HOMA_CUTOFFS_LEN), 0);
	assert_int_equal(p.cutoffs.cutoff[7], HOMA_MAX_WIRE_LENGTH);
}

static void packet_decode__ack_count(void **state)
{
	u8 buf[128] = { 0 };
	struct homa_packet p;

	(void)state;
	buf[11] = HOMA_ACK;
	homa_put_be16(buf + 28, 5);
	assert_int_equal(decode(&p, buf, HOMA_ACK_LEN), 0);
	homa_put_be16(buf + 28, 6);
	assert_int_equal(decode(&p, buf, HOMA_ACK_LEN), -HOMA_WIRE_COUNT);
	homa_put_be16(buf + 28, 0xffff);
	assert_int_equal(decode(&p, buf, HOMA_ACK_LEN), -HOMA_WIRE_COUNT);
}

static void packet_decode__start_msg_length(void **state)
{
	u8 buf[128] = { 0 };
	struct homa_packet p;

	(void)state;
	buf[11] = HOMA_START_MSG;
	assert_int_equal(decode(&p, buf, HOMA_START_LEN), -HOMA_WIRE_LENGTH);
	homa_put_be32(buf + 28, 0x80000000);
	assert_int_equal(decode(&p, buf, HOMA_START_LEN), -HOMA_WIRE_LENGTH);
	homa_put_be32(buf + 28, 1);
	assert_int_equal(decode(&p, buf, HOMA_START_LEN), 0);
	assert_int_equal(p.start.length, 1);
}

static void wire_error_text__one_for_each(void **state)
{
	int a, b;

	(void)state;
	for (a = 0; a <= HOMA_WIRE_ERROR_LIMIT; a++) {
		for (b = 0; b < a; b++)
			assert_string_not_equal(homa_wire_error_text(a),
						homa_wire_error_text(b));
	}
	assert_string_equal(homa_type_name(HOMA_DATA), "DATA");
	assert_string_equal(homa_type_name(HOMA_RPC_UNKNOWN), "RPC_UNKNOWN");
	assert_string_equal(homa_type_name(HOMA_START_MSG), "START_MSG");
	assert_string_equal(homa_type_name(0x0f), "?");
	assert_string_equal(homa_type_name(0x1a), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packet_encode__decode_gives_the_same_values),
		cmocka_unit_test(packet_encode__writes_every_byte_and_no_more),
		cmocka_unit_test(packet_encode__fixed_fields),
		cmocka_unit_test(packet_encode__offset_in_both_places),
		cmocka_unit_test(data_set_ack__like_encoding_it),
		cmocka_unit_test(data_begin__like_encoding_it),
		cmocka_unit_test(packet_decode__short),
		cmocka_unit_test(
			packet_decode__trailing_bytes_of_control_are_ignored),
		cmocka_unit_test(packet_decode__unknown_types),
		cmocka_unit_test(packet_decode__data_lengths_and_offsets),
		cmocka_unit_test(packet_decode__offset_from_sequence_or_segment),
		cmocka_unit_test(packet_decode__incoming_is_clamped_to_the_message),
		cmocka_unit_test(packet_decode__extension_bits),
		cmocka_unit_test(packet_decode__rejection),
		cmocka_unit_test(packet_decode__control_values_are_clamped),
		cmocka_unit_test(packet_decode__ack_count),
		cmocka_unit_test(packet_decode__start_msg_length),
		cmocka_unit_test(wire_error_text__one_for_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
