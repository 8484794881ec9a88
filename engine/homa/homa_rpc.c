// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * RPCs: how they are found and made. An RPC is born hashed under its shard's lock
 * and has a deadline in its shard's wheel while it waits for its peer. How it ends
 * is in homa_rpc_end.c.
 */
#include "homa_from.h"
#include "homa_owner.h"

HOMA_HOT struct homa_rpc *homa_rpc_find(struct homa_shard *shard, u32 hash,
					u64 id, const struct homa_addr *peer)
{
	struct homa_list *head = homa_table_find(&shard->rpcs, hash);
	struct homa_list *pos;

	homa_list_for_each(pos, head) {
		struct homa_rpc *rpc =
			homa_list_entry(pos, struct homa_rpc, hash);

		if (rpc->id == id &&
		    (!peer || homa_addr_equal(&rpc->peer->addr, peer)))
			return rpc;
	}
	return NULL;
}

struct homa_rpc *homa_rpc_find_handle(struct homa_shard *shard,
				      struct homa_handle handle)
{
	struct homa_list *head = homa_table_find(&shard->rpcs, handle.hash);
	struct homa_list *pos;

	homa_list_for_each(pos, head) {
		struct homa_rpc *rpc =
			homa_list_entry(pos, struct homa_rpc, hash);

		if (rpc->id == handle.id && rpc->generation == handle.generation)
			return rpc;
	}
	return NULL;
}

static u32 homa_rpc_hash_of(const struct homa_list *node)
{
	return homa_list_entry(node, struct homa_rpc, hash)->hash_value;
}

/* The nodes belong to nothing, see homa_ctx_give_rpc(). */
static HOMA_HOT void homa_rpc_reset(struct homa_rpc *rpc)
{
	homa_ranges_init(&rpc->ranges);
	/* The bytes of out.hdr are valid only if out.active says so. */
	memset((u8 *)&rpc->in + offsetof(struct homa_grantee, length), 0,
	       sizeof(rpc->in) - offsetof(struct homa_grantee, length));
	/* The kernel's compiler makes a loop of a longer one. */
	memset((u8 *)&rpc->out + offsetof(struct homa_out, sent_at), 0,
	       offsetof(struct homa_out, available) -
		       offsetof(struct homa_out, sent_at));
	memset((u8 *)&rpc->out + offsetof(struct homa_out, available), 0,
	       offsetof(struct homa_out, hdr) -
		       offsetof(struct homa_out, available));
	rpc->in.birth = 0;
	rpc->state = HOMA_RPC_NEW;
	rpc->event_next = NULL;
	rpc->once = NULL;
	rpc->cookie = 0;
	rpc->probe_at = 0;
	rpc->probes = 0;
	rpc->event_queued = 0;
	rpc->error = 0;
	rpc->copied = 0;
	rpc->repaired_to = 0;
	rpc->repaired = 0;
	rpc->slept = 0;
	rpc->overtaken_to = 0;
	rpc->asked_to = 0;
	rpc->num_pages = 0;
	rpc->owed = 0;
	rpc->held = 0;
	rpc->resp_limit_kib = 0;
}

HOMA_HOT struct homa_rpc *
homa_rpc_create(struct homa_ctx *ctx, struct homa_shard *shard,
		struct homa_sock *sock, struct homa_peer *peer,
		struct homa_link *link, u64 id, u32 hash, u16 dport, u8 flags)
{
	struct homa_engine *engine = ctx->engine;
	struct homa_rpc *rpc = ctx->spare_rpc;
	bool closing;

	if (!rpc || HOMA_READ_ONCE(engine->num_rpcs) >= engine->params.max_rpcs)
		return NULL;
	/* All fields are set before anybody sees the RPC, because a thread that closes the
	 * socket finds it there. */
	homa_rpc_reset(rpc);
	rpc->id = id;
	rpc->generation = shard->next_generation + 1;
	rpc->hash_value = hash;
	homa_ref_init(&rpc->refs, 1);
	rpc->sock = sock;
	rpc->peer = peer;
	rpc->link = link;
	rpc->shard = shard;
	rpc->birth = ctx->now;
	rpc->heard_at = ctx->now;
	rpc->sport = homa_sock_port(sock);
	rpc->dport = dport;
	rpc->flags = flags;
	if ((id & 1) && engine->limits.rpc_from)
		*homa_rpc_from(rpc) = ctx->heard_at;
	homa_lock(&sock->lock);
	closing = sock->closing;
	if (!closing)
		homa_list_add_tail(&sock->rpcs, &rpc->sock_rpcs);
	homa_unlock(&sock->lock);
	if (closing)
		return NULL;
	shard->next_generation++;
	ctx->spare_rpc = (struct homa_rpc *)rpc->hash.next;
	ctx->spare_rpcs--;
	homa_table_add(&shard->rpcs, hash, &rpc->hash);
	if (homa_table_full(&shard->rpcs))
		homa_ctx_grow(ctx, &shard->rpcs, homa_rpc_hash_of);
	homa_counter_add(&engine->num_rpcs, 1);
	homa_owner_begin(rpc);
	return rpc;
}

HOMA_HOT void homa_rpc_arm(struct homa_rpc *rpc, u64 deadline)
{
	/* The caller has just heard of the RPC. */
	homa_wheel_add(&rpc->shard->wheel, &rpc->timer, deadline, rpc->heard_at);
}

/* ---- events ---- */

void homa_event_add(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	if (rpc->event_queued)
		return;
	rpc->event_queued = 1;
	rpc->event_next = NULL;
	homa_ref_get(&rpc->refs);
	if (ctx->event_tail)
		ctx->event_tail->event_next = rpc;
	else
		ctx->event_head = rpc;
	ctx->event_tail = rpc;
}

/* ---- spare ones ---- */

void *homa_ctx_next_rpc(struct homa_ctx *ctx)
{
	return ctx->spare_rpc ? homa_rpc_priv(ctx->spare_rpc) : NULL;
}

/* ---- small things hosts ask ---- */

struct homa_handle homa_rpc_handle(const struct homa_rpc *rpc)
{
	return (struct homa_handle){ .id = rpc->id,
				     .generation = rpc->generation,
				     .hash = rpc->hash_value };
}

struct homa_link *homa_rpc_link(const struct homa_rpc *rpc)
{
	return rpc->link;
}

void *homa_rpc_priv(struct homa_rpc *rpc)
{
	return rpc + 1;
}

struct homa_sock *homa_rpc_sock(struct homa_rpc *rpc)
{
	return rpc->sock;
}

void *homa_sock_priv(struct homa_sock *sock)
{
	return sock + 1;
}
