// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What applications do: send a request, take what arrived, reply, abort. Each
 * finds its RPC under the shard's lock, changes its state, and leaves the
 * moving of bytes to the schedulers.
 */
#include "homa_busy.h"
#include "homa_owner.h"

/* How many RPCs a client may have open before it asks for short unscheduled
 * responses (SIGCOMM'18 section 3.6). What others have open is not its concern. */
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

/*
 * Ids count up over all servers, from another secret place for each address: a
 * server that sees ours knows nothing of those at other servers, and so cannot
 * answer in their place, although a response is accepted from any address.
 */
static u64 homa_rpc_new_id(struct homa_engine *engine,
			   const struct homa_peer *peer)
{
	return homa_counter_add(&engine->next_id, 2) +
	       (homa_hash_mix(peer->key ^ engine->seeds.places) >> 2 & ~1ull);
}

int homa_rpc_send(struct homa_ctx *ctx, struct homa_sock *sock,
		  struct homa_link *link, const struct homa_send *send,
		  struct homa_handle *handle, struct homa_rpc **out)
{
	struct homa_engine *engine = ctx->engine;
	struct homa_shard *shard;
	struct homa_peer *peer;
	struct homa_rpc *rpc;
	u8 flags = HOMA_RPC_CLIENT;
	u32 hash;
	u64 id;

	if (!send->length || send->length > HOMA_MAX_WIRE_LENGTH || !send->port)
		return -HOMA_EINVAL;
	if (homa_owner_full(engine, sock))
		return -HOMA_ENOBUFS;
	peer = homa_peer_get(ctx, link, &send->dst, true);
	if (!peer)
		return -HOMA_ENOBUFS;
	if (send->flags & HOMA_SEND_PRIVATE)
		flags |= HOMA_RPC_PRIVATE;
	id = homa_rpc_new_id(engine, peer);
	hash = homa_client_hash(ctx->engine, id);
	shard = homa_shard_at(engine, hash);
	homa_lock(&shard->lock);
	rpc = homa_rpc_create(ctx, shard, sock, peer, link, id, hash,
			      send->port, flags);
	if (!rpc) {
		homa_unlock(&shard->lock);
		homa_peer_put(ctx, peer);
		return HOMA_READ_ONCE(sock->closing) ? -HOMA_ESHUTDOWN :
						       -HOMA_ENOBUFS;
	}
	rpc->state = HOMA_RPC_OUTGOING;
	rpc->cookie = send->cookie;
	homa_incast_mark(ctx, rpc);
	homa_rpc_arm(rpc, ctx->now + HOMA_READ_ONCE(link->derived.resend_ns));
	if (handle)
		*handle = homa_rpc_handle(rpc);
	if (out)
		*out = rpc;
	homa_out_start(ctx, rpc, send->length, send->available,
		       HOMA_READ_ONCE(link->derived.rtt_bytes));
	homa_unlock(&shard->lock);
	homa_count(ctx, HOMA_M_requests_sent, 1);
	return 0;
}

int homa_rpc_reply(struct homa_ctx *ctx, struct homa_handle handle, u32 length,
		   u32 available, struct homa_rpc **out)
{
	struct homa_engine *engine = ctx->engine;
	struct homa_shard *shard = homa_shard_at(engine, handle.hash);
	struct homa_rpc *rpc;
	u32 unsched;
	int err = 0;

	if (out)
		*out = NULL;
	if (!length || length > HOMA_MAX_WIRE_LENGTH || !(handle.id & 1))
		return -HOMA_EINVAL;
	homa_lock(&shard->lock);
	rpc = homa_rpc_find_handle(shard, handle);
	if (!rpc)
		goto out;
	if (rpc->state != HOMA_RPC_IN_SERVICE) {
		err = -HOMA_EINVAL;
		goto out;
	}
	rpc->state = HOMA_RPC_OUTGOING;
	rpc->heard_at = ctx->now;
	rpc->probes = 0;
	rpc->probe_at = 0;
	homa_busy_over(rpc);
	homa_rpc_arm(rpc, ctx->now + engine->params.need_ack_us * 1000ull);
	unsched = HOMA_READ_ONCE(rpc->link->derived.rtt_bytes);
	if (rpc->resp_limit_kib && rpc->resp_limit_kib * 1024u < unsched) {
		unsched = rpc->resp_limit_kib * 1024u;
		if (length > unsched)
			homa_count(ctx, HOMA_M_incast_limited, 1);
	}
	if (out)
		*out = rpc;
	homa_out_start(ctx, rpc, length, available, unsched);
	homa_count(ctx, HOMA_M_replies_sent, 1);
out:
	homa_unlock(&shard->lock);
	return err;
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

/*
 * The server need not keep a request that nobody waits for. One packet, which is
 * the one that a server knows from clients that have restarted; half of the link's
 * queue is left to others, and a server that was not told asks (homa_timer.c).
 */
void homa_rpc_tell_server(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	struct homa_link *link = rpc->link;
	bool tell;

	if (!homa_rpc_is_client(rpc) || (rpc->state != HOMA_RPC_OUTGOING &&
					 rpc->state != HOMA_RPC_INCOMING))
		return;
	homa_lock(&link->lock);
	tell = rpc->out.first_at &&
	       link->ctrl_tail - link->ctrl_head <= link->ctrl_mask / 2;
	homa_unlock(&link->lock);
	if (tell)
		homa_ctrl_rpc(ctx, rpc, HOMA_RPC_UNKNOWN);
}

int homa_rpc_abort(struct homa_ctx *ctx, struct homa_handle handle, int error)
{
	struct homa_shard *shard = homa_shard_at(ctx->engine, handle.hash);
	struct homa_rpc *rpc;
	int err = -HOMA_EINVAL;

	homa_lock(&shard->lock);
	rpc = homa_rpc_find_handle(shard, handle);
	if (rpc && homa_rpc_is_client(rpc)) {
		err = 0;
		homa_rpc_tell_server(ctx, rpc);
		if (!error)
			homa_rpc_kill(ctx, rpc);
		else if (rpc->state != HOMA_RPC_READY)
			homa_rpc_fail(ctx, rpc, error);
	}
	homa_unlock(&shard->lock);
	homa_rx_flush(ctx);
	return err;
}

int homa_rpc_forget(struct homa_ctx *ctx, struct homa_handle handle)
{
	struct homa_shard *shard = homa_shard_at(ctx->engine, handle.hash);
	struct homa_rpc *rpc;

	homa_lock(&shard->lock);
	rpc = homa_rpc_find_handle(shard, handle);
	if (rpc)
		homa_rpc_kill(ctx, rpc);
	homa_unlock(&shard->lock);
	homa_rx_flush(ctx);
	return rpc ? 0 : -HOMA_EINVAL;
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

static void homa_fill_info(struct homa_rpc *rpc, struct homa_msg_info *info)
{
	info->error = 0;
	info->length = 0;
	info->num_pages = 0;
	info->id = rpc->id;
	info->cookie = rpc->cookie;
	info->peer = rpc->peer->addr;
	info->peer_port = rpc->dport;
	if (rpc->state == HOMA_RPC_FAILED) {
		info->kind = HOMA_EV_FAILED;
		info->error = rpc->error;
		return;
	}
	info->kind = homa_rpc_is_client(rpc) ? HOMA_EV_RESPONSE :
					       HOMA_EV_REQUEST;
	info->length = rpc->in.length;
	if (rpc->flags & HOMA_RPC_OWN_PAGES) {
		info->num_pages = rpc->num_pages;
		memcpy(info->pages, rpc->pages,
		       rpc->num_pages * sizeof(rpc->pages[0]));
		rpc->flags &= 0xff ^ HOMA_RPC_OWN_PAGES;
	}
}

void homa_rpc_serve(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	rpc->state = HOMA_RPC_IN_SERVICE;
	rpc->flags |= HOMA_RPC_EXECUTED;
	homa_busy_over(rpc);
	homa_wheel_del(&rpc->shard->wheel, &rpc->timer);
	homa_count(ctx, HOMA_M_requests_received, 1);
}

void homa_rpc_end(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	if (rpc->state == HOMA_RPC_READY) {
		homa_peer_add_ack(ctx, rpc);
		homa_count(ctx, HOMA_M_responses_taken, 1);
	}
	homa_rpc_kill(ctx, rpc);
}

void homa_rpc_give(struct homa_ctx *ctx, struct homa_rpc *rpc,
		   struct homa_msg_info *info)
{
	homa_fill_info(rpc, info);
	if (homa_rpc_is_client(rpc)) {
		homa_rpc_end(ctx, rpc);
		return;
	}
	homa_rpc_serve(ctx, rpc);
	homa_sock_taken(rpc->sock, 1);
}

int homa_rx_take(struct homa_ctx *ctx, struct homa_handle handle,
		 struct homa_msg_info *info)
{
	struct homa_shard *shard = homa_shard_at(ctx->engine, handle.hash);
	struct homa_rpc *rpc;
	int err = 0;

	homa_lock(&shard->lock);
	rpc = homa_rpc_find_handle(shard, handle);
	if (!rpc || (rpc->state != HOMA_RPC_READY &&
		     rpc->state != HOMA_RPC_FAILED)) {
		err = -HOMA_EINVAL;
		goto out;
	}
	homa_rpc_give(ctx, rpc, info);
out:
	homa_unlock(&shard->lock);
	if (ctx->num_ctrl)
		homa_ctrl_flush(ctx);
	return err;
}
