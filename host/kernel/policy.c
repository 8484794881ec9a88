// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What others have to say about packets for a socket: its filter (SO_ATTACH_FILTER),
 * programs of its cgroup, security modules. They are asked before the engine has seen
 * the packet, so that one that is refused is a loss like any other. Filters see a packet
 * from its Homa header on, as those of UDP sockets see a datagram.
 *
 * A packet's port says which socket it is for. The engine takes payload for no other
 * port than its RPC's, so nobody escapes a filter by naming another one. There are two
 * exceptions, in which the packet's RPC is asked first. A socket that binds to another port
 * leaves its RPCs behind at the old one, which others may take: so while there is such a
 * socket in the namespace. And several sockets may have a port, at different addresses or
 * on different devices: so at such a port, and for what comes to another address than that of
 * the one that has it.
 *
 * Here also a socket that is bound to a device is spared packets from others; the engine
 * sees to that only for requests.
 */
#include <linux/bpf-cgroup.h>
#include <linux/filter.h>
#include <linux/security.h>
#include <net/ip.h>
#include <net/ipv6.h>

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

/* Returns the socket that the packet is for, where its port does not say that. */
static HOMA_RARE struct homa_sock *
homak_policy_search(struct homak_cpu *cpu, const struct homa_addr *src,
		    const struct homa_wire_common *hdr)
{
	struct homa_sock *engine_sock = homak_policy_rpc(cpu, src, hdr);

	if (engine_sock)
		return engine_sock;
	return homa_sock_meant(&cpu->ctx, homa_get_be16(&hdr->dport), src);
}

/* Returns the socket that the packet is for; NULL: there is none. */
static HOMAK_HOT struct sock *
homak_policy_sock(struct homak_cpu *cpu, const struct homa_addr *src,
		  const struct homa_wire_common *hdr, bool *searched)
{
	struct homa_sock *engine_sock =
		homa_sock_at(&cpu->ctx, homa_get_be16(&hdr->dport));

	*searched = (engine_sock &&
		     unlikely(!homa_sock_exact(&cpu->ctx, engine_sock))) ||
		    unlikely(atomic_read(&cpu->hnet->moved));
	if (unlikely(*searched))
		engine_sock = homak_policy_search(cpu, src, hdr);
	return engine_sock ? &homak_sock_of(engine_sock)->inet.sk : NULL;
}

/* Did the packet come from the device that the socket is bound to, if it is? */
static HOMA_RARE bool homak_policy_device(const struct sock *sk,
					  const struct homak_dev *hdev,
					  const struct sk_buff *skb)
{
	int device = READ_ONCE(sk->sk_bound_dev_if);

	if (!device || device == READ_ONCE(hdev->ifindex))
		return true;
	/* A device of a routing domain: the packet came from the domain's own device. */
	return device ==
	       (ip_hdr(skb)->version == 4 ? inet_sdif(skb) : inet6_sdif(skb));
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

HOMAK_HOT enum skb_drop_reason homak_policy_in(struct homak_cpu *cpu,
					       const struct homak_dev *hdev,
					       const struct homa_addr *src,
					       struct sk_buff *skb)
{
	const struct homa_wire_common *hdr;
	struct homa_wire_common buf HOMA_NOINIT;
	struct sock *sk;
	bool searched;
	int refused;

	hdr = skb_header_pointer(skb, 0, HOMA_COMMON_HDR, &buf);
	if (unlikely(!hdr))
		return SKB_NOT_DROPPED_YET; /* the engine judges */
	sk = homak_policy_sock(cpu, src, hdr, &searched);
	if (unlikely(!sk))
		return SKB_NOT_DROPPED_YET;
	if (unlikely(searched) && !homak_policy_device(sk, hdev, skb))
		return SKB_DROP_REASON_NO_SOCKET;
	refused = likely(!homak_policy_filters(sk, skb)) ?
			  security_sock_rcv_skb(sk, skb) :
			  sk_filter(sk, skb);
	return refused ? SKB_DROP_REASON_SOCKET_FILTER : SKB_NOT_DROPPED_YET;
}
