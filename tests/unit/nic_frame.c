// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Ethernet and IP headers: what is built parses back to what was asked for, and
 * nothing that is cut off, a fragment, damaged or somebody else's parses at all.
 */
#include "unit.h"

#include <errno.h>

#include "frame.h"
#include "netif.h"

static const u8 mac_a[6] = { 2, 0, 0, 0, 0, 1 };
static const u8 mac_b[6] = { 2, 0, 0, 0, 0, 2 };

struct built {
	u8 bytes[256];
	u32 len;
	struct homa_addr src;
	struct homa_addr dst;
};

static void build(struct built *b, bool v4, u32 payload, u8 prio)
{
	struct nic_frame_template t;

	nic_addr_parse(v4 ? "10.9.0.1" : "fd09::1", &b->src);
	nic_addr_parse(v4 ? "10.9.0.2" : "fd09::2", &b->dst);
	nic_frame_template_init(&t, mac_b, mac_a, &b->src, &b->dst);
	b->len = t.len + payload;
	for (u32 i = 0; i < payload; i++)
		b->bytes[t.len + i] = (u8)(i * 3 + 1);
	nic_frame_build(&t, b->bytes, payload, prio, b->bytes + t.len);
}

static void parse_back(bool v4)
{
	for (u8 prio = 0; prio < 8; prio++) {
		for (u32 len = 28; len < 128; len++) {
			struct built b;
			struct nic_rx rx;

			build(&b, v4, len, prio);
			assert_int_equal(nic_frame_parse(b.bytes, b.len, &rx), 0);
			assert_int_equal(rx.len, len);
			assert_int_equal(rx.prio, prio);
			assert_int_equal(rx.ecn, 0);
			assert_true(homa_addr_equal(&rx.src, &b.src));
			assert_true(homa_addr_equal(&rx.dst, &b.dst));
			assert_ptr_equal(rx.data, b.bytes + b.len - len);
		}
	}
}

static void frame__v4_parses_back(void **state)
{
	(void)state;
	parse_back(true);
}

static void frame__v6_parses_back(void **state)
{
	(void)state;
	parse_back(false);
}

static void frame__v4_header_bytes(void **state)
{
	struct built b;
	const u8 *ip = b.bytes + 14;

	(void)state;
	build(&b, true, 60, 5);
	assert_memory_equal(b.bytes, mac_b, 6);
	assert_memory_equal(b.bytes + 6, mac_a, 6);
	assert_int_equal(homa_get_be16(b.bytes + 12), 0x0800);
	assert_int_equal(ip[0], 0x45);
	assert_int_equal(ip[1], 0xa0);
	assert_int_equal(homa_get_be16(ip + 2), 80);
	assert_int_equal(homa_get_be16(ip + 4), 0);	 /* id */
	assert_int_equal(homa_get_be16(ip + 6), 0x4000); /* DF */
	assert_int_equal(ip[9], 146);
	assert_int_equal(nic_checksum(ip, 20, 0), 0);
}

static void frame__v6_header_bytes(void **state)
{
	struct built b, other;
	const u8 *ip = b.bytes + 14;

	(void)state;
	build(&b, false, 60, 7);
	assert_int_equal(homa_get_be16(b.bytes + 12), 0x86dd);
	assert_int_equal(homa_get_be32(ip) >> 20, 0x6e0);
	assert_int_equal(homa_get_be16(ip + 4), 60);
	assert_int_equal(ip[6], 146);
	/* a label, the same for every packet of a message */
	assert_int_not_equal(homa_get_be32(ip) & 0xfffff, 0);
	build(&other, false, 90, 3);
	assert_int_equal(homa_get_be32(ip) & 0xfffff,
			 homa_get_be32(other.bytes + 14) & 0xfffff);
}

static void frame__checksum_known_value(void **state)
{
	/* the example of RFC 1071, section 3 */
	static const u8 data[] = { 0x00, 0x01, 0xf2, 0x03,
				   0xf4, 0xf5, 0xf6, 0xf7 };

	(void)state;
	assert_int_equal(nic_checksum(data, sizeof(data), 0), (u16)~0xddf2);
	assert_int_equal(nic_checksum(data, 7, 0), (u16)~0xdcfb);
}

static void frame__truncated_is_refused(void **state)
{
	(void)state;
	for (int v4 = 0; v4 < 2; v4++) {
		struct built b;
		struct nic_rx rx;

		build(&b, v4, 40, 1);
		for (u32 len = 0; len < b.len; len++) {
			/* an exact copy, so that a checker sees one byte too far */
			u8 *copy = malloc(len ? len : 1);

			memcpy(copy, b.bytes, len);
			assert_int_equal(nic_frame_parse(copy, len, &rx),
					 -EBADMSG);
			free(copy);
		}
	}
}

static void frame__link_padding_is_removed(void **state)
{
	struct built b;
	struct nic_rx rx;

	(void)state;
	for (int v4 = 0; v4 < 2; v4++) {
		build(&b, v4, 28, 1);
		assert_int_equal(nic_frame_parse(b.bytes, b.len + 30, &rx), 0);
		assert_int_equal(rx.len, 28);
	}
}

static void fix_checksum(u8 *ip)
{
	ip[10] = ip[11] = 0;
	homa_put_be16(ip + 10, nic_checksum(ip, (u32)(ip[0] & 15) * 4, 0));
}

static void refuse_v4(u32 at, u8 value)
{
	struct built b;
	struct nic_rx rx;

	build(&b, true, 40, 1);
	b.bytes[14 + at] = value;
	fix_checksum(b.bytes + 14);
	assert_int_equal(nic_frame_parse(b.bytes, b.len, &rx), -EBADMSG);
}

static void frame__v4_hostile_headers_are_refused(void **state)
{
	struct built b;
	struct nic_rx rx;

	(void)state;
	refuse_v4(0, 0x65); /* version */
	refuse_v4(0, 0x44); /* header of 16 bytes */
	refuse_v4(0, 0x40); /* header of none */
	refuse_v4(0, 0x4f); /* header as long as the packet */
	refuse_v4(2, 0xff); /* length beyond the frame */
	refuse_v4(3, 20);   /* length of the header alone */
	refuse_v4(3, 0);    /* length below the header */
	refuse_v4(6, 0x20); /* first fragment */
	refuse_v4(7, 0x01); /* later fragment */
	refuse_v4(9, 17);   /* UDP */
	build(&b, true, 40, 1);
	b.bytes[14 + 8] ^= 1; /* wrong checksum */
	assert_int_equal(nic_frame_parse(b.bytes, b.len, &rx), -EBADMSG);
	build(&b, true, 40, 1);
	b.bytes[12] = 0x81; /* VLAN */
	assert_int_equal(nic_frame_parse(b.bytes, b.len, &rx), -EBADMSG);
}

static void frame__v4_options_are_skipped(void **state)
{
	struct built b;
	struct nic_rx rx;
	u8 frame[256];

	(void)state;
	build(&b, true, 40, 2);
	memcpy(frame, b.bytes, 34);
	memset(frame + 34, 1, 8); /* no-operation options */
	memcpy(frame + 42, b.bytes + 34, 40);
	frame[14] = 0x47;
	homa_put_be16(frame + 16, 68);
	fix_checksum(frame + 14);
	assert_int_equal(nic_frame_parse(frame, 82, &rx), 0);
	assert_int_equal(rx.len, 40);
	assert_ptr_equal(rx.data, frame + 42);
}

static void refuse_v6(u32 at, u8 value)
{
	struct built b;
	struct nic_rx rx;

	build(&b, false, 40, 1);
	b.bytes[14 + at] = value;
	assert_int_equal(nic_frame_parse(b.bytes, b.len, &rx), -EBADMSG);
}

static void frame__v6_hostile_headers_are_refused(void **state)
{
	struct built b;
	struct nic_rx rx;

	(void)state;
	refuse_v6(0, 0x40); /* version */
	refuse_v6(4, 0xff); /* length beyond the frame */
	refuse_v6(5, 0);    /* no payload */
	refuse_v6(6, 44);   /* fragment header */
	refuse_v6(6, 0);    /* hop-by-hop options */
	build(&b, false, 40, 1);
	memset(b.bytes + 14 + 8, 0, 10); /* v4-mapped source */
	memset(b.bytes + 14 + 18, 0xff, 2);
	assert_int_equal(nic_frame_parse(b.bytes, b.len, &rx), -EBADMSG);
}

static void frame__random_bytes_are_harmless(void **state)
{
	u64 x = unit_seed() * 2654435761u + 1;

	(void)state;
	for (int round = 0; round < 200000; round++) {
		struct built b;
		struct nic_rx rx;
		u32 len;
		u8 *copy;

		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		build(&b, x >> 63, 20 + (x >> 40) % 60, 3);
		for (u32 flips = (u32)(x >> 33) % 6; flips; flips--) {
			x = x * 6364136223846793005ULL + 1442695040888963407ULL;
			b.bytes[12 + (x >> 32) % 56] ^= (u8)(x >> 24);
		}
		len = (u32)(x >> 35) % (b.len + 1);
		copy = malloc(len ? len : 1);
		memcpy(copy, b.bytes, len);
		if (!nic_frame_parse(copy, len, &rx)) {
			assert_true(rx.data >= copy && rx.len > 0);
			assert_true(rx.data + rx.len <= copy + len);
			assert_true(rx.prio < 8);
		}
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame__v4_parses_back),
		cmocka_unit_test(frame__v6_parses_back),
		cmocka_unit_test(frame__v4_header_bytes),
		cmocka_unit_test(frame__v6_header_bytes),
		cmocka_unit_test(frame__checksum_known_value),
		cmocka_unit_test(frame__truncated_is_refused),
		cmocka_unit_test(frame__link_padding_is_removed),
		cmocka_unit_test(frame__v4_hostile_headers_are_refused),
		cmocka_unit_test(frame__v4_options_are_skipped),
		cmocka_unit_test(frame__v6_hostile_headers_are_refused),
		cmocka_unit_test(frame__random_bytes_are_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
