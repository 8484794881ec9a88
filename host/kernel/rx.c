// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * From buffers to the engine. A buffer may hold one packet; a batch of whole
 * packets that GRO chained; or one that was never segmented, because a device
 * on this machine took it as it was. The engine sees packets: a header, copied
 * aside where it is not in one piece, and a length. Payload stays where it is;
 * what the engine wants of it goes to the reader with its buffer.
 *
 * A buffer that was never segmented comes in two forms. In one piece (our own
 * over lo, veth and the like; also TCP's, in disguise) it is one large packet.
 * With a segment header before each segment's payload (made for network cards,
 * seen here when a virtual one leaves it) it is many packets: the common 52
 * bytes, then each segment's own 4.
 *
 * Nothing here pulls or writes packet data: clones of the buffer may exist.
 */
#include <linux/icmp.h>
#include <linux/icmpv6.h>
#include <net/dsfield.h>
#include <net/icmp.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/route.h>

#include "homa_codec.h"
#include "homa_receive.h"
#include "homa_trace.h"

#define HOMAK_RX_BATCH HOMAK_SPARES /* packets in a call of the engine */
/* calls of the engine before others get the CPU */
#define HOMAK_RX_TURN 2
/* bytes of a DATA header without the segment header */
#define HOMAK_RX_GSO_HDR (HOMA_DATA_HDR - 4)

/* struct homak_rx_slot - one packet on its way through the engine */
struct homak_rx_slot {
	/* The buffer that the packet is in. */
	struct sk_buff *skb;
	/* offset of the packet in the skb, whose payload did not move */
	u32 at;
	/* Its Homa header if that has to be put together from two places of the buffer. */
	u8 hdr[HOMA_MAX_HDR];
};

/* struct homak_ends - the two ends of a packet that came */
struct homak_ends {
	/* The host that it came from. */
	struct homa_addr src;
	/* The address of ours that it came to, an IPv4 address in IPv6's mapped form. If it
	 * is all 0, routing chooses the address that we answer from. */
	struct in6_addr local;
	/* True if it is a packet of IPv4. */
	bool v4;
};

/*
 * struct homak_skb_in - buffers that are being received
 * @skb: buffer at hand, or NULL.
 * @more: the buffers after it.
 * @segment: number of segments of @skb that were taken.
 * @segments: number of segments of @skb; 0: not computed yet.
 * @seg_size: bytes of a segment, with its header.
 * @refused: packets for ports where nobody listens, which are answered by ICMP.
 * @batch: first buffer of a batch of GRO; it still looks like a batch if there are clones
 *	of it.
 * @ends: the two ends of all of its packets.
 * @looked_up: routing was asked about the buffer, and the flow was not learned yet.
 */
struct homak_skb_in {
	/* the namespace. */
	struct homak_net *hnet;
	struct sk_buff *skb, *more;
	u32 segment, segments, seg_size;
	struct sk_buff *refused;
	struct homak_ends ends;
	const struct sk_buff *batch;
	bool looked_up;
};

/* ---- addresses ---- */

static bool homak_rx_is_v4(const struct sk_buff *skb)
{
	return ip_hdr(skb)->version == 4;
}

static u8 homak_rx_prio(const struct sk_buff *skb, bool v4)
{
	if (likely(v4))
		return ip_hdr(skb)->tos >> 5;
	return ipv6_get_dsfield(ipv6_hdr(skb)) >> 5;
}

/* Can a peer have this address in an IPv6 packet? Mapped IPv4 addresses stand for IPv4
 * peers in the engine, so an IPv6 packet must not come from one. */
static bool homak_rx_is_host_v6(const struct in6_addr *addr)
{
	return !ipv6_addr_is_multicast(addr) && !ipv6_addr_any(addr) &&
	       !ipv6_addr_v4mapped(addr);
}

/* Reads the sender's address and our own; false: the packet is not from one host to us
 * alone. (Routing has checked the senders of IPv4.) */
static bool homak_rx_addresses(struct homak_ends *ends,
			       const struct sk_buff *skb, u16 encap)
{
	if (skb->pkt_type != PACKET_HOST)
		return false;
	ends->v4 = homak_rx_is_v4(skb);
	if (likely(ends->v4)) {
		const struct rtable *rt = skb_rtable(skb);

		if (rt && (rt->rt_flags & (RTCF_BROADCAST | RTCF_MULTICAST)))
			return false;
		homak_addr_v4(&ends->src, ip_hdr(skb)->saddr, encap);
		ipv6_addr_set_v4mapped(ip_hdr(skb)->daddr, &ends->local);
		return true;
	}
	if (!homak_rx_is_host_v6(&ipv6_hdr(skb)->saddr) ||
	    !homak_rx_is_host_v6(&ipv6_hdr(skb)->daddr))
		return false;
	homak_addr_v6_at(&ends->src, &ipv6_hdr(skb)->saddr, encap,
			 inet6_iif(skb));
	ends->local = ipv6_hdr(skb)->daddr;
	return true;
}

/* ---- buffers to packets ---- */

/* Computes the segments of a buffer that was never segmented; false: it cannot be read. */
static bool homak_rx_gso_begin(struct homak_skb_in *in, struct sk_buff *skb)
{
	u32 type = skb_shinfo(skb)->gso_type;
	u32 size = skb_shinfo(skb)->gso_size;
	const struct homa_wire_common *hdr;
	struct homa_wire_common buf;

	in->segments = 1;
	if (skb->len <= HOMAK_RX_GSO_HDR)
		return true; /* the engine refuses it */
	hdr = skb_header_pointer(skb, 0, sizeof(buf), &buf);
	if (!hdr)
		return false;
	if (hdr->type != HOMA_DATA)
		return skb->len <= HOMA_MAX_HDR;
	if (type & SKB_GSO_FRAGLIST)
		/* Without the mark it is a batch of GRO whose boundaries were lost. */
		return hdr->doff & HOMAK_DOFF_ONE_PIECE;
	if (hdr->doff >> 4 != HOMA_DOFF_GSO)
		return true;
	if (size <= 4 || skb->len - HOMAK_RX_GSO_HDR <= size)
		return true; /* a single segment, like any other packet */
	in->seg_size = size;
	in->segments = DIV_ROUND_UP(skb->len - HOMAK_RX_GSO_HDR, size);
	/* A guest could say that its frame is thousands of tiny ones. */
	return in->segments <= HOMAK_GSO_MOST;
}

/* Makes a packet of the next segment of in->skb; false: there is no memory, or it cannot be
 * read. */
static bool homak_rx_gso_next(struct homak_skb_in *in,
			      struct homak_rx_slot *slot, struct homa_rx_pkt *pkt)
{
	u32 at = HOMAK_RX_GSO_HDR + in->segment * in->seg_size;
	u32 left = in->skb->len - at;

	if (skb_copy_bits(in->skb, 0, slot->hdr, HOMAK_RX_GSO_HDR) ||
	    skb_copy_bits(in->skb, at, slot->hdr + HOMAK_RX_GSO_HDR, 4))
		return false;
	slot->skb = in->skb;
	if (in->segment + 1 < in->segments) {
		slot->skb = skb_clone(in->skb, GFP_ATOMIC | __GFP_NOWARN);
		if (!slot->skb)
			return false;
	}
	slot->at = at - HOMAK_RX_GSO_HDR;
	pkt->data = slot->hdr;
	pkt->len = HOMAK_RX_GSO_HDR + min(left, in->seg_size);
	return true;
}

/* Makes a packet of a buffer that is one packet. */
static bool homak_rx_plain(struct sk_buff *skb, struct homak_rx_slot *slot,
			   struct homa_rx_pkt *pkt)
{
	slot->skb = skb;
	slot->at = 0;
	pkt->len = skb->len;
	pkt->data = skb_header_pointer(skb, 0, min_t(u32, skb->len, HOMA_MAX_HDR),
				       slot->hdr);
	return pkt->data;
}

/* Drops a packet that its socket must not have. */
static void homak_rx_refused(struct homak_cpu *cpu, struct sk_buff *skb,
			     enum skb_drop_reason why)
{
	homak_host_count(cpu, HOMAK_H_host_rx_refused, 1);
	kfree_skb_reason(skb, why);
}

/* Fills in the next packet; false: none is left, or none can be had. */
static bool homak_rx_next(struct homak_skb_in *in, struct homak_cpu *cpu,
			  const struct homak_dev *hdev,
			  struct homak_rx_slot *slot, struct homa_rx_pkt *pkt)
{
	enum skb_drop_reason why;
	struct sk_buff *skb;
	bool ok;

	while (in->skb || in->more) {
		if (!in->skb) {
			in->skb = in->more;
			in->more = in->more->next;
			in->skb->next = NULL;
			in->segment = 0;
			in->segments = 0;
		}
		skb = in->skb;
		ok = true;
		if (!in->segments) {
			in->segments = 1;
			homak_host_count(cpu, HOMAK_H_host_rx_skbs, 1);
			if (in->more)
				homak_host_count(cpu, HOMAK_H_host_rx_gro, 1);
			why = homak_policy_in(cpu, hdev, &in->ends.src, skb);
			if (unlikely(why != SKB_NOT_DROPPED_YET)) {
				in->skb = NULL;
				homak_rx_refused(cpu, skb, why);
				continue;
			}
			if (unlikely(skb_is_gso(skb) && skb != in->batch)) {
				homak_host_count(cpu, HOMAK_H_host_rx_gso, 1);
				ok = homak_rx_gso_begin(in, skb);
			}
		}
		pkt->src = &in->ends.src;
		pkt->prio = homak_rx_prio(skb, in->ends.v4);
		if (ok)
			ok = in->segments == 1 ?
				     homak_rx_plain(skb, slot, pkt) :
				     homak_rx_gso_next(in, slot, pkt);
		if (!ok || ++in->segment == in->segments)
			in->skb = NULL;
		if (ok)
			return true;
		homak_host_count(cpu, HOMAK_H_host_rx_nomem, 1);
		kfree_skb_reason(skb, SKB_DROP_REASON_NOMEM);
	}
	return false;
}

/* ---- verdicts ---- */

static enum skb_drop_reason homak_rx_reason(u32 metric)
{
	switch (metric) {
	case HOMA_M_drop_short:
	case HOMA_M_drop_empty:
		return SKB_DROP_REASON_PKT_TOO_SMALL;
	case HOMA_M_drop_no_rpc:
	case HOMA_M_drop_no_peer:
	case HOMA_M_drop_no_range:
	case HOMA_M_drop_once_full:
		return SKB_DROP_REASON_NOMEM;
	case HOMA_M_drop_no_buffer:
		return SKB_DROP_REASON_SOCKET_RCVBUFF;
	case HOMA_M_drop_unknown_rpc:
	case HOMA_M_drop_no_listener:
	case HOMA_M_drop_id:
	case HOMA_M_drop_ports:
		return SKB_DROP_REASON_NO_SOCKET;
	case HOMA_M_drop_backlog:
	case HOMA_M_drop_owner_backlog:
	case HOMA_M_drop_owner_limit:
	case HOMA_M_drop_peer_limit:
		return SKB_DROP_REASON_SOCKET_BACKLOG;
	case HOMA_M_rx_duplicates:
	case HOMA_M_drop_tombstone:
	case HOMA_M_drop_state:
	case HOMA_M_drop_restart:
	case HOMA_M_drop_life:
		return SKB_DROP_REASON_TCP_OLD_DATA;
	case HOMA_M_drop_offset:
		return SKB_DROP_REASON_TCP_INVALID_SEQUENCE;
	case HOMA_M_drop_type:
	case HOMA_M_drop_length:
	case HOMA_M_drop_count:
	case HOMA_M_drop_freeze:
		return SKB_DROP_REASON_UNHANDLED_PROTO;
	}
	return SKB_DROP_REASON_NOT_SPECIFIED;
}

/* Releases what must not outlive the softirq, before a reader gets the skb. */
static HOMAK_HOT void homak_rx_detach(struct sk_buff *skb)
{
	skb_orphan(skb);
	skb_dst_drop(skb);
	nf_reset_ct(skb);
	skb_ext_reset(skb);
	skb->dev = NULL;
}

/* Did the packet mean something to the engine, so that its flow is worth remembering? */
static bool homak_rx_meant(const struct homa_rx_pkt *pkt)
{
	return homak_rx_has_data(pkt) || pkt->verdict == HOMA_RX_CONTROL;
}

/* Does with the buffer what the engine says. Returns true if the caller has to answer it by
 * ICMP, and free it, when it has left the engine. */
static HOMAK_HOT bool homak_rx_verdict(struct homak_cpu *cpu, struct sk_buff *skb,
				       u32 at, struct homa_rx_pkt *pkt)
{
	switch (pkt->verdict) {
	case HOMA_RX_DATA:
		homak_rx_detach(skb);
		homak_inbox_data(cpu, pkt, skb, at + pkt->skip);
		break;
	case HOMA_RX_MESSAGE:
		homak_rx_detach(skb);
		homak_whole_add(cpu, pkt, skb, at + pkt->skip);
		break;
	case HOMA_RX_CONTROL:
		napi_consume_skb(skb, 1);
		break;
	case HOMA_RX_NO_LISTENER:
		return true;
	default:
		kfree_skb_reason(skb, homak_rx_reason(pkt->reason));
	}
	return false;
}

/* A copy of the packet, so that it may be in registers where it is not traced. */
static HOMA_RARE void homak_rx_trace(struct homak_dev *hdev,
				     struct homa_rx_pkt pkt)
{
	homak_trace_rx(hdev, &pkt);
}

/* Is this the usual case: one packet, with its header in one piece? */
static bool homak_rx_is_single(const struct sk_buff *skb)
{
	if (skb_has_frag_list(skb) || skb_is_gso(skb))
		return false;
	return !skb->data_len || (skb_headlen(skb) >= HOMA_DATA_HDR &&
				  homa_peek_type(skb->data) == HOMA_DATA);
}

/* Takes such a packet in. Returns as homak_rx_verdict() does. */
static HOMAK_HOT bool homak_rx_single(struct homak_cpu *cpu,
				      struct homak_dev *hdev, struct sk_buff *skb,
				      const struct homak_ends *ends,
				      bool looked_up)
{
	struct homa_rx_pkt pkt HOMA_NOINIT;
	enum skb_drop_reason why;
	bool refused;

	homak_host_count(cpu, HOMAK_H_host_rx_skbs, 1);
	why = homak_policy_in(cpu, hdev, &ends->src, skb);
	if (unlikely(why != SKB_NOT_DROPPED_YET)) {
		homak_rx_refused(cpu, skb, why);
		return false;
	}
	pkt.data = skb->data;
	pkt.len = skb->len;
	pkt.src = &ends->src;
	pkt.prio = homak_rx_prio(skb, ends->v4);
	homa_rx_alone(&cpu->ctx, homak_dev_link(hdev), &pkt);
	if (trace_homa_rx_enabled() || trace_homa_drop_enabled())
		homak_rx_trace(hdev, pkt);
	if (unlikely(looked_up) && homak_rx_meant(&pkt))
		homak_flow_learn(cpu->hnet, hdev, skb);
	refused = homak_rx_verdict(cpu, skb, 0, &pkt);
	homa_rx_flush(&cpu->ctx);
	return refused;
}

/* struct homak_rx_work - packets of one call of the engine, which are too many for a stack.
 * Used between homak_enter() and homak_leave(), where nothing is received inside. */
struct homak_rx_work {
	/* The packets, as they lie in buffers. */
	struct homak_rx_slot slots[HOMAK_RX_BATCH];
	/* The same packets, as the engine is told. */
	struct homa_rx_pkt pkts[HOMAK_RX_BATCH];
};

static DEFINE_PER_CPU(struct homak_rx_work, homak_rx_work);

/* Does what follows when the engine has seen a packet of @in. */
static void homak_rx_done(struct homak_skb_in *in, struct homak_cpu *cpu,
			  struct homak_dev *hdev, struct homak_rx_slot *slot,
			  struct homa_rx_pkt *pkt)
{
	struct sk_buff *skb = slot->skb;

	if (in->looked_up && homak_rx_meant(pkt)) {
		in->looked_up = false;
		homak_flow_learn(in->hnet, hdev, skb);
	}
	if (unlikely(homak_rx_verdict(cpu, skb, slot->at, pkt))) {
		skb->next = in->refused;
		in->refused = skb;
	}
}

/* Makes one call of the engine; false: no packet was left after it. */
static bool homak_rx_batch(struct homak_skb_in *in, struct homak_cpu *cpu,
			   struct homak_dev *hdev)
{
	struct homak_rx_work *work = this_cpu_ptr(&homak_rx_work);
	struct homak_rx_slot *slots = work->slots;
	struct homa_rx_pkt *pkts = work->pkts;
	u32 i, n = 0;

	while (n < HOMAK_RX_BATCH &&
	       homak_rx_next(in, cpu, hdev, &slots[n], &pkts[n]))
		n++;
	if (!n)
		return false;
	homa_rx(&cpu->ctx, homak_dev_link(hdev), pkts, n);
	for (i = 0; i < n; i++) {
		homak_trace_rx(hdev, &pkts[i]);
		homak_rx_done(in, cpu, hdev, &slots[i], &pkts[i]);
	}
	homa_rx_flush(&cpu->ctx);
	return in->skb || in->more;
}

/* Calls the engine at most HOMAK_RX_TURN times. */
static void homak_rx_turn(struct homak_skb_in *in, struct homak_cpu *cpu,
			  struct homak_dev *hdev)
{
	u32 turn;

	for (turn = 0; turn < HOMAK_RX_TURN; turn++) {
		if (turn)
			homak_refill(cpu);
		if (!homak_rx_batch(in, cpu, hdev))
			break;
	}
}

/* ---- the buffer ---- */

static void homak_rx_unreachable(struct sk_buff *skb)
{
	if (homak_rx_is_v4(skb))
		icmp_send(skb, ICMP_DEST_UNREACH, ICMP_PORT_UNREACH, 0);
	else
		icmpv6_send(skb, ICMPV6_DEST_UNREACH, ICMPV6_PORT_UNREACH, 0);
}

static bool homak_rx_is_data(const struct sk_buff *skb)
{
	u8 buf[HOMA_COMMON_HDR];
	const void *hdr = skb_header_pointer(skb, 0, sizeof(buf), buf);

	return hdr && homa_peek_type(hdr) == HOMA_DATA;
}

static void homak_rx_drop_list(struct sk_buff *skb, enum skb_drop_reason why)
{
	struct sk_buff *next;

	for (; skb; skb = next) {
		next = skb->next;
		skb->next = NULL;
		kfree_skb_reason(skb, why);
	}
}

/* Answers packets that nobody wanted. It transmits, so the caller must not be in the
 * engine. */
static void homak_rx_refuse(struct sk_buff *skb)
{
	struct sk_buff *next;

	for (; skb; skb = next) {
		next = skb->next;
		skb->next = NULL;
		homak_rx_unreachable(skb);
		kfree_skb_reason(skb, SKB_DROP_REASON_NO_SOCKET);
	}
}

/* Drops packets of a namespace in which no Homa socket was ever made, or which is
 * paused. */
static void homak_rx_nobody(struct homak_net *hnet, struct sk_buff *skb,
			    struct sk_buff *more)
{
	if (skb && !homak_net_engine(hnet) && homak_rx_is_data(skb)) {
		homak_rx_refuse(skb);
		skb = NULL;
	}
	homak_rx_drop_list(skb, SKB_DROP_REASON_NO_SOCKET);
	homak_rx_drop_list(more, SKB_DROP_REASON_NO_SOCKET);
}

/* Enters for packets of @dev to @ends. *@hdev is the struct of the device, which is looked for if
 * it is NULL. NULL: @skb and @more were dropped. */
static HOMAK_HOT struct homak_cpu *
homak_rx_enter(struct homak_net *hnet, struct net_device *dev,
	       struct homak_dev **hdev, const struct homak_ends *ends,
	       struct sk_buff *skb, struct sk_buff *more)
{
	struct homak_cpu *cpu = homak_enter_inside(hnet);

	if (unlikely(!cpu)) {
		homak_rx_nobody(hnet, skb, more);
		return NULL;
	}
	if (!*hdev)
		*hdev = homak_dev_get(hnet, dev);
	if (unlikely(!*hdev)) {
		homak_leave_inside(cpu);
		homak_rx_drop_list(skb, SKB_DROP_REASON_DEV_READY);
		homak_rx_drop_list(more, SKB_DROP_REASON_DEV_READY);
		return NULL;
	}
	memcpy(&cpu->ctx.heard_at, &ends->local, sizeof(cpu->ctx.heard_at));
	cpu->ctx.heard_on = (u32)READ_ONCE((*hdev)->ifindex);
	return cpu;
}

/* Takes in a buffer of several packets, or one whose header is not in one piece. */
static noinline void homak_rx_several(struct homak_net *hnet,
				      struct sk_buff *skb, struct homak_dev *hdev,
				      const struct homak_ends *ends,
				      bool looked_up)
{
	struct net_device *dev = skb->dev;
	struct homak_skb_in in = {
		.hnet = hnet,
		.skb = skb,
		.ends = *ends,
		.looked_up = looked_up,
	};
	struct homak_cpu *cpu;

	if (skb_has_frag_list(skb)) {
		in.batch = skb;
		in.more = homak_gro_split(skb);
		if (IS_ERR(in.more)) {
			kfree_skb_reason(skb, SKB_DROP_REASON_SKB_GSO_SEG);
			return;
		}
	}
	do {
		cpu = homak_rx_enter(hnet, dev, &hdev, ends, in.skb, in.more);
		if (unlikely(!cpu))
			break;
		homak_rx_turn(&in, cpu, hdev);
		homak_leave_inside(cpu);
	} while (in.skb || in.more);
	if (unlikely(in.refused))
		homak_rx_refuse(in.refused);
}

void homak_rx_routed(struct homak_net *hnet, struct sk_buff *skb, u16 encap,
		     struct homak_dev *hdev, bool looked_up)
{
	struct homak_ends ends HOMA_NOINIT;
	struct homak_cpu *cpu;
	bool refused;

	skb = skb_share_check(skb, GFP_ATOMIC);
	if (unlikely(!skb))
		return;
	if (unlikely(!homak_rx_addresses(&ends, skb, encap))) {
		kfree_skb_reason(skb, skb->pkt_type == PACKET_HOST ?
					      SKB_DROP_REASON_IP_INADDRERRORS :
					      SKB_DROP_REASON_OTHERHOST);
		return;
	}
	if (unlikely(!homak_rx_is_single(skb))) {
		homak_rx_several(hnet, skb, hdev, &ends, looked_up);
		return;
	}
	cpu = homak_rx_enter(hnet, skb->dev, &hdev, &ends, skb, NULL);
	if (unlikely(!cpu))
		return;
	refused = homak_rx_single(cpu, hdev, skb, &ends, looked_up);
	homak_leave_inside(cpu);
	if (unlikely(refused)) {
		skb_mark_not_on_list(skb);
		homak_rx_refuse(skb);
	}
}
