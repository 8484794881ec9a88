// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Tests: addresses of the kernel to the engine's and back. */
#include <linux/inet.h>
#include <net/ipv6.h>

#include "homa_kunit.h"

static void addr_v4_is_mapped(struct kunit *test)
{
	static const u8 want[16] = { 0, 0, 0,	 0,    0,   0, 0, 0,
				     0, 0, 0xff, 0xff, 192, 0, 2, 7 };
	struct homa_addr a;

	memset(&a, 0xaa, sizeof(a));
	homak_addr_v4(&a, in_aton("192.0.2.7"), 0);
	KUNIT_EXPECT_EQ(test, memcmp(a.ip, want, 16), 0);
	KUNIT_EXPECT_EQ(test, (u32)a.encap, 0u);
	/* Addresses are compared as bytes: nothing may be left over. */
	KUNIT_EXPECT_EQ(test, (u32)a.zero, 0u);
	KUNIT_EXPECT_TRUE(test, homak_addr_get_v4(&a) == in_aton("192.0.2.7"));
}

static void addr_v6_round_trip(struct kunit *test)
{
	struct in6_addr ip, mapped;
	struct homa_addr a, b;

	memset(&a, 0xaa, sizeof(a));
	memset(&b, 0x55, sizeof(b));
	KUNIT_ASSERT_EQ(test,
			in6_pton("2001:db8::17", -1, ip.s6_addr, -1, NULL), 1);
	homak_addr_v6(&a, &ip, 54321);
	KUNIT_EXPECT_EQ(test, memcmp(a.ip, &ip, 16), 0);
	KUNIT_EXPECT_EQ(test, (u32)a.encap, 54321u);
	KUNIT_EXPECT_EQ(test, (u32)a.zero, 0u);
	/* Both ways to write an IPv4 address mean the same peer. */
	ipv6_addr_set_v4mapped(in_aton("10.1.2.3"), &mapped);
	homak_addr_v6(&a, &mapped, HOMAK_DISGUISE_TCP);
	homak_addr_v4(&b, in_aton("10.1.2.3"), HOMAK_DISGUISE_TCP);
	KUNIT_EXPECT_EQ(test, memcmp(&a, &b, sizeof(a)), 0);
}

/* A link-local peer is reached through an interface, which its address keeps. */
static void addr_link_local(struct kunit *test)
{
	struct in6_addr local, global, back;
	struct homa_addr a, b;

	in6_pton("fe80::1:2", -1, local.s6_addr, -1, NULL);
	in6_pton("2001:db8::17", -1, global.s6_addr, -1, NULL);
	homak_addr_v6_at(&a, &local, 0, 3);
	homak_addr_v6_at(&b, &local, 0, 4);
	KUNIT_EXPECT_NE(test, memcmp(&a, &b, sizeof(a)), 0);
	KUNIT_EXPECT_EQ(test, homak_addr_get_v6(&a, &back), 3);
	KUNIT_EXPECT_TRUE(test, ipv6_addr_equal(&back, &local));
	homak_addr_v6_at(&a, &global, 0, 3);
	homak_addr_v6_at(&b, &global, 0, 4);
	KUNIT_EXPECT_EQ(test, memcmp(&a, &b, sizeof(a)), 0);
	KUNIT_EXPECT_EQ(test, homak_addr_get_v6(&a, &back), 0);
	KUNIT_EXPECT_TRUE(test, ipv6_addr_equal(&back, &global));
}

static struct kunit_case addr_cases[] = { KUNIT_CASE(addr_v4_is_mapped),
					  KUNIT_CASE(addr_v6_round_trip),
					  KUNIT_CASE(addr_link_local),
					  {} };

struct kunit_suite homak_kunit_addr = {
	.name = "homa_addr",
	.test_cases = addr_cases,
};
