/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * common/pcapng.c: blocks that are whole or not there at all, and IP headers
 * with lengths and checksums that are right. That Wireshark and tcpdump agree is
 * tested with the simulator's and homad's captures.
 */
#include "unit.h"

#include "pcapng.h"

static uint32_t word(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, 4);
	return v;
}

static uint32_t be16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

static struct homa_pcapng_packet packet(uint32_t captured, const char *comment)
{
	static const uint8_t frame[100] = { 1, 2, 3 };

	return (struct homa_pcapng_packet){
		.interface = 2,
		.ns = 0x123456789abcdef0ull,
		.captured = captured,
		.length = 1500,
		.frame = frame,
		.direction = HOMA_PCAPNG_OUT,
		.comment = comment,
	};
}

static void packet__lengths_at_both_ends(void **state)
{
	uint8_t data[512];
	uint32_t captured;

	(void)state;
	for (captured = 0; captured <= 100; captured++) {
		const struct homa_pcapng_packet p = packet(captured, "why");
		uint32_t len = homa_pcapng_packet(data, sizeof(data), &p);

		assert_true(len && len % 4 == 0);
		assert_int_equal(word(data), 6);
		assert_int_equal(word(data + 4), len);
		assert_int_equal(word(data + len - 4), len);
		assert_int_equal(word(data + 8), 2);
		assert_int_equal(word(data + 12), 0x12345678);
		assert_int_equal(word(data + 16), 0x9abcdef0);
		assert_int_equal(word(data + 20), captured);
		assert_int_equal(word(data + 24), 1500);
	}
}

/* Each size that is too small gives nothing and writes no byte beyond. */
static void packet__that_does_not_fit(void **state)
{
	const struct homa_pcapng_packet p = packet(61, "a comment");
	uint8_t data[512];
	uint32_t size, need = homa_pcapng_packet(data, sizeof(data), &p);

	(void)state;
	for (size = 0; size < need; size++) {
		memset(data, 0xaa, sizeof(data));
		assert_int_equal(homa_pcapng_packet(data, size, &p), 0);
		assert_int_equal(data[size], 0xaa);
	}
	assert_int_equal(homa_pcapng_packet(data, need, &p), need);
}

static void blocks__of_every_kind_fit_together(void **state)
{
	const struct homa_pcapng_interface i = {
		.link = HOMA_PCAPNG_RAW_IP,
		.snap = 176,
		.name = "eth0",
		.bits_per_s = 10000000000ull,
	};
	const struct homa_pcapng_packet p = packet(7, NULL);
	static const uint32_t kinds[] = { 0x0a0d0d0a, 1, 6, 5 };
	uint8_t data[2048];
	uint32_t len = 0, at = 0, n = 0;

	(void)state;
	len += homa_pcapng_section(data, sizeof(data), "unit", NULL);
	len += homa_pcapng_interface(data + len, sizeof(data) - len, &i);
	len += homa_pcapng_packet(data + len, sizeof(data) - len, &p);
	len += homa_pcapng_stats(data + len, sizeof(data) - len, 0, 5, 10, 3);
	while (at < len) {
		assert_int_equal(word(data + at), kinds[n++]);
		at += word(data + at + 4);
	}
	assert_int_equal(at, len);
	assert_int_equal(n, 4);
}

static void ip__v4_with_udp(void **state)
{
	const uint8_t src[16] = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 };
	const uint8_t dst[16] = { [10] = 0xff, [11] = 0xff, 10, 0, 0, 2 };
	const struct homa_pcapng_ip ip = {
		.src = src,
		.dst = dst,
		.protocol = 146,
		.tos = 5 << 5,
		.ttl = 64,
		.udp_src = 54321,
		.udp_dst = 4000,
		.payload = 1000,
	};
	uint8_t out[HOMA_PCAPNG_IP_MAX];
	uint32_t i, sum = 0;

	(void)state;
	assert_int_equal(homa_pcapng_ip_header(out, &ip), 28);
	assert_int_equal(out[0], 0x45);
	assert_int_equal(out[1], 5 << 5);
	assert_int_equal(be16(out + 2), 1028);
	assert_int_equal(out[9], 17);
	assert_int_equal(be16(out + 20), 54321);
	assert_int_equal(be16(out + 22), 4000);
	assert_int_equal(be16(out + 24), 1008);
	for (i = 0; i < 20; i += 2)
		sum += be16(out + i);
	sum = (sum & 0xffff) + (sum >> 16);
	assert_int_equal(sum, 0xffff);
}

static void ip__v6_native(void **state)
{
	const uint8_t src[16] = { 0xfd, [15] = 1 }, dst[16] = { 0xfd, [15] = 2 };
	struct homa_pcapng_ip ip = {
		.src = src,
		.dst = dst,
		.protocol = 146,
		.tos = 7 << 5,
		.ttl = 64,
		.payload = 70000,
	};
	uint8_t out[HOMA_PCAPNG_IP_MAX];

	(void)state;
	assert_int_equal(homa_pcapng_ip_header(out, &ip), 40);
	assert_int_equal(out[0], 0x6e);
	assert_int_equal(out[1], 0);
	assert_int_equal(be16(out + 4), 65535); /* more than fits */
	assert_int_equal(out[6], 146);
	assert_memory_equal(out + 8, src, 16);
	assert_memory_equal(out + 24, dst, 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packet__lengths_at_both_ends),
		cmocka_unit_test(packet__that_does_not_fit),
		cmocka_unit_test(blocks__of_every_kind_fit_together),
		cmocka_unit_test(ip__v4_with_udp),
		cmocka_unit_test(ip__v6_native),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
