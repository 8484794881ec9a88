// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What others have to say about packets for a socket: its filter (SO_ATTACH_FILTER),
 * programs of its cgroup, security modules. They are asked before the engine has seen
 * the packet, so that one that is refused is a loss like any other. Filters see a packet
 * from its Homa header on, as those of UDP sockets see a datagram.
 *
 * A packet's port says which socket it is for. The engine takes payload for no other
 * port than its RPC's, so nobody escapes a filter by naming another one. A socket that
 * binds to another port leaves its RPCs behind at the old one, which others may take:
 * while there is such a socket in the namespace, the packet's RPC is asked first.
 */
#include <linux/bpf-cgroup.h>
#include <linux/filter.h>
#include <linux/security.h>

#include "homa_receive.h"

/* Returns the socket of the packet's RPC; NULL: there is none. */
static HOMA_RARE struct homa_sock *
homak_policy_rpc(struct homak_cpu *cpu, const struct homa_addr *src,
		 const struct homa_wire_common *hdr)
{
	u64 id = homa_get_be64(&hdr->sender_id) ^ 1;
	struct homa_rpc *rpc = homa_rpc_hold(&cpu->ctx, id, id & 1 ? src : NULL);
	struct homa_sock *engine_sock;

	if (!rpc)
		return NULL;
	engine_sock = homa_rpc_sock(rpc);
	homa_rpc_release(&cpu->ctx, rpc);
	return engine_sock;
}

/* Returns the socket that the packet is for; NULL: there is none. */
static struct sock *homak_policy_sock(struct homak_cpu *cpu,
				      const struct homa_addr *src,
				      const struct homa_wire_common *hdr)
{
	struct homa_sock *engine_sock = NULL;

	if (unlikely(atomic_read(&cpu->hnet->moved)))
		engine_sock = homak_policy_rpc(cpu, src, hdr);
	if (likely(!engine_sock))
		engine_sock = homa_sock_at(&cpu->ctx, homa_get_be16(&hdr->dport));
	return engine_sock ? &homak_sock_of(engine_sock)->inet.sk : NULL;
}

/* Does anything but a security module have to be asked? */
static bool homak_policy_filters(const struct sock *sk, const struct sk_buff *skb)
{
#ifdef CONFIG_CGROUP_BPF
	if (cgroup_bpf_enabled(CGROUP_INET_INGRESS))
		return true;
#endif
	return rcu_access_pointer(sk->sk_filter) || skb_pfmemalloc(skb);
}

bool homak_policy_in(struct homak_cpu *cpu, const struct homa_addr *src,
		     struct sk_buff *skb)
{
	const struct homa_wire_common *hdr;
	struct homa_wire_common buf HOMA_NOINIT;
	struct sock *sk;

	hdr = skb_header_pointer(skb, 0, HOMA_COMMON_HDR, &buf);
	if (unlikely(!hdr))
		return true; /* the engine judges */
	sk = homak_policy_sock(cpu, src, hdr);
	if (unlikely(!sk))
		return true;
	if (likely(!homak_policy_filters(sk, skb)))
		return !security_sock_rcv_skb(sk, skb);
	return !sk_filter(sk, skb);
}
