/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* host/common/sockaddr.c: there and back, and where the encapsulation port is. */
#include "unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include "homa_sockaddr.h"

static struct sockaddr_storage v4(void)
{
	struct sockaddr_storage sa = { 0 };
	struct sockaddr_in *in = (struct sockaddr_in *)&sa;

	in->sin_family = AF_INET;
	in->sin_port = htons(4000);
	inet_pton(AF_INET, "10.1.2.3", &in->sin_addr);
	return sa;
}

static struct sockaddr_storage v6(void)
{
	struct sockaddr_storage sa = { 0 };
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&sa;

	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(4001);
	inet_pton(AF_INET6, "fd00::17", &in6->sin6_addr);
	return sa;
}

static void round_trip(struct sockaddr_storage sa, u16 encap)
{
	struct sockaddr_storage copy, back;
	struct homa_addr addr;
	u16 port;

	memset(&back, 0xee, sizeof(back));
	homa_sockaddr_set_encap((struct sockaddr *)&sa, encap);
	copy = sa;
	assert_int_equal(homa_sockaddr_to_addr((struct sockaddr *)&copy, true,
					       &addr, &port),
			 0);
	assert_int_equal(addr.encap, encap ? encap : HOMA_ENCAP_PORT);
	assert_int_equal(addr.zero, 0);
	homa_sockaddr_from_addr(&back, &addr, port);
	assert_memory_equal(&back, &sa,
			    sa.ss_family == AF_INET ?
				    sizeof(struct sockaddr_in) :
				    sizeof(struct sockaddr_in6));
}

static void any__of_either_version(void **state)
{
	static const struct {
		const char *text;
		bool any;
	} cases[] = {
		{ "::", true },		{ "::ffff:0.0.0.0", true },
		{ "::1", false },	{ "::ffff:0.0.0.1", false },
		{ "fd00::", false },	{ "::ffff:127.0.0.0", false },
		{ "::0.0.0.1", false }, { "::fffe:0:0", false },
	};
	struct homa_addr addr = { .encap = 54321 };
	size_t i;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(cases); i++) {
		assert_int_equal(inet_pton(AF_INET6, cases[i].text, addr.ip), 1);
		if (homa_addr_is_any(&addr) != cases[i].any)
			fail_msg("%s", cases[i].text);
	}
}

static void there_and_back(void **state)
{
	static const u16 ports[] = { 0, 1, 40001, 65535 };
	size_t i;

	(void)state;
	for (i = 0; i < HOMA_ARRAY_SIZE(ports); i++) {
		round_trip(v4(), ports[i]);
		round_trip(v6(), ports[i]);
	}
}

static void encap__usual_port_leaves_no_trace(void **state)
{
	struct sockaddr_storage sa = v4(), plain = v4();

	(void)state;
	homa_sockaddr_set_encap((struct sockaddr *)&sa, 4711);
	homa_sockaddr_set_encap((struct sockaddr *)&sa, HOMA_ENCAP_PORT);
	assert_memory_equal(&sa, &plain, sizeof(struct sockaddr_in));
}

static void encap__left_over_bytes_are_not_a_port(void **state)
{
	struct sockaddr_storage a = v4(), b = v6();

	(void)state;
	memset(((struct sockaddr_in *)&a)->sin_zero, 0xff, 8);
	assert_int_equal(homa_sockaddr_encap((struct sockaddr *)&a), 0);
	((struct sockaddr_in6 *)&b)->sin6_flowinfo = htonl(0x0ab12345);
	assert_int_equal(homa_sockaddr_encap((struct sockaddr *)&b), 0);
}

static void to_addr__native(void **state)
{
	struct sockaddr_storage sa = v4();
	struct homa_addr addr;
	u16 port;

	(void)state;
	homa_sockaddr_set_encap((struct sockaddr *)&sa, 4711);
	assert_int_equal(homa_sockaddr_to_addr((struct sockaddr *)&sa, false,
					       &addr, &port),
			 0);
	assert_int_equal(addr.encap, 0);
	assert_int_equal(port, 4000);
	assert_true(homa_addr_is_v4(&addr));
}

static void to_addr__other_families(void **state)
{
	struct sockaddr_storage sa = { .ss_family = AF_UNIX };
	struct homa_addr addr;
	u16 port;

	(void)state;
	assert_int_equal(homa_sockaddr_to_addr((struct sockaddr *)&sa, true,
					       &addr, &port),
			 -EAFNOSUPPORT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_and_back),
		cmocka_unit_test(any__of_either_version),
		cmocka_unit_test(encap__usual_port_leaves_no_trace),
		cmocka_unit_test(encap__left_over_bytes_are_not_a_port),
		cmocka_unit_test(to_addr__native),
		cmocka_unit_test(to_addr__other_families),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
