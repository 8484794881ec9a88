// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What applications do: send a request, take what arrived, reply, abort. Each
 * finds its RPC under the shard's lock, changes its state, and leaves the
 * moving of bytes to the schedulers.
 */
#include "homa_ack.h"
#include "homa_busy.h"
#include "homa_ctrl.h"
#include "homa_life.h"
#include "homa_owner.h"
#include "homa_payer.h"

/* Notes that the client has many RPCs open, if so, and so asks for short unscheduled
 * responses (SIGCOMM'18 section 3.6). RPCs of other owners do not count. */
static void homa_incast_mark(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	const struct homa_params *params = &ctx->engine->params;

	if (!params->incast_rpcs ||
	    HOMA_READ_ONCE(rpc->sock->owner->client_rpcs) <= params->incast_rpcs)
		return;
	rpc->out.incast = 1;
	rpc->out.resp_limit_kib = (u16)params->incast_unsched_kib;
	homa_count(ctx, HOMA_M_incast_marked, 1);
}

/* Writes for the server how long the application waits, rounded up. A time that the field
 * cannot hold counts as for ever. */
HOMA_RARE static void homa_within(const struct homa_ctx *ctx,
				  struct homa_rpc *rpc, u64 deadline)
{
	u64 units = (homa_since(deadline, ctx->now) >> HOMA_LEFT_SHIFT) + 1;

	rpc->within = units <= 0xffffffff ? (u32)units : 0;
}

HOMA_HOT int homa_rpc_send_now(struct homa_ctx *ctx, struct homa_sock *sock,
			       struct homa_link *link,
			       const struct homa_addr *dst,
			       const struct homa_send *send,
			       struct homa_handle *handle, struct homa_rpc **out,
			       struct homa_tx_desc *now, bool *sent)
{
	struct homa_engine *engine = ctx->engine;
	struct homa_shard *shard;
	struct homa_peer *peer;
	struct homa_rpc *rpc = NULL;
	u8 flags = HOMA_RPC_CLIENT;
	bool taken = false;
	u32 hash;
	u64 id;
	int err;

	*sent = false;
	if (!send->length || send->length > HOMA_MAX_WIRE_LENGTH || !send->port)
		return -HOMA_EINVAL;
	if (homa_owner_full(engine, sock))
		return -HOMA_ENOBUFS;
	peer = homa_peer_to(ctx, link, dst, sock->owner, &err);
	if (!peer)
		return err;
	if (send->flags & HOMA_SEND_PRIVATE)
		flags |= HOMA_RPC_FOR_ONE;
	id = send->id ? send->id : homa_counter_add(&peer->next_id, 2);
	hash = homa_client_hash(ctx->engine, id);
	shard = homa_shard_at(engine, hash);
	homa_lock(&shard->lock);
	/* No other RPC may have the id that the caller has chosen. */
	if (send->id)
		taken = (id & 1) || homa_rpc_find(shard, hash, id, NULL);
	/* The socket may have been closed to its end since the caller looked. */
	if (unlikely(!homa_ref_get_live(&sock->refs))) {
		homa_unlock(&shard->lock);
		homa_peer_put(ctx, peer);
		return -HOMA_ESHUTDOWN;
	}
	if (likely(!taken))
		rpc = homa_rpc_create(ctx, shard, sock, peer, link, id, hash,
				      send->port, flags);
	if (!rpc) {
		homa_unlock(&shard->lock);
		homa_sock_put(sock);
		homa_peer_put(ctx, peer);
		if (taken)
			return -HOMA_EINVAL;
		return HOMA_READ_ONCE(sock->closing) ? -HOMA_ESHUTDOWN :
						       -HOMA_ENOBUFS;
	}
	rpc->state = HOMA_RPC_OUTGOING;
	rpc->cookie = send->cookie;
	if (unlikely(send->deadline))
		homa_within(ctx, rpc, send->deadline);
	homa_incast_mark(ctx, rpc);
	homa_rpc_arm(rpc, ctx->now + HOMA_READ_ONCE(link->derived.resend_ns));
	if (handle)
		*handle = homa_rpc_handle(rpc);
	if (out)
		*out = rpc;
	homa_life_begin(rpc);
	*sent = homa_out_start_now(ctx, rpc, send->length, send->available,
				   HOMA_READ_ONCE(link->derived.rtt_bytes), now);
	homa_unlock(&shard->lock);
	homa_count(ctx, HOMA_M_requests_sent, 1);
	return 0;
}

int homa_rpc_send(struct homa_ctx *ctx, struct homa_sock *sock,
		  struct homa_link *link, const struct homa_send *send,
		  struct homa_handle *handle, struct homa_rpc **out)
{
	bool sent;
	int err = homa_rpc_send_now(ctx, sock, link, &send->dst, send, handle,
				    out, ctx->tx_now, &sent);

	if (sent)
		ctx->tx_now = NULL;
	return err;
}

/* Notes that the application has answered a request; shard locked. */
static HOMA_HOT void homa_rpc_answered(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	rpc->state = HOMA_RPC_OUTGOING;
	rpc->heard_at = ctx->now;
	rpc->probes = 0;
	rpc->probe_at = 0;
	homa_busy_over(rpc);
	homa_rpc_arm(rpc, ctx->now + homa_ack_wait(ctx, rpc));
}

/* Finds the taken request that is to be answered; shard locked. NULL: the RPC is gone, or
 * it was answered already and *@err is not 0. */
static inline struct homa_rpc *homa_rpc_to_answer(struct homa_shard *shard,
						  struct homa_handle handle,
						  int *err)
{
	struct homa_rpc *rpc = homa_rpc_find_handle(shard, handle);

	*err = rpc && rpc->state != HOMA_RPC_IN_SERVICE ? -HOMA_EINVAL : 0;
	return *err ? NULL : rpc;
}

/* Sends the answer to @rpc, which is in service; shard locked. Returns as homa_out_start_now()
 * does. */
static HOMA_HOT bool homa_rpc_answer(struct homa_ctx *ctx, struct homa_rpc *rpc,
				     u32 length, u32 available,
				     struct homa_tx_desc *now)
{
	u32 unsched = HOMA_READ_ONCE(rpc->link->derived.rtt_bytes);

	homa_rpc_answered(ctx, rpc);
	if (rpc->resp_limit_kib && rpc->resp_limit_kib * 1024u < unsched) {
		unsched = rpc->resp_limit_kib * 1024u;
		if (length > unsched)
			homa_count(ctx, HOMA_M_incast_limited, 1);
	}
	homa_count(ctx, HOMA_M_replies_sent, 1);
	return homa_out_start_now(ctx, rpc, length, available, unsched, now);
}

int homa_rpc_reply(struct homa_ctx *ctx, struct homa_handle handle, u32 length,
		   u32 available, struct homa_rpc **out)
{
	struct homa_shard *shard = homa_shard_at(ctx->engine, handle.hash);
	struct homa_rpc *rpc;
	int err;

	if (out)
		*out = NULL;
	if (!length || length > HOMA_MAX_WIRE_LENGTH || !(handle.id & 1))
		return -HOMA_EINVAL;
	homa_lock(&shard->lock);
	rpc = homa_rpc_to_answer(shard, handle, &err);
	if (rpc) {
		if (out)
			*out = rpc;
		if (homa_rpc_answer(ctx, rpc, length, available, ctx->tx_now))
			ctx->tx_now = NULL;
	}
	homa_unlock(&shard->lock);
	return err;
}

HOMA_HOT struct homa_rpc *homa_answer_begin(struct homa_ctx *ctx, u64 id,
					    const struct homa_addr *peer,
					    const struct homa_sock *sock)
{
	struct homa_shard *shard;
	struct homa_rpc *rpc;
	u32 hash;

	if (!(id & 1))
		return NULL;
	hash = homa_rpc_hash(ctx, id, peer);
	shard = homa_shard_at(ctx->engine, hash);
	homa_lock(&shard->lock);
	rpc = homa_rpc_find(shard, hash, id, peer);
	if (likely(rpc && rpc->sock == sock))
		return rpc;
	homa_unlock(&shard->lock);
	return NULL;
}

bool homa_answer_awaited(const struct homa_rpc *rpc)
{
	return rpc->state == HOMA_RPC_IN_SERVICE;
}

HOMA_HOT bool homa_answer_end(struct homa_ctx *ctx, struct homa_rpc *rpc,
			      u32 length, u32 available, struct homa_tx_desc *now)
{
	/* The RPC may be gone as soon as its shard is unlocked. */
	struct homa_shard *shard = rpc->shard;
	bool sent = false;

	if (likely(length))
		sent = homa_rpc_answer(ctx, rpc, length, available, now);
	homa_unlock(&shard->lock);
	return sent;
}

int homa_rpc_reject(struct homa_ctx *ctx, struct homa_handle handle, u32 error,
		    u32 available, struct homa_rpc **out_rpc)
{
	struct homa_shard *shard = homa_shard_at(ctx->engine, handle.hash);
	struct homa_rpc *rpc;
	int err;

	*out_rpc = NULL;
	if (!error || error > HOMA_MAX_ERRNO || !(handle.id & 1))
		return -HOMA_EINVAL;
	homa_lock(&shard->lock);
	rpc = homa_rpc_to_answer(shard, handle, &err);
	if (!rpc)
		goto out;
	if (!rpc->out.may_reject) {
		homa_rpc_kill(ctx, rpc);
		homa_count(ctx, HOMA_M_requests_discarded, 1);
		goto out;
	}
	homa_rpc_answered(ctx, rpc);
	rpc->out.error = (u16)error;
	*out_rpc = rpc;
	homa_out_start(ctx, rpc, 1, available, 1);
	homa_count(ctx, HOMA_M_requests_rejected, 1);
out:
	homa_unlock(&shard->lock);
	homa_rx_flush(ctx);
	return err;
}

bool homa_rpc_awaited(struct homa_ctx *ctx, struct homa_handle handle)
{
	struct homa_shard *shard = homa_shard_at(ctx->engine, handle.hash);
	struct homa_rpc *rpc;
	bool awaited;

	homa_lock(&shard->lock);
	rpc = homa_rpc_find_handle(shard, handle);
	awaited = rpc && rpc->state == HOMA_RPC_IN_SERVICE;
	homa_unlock(&shard->lock);
	return awaited;
}

void homa_msg_supply(struct homa_ctx *ctx, struct homa_handle handle,
		     u32 available)
{
	struct homa_shard *shard = homa_shard_at(ctx->engine, handle.hash);
	struct homa_rpc *rpc;

	homa_lock(&shard->lock);
	rpc = homa_rpc_find_handle(shard, handle);
	if (rpc && rpc->out.active)
		homa_out_supply(ctx, rpc, available);
	homa_unlock(&shard->lock);
}

bool homa_rpc_lookup(struct homa_ctx *ctx, u64 id, struct homa_handle *handle)
{
	struct homa_shard *shard;
	struct homa_rpc *rpc;
	u32 hash;

	if (id & 1)
		return false;
	hash = homa_client_hash(ctx->engine, id);
	shard = homa_shard_at(ctx->engine, hash);
	homa_lock(&shard->lock);
	rpc = homa_rpc_find(shard, hash, id, NULL);
	if (rpc)
		*handle = homa_rpc_handle(rpc);
	homa_unlock(&shard->lock);
	return rpc != NULL;
}

int homa_rx_take(struct homa_ctx *ctx, struct homa_handle handle,
		 struct homa_msg_info *info)
{
	struct homa_shard *shard = homa_shard_at(ctx->engine, handle.hash);
	struct homa_rpc *rpc;
	int err = 0;

	homa_lock(&shard->lock);
	rpc = homa_rpc_find_handle(shard, handle);
	if (!rpc ||
	    (rpc->state != HOMA_RPC_READY && rpc->state != HOMA_RPC_FAILED)) {
		err = -HOMA_EINVAL;
		goto out;
	}
	homa_rpc_deliver(ctx, rpc, info);
out:
	homa_unlock(&shard->lock);
	if (ctx->num_ctrl)
		homa_ctrl_flush(ctx);
	return err;
}
