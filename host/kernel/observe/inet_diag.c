// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * homa_diag.ko: Homa's sockets for NETLINK_SOCK_DIAG, by which the kernel lists those of all
 * protocols. The kernel loads it when somebody asks for protocol 146. As with UDP, everybody sees
 * address, port, user, inode and memory of all sockets of the namespace; RPCs are shown by a
 * family of our own (diag.c).
 *
 * A call of a dump ends when its buffer is full. Sockets that are not asked for take no room, so
 * one call may pass all there are; it does so in steps, between which others have the CPU.
 */
#include <linux/inet_diag.h>
#include <linux/module.h>
#include <linux/sock_diag.h>
#include <net/inet_sock.h>

#include "homa_compat.h"
#include "homa_socket.h"
#include "homa_socks.h"

/* struct homak_inet_dump - one call of a dump. Written by: homak_inet_dump(). */
struct homak_inet_dump {
	/* The answer that is being filled. */
	struct sk_buff *skb;
	/* The kernel's state of the dump. */
	struct netlink_callback *cb;
	/* What is asked for. */
	const struct inet_diag_req_v2 *req;
	/* The program that sockets are filtered by; NULL: none. */
	const struct nlattr *filter;
	/* True if whoever asks may see marks and cgroups. */
	bool admin;
};

static bool homak_inet_wanted(const struct homak_inet_dump *d, struct sock *sk)
{
	const struct inet_diag_sockid *id = &d->req->id;

	if (!(d->req->idiag_states & 1u << READ_ONCE(sk->sk_state)))
		return false;
	if (d->req->sdiag_family != AF_UNSPEC &&
	    d->req->sdiag_family != sk->sk_family)
		return false;
	if (id->idiag_sport && id->idiag_sport != inet_sk(sk)->inet_sport)
		return false;
	return !d->filter || homak_inet_diag_filter(d->cb->data, sk);
}

static int homak_inet_one(struct sock *sk, void *arg)
{
	struct homak_inet_dump *d = arg;

	if (!homak_inet_wanted(d, sk))
		return 0;
	return inet_sk_diag_fill(sk, NULL, d->skb, d->cb, d->req, NLM_F_MULTI,
				 d->admin);
}

static void homak_inet_dump(struct sk_buff *skb, struct netlink_callback *cb,
			    const struct inet_diag_req_v2 *req)
{
	const struct inet_diag_dump_data *data = cb->data;
	struct homak_inet_dump d = {
		.skb = skb,
		.cb = cb,
		.req = req,
		.filter = data->inet_diag_nla_bc,
		.admin = netlink_net_capable(cb->skb, CAP_NET_ADMIN),
	};
	u32 index = (u32)cb->args[0];
	int err;

	do {
		err = homak_socks_walk(sock_net(skb->sk), &index,
				       homak_inet_one, &d);
		cond_resched();
	} while (err > 0);
	cb->args[0] = index;
}

/* Several sockets may have one name, so there is none to be told by it. */
static int homak_inet_exact(struct netlink_callback *cb,
			    const struct inet_diag_req_v2 *req)
{
	return -EOPNOTSUPP;
}

static void homak_inet_info(struct sock *sk, struct inet_diag_msg *r, void *info)
{
	homak_sock_show(sk, r);
}

static const struct inet_diag_handler homak_inet_handler = {
	HOMAK_INET_DIAG_OWNER.dump = homak_inet_dump,
	.dump_one = homak_inet_exact,
	.idiag_get_info = homak_inet_info,
	.idiag_type = IPPROTO_HOMA,
};

static int __init homak_inet_diag_load(void)
{
	return inet_diag_register(&homak_inet_handler);
}

static void __exit homak_inet_diag_unload(void)
{
	inet_diag_unregister(&homak_inet_handler);
}

module_init(homak_inet_diag_load);
module_exit(homak_inet_diag_unload);

MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("Homa's sockets by sock_diag");
/* PF_NETLINK, NETLINK_SOCK_DIAG, AF_INET and IPPROTO_HOMA, by which the kernel asks for it. */
MODULE_ALIAS("net-pf-16-proto-4-type-2-146");
