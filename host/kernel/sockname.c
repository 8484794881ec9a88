// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Names of peers. They are named in the socket's own family, IPv4 ones of an
 * AF_INET6 socket as ::ffff:a.b.c.d. What else is needed to reach a peer travels
 * in parts of the name that would be zero: the interface in sin6_scope_id, and the
 * UDP port of a peer that is reached at another than the usual one in sin_zero
 * or sin6_flowinfo, as libhoma has it.
 */
#include <net/ipv6.h>

#include "homa_encap.h"
#include "homa_sockets.h"

/* ---- the peer that connect() names ---- */

void homak_disconnect(struct homak_sock *hsk)
{
	struct homak_peer *old = rcu_replace_pointer(hsk->peer, NULL, true);

	if (old)
		kfree_rcu(old, rcu);
}

/* Names the peer of messages that name none. What the socket receives stays what it was, so
 * programs for the existing module, where this changes nothing, see no difference. */
static int homak_connect_to(struct homak_sock *hsk, const struct sockaddr *name,
			    int len)
{
	struct homak_peer *peer = kmalloc(sizeof(*peer), GFP_KERNEL_ACCOUNT);
	int err;

	if (!peer)
		return -ENOMEM;
	err = homak_name_get(hsk, name, len, &peer->name);
	if (err) {
		kfree(peer);
		return err;
	}
	lock_sock(&hsk->inet.sk);
	homak_disconnect(hsk);
	rcu_assign_pointer(hsk->peer, peer);
	release_sock(&hsk->inet.sk);
	return 0;
}

int homak_connect(struct socket *sock, homak_bind_addr *addr, int len, int flags)
{
	const struct sockaddr *name = (const struct sockaddr *)addr;
	struct homak_sock *hsk = homak_sk(sock->sk);

	if (len < (int)sizeof(name->sa_family))
		return homak_error_text(hsk, -EINVAL,
					"connect: the address is cut off");
	if (name->sa_family != AF_UNSPEC)
		return homak_connect_to(hsk, name, len);
	lock_sock(sock->sk);
	homak_disconnect(hsk);
	release_sock(sock->sk);
	return 0;
}

int homak_getpeer(struct homak_sock *hsk, struct sockaddr *addr)
{
	const struct homak_peer *peer;
	int size = -ENOTCONN;

	rcu_read_lock();
	peer = rcu_dereference(hsk->peer);
	if (peer)
		size = homak_name_put(hsk, &peer->name.addr, peer->name.port,
				      (struct sockaddr_storage *)addr);
	rcu_read_unlock();
	return size;
}

/* ---- names of peers ---- */

static HOMAK_HOT int homak_name_v4(struct homak_sock *hsk,
				   const struct sockaddr_in *in,
				   struct homak_name *name)
{
	__be32 ip = in->sin_addr.s_addr;

	if (ipv4_is_multicast(ip) || ipv4_is_lbcast(ip))
		return homak_error_text(hsk, -EINVAL,
					"the peer cannot be a group");
	if (!ip)
		ip = htonl(INADDR_LOOPBACK);
	homak_addr_v4(&name->addr, ip, hsk->encap);
	name->marked |= homa_encap_in_zero(in->sin_zero, &name->addr.encap);
	return 0;
}

static int homak_scope(struct homak_sock *hsk, const struct sockaddr_in6 *in6)
{
	int bound = READ_ONCE(hsk->inet.sk.sk_bound_dev_if);
	int scope = (int)in6->sin6_scope_id;

	if (!(ipv6_addr_type(&in6->sin6_addr) & IPV6_ADDR_LINKLOCAL))
		return 0;
	if (!scope)
		scope = bound;
	if (scope <= 0 || (bound && scope != bound))
		return homak_error_text(
			hsk, -EINVAL,
			"a link-local peer needs its interface in sin6_scope_id");
	return scope;
}

static int homak_name_v6(struct homak_sock *hsk, const struct sockaddr_in6 *in6,
			 struct homak_name *name)
{
	const struct sock *sk = &hsk->inet.sk;
	u32 flow = ntohl(in6->sin6_flowinfo);
	struct in6_addr ip = in6->sin6_addr;
	int scope;

	if (ipv6_addr_v4mapped(&ip)) {
		struct sockaddr_in in = { .sin_addr.s_addr = ip.s6_addr32[3] };
		int err;

		if (ipv6_only_sock(sk))
			return -ENETUNREACH;
		err = homak_name_v4(hsk, &in, name);
		if (err)
			return err;
	} else {
		if (ipv6_addr_is_multicast(&ip))
			return homak_error_text(hsk, -EINVAL,
						"the peer cannot be a group");
		if (ipv6_addr_any(&ip))
			ip = in6addr_loopback;
		scope = homak_scope(hsk, in6);
		if (scope < 0)
			return scope;
		homak_addr_v6_at(&name->addr, &ip, hsk->encap, scope);
	}
	name->marked |= homa_encap_in_flow(flow, &name->addr.encap);
	return 0;
}

/* Reads the peer that connect() named. */
static int homak_name_connected(struct homak_sock *hsk, struct homak_name *name)
{
	const struct homak_peer *peer;

	rcu_read_lock();
	peer = rcu_dereference(hsk->peer);
	if (peer)
		*name = peer->name;
	rcu_read_unlock();
	return peer ? 0 :
		      homak_error_text(
			      hsk, -EINVAL,
			      "sendmsg: no peer is named, and connect() has named none");
}

int homak_name_get(struct homak_sock *hsk, const struct sockaddr *sa, int len,
		   struct homak_name *name)
{
	if (!sa)
		return homak_name_connected(hsk, name);
	if (len < (int)sizeof(sa->sa_family))
		goto cut;
	if (sa->sa_family != hsk->inet.sk.sk_family)
		return homak_error_text(
			hsk, -EAFNOSUPPORT,
			"the address is of another family than the socket");
	if (len < homak_name_size(&hsk->inet.sk))
		goto cut;
	/* The port is in the same place in both families. */
	name->port = ntohs(((const struct sockaddr_in *)sa)->sin_port);
	name->marked = false;
	if (sa->sa_family == AF_INET)
		return homak_name_v4(hsk, (const struct sockaddr_in *)sa, name);
	return homak_name_v6(hsk, (const struct sockaddr_in6 *)sa, name);
cut:
	return homak_error_text(hsk, -EINVAL, "the address is cut off");
}

/* Does a UDP port have to travel with the name? */
static bool homak_name_marks(u16 encap)
{
	return encap && encap != HOMA_UDP_PORT && encap != HOMAK_DISGUISE_TCP;
}

int homak_name_put(const struct homak_sock *hsk, const struct homa_addr *peer,
		   u16 port, struct sockaddr_storage *to)
{
	if (likely(hsk->inet.sk.sk_family == AF_INET)) {
		struct sockaddr_in *in = (struct sockaddr_in *)to;

		memset(in, 0, sizeof(*in));
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		in->sin_addr.s_addr = homak_addr_get_v4(peer);
		if (homak_name_marks(peer->encap))
			homa_encap_to_zero(in->sin_zero, peer->encap);
		return sizeof(*in);
	} else {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)to;

		memset(in6, 0, sizeof(*in6));
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		in6->sin6_scope_id = homak_addr_get_v6(peer, &in6->sin6_addr);
		if (homak_name_marks(peer->encap))
			in6->sin6_flowinfo =
				htonl(homa_encap_to_flow(peer->encap));
		return sizeof(*in6);
	}
}
