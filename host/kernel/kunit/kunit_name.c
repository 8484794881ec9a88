// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Tests: peers as applications name them (sockname.c), to the engine's addresses and
 * back; what an ICMP error means to an RPC (icmp.c).
 */
#include <linux/icmp.h>
#include <linux/icmpv6.h>
#include <linux/inet.h>
#include <linux/net.h>
#include <net/ipv6.h>

#include "homa_kunit.h"
#include "homa_receive.h"
#include "homa_sockets.h"

static int name_get(struct socket *sock, const void *sa, int size,
		    struct homak_name *name)
{
	return homak_name_get(homak_sk(sock->sk), sa, size, name);
}

static int name_open(struct kunit *test, int family)
{
	struct socket *sock = NULL;
	int err = sock_create_kern(&init_net, family, SOCK_DGRAM, IPPROTO_HOMA,
				   &sock);

	test->priv = sock;
	return err;
}

static void name_close(struct kunit *test)
{
	if (test->priv)
		sock_release(test->priv);
	test->priv = NULL;
}

static void name_v4(struct kunit *test)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons(4000),
				  .sin_addr.s_addr = in_aton("192.0.2.9") };
	struct sockaddr_storage back;
	struct homak_name name;
	struct socket *sock;

	KUNIT_ASSERT_EQ(test, name_open(test, AF_INET), 0);
	sock = test->priv;
	KUNIT_EXPECT_EQ(test, name_get(sock, &in, sizeof(in), &name), 0);
	KUNIT_EXPECT_EQ(test, (u32)name.port, 4000u);
	KUNIT_EXPECT_TRUE(test,
			  homak_addr_get_v4(&name.addr) == in.sin_addr.s_addr);
	KUNIT_EXPECT_TRUE(test, homak_name_fits(homak_sk(sock->sk), &name.addr));
	memset(&back, 0xff, sizeof(back));
	KUNIT_EXPECT_EQ(test,
			homak_name_put(homak_sk(sock->sk), &name.addr,
				       name.port, &back),
			(int)sizeof(in));
	KUNIT_EXPECT_EQ(test, memcmp(&back, &in, sizeof(in)), 0);
}

static void name_v6(struct kunit *test)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6,
				    .sin6_port = htons(65535) };
	struct sockaddr_storage back;
	struct homak_name name;
	struct socket *sock;

	if (name_open(test, AF_INET6))
		return; /* the kernel has no IPv6 */
	sock = test->priv;
	in6_pton("2001:db8::5", -1, in6.sin6_addr.s6_addr, -1, NULL);
	KUNIT_EXPECT_EQ(test, name_get(sock, &in6, sizeof(in6), &name), 0);
	KUNIT_EXPECT_EQ(test,
			homak_name_put(homak_sk(sock->sk), &name.addr,
				       name.port, &back),
			(int)sizeof(in6));
	KUNIT_EXPECT_EQ(test, memcmp(&back, &in6, sizeof(in6)), 0);

	/* An IPv4-mapped name of an IPv6 socket means an IPv4 peer. */
	ipv6_addr_set_v4mapped(in_aton("10.0.0.1"), &in6.sin6_addr);
	KUNIT_EXPECT_EQ(test, name_get(sock, &in6, sizeof(in6), &name), 0);
	KUNIT_EXPECT_TRUE(test,
			  homak_addr_get_v4(&name.addr) == in_aton("10.0.0.1"));

	/* A link-local peer needs its interface, which is in its name again. */
	in6_pton("fe80::1", -1, in6.sin6_addr.s6_addr, -1, NULL);
	KUNIT_EXPECT_EQ(test, name_get(sock, &in6, sizeof(in6), &name), -EINVAL);
	in6.sin6_scope_id = 7;
	KUNIT_EXPECT_EQ(test, name_get(sock, &in6, sizeof(in6), &name), 0);
	homak_name_put(homak_sk(sock->sk), &name.addr, name.port, &back);
	KUNIT_EXPECT_EQ(test, memcmp(&back, &in6, sizeof(in6)), 0);
}

static void name_refused(struct kunit *test)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons(4000),
				  .sin_addr.s_addr = in_aton("192.0.2.9") };
	struct homak_name name;
	struct socket *sock;

	KUNIT_ASSERT_EQ(test, name_open(test, AF_INET), 0);
	sock = test->priv;
	KUNIT_EXPECT_EQ(test, name_get(sock, NULL, 0, &name), -EINVAL);
	KUNIT_EXPECT_EQ(test, name_get(sock, &in, 1, &name), -EINVAL);
	KUNIT_EXPECT_EQ(test, name_get(sock, &in, sizeof(in) - 1, &name),
			-EINVAL);
	in.sin_family = AF_INET6;
	KUNIT_EXPECT_EQ(test, name_get(sock, &in, sizeof(in), &name),
			-EAFNOSUPPORT);
}

static void icmp_means(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test,
			homak_icmp_errno_v4(ICMP_DEST_UNREACH, ICMP_PORT_UNREACH),
			ENOTCONN);
	KUNIT_EXPECT_EQ(test,
			homak_icmp_errno_v4(ICMP_DEST_UNREACH, ICMP_PROT_UNREACH),
			EPROTONOSUPPORT);
	KUNIT_EXPECT_EQ(test,
			homak_icmp_errno_v4(ICMP_DEST_UNREACH, ICMP_HOST_UNREACH),
			EHOSTUNREACH);
	KUNIT_EXPECT_EQ(test,
			homak_icmp_errno_v4(ICMP_DEST_UNREACH, ICMP_FRAG_NEEDED),
			EMSGSIZE);
	KUNIT_EXPECT_EQ(test, homak_icmp_errno_v4(ICMP_DEST_UNREACH, 255), 0);
	KUNIT_EXPECT_EQ(test, homak_icmp_errno_v4(ICMP_TIME_EXCEEDED, 0), 0);
	KUNIT_EXPECT_EQ(test, homak_icmp_errno_v4(ICMP_REDIRECT, 0), 0);
	KUNIT_EXPECT_EQ(test,
			homak_icmp_errno_v6(ICMPV6_DEST_UNREACH,
					    ICMPV6_PORT_UNREACH),
			ENOTCONN);
	KUNIT_EXPECT_EQ(test,
			homak_icmp_errno_v6(ICMPV6_DEST_UNREACH,
					    ICMPV6_ADDR_UNREACH),
			EHOSTUNREACH);
	KUNIT_EXPECT_EQ(test, homak_icmp_errno_v6(ICMPV6_PKT_TOOBIG, 0),
			EMSGSIZE);
	KUNIT_EXPECT_EQ(test,
			homak_icmp_errno_v6(ICMPV6_PARAMPROB, ICMPV6_UNK_NEXTHDR),
			EPROTONOSUPPORT);
	KUNIT_EXPECT_EQ(test, homak_icmp_errno_v6(ICMPV6_TIME_EXCEED, 0), 0);
}

static struct kunit_case name_cases[] = { KUNIT_CASE(name_v4),
					  KUNIT_CASE(name_v6),
					  KUNIT_CASE(name_refused),
					  KUNIT_CASE(icmp_means),
					  {} };

struct kunit_suite homak_kunit_name = {
	.name = "homa_name",
	.exit = name_close,
	.test_cases = name_cases,
};
