// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * ICMP errors about packets of ours. Anybody can forge one, so they are believed
 * only about the RPC that they name: the quote must have the id, which nobody
 * else knows, and both ports. Many routers quote less, no more than the ports;
 * then timeouts do the work. One RPC is looked up, and nothing searched.
 */
#include "homa_rx.h"

/* Least MTU that an ICMP error can give a path, in bytes; the kernel has the same
 * limits. */
#define HOMA_MIN_MTU_V4 552u
#define HOMA_MIN_MTU_V6 1280u

/* Finds the RPC whose packet to @dst is quoted, and locks its shard; NULL: there is
 * none. */
static struct homa_rpc *homa_icmp_rpc(struct homa_ctx *ctx,
				      const struct homa_addr *dst, u16 sport,
				      u16 dport, u64 id)
{
	u32 hash = homa_rpc_hash(ctx, id, dst);
	struct homa_shard *shard = homa_shard_at(ctx->engine, hash);
	struct homa_rpc *rpc = NULL;

	homa_lock(&shard->lock);
	if (id && sport && dport)
		rpc = homa_rpc_find(shard, hash, id, dst);
	if (rpc && rpc->sport == sport && rpc->dport == dport)
		return rpc;
	homa_unlock(&shard->lock);
	homa_count(ctx, HOMA_M_icmp_ignored, 1);
	return NULL;
}

void homa_icmp(struct homa_ctx *ctx, const struct homa_addr *dst, u16 sport,
	       u16 dport, u64 id, int error)
{
	struct homa_rpc *rpc = homa_icmp_rpc(ctx, dst, sport, dport, id);
	struct homa_shard *shard;

	if (!rpc)
		return;
	shard = rpc->shard;
	/* Once a response has begun, the server existed, so an error that arrives now is
	 * late. The RPC of a server ends only if its client's port does not exist. */
	if (homa_rpc_is_client(rpc) && rpc->state == HOMA_RPC_OUTGOING) {
		homa_count(ctx, HOMA_M_icmp_errors, 1);
		homa_rpc_fail(ctx, rpc, error);
	} else if (!homa_rpc_is_client(rpc) && error == HOMA_ENOTCONN &&
		   (rpc->state == HOMA_RPC_OUTGOING ||
		    rpc->state == HOMA_RPC_INCOMING)) {
		homa_count(ctx, HOMA_M_icmp_errors, 1);
		homa_rpc_kill(ctx, rpc);
	} else {
		homa_count(ctx, HOMA_M_icmp_ignored, 1);
	}
	homa_unlock(&shard->lock);
	homa_rx_flush(ctx);
}

bool homa_icmp_mtu(struct homa_ctx *ctx, const struct homa_addr *dst, u16 sport,
		   u16 dport, u64 id, u32 mtu)
{
	struct homa_rpc *rpc = homa_icmp_rpc(ctx, dst, sport, dport, id);
	u16 seg;

	if (!rpc)
		return false;
	mtu = homa_max_u32(mtu, homa_addr_is_v4(dst) ? HOMA_MIN_MTU_V4 :
						       HOMA_MIN_MTU_V6);
	seg = homa_seg_size(dst, mtu);
	if (seg <= HOMA_READ_ONCE(rpc->peer->mtu_seg))
		homa_peer_path_seg(ctx, rpc->peer, seg);
	homa_unlock(&rpc->shard->lock);
	return true;
}
