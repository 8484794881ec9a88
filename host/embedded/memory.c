// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Memory for the engine: it never allocates, so before each call it must find
 * enough spare objects for a whole batch; afterwards the RPCs that it is done
 * with come back and with them the private copies of their messages.
 */
#include <errno.h>
#include "embedded.h"

/* Spares kept: a batch of packets can create that many objects. */
#define SPARES (2 * HOMA_EMB_BATCH)

int homa_emb_memory_init(struct homa_emb *e, const struct homa_limits *limits,
			 u32 max_rpcs, u32 max_peers)
{
	homa_slab_init(&e->rpcs, homa_rpc_size(limits), max_rpcs + SPARES);
	homa_slab_init(&e->peers, homa_peer_size(limits), max_peers + SPARES);
	homa_slab_init(&e->ranges, homa_range_size(), 4 * max_rpcs);
	homa_emb_refill(e);
	if (!e->ctx.spare_rpcs || !e->ctx.spare_peers || !e->ctx.spare_ranges)
		return -ENOMEM;
	return 0;
}

static void refill_slow(struct homa_emb *e)
{
	void *mem;

	while (e->ctx.spare_rpcs < SPARES) {
		mem = homa_slab_get(&e->rpcs);
		if (!mem)
			goto none;
		memset(homa_rpc_priv(mem), 0, sizeof(struct homa_emb_rpc));
		homa_ctx_give_rpc(&e->ctx, mem);
	}
	while (e->ctx.spare_peers < SPARES) {
		mem = homa_slab_get(&e->peers);
		if (!mem)
			goto none;
		homa_ctx_give_peer(&e->ctx, mem);
	}
	while (e->ctx.spare_ranges < SPARES) {
		mem = homa_slab_get(&e->ranges);
		if (!mem)
			goto none;
		homa_ctx_give_range(&e->ctx, mem);
	}
	return;
none:
	e->counters.out_of_memory++;
}

void homa_emb_refill(struct homa_emb *e)
{
	if (unlikely(e->ctx.spare_rpcs < SPARES / 2 ||
		     e->ctx.spare_peers < SPARES / 2 ||
		     e->ctx.spare_ranges < SPARES / 2))
		refill_slow(e);
}

static void reap_rpc(struct homa_emb *e, struct homa_rpc *rpc)
{
	struct homa_emb_rpc *priv = homa_rpc_priv(rpc);

	homa_emb_unready(e, priv);
	if (priv->client.next)
		homa_list_del(&priv->client);
	if (priv->handle.id)
		homa_emb_gone(e, priv->handle.id);
	if (!priv->borrowed)
		homa_msgbuf_put(&e->bufs, priv->out, priv->out_size);
	memset(priv, 0, sizeof(*priv));
	if (e->ctx.spare_rpcs < SPARES)
		homa_ctx_give_rpc(&e->ctx, rpc);
	else
		homa_slab_put(&e->rpcs, rpc);
}

void homa_emb_reap(struct homa_emb *e)
{
	struct homa_rpc *rpc;
	struct homa_peer *peer;

	while ((rpc = homa_retired_rpc(&e->ctx)))
		reap_rpc(e, rpc);
	while ((peer = homa_retired_peer(&e->ctx)))
		homa_slab_put(&e->peers, peer);
}

void homa_emb_memory_free(struct homa_emb *e)
{
	homa_msgbuf_drain(&e->bufs);
	homa_slab_drain(&e->rpcs);
	homa_slab_drain(&e->peers);
	homa_slab_drain(&e->ranges);
}
