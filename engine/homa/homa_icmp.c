// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * ICMP errors about packets of ours. Anybody can forge one, so they end only what
 * they name.
 */
#include "homa_impl.h"

/* Port unreachable ends both sides' RPCs; other errors concern clients. */
static void homa_icmp_rpc(struct homa_ctx *ctx, struct homa_rpc *rpc, int error)
{
	homa_count(ctx, HOMA_M_icmp_errors, 1);
	if (homa_rpc_is_client(rpc)) {
		/* Once a response has begun, the server has existed; an error
		 * that arrives now is late or forged. */
		if (rpc->state == HOMA_RPC_OUTGOING)
			homa_rpc_fail(ctx, rpc, error);
	} else if (error == HOMA_ENOTCONN) {
		homa_rpc_kill(ctx, rpc);
	}
}

void homa_icmp(struct homa_ctx *ctx, const struct homa_addr *dst, u16 sport,
	       u16 dport, u64 id, int error)
{
	struct homa_engine *engine = ctx->engine;
	struct homa_list *pos, *tmp;
	u32 first = 0, last = engine->limits.shards;
	u32 i, b;

	if (id) {
		first = homa_shard_at(engine, homa_rpc_hash(ctx, id, dst))->index;
		last = first + 1;
	}
	for (i = first; i < last; i++) {
		struct homa_shard *shard = &engine->shards[i];

		homa_lock(&shard->lock);
		for (b = 0; b <= shard->bucket_mask; b++) {
			homa_list_for_each_safe(pos, tmp, &shard->buckets[b]) {
				struct homa_rpc *rpc = homa_list_entry(
					pos, struct homa_rpc, hash);

				if ((id && rpc->id != id) ||
				    (sport && rpc->sport != sport) ||
				    (dport && rpc->dport != dport) ||
				    !homa_addr_equal(&rpc->peer->addr, dst))
					continue;
				homa_icmp_rpc(ctx, rpc, error);
			}
		}
		homa_unlock(&shard->lock);
	}
	homa_rx_flush(ctx);
}
