// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Applications that do not want an answer any more: one RPC is aborted or forgotten, or
 * a socket closes and all of its RPCs end, a few at a time, so that no host spends
 * unbounded time in one call. A server that works for nobody is told.
 */
#include "homa_impl.h"

/*
 * Tells the server that nobody waits for @rpc any more, so that it need not keep the
 * request. One packet is sent, the one that a server also gets from clients that have
 * restarted. Half of the link's queue is left to others; a server that was not told asks
 * (homa_timer.c).
 */
void homa_rpc_tell_server(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	struct homa_link *link = rpc->link;
	bool tell;

	if (!homa_rpc_is_client(rpc) ||
	    (rpc->state != HOMA_RPC_OUTGOING && rpc->state != HOMA_RPC_INCOMING))
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

int homa_sock_close(struct homa_ctx *ctx, struct homa_sock *sock, u32 budget)
{
	struct homa_list *first;

	/* A client that ends should not leave its servers waiting. */
	if (homa_sock_unhash(ctx->engine, sock))
		homa_peer_flush_acks(ctx, sock->port);
	do {
		struct homa_rpc *rpc = NULL;

		homa_lock(&sock->lock);
		HOMA_WRITE_ONCE(sock->closing, true);
		first = homa_list_first(&sock->rpcs);
		if (first) {
			rpc = homa_list_entry(first, struct homa_rpc, sock_rpcs);
			homa_ref_get(&rpc->refs);
		}
		homa_unlock(&sock->lock);
		if (!rpc)
			break;
		homa_lock(&rpc->shard->lock);
		homa_rpc_tell_server(ctx, rpc);
		homa_rpc_kill(ctx, rpc);
		homa_unlock(&rpc->shard->lock);
		homa_rpc_put(ctx, rpc);
	} while (budget-- > 1);
	homa_rx_flush(ctx);
	/* The socket is gone already if the host did not look at the result of the last
	 * call. */
	return homa_ref_drop_last(&sock->refs) || !homa_ref_read(&sock->refs) ?
		       0 :
		       -HOMA_EAGAIN;
}
