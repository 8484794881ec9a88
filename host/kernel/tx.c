// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Transmission: packets are pulled from the engine one after the other, when
 * they can be sent, so that its choice is made at the last moment. A turn is
 * bounded; what is left is for a little later (later.c), and between the turns the
 * receiving side of loopback and veth gets to empty its queue.
 *
 * What goes wrong. No memory or a full queue: the range goes back to the engine
 * and the link rests for a moment. No route: the RPC fails as by an ICMP error.
 * Dropped by a filter, or by the neighbour that does not answer: like a loss in
 * the network, which the receiver or a timeout will notice.
 */
#include "homa_dst.h"
#include "homa_trace.h"
#include "homa_transmit.h"

#define HOMAK_TURN_PACKETS 64u
#define HOMAK_TURN_BYTES (256u << 10)
#define HOMAK_TX_REST (250 * NSEC_PER_USEC)

/* struct homak_tx_turn - what a call of homak_xmit() may still do */
struct homak_tx_turn {
	/* The context of the call. */
	struct homak_cpu *cpu;
	/* The device that is sent by. */
	struct homak_dev *hdev;
	/* The number of skbs that may still be sent. */
	int packets;
	/* The number of bytes that may still be sent. */
	int bytes;
};

/* Has the link asked again at @when, unless it is asked earlier anyway. */
static void homak_tx_arm(struct homak_dev *hdev, u64 when)
{
	ktime_t at = ns_to_ktime(when);

	if (when >= KTIME_MAX)
		return;
	if (hrtimer_is_queued(&hdev->timer) &&
	    hrtimer_get_softexpires(&hdev->timer) <= at)
		return;
	hrtimer_start(&hdev->timer, at, HRTIMER_MODE_ABS_SOFT);
}

/* Gives a packet to IP. Returns 0; 1 if it cannot be sent now; -errno if it is lost. */
static HOMAK_HOT int homak_tx_send(struct homak_cpu *cpu, struct sk_buff *skb,
				   struct sock *sk, bool v4)
{
	struct net *net = cpu->hnet->net;
	bool several = skb_is_gso(skb);
	int err;

	err = homak_tx_out(net, sk, skb, v4);
	if (likely(err == NET_XMIT_SUCCESS || err == NET_XMIT_CN)) {
		homak_host_count(cpu, HOMAK_H_host_tx_skbs, 1);
		if (several)
			homak_host_count(cpu, HOMAK_H_host_tx_gso, 1);
		return 0;
	}
	homak_host_count(cpu, HOMAK_H_host_tx_error, 1);
	if (err > 0 || err == -ENOBUFS || err == -ENOMEM || err == -EAGAIN)
		return 1;
	return err;
}

/* Ends the RPC of @desc, because there is no way to its destination. */
static void homak_tx_no_route(struct homak_cpu *cpu, struct homa_tx_desc *desc)
{
	const struct homa_wire_common *w = (const void *)desc->hdr;

	bool data = desc->rpc;

	homak_host_count(cpu, HOMAK_H_host_tx_noroute, 1);
	homa_tx_done(&cpu->ctx, desc, 0);
	if (!data)
		return;
	homa_icmp(&cpu->ctx, &desc->dst, homa_get_be16(&w->sport),
		  homa_get_be16(&w->dport), homa_get_be64(&w->sender_id),
		  HOMA_EHOSTUNREACH);
}

/* Returns the message bytes that a packet may carry now; the path may have become narrower
 * since the message was begun. */
static u32 homak_tx_seg(const struct homak_tx_piece *piece)
{
	const struct homa_tx_desc *desc = piece->desc;
	u32 head = piece->route->ip_len + desc->hdr_len +
		   (homak_encap_udp(&desc->dst) ? 8 : 0);
	u32 mtu;

	/* Every path takes this many bytes, IPv4's smallest as well. */
	if (desc->length <= 256)
		return desc->seg_size;
	mtu = dst_mtu(piece->dst);
	return min(desc->seg_size, mtu > head + 256 ? mtu - head : 256);
}

/* Returns how many bytes of @desc go in one skb. */
static u32 homak_tx_most(const struct homak_tx_turn *turn,
			 struct homak_tx_piece *piece)
{
	const struct homa_tx_desc *desc = piece->desc;
	const struct homak_net *hnet = turn->cpu->hnet;
	const struct net_device *dev = homak_dst_dev(piece->dst);

	piece->seg = 0;
	if (!desc->rpc)
		return 0;
	piece->seg = homak_tx_seg(piece);
	if (desc->length <= piece->seg)
		return piece->seg;
	piece->form = homak_gso_form(hnet, dev, desc->dst.encap,
				     homak_route_v4(piece->route));
	if (piece->form == HOMAK_GSO_NONE)
		return piece->seg;
	return homak_gso_bytes(hnet, dev, piece->form, piece->seg);
}

/* Sends all of @desc, in as many packets as it takes. Returns as homak_tx_send() does. */
static int homak_tx_all(struct homak_tx_turn *turn, struct homa_tx_desc *desc,
			struct homak_tx_piece *piece)
{
	u32 left = desc->length;
	u32 most = homak_tx_most(turn, piece);
	struct sk_buff *skb;
	int err;

	do {
		piece->length = min(left, most);
		skb = homak_tx_build(turn->cpu, piece);
		if (IS_ERR(skb)) {
			if (PTR_ERR(skb) == -EMSGSIZE && most > piece->seg) {
				most = piece->seg;
				continue;
			}
			homak_host_count(turn->cpu, HOMAK_H_host_tx_nomem, 1);
			return 1;
		}
		turn->bytes -= (int)skb->len;
		turn->packets--;
		err = homak_tx_send(turn->cpu, skb, piece->sk,
				    homak_route_v4(piece->route));
		if (unlikely(err > 0))
			return err;
		piece->skip += piece->length;
		left -= piece->length;
	} while (left);
	return 0;
}

/* Looks up the RPC that a control packet is about, for its socket, and returns it, held. */
static struct homa_rpc *homak_tx_control(struct homak_cpu *cpu,
					 const struct homa_tx_desc *desc,
					 struct homak_tx_piece *piece)
{
	const struct homa_wire_common *w = (const void *)desc->hdr;
	u64 id = homa_get_be64(&w->sender_id);
	struct homa_rpc *rpc;

	piece->msg = NULL;
	piece->sk = NULL;
	rpc = homa_rpc_hold(&cpu->ctx, id, id & 1 ? &desc->dst : NULL);
	if (likely(rpc))
		piece->sk = &homak_sock_of(homa_rpc_sock(rpc))->inet.sk;
	return rpc;
}

/*
 * Finds the way of packets that @sk sends from @local to @to. @way, which routing gave the same
 * packets when it chose @local by itself, need not be looked up anew if it was found to be
 * the same before. Returns as homak_route_get() does.
 */
static HOMAK_HOT struct dst_entry *
homak_tx_way(struct homak_cpu *cpu, struct homak_dev *hdev,
	     const struct homa_addr *to, const struct in6_addr *local,
	     const struct sock *sk, struct homak_route *way,
	     struct homak_route **route)
{
	struct dst_entry *dst;

	if (way && way->same == HOMAK_ROUTE_SAME) {
		*route = way;
		dst = READ_ONCE(way->dst);
		/* The route's device may go at any time. */
		if (likely(dst))
			return dst;
	}
	dst = homak_route_get(cpu, hdev, to, local, sk, route);
	if (way && way != *route && way->same == HOMAK_ROUTE_UNKNOWN)
		way->same = READ_ONCE(way->dst) == dst ? HOMAK_ROUTE_SAME :
							 HOMAK_ROUTE_OTHER;
	return dst;
}

/* Sends @piece by the way that was found, if one was. Returns as homak_tx_desc() does. */
static noinline bool homak_tx_piece(struct homak_tx_turn *turn,
				    struct homa_tx_desc *desc,
				    struct homak_tx_piece *piece)
{
	struct homak_cpu *cpu = turn->cpu;

	if (IS_ERR(piece->dst)) {
		if (PTR_ERR(piece->dst) != -ENOMEM) {
			homak_tx_no_route(cpu, desc);
			turn->packets--;
			return true;
		}
		homak_host_count(cpu, HOMAK_H_host_tx_nomem, 1);
	} else if (likely(homak_tx_all(turn, desc, piece) <= 0)) {
		homa_tx_done(&cpu->ctx, desc, 0);
		return true;
	}
	/* Only the bytes that were not sent go back to the engine. */
	desc->offset += piece->skip;
	desc->length -= piece->skip;
	homa_tx_done(&cpu->ctx, desc, -ENOBUFS);
	return false;
}

/* Sends one descriptor. Returns false if the link must rest. */
static bool homak_tx_desc(struct homak_tx_turn *turn, struct homa_tx_desc *desc)
{
	struct homak_cpu *cpu = turn->cpu;
	struct homak_tx_piece piece HOMA_NOINIT;
	const struct in6_addr *local;
	struct homa_rpc *held = NULL;
	bool ok;

	piece.desc = desc;
	piece.skip = 0;
	if (likely(desc->rpc)) {
		piece.msg = homak_rpc(desc->rpc)->msg;
		if (WARN_ON_ONCE(!piece.msg)) {
			homa_tx_done(&cpu->ctx, desc, 0);
			return true;
		}
		piece.sk = homak_msg_sock(piece.msg);
		local = &homak_rpc(desc->rpc)->local;
	} else {
		held = homak_tx_control(cpu, desc, &piece);
		local = (const struct in6_addr *)&desc->from;
	}
	piece.dst = homak_tx_way(cpu, turn->hdev, &desc->dst, local, piece.sk,
				 NULL, &piece.route);
	ok = homak_tx_piece(turn, desc, &piece);
	if (held)
		homa_rpc_release(&cpu->ctx, held);
	return ok;
}

/* Sends a message that is one packet in the way that is for all. @desc is a copy, here and below,
 * so that most of it may be in registers elsewhere. */
static noinline bool homak_tx_general(struct homak_cpu *cpu,
				      struct homak_dev *hdev,
				      struct homa_tx_desc desc)
{
	struct homak_tx_turn turn = { .cpu = cpu, .hdev = hdev };

	return homak_tx_desc(&turn, &desc);
}

/* Does what follows when a message that is one packet has no way, for which @dst is the error. */
static noinline bool homak_tx_nowhere(struct homak_cpu *cpu,
				      struct homak_dev *hdev,
				      struct homa_tx_desc desc,
				      struct dst_entry *dst)
{
	struct homak_tx_turn turn = { .cpu = cpu, .hdev = hdev };
	struct homak_tx_piece piece = { .desc = &desc, .dst = dst };

	return homak_tx_piece(&turn, &desc, &piece);
}

/* Does what follows when the device or its queue did not take the packet. */
static HOMA_RARE void homak_tx_refused(struct homak_cpu *cpu,
				       struct homa_tx_desc desc)
{
	homa_tx_done(&cpu->ctx, &desc, -ENOBUFS);
}

static HOMA_RARE void homak_tx_trace(struct homak_dev *hdev,
				     struct homa_tx_desc desc)
{
	trace_homa_tx(hdev, &desc);
}

/* Sends a message that is one packet, and nearly always native and short. @way is as in
 * homak_tx_way(). Returns as homak_tx_desc() does. */
static HOMAK_HOT bool homak_tx_only(struct homak_cpu *cpu, struct homak_dev *hdev,
				    struct homa_tx_desc *desc,
				    struct homak_route *way)
{
	const struct homak_rpc *krpc = homak_rpc(desc->rpc);
	const struct homak_msg *msg = krpc->msg;
	struct homak_route *route;
	struct dst_entry *dst;
	struct sk_buff *skb;
	const u8 *bytes;
	struct sock *sk;
	int err = 1;

	bytes = likely(msg) ? homak_msg_small(msg, desc->length) : NULL;
	/* Every path takes so many bytes, see homak_tx_seg(). */
	if (unlikely(!bytes || desc->dst.encap || desc->length > HOMAK_TX_COPY))
		return homak_tx_general(cpu, hdev, *desc);
	sk = homak_msg_sock(msg);
	dst = homak_tx_way(cpu, hdev, &desc->dst, &krpc->local, sk, way, &route);
	if (IS_ERR(dst))
		return homak_tx_nowhere(cpu, hdev, *desc, dst);
	skb = homak_tx_build_short(cpu, desc, route, dst, sk, bytes);
	if (likely(skb))
		err = homak_tx_send(cpu, skb, sk, homak_route_v4(route));
	else
		homak_host_count(cpu, HOMAK_H_host_tx_nomem, 1);
	if (unlikely(err > 0)) {
		homak_tx_refused(cpu, *desc);
		return false;
	}
	homa_tx_done(&cpu->ctx, desc, 0);
	return true;
}

/*
 * Has the "homa" qdisc got more room, for which the engine waits? If so, the link is told
 * of it; if not, the next packet that leaves the qdisc makes us pull again. @had: the room
 * in bytes that the link was told last.
 */
static bool homak_tx_room(struct homak_dev *hdev, s32 *had)
{
	s32 left;

	WRITE_ONCE(hdev->q_waits, true);
	smp_mb(); /* pairs with homak_q_count() */
	left = homak_q_left(hdev);
	if (atomic_read(&hdev->q_bytes)) {
		if (left <= *had)
			return false;
	} else if (!atomic_read(&hdev->q_limits)) {
		/* nothing leaves, so nothing would make us ask again */
		left = max(left, 65536);
	}
	WRITE_ONCE(hdev->q_waits, false);
	*had = left;
	homa_link_room(homak_dev_own(hdev), (u64)left);
	return true;
}

/* Returns about how many segments to ask the engine for at once; homak_tx_most() looks at
 * the receiver as well. */
static u32 homak_tx_segs(const struct homak_net *hnet,
			 const struct net_device *dev)
{
	u16 encap = READ_ONCE(hnet->settings.hijack_tcp) ? HOMAK_DISGUISE_TCP : 0;

	if (homak_gso_form(hnet, dev, encap, true) == HOMAK_GSO_NONE)
		return 1;
	/* lo and dummy devices may have an MTU of 0. */
	return max(65536 / max_t(u32, READ_ONCE(dev->mtu), ETH_MIN_MTU), 1u);
}

/* The packet of @desc could not be sent: the link rests for a moment. */
static void homak_tx_rest(struct homak_cpu *cpu, struct homak_dev *hdev)
{
	homak_tx_arm(hdev, cpu->ctx.now + HOMAK_TX_REST);
	/* The packet that was given back is no reason to pull at once. */
	if (cpu->ctx.tx_link == homak_dev_own(hdev))
		cpu->ctx.tx_link = NULL;
}

HOMAK_HOT void homak_xmit_now(struct homak_cpu *cpu, struct homa_tx_desc *desc,
			      struct homak_route *way)
{
	struct homak_dev *hdev = homak_dev_of(desc->link);

	homak_rcu_begin();
	if (trace_homa_tx_enabled())
		homak_tx_trace(hdev, *desc);
	if (unlikely(!homak_tx_only(cpu, hdev, desc, way)))
		homak_tx_rest(cpu, hdev);
	homak_rcu_end();
}

void homak_xmit(struct homak_cpu *cpu, struct homak_dev *hdev)
{
	struct homak_tx_turn turn = {
		.cpu = cpu,
		.hdev = hdev,
		.packets = HOMAK_TURN_PACKETS,
		.bytes = HOMAK_TURN_BYTES,
	};
	const struct net_device *dev;
	struct homa_tx_desc desc HOMA_NOINIT;
	s32 room = 0;
	u32 segs;

	if (unlikely(atomic_read(&hdev->q_limits))) {
		room = max(homak_q_left(hdev), 0);
		homa_link_room(homak_dev_own(hdev), (u64)room);
	}
	rcu_read_lock();
	dev = rcu_dereference(hdev->dev);
	segs = dev ? homak_tx_segs(cpu->hnet, dev) : 1;
	for (;;) {
		enum homa_tx_result got;

		if (unlikely(turn.packets <= 0 || turn.bytes <= 0)) {
			homak_later_queue(&hdev->again);
			break;
		}
		got = homa_tx(&cpu->ctx, homak_dev_own(hdev), segs, &desc);
		if (got == HOMA_TX_IDLE)
			break;
		if (got == HOMA_TX_WAIT) {
			/* The limit may be there only since our own first packet. */
			if (desc.not_before == HOMA_NEVER &&
			    atomic_read(&hdev->q_limits) &&
			    homak_tx_room(hdev, &room))
				continue;
			homak_tx_arm(hdev, desc.not_before);
			break;
		}
		trace_homa_tx(hdev, &desc);
		if (unlikely(!homak_tx_desc(&turn, &desc))) {
			homak_tx_rest(cpu, hdev);
			break;
		}
		if (!desc.more)
			break;
	}
	rcu_read_unlock();
}

void homak_xmit_all(struct homak_cpu *cpu)
{
	struct homak_dev *hdev;
	int i;

	rcu_read_lock();
	for (i = 0; i < HOMAK_DEV_BUCKETS; i++)
		hlist_for_each_entry_rcu(hdev, &cpu->hnet->devs[i], node)
			homak_xmit(cpu, hdev);
	rcu_read_unlock();
}
