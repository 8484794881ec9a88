/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * RPCs: one at each end, in a table that is divided into shards. What follows is by
 * file: how an RPC is found and made, how it ends, how its message becomes the application's.
 */
#ifndef HOMA_RPC_H
#define HOMA_RPC_H

#include "homa_core.h"
#include "homa_grant.h"
#include "homa_hash.h"
#include "homa_link.h"
#include "homa_out.h"
#include "homa_ranges.h"
#include "homa_sock.h"
#include "homa_wheel.h"

enum homa_rpc_state {
	HOMA_RPC_NEW =
		0, /* it is being made, or was refused before a message began */
	HOMA_RPC_OUTGOING =
		1, /* a client's request or a server's response goes out */
	HOMA_RPC_INCOMING, /* a message comes in */
	HOMA_RPC_READY, /* the message is complete, and the application has not taken it */
	HOMA_RPC_IN_SERVICE, /* at a server: the application works on it */
	HOMA_RPC_FAILED, /* at a client: the application has not taken the error */
	HOMA_RPC_DEAD, /* it is unhashed, and only references keep it */
};

/* homa_rpc.slept */
enum {
	HOMA_SLEPT =
		1, /* this host was asleep, so packets that it receives may be old */
	/* the whole request had been sent when this host awoke */
	HOMA_SLEPT_WHOLE = 2,
};

enum homa_rpc_flags {
	HOMA_RPC_CLIENT = 1,  /* we began it */
	HOMA_RPC_FOR_ONE = 2, /* its events go to one caller of the host only */
	HOMA_RPC_TELL_GONE = 4, /* it is dead, and the host has to be told */
	HOMA_RPC_NO_BUFFER = 8, /* its message waits in sock->starving */
	HOMA_RPC_BUSY =
		16, /* the peer answered BUSY, and is asked again at @probe_at */
	HOMA_RPC_HOLDING = 32,	/* it is incomplete, and in sock->holders */
	HOMA_RPC_EXECUTED = 64, /* the application has taken its request */
	HOMA_RPC_OWN_PAGES =
		128, /* the pages are still its own, not the application's */
};

/*
 * struct homa_rpc - one RPC at one end
 *
 * Guarded by: the shard lock, unless a field says otherwise.
 */
struct homa_rpc {
	/* Links the RPC into its bucket of the shard's table. */
	struct homa_list hash;
	/* Id of the RPC at this end: even at the client, greater by one at the server;
	 * constant. */
	u64 id;
	/* Number that distinguishes the RPC from earlier ones with the same @id;
	 * constant. */
	u32 generation;
	/* References: one while the RPC is hashed, one for each packet in flight at the
	 * host, event and caller that uses it. */
	struct homa_ref refs;
	/* Socket that the RPC belongs to; constant. */
	struct homa_sock *sock;
	/* Remote host of the RPC; constant. */
	struct homa_peer *peer;
	/* Link over which @peer is reached; constant. */
	struct homa_link *link;
	/* Part of the RPC table that the RPC is in; constant. */
	struct homa_shard *shard;
	/* Links the RPC into homa_sock.rpcs; sock lock. */
	struct homa_list sock_rpcs;
	/* Timer that fires when the RPC has to be looked at next; queued while it waits for
	 * its peer. */
	struct homa_wheel_node timer;
	/* Next RPC in the list of events of the context that queued this one; only that
	 * context uses it. */
	struct homa_rpc *event_next;
	union {
		/* At a server: block that remembers that the request has begun, see
		 * homa_once.c. */
		struct homa_once *once;
		struct {
			/* At a client: name of the run (life) of the server that the RPC
			 * belongs to, see homa_life.h; 0: it is not known yet. Read without
			 * a lock. */
			u32 life;
			/* At a client: time after @birth at which its application stops
			 * waiting, in units of 2^HOMA_LEFT_SHIFT ns; 0: it set no limit.
			 * Constant. */
			u32 within;
		};
	};
	union {
		/* At a client: value that the application gave with the request;
		 * constant. */
		u64 cookie;
		/* At a server: time at which the client stops waiting, as the request says,
		 * in ns; 0: the request sets no limit. */
		u64 deadline;
	};
	/* Time at which it was made, in ns; constant. */
	u64 birth;
	/* Time at which the last packet of the peer about this RPC arrived, in ns. */
	u64 heard_at;
	/* Time at which the last new bytes of its message arrived, in ns; moved on while it
	 * is this end that holds the sender back. Valid while INCOMING. */
	u64 fresh_at;
	/* Time at which the last RESEND or NEED_ACK was sent, in ns; with HOMA_RPC_BUSY:
	 * time at which the next is due. */
	u64 probe_at;
	/* Time since which it holds its pages, in ns; sock lock. */
	u64 held_at;
	/* Ports of this end and of the other, in host order; constant. */
	u16 sport, dport;
	/* At a server: most bytes of the response that the client wants sent unasked
	 * (incast control), in KiB; 0: the client sets no limit. */
	u16 resp_limit_kib;
	/* State of the RPC, an enum homa_rpc_state. */
	u8 state;
	/* Bits of enum homa_rpc_flags; CLIENT and PRIVATE are constant. */
	u8 flags;
	/* Number of RESENDs or NEED_ACKs without an answer since the peer was heard, at
	 * most 255. */
	u8 probes;
	/* 1 while the RPC is in a context's list of events, else 0. */
	u8 event_queued;
	/* Reason of its failure, a positive errno; valid while FAILED. */
	s16 error;
	/* Number of pages that its whole message takes; 0: its socket had no region when it
	 * began. */
	u8 num_pages;
	/* Number of pages that were promised to its message and not yet taken; sock
	 * lock. */
	u8 owed;
	/* Value of homa_rpc_hash() for @id; constant. */
	u32 hash_value;
	/* Number of message bytes that the host has copied to their place; in.received
	 * counts those that arrived. */
	u32 copied;
	/* Bytes [@placed_from, @placed_to) of the message are known to have pages, which
	 * saves a search; it is all of them if there is no region. */
	u32 placed_from, placed_to;
	/* Offset behind the last retransmitted bytes that arrived because they were asked
	 * for; 0: none did. Bytes that are missing before it were retransmitted earlier, so
	 * they are lost again. */
	u32 repaired_to;
	/* @overtaken_to: offset before which missing bytes were overtaken by later ones at
	 * @overtaken_at or earlier; 0: none were. @asked_to: offset before which missing bytes
	 * have been asked for; HOMA_NO_EARLY: they are asked for only after silence. */
	u32 overtaken_to, asked_to;
	/* Number of pages that its message has or was promised while it is incomplete; sock
	 * lock. */
	u8 held;
	/* Number of packets with retransmitted bytes that arrived since the last question,
	 * at most 255. */
	u8 repaired;
	/* Time of the last overtaking, see @overtaken_to: the lowest 8 bits, in units of
	 * 2^HOMA_TICK_SHIFT ns or more. */
	u8 overtaken_at;
	/* At a client: bits HOMA_SLEPT and HOMA_SLEPT_WHOLE, see homa_rpc_note_sleep(). */
	u8 slept;
	/* Set of the message bytes that have arrived. */
	struct homa_rangeset ranges;
	/* Links the RPC into homa_sock.holders; sock lock. */
	struct homa_list holding;
	/* Offset in the region of each 64 KiB part of its message, in bytes;
	 * HOMA_NO_PAGE: the part has none yet. A part that has arrived keeps its page
	 * while it is copied. */
	u32 pages[HOMA_MAX_BPAGES];
	/* State of its incoming message; grant lock. */
	struct homa_grantee in;
	/* State of its outgoing message; link lock. */
	struct homa_out out;
};

/* Documented in docs/architecture.md; a change here should be a decision. */
HOMA_STATIC_ASSERT(sizeof(struct homa_rpc) <= 640, "RPC state grew");

/*
 * struct homa_shard - a part of the RPC table
 *
 * Guarded by: @lock.
 */
struct homa_shard {
	/* The shard lock, which is that of its RPCs, too. */
	struct homa_lock lock;
	/* Index of the shard; constant. */
	u32 index;
	/* homa_rpc.generation of the last RPC that was made in the shard. */
	u32 next_generation;
	/* Hash table of the shard's RPCs by homa_rpc.hash_value. */
	struct homa_table rpcs;
	/* Timers of the shard's RPCs. */
	struct homa_wheel wheel;
};

static inline bool homa_rpc_is_client(const struct homa_rpc *rpc)
{
	return rpc->flags & HOMA_RPC_CLIENT;
}

/* ---- which packets are its own ---- */

/*
 * Is a packet about @rpc, whatever its ports? A client's RPC is known by its id
 * alone, which is ours: a server with several addresses may answer from another one
 * than it was asked at. A server's belongs to the address that the request came from.
 */
static inline bool homa_rx_about(const struct homa_rpc *rpc,
				 const struct homa_hdr *hdr,
				 const struct homa_addr *src)
{
	u64 id = hdr->sender_id ^ 1;

	return rpc->id == id &&
	       (!(id & 1) || homa_addr_equal(&rpc->peer->addr, src));
}

/* Does it have the ports of that RPC? Else it is somebody's guess. */
static inline bool homa_rx_fits(const struct homa_rpc *rpc,
				const struct homa_hdr *hdr)
{
	return likely(hdr->sport == rpc->dport && hdr->dport == rpc->sport);
}

/* ---- homa_rpc.c: how an RPC is found and made ---- */

/*
 * Where the RPC with local id @id is kept: its bucket follows from the low bits of
 * this, its shard from the high ones. Ids of our clients are ours. Those of our
 * servers are chosen by @peer, so each peer has a key of its own: neither
 * many ids of one peer nor one id from many addresses meet in one bucket.
 */
static inline u32 homa_client_hash(const struct homa_engine *engine, u64 id)
{
	return homa_hash_id(id, engine->seeds.keys[2]);
}

static inline u32 homa_rpc_hash(struct homa_ctx *ctx, u64 id,
				const struct homa_addr *peer)
{
	return id & 1 ? homa_hash_id(id, homa_addr_key(ctx, peer)) :
			homa_client_hash(ctx->engine, id);
}

/* Lowest bit of the hash that chooses the shard; the bits below it choose the bucket. */
#define HOMA_SHARD_SHIFT 20u

/* RPCs to one peer that follow each other differ in the lowest bits of their hash alone. They
 * are under way at the same time, so each has a shard of its own. */
static inline struct homa_shard *homa_shard_at(struct homa_engine *engine,
					       u32 hash)
{
	return &engine->shards[(hash >> HOMA_SHARD_SHIFT ^ hash) &
			       (engine->limits.shards - 1)];
}

/* Find an RPC by id and peer, or by handle; NULL: there is none. Shard locked. @peer NULL:
 * any peer, which suffices for clients, whose ids are unique at this end. */
HOMA_HOT struct homa_rpc *homa_rpc_find(struct homa_shard *shard, u32 hash,
					u64 id, const struct homa_addr *peer);
struct homa_rpc *homa_rpc_find_handle(struct homa_shard *shard,
				      struct homa_handle handle);
/* Makes an RPC from the context's spare memory and hashes it; NULL: no spare memory, or the
 * socket closes. An RPC that is made takes over the caller's references to @sock and @peer. Shard
 * locked. */
HOMA_HOT struct homa_rpc *
homa_rpc_create(struct homa_ctx *ctx, struct homa_shard *shard,
		struct homa_sock *sock, struct homa_peer *peer,
		struct homa_link *link, u64 id, u32 hash, u16 dport, u8 flags);
/* Sets the RPC's timer to @deadline, in ns, instead of any earlier setting; shard
 * locked. */
HOMA_HOT void homa_rpc_arm(struct homa_rpc *rpc, u64 deadline);
/* Queues the RPC in the context's list of events; shard locked. */
void homa_event_add(struct homa_ctx *ctx, struct homa_rpc *rpc);

#define HOMA_SLEEP_MIN_NS 5000000ull

/*
 * A deadline that passed long ago means that this host was asleep: a machine that was
 * stopped, or moved. What waited at its device meanwhile looks as if the peer had said it
 * just now, so it must not count as a sign that a server has not forgotten yet. A quarter
 * of the time that packets may be late leaves the rest to the network; but timers are late
 * by some milliseconds without any sleep.
 */
static inline void homa_rpc_note_sleep(const struct homa_ctx *ctx,
				       struct homa_rpc *rpc)
{
	u32 ms = ctx->engine->params.tombstone_ms;

	if (unlikely(homa_since(ctx->now, rpc->timer.deadline) >
		     homa_max_u64(ms * 250000ull, HOMA_SLEEP_MIN_NS)) &&
	    ms)
		rpc->slept |= HOMA_READ_ONCE(rpc->out.next) == rpc->out.length ?
				      HOMA_SLEPT | HOMA_SLEPT_WHOLE :
				      HOMA_SLEPT;
}

/* ---- homa_rpc_end.c: how it ends ---- */

/* Removes the RPC from every structure, so that it is dead; shard locked. */
void homa_rpc_kill(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* Does the same where RPCs usually end. */
HOMA_HOT void homa_rpc_over(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* Ends a client's RPC with the positive errno @error, which its application gets; shard
 * locked. */
void homa_rpc_fail(struct homa_ctx *ctx, struct homa_rpc *rpc, int error);
/* Gives the RPC's records of gaps back to the context as spare memory; shard locked. */
void homa_rpc_gaps_back(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* Releases a reference; the caller holds neither sock nor peer table lock. */
HOMA_HOT void homa_rpc_put(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* Removes the RPC from the send and the grant scheduler and from the queue for pages; shard
 * locked. */
HOMA_HOT void homa_rpc_unschedule(struct homa_ctx *ctx, struct homa_rpc *rpc);

/* ---- homa_deliver.c: its message becomes the application's; shard locked ---- */

/* Hands a READY message or a FAILED error to the host in @info. */
void homa_rpc_deliver(struct homa_ctx *ctx, struct homa_rpc *rpc,
		      struct homa_msg_info *info);
/* Notes that the application has taken a request. */
HOMA_HOT void homa_rpc_serve(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* Ends a client's RPC whose response the application has taken. */
void homa_rpc_end(struct homa_ctx *ctx, struct homa_rpc *rpc);

/* ---- homa_abort.c ---- */

/* Tells the server that a client's RPC ends before its response has come; shard locked. */
void homa_rpc_tell_server(struct homa_ctx *ctx, struct homa_rpc *rpc);

#endif
