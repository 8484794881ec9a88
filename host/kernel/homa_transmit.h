/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the transmitting files share: tx.c (pulling and sending), build.c (skbs),
 * route.c (where to), gso.c (several segments at once), msg.c (bytes).
 *
 * Written by: the owner of the CPU (homa_own.h), whose cache or whose call it is; what takes a
 * route away from other CPUs does so by xchg().
 */
#ifndef HOMA_TRANSMIT_H
#define HOMA_TRANSMIT_H

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <net/dst.h>

#include "homa_kernel.h"

/*
 * struct homak_route_key - the key of a route, in words that are compared without a branch:
 *	the destination with its UDP port, the device that the socket is bound to and what it
 *	may leave from (homak_sock.way), the address of ours (0: routing chooses one), the
 *	routing domain's device, and the socket's mark, owner and name for a security module
 * @w: these words.
 */
struct homak_route_key {
	u64 w[7];
};

/* Does routing choose our address by itself as it does when it is given this very one? Only
 * then packets of an RPC may go by the way on which its sendmsg() found the address. */
enum homak_route_same {
	HOMAK_ROUTE_UNKNOWN = 0,
	HOMAK_ROUTE_SAME,
	HOMAK_ROUTE_OTHER,
};

/* struct homak_route - one slot of a CPU's cache of routes; used with bottom halves off */
struct homak_route {
	/* The route, with a reference; NULL: the slot is empty. Another thread may take it
	 * away by xchg(), so it is read once, inside an RCU read side that lasts as long as
	 * its use. */
	struct dst_entry *dst;
	/* The time of homa_ctx.now at which dst_check() last agreed, ns. */
	u64 checked_at;
	/* What the route is for. */
	struct homak_route_key key;
	/* A number that dst_check() needs with @dst. */
	u32 cookie;
	/* Length of the IP header below, in bytes. */
	u16 ip_len;
	/* The MTU of the route if that is IPv4's own, as long as dst->expires is 0: most of what
	 * changes such a route's MTU ends it, or sets a time. So it is a hint, and for longer
	 * packets the route is asked once more; 0: not known. */
	u32 mtu;
	/* An enum homak_route_same, if the key has no address of ours. */
	u8 same;
	/* The header that packets begin with: addresses, protocol and hop limit. */
	union {
		struct {
			/* The header of IPv4, if @ip_len is its length. */
			struct iphdr v4;
			/* The sum of its words, folded, for the checksum of packets. */
			u32 v4_sum;
		};
		/* The header of IPv6, else. */
		struct ipv6hdr v6;
	};
} ____cacheline_aligned;

static inline bool homak_route_v4(const struct homak_route *route)
{
	return route->ip_len == sizeof(route->v4);
}

/**
 * homak_route_get() - returns the way for packets from @hdev's link and our address @local
 * to @to. RCU read side, bottom halves off. ERR_PTR: there is none.
 * @sk: the socket that sends them, or NULL.
 * @slot: receives the slot of the cache.
 */
HOMAK_HOT struct dst_entry *
homak_route_get(struct homak_cpu *cpu, struct homak_dev *hdev,
		const struct homa_addr *to, const struct in6_addr *local,
		const struct sock *sk, struct homak_route **slot);
/** homak_route_mtu() - returns what dst_mtu() does for @dst, which homak_route_get() has returned
 *  with @route. */
HOMAK_HOT u32 homak_route_mtu(const struct homak_route *route,
			      const struct dst_entry *dst);

/** homak_tx_out() - does what ip_local_out() or ip6_local_out() does, by a shorter way if
 *  possible; @skb has no IP options and is no longer than the path's MTU, or GSO.
 *  neigh_xmit.c */
HOMAK_HOT int homak_tx_out(struct net *net, struct sock *sk,
			   struct sk_buff *skb, bool v4);

/* How several segments go in one skb; see gso.c. */
enum homak_gso_form {
	HOMAK_GSO_NONE,	     /* one segment in each skb */
	HOMAK_GSO_ONE_PIECE, /* one header, then the payload */
	/* as HOMAK_GSO_ONE_PIECE, but cut before the device */
	HOMAK_GSO_APART,
	/* the first header, then before the payload of each further segment its offset */
	HOMAK_GSO_INTERLEAVED,
	HOMAK_GSO_TCP, /* as TCP's segments */
	HOMAK_GSO_UDP, /* datagrams, each with a whole header of ours */
};

#if IS_ENABLED(CONFIG_HOMA_GSO)
/** homak_gso_form() - returns the form that @dev takes from a sender of @encap. */
enum homak_gso_form homak_gso_form(const struct homak_net *hnet,
				   const struct net_device *dev, u16 encap,
				   bool v4);
/**
 * homak_gso_bytes() - returns the bytes of a message that one such skb takes, in whole
 * segments.
 */
u32 homak_gso_bytes(const struct homak_net *hnet, const struct net_device *dev,
		    enum homak_gso_form form, u32 seg);
/** homak_gso_mark() - makes @skb, whose data is at the Homa header, a multi-segment skb. */
void homak_gso_mark(struct sk_buff *skb, enum homak_gso_form form, u32 seg,
		    u32 length, bool v4);
/** homak_gso_interleave() - appends payload in the interleaved form or as datagrams to @skb,
 *  whose data is the first segment's header. Returns as homak_msg_to_skb() does. */
int homak_gso_interleave(const struct homak_msg *msg, struct sk_buff *skb,
			 enum homak_gso_form form, u32 offset, u32 length,
			 u32 seg);
#else
/* Without gso.c each packet is a buffer of its own. */
static inline enum homak_gso_form homak_gso_form(const struct homak_net *hnet,
						 const struct net_device *dev,
						 u16 encap, bool v4)
{
	return HOMAK_GSO_NONE;
}

static inline u32 homak_gso_bytes(const struct homak_net *hnet,
				  const struct net_device *dev,
				  enum homak_gso_form form, u32 seg)
{
	return seg;
}

static inline void homak_gso_mark(struct sk_buff *skb, enum homak_gso_form form,
				  u32 seg, u32 length, bool v4)
{
}

static inline int homak_gso_interleave(const struct homak_msg *msg,
				       struct sk_buff *skb,
				       enum homak_gso_form form, u32 offset,
				       u32 length, u32 seg)
{
	return -EMSGSIZE;
}
#endif
/** homak_skb_add() - appends part of a page, with a reference; 0 or -EMSGSIZE. */
int homak_skb_add(struct sk_buff *skb, struct page *page, u32 offset, u32 length);

/* struct homak_tx_piece - what goes into one skb */
struct homak_tx_piece {
	/* What the engine wants to send. This skb takes a part of it. */
	const struct homa_tx_desc *desc;
	/* The route by which the skb is sent. */
	struct dst_entry *dst;
	/* The slot of the cache that the route is in. */
	struct homak_route *route;
	/* The socket that sends it; NULL: a control packet about no RPC. */
	struct sock *sk;
	/* The outgoing message, which has the payload. */
	const struct homak_msg *msg;
	/* The number of bytes of @desc before this skb's part. */
	u32 skip;
	/* The number of bytes of this skb's part. */
	u32 length;
	/* Message bytes of one packet on the wire. If they are less than @length, the skb
	 * has several segments, in the form @form. */
	u32 seg;
	/* How several segments go in one skb. */
	enum homak_gso_form form;
};

/* Returns the bytes of memory that an skb takes for @size bytes of its linear part. */
static __always_inline u32 homak_tx_head(u32 size)
{
	return SKB_DATA_ALIGN(size) +
	       SKB_DATA_ALIGN(sizeof(struct skb_shared_info));
}

/* Allocates an skb with @room bytes for headers and @size for what follows. Bottom halves
 * are off. */
static __always_inline struct sk_buff *homak_tx_alloc(u32 room, u32 size)
{
	u32 total = homak_tx_head(room + size);
	struct sk_buff *skb;
	void *data;

	/* KASAN finds bytes beyond the end only if each skb has memory of its own. */
	if (IS_ENABLED(CONFIG_KASAN)) {
		skb = alloc_skb(room + size, GFP_ATOMIC | __GFP_NOWARN);
	} else {
		data = napi_alloc_frag(total);
		if (unlikely(!data))
			return NULL;
		skb = napi_build_skb(data, total);
		if (unlikely(!skb))
			skb_free_frag(data);
	}
	if (likely(skb))
		skb_reserve(skb, room);
	return skb;
}

/** homak_tx_build() - makes the skb, from its IP header on. Returns an ERR_PTR: -ENOMEM, or
 *  -EMSGSIZE if it has to be tried with fewer segments. */
struct sk_buff *homak_tx_build(struct homak_cpu *cpu,
			       const struct homak_tx_piece *piece);
/** homak_tx_build_short() - makes the skb of a native message that is one packet, and whose @bytes
 *  are few. It goes by @route, which is @dst. NULL: there is no memory. */
HOMAK_HOT struct sk_buff *homak_tx_build_short(struct homak_cpu *cpu,
					       const struct homa_tx_desc *desc,
					       const struct homak_route *route,
					       struct dst_entry *dst,
					       struct sock *sk, const u8 *bytes);
/**
 * homak_msg_sock() - returns the socket of the message, which stays as long as the message
 * does.
 */
struct sock *homak_msg_sock(const struct homak_msg *msg);
/** homak_msg_small() - returns the message's bytes, of which there are @end, if its packets
 *  are to be copies of them; else NULL. */
HOMAK_HOT const u8 *homak_msg_small(const struct homak_msg *msg, u32 end);

/* The most bytes that are copied: that costs less than a reference to their page. */
#define HOMAK_TX_COPY 256u

/* Returns how many more bytes the "homa" qdiscs of a device take. */
static inline s32 homak_q_left(const struct homak_dev *hdev)
{
	return atomic_read(&hdev->q_room) - atomic_read(&hdev->q_bytes);
}

/* Is the peer reached by UDP encapsulation? */
static inline bool homak_encap_udp(const struct homa_addr *addr)
{
	return addr->encap && addr->encap != HOMAK_DISGUISE_TCP;
}

#endif
