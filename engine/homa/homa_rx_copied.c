// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The payload of a packet after homa_rx() has judged it: where the host has to copy it, and
 * what follows when the host says that the bytes are there. The last of them makes the
 * message ready for its application.
 */
#include "homa_rx.h"

/* Does what follows when the last byte of a message has been copied. */
static void homa_rx_ready(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	rpc->state = HOMA_RPC_READY;
	homa_prio_saw(ctx, rpc->in.length);
	homa_grant_remove(ctx, rpc);
	if (rpc->flags & HOMA_RPC_HOLDING)
		homa_rpc_complete(rpc);
}

void homa_rx_copied(struct homa_ctx *ctx, struct homa_rx_pkt *pkt)
{
	struct homa_rpc *rpc = pkt->rpc;

	homa_lock(&rpc->shard->lock);
	rpc->copied += pkt->fresh;
	if (rpc->copied == rpc->in.length && rpc->state == HOMA_RPC_INCOMING) {
		homa_rx_ready(ctx, rpc);
		/* A request that nobody takes should not outlive its client. */
		if (homa_rpc_is_client(rpc))
			homa_wheel_del(&rpc->shard->wheel, &rpc->timer);
		homa_event_add(ctx, rpc);
	}
	homa_unlock(&rpc->shard->lock);
	pkt->rpc = NULL;
	homa_rpc_put(ctx, rpc);
}

int homa_rx_finish(struct homa_ctx *ctx, struct homa_rx_pkt *pkt,
		   struct homa_msg_info *info)
{
	struct homa_rpc *rpc = pkt->rpc;
	int done = 0;

	homa_lock(&rpc->shard->lock);
	rpc->copied += pkt->fresh;
	if (rpc->copied == rpc->in.length && rpc->state == HOMA_RPC_INCOMING) {
		homa_rx_ready(ctx, rpc);
		homa_rpc_deliver(ctx, rpc, info);
		done = 1;
	}
	homa_unlock(&rpc->shard->lock);
	pkt->rpc = NULL;
	homa_rpc_put(ctx, rpc);
	if (ctx->num_ctrl)
		homa_ctrl_flush(ctx);
	return done;
}

u32 homa_rx_place(const struct homa_rpc *rpc, u32 offset, u32 *contiguous)
{
	u32 in_page = offset & (HOMA_BPAGE_SIZE - 1);

	*contiguous =
		homa_min_u32(HOMA_BPAGE_SIZE - in_page, rpc->in.length - offset);
	return rpc->pages[offset >> HOMA_BPAGE_SHIFT] + in_page;
}

bool homa_rx_placed(const struct homa_rpc *rpc)
{
	return rpc->num_pages != 0;
}
