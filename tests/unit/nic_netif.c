// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Addresses of an interface: text, prefixes, choice of the source. */
#include "unit.h"

#include <errno.h>

#include "netif.h"

static struct homa_addr addr(const char *text)
{
	struct homa_addr a;

	assert_int_equal(nic_addr_parse(text, &a), 0);
	return a;
}

static struct nic_netif make(void)
{
	struct nic_netif n;

	memset(&n, 0, sizeof(n));
	n.addrs[0] = addr("10.1.2.3");
	n.prefix[0] = 20;
	n.addrs[1] = addr("fd00:1::5");
	n.prefix[1] = 64;
	n.addrs[2] = addr("fe80::1");
	n.prefix[2] = 64;
	n.addrs[3] = addr("192.0.2.7");
	n.prefix[3] = 32;
	n.n_addrs = 4;
	return n;
}

static void addr_parse__texts(void **state)
{
	struct homa_addr a, b;
	char buf[48];

	(void)state;
	a = addr("10.0.0.1");
	assert_true(homa_addr_is_v4(&a));
	assert_string_equal(nic_addr_text(&a, buf, sizeof(buf)), "10.0.0.1");
	b = addr("::ffff:10.0.0.1");
	assert_true(homa_addr_equal(&a, &b));
	a = addr("fd00::1");
	assert_false(homa_addr_is_v4(&a));
	assert_string_equal(nic_addr_text(&a, buf, sizeof(buf)), "fd00::1");
	assert_int_equal(nic_addr_parse("10.0.0", &a), -EINVAL);
	assert_int_equal(nic_addr_parse("10.0.0.256", &a), -EINVAL);
	assert_int_equal(nic_addr_parse("host", &a), -EINVAL);
	assert_int_equal(nic_addr_parse("", &a), -EINVAL);
}

static void netif_on_link__prefixes(void **state)
{
	struct nic_netif n = make();
	static const struct {
		const char *text;
		bool on_link;
	} cases[] = {
		{ "10.1.0.1", true },	{ "10.1.15.255", true },
		{ "10.1.16.0", false }, { "10.2.2.3", false },
		{ "192.0.2.7", true },	{ "192.0.2.8", false },
		{ "fd00:1::99", true }, { "fd00:1:0:1::5", false },
		{ "fe80::77", true },	{ "2001:db8::1", false },
	};

	(void)state;
	for (size_t i = 0; i < HOMA_ARRAY_SIZE(cases); i++) {
		struct homa_addr a = addr(cases[i].text);

		assert_int_equal(nic_netif_on_link(&n, &a), cases[i].on_link);
	}
}

static void netif_source__family_and_scope(void **state)
{
	struct nic_netif n = make();
	struct homa_addr dst, none = addr("10.1.2.4");

	(void)state;
	dst = addr("8.8.8.8");
	assert_true(homa_addr_equal(nic_netif_source(&n, &dst), &n.addrs[0]));
	dst = addr("2001:db8::1");
	assert_true(homa_addr_equal(nic_netif_source(&n, &dst), &n.addrs[1]));
	dst = addr("fe80::9");
	assert_true(homa_addr_equal(nic_netif_source(&n, &dst), &n.addrs[2]));
	n.n_addrs = 1;
	assert_null(nic_netif_source(&n, &dst));
	assert_true(nic_netif_has(&n, &n.addrs[0]));
	assert_false(nic_netif_has(&n, &none));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addr_parse__texts),
		cmocka_unit_test(netif_on_link__prefixes),
		cmocka_unit_test(netif_source__family_and_scope),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
