// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Packets from what the engine says: an skb with IP header, perhaps a UDP one,
 * Homa header and payload. Headers and the bytes of short messages stand in one
 * fragment from this CPU's pool; the payload of long ones is references to the
 * message's pages. Nothing is kept: a retransmission builds a new skb.
 *
 * Natively the Homa checksum is 0. In TCP disguise and under UDP it is left to
 * the device (CHECKSUM_PARTIAL), which may leave it to software.
 */
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/ipv6.h>
#include <net/tcp.h>
#include <net/udp.h>

#include "homa_codec.h"
#include "homa_dst.h"
#include "homa_transmit.h"

static u32 homak_udp_len(const struct homa_addr *dst)
{
	return homak_encap_udp(dst) ? sizeof(struct udphdr) : 0;
}

/* Returns a hash of the RPC, so that its packets take one way through queues and
 * networks. */
static u32 homak_tx_hash(const struct homa_tx_desc *desc)
{
	return homa_get_be32(desc->hdr +
			     offsetof(struct homa_wire_common, sender_id) + 4) *
	       GOLDEN_RATIO_32;
}

static u8 homak_tx_tos(const struct homak_net *hnet,
		       const struct homa_tx_desc *desc)
{
	u32 prio = desc->prio & (HOMA_PRIORITIES - 1);

	return (u8)(READ_ONCE(hnet->settings.priority_map[prio]) << 5);
}

/* Puts the sum of TCP's pseudo-header into the checksum, which the device completes. It is
 * for packets in disguise, and for adapters that take us for TCP when they segment. */
static void homak_tx_tcp_csum(struct sk_buff *skb, const struct homak_route *route)
{
	struct homa_wire_common *w = (struct homa_wire_common *)skb->data;
	__sum16 sum;

	if (homak_route_v4(route))
		sum = ~tcp_v4_check((int)skb->len, route->v4.saddr,
				    route->v4.daddr, 0);
	else
		sum = ~tcp_v6_check((int)skb->len, &route->v6.saddr,
				    &route->v6.daddr, 0);
	memcpy(&w->checksum, &sum, sizeof(sum));
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->csum_start = (u16)(skb->data - skb->head);
	skb->csum_offset = offsetof(struct homa_wire_common, checksum);
}

static void homak_tx_udp(struct sk_buff *skb, const struct homak_route *route,
			 u16 port)
{
	struct udphdr *uh = __skb_push(skb, sizeof(*uh));

	skb_reset_transport_header(skb);
	uh->source = htons(HOMA_UDP_PORT);
	uh->dest = htons(port);
	uh->len = htons((u16)skb->len);
	uh->check = 0;
	if (homak_route_v4(route))
		udp_set_csum(false, skb, route->v4.saddr, route->v4.daddr,
			     (int)skb->len);
	else
		udp6_set_csum(false, skb, &route->v6.saddr, &route->v6.daddr,
			      (int)skb->len);
	if (!skb_is_gso(skb))
		return;
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->csum_start = (u16)(skb->data - skb->head);
	skb->csum_offset = offsetof(struct udphdr, check);
}

/* Packets that may be cut on their way need an id by which they are put together again. */
static HOMA_RARE void homak_tx_ip_id(const struct homak_net *hnet,
				     const struct sk_buff *skb, struct iphdr *ip)
{
	__ip_select_ident(hnet->net, ip,
			  max_t(int, skb_shinfo(skb)->gso_segs, 1));
}

/* Writes the IP header; of IPv6 all but the length. */
static HOMAK_HOT void homak_tx_ip(const struct homak_net *hnet,
				  struct sk_buff *skb,
				  const struct homak_route *route, u8 tos,
				  u32 hash)
{
	if (homak_route_v4(route)) {
		struct iphdr *ip = __skb_push(skb, sizeof(*ip));
		u32 sum = route->v4_sum;

		memcpy(ip, &route->v4, sizeof(*ip));
		ip->tos = tos;
		ip->tot_len = htons((u16)skb->len);
		/* What is written here is added to the sum of what the route has. */
		sum += (__force u16)htons(tos) + (__force u16)ip->tot_len;
		if (unlikely(!route->v4.frag_off)) {
			homak_tx_ip_id(hnet, skb, ip);
			sum += (__force u16)ip->id;
		}
		ip->check = csum_fold((__force __wsum)sum);
	} else {
		struct ipv6hdr *ip = __skb_push(skb, sizeof(*ip));

		memcpy(ip, &route->v6, sizeof(*ip));
		ip6_flow_hdr(ip, tos, htonl(hash >> 12));
	}
	skb_reset_network_header(skb);
}

/* Has @skb, which is new, belong to the socket that sends it. What skb_set_owner_w() asks besides
 * is known of both, and the hash is the RPC's. */
static HOMAK_HOT void homak_tx_owned(struct sk_buff *skb, struct sock *sk)
{
	if (likely(refcount_read(&sk->sk_wmem_alloc) < HOMAK_TX_OWNED_MOST)) {
		skb->sk = sk;
		skb->destructor = sock_wfree;
		refcount_add((int)skb->truesize, &sk->sk_wmem_alloc);
	}
	skb->priority = READ_ONCE(sk->sk_priority);
	skb->mark = READ_ONCE(sk->sk_mark);
}

/* Appends Homa header and payload to @skb; @small: bytes of the message to be copied, or
 * NULL. */
static int homak_tx_body(struct sk_buff *skb,
			 const struct homak_tx_piece *piece, const u8 *small)
{
	const struct homa_tx_desc *desc = piece->desc;
	u32 offset = desc->offset + piece->skip;
	void *hdr = __skb_put(skb, desc->hdr_len);

	if (!piece->msg) {
		memcpy(hdr, desc->hdr, desc->hdr_len);
		return 0;
	}
	memcpy(hdr, desc->hdr, HOMA_DATA_HDR);
	if (unlikely(piece->skip))
		homa_data_segment(hdr, offset);
	if (likely(small)) {
		__skb_put_data(skb, small + offset, piece->length);
		return 0;
	}
	if (unlikely(piece->length > piece->seg &&
		     (piece->form == HOMAK_GSO_INTERLEAVED ||
		      piece->form == HOMAK_GSO_UDP)))
		return homak_gso_interleave(piece->msg, skb, piece->form,
					    offset, piece->length, piece->seg);
	return homak_msg_to_skb(piece->msg, skb, offset, piece->length);
}

struct sk_buff *homak_tx_build(struct homak_cpu *cpu,
			       const struct homak_tx_piece *piece)
{
	const struct homa_tx_desc *desc = piece->desc;
	const struct homak_route *route = piece->route;
	struct dst_entry *dst = piece->dst;
	const struct net_device *dev = homak_dst_dev(dst);
	const u8 *small = NULL;
	u32 size = desc->hdr_len;
	u32 hash = homak_tx_hash(desc);
	struct sk_buff *skb;
	int err;

	if (likely(piece->msg))
		small = homak_msg_small(piece->msg, desc->offset + piece->skip +
							    piece->length);
	if (small || (piece->msg && piece->length <= HOMAK_TX_COPY))
		size += piece->length;
	skb = homak_tx_alloc(LL_RESERVED_SPACE(dev) + dst->header_len +
				     route->ip_len + homak_udp_len(&desc->dst),
			     size + dst->trailer_len);
	if (unlikely(!skb))
		return ERR_PTR(-ENOMEM);
	err = homak_tx_body(skb, piece, small);
	if (unlikely(err)) {
		/* With -EMSGSIZE nothing is lost: it is made again in other pieces. */
		if (err == -EMSGSIZE)
			consume_skb(skb);
		else
			kfree_skb_reason(skb, SKB_DROP_REASON_NOMEM);
		return ERR_PTR(err);
	}
	skb_reset_transport_header(skb);
	if (piece->length > piece->seg)
		homak_gso_mark(skb, piece->form, piece->seg, piece->length,
			       homak_route_v4(route));
	if (unlikely(desc->dst.encap ||
		     (skb_is_gso(skb) && piece->form == HOMAK_GSO_INTERLEAVED))) {
		if (!homak_encap_udp(&desc->dst))
			homak_tx_tcp_csum(skb, route);
		else
			homak_tx_udp(skb, route, desc->dst.encap);
	}
	homak_tx_ip(cpu->hnet, skb, route, homak_tx_tos(cpu->hnet, desc), hash);
	if (piece->sk)
		homak_tx_owned(skb, piece->sk);
	__skb_set_sw_hash(skb, hash, true);
	skb_dst_set_noref(skb, dst);
	return skb;
}

HOMAK_HOT struct sk_buff *homak_tx_build_short(struct homak_cpu *cpu,
					       const struct homa_tx_desc *desc,
					       const struct homak_route *route,
					       struct dst_entry *dst,
					       struct sock *sk, const u8 *bytes)
{
	const struct net_device *dev = homak_dst_dev(dst);
	u32 hash = homak_tx_hash(desc);
	u32 length = desc->length;
	struct sk_buff *skb;
	u8 *hdr;

	skb = homak_tx_alloc(LL_RESERVED_SPACE(dev) + dst->header_len +
				     route->ip_len,
			     HOMA_DATA_HDR + length + dst->trailer_len);
	if (unlikely(!skb))
		return NULL;
	hdr = __skb_put(skb, HOMA_DATA_HDR + length);
	memcpy(hdr, desc->hdr, HOMA_DATA_HDR);
	memcpy(hdr + HOMA_DATA_HDR, bytes, length);
	skb_reset_transport_header(skb);
	homak_tx_ip(cpu->hnet, skb, route, homak_tx_tos(cpu->hnet, desc), hash);
	homak_tx_owned(skb, sk);
	__skb_set_sw_hash(skb, hash, true);
	skb_dst_set_noref(skb, dst);
	return skb;
}
