// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Sockets for those who list them with others, by sock_diag (inet_diag.c). That is a module of
 * its own, as with other protocols, because inet_diag is one: homa.ko needs no other.
 *
 * One walk is one RCU read side and looks at a number of sockets at most. Before these it passes
 * the sockets that were looked at before, which is a step in a list for each.
 */
#include <linux/inet_diag.h>

#include "homa_sockets.h"
#include "homa_socks.h"

/* number of sockets that one walk looks at */
#define HOMAK_SOCKS_STEP 1024u

/* Homa.ko is compiled as if nothing else called its functions; homa_diag.ko does. */
__visible int homak_socks_walk(struct net *net, u32 *index,
			       int (*each)(struct sock *sk, void *arg), void *arg)
{
	struct homak_net *hnet = homak_net(net);
	u32 passed = 0, looked = 0;
	struct homak_sock *hsk;
	int err = 0;

	rcu_read_lock();
	list_for_each_entry_rcu(hsk, &hnet->socks, all) {
		if (passed++ < *index)
			continue;
		err = looked++ < HOMAK_SOCKS_STEP ? each(&hsk->inet.sk, arg) : 1;
		if (err)
			break;
		*index = passed;
	}
	rcu_read_unlock();
	return err;
}
EXPORT_SYMBOL_GPL(homak_socks_walk);

/* Writes an address in the socket's family. */
static void homak_show_addr(const struct sock *sk, const struct homa_addr *addr,
			    __be32 *to)
{
	struct in6_addr ip;

	homak_addr_get_v6(addr, &ip);
	if (sk->sk_family == AF_INET)
		to[0] = ip.s6_addr32[3];
	else
		memcpy(to, &ip, sizeof(ip));
}

__visible void homak_sock_show(const struct sock *sk, struct inet_diag_msg *r)
{
	const struct homak_sock *hsk = homak_sk(sk);
	const struct homak_peer *peer = rcu_dereference(hsk->peer);

	r->idiag_rqueue = (u32)atomic_read(&sk->sk_rmem_alloc);
	r->idiag_wqueue = (u32)min_t(u64, atomic64_read(&hsk->tx_bytes), U32_MAX);
	if (peer) {
		r->id.idiag_dport = htons(peer->name.port);
		homak_show_addr(sk, &peer->name.addr, r->id.idiag_dst);
	}
}
EXPORT_SYMBOL_GPL(homak_sock_show);
