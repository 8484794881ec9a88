// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * ICMP errors: what one side builds the other understands, errors as routers
 * send them are mapped to errnos, and quotes that are cut off or not ours are
 * refused or taken as far as they go.
 */
#include "unit.h"

#include <errno.h>

#include "frame.h"
#include "icmp.h"
#include "netif.h"

static u8 packet[1400];

static struct nic_rx make(bool v4, u32 len, u16 encap)
{
	struct nic_rx rx = { .data = packet, .len = len, .prio = 4 };

	for (u32 i = 0; i < sizeof(packet); i++)
		packet[i] = (u8)(i * 5);
	homa_put_be16(packet, 40000);
	homa_put_be16(packet + 2, 99);
	homa_put_be64(packet + 20, 0x123456789abcULL);
	nic_addr_parse(v4 ? "10.9.0.1" : "fd09::1", &rx.src);
	nic_addr_parse(v4 ? "10.9.0.2" : "fd09::2", &rx.dst);
	rx.src.encap = encap;
	return rx;
}

static void icmp__port_unreachable_is_understood(void **state)
{
	(void)state;
	for (int v4 = 0; v4 < 2; v4++) {
		for (u32 len = 28; len <= sizeof(packet); len += 43) {
			struct nic_rx rx = make(v4, len, 0);
			u8 msg[NIC_ICMP_MAX];
			u32 n = nic_icmp_build(msg, &rx, 0);
			struct nic_error e;

			assert_true(n <= (u32)(v4 ? NIC_ICMP_MAX_V4 :
						    NIC_ICMP_MAX_V6));
			if (v4)
				assert_int_equal(nic_checksum(msg, n, 0), 0);
			assert_int_equal(nic_icmp_parse(msg, n, !v4, &e), 0);
			assert_int_equal(e.error, ECONNREFUSED);
			assert_int_equal(e.sport, 40000);
			assert_int_equal(e.dport, 99);
			assert_int_equal(e.sender_id, 0x123456789abcULL);
			assert_true(homa_addr_equal(&e.dst, &rx.dst));
			assert_true(homa_addr_equal(&e.src, &rx.src));
		}
	}
}

static void icmp__udp_is_quoted_with_its_ports(void **state)
{
	struct nic_rx rx = make(true, 100, 45678);
	u8 msg[NIC_ICMP_MAX];
	u32 n = nic_icmp_build(msg, &rx, 54321);
	const u8 *ip = msg + 8;

	(void)state;
	assert_int_equal(n, 8 + 20 + 8 + 100);
	assert_int_equal(ip[9], 17);
	assert_int_equal(nic_checksum(ip, 20, 0), 0);
	assert_int_equal(homa_get_be16(ip + 20), 45678);
	assert_int_equal(homa_get_be16(ip + 22), 54321);
	assert_int_equal(homa_get_be16(ip + 24), 108);
	assert_memory_equal(ip + 28, packet, 100);
}

static void expect(bool v6, u8 type, u8 code, int error)
{
	assert_int_equal(nic_icmp_errno(type, code, v6), error);
}

static void icmp__types_and_codes(void **state)
{
	(void)state;
	expect(false, 3, 0, ENETUNREACH);
	expect(false, 3, 1, EHOSTUNREACH);
	expect(false, 3, 2, EPROTONOSUPPORT);
	expect(false, 3, 3, ECONNREFUSED);
	expect(false, 3, 4, EMSGSIZE);
	expect(false, 3, 13, EHOSTUNREACH);
	expect(false, 3, 200, EHOSTUNREACH);
	expect(false, 11, 0, EHOSTUNREACH);
	expect(false, 0, 0, 0); /* echo reply */
	expect(false, 8, 0, 0); /* echo request */
	expect(false, 5, 0, 0); /* redirect: the kernel's business */
	expect(true, 1, 0, ENETUNREACH);
	expect(true, 1, 3, EHOSTUNREACH);
	expect(true, 1, 4, ECONNREFUSED);
	expect(true, 1, 99, EHOSTUNREACH);
	expect(true, 2, 0, EMSGSIZE);
	expect(true, 4, 1, EPROTONOSUPPORT);
	expect(true, 128, 0, 0);
	expect(true, 135, 0, 0);
}

static void icmp__too_big_tells_the_mtu(void **state)
{
	struct nic_rx rx = make(true, 100, 0);
	struct nic_error e;
	u8 msg[NIC_ICMP_MAX];
	u32 n = nic_icmp_build(msg, &rx, 0);

	(void)state;
	msg[1] = 4;
	homa_put_be16(msg + 6, 1300);
	assert_int_equal(nic_icmp_parse(msg, n, false, &e), 0);
	assert_int_equal(e.error, EMSGSIZE);
	assert_int_equal(e.mtu, 1300);
	rx = make(false, 100, 0);
	n = nic_icmp_build(msg, &rx, 0);
	msg[0] = 2;
	msg[1] = 0;
	homa_put_be32(msg + 4, 1280);
	assert_int_equal(nic_icmp_parse(msg, n, true, &e), 0);
	assert_int_equal(e.mtu, 1280);
}

static void icmp__short_quotes(void **state)
{
	(void)state;
	for (int v4 = 0; v4 < 2; v4++) {
		struct nic_rx rx = make(v4, 60, 0);
		u8 msg[NIC_ICMP_MAX];
		u32 n = nic_icmp_build(msg, &rx, 0);
		u32 ip = v4 ? 20 : 40;

		for (u32 len = 0; len <= n; len++) {
			struct nic_error e;
			u8 *copy = malloc(len ? len : 1);
			int rc;

			memcpy(copy, msg, len);
			rc = nic_icmp_parse(copy, len, !v4, &e);
			free(copy);
			if (len < 8 + ip) {
				assert_int_equal(rc, -EBADMSG);
				continue;
			}
			/* ports from 4 bytes on, the id needs the whole header */
			assert_int_equal(rc, 0);
			assert_int_equal(e.dport, len >= 8 + ip + 4 ? 99 : 0);
			assert_int_equal(e.sender_id, len >= 8 + ip + 28 ?
							      0x123456789abcULL :
							      0);
		}
	}
}

static void icmp__other_protocols_are_refused(void **state)
{
	struct nic_rx rx = make(true, 60, 4000);
	struct nic_error e;
	u8 msg[NIC_ICMP_MAX];
	u32 n = nic_icmp_build(msg, &rx, 1); /* quotes UDP */

	(void)state;
	assert_int_equal(nic_icmp_parse(msg, n, false, &e), -EBADMSG);
	rx = make(true, 60, 0);
	n = nic_icmp_build(msg, &rx, 0);
	msg[8] = 0x41; /* header of 4 bytes */
	assert_int_equal(nic_icmp_parse(msg, n, false, &e), -EBADMSG);
	msg[8] = 0x65;
	assert_int_equal(nic_icmp_parse(msg, n, false, &e), -EBADMSG);
	msg[8] = 0x4f; /* header longer than the quote */
	assert_int_equal(nic_icmp_parse(msg, 8 + 30, false, &e), -EBADMSG);
	/* an IPv4 quote in an ICMPv6 message */
	msg[0] = 1;
	msg[8] = 0x45;
	assert_int_equal(nic_icmp_parse(msg, n, true, &e), -EBADMSG);
}

static void icmp__tcp_is_quoted_with_ports_and_sequence_number(void **state)
{
	(void)state;
	for (int v4 = 0; v4 < 2; v4++) {
		struct nic_rx rx = make(v4, 40, 0);
		u32 ip = v4 ? 20 : 40, n;
		u8 msg[NIC_ICMP_MAX];

		homa_put_be32(packet + 4, 0xfedcba98);
		n = nic_icmp_build(msg, &rx, 0);
		msg[8 + (v4 ? 9 : 6)] = 6;
		for (u32 len = 8 + ip; len <= n; len++) {
			struct nic_error e;
			u8 *copy = malloc(len);
			int rc;

			memcpy(copy, msg, len);
			rc = nic_icmp_parse(copy, len, !v4, &e);
			free(copy);
			/* less than eight bytes of the segment say nothing */
			assert_int_equal(rc, len < 8 + ip + 8 ? -EBADMSG : 0);
			if (rc)
				continue;
			assert_int_equal(e.proto, NIC_TCP);
			assert_int_equal(e.error, ECONNREFUSED);
			assert_int_equal(e.sport, 40000);
			assert_int_equal(e.dport, 99);
			assert_int_equal(e.seq, 0xfedcba98);
			assert_int_equal(e.sender_id, 0);
			assert_true(homa_addr_equal(&e.src, &rx.src));
			assert_true(homa_addr_equal(&e.dst, &rx.dst));
		}
	}
}

static void icmp__later_fragments_quote_no_header(void **state)
{
	struct nic_rx rx = make(true, 60, 0);
	struct nic_error e;
	u8 msg[NIC_ICMP_MAX];
	u32 n = nic_icmp_build(msg, &rx, 0);

	(void)state;
	msg[8 + 6] = 0x20; /* the first one of several */
	assert_int_equal(nic_icmp_parse(msg, n, false, &e), 0);
	msg[8 + 7] = 1;
	assert_int_equal(nic_icmp_parse(msg, n, false, &e), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(icmp__port_unreachable_is_understood),
		cmocka_unit_test(icmp__udp_is_quoted_with_its_ports),
		cmocka_unit_test(icmp__types_and_codes),
		cmocka_unit_test(icmp__too_big_tells_the_mtu),
		cmocka_unit_test(icmp__short_quotes),
		cmocka_unit_test(icmp__other_protocols_are_refused),
		cmocka_unit_test(
			icmp__tcp_is_quoted_with_ports_and_sequence_number),
		cmocka_unit_test(icmp__later_fragments_quote_no_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
