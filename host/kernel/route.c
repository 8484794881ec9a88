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

#include "homa_tx.h"

#define HOMAK_ROUTE_BITS 7u
#define HOMAK_ROUTE_SLOTS (1u << HOMAK_ROUTE_BITS)

struct homak_route_table {
	struct homak_route slot[HOMAK_ROUTE_SLOTS];
};

/*
 * struct homak_routes - of a namespace
 * @tables: per CPU, made when that CPU first sends.
 * @root: user of control packets.
 */
struct homak_routes {
	struct homak_route_table * __percpu * tables;
	u32 root;
};

static u64 homak_route_mix(u64 a, u64 b, u64 c)
{
	return ((a ^ (b << 23 | b >> 41)) + c) * GOLDEN_RATIO_64;
}

/*
 * struct homak_want - a key in registers
 * @dst: as three words, the last of four bytes.
 */
struct homak_want {
	u64 ip0, ip1;
	u64 local0, local1;
	u32 encap;
	int ifindex;
	int master;
	u32 mark;
	u32 uid;
	u32 secid;
};

static u32 homak_route_slot(const struct homak_want *w)
{
	return homak_route_mix(w->ip0 ^ w->local0, w->ip1 + w->local1,
			       w->encap + w->ifindex + w->master + w->mark +
				       w->uid) >>
	       (64 - HOMAK_ROUTE_BITS);
}

static bool homak_route_same(const struct homak_route_key *key,
			     const struct homak_want *w)
{
	const u64 *ip = (const u64 *)&key->dst;
	const u64 *local = (const u64 *)&key->local;

	BUILD_BUG_ON(offsetof(struct homak_route_key, ifindex) != 20);
	BUILD_BUG_ON(offsetof(struct homak_route_key, local) % sizeof(u64));
	return !((ip[0] ^ w->ip0) | (ip[1] ^ w->ip1) | (local[0] ^ w->local0) |
		 (local[1] ^ w->local1) | (((const u32 *)ip)[4] ^ w->encap) |
		 (u32)(key->ifindex ^ w->ifindex) |
		 (u32)(key->master ^ w->master) | (key->mark ^ w->mark) |
		 (key->uid ^ w->uid) | (key->secid ^ w->secid));
}

/* ---- looking up ---- */

static u8 homak_addr_proto(const struct homa_addr *dst)
{
	if (likely(!dst->encap))
		return HOMA_IPPROTO;
	return dst->encap == HOMAK_ENCAP_TCP ? IPPROTO_TCP : IPPROTO_UDP;
}

static int homak_key_oif(const struct homak_route_key *key)
{
	return key->ifindex ? key->ifindex : key->master;
}

static struct dst_entry *homak_lookup_v4(struct net *net,
					 struct homak_route *route,
					 const struct sock *sk,
					 const struct in6_addr *local)
{
	const struct homak_route_key *key = &route->key;
	struct flowi4 fl4 = {
		.flowi4_oif = homak_key_oif(key),
		.flowi4_mark = key->mark,
		.flowi4_uid = KUIDT_INIT(key->uid),
		.flowi4_proto = homak_addr_proto(&key->dst),
		.flowi4_secid = key->secid,
		.daddr = homak_addr_get_v4(&key->dst),
	};
	struct rtable *rt;

	if (local)
		memcpy(&fl4.saddr, &local->s6_addr[12], 4);
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
		.frag_off = htons(IP_DF),
		.ttl = ip4_dst_hoplimit(&rt->dst),
		.protocol = fl4.flowi4_proto,
		.saddr = fl4.saddr,
		.daddr = fl4.daddr,
	};
	return &rt->dst;
}

static struct dst_entry *homak_lookup_v6(struct net *net,
					 struct homak_route *route,
					 const struct sock *sk,
					 const struct in6_addr *local)
{
	const struct homak_route_key *key = &route->key;
	struct flowi6 fl6 = {
		.flowi6_oif = homak_key_oif(key),
		.flowi6_mark = key->mark,
		.flowi6_uid = KUIDT_INIT(key->uid),
		.flowi6_proto = homak_addr_proto(&key->dst),
		.flowi6_secid = key->secid,
	};
	struct dst_entry *dst;
	int scope;

	scope = homak_addr_get_v6(&key->dst, &fl6.daddr);
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
static bool homak_local_v6(struct net *net, const struct homak_route_key *key,
			   const struct in6_addr *local)
{
	struct net_device *dev = NULL;
	struct in6_addr ip;
	int scope = homak_addr_get_v6(&key->dst, &ip);

	if (scope)
		dev = dev_get_by_index_rcu(net, scope);
	return ipv6_chk_addr(net, local, dev, 0);
}

/* Fills @route, whose key is set, from the routing tables. */
static struct dst_entry *homak_lookup(struct homak_net *hnet,
				      struct homak_route *route,
				      const struct sock *sk)
{
	const struct in6_addr *local = &route->key.local;
	bool v4 = homa_addr_is_v4(&route->key.dst);
	struct dst_entry *dst = ERR_PTR(-EINVAL);

	if (!ipv6_addr_any(local)) {
		if (v4)
			dst = homak_lookup_v4(hnet->net, route, sk, local);
		else if (homak_local_v6(hnet->net, &route->key, local))
			dst = homak_lookup_v6(hnet->net, route, sk, local);
		if (!IS_ERR(dst))
			return dst;
		/* It is not ours any more: better from another one than not at all. */
	}
	return v4 ? homak_lookup_v4(hnet->net, route, sk, NULL) :
		    homak_lookup_v6(hnet->net, route, sk, NULL);
}

/* ---- the cache ---- */

static __always_inline void
homak_want(struct homak_want *w, const struct homak_net *hnet,
	   const struct homak_dev *hdev, const struct homa_addr *dst,
	   const struct in6_addr *local, const struct sock *sk)
{
	const struct net_device *dev;
	struct flowi_common flow HOMA_NOINIT;

	w->ip0 = get_unaligned((const u64 *)dst->ip);
	w->ip1 = get_unaligned((const u64 *)dst->ip + 1);
	w->encap = get_unaligned((const u32 *)&dst->encap);
	w->local0 = get_unaligned((const u64 *)local);
	w->local1 = get_unaligned((const u64 *)local + 1);
	w->ifindex = 0;
	w->master = 0;
	w->mark = 0;
	w->uid = hnet->routes->root;
	w->secid = 0;
	if (sk) {
		flow.flowic_secid = 0;
		security_sk_classify_flow((struct sock *)sk, &flow);
		w->secid = flow.flowic_secid;
		w->ifindex = READ_ONCE(sk->sk_bound_dev_if);
		w->mark = READ_ONCE(sk->sk_mark);
		w->uid = __kuid_val(sock_net_uid(hnet->net, sk));
	}
	if (!hdev)
		return;
	dev = rcu_dereference(hdev->dev);
	if (unlikely(dev && netif_is_l3_slave((struct net_device *)dev)))
		w->master = l3mdev_master_ifindex_rcu(dev);
}

static struct homak_route_table *homak_route_table(struct homak_routes *routes)
{
	struct homak_route_table **table = this_cpu_ptr(routes->tables);

	if (unlikely(!*table))
		*table = kzalloc(sizeof(**table), GFP_ATOMIC | __GFP_NOWARN);
	return *table;
}

/* Looks up the way that @route is for from now on. */
static noinline struct dst_entry *
homak_route_new(struct homak_cpu *cpu, struct homak_route *route,
		const struct homak_want *w, const struct homa_addr *to,
		const struct in6_addr *local, const struct sock *sk)
{
	struct homak_net *hnet = cpu->hnet;
	struct dst_entry *dst;

	dst_release(xchg(&route->dst, NULL));
	route->key.dst = *to;
	route->key.local = *local;
	route->key.ifindex = w->ifindex;
	route->key.master = w->master;
	route->key.mark = w->mark;
	route->key.uid = w->uid;
	route->key.secid = w->secid;
	dst = homak_lookup(hnet, route, sk);
	if (!IS_ERR(dst)) {
		route->checked_at = cpu->ctx.now;
		/* The slot is empty: nobody else fills it. */
		smp_store_release(&route->dst, dst);
	}
	return dst;
}

/* Returns the cached route, or looks it up. */
static __always_inline struct dst_entry *
homak_route_find(struct homak_cpu *cpu, const struct homak_dev *hdev,
		 const struct homa_addr *to, const struct in6_addr *local,
		 const struct sock *sk, const struct homak_route **slot)
{
	struct homak_net *hnet = cpu->hnet;
	struct homak_route_table *table = homak_route_table(hnet->routes);
	struct homak_route *route;
	struct dst_entry *dst;
	struct homak_want w;

	if (unlikely(!table))
		return ERR_PTR(-ENOMEM);
	homak_want(&w, hnet, hdev, to, local, sk);
	route = &table->slot[homak_route_slot(&w)];
	dst = READ_ONCE(route->dst);
	*slot = route;
	if (likely(dst && homak_route_same(&route->key, &w))) {
		/* Once for all that is done at a time. */
		if (route->checked_at == cpu->ctx.now)
			return dst;
		if (likely(dst_check(dst, route->cookie))) {
			route->checked_at = cpu->ctx.now;
			return dst;
		}
	}
	return homak_route_new(cpu, route, &w, to, local, sk);
}

struct dst_entry *homak_route_get(struct homak_cpu *cpu, struct homak_dev *hdev,
				  const struct homa_addr *dst,
				  const struct in6_addr *local,
				  const struct sock *sk,
				  const struct homak_route **slot)
{
	return homak_route_find(cpu, hdev, dst, local, sk, slot);
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
