// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * TCP segments in frames, and their checksums: sums of any length and alignment against
 * the plain way, damage that is noticed, and checksums that a kernel has not finished.
 */
#include "unit.h"

#include <errno.h>

#include "frame.h"
#include "netif.h"
#include "tcp_sum.h"

static const u8 mac[6] = { 2, 0, 0, 0, 0, 1 };

/* RFC 1071 as it is written: 16 bits at a time, in network order. */
static u16 plain(const u8 *p, u32 len, u32 sum)
{
	for (u32 i = 0; i < len; i++)
		sum += i & 1 ? p[i] : (u32)p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (u16)sum;
}

static u16 folded(u64 sum)
{
	u16 as_it_stands = nic_sum_fold(sum);

	return homa_get_be16((const u8 *)&as_it_stands);
}

static void sum__any_length_and_alignment(void **state)
{
	u64 x = unit_seed() * 2654435761u + 1;
	u8 bytes[300];

	(void)state;
	for (int kind = 0; kind < 3; kind++) {
		for (u32 i = 0; i < sizeof(bytes); i++) {
			x = x * 6364136223846793005ULL + 1442695040888963407ULL;
			bytes[i] = kind == 0 ? (u8)(x >> 40) :
				   kind == 1 ? 0xff :
					       0;
		}
		for (u32 at = 0; at < 9; at++)
			for (u32 len = 0; len < sizeof(bytes) - 9; len++)
				assert_int_equal(folded(nic_sum(bytes + at, len,
								0)),
						 plain(bytes + at, len, 0));
	}
}

static void sum__pieces_are_the_whole(void **state)
{
	u8 bytes[128];

	(void)state;
	for (u32 i = 0; i < sizeof(bytes); i++)
		bytes[i] = (u8)(255 - i);
	for (u32 len = 0; len < sizeof(bytes); len++)
		for (u32 cut = 0; cut <= len; cut += 2)
			assert_int_equal(folded(nic_sum(bytes + cut, len - cut,
							nic_sum(bytes, cut, 0))),
					 plain(bytes, len, 0));
}

struct segment {
	u8 bytes[128];
	struct nic_rx rx;
};

/* Header and payload of @len bytes with the checksum that is @off beside the right one. */
static void make(struct segment *s, bool v4, u32 len, u16 off)
{
	u8 pseudo[40] = { 0 };
	u16 sum;

	memset(&s->rx, 0, sizeof(s->rx));
	nic_addr_parse(v4 ? "10.9.0.1" : "fd09::1", &s->rx.src);
	nic_addr_parse(v4 ? "10.9.0.2" : "fd09::2", &s->rx.dst);
	for (u32 i = 0; i < len; i++)
		s->bytes[i] = (u8)(i * 11 + 3);
	homa_put_be16(s->bytes + 16, 0);
	memcpy(pseudo, s->rx.src.ip, 16);
	memcpy(pseudo + 16, s->rx.dst.ip, 16);
	if (v4) { /* RFC 9293, 3.1: four bytes of each address */
		memset(pseudo, 0, 12);
		memset(pseudo + 16, 0, 12);
	}
	homa_put_be32(pseudo + 32, len);
	pseudo[39] = 6;
	sum = plain(s->bytes, len, plain(pseudo, sizeof(pseudo), 0));
	homa_put_be16(s->bytes + 16, (u16)((u16)~sum + off));
	s->rx.data = s->bytes;
	s->rx.len = len;
	s->rx.proto = NIC_TCP;
}

static void sound__right_ones(void **state)
{
	(void)state;
	for (int v4 = 0; v4 < 2; v4++) {
		for (u32 len = 20; len < 128; len++) {
			struct segment s;

			make(&s, v4, len, 0);
			assert_true(nic_tcp_sound(&s.rx, false));
			assert_true(nic_tcp_sound(&s.rx, true));
		}
	}
}

/* Pieces of any length, also of 0 bytes and behind an odd number of them, and more bytes in the
 * last one than the packet has. */
static void sound__in_pieces(void **state)
{
	(void)state;
	for (u32 first = 20; first < 128; first++) {
		for (u32 second = 0; second <= 128 - first;
		     second += 1 + second % 5) {
			struct nic_piece pieces[3];
			struct segment s;

			make(&s, first & 1, 121, 0);
			pieces[0] = (struct nic_piece){ s.bytes, first };
			pieces[1] = (struct nic_piece){ s.bytes + first, second };
			pieces[2] = (struct nic_piece){ s.bytes + first + second,
							128 - first - second };
			s.rx.pieces = pieces;
			assert_int_equal(nic_rx_here(&s.rx),
					 homa_min_u32(first, 121));
			assert_true(nic_tcp_sound(&s.rx, false));
			s.bytes[120] ^= 4;
			assert_false(nic_tcp_sound(&s.rx, false));
		}
	}
}

static void sound__every_wrong_bit_is_noticed(void **state)
{
	(void)state;
	for (u32 bit = 0; bit < 61 * 8; bit++) {
		struct segment s;

		make(&s, bit & 1, 61, 0);
		s.bytes[bit / 8] ^= (u8)(1 << bit % 8);
		assert_false(nic_tcp_sound(&s.rx, false));
	}
	for (u16 off = 1; off < 300; off++) {
		struct segment s;

		make(&s, off & 1, 61, off);
		assert_false(nic_tcp_sound(&s.rx, false));
	}
}

static void sound__addresses_and_length_count(void **state)
{
	struct segment s;

	(void)state;
	for (int v4 = 0; v4 < 2; v4++) {
		make(&s, v4, 40, 0);
		s.rx.dst.ip[15]++;
		assert_false(nic_tcp_sound(&s.rx, false));
		make(&s, v4, 40, 0);
		s.rx.len = 39;
		assert_false(nic_tcp_sound(&s.rx, false));
		assert_false(nic_tcp_sound(&s.rx, true));
	}
}

/* 0 and ffff are the same number there. */
static void sound__a_checksum_of_zero(void **state)
{
	struct segment s;
	u16 check;

	(void)state;
	make(&s, true, 40, 0);
	check = homa_get_be16(s.bytes + 16);
	/* Move what the checksum is into the payload: then it is 0. */
	homa_put_be16(s.bytes + 16, 0);
	homa_put_be16(s.bytes + 30, plain(s.bytes + 30, 2, check));
	assert_true(nic_tcp_sound(&s.rx, false));
	homa_put_be16(s.bytes + 16, 0xffff);
	assert_true(nic_tcp_sound(&s.rx, false));
}

static void sound__unfinished_ones_only_where_they_may_be(void **state)
{
	(void)state;
	for (int v4 = 0; v4 < 2; v4++) {
		struct segment s;
		u16 field;

		make(&s, v4, 61, 0);
		field = nic_sum_fold(nic_sum_pseudo(&s.rx.src, &s.rx.dst, 61));
		memcpy(s.bytes + 16, &field, sizeof(field));
		assert_true(nic_tcp_sound(&s.rx, true));
		assert_false(nic_tcp_sound(&s.rx, false));
		/* nothing else passes for it: of another length, or complemented */
		field = (u16)~field;
		memcpy(s.bytes + 16, &field, sizeof(field));
		assert_false(nic_tcp_sound(&s.rx, true));
		field = nic_sum_fold(nic_sum_pseudo(&s.rx.src, &s.rx.dst, 62));
		memcpy(s.bytes + 16, &field, sizeof(field));
		assert_false(nic_tcp_sound(&s.rx, true));
	}
}

static void sound__too_short_for_a_checksum(void **state)
{
	(void)state;
	for (u32 len = 0; len < 18; len++) {
		struct segment s;
		u8 *copy = malloc(len ? len : 1);
		u16 field;

		make(&s, true, 20, 0);
		memcpy(copy, s.bytes, len);
		s.rx.data = copy;
		s.rx.len = len;
		assert_false(nic_tcp_sound(&s.rx, true));
		free(copy);
		/* what lies behind the end does not count */
		s.rx.data = s.bytes;
		field = nic_sum_fold(nic_sum_pseudo(&s.rx.src, &s.rx.dst, len));
		memcpy(s.bytes + 16, &field, sizeof(field));
		assert_false(nic_tcp_sound(&s.rx, true));
	}
}

static void frame__tcp_parses_back(void **state)
{
	(void)state;
	for (int v4 = 0; v4 < 2; v4++) {
		for (u8 ecn = 0; ecn < 4; ecn++) {
			const char *named = v4 ? "10.9.0.9" : "fd09::9";
			struct homa_addr path, src, dst;
			struct nic_frame_template t;
			u8 frame[256], hdr[20] = { 1, 2, 3, 4 };
			struct nic_tx tx = {
				.hdr = hdr,
				.hdr_len = 20,
				.payload_len = 33,
				.prio = 7,
				.proto = NIC_TCP,
				.ecn = ecn,
			};
			struct nic_rx rx;
			u8 *ip = frame + 14;

			nic_addr_parse(v4 ? "10.9.0.1" : "fd09::1", &path);
			nic_addr_parse(v4 ? "10.9.0.2" : "fd09::2", &dst);
			nic_addr_parse(named, &src);
			nic_frame_template_init(&t, mac, mac, &path, &dst);
			for (int own = 0; own < 2; own++) {
				tx.src = own ? &src : NULL;
				nic_frame_build_tcp(&t, frame, &tx);
				memcpy(frame + t.len, hdr, 20);
				memset(frame + t.len + 20, 9, 33);
				assert_int_equal(nic_frame_parse(frame,
								 t.len + 53 + 7,
								 &rx),
						 0);
				assert_int_equal(rx.proto, NIC_TCP);
				assert_int_equal(rx.len, 53);
				assert_ptr_equal(rx.data, frame + t.len);
				assert_int_equal(rx.ecn, ecn);
				assert_int_equal(rx.prio,
						 0); /* DSCP 0 whatever was asked */
				assert_true(homa_addr_equal(&rx.src,
							    own ? &src : &path));
				assert_true(homa_addr_equal(&rx.dst, &dst));
				assert_int_equal(v4 ? ip[8] : ip[7], 64);
				if (v4)
					assert_int_equal(homa_get_be16(ip + 6),
							 0x4000);
				else
					assert_int_not_equal(homa_get_be32(ip) &
								     0xfffff,
							     0);
			}
		}
	}
}

/* All packets of a connection have one flow label, others' another. */
static void frame__flow_label_is_the_connections(void **state)
{
	u8 frame[128], hdr[20] = { 1, 2, 3, 4 };
	struct nic_tx tx = { .hdr = hdr, .hdr_len = 20, .proto = NIC_TCP };
	struct nic_frame_template t;
	struct homa_addr src, dst;
	u32 label;

	(void)state;
	nic_addr_parse("fd09::1", &src);
	nic_addr_parse("fd09::2", &dst);
	nic_frame_template_init(&t, mac, mac, &src, &dst);
	nic_frame_build_tcp(&t, frame, &tx);
	label = homa_get_be32(frame + 14) & 0xfffff;
	homa_put_be32(hdr + 4, 77);
	tx.payload_len = 30;
	nic_frame_build_tcp(&t, frame, &tx);
	assert_int_equal(homa_get_be32(frame + 14) & 0xfffff, label);
	hdr[1]++;
	nic_frame_build_tcp(&t, frame, &tx);
	assert_int_not_equal(homa_get_be32(frame + 14) & 0xfffff, label);
}

/* Who answers a segment from or to such an address answers a whole network, or many do. */
static void frame__tcp_from_no_host(void **state)
{
	static const char *const sources[] = { "224.0.0.1", "255.255.255.255",
					       "0.0.0.0",   "ff02::1",
					       "10.9.0.1",  "fd09::1" };
	u8 frame[128], hdr[20] = { 0 };
	struct nic_tx tx = { .hdr = hdr, .hdr_len = 20, .proto = NIC_TCP };
	struct nic_frame_template t;
	struct homa_addr src, dst;
	struct nic_rx rx;

	(void)state;
	for (u32 i = 0; i < HOMA_ARRAY_SIZE(sources); i++) {
		nic_addr_parse(sources[i], &src);
		nic_addr_parse(strchr(sources[i], ':') ? "fd09::2" : "10.9.0.2",
			       &dst);
		nic_frame_template_init(&t, mac, mac, &src, &dst);
		nic_frame_build_tcp(&t, frame, &tx);
		memcpy(frame + t.len, hdr, sizeof(hdr));
		assert_int_equal(nic_frame_parse(frame, t.len + 20u, &rx),
				 i < 4 ? -EBADMSG : 0);
		nic_frame_template_init(&t, mac, mac, &dst, &src);
		nic_frame_build_tcp(&t, frame, &tx);
		memcpy(frame + t.len, hdr, sizeof(hdr));
		assert_int_equal(nic_frame_parse(frame, t.len + 20u, &rx),
				 i < 4 ? -EBADMSG : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sum__any_length_and_alignment),
		cmocka_unit_test(sum__pieces_are_the_whole),
		cmocka_unit_test(sound__right_ones),
		cmocka_unit_test(sound__in_pieces),
		cmocka_unit_test(sound__every_wrong_bit_is_noticed),
		cmocka_unit_test(sound__addresses_and_length_count),
		cmocka_unit_test(sound__a_checksum_of_zero),
		cmocka_unit_test(sound__unfinished_ones_only_where_they_may_be),
		cmocka_unit_test(sound__too_short_for_a_checksum),
		cmocka_unit_test(frame__tcp_parses_back),
		cmocka_unit_test(frame__flow_label_is_the_connections),
		cmocka_unit_test(frame__tcp_from_no_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
