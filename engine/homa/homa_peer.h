/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Peers: what is known of a remote host across RPCs, and the table of them.
 */
#ifndef HOMA_PEER_H
#define HOMA_PEER_H

#include "homa_codec.h"
#include "homa_ctx.h"
#include "homa_heap.h"
#include "homa_list.h"

/* The table has so many parts, each with a lock. */
#define HOMA_PEER_STRIPES 16u
/* A part has so many buckets, unless limits say otherwise. */
#define HOMA_PEER_BUCKETS 1024u
/* Unscheduled bytes go on this level until the peer's CUTOFFS arrive. */
#define HOMA_NEW_PEER_LEVEL 6u

/*
 * struct homa_peer - a remote host (or process, under UDP encapsulation) as reached over
 * one link: each link's grant scheduler has its own
 *
 * The peer lock is @lock, the stripe's that of the part of the table it is in.
 */
struct homa_peer {
	/* The link it is reached over; constant. */
	struct homa_link *link;
	/* Its address; constant. */
	struct homa_addr addr;
	/* A packet to it carries so many message bytes. Who learns of a path MTU writes it;
	 * read anywhere. */
	u16 mtu_seg;
	/* The version of @cutoffs, which its DATA must name. Peer lock; read anywhere. */
	u16 cutoff_version;
	/* Links it into its bucket; stripe lock. */
	struct homa_list hash;
	/* One for the table, one for each RPC and each caller that looks at it. New ones
	 * are taken under the stripe lock. */
	struct homa_ref refs;
	/* It was looked for at this time, ms; for the collector; read anywhere. */
	u32 used_at_ms;
	struct homa_lock lock;
	/* So many of @ack_ids are in use. Peer lock; read anywhere. */
	u8 num_acks;
	/* Average time from the last byte of a response to its ack, in units of
	 * 2^HOMA_ACK_SHIFT ns. Written under a shard lock, read anywhere. */
	u8 ack_delay;
	/* 1: it is in the stripe's list of those that acks are owed to. Stripe lock; read
	 * anywhere. */
	u8 owes;
	/* So many RESENDs and NEED_ACKs got no answer; peer lock. */
	u8 probes;
	/* So many RPCs that it began are open. Peer lock; read anywhere. */
	u32 server_rpcs;
	/* A message of at most so many bytes goes unasked on the level that is the index;
	 * the highest such level counts. The peer chose them. Peer lock; read anywhere. */
	u32 cutoffs[HOMA_PRIORITIES];
	/* We told it our cutoffs in this millisecond; peer lock. */
	u32 cutoffs_sent_ms;
	/* It was heard last at this time, ns; written under a shard lock, read anywhere. */
	u64 heard_at;
	/* The keyed hash of @addr; constant. */
	u64 key;
	/* The next request to it has this id; atomic. */
	u64 next_id;
	/* What short messages need are two cache lines, to here. */
	/* It sent us DATA or was granted something last at this time, ns; with quiet_us
	 * only. Written under the shard or the grant lock, read anywhere. */
	u64 active_at;
	/* It was asked something last at this time, ns; peer lock. */
	u64 resend_at;
	/* These ids of our RPCs with it are done, and it does not know; the newest last.
	 * Peer lock. */
	u64 ack_ids[HOMA_MAX_ACKS];
	/* The address of ours that the last of them was sent from; peer lock. */
	struct homa_from ack_from;
	/* The server's port of each of @ack_ids. */
	u16 ack_ports[HOMA_MAX_ACKS];
	/* So many of its messages are active; grant lock. */
	u16 slots;
	/* So many RPCs with it have HOMA_RPC_BUSY; peer lock. */
	u32 num_busy;
	/* A packet of it was only late, not lost: so many messages with gaps are not asked
	 * about early. Written without a lock, read anywhere. */
	u8 late;
	/* 1: it is in homa_grants.peers; grant lock. */
	u8 grant_heap;
	/* The lowest 16 bits of the link's MTU when @mtu_seg was found; with another one it is
	 * found anew. Read and written as @mtu_seg. */
	u16 link_mtu;
	/* The life that it was in, as it said last, see homa_life.h; 0: it has not. Written
	 * without a lock, read anywhere. */
	u32 life;
	/* Links it into the stripe's list of those that acks are owed to; stripe lock. */
	struct homa_list owed;
	/* Links it into the stripe's list for the collector; stripe lock. */
	struct homa_list turn;
	/* Its messages that wait to be granted, the best first; grant lock. */
	struct homa_heap waiting;
	/* Links it into homa_grants.peers; grant lock. */
	struct homa_heap_node grant_node;
};
HOMA_STATIC_ASSERT(sizeof(struct homa_peer) - sizeof(struct homa_lock) <= 312,
		   "peer state grew");

/*
 * struct homa_peer_stripe - a part of the peer table
 */
struct homa_peer_stripe {
	struct homa_lock lock;
	struct homa_table peers;
	/* All of its peers, those first that the collector looks at next. */
	struct homa_list turns;
	/* Peers that acks were owed to, the last to be owed any first. */
	struct homa_list owed;
};

/* ---- the keyed hash of an address ---- */

u64 homa_addr_key_new(struct homa_ctx *ctx, const struct homa_addr *addr);

/* Packets in a row are often from few addresses, so a context remembers some. */
static inline struct homa_addr_key *
homa_addr_key_slot(struct homa_ctx *ctx, const struct homa_addr *addr)
{
	return &ctx->keys[(addr->ip[15] ^ addr->encap) % HOMA_CTX_KEYS];
}

static inline u64 homa_addr_key(struct homa_ctx *ctx, const struct homa_addr *addr)
{
	const struct homa_addr_key *seen = homa_addr_key_slot(ctx, addr);

	if (likely(homa_addr_equal(&seen->addr, addr)))
		return seen->key;
	return homa_addr_key_new(ctx, addr);
}

/* ---- peers ---- */

/* Finds a peer, or makes it if @create; a reference is the caller's. NULL: no memory. */
struct homa_peer *homa_peer_get(struct homa_ctx *ctx, struct homa_link *link,
				const struct homa_addr *addr, bool create);
/* Lets a reference go. */
void homa_peer_put(struct homa_ctx *ctx, struct homa_peer *peer);
/* A packet to @addr on a path of IP MTU @mtu carries so many message bytes. */
u16 homa_seg_size(const struct homa_addr *addr, u32 mtu);
/* @link, over which @peer is reached, has another MTU than when @peer's packets got their size. */
void homa_peer_follow_mtu(struct homa_peer *peer, const struct homa_link *link);
/* At most @budget peers that were idle for long are retired. */
void homa_peer_collect(struct homa_ctx *ctx, u32 budget);
/* A message of @bytes goes to @peer on this level, unasked. */
u8 homa_peer_unsched_prio(struct homa_peer *peer, u32 bytes);
void homa_peer_set_cutoffs(struct homa_peer *peer, const u32 *cutoffs,
			   u16 version);
/* An ack for a finished RPC is owed; an ACK packet goes when there is no room. */
void homa_peer_add_ack(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* Acks that are owed are sent, because nothing may come for them to ride on: to some
 * peers, those first that were the last to be owed any. */
void homa_peer_flush_acks(struct homa_ctx *ctx, u16 sport);
/* Takes up to @max acks, newest first; returns how many. */
u32 homa_peer_take_acks(struct homa_peer *peer, struct homa_ack *acks, u32 max);

#endif
