/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * RPCs: one at each end, in a table that is divided into shards. What follows is by
 * file: how an RPC is found and made, how it ends, how its message is given away.
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
		0, /* it is being made, or was refused before it was anything */
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
	HOMA_SLEPT = 1, /* this host was asleep, so what it hears may be old */
	HOMA_SLEPT_WHOLE = 2, /* when it awoke, the whole request had been sent */
};

enum homa_rpc_flags {
	HOMA_RPC_CLIENT = 1,	/* we began it */
	HOMA_RPC_PRIVATE = 2,	/* the host wants its events to itself */
	HOMA_RPC_TELL_GONE = 4, /* it is dead, and the host should know */
	HOMA_RPC_NO_BUFFER = 8, /* its message waits in sock->starving */
	HOMA_RPC_BUSY = 16, /* the peer says so; it is asked again at probe_at */
	HOMA_RPC_HOLDING = 32,	  /* it is incomplete, and in sock->holders */
	HOMA_RPC_EXECUTED = 64,	  /* its request went to the application */
	HOMA_RPC_OWN_PAGES = 128, /* its pages were not yet given away */
};

/*
 * struct homa_rpc - one RPC at one end
 *
 * Under the shard lock, unless a field says otherwise.
 */
struct homa_rpc {
	/* Links it into its bucket of the shard's table. */
	struct homa_list hash;
	/* Its id at this end: even at the client, one more at the server; constant. */
	u64 id;
	/* Tells it from earlier RPCs with this id; constant. */
	u32 generation;
	/* One for being hashed, one for each pinned packet, event and caller. */
	struct homa_ref refs;
	/* Whose it is, with whom, over what, and where it is kept; constant. */
	struct homa_sock *sock;
	struct homa_peer *peer;
	struct homa_link *link;
	struct homa_shard *shard;
	/* Links it into homa_sock.rpcs; sock lock. */
	struct homa_list sock_rpcs;
	/* Its deadline, while it waits for its peer. */
	struct homa_wheel_node timer;
	/* The next RPC of the context's list of events; the context's. */
	struct homa_rpc *event_next;
	union {
		/* At a server: where it is remembered that this request began; homa_once.c. */
		struct homa_once *once;
		struct {
			/* At a client: it is with this life of its server, see homa_life.h; 0:
			 * not known. Read anywhere. */
			u32 life;
			/* At a client: its application waits for so long from @birth on, in
			 * units of 2^HOMA_LEFT_SHIFT ns; 0: it does not say. Constant. */
			u32 within;
		};
	};
	union {
		/* At a client: what the application gave with the request; constant. */
		u64 cookie;
		/* At a server: its client stops waiting at this time, ns, as far as was said;
		 * 0: nothing was. */
		u64 deadline;
	};
	/* It was made at this time, ns; constant. */
	u64 birth;
	/* The peer gave the last sign of life about it at this time, ns. */
	u64 heard_at;
	/* The last new bytes of its message came at this time, or the silence since then
	 * was our own doing, ns; while INCOMING. */
	u64 fresh_at;
	/* The last RESEND or NEED_ACK went out at this time, ns. */
	u64 probe_at;
	/* It holds its pages since this time, ns; sock lock. */
	u64 held_at;
	/* Ports of this end and of the other; constant. */
	u16 sport, dport;
	/* At a server: the client's wish for the response (incast control), KiB; 0: none. */
	u16 resp_limit_kib;
	/* An enum homa_rpc_state. */
	u8 state;
	/* From enum homa_rpc_flags; CLIENT and PRIVATE are constant. */
	u8 flags;
	/* So many RESENDs or NEED_ACKs were in vain, 255: or more. */
	u8 probes;
	/* It is in a context's list of events. */
	u8 event_queued;
	/* Why it failed: a positive errno. */
	s16 error;
	/* Its message takes so many pages in all; 0: its socket had no region. */
	u8 num_pages;
	/* It was promised so many more pages; sock lock. */
	u8 owed;
	/* homa_rpc_hash() of @id; constant. */
	u32 hash_value;
	/* The host has copied so many bytes; in.received counts those that arrived. */
	u32 copied;
	/* The bytes [@placed_from, @placed_to) are known to have pages, for a short look;
	 * all, if there is no region. */
	u32 placed_from, placed_to;
	/* The last bytes that came again, since they were asked for, end here; 0: none did.
	 * What is missing before it was sent again earlier, and is lost. */
	u32 repaired_to;
	/* What is missing before @overtaken_to was overtaken at @overtaken_at or earlier;
	 * 0: nothing was. What is missing before @asked_to was asked for; HOMA_NO_EARLY:
	 * only silence counts. */
	u32 overtaken_to, asked_to;
	/* It has or was promised so many pages while it is incomplete; sock lock. */
	u8 held;
	/* So many packets of bytes that were asked for came since, 255: or more. */
	u8 repaired;
	/* See @overtaken_to; in units of 2^HOMA_TICK_SHIFT ns, the lowest 8 bits. */
	u8 overtaken_at;
	/* At a client: HOMA_SLEPT*, see homa_rpc_note_sleep(). */
	u8 slept;
	/* The bytes of its message that are here. */
	struct homa_rangeset ranges;
	/* Links it into homa_sock.holders; sock lock. */
	struct homa_list holding;
	/* The page of each 64 KiB part of its message; HOMA_NO_PAGE: none yet. A part that
	 * has arrived keeps its page while it is copied. */
	u32 pages[HOMA_MAX_BPAGES];
	/* Its message that comes in; grant lock. */
	struct homa_grantee in;
	/* Its message that goes out; link lock. */
	struct homa_out out;
};

/* Documented in docs/architecture.md; a change here should be a decision. */
HOMA_STATIC_ASSERT(sizeof(struct homa_rpc) <= 640, "RPC state grew");

/*
 * struct homa_shard - a part of the RPC table
 */
struct homa_shard {
	struct homa_lock lock;
	/* Its index; constant. */
	u32 index;
	/* The last RPC that was made here has this generation. */
	u32 next_generation;
	struct homa_table rpcs;
	/* The deadlines of its RPCs. */
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

#define HOMA_SHARD_SHIFT 20u /* bits of the hash below are for buckets */

static inline struct homa_shard *homa_shard_at(struct homa_engine *engine,
					       u32 hash)
{
	return &engine->shards[hash >> HOMA_SHARD_SHIFT & (engine->limits.shards - 1)];
}

/* Both want the shard locked. Peer NULL: any (client ids are ours). */
struct homa_rpc *homa_rpc_find(struct homa_shard *shard, u32 hash, u64 id,
			       const struct homa_addr *peer);
struct homa_rpc *homa_rpc_find_handle(struct homa_shard *shard,
				      struct homa_handle handle);
/* An RPC of a spare one, hashed; NULL: no memory, or the socket closes. Shard locked. */
struct homa_rpc *homa_rpc_create(struct homa_ctx *ctx, struct homa_shard *shard,
				 struct homa_sock *sock, struct homa_peer *peer,
				 struct homa_link *link, u64 id, u32 hash,
				 u16 dport, u8 flags);
/* The RPC's deadline is @deadline, ns, and no other; shard locked. */
void homa_rpc_arm(struct homa_rpc *rpc, u64 deadline);
/* The application has to learn of the RPC; shard locked. */
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

/* The RPC leaves every structure; shard locked. */
void homa_rpc_kill(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* A client's RPC ends with an error that its application will see; shard locked. */
void homa_rpc_fail(struct homa_ctx *ctx, struct homa_rpc *rpc, int error);
/* Its records of gaps become spare; shard locked. */
void homa_rpc_gaps_back(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* Lets a reference go; neither sock nor peer table locked. */
void homa_rpc_put(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* It leaves both schedulers, and waits for nothing; shard locked. */
void homa_rpc_unschedule(struct homa_ctx *ctx, struct homa_rpc *rpc);

/* ---- homa_give.c: its message becomes the application's; shard locked ---- */

/* What is ready or failed is given away, as @info says. */
void homa_rpc_give(struct homa_ctx *ctx, struct homa_rpc *rpc,
		   struct homa_msg_info *info);
/* A request's service begins. */
void homa_rpc_serve(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* A client's RPC is over. */
void homa_rpc_end(struct homa_ctx *ctx, struct homa_rpc *rpc);

/* ---- homa_abort.c ---- */

/* A client's RPC is about to end before its response has come; shard locked. */
void homa_rpc_tell_server(struct homa_ctx *ctx, struct homa_rpc *rpc);

#endif
