/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the engine's files ask of each other: one section per file, with the lock
 * that each function wants. The objects are in homa_objects.h.
 */
#ifndef HOMA_IMPL_H
#define HOMA_IMPL_H

#include "homa_objects.h"

/* ---- homa_engine.c ---- */

/* A table that is full gets more buckets; its lock held. */
HOMA_RARE void homa_ctx_grow(struct homa_ctx *ctx, struct homa_table *table,
			     u32 (*hash_of)(const struct homa_list *node));

/* ---- homa_peer.c: keyed hash of an address ---- */

u64 homa_addr_key_new(struct homa_ctx *ctx, const struct homa_addr *addr);

/* Packets in a row are often from few addresses. */
static inline struct homa_addr_key *homa_addr_key_slot(struct homa_ctx *ctx,
						       const struct homa_addr *addr)
{
	return &ctx->keys[(addr->ip[15] ^ addr->encap) % HOMA_CTX_KEYS];
}

static inline u64 homa_addr_key(struct homa_ctx *ctx,
				const struct homa_addr *addr)
{
	const struct homa_addr_key *seen = homa_addr_key_slot(ctx, addr);

	if (likely(homa_addr_equal(&seen->addr, addr)))
		return seen->key;
	return homa_addr_key_new(ctx, addr);
}

/* ---- homa_rpc.c: life and death ---- */

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

#define HOMA_SHARD_SHIFT 20u	/* bits of the hash below are for buckets */

static inline struct homa_shard *homa_shard_at(struct homa_engine *engine,
					       u32 hash)
{
	return &engine->shards[hash >> HOMA_SHARD_SHIFT &
			       (engine->limits.shards - 1)];
}

/* Both want the shard locked. Peer NULL: any (client ids are ours). */
struct homa_rpc *homa_rpc_find(struct homa_shard *shard, u32 hash, u64 id,
			       const struct homa_addr *peer);
struct homa_rpc *homa_rpc_find_handle(struct homa_shard *shard,
				      struct homa_handle handle);
struct homa_rpc *homa_rpc_create(struct homa_ctx *ctx, struct homa_shard *shard,
				 struct homa_sock *sock, struct homa_peer *peer,
				 struct homa_link *link, u64 id, u32 hash,
				 u16 dport, u8 flags);
/* End of an RPC: out of every structure; shard locked. */
void homa_rpc_kill(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* A client RPC ends with an error its application will see; shard locked. */
void homa_rpc_fail(struct homa_ctx *ctx, struct homa_rpc *rpc, int error);
/* Records of gaps go back to the spares. */
void homa_rpc_gaps_back(struct homa_ctx *ctx, struct homa_rpc *rpc);
void homa_rpc_put(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* homa_call.c: what is ready or failed is given away; shard locked. */
void homa_rpc_give(struct homa_ctx *ctx, struct homa_rpc *rpc,
		   struct homa_msg_info *info);
/* The two ends of that: a request begins its service, a client's RPC is over. */
void homa_rpc_serve(struct homa_ctx *ctx, struct homa_rpc *rpc);
void homa_rpc_end(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* A client's RPC is about to end before its response has come; shard locked. */
void homa_rpc_tell_server(struct homa_ctx *ctx, struct homa_rpc *rpc);
void homa_event_add(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* Bytes up to @end came again that had been asked for; shard locked. */
void homa_rpc_repaired(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 end);
/* Takes the RPC out of both schedulers. */
void homa_rpc_unschedule(struct homa_ctx *ctx, struct homa_rpc *rpc);
void homa_rpc_arm(struct homa_rpc *rpc, u64 deadline);

/* ---- homa_once.c: requests that ran already ---- */

size_t homa_once_bytes(const struct homa_limits *limits);
void homa_once_init(struct homa_engine *engine, void *mem);
/* @peer's request @id begins, with its only packet if it is @whole. 0, and *begun, which
 * may be NULL, is for homa_once_end(); else why it must not: it ran, or no memory. */
u16 homa_once_begin(struct homa_ctx *ctx, const struct homa_link *link,
		    const struct homa_peer *peer, u64 id, bool whole,
		    struct homa_once **begun);
/* It is over. Unless @executed it may begin again. */
void homa_once_end(struct homa_ctx *ctx, const struct homa_link *link,
		   const struct homa_peer *peer, u64 id, struct homa_once *once,
		   bool executed);
/* What has expired becomes spare: at most @budget blocks of each stripe. */
void homa_once_collect(struct homa_ctx *ctx, u32 budget);
/* At most @budget blocks become spare, expired or not; what is left of @budget. */
u32 homa_once_drain(struct homa_ctx *ctx, u32 budget);

/* ---- homa_ctrl.c: control packets on their way out ---- */

/* Room for a packet to @rpc's peer, with ids filled in. */
struct homa_ctrl *homa_ctrl_rpc(struct homa_ctx *ctx, struct homa_rpc *rpc,
				u8 type);
struct homa_ctrl *homa_ctrl_to(struct homa_ctx *ctx, struct homa_link *link,
			       const struct homa_addr *dst, u8 type);
void homa_ctrl_flush(struct homa_ctx *ctx);
u32 homa_ctrl_encode(const struct homa_ctrl *ctrl, void *hdr);
/* A pulled control packet that the host could not send waits once more. */
void homa_ctrl_again(struct homa_ctx *ctx, const struct homa_tx_desc *desc);

/* ---- homa_peer.c ---- */

/* Find or make; a reference is the caller's. NULL: no memory. */
struct homa_peer *homa_peer_get(struct homa_ctx *ctx, struct homa_link *link,
				const struct homa_addr *addr, bool create);
void homa_peer_put(struct homa_ctx *ctx, struct homa_peer *peer);
/* Message bytes in a packet to @addr on a path of IP MTU @mtu. */
u16 homa_seg_size(const struct homa_addr *addr, u32 mtu);
void homa_peer_collect(struct homa_ctx *ctx, u32 budget);
u8 homa_peer_unsched_prio(struct homa_peer *peer, u32 bytes);
void homa_peer_set_cutoffs(struct homa_peer *peer, const u32 *cutoffs,
			   u16 version);
/* Queue an ack for a finished RPC; sends an ACK packet when full. */
void homa_peer_add_ack(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* Send acks that are owed, because nothing may come for them to ride on: to some
 * peers, those first that were the last to be owed any. */
void homa_peer_flush_acks(struct homa_ctx *ctx, u16 sport);
/* Take up to @max acks, newest first; returns how many. */
u32 homa_peer_take_acks(struct homa_peer *peer, struct homa_ack *acks, u32 max);

/* ---- homa_sock.c ---- */

struct homa_sock *homa_sock_find(struct homa_engine *engine, u16 port);
void homa_sock_put(struct homa_sock *sock);
/** homa_sock_serves() - does it take requests of @peer? */
bool homa_sock_serves(const struct homa_sock *sock, const struct homa_addr *peer);

/* ---- homa_pool.c (sock lock held) ---- */

void homa_pool_init(struct homa_pool *pool, u32 pages);
/* Pages for a message of @length; 0 or -ENOBUFS with nothing taken. */
int homa_pool_alloc(struct homa_pool *pool, u64 now, u64 lease_ns, u32 cpu,
		    u32 length, u32 *pages, u32 *num_pages);
/* Have @pages free if that can be; how many are. */
u32 homa_pool_want(struct homa_pool *pool, u32 pages);
/* Returns pages; -EINVAL for an offset that is not out (nothing changed). */
int homa_pool_free(struct homa_pool *pool, const u32 *pages, u32 num);

/* ---- homa_link.c: the send scheduler ---- */

void homa_out_start(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 length,
		    u32 available, u32 unsched);
void homa_out_grant(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 limit,
		    u8 prio);
void homa_out_supply(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 available);
void homa_out_cancel(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* Put into or take out of the heap as the message's state demands; link locked. */
void homa_out_queue(struct homa_link *link, struct homa_rpc *rpc);

/* ---- homa_resend.c: what is sent again ---- */

/* Bytes [@start, @end), if they have been sent. */
void homa_out_resend(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 start,
		     u32 end, u8 prio);
/*
 * Has nothing of the message been sent, as far as it was tried? Not any more once it
 * was sent again, for the host may say only later that the first try failed.
 */
static inline bool homa_out_never_left(const struct homa_out *out)
{
	return HOMA_READ_ONCE(out->unsent) == HOMA_READ_ONCE(out->next) &&
	       !HOMA_READ_ONCE(out->resent);
}
/* The host could not send @desc; @later: it is not to be tried again at once. */
void homa_out_unsent(struct homa_ctx *ctx, struct homa_rpc *rpc,
		     const struct homa_tx_desc *desc, bool later);
/* The peer knows nothing of the message: from its beginning, with what may be sent
 * unasked; grants come anew. */
void homa_out_restart(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* Link locked: the next at most @room bytes of what there is to send again; forget it. */
void homa_rtx_take(struct homa_ctx *ctx, struct homa_out *out, u32 room,
		   struct homa_tx_desc *desc);
void homa_rtx_clear(struct homa_ctx *ctx, struct homa_out *out);

/* ---- homa_grant.c: the grant scheduler ---- */

void homa_grants_init(struct homa_grants *grants);
/*
 * A message of which homa_grantee.granted bytes may come (set before) is
 * known now; joins the scheduler if granted < length.
 */
void homa_grant_add(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* Leaves: complete, dead, or without buffers. Harmless if not in. */
void homa_grant_remove(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* @fresh more bytes arrived (shard locked); notes that grants may be due. */
void homa_grant_received(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 fresh);
/* Have the link's grants looked at at the next homa_rx_flush(). */
void homa_grant_due(struct homa_ctx *ctx, struct homa_link *link);
/* Issue what is due on this link into ctx->ctrl. Takes the grant lock. */
void homa_grant_run(struct homa_ctx *ctx, struct homa_link *link);

/* ---- homa_prio.c ---- */

void homa_prio_init(struct homa_engine *engine);
void homa_prio_saw(struct homa_engine *engine, u32 message_length);
void homa_prio_recompute(struct homa_ctx *ctx, struct homa_link *link);
/* Level our cutoffs give to unscheduled bytes of that size (or bytes left). */
u8 homa_prio_unsched(const struct homa_engine *engine, u32 bytes);

/* ---- homa_derive.c ---- */

void homa_link_derive(struct homa_link *link);
/* One sample of the time from a short request to its response. */
void homa_link_rtt_sample(struct homa_ctx *ctx, struct homa_link *link, u64 ns);

/* ---- homa_timer.c ---- */

/* Ask for what is missing of @rpc's granted bytes before @end; how many asked. Shard
 * locked. */
u32 homa_resend_missing(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 end, u8 prio);
/* Every 100 ms with traffic: collect idle peers, recompute cutoffs. */
void homa_maintain(struct homa_ctx *ctx, struct homa_link *link);

/* ---- homa_starve.c: messages and receive pages ---- */

/* Pages for a new message whose bytes [@start, @end) are here, or a place in the
 * socket's queue; homa_grantee.length is set, shard locked. False: it is too long for
 * the region. */
bool homa_rpc_find_pages(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 start,
			 u32 end);
/* Pages for bytes of it if homa_rpc_lacks() says that they may have none; shard
 * locked. False: it waits for some. */
bool homa_rpc_more_pages(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 start,
			 u32 end);

/* May bytes [@start, @end) of an incoming message want for a page? */
static inline bool homa_rpc_lacks(const struct homa_rpc *rpc, u32 start, u32 end)
{
	return start < rpc->placed_from || end > rpc->placed_to;
}

/* The sender of a message that waits for pages was heard, or more of the message came
 * where it has pages; shard locked. */
void homa_rpc_speaks(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* A message with HOMA_RPC_HOLDING is whole, or over for another reason; shard locked. */
void homa_rpc_complete(struct homa_rpc *rpc);
/* It neither waits for pages nor is promised any; sock lock held, not in the grant
 * scheduler. */
void homa_rpc_unqueue(struct homa_rpc *rpc);
/* Its pages go back to the pool; sock lock held. */
void homa_rpc_pages_back(struct homa_rpc *rpc);
/* May a message of so many bytes from @peer (NULL: from here) take pages before those
 * that wait? Sock lock held. */
bool homa_sock_may_take(const struct homa_sock *sock, const struct homa_peer *peer,
			u32 length);
/* When a request that waits for pages is given up unless its client is heard, ns. */
u64 homa_starving_until(const struct homa_rpc *rpc);
/* Pages came back: give them to starving messages; sock lock not held. */
void homa_sock_feed(struct homa_ctx *ctx, struct homa_sock *sock);
/* The same for homa_ctx.hungry, whose pages are short; no lock held. */
void homa_hungry_feed(struct homa_ctx *ctx);

#endif
