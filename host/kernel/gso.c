// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Several segments of a message in one skb, so that IP, filters and queues are
 * passed once. Three forms, by what will take it apart:
 *
 * One piece, for all devices unless told otherwise: a header, then the payload.
 * Software devices (loopback, veth, bond ...) take it as it is, and our own
 * receiver as one large packet. No hardware knows this kind (the type is that of
 * lists, without a list), so the stack brings it here before a device that sends
 * real packets. Then packets are made of it at the last moment, as of TCP's, for
 * a third of what building each one costs. Where segmentation is switched off
 * the type has one more bit, which no software device takes. gso_size counts the
 * header, for the stack adds none of its own when it compares such sizes with an
 * MTU.
 *
 * Interleaved, for adapters that segment TCP: each segment begins with its own
 * 4-byte offset, since an adapter need not count in a protocol it does not know.
 * Some spoil what they do not know, so that is for the administrator to choose
 * (max_gso_size).
 *
 * As TCP, for packets in TCP disguise: the sequence number tells the offset and
 * whoever segments TCP advances it.
 *
 * Datagrams, for packets inside UDP: whoever segments UDP cuts without looking, so
 * each segment brings its whole header.
 */
#include <linux/device.h>
#include <linux/skbuff.h>
#include <net/rtnetlink.h>

#include "homa_codec.h"
#include "homa_receive.h"
#include "homa_transmit.h"

#define HOMAK_GSO_SLACK 320u /* room for headers of all layers, as TCP leaves */
#define HOMAK_GSO_OFFSET 4u  /* bytes of an interleaved segment's own header */
#define HOMAK_GSO_HDR (HOMA_DATA_HDR - HOMAK_GSO_OFFSET)
/* most interleaved segments, each of which takes two fragments */
#define HOMAK_GSO_INTERLEAVED_SEGS 7u

/* ---- sending ---- */

/*
 * Do packets leave through virtio's header? Network cards of virtual machines and tun
 * devices put one before each packet (struct virtio_net_hdr). It tells the other end
 * how to cut the packet into segments, and it can say so of TCP and UDP only. The kernel
 * at the other end checks that the packet is what the header says and drops ours
 * (virtio_net_hdr_to_skb()). So nothing but TCP's and UDP's segments may go there in
 * one piece; others are cut before.
 */
static bool homak_gso_through_virtio(const struct net_device *dev)
{
	const struct device *parent = dev->dev.parent;

	return (parent && parent->bus && !strcmp(parent->bus->name, "virtio")) ||
	       (dev->rtnl_link_ops && !strcmp(dev->rtnl_link_ops->kind, "tun"));
}

enum homak_gso_form homak_gso_form(const struct homak_net *hnet,
				   const struct net_device *dev, u16 encap,
				   bool v4)
{
	netdev_features_t tso = v4 ? NETIF_F_TSO : NETIF_F_TSO6;
	if (!(dev->features & NETIF_F_SG) ||
	    READ_ONCE(hnet->settings.gso_force_software))
		return HOMAK_GSO_NONE;
	tso &= dev->features & NETIF_F_GSO ? dev->features : 0;
	if (encap == HOMAK_DISGUISE_TCP)
		return tso ? HOMAK_GSO_TCP : HOMAK_GSO_NONE;
	if (encap)
		return dev->features & NETIF_F_GSO ? HOMAK_GSO_UDP :
						     HOMAK_GSO_NONE;
	if (!(dev->features & NETIF_F_GSO))
		return HOMAK_GSO_APART;
	if (tso && READ_ONCE(hnet->settings.max_gso_size) &&
	    !(dev->features & NETIF_F_GSO_FRAGLIST) &&
	    !homak_gso_through_virtio(dev))
		return HOMAK_GSO_INTERLEAVED;
	return HOMAK_GSO_ONE_PIECE;
}

/* Returns the bytes that stand before each segment's payload, but the first one's. */
static u32 homak_gso_own(enum homak_gso_form form)
{
	return form == HOMAK_GSO_UDP ? HOMA_DATA_HDR : HOMAK_GSO_OFFSET;
}

u32 homak_gso_bytes(const struct homak_net *hnet, const struct net_device *dev,
		    enum homak_gso_form form, u32 seg)
{
	u32 asked = READ_ONCE(hnet->settings.max_gso_size);
	u32 most = min(READ_ONCE(dev->gso_max_size), 65536u);
	u32 segs;

	if (asked)
		most = min(most, asked);
	if (most < HOMAK_GSO_SLACK + 2 * seg)
		return seg;
	segs = (most - HOMAK_GSO_SLACK) / (seg + homak_gso_own(form));
	segs = min_t(u32, segs, READ_ONCE(dev->gso_max_segs));
	if (form == HOMAK_GSO_INTERLEAVED || form == HOMAK_GSO_UDP)
		segs = min(segs, HOMAK_GSO_INTERLEAVED_SEGS);
	return max(segs, 1u) * seg;
}

/* Writes one header that stands for all segments. */
static void homak_gso_header(struct sk_buff *skb, enum homak_gso_form form)
{
	struct homa_wire_data *w = (struct homa_wire_data *)skb->data;

	switch (form) {
	case HOMAK_GSO_ONE_PIECE:
	case HOMAK_GSO_APART:
		w->common.doff |= HOMAK_DOFF_ONE_PIECE;
		break;
	case HOMAK_GSO_INTERLEAVED:
		w->common.doff = HOMA_DOFF_GSO << 4;
		break;
	case HOMAK_GSO_UDP:
		break;
	default:
		homa_put_be32(&w->seg_offset, HOMA_OFFSET_IN_SEQUENCE);
		break;
	}
}

void homak_gso_mark(struct sk_buff *skb, enum homak_gso_form form, u32 seg,
		    u32 length, bool v4)
{
	struct skb_shared_info *shinfo = skb_shinfo(skb);

	homak_gso_header(skb, form);
	shinfo->gso_segs = (u16)((length + seg - 1) / seg);
	if (form == HOMAK_GSO_ONE_PIECE || form == HOMAK_GSO_APART) {
		shinfo->gso_size = (u16)(seg + HOMA_DATA_HDR);
		shinfo->gso_type = SKB_GSO_FRAGLIST;
		if (form == HOMAK_GSO_APART)
			shinfo->gso_type |= SKB_GSO_PARTIAL;
		skb->ip_summed = CHECKSUM_UNNECESSARY;
		return;
	}
	shinfo->gso_size = (u16)seg;
	if (form == HOMAK_GSO_UDP) {
		shinfo->gso_size += HOMA_DATA_HDR;
		shinfo->gso_type = SKB_GSO_UDP_L4;
		return;
	}
	if (form == HOMAK_GSO_INTERLEAVED)
		shinfo->gso_size += HOMAK_GSO_OFFSET;
	shinfo->gso_type = v4 ? SKB_GSO_TCPV4 : SKB_GSO_TCPV6;
}

/* Writes what stands before a later segment: its offset, or all of the first one's
 * header. */
static void homak_gso_before(void *at, enum homak_gso_form form,
			     const void *first, u32 offset)
{
	if (form == HOMAK_GSO_UDP) {
		memcpy(at, first, HOMA_DATA_HDR);
		homa_data_segment(at, offset);
	} else {
		homa_put_be32(at, offset);
	}
}

int homak_gso_interleave(const struct homak_msg *msg, struct sk_buff *skb,
			 enum homak_gso_form form, u32 offset, u32 length,
			 u32 seg)
{
	u32 segs = (length + seg - 1) / seg, own = homak_gso_own(form), i;
	u8 *heads = napi_alloc_frag(segs * own);
	struct page *page;
	int err = 0;

	if (!heads)
		return -ENOMEM;
	page = virt_to_head_page(heads);
	for (i = 0; i < segs && !err; i++) {
		u32 n = min(seg, length - i * seg);
		u8 *head = heads + i * own;

		if (i) {
			homak_gso_before(head, form, skb->data, offset + i * seg);
			err = homak_skb_add(skb, page,
					    (u32)(head - (u8 *)page_address(page)),
					    own);
		}
		if (!err)
			err = homak_msg_to_skb(msg, skb, offset + i * seg, n);
	}
	skb_free_frag(heads);
	return err;
}

/* ---- taking apart, for devices that cannot ---- */

/* Cuts @skb, whose data is at the Homa header of @hdr_len bytes, into segments of @size. */
static struct sk_buff *homak_gso_cut(struct sk_buff *skb,
				     netdev_features_t features, u32 hdr_len,
				     u32 size)
{
	struct sk_buff *segs;
	u16 was;

	if (skb->len <= hdr_len + size)
		return ERR_PTR(-EINVAL);
	/* Bytes that are shared with a clone must not change. */
	if (skb_unclone(skb, GFP_ATOMIC))
		return ERR_PTR(-ENOMEM);
	was = skb_shinfo(skb)->gso_size;
	__skb_pull(skb, hdr_len);
	skb_shinfo(skb)->gso_size = (u16)size;
	/* The segments have no checksum, so the device is said to compute it: then nothing
	 * does. */
	segs = skb_segment(skb, features | NETIF_F_HW_CSUM);
	skb_shinfo(skb)->gso_size = was;
	return segs;
}

static struct homa_wire_data *homak_gso_seg_header(struct sk_buff *skb)
{
	struct homa_wire_data *w = (void *)skb_transport_header(skb);

	w->common.doff = HOMA_DOFF_DATA << 4;
	memset(&w->common.checksum, 0, sizeof(w->common.checksum));
	skb->ip_summed = CHECKSUM_NONE;
	return w;
}

/* Is @skb as homak_tx_build() made it, or nearly: a header, and payload in pages of
 * ours? */
static bool homak_gso_is_simple(const struct sk_buff *skb,
				netdev_features_t features)
{
	const struct skb_shared_info *shinfo = skb_shinfo(skb);

	return softirq_count() && features & NETIF_F_SG &&
	       skb_headlen(skb) == HOMA_DATA_HDR && !skb_has_frag_list(skb) &&
	       !skb->encapsulation && !skb->pp_recycle && !shinfo->flags &&
	       !shinfo->tx_flags && skb_mac_header_was_set(skb);
}

/* struct homak_gso_from - progress in the payload of @skb: byte @at of fragment @i */
struct homak_gso_from {
	struct sk_buff *skb;
	u32 i, at;
};

/* Appends the next @n bytes to @one, by reference. */
static int homak_gso_refer(struct homak_gso_from *from, struct sk_buff *one, u32 n)
{
	const struct skb_shared_info *shinfo = skb_shinfo(from->skb);
	int err = 0;

	while (n && !err) {
		const skb_frag_t *frag = &shinfo->frags[from->i];
		u32 has, some;

		if (unlikely(from->i >= shinfo->nr_frags))
			return -EINVAL;
		has = skb_frag_size(frag) - from->at;
		some = min(n, has);
		err = homak_skb_add(one, skb_frag_page(frag),
				    skb_frag_off(frag) + from->at, some);
		n -= some;
		from->at += some;
		if (some == has) {
			from->i++;
			from->at = 0;
		}
	}
	return err;
}

/* struct homak_gso_heads - memory for the linear parts of segments that are not made yet */
struct homak_gso_heads {
	/* The linear parts, one after the other, each with a reference to its page. */
	u8 *at;
	/* Bytes of one, with what an skb keeps behind it. */
	u32 size;
	/* How many are there, and how many more segments need one. */
	u32 here, wanted;
};

/* Takes memory for as many of the linear parts that are wanted as one page has room for. */
static bool homak_gso_more_heads(struct homak_gso_heads *heads)
{
	u32 n = clamp_t(u32, PAGE_SIZE / heads->size, 1, heads->wanted);

	heads->at = napi_alloc_frag(n * heads->size);
	if (unlikely(!heads->at))
		return false;
	page_ref_add(virt_to_head_page(heads->at), (int)n - 1);
	heads->here = n;
	heads->wanted -= n;
	return true;
}

/* Makes an skb with @room bytes before its data. NULL: no memory. */
static struct sk_buff *homak_gso_alloc(struct homak_gso_heads *heads, u32 room)
{
	struct sk_buff *skb;

	if (!heads->here && unlikely(!homak_gso_more_heads(heads)))
		return NULL;
	skb = napi_build_skb(heads->at, heads->size);
	if (unlikely(!skb))
		return NULL;
	heads->at += heads->size;
	heads->here--;
	skb_reserve(skb, room);
	return skb;
}

static void homak_gso_free_heads(struct homak_gso_heads *heads)
{
	for (; heads->here; heads->here--) {
		skb_free_frag(heads->at);
		heads->at += heads->size;
	}
}

/* Makes one segment of @n bytes, with @head bytes of headers copied, from the MAC's on. */
static struct sk_buff *homak_gso_one(struct homak_gso_from *from,
				     struct homak_gso_heads *heads, u32 head,
				     u32 n)
{
	struct sk_buff *skb = from->skb, *one;
	u32 room = (u32)(skb_mac_header(skb) - skb->head);

	/* With the same room the offsets of headers stay as they are. KASAN finds bytes beyond
	 * the end only if each skb has memory of its own. */
	one = IS_ENABLED(CONFIG_KASAN) ? homak_tx_alloc(room, head) :
					 homak_gso_alloc(heads, room);
	if (unlikely(!one))
		return NULL;
	__skb_put_data(one, skb_mac_header(skb), head);
	skb_copy_header(one, skb);
	skb_gso_reset(one);
	if (likely(!homak_gso_refer(from, one, n)))
		return one;
	kfree_skb_reason(one, SKB_DROP_REASON_NOMEM);
	return NULL;
}

/*
 * Does for our skbs what skb_segment() does for all kinds, with half its instructions.
 * NULL: no memory.
 */
static struct sk_buff *homak_gso_quick(struct sk_buff *skb, u32 seg)
{
	struct homak_gso_from from = { .skb = skb };
	u32 head = (u32)(skb->data - skb_mac_header(skb)) + HOMA_DATA_HDR;
	u32 left = skb->data_len;
	struct homak_gso_heads heads = {
		.size = homak_tx_head((u32)(skb_mac_header(skb) - skb->head) +
				      head),
		.wanted = (left + seg - 1) / seg,
	};
	struct sk_buff *segs = NULL, **end = &segs, *one = NULL;

	do {
		u32 n = min(left, seg);

		one = homak_gso_one(&from, &heads, head, n);
		if (unlikely(!one)) {
			homak_gso_free_heads(&heads);
			kfree_skb_list_reason(segs, SKB_DROP_REASON_NOMEM);
			return NULL;
		}
		*end = one;
		end = &one->next;
		left -= n;
	} while (left);
	*end = NULL;
	/* the stack expects a pointer to the last segment there */
	segs->prev = one;
	if (skb->destructor == sock_wfree) {
		swap(one->truesize, skb->truesize);
		swap(one->destructor, skb->destructor);
		swap(one->sk, skb->sk);
	}
	return segs;
}

static struct sk_buff *homak_gso_one_piece(struct sk_buff *skb,
					   netdev_features_t features)
{
	const struct homa_wire_data *w = (const void *)skb->data;
	u32 offset = homa_get_be32(&w->seg_offset);
	u32 seg = skb_shinfo(skb)->gso_size;
	struct sk_buff *segs, *one;

	/* The header was not copied from a packet that came by a wire. */
	if (seg <= HOMA_DATA_HDR || skb_shinfo(skb)->gso_type & SKB_GSO_DODGY)
		return ERR_PTR(-EINVAL);
	seg -= HOMA_DATA_HDR;
	if (skb->len <= HOMA_DATA_HDR + seg)
		return ERR_PTR(-EINVAL);
	segs = homak_gso_is_simple(skb, features) ? homak_gso_quick(skb, seg) :
						    NULL;
	if (!segs)
		segs = homak_gso_cut(skb, features, HOMA_DATA_HDR, seg);
	if (IS_ERR_OR_NULL(segs))
		return segs;
	for (one = segs; one; one = one->next) {
		homa_data_segment(homak_gso_seg_header(one), offset);
		offset += seg;
	}
	return segs;
}

static struct sk_buff *homak_gso_interleaved(struct sk_buff *skb,
					     netdev_features_t features)
{
	u32 size = skb_shinfo(skb)->gso_size;
	struct sk_buff *segs, *one;

	/* Its receiver would not take the buffer either. */
	if (size <= HOMAK_GSO_OFFSET ||
	    DIV_ROUND_UP(skb->len - HOMAK_GSO_HDR, size) > HOMAK_GSO_MOST)
		return ERR_PTR(-EINVAL);
	/* The device cuts it; only the number of segments was in doubt. */
	if (skb_gso_ok(skb, features | NETIF_F_GSO_ROBUST)) {
		if (skb->len <= HOMAK_GSO_HDR)
			return ERR_PTR(-EINVAL);
		skb_shinfo(skb)->gso_segs =
			DIV_ROUND_UP(skb->len - HOMAK_GSO_HDR, size);
		return NULL;
	}
	segs = homak_gso_cut(skb, features, HOMAK_GSO_HDR, size);
	if (IS_ERR_OR_NULL(segs))
		return segs;
	for (one = segs; one; one = one->next) {
		struct homa_wire_data *w = homak_gso_seg_header(one);
		int at = skb_transport_offset(one) + (int)HOMAK_GSO_HDR;

		skb_copy_bits(one, at, &w->common.sequence, HOMAK_GSO_OFFSET);
	}
	return segs;
}

struct sk_buff *homak_gso_segment(struct sk_buff *skb, netdev_features_t features)
{
	u8 doff;

	if (!pskb_may_pull(skb, HOMA_DATA_HDR))
		return ERR_PTR(-EINVAL);
	doff = ((const struct homa_wire_common *)skb->data)->doff;
	if (doff >> 4 == HOMA_DOFF_GSO)
		return homak_gso_interleaved(skb, features);
	if (doff & HOMAK_DOFF_ONE_PIECE && homa_peek_type(skb->data) == HOMA_DATA)
		return homak_gso_one_piece(skb, features);
	return ERR_PTR(-EPROTONOSUPPORT);
}
