// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The word of a client about how long it waits: what its code means, and where it counts.
 */
#include "homa_codec.h"
#include "unit.h"

/* A request of one packet with 10 bytes, as it is before anything is said. */
static void request(u8 *buf, u64 sender_id)
{
	struct homa_packet p;

	memset(&p, 0, sizeof(p));
	p.hdr.type = HOMA_DATA;
	p.hdr.sport = 40000;
	p.hdr.dport = 4000;
	p.hdr.sender_id = sender_id;
	p.data.length = p.data.incoming = p.data.payload_len = 10;
	homa_packet_encode(buf, &p);
	assert_memory_equal(buf + 14, "\0\0", 2);
	assert_int_equal(buf[49], 0);
}

static void decode(struct homa_packet *p, const u8 *buf)
{
	assert_int_equal(homa_packet_decode(p, buf, HOMA_DATA_HDR + 10), 0);
}

/* Bytes 14 and 15 count only with the bit, and only from a client. */
static void left__needs_the_bit_and_a_client(void **state)
{
	struct homa_packet p;
	u8 buf[128] = { 0 };

	(void)state;
	request(buf, 1000);
	homa_put_be16(buf + 14, 0x1234);
	decode(&p, buf);
	assert_int_equal(p.data.left, 0);
	buf[49] = HOMA_EXT_REJECT;
	decode(&p, buf);
	assert_int_equal(p.data.left, 0);
	buf[49] = HOMA_EXT_LEFT;
	decode(&p, buf);
	assert_int_equal(p.data.left, 0x1234);
	assert_true(p.data.wishes && !p.data.may_reject);
	request(buf, 1001);
	homa_put_be16(buf + 14, 0x1234);
	buf[49] = HOMA_EXT_LEFT;
	decode(&p, buf);
	assert_int_equal(p.data.left, 0);
	assert_false(p.data.wishes);
}

/* The two ways to write it are one, and no server's rejection becomes a word of it. */
static void left__stands_where_it_is_set(void **state)
{
	struct homa_packet p, again;
	u8 a[128] = { 0 }, b[128] = { 0 };

	(void)state;
	request(a, 1000);
	homa_wire_set_left(a, 0x4321);
	decode(&p, a);
	p.data.payload_len = 10;
	homa_packet_encode(b, &p);
	assert_memory_equal(a, b, HOMA_DATA_HDR);
	decode(&again, b);
	assert_int_equal(again.data.left, 0x4321);
	p.hdr.sender_id = 1001;
	p.data.left = 0;
	p.data.error = 7;
	homa_packet_encode(b, &p);
	assert_memory_equal(b + 14, "\0\0", 2);
	assert_int_equal(b[49], HOMA_EXT_REJECT);
}

/* Never less than what was meant, and little more; in order. */
static void left_code__rounds_up(void **state)
{
	struct homa_rng rng;
	u16 before = 0;
	u64 ns, back;
	u32 i;

	(void)state;
	homa_rng_init(&rng, unit_seed());
	assert_int_equal(homa_left_code(0), 1);
	assert_int_equal(homa_left_code(1023), 1);
	assert_int_equal(homa_left_code(1024), 2);
	assert_int_equal(homa_left_ns(0), 0);
	assert_int_equal(homa_left_ns(1), 1024);
	assert_int_equal(homa_left_code((u64)-1), HOMA_LEFT_MAX);
	assert_true(homa_left_ns(HOMA_LEFT_MAX) < (u64)1 << 53);
	assert_int_equal(homa_left_code(homa_left_ns(HOMA_LEFT_MAX) - 1),
			 HOMA_LEFT_MAX);
	for (i = 0; i < 100000; i++) {
		ns = homa_rng_next(&rng) >> (12 + homa_rng_below(&rng, 52));
		if (ns >= homa_left_ns(HOMA_LEFT_MAX))
			continue;
		back = homa_left_ns(homa_left_code(ns));
		assert_true(back > ns && back <= ns + (ns >> 10) + 2 * 1024);
	}
	for (ns = 1; ns < (u64)1 << 52; ns += (ns >> 11) + 1) {
		u16 code = homa_left_code(ns);

		assert_true(homa_left_ns(code) >= homa_left_ns(before));
		before = code;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(left__needs_the_bit_and_a_client),
		cmocka_unit_test(left__stands_where_it_is_set),
		cmocka_unit_test(left_code__rounds_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
