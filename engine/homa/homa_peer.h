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

/* Number of parts of the peer table, each with a lock of its own. */
#define HOMA_PEER_STRIPES 16u
/* Number of hash buckets of a part at first, if homa_limits.peer_buckets is 0. */
#define HOMA_PEER_BUCKETS 1024u
/* Level of unscheduled bytes until the peer's CUTOFFS arrive. */
#define HOMA_NEW_PEER_LEVEL 6u

/* The unit of homa_peer.link_mtu if that is a time, as the logarithm of ms. */
#define HOMA_NARROW_SHIFT 16
/* It is in the stripe's list of those that acks are owed to. */
#define HOMA_PEER_OWES 1u
/* Some owner pays for it. */
#define HOMA_PEER_PAID 2u

/*
 * struct homa_peer - a remote host (or process, under UDP encapsulation) as reached over
 * one link: each link's grant scheduler has its own
 *
 * Guarded by: what each field says. The peer lock is @lock, the stripe's that of the part of the
 * table it is in. "Counter" means that any context adds to it, atomically.
 */
struct homa_peer {
	/* Link over which the peer is reached; constant. */
	struct homa_link *link;
	/* Address of the peer; constant. */
	struct homa_addr addr;
	/* Most message bytes in a packet to the peer. Written by whoever learns of a path
	 * MTU; read without a lock. */
	u16 mtu_seg;
	/* Version of @cutoffs, which DATA to the peer must name. Peer lock; read without
	 * it. */
	u16 cutoff_version;
	/* Links the peer into its hash bucket; stripe lock. */
	struct homa_list hash;
	/* References: one of the table, one of each RPC and of each caller that looks at
	 * the peer. New ones are taken under the stripe lock. */
	struct homa_ref refs;
	/* Time at which the peer was last looked for, in ms; the collector reads it without
	 * a lock. */
	u32 used_at_ms;
	/* The peer lock. */
	struct homa_lock lock;
	/* Number of entries of @ack_ids that are used. Peer lock; read without it. */
	u8 num_acks;
	/* Average time from the last byte of a response to its ack, in units of
	 * 2^HOMA_ACK_SHIFT ns. Written under a shard lock, read without one. */
	u8 ack_delay;
	/* HOMA_PEER_OWES and HOMA_PEER_PAID. Stripe lock; read without it. */
	u8 marks;
	/* Number of RESENDs and NEED_ACKs that the peer has not answered; peer lock. */
	u8 probes;
	/* Number of open RPCs that the peer began; counter. */
	u32 server_rpcs;
	/* For each level, the length in bytes up to which unscheduled messages go on it; of
	 * several levels the highest counts. The peer chose them. Peer lock; read without
	 * it. */
	u32 cutoffs[HOMA_PRIORITIES];
	/* Millisecond in which we last told the peer our cutoffs; peer lock. */
	u32 cutoffs_sent_ms;
	/* Time at which the peer's last packet arrived, in ns; written under a shard lock,
	 * read without one. */
	u64 heard_at;
	/* Keyed hash of @addr; constant. */
	u64 key;
	/* Id of the next request to the peer; atomic. */
	u64 next_id;
	/* Short messages use only the fields up to here, which are two cache lines. */
	/* Time at which the peer last sent us DATA or was sent a GRANT, in ns; kept only
	 * if quiet_us is not 0. Written under the shard or the grant lock, read without
	 * them. */
	u64 active_at;
	/* Time at which the last RESEND or NEED_ACK to the peer was sent, in ns; peer
	 * lock. */
	u64 resend_at;
	/* Ids of our finished RPCs with the peer that it was not sent an ack of, the newest
	 * last. Peer lock. */
	u64 ack_ids[HOMA_MAX_ACKS];
	/* Local address that the request of the last of them was sent from; peer lock. */
	struct homa_from ack_from;
	/* Server's port of each RPC in @ack_ids. */
	u16 ack_ports[HOMA_MAX_ACKS];
	/* Number of the peer's messages that are active, that is, being granted to; grant
	 * lock. */
	u16 slots;
	/* Number of RPCs with the peer that have HOMA_RPC_BUSY; peer lock. */
	u32 num_busy;
	/* Number of messages with gaps that the peer is still not asked about early,
	 * because a packet of it was late and not lost. Written and read without a lock. */
	u8 late;
	/* 1 if the peer is in homa_grants.peers, else 0; grant lock. */
	u8 grant_heap;
	/* Lowest 16 bits of the link's MTU when @mtu_seg was computed from it; if the link's
	 * differ, @mtu_seg is looked at again. If the path is narrower: the time at which
	 * somebody last said so, in units of 2^HOMA_NARROW_SHIFT ms. Locked as @mtu_seg. */
	u16 link_mtu;
	/* Name of the run (life) of the peer's host that its last packet came from, see
	 * homa_life.h; 0: none is known. Written and read without a lock. */
	u32 life;
	/* Links the peer into homa_peer_stripe.owed; stripe lock. */
	struct homa_list owed;
	/* Links the peer into homa_peer_stripe.turns; stripe lock. */
	struct homa_list turn;
	/* Heap of the peer's messages that wait to become active, the one with the fewest
	 * missing bytes first; grant lock. */
	struct homa_heap waiting;
	/* Links the peer into homa_grants.peers; grant lock. */
	struct homa_heap_node grant_node;
	/* Who pays for it; NULL: nobody does. Stripe lock. */
	struct homa_owner *owner;
	/* Links it into homa_owner.turns of @owner; stripe lock. */
	struct homa_list of_owner;
};
HOMA_STATIC_ASSERT(sizeof(struct homa_peer) - sizeof(struct homa_lock) <= 336,
		   "peer state grew");
HOMA_STATIC_ASSERT(HOMA_PEER_STRIPES == HOMA_OWNER_PARTS,
		   "an owner has a list for each stripe");

/*
 * struct homa_peer_stripe - a part of the peer table
 *
 * Guarded by: @lock.
 */
struct homa_peer_stripe {
	/* The stripe lock. */
	struct homa_lock lock;
	/* Hash table of the peers by homa_peer.key. */
	struct homa_table peers;
	/* All peers of the stripe, first those that the collector looks at next. */
	struct homa_list turns;
	/* Peers that acks are owed to, the most recent first. */
	struct homa_list owed;
	/* Number of its peers that nobody pays for. */
	u32 unpaid;
};

/* ---- the keyed hash of an address ---- */

u64 homa_addr_key_new(struct homa_ctx *ctx, const struct homa_addr *addr);

/* Packets that follow each other are often from few addresses, so a context remembers the
 * hashes of some. */
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

/* Whether a peer that is not there is made: not, because a socket of ours sends to it, or for
 * another reason, such as a packet from there. */
enum homa_peer_make {
	HOMA_PEER_FIND,
	HOMA_PEER_OURS,
	HOMA_PEER_STRANGER,
};
/* Returns the peer with a reference for the caller, and makes it first if there is none, as @make
 * says; NULL: there is none, or no spare memory or no place for it. */
HOMA_HOT struct homa_peer *homa_peer_get(struct homa_ctx *ctx,
					 struct homa_link *link,
					 const struct homa_addr *addr,
					 enum homa_peer_make make);
/* Releases a reference. */
void homa_peer_put(struct homa_ctx *ctx, struct homa_peer *peer);
/* Most message bytes in a packet to @addr on a path whose IP MTU is @mtu bytes. */
u16 homa_seg_size(const struct homa_addr *addr, u32 mtu);
/* Computes the size of @peer's packets from the MTU of @link, over which it is reached. */
void homa_peer_follow_mtu(struct homa_peer *peer, const struct homa_link *link);
/* Does the same if that MTU has changed, or if nobody has said for long that the path is
 * narrower. */
void homa_peer_try_mtu(struct homa_ctx *ctx, struct homa_peer *peer,
		       const struct homa_link *link);
/* Notes that packets to @peer may have @seg message bytes, as somebody says of the path. */
void homa_peer_path_seg(struct homa_ctx *ctx, struct homa_peer *peer, u16 seg);
/* Most peers of a stripe that are looked at under its lock, because a stranger may have filled
 * the table. */
#define HOMA_EVICT_LOOKS 32u
/* Forgets @peer if nobody uses it and it was not looked for in the last @idle_ms; stripe locked. */
bool homa_peer_forget(struct homa_ctx *ctx, struct homa_peer_stripe *stripe,
		      struct homa_peer *peer, u32 idle_ms);
/* Retires at most @budget peers that were idle for long. */
void homa_peer_collect(struct homa_ctx *ctx, u32 budget);
/* Level, 0 to 7, on which the unscheduled bytes of a message of @bytes go to @peer. */
u8 homa_peer_unsched_prio(struct homa_peer *peer, u32 bytes);
void homa_peer_set_cutoffs(struct homa_peer *peer, const u32 *cutoffs,
			   u16 version);
/* Notes that the server of a finished RPC is owed an ack; sends an ACK packet with those
 * noted if there is no more room. */
HOMA_HOT void homa_peer_add_ack(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* Sends the acks that some peers are owed in packets of their own, because there may be no
 * request that could carry them; the most recent peers first. */
void homa_peer_flush_acks(struct homa_ctx *ctx, u16 sport);
/* Takes up to @max acks, newest first, and returns their number. */
u32 homa_peer_take_acks(struct homa_peer *peer, struct homa_ack *acks, u32 max);

#endif
