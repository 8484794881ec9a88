// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Memory for the engine, which never allocates: spare objects before each call
 * that may need some, and what it is done with afterwards. An RPC that comes
 * back gives up what it held of an application: its name in the table of open
 * RPCs, and the bytes it was sent from.
 */
#include <errno.h>
#include "service.h"
#include "trace.h"

int homad_memory_init(struct homad_thread *t)
{
	const struct homa_limits *limits = &t->d->limits;
	const struct homa_params *params = &t->d->config.params;
	u32 rpcs = params->max_rpcs < 0x40000000 ? params->max_rpcs : 0x40000000;

	homa_slab_init(&t->rpcs, homa_rpc_size(limits), rpcs + HOMAD_SPARES);
	homa_slab_init(&t->peers, homa_peer_size(limits),
		       params->max_peers + HOMAD_SPARES);
	homa_slab_init(&t->ranges, homa_range_size(), 4 * rpcs);
	homa_slab_init(&t->directs, sizeof(struct homad_direct), rpcs);
	homad_refill(t);
	if (!t->ctx.spare_rpcs || !t->ctx.spare_peers || !t->ctx.spare_ranges)
		return -ENOMEM;
	return 0;
}

void homad_memory_free(struct homad_thread *t)
{
	homa_msgbuf_drain(&t->bufs);
	homa_slab_drain(&t->rpcs);
	homa_slab_drain(&t->peers);
	homa_slab_drain(&t->ranges);
	homa_slab_drain(&t->directs);
}

static void refill_slow(struct homad_thread *t)
{
	void *mem;

	while (t->ctx.spare_rpcs < HOMAD_SPARES) {
		mem = homa_slab_get(&t->rpcs);
		if (!mem)
			goto none;
		memset(homa_rpc_priv(mem), 0, sizeof(struct homad_rpc));
		homa_ctx_give_rpc(&t->ctx, mem);
	}
	while (t->ctx.spare_peers < HOMAD_SPARES) {
		mem = homa_slab_get(&t->peers);
		if (!mem)
			goto none;
		homa_ctx_give_peer(&t->ctx, mem);
	}
	while (t->ctx.spare_ranges < HOMAD_SPARES) {
		mem = homa_slab_get(&t->ranges);
		if (!mem)
			goto none;
		homa_ctx_give_range(&t->ctx, mem);
	}
	return;
none:
	t->counters.out_of_memory++;
}

void homad_refill(struct homad_thread *t)
{
	if (unlikely(t->ctx.spare_rpcs < HOMAD_SPARES / 2 ||
		     t->ctx.spare_peers < HOMAD_SPARES / 2 ||
		     t->ctx.spare_ranges < HOMAD_SPARES / 2))
		refill_slow(t);
}

static void reap_rpc(struct homad_thread *t, struct homa_rpc *rpc)
{
	struct homad_rpc *priv = homa_rpc_priv(rpc);

	if (priv->app) {
		homad_trace_rpc(t, HOMAD_TRACE_END, priv, 0, 0);
		homad_forget(t, priv);
	}
	if (priv->copied)
		homa_msgbuf_put(&t->bufs, priv->out, priv->out_size);
	memset(priv, 0, sizeof(*priv));
	if (t->ctx.spare_rpcs < HOMAD_SPARES)
		homa_ctx_give_rpc(&t->ctx, rpc);
	else
		homa_slab_put(&t->rpcs, rpc);
}

void homad_reap(struct homad_thread *t)
{
	struct homa_rpc *rpc;
	struct homa_peer *peer;

	while ((rpc = homa_retired_rpc(&t->ctx)))
		reap_rpc(t, rpc);
	while ((peer = homa_retired_peer(&t->ctx)))
		homa_slab_put(&t->peers, peer);
}
