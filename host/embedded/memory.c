// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Memory for the engine: it never allocates, so before each call it must find
 * enough spare objects for a whole batch; afterwards the RPCs that it is done
 * with come back and with them the private copies of their messages.
 */
#include "embedded.h"

/* The number of spare objects of each kind, as many as a batch of packets can need. */
#define SPARES (2 * HOMA_EMB_BATCH)

int homa_emb_memory_init(struct homa_emb *e, const struct homa_limits *limits,
			 u32 max_rpcs, u32 max_peers)
{
	return homa_spares_init(&e->spares, &e->ctx, limits, max_rpcs,
				max_peers, SPARES, &e->counters.out_of_memory);
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
	homa_spares_take_rpc(&e->spares, &e->ctx, rpc);
}

void homa_emb_reap(struct homa_emb *e)
{
	struct homa_rpc *rpc;

	while ((rpc = homa_retired_rpc(&e->ctx)))
		reap_rpc(e, rpc);
	homa_spares_take_peers(&e->spares, &e->ctx);
}

void homa_emb_memory_free(struct homa_emb *e)
{
	homa_msgbuf_drain(&e->bufs);
	homa_spares_drain(&e->spares);
}
