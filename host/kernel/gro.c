// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Batches of packets. What one poll of a device brings from one host for this
 * host travels through IP once: whole packets - of any message, DATA and
 * control alike - are chained behind the first one, and rx.c takes the chain
 * apart. That saves, for each packet, the way through netfilter and routing
 * and a turn in and out of the engine.
 *
 * A chain is an ordinary "fraglist" GSO buffer: lengths and memory are added
 * up, the kernel frees it, clones it and, should it be forwarded after all
 * (a bridge, a NAT rule), takes it apart again through homak_offload_segment().
 * Each member keeps its own IP header, so that its priority is not lost.
 *
 * Only packets of one sender for one address meet in a chain: what IP and
 * netfilter decide about the first is then right for all. And only packets for
 * an address of this host: a router shall forward what it received.
 *
 * Buffers that others refer to need care. A shared one is not touched, a cloned
 * one does not become the head of a chain, for its clones would become one too.
 *
 * Who wants to see more of a buffer than its first packet has - pedit, or a BPF
 * program by bpf_skb_pull_data() - has bytes of the second one moved to the first one's
 * end, where they would be taken for bytes of its message. They are given back. If
 * there is no second one left the chain is dropped.
 */
#include <linux/inetdevice.h>
#include <net/addrconf.h>
#include <net/gro.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/protocol.h>

#include "homa_receive.h"

/* most packets of a batch: two calls of the engine */
#define HOMAK_GRO_PACKETS 16u
/* most bytes of a batch, because IP's length field has 16 bits */
#define HOMAK_GRO_BYTES 65000u

/* ---- a device's poll ---- */

/* Is @skb for this host itself? Its data is at the IP header. */
static bool homak_gro_local(const struct sk_buff *skb)
{
	struct net *net = dev_net(skb->dev);

	/* In a tunnel skb->protocol is that of the outer header. */
	if (ip_hdr(skb)->version == 4)
		return __ip_dev_find(net, ip_hdr(skb)->daddr, false);
	return ipv6_chk_addr(net, &ipv6_hdr(skb)->daddr, NULL, 0);
}

static bool homak_gro_fits(const struct sk_buff *held, const struct sk_buff *skb)
{
	return NAPI_GRO_CB(held)->count < HOMAK_GRO_PACKETS &&
	       held->len + skb_gro_len(skb) <= HOMAK_GRO_BYTES &&
	       (held->ip_summed == CHECKSUM_PARTIAL) ==
		       (skb->ip_summed == CHECKSUM_PARTIAL);
}

/* Chains @skb, whose IP header is in its linear part, behind @held. */
static void homak_gro_chain(struct sk_buff *held, struct sk_buff *skb)
{
	u32 len = skb_gro_len(skb);

	/* The account that the packets are charged to would get back the wrong amounts. */
	skb_orphan(held);
	skb_orphan(skb);
	__skb_pull(skb, skb_gro_offset(skb));
	if (NAPI_GRO_CB(held)->last == held)
		skb_shinfo(held)->frag_list = skb;
	else
		NAPI_GRO_CB(held)->last->next = skb;
	skb->next = NULL;
	NAPI_GRO_CB(held)->last = skb;
	NAPI_GRO_CB(held)->count++;
	held->len += len;
	held->data_len += len;
	held->truesize += skb->truesize;
	if (skb_shinfo(held)->gso_size < len)
		skb_shinfo(held)->gso_size = len;
	NAPI_GRO_CB(skb)->same_flow = 1;
}

static struct sk_buff *homak_gro_receive(struct list_head *head,
					 struct sk_buff *skb)
{
	u32 offset = skb_gro_offset(skb), len = skb_gro_len(skb);
	struct sk_buff *held;

	/* What has several segments (gso.c) is no whole packet. The kernel knows that of all but
	 * those that are marked as TCP's. */
	if (NAPI_GRO_CB(skb)->flush || len < HOMA_COMMON_HDR ||
	    skb_shared(skb) || skb_is_gso(skb))
		goto alone;
	list_for_each_entry(held, head, list) {
		if (!NAPI_GRO_CB(held)->same_flow)
			continue;
		if (!homak_gro_fits(held, skb)) {
			NAPI_GRO_CB(skb)->flush |= skb_cloned(skb);
			return held;
		}
		if (NAPI_GRO_CB(held)->count == 1 && !homak_gro_local(held))
			goto alone;
		if (!pskb_may_pull(skb, offset + min_t(u32, len, HOMA_DATA_HDR)))
			goto alone;
		homak_gro_chain(held, skb);
		return NAPI_GRO_CB(held)->count == HOMAK_GRO_PACKETS ? held :
								       NULL;
	}
	if (!skb_cloned(skb))
		return NULL;
alone:
	NAPI_GRO_CB(skb)->flush = 1;
	return NULL;
}

static int homak_gro_complete(struct sk_buff *skb, int offset)
{
	skb_shinfo(skb)->gso_type |= SKB_GSO_FRAGLIST;
	skb_shinfo(skb)->gso_segs = NAPI_GRO_CB(skb)->count;
	if (skb->ip_summed != CHECKSUM_PARTIAL)
		/* a checksum covers one packet at most */
		skb->ip_summed = CHECKSUM_NONE;
	return 0;
}

/* ---- apart again, here ---- */

/* Returns how many bytes of the second packet of the batch @skb are at the end of the first one, or
 * an error: nobody knows any more where packets begin. */
static int homak_gro_moved(const struct sk_buff *skb)
{
	const struct skb_shared_info *shinfo = skb_shinfo(skb);
	const struct sk_buff *member = shinfo->frag_list;
	/* Each packet began with its transport header. */
	int moved = member ? -skb_transport_offset(member) : 0;
	u32 n = 1, len = 0;

	for (; member; member = member->next) {
		if (member != shinfo->frag_list && skb_transport_offset(member))
			return -EINVAL;
		len += member->len;
		n++;
	}
	/* Who changes headers may set the number to 0, as one that has to be found out. */
	if (shinfo->gso_segs != n && (shinfo->gso_segs || moved))
		return -EINVAL;
	/* The bytes are behind all others, so these are in the linear part, too. */
	return moved && skb->data_len != len ? -EINVAL : moved;
}

struct sk_buff *homak_gro_split(struct sk_buff *skb)
{
	struct skb_shared_info *shinfo = skb_shinfo(skb);
	struct sk_buff *list = NULL, **end = &list, *member, *next;
	bool cloned = skb_cloned(skb);
	int moved, back;
	u32 len = 0;

	/* IP's reassembly also leaves a frag_list, but that is one packet. */
	if (!skb_is_gso(skb) || !(shinfo->gso_type & SKB_GSO_FRAGLIST))
		return NULL;
	moved = homak_gro_moved(skb);
	if (unlikely(moved < 0))
		return ERR_PTR(moved);
	back = moved;
	for (member = shinfo->frag_list; member; member = next, back = 0) {
		next = member->next;
		len += member->len;
		skb->truesize -= member->truesize;
		if (cloned) {
			/* The chain belongs to the clones as well. */
			member = skb_clone(member, GFP_ATOMIC | __GFP_NOWARN);
		} else {
			member->next = NULL;
			member = skb_share_check(member,
						 GFP_ATOMIC | __GFP_NOWARN);
		}
		if (!member)
			/* without memory the packet is lost, like any packet may be */
			continue;
		if (unlikely(back))
			__skb_push(member, (u32)back);
		member->next = NULL;
		member->dev = skb->dev;
		member->skb_iif = skb->skb_iif;
		member->pkt_type = skb->pkt_type;
		memcpy(member->cb, skb->cb, sizeof(member->cb));
		skb_dst_drop(member);
		if (skb_dst(skb))
			skb_dst_set_noref(member, skb_dst(skb));
		*end = member;
		end = &member->next;
	}
	/* These fields are this clone's own, and the list stays with the others. */
	skb->len -= len;
	skb->data_len -= len;
	if (unlikely(moved))
		__skb_trim(skb, skb->len - (u32)moved);
	if (!cloned) {
		shinfo->frag_list = NULL;
		skb_gso_reset(skb);
	}
	return list;
}

/* ---- apart again, on the way to elsewhere ---- */

/* Writes the first packet's IP header, which may have been changed on the way (TTL, NAT),
 * to the others. */
static int homak_gro_headers(struct sk_buff *segs)
{
	u32 len = skb_network_header_len(segs);
	struct sk_buff *skb;
	u8 tos;

	for (skb = segs->next; skb; skb = skb->next) {
		if (skb_cloned(skb) && pskb_expand_head(skb, 0, 0, GFP_ATOMIC))
			return -ENOMEM;
		if (ip_hdr(skb)->version == 4) {
			tos = ip_hdr(skb)->tos;
			memcpy(ip_hdr(skb), ip_hdr(segs), len);
			ip_hdr(skb)->tos = tos;
		} else {
			memcpy(&ipv6_hdr(skb)->payload_len,
			       &ipv6_hdr(segs)->payload_len, len - 4);
		}
	}
	return 0;
}

static struct sk_buff *homak_offload_segment(struct sk_buff *skb,
					     netdev_features_t features)
{
	struct sk_buff *segs;
	int moved;

	if (!skb_has_frag_list(skb) ||
	    !(skb_shinfo(skb)->gso_type & SKB_GSO_FRAGLIST))
		return homak_gso_segment(skb, features);
	moved = homak_gro_moved(skb);
	if (unlikely(moved < 0))
		return ERR_PTR(moved);
	segs = skb_segment_list(skb, features, skb_mac_header_len(skb));
	/* The second packet has them again, for it begins with its IP header. */
	if (unlikely(moved) && !IS_ERR(segs))
		__skb_trim(segs, segs->len - (u32)moved);
	if (!IS_ERR(segs) && homak_gro_headers(segs)) {
		kfree_skb_list_reason(segs, SKB_DROP_REASON_NOMEM);
		return ERR_PTR(-ENOMEM);
	}
	return segs;
}

/* ---- set-up ---- */

static const struct net_offload homak_offload = {
	.callbacks = {
		.gso_segment = homak_offload_segment,
		.gro_receive = homak_gro_receive,
		.gro_complete = homak_gro_complete,
	},
};

int homak_gro_init(void)
{
	int err = inet_add_offload(&homak_offload, HOMA_IPPROTO);

	if (err)
		return err;
	err = inet6_add_offload(&homak_offload, HOMA_IPPROTO);
	if (err)
		inet_del_offload(&homak_offload, HOMA_IPPROTO);
	return err;
}

void homak_gro_exit(void)
{
	inet6_del_offload(&homak_offload, HOMA_IPPROTO);
	inet_del_offload(&homak_offload, HOMA_IPPROTO);
}
