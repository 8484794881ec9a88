// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Where packets go. A look-up in the routing tables costs more than all else
 * that is done for a short packet, so each CPU keeps what it found: a small
 * table of routes by receiver and by what else routing depends on. The kernel
 * says of each use whether it still holds (dst_check()): routes, addresses and
 * path MTUs may change at any time.
 *
 * The packets of an RPC leave from one address of ours: at servers the one that the
 * request came to, which routing might not choose (homak_rpc.local). So it is part of
 * what a route is found by.
 *
 * A slot's reference to a route is taken away by xchg(): by its CPU to replace
 * it, or by anyone to empty it when a device goes. Users are inside an RCU read
 * side, and the memory of a route outlives those.
 */
#include <linux/security.h>
#include <linux/slab.h>
#include <net/ip.h>
#include <net/ip6_fib.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/l3mdev.h>
#include <net/route.h>

#include "homa_dst.h"
#include "homa_transmit.h"

#define HOMAK_ROUTE_BITS 7u
#define HOMAK_ROUTE_SLOTS (1u << HOMAK_ROUTE_BITS)

struct homak_route_table {
	/* The routes, each at the place that its hash says. */
	struct homak_route slot[HOMAK_ROUTE_SLOTS];
};

/*
 * struct homak_routes - the caches of routes of a namespace
 * @tables: table of each CPU, made when that CPU first sends.
 * @root: user id that control packets are sent with.
 */
struct homak_routes {
	struct homak_route_table * __percpu * tables;
	u32 root;
};

/*
 * struct homak_want - parameters of the look-up of a route
 * @to: destination.
 * @local: our address; all 0: routing chooses one.
 * @oif: index of the device that packets leave by; 0: routing chooses one.
 * @mark: mark of the socket.
 * @uid: user id of the socket's owner.
 * @secid: the socket's name for a security module.
 * @way: has bits HOMAK_WAY_*.
 */
struct homak_want {
	const struct homa_addr *to;
	const struct in6_addr *local;
	int oif;
	u32 mark;
	u32 uid;
	u32 secid;
	u64 way;
};

/* The words that say who uses a route hardly differ, and those of IPv4 addresses only in their
 * upper halves; the product's upper bits depend on all bits of it. */
static u32 homak_route_slot(const struct homak_route_key *key)
{
	const u64 *w = key->w;
	u64 mix = (w[0] ^ w[1]) + rol64(w[3] ^ w[4], 24) + w[2] + w[5] + w[6];

	mix *= GOLDEN_RATIO_64;
	return mix >> (64 - HOMAK_ROUTE_BITS);
}

static __always_inline bool homak_route_same(const struct homak_route_key *a,
					     const struct homak_route_key *b)
{
	return !((a->w[0] ^ b->w[0]) | (a->w[1] ^ b->w[1]) |
		 (a->w[2] ^ b->w[2]) | (a->w[3] ^ b->w[3]) | (a->w[4] ^ b->w[4]) |
		 (a->w[5] ^ b->w[5]) | (a->w[6] ^ b->w[6]));
}

/* ---- looking up ---- */

static u8 homak_addr_proto(const struct homa_addr *dst)
{
	if (likely(!dst->encap))
		return HOMA_IPPROTO;
	return dst->encap == HOMAK_DISGUISE_TCP ? IPPROTO_TCP : IPPROTO_UDP;
}

static struct dst_entry *homak_lookup_v4(struct net *net,
					 struct homak_route *route,
					 const struct homak_want *want,
					 const struct sock *sk,
					 const struct in6_addr *local)
{
	struct flowi4 fl4 = {
		.flowi4_oif = want->oif,
		.flowi4_mark = want->mark,
		.flowi4_uid = KUIDT_INIT(want->uid),
		.flowi4_proto = homak_addr_proto(want->to),
		.flowi4_secid = want->secid,
		.daddr = homak_addr_get_v4(want->to),
	};
	struct rtable *rt;

	if (local)
		memcpy(&fl4.saddr, &local->s6_addr[12], 4);
	if (want->way & HOMAK_WAY_ANY_SOURCE)
		fl4.flowi4_flags = FLOWI_FLAG_ANYSRC;
	rt = ip_route_output_flow(net, &fl4, sk);
	if (IS_ERR(rt))
		return ERR_CAST(rt);
	if (rt->rt_flags & (RTCF_BROADCAST | RTCF_MULTICAST)) {
		ip_rt_put(rt);
		return ERR_PTR(-EACCES);
	}
	route->ip_len = sizeof(route->v4);
	route->cookie = 0;
	route->v4 = (struct iphdr){
		.version = 4,
		.ihl = 5,
		/* Who locks the MTU of a path wants to be told of no smaller one; there
		 * packets are cut on their way, as TCP's are. */
		.frag_off = ip_mtu_locked(&rt->dst) ? 0 : htons(IP_DF),
		.ttl = ip4_dst_hoplimit(&rt->dst),
		.protocol = fl4.flowi4_proto,
		.saddr = fl4.saddr,
		.daddr = fl4.daddr,
	};
	route->v4_sum = (u16)~(__force u16)csum_fold(
		csum_partial(&route->v4, sizeof(route->v4), 0));
	return &rt->dst;
}

static struct dst_entry *homak_lookup_v6(struct net *net,
					 struct homak_route *route,
					 const struct homak_want *want,
					 const struct sock *sk,
					 const struct in6_addr *local)
{
	struct flowi6 fl6 = {
		.flowi6_oif = want->oif,
		.flowi6_mark = want->mark,
		.flowi6_uid = KUIDT_INIT(want->uid),
		.flowi6_proto = homak_addr_proto(want->to),
		.flowi6_secid = want->secid,
	};
	struct dst_entry *dst;
	int scope;

	scope = homak_addr_get_v6(want->to, &fl6.daddr);
	if (scope)
		fl6.flowi6_oif = scope;
	if (ipv6_addr_is_multicast(&fl6.daddr))
		return ERR_PTR(-EACCES);
	if (local)
		fl6.saddr = *local;
	dst = ip6_dst_lookup_flow(net, sk, &fl6, NULL);
	if (IS_ERR(dst))
		return dst;
	route->ip_len = sizeof(route->v6);
	route->cookie = rt6_get_cookie(container_of(dst, struct rt6_info, dst));
	route->v6 = (struct ipv6hdr){
		.version = 6,
		.nexthdr = fl6.flowi6_proto,
		.hop_limit = ip6_dst_hoplimit(dst),
		.saddr = fl6.saddr,
		.daddr = fl6.daddr,
	};
	return dst;
}

/* Says whether @local is still an address of ours. For IPv4 routing finds that out itself. */
static bool homak_local_v6(struct net *net, const struct homak_want *want)
{
	struct net_device *dev = NULL;
	struct in6_addr ip;
	int scope = homak_addr_get_v6(want->to, &ip);

	if (want->way & HOMAK_WAY_ANY_SOURCE)
		return true;
	if (scope)
		dev = dev_get_by_index_rcu(net, scope);
	return ipv6_chk_addr(net, want->local, dev, 0);
}

/* Returns the error for a socket that is bound to want->local; @dst is that of its look-up. */
static struct dst_entry *homak_lookup_bound(struct net *net,
					    const struct homak_want *want,
					    struct dst_entry *dst)
{
	bool ours = ipv6_addr_v4mapped(want->local) ?
			    inet_addr_type(net, want->local->s6_addr32[3]) ==
				    RTN_LOCAL :
			    homak_local_v6(net, want);

	return ours || want->way & HOMAK_WAY_ANY_SOURCE ?
		       dst :
		       ERR_PTR(-EADDRNOTAVAIL);
}

/* Fills @route from the routing tables, all but its key. */
static struct dst_entry *homak_lookup(struct homak_net *hnet,
				      struct homak_route *route,
				      const struct homak_want *want,
				      const struct sock *sk)
{
	const struct in6_addr *local = want->local;
	bool v4 = homa_addr_is_v4(want->to);
	struct dst_entry *dst = ERR_PTR(-EINVAL);

	if (!ipv6_addr_any(local)) {
		if (unlikely(ipv6_addr_v4mapped(local) != v4))
			return ERR_PTR(-EAFNOSUPPORT);
		if (v4)
			dst = homak_lookup_v4(hnet->net, route, want, sk, local);
		else if (homak_local_v6(hnet->net, want))
			dst = homak_lookup_v6(hnet->net, route, want, sk, local);
		if (!IS_ERR(dst))
			return dst;
		if (want->way & HOMAK_WAY_BOUND)
			return homak_lookup_bound(hnet->net, want, dst);
		/* The address is not ours any more: a packet from another one is better
		 * than none. */
	}
	return v4 ? homak_lookup_v4(hnet->net, route, want, sk, NULL) :
		    homak_lookup_v6(hnet->net, route, want, sk, NULL);
}

/* ---- the cache ---- */

static __always_inline struct homak_route_key
homak_route_key(const struct homak_net *hnet, const struct homak_dev *hdev,
		const struct homa_addr *to, const struct in6_addr *local,
		const struct sock *sk)
{
	const struct net_device *dev;
	struct flowi_common flow HOMA_NOINIT;
	struct homak_route_key key HOMA_NOINIT;

	if (likely(sk)) {
		flow.flowic_secid = 0;
		security_sk_classify_flow((struct sock *)sk, &flow);
		key.w[2] = READ_ONCE(homak_sk(sk)->way);
		key.w[5] = READ_ONCE(sk->sk_mark);
		key.w[6] = (u64)__kuid_val(sock_net_uid(hnet->net, sk)) << 32 |
			   flow.flowic_secid;
	} else {
		key.w[2] = 0;
		key.w[5] = 0;
		key.w[6] = (u64)hnet->routes->root << 32;
	}
	key.w[0] = get_unaligned((const u64 *)to->ip);
	key.w[1] = get_unaligned((const u64 *)to->ip + 1);
	key.w[2] |= (u64)to->encap << 32;
	key.w[3] = get_unaligned((const u64 *)local);
	key.w[4] = get_unaligned((const u64 *)local + 1);
	dev = hdev ? rcu_dereference(hdev->dev) : NULL;
	if (dev && unlikely(netif_is_l3_slave((struct net_device *)dev)))
		key.w[5] |= (u64)l3mdev_master_ifindex_rcu(dev) << 32;
	return key;
}

static struct homak_route_table *homak_route_table(struct homak_routes *routes)
{
	struct homak_route_table **slot = this_cpu_ptr(routes->tables);
	struct homak_route_table *table = *slot;

	if (unlikely(!table)) {
		table = kzalloc(sizeof(*table), GFP_ATOMIC | __GFP_NOWARN);
		/* Who empties it on another CPU sees the zeros that it begins with. */
		smp_store_release(slot, table);
	}
	return table;
}

/* Is it a route that IPv4 has made, and not one that encrypts or tunnels? */
static __always_inline bool homak_route_plain_v4(const struct dst_entry *dst)
{
	return READ_ONCE(dst->output) == ip_output && !dst->lwtstate;
}

static __always_inline bool homak_route_holds(const struct net *net,
					      struct dst_entry *dst, u32 cookie)
{
	if (likely(READ_ONCE(dst->output) == ip_output))
		return homak_dst_holds_v4(net, dst);
	return dst_check(dst, cookie);
}

/* Returns the MTU that @dst has as long as it holds and nothing limits its time; 0: it has none. */
static u32 homak_route_mtu_new(const struct dst_entry *dst)
{
	return homak_route_plain_v4(dst) && !READ_ONCE(dst->expires) ?
		       dst_mtu(dst) :
		       0;
}

u32 homak_route_mtu(const struct homak_route *route, const struct dst_entry *dst)
{
	return likely(route->mtu && !READ_ONCE(dst->expires)) ? route->mtu :
								dst_mtu(dst);
}

/* Looks up the way that @route is for from now on. The other arguments are those of
 * homak_route_get(); the key is computed again here, so that the caller need not keep it in
 * memory. */
static noinline struct dst_entry *
homak_route_new(struct homak_cpu *cpu, const struct homak_dev *hdev,
		const struct homa_addr *to, const struct in6_addr *local,
		const struct sock *sk, struct homak_route *route)
{
	const struct homak_route_key key =
		homak_route_key(cpu->hnet, hdev, to, local, sk);
	const struct homak_want want = {
		.to = to,
		.local = local,
		.oif = (u32)key.w[2] ? (u32)key.w[2] : (u32)(key.w[5] >> 32),
		.way = key.w[2],
		.mark = (u32)key.w[5],
		.uid = (u32)(key.w[6] >> 32),
		.secid = (u32)key.w[6],
	};
	struct dst_entry *dst;

	dst_release(xchg(&route->dst, NULL));
	route->key = key;
	route->same = HOMAK_ROUTE_UNKNOWN;
	dst = homak_lookup(cpu->hnet, route, &want, sk);
	if (!IS_ERR(dst)) {
		route->checked_at = cpu->ctx.now;
		route->mtu = homak_route_mtu_new(dst);
		/* The slot is empty, and no other thread fills it. */
		smp_store_release(&route->dst, dst);
	}
	return dst;
}

HOMAK_HOT struct dst_entry *
homak_route_get(struct homak_cpu *cpu, struct homak_dev *hdev,
		const struct homa_addr *to, const struct in6_addr *local,
		const struct sock *sk, struct homak_route **slot)
{
	const struct homak_route_key key =
		homak_route_key(cpu->hnet, hdev, to, local, sk);
	struct homak_route_table *table = homak_route_table(cpu->hnet->routes);
	struct homak_route *route;
	struct dst_entry *dst;

	if (unlikely(!table))
		return ERR_PTR(-ENOMEM);
	route = &table->slot[homak_route_slot(&key)];
	dst = READ_ONCE(route->dst);
	*slot = route;
	if (likely(dst && homak_route_same(&route->key, &key))) {
		/* One check is enough for all packets that are sent at the same value of
		 * ctx.now. */
		if (route->checked_at == cpu->ctx.now)
			return dst;
		if (likely(homak_route_holds(cpu->hnet->net, dst, route->cookie))) {
			route->checked_at = cpu->ctx.now;
			return dst;
		}
	}
	return homak_route_new(cpu, hdev, to, local, sk, route);
}

/* ---- set-up ---- */

int homak_routes_init(struct homak_net *hnet)
{
	struct homak_routes *routes = kzalloc(sizeof(*routes), GFP_KERNEL);

	if (!routes)
		return -ENOMEM;
	routes->root = __kuid_val(make_kuid(hnet->net->user_ns, 0));
	routes->tables = alloc_percpu(struct homak_route_table *);
	if (!routes->tables) {
		kfree(routes);
		return -ENOMEM;
	}
	hnet->routes = routes;
	return 0;
}

static void homak_table_flush(struct homak_route_table *table)
{
	u32 i;

	for (i = 0; i < HOMAK_ROUTE_SLOTS; i++)
		dst_release(xchg(&table->slot[i].dst, NULL));
}

void homak_routes_flush(struct homak_net *hnet)
{
	struct homak_route_table *table;
	int i;

	for_each_possible_cpu(i) {
		table = READ_ONCE(*per_cpu_ptr(hnet->routes->tables, i));
		if (table)
			homak_table_flush(table);
	}
}

void homak_routes_free(struct homak_net *hnet)
{
	int i;

	homak_routes_flush(hnet);
	for_each_possible_cpu(i)
		kfree(*per_cpu_ptr(hnet->routes->tables, i));
	free_percpu(hnet->routes->tables);
	kfree(hnet->routes);
}
