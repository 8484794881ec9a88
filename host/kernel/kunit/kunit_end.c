// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Tests: the end of a socket (socket.c) while somebody has an RPC of it for longer than its end
 * waits, as a processor may that does not run.
 */
#include <linux/net.h>
#include <linux/uio.h>

#include "homa_bind.h"
#include "homa_kunit.h"
#include "homa_sockets.h"

/* Starts a request that nobody answers, and returns its RPC with a hold; NULL: it cannot. */
static struct homa_rpc *end_request(struct homak_sock *hsk)
{
	struct homak_sending s = { .name.port = 9, .length = 1, .filled = 1 };
	struct kvec vec = { .iov_base = "", .iov_len = 1 };
	struct homa_rpc *rpc = NULL;
	struct homak_cpu *cpu;
	struct iov_iter from;

	homak_addr_v4(&s.name.addr, htonl(INADDR_LOOPBACK), 0);
	iov_iter_kvec(&from, ITER_SOURCE, &vec, 1, 1);
	s.msg = homak_msg_new(hsk, 1);
	if (IS_ERR(s.msg))
		return NULL;
	homak_msg_fill(s.msg, &from, 1);
	cpu = homak_enter_wait(hsk->hnet);
	if (homak_send_rpc(cpu, hsk, &s))
		homak_msg_free(s.msg);
	else
		rpc = homa_rpc_hold(&cpu->ctx, s.handle.id, NULL);
	homak_leave(cpu);
	return rpc;
}

static void end_release(struct homak_sock *hsk, struct homa_rpc *rpc)
{
	struct homak_cpu *cpu = homak_enter_wait(hsk->hnet);

	homa_rpc_release(&cpu->ctx, rpc);
	homak_leave(cpu);
}

/* Makes an end that was given up begin again. */
static void end_again(struct homak_sock *hsk)
{
	struct sock *sk = &hsk->inet.sk;

	spin_lock_bh(&hsk->hnet->sock_lock);
	list_add_tail_rcu(&hsk->all, &hsk->hnet->socks);
	spin_unlock_bh(&hsk->hnet->sock_lock);
	local_bh_disable();
	sock_prot_inuse_add(sock_net(sk), sk->sk_prot, 1);
	local_bh_enable();
	sk->sk_prot->destroy(sk);
}

/* Whoever has the RPC finds its socket there when its end has been given up. */
static void end_given_up_leaves_memory(struct kunit *test)
{
	struct homak_sock *hsk;
	struct homa_rpc *rpc;
	struct socket *sock;
	struct sock *sk;
	int err, refs;

	err = sock_create_kern(&init_net, AF_INET, SOCK_DGRAM, IPPROTO_HOMA,
			       &sock);
	KUNIT_ASSERT_EQ(test, err, 0);
	sk = sock->sk;
	hsk = homak_sk(sk);
	homak_use(hsk);
	rpc = end_request(hsk);
	KUNIT_EXPECT_TRUE(test, rpc);
	sock_hold(sk);
	sock_release(sock);
	refs = refcount_read(&sk->sk_refcnt);
	/* One is ours. */
	KUNIT_EXPECT_EQ(test, refs, rpc ? 2 : 1);
	KUNIT_EXPECT_EQ(test, !hsk->engine_sock, !rpc);
	if (rpc) {
		KUNIT_EXPECT_TRUE(test, homak_sock_of(homa_rpc_sock(rpc)) == hsk);
		end_release(hsk, rpc);
		end_again(hsk);
		KUNIT_EXPECT_TRUE(test, !hsk->engine_sock);
	}
	while (refs--)
		sock_put(sk);
}

/* A request that begins after all of a socket has ended fails. The kernel warns if it takes a
 * reference of what has none. */
static void end_is_the_end(struct kunit *test)
{
	struct homak_sock *hsk;
	struct socket *sock;
	int err;

	err = sock_create_kern(&init_net, AF_INET, SOCK_DGRAM, IPPROTO_HOMA,
			       &sock);
	KUNIT_ASSERT_EQ(test, err, 0);
	hsk = homak_sk(sock->sk);
	homak_use(hsk);
	KUNIT_EXPECT_EQ(test, kernel_sock_shutdown(sock, SHUT_RDWR), 0);
	KUNIT_EXPECT_TRUE(test, !end_request(hsk));
	sock_release(sock);
}

static struct kunit_case end_cases[] = { KUNIT_CASE(end_given_up_leaves_memory),
					 KUNIT_CASE(end_is_the_end),
					 {} };

struct kunit_suite homak_kunit_end = {
	.name = "homa_end",
	.test_cases = end_cases,
};
