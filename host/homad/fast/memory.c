// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Memory for the engine, which never allocates: spare objects before each call
 * that may need some, and what it is done with afterwards. An RPC that comes
 * back gives up what it held of an application: its name in the table of open
 * RPCs, and the bytes it was sent from.
 */
#include "copies.h"
#include "fast.h"
#include "homad_trace.h"

int homad_memory_init(struct homad_thread *t)
{
	const struct homa_params *params = &t->d->config.params;

	homa_slab_init(&t->directs, sizeof(struct homad_direct),
		       params->max_rpcs);
	return homa_spares_init(&t->spares, &t->ctx, &t->d->limits,
				params->max_rpcs, params->max_peers,
				HOMAD_SPARES, &t->counters.out_of_memory);
}

void homad_memory_free(struct homad_thread *t)
{
	homa_msgbuf_drain(&t->bufs);
	homa_slab_drain(&t->directs);
	homa_spares_drain(&t->spares);
}

static void reap_rpc(struct homad_thread *t, struct homa_rpc *rpc)
{
	struct homad_rpc *priv = homa_rpc_priv(rpc);

	if (priv->app) {
		homad_trace_rpc(t, HOMAD_TRACE_END, priv, 0, 0);
		/* The application may have gone when it is told. */
		if (priv->copied)
			homad_copy_put(t, priv->app, priv->out, priv->out_size);
		homad_forget(t, priv);
	}
	homa_spares_take_rpc(&t->spares, &t->ctx, rpc);
}

void homad_reap(struct homad_thread *t)
{
	struct homa_rpc *rpc;

	while ((rpc = homa_retired_rpc(&t->ctx)))
		reap_rpc(t, rpc);
	homa_spares_take_peers(&t->spares, &t->ctx);
}
