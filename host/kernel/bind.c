// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The socket's own name: its port, and the address and the device that it is bound to. A Homa
 * socket has a port from the start; bind() gives it one of a server's. An address limits which
 * requests it gets, and is the one that its packets leave from; a device limits both, and also
 * which other packets it gets (policy.c). Rules and errors are UDP's: several sockets may have
 * one port at different addresses, and those that overlap only with SO_REUSEADDR.
 *
 * The engine knows all that as the socket's place (engine/homa/homa_place.c). The kernel says
 * when SO_BINDTODEVICE has changed (homak_rehash()), but not when a BPF program of the cgroup
 * gave the new socket a device, as `ip vrf exec` does: so we look before the first use, too.
 */
#include <linux/inetdevice.h>
#include <net/addrconf.h>
#include <net/ipv6.h>
#include <net/l3mdev.h>
#include <net/route.h>

#include "homa_bind.h"
#include "homa_sockets.h"

/*
 * struct homak_bound - what a name asks for
 * @ip: address, an IPv4 one in IPv6's mapped form; all 0: any.
 * @port: port in host order; 0: the one that the socket has.
 * @device: index of the device; 0: any.
 */
struct homak_bound {
	struct in6_addr ip;
	u16 port;
	int device;
};

/* ---- the device ---- */

/* Returns the number of the link on which packets for the socket come. Those of a device that
 * belongs to a routing domain are told from others of that domain in policy.c. */
static u32 homak_bound_link(struct net *net, int device)
{
	struct net_device *dev;
	int master = 0;

	if (likely(!device))
		return 0;
	rcu_read_lock();
	dev = dev_get_by_index_rcu(net, device);
	if (dev && netif_is_l3_slave(dev))
		master = l3mdev_master_ifindex_rcu(dev);
	rcu_read_unlock();
	return (u32)(master ? master : device);
}

void homak_way_update(struct homak_sock *hsk)
{
	const struct sock *sk = &hsk->inet.sk;
	u64 way = (u32)READ_ONCE(sk->sk_bound_dev_if);

	if (!ipv6_addr_any(&hsk->bound))
		way |= HOMAK_WAY_BOUND;
	if (inet_sk_flowi_flags(sk) & FLOWI_FLAG_ANYSRC)
		way |= HOMAK_WAY_ANY_SOURCE;
	WRITE_ONCE(hsk->way, way);
}

void homak_rehash(struct sock *sk)
{
	struct homak_sock *hsk = homak_sk(sk);
	int device;

	/* Two threads may be here at once, and the last value has to stay. */
	do {
		device = READ_ONCE(sk->sk_bound_dev_if);
		local_bh_disable();
		homa_sock_on(hsk->hnet->engine, hsk->engine_sock,
			     homak_bound_link(sock_net(sk), device));
		local_bh_enable();
		homak_way_update(hsk);
	} while (device != READ_ONCE(sk->sk_bound_dev_if));
}

void homak_use_first(struct homak_sock *hsk)
{
	if (READ_ONCE(hsk->inet.sk.sk_bound_dev_if) != (int)(u32)hsk->way)
		homak_rehash(&hsk->inet.sk);
	smp_store_mb(hsk->used, true);
}

/* ---- addresses ---- */

static int homak_bound_v4(struct homak_sock *hsk, __be32 ip,
			  struct homak_bound *bound)
{
	struct net *net = sock_net(&hsk->inet.sk);
	u32 table = RT_TABLE_LOCAL;

	if (!ip)
		return 0;
	if (ipv4_is_multicast(ip) || ipv4_is_lbcast(ip))
		return -EADDRNOTAVAIL;
	if (bound->device)
		table = l3mdev_fib_table_by_index(net, bound->device) ?: table;
	if (inet_addr_type_table(net, ip, table) != RTN_LOCAL &&
	    !inet_can_nonlocal_bind(net, &hsk->inet))
		return -EADDRNOTAVAIL;
	ipv6_addr_set_v4mapped(ip, &bound->ip);
	return 0;
}

static int homak_bound_v6(struct homak_sock *hsk, const struct sockaddr_in6 *in6,
			  struct homak_bound *bound)
{
	const struct in6_addr *ip = &in6->sin6_addr;
	struct net *net = sock_net(&hsk->inet.sk);
	struct net_device *dev = NULL;
	int err = 0;

	if (ipv6_addr_any(ip))
		return 0;
	if (ipv6_addr_v4mapped(ip))
		return hsk->only_v6 ?
			       -EINVAL :
			       homak_bound_v4(hsk, ip->s6_addr32[3], bound);
	if (ipv6_addr_is_multicast(ip))
		return -EADDRNOTAVAIL;
	if (ipv6_addr_type(ip) & IPV6_ADDR_LINKLOCAL) {
		if (in6->sin6_scope_id)
			bound->device = (int)in6->sin6_scope_id;
		if (!bound->device)
			return -EINVAL;
	}
	rcu_read_lock();
	if (bound->device) {
		dev = dev_get_by_index_rcu(net, bound->device);
		if (!dev)
			err = -ENODEV;
	}
	if (!err && !ipv6_can_nonlocal_bind(net, &hsk->inet) &&
	    !ipv6_chk_addr(net, ip, dev, 0))
		err = -EADDRNOTAVAIL;
	rcu_read_unlock();
	bound->ip = *ip;
	return err;
}

/* ---- bind() ---- */

/* Of which families are peers that can reach a socket at this address? */
static u8 homak_bound_families(const struct homak_sock *hsk,
			       const struct in6_addr *ip)
{
	if (hsk->inet.sk.sk_family == AF_INET || ipv6_addr_v4mapped(ip))
		return HOMA_PLACE_V4;
	if (hsk->only_v6 || !ipv6_addr_any(ip))
		return HOMA_PLACE_V6;
	return 0;
}

/*
 * Moves the socket to another port, or another place there. RPCs stay at the port where they
 * began, which another socket may take. So as long as there is a socket that has moved, a
 * packet's socket is found by the packet's RPC (policy.c).
 */
static int homak_bind_move(struct homak_cpu *cpu, struct homak_sock *hsk,
			   const struct homak_bound *bound)
{
	struct homa_place place = {
		.device = homak_bound_link(hsk->hnet->net, bound->device),
		.families = homak_bound_families(hsk, &bound->ip),
		.shares = hsk->inet.sk.sk_reuse,
	};
	bool moves = homa_sock_port(hsk->engine_sock) != bound->port;
	atomic_t *moved = &hsk->hnet->moved;
	int err;

	memcpy(&place.local, &bound->ip, sizeof(place.local));
	/* This is counted before the port is free, and taken back if the socket has no RPCs
	 * there. */
	if (moves)
		atomic_inc(moved);
	err = homa_sock_bind_at(&cpu->ctx, hsk->engine_sock, bound->port, &place);
	/* Pairs with homak_use(): an RPC at the old port is seen here. */
	smp_mb();
	if (moves && !err && !hsk->moved && READ_ONCE(hsk->used))
		hsk->moved = true;
	else if (moves)
		atomic_dec(moved);
	return err;
}

/* Notes the address for what the socket sends, and where the kernel looks for it. */
static void homak_bind_note(struct homak_sock *hsk,
			    const struct homak_bound *bound)
{
	struct sock *sk = &hsk->inet.sk;
	bool v4 = ipv6_addr_v4mapped(&bound->ip);

	WRITE_ONCE(sk->sk_bound_dev_if, bound->device);
	hsk->bound = bound->ip;
	homak_port_note(hsk, bound->port);
	hsk->inet.inet_rcv_saddr = v4 ? bound->ip.s6_addr32[3] : 0;
	hsk->inet.inet_saddr = hsk->inet.inet_rcv_saddr;
	if (sk->sk_family == AF_INET6) {
		sk->sk_v6_rcv_saddr = bound->ip;
		inet6_sk(sk)->saddr = bound->ip;
		/* As with other protocols, such an address has no IPv4 peers. */
		sk->sk_ipv6only =
			hsk->only_v6 || (!v4 && !ipv6_addr_any(&bound->ip));
	}
	homak_way_update(hsk);
}

static int homak_bind_locked(struct homak_sock *hsk, struct homak_bound *bound)
{
	bool serves = bound->port;
	struct homak_cpu *cpu;
	int err;

	if (READ_ONCE(hsk->shutdown))
		return -ESHUTDOWN;
	if (!serves)
		bound->port = homa_sock_port(hsk->engine_sock);
	cpu = homak_enter_wait(hsk->hnet);
	if (!cpu)
		return -ENETDOWN;
	err = homak_bind_move(cpu, hsk, bound);
	homak_leave(cpu);
	if (err == -ENOBUFS)
		return homak_error_text(hsk, err,
					"bind: 64 sockets have the port");
	if (err)
		return homak_error_text(hsk, err, "bind: the port is taken");
	homak_bind_note(hsk, bound);
	if (!serves)
		return 0;
	if (!READ_ONCE(hsk->used))
		homak_use_first(hsk);
	WRITE_ONCE(hsk->server, true);
	return 0;
}

/* Reads the name; the socket is locked. */
static int homak_bind_read(struct homak_sock *hsk, const struct sockaddr *name,
			   struct homak_bound *bound)
{
	int err;

	bound->device = READ_ONCE(hsk->inet.sk.sk_bound_dev_if);
	if (name->sa_family == AF_INET)
		err = homak_bound_v4(hsk,
				     ((const struct sockaddr_in *)name)
					     ->sin_addr.s_addr,
				     bound);
	else
		err = homak_bound_v6(hsk, (const struct sockaddr_in6 *)name,
				     bound);
	switch (err) {
	case -EADDRNOTAVAIL:
		return homak_error_text(hsk, err,
					"bind: this host does not have the address");
	case -EINVAL:
		return homak_error_text(
			hsk, err,
			"bind: a link-local address needs its interface; an IPv4 one, a socket that is not for IPv6 only");
	case -ENODEV:
		return homak_error_text(hsk, err,
					"bind: there is no such interface");
	}
	return err;
}

int homak_bind(struct socket *sock, homak_bind_addr *addr, int len)
{
	const struct sockaddr *name = (const struct sockaddr *)addr;
	struct homak_sock *hsk = homak_sk(sock->sk);
	struct homak_bound bound = { .port = 0 };
	int err;

	if (len < homak_name_size(sock->sk))
		return homak_error_text(hsk, -EINVAL,
					"bind: the address is cut off");
	if (name->sa_family != sock->sk->sk_family)
		return homak_error_text(
			hsk, -EAFNOSUPPORT,
			"bind: the address is of another family than the socket");
	/* The port is in the same place in both families. */
	bound.port = ntohs(((const struct sockaddr_in *)name)->sin_port);
	if (bound.port >= HOMA_MIN_DEFAULT_PORT)
		return homak_error_text(hsk, -EINVAL,
					"bind: servers use ports below 32768");
	if (bound.port &&
	    inet_port_requires_bind_service(sock_net(sock->sk), bound.port) &&
	    !ns_capable(sock_net(sock->sk)->user_ns, CAP_NET_BIND_SERVICE))
		return homak_error_text(hsk, -EACCES,
					"bind: the port needs CAP_NET_BIND_SERVICE");
	lock_sock(sock->sk);
	err = homak_bind_read(hsk, name, &bound);
	if (!err)
		err = homak_bind_locked(hsk, &bound);
	release_sock(sock->sk);
	return err;
}

/* ---- getsockname() ---- */

int homak_getname(struct socket *sock, struct sockaddr *addr, int peer)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)addr;
	struct homak_sock *hsk = homak_sk(sock->sk);
	int size = homak_name_size(sock->sk);

	if (peer)
		return homak_getpeer(hsk, addr);
	memset(addr, 0, size);
	addr->sa_family = sock->sk->sk_family;
	((struct sockaddr_in *)addr)->sin_port =
		htons(homa_sock_port(hsk->engine_sock));
	lock_sock(sock->sk);
	if (addr->sa_family == AF_INET) {
		((struct sockaddr_in *)addr)->sin_addr.s_addr =
			hsk->bound.s6_addr32[3];
	} else {
		in6->sin6_addr = hsk->bound;
		in6->sin6_scope_id =
			ipv6_iface_scope_id(&hsk->bound,
					    READ_ONCE(sock->sk->sk_bound_dev_if));
	}
	release_sock(sock->sk);
	return size;
}
