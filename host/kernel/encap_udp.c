// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Homa inside UDP, received: a socket on port 54321 for IPv4 and one for IPv6,
 * which hand each datagram to us after UDP has checked it. The socket also
 * keeps the port ours. Errors about what we sent find the same socket.
 */
#include <linux/icmp.h>
#include <linux/icmpv6.h>
#include <linux/net.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/udp.h>
#include <net/udp_tunnel.h>

#include "homa_receive.h"

/* Receives a datagram, skb->data at the UDP header; returns 0: it is taken. */
static int homak_udp_rcv(struct sock *sk, struct sk_buff *skb)
{
	const struct udphdr *udp = udp_hdr(skb);
	u16 port = ntohs(udp->source);

	/* Drop a datagram without a checksum, or from a port that has another meaning in
	 * homa_addr.encap. */
	if (!udp->check || port == 0 || port == HOMAK_DISGUISE_TCP) {
		kfree_skb_reason(skb, udp->check ?
					      SKB_DROP_REASON_UNHANDLED_PROTO :
					      SKB_DROP_REASON_UDP_CSUM);
		return 0;
	}
	__skb_pull(skb, sizeof(*udp));
	homak_rx_skb(homak_net(sock_net(sk)), skb, port, false);
	return 0;
}

/*
 * An ICMP error about a datagram of ours: transport header at its UDP header,
 * skb->data at its IP header, the ICMP header in the 8 bytes before. Returns 0:
 * the socket is the right one.
 */
static int homak_udp_err(struct sock *sk, struct sk_buff *skb)
{
	int at = skb_transport_offset(skb) + (int)sizeof(struct udphdr);
	const struct iphdr *ip = (const struct iphdr *)skb->data;
	const struct ipv6hdr *ip6 = (const struct ipv6hdr *)skb->data;
	u16 port = ntohs(udp_hdr(skb)->dest);
	struct homa_addr peer;
	u32 mtu;
	int err;

	if (skb_headroom(skb) < sizeof(struct icmphdr))
		return 0;
	if (ip->version == 4) {
		const struct icmphdr *icmp =
			(const void *)(skb->data - sizeof(*icmp));

		err = homak_icmp_errno_v4(icmp->type, icmp->code);
		mtu = ntohs(icmp->un.frag.mtu);
		homak_addr_v4(&peer, ip->daddr, port);
	} else {
		const struct icmp6hdr *icmp =
			(const void *)(skb->data - sizeof(*icmp));

		err = homak_icmp_errno_v6(icmp->icmp6_type, icmp->icmp6_code);
		mtu = ntohl(icmp->icmp6_mtu);
		homak_addr_v6_at(&peer, &ip6->daddr, port, skb->dev->ifindex);
	}
	mtu -= min_t(u32, mtu, sizeof(struct udphdr));
	homak_icmp_quoted(homak_net(sock_net(sk)), skb, at, &peer, err, mtu);
	return 0;
}

static int homak_udp_open(struct homak_net *hnet, int family, struct socket **out)
{
	struct sockaddr_in6 v6 = {
		.sin6_family = AF_INET6,
		.sin6_port = htons(HOMA_UDP_PORT),
	};
	struct sockaddr_in v4 = {
		.sin_family = AF_INET,
		.sin_port = htons(HOMA_UDP_PORT),
	};
	struct socket *sock;
	struct sock *sk;
	int err;

	err = sock_create_kern(hnet->net, family, SOCK_DGRAM, IPPROTO_UDP, &sock);
	if (err)
		return err;
	sk = sock->sk;
	if (family == AF_INET6) {
		sk->sk_ipv6only = 1;
		err = homak_kernel_bind(sock, &v6, sizeof(v6));
	} else {
		err = homak_kernel_bind(sock, &v4, sizeof(v4));
	}
	if (err) {
		sock_release(sock);
		return err;
	}
	sk->sk_allocation = GFP_ATOMIC;
	inet_inc_convert_csum(sk);
	udp_sk(sk)->encap_type = 1;
	udp_sk(sk)->encap_rcv = homak_udp_rcv;
	udp_sk(sk)->encap_err_lookup = homak_udp_err;
	udp_tunnel_encap_enable(sk);
	*out = sock;
	return 0;
}

int homak_udp_on(struct homak_net *hnet, struct socket *socks[2])
{
	int err = homak_udp_open(hnet, AF_INET, &socks[0]);

	if (err)
		return err;
	err = homak_udp_open(hnet, AF_INET6, &socks[1]);
	if (!err || err == -EAFNOSUPPORT)
		return 0; /* the host has no IPv6 */
	homak_udp_off(socks);
	return err;
}

void homak_udp_off(struct socket *socks[2])
{
	int i;

	for (i = 0; i < 2; i++) {
		if (socks[i])
			sock_release(socks[i]);
		socks[i] = NULL;
	}
}
