// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * At most once: what is remembered of requests that ran, so that a late duplicate
 * does not run them again.
 */
#include "homa_impl.h"

#define HOMA_TOMB_WAYS 4u

static u64 homa_tomb_key(const struct homa_peer *peer, u64 id)
{
	return homa_hash_mix(peer->key ^ id) | 1;
}

/* Eight ids in a row have a set each, and share four cache lines. */
static u32 homa_tomb_slot(const struct homa_shard *shard,
			  const struct homa_peer *peer, u64 id)
{
	u64 set = (homa_hash_mix(peer->key ^ id >> 4) & ~7ull) | (id >> 1 & 7);

	return (u32)set * HOMA_TOMB_WAYS & shard->tomb_mask;
}

bool homa_tombstone_has(struct homa_ctx *ctx, struct homa_shard *shard,
			const struct homa_peer *peer, u64 id)
{
	u64 key;
	u32 slot, i, now;

	if (!shard->tombs_used)
		return false;
	key = homa_tomb_key(peer, id);
	slot = homa_tomb_slot(shard, peer, id);
	now = (u32)homa_div64(ctx->now, 1000000);
	for (i = slot; i < slot + HOMA_TOMB_WAYS; i++)
		if (shard->tombs[i] == key)
			return (s32)(shard->tombs_ms[i] - now) > 0;
	return false;
}

void homa_tombstone_add(struct homa_ctx *ctx, struct homa_shard *shard,
			const struct homa_peer *peer, u64 id)
{
	u32 now = (u32)homa_div64(ctx->now, 1000000);
	u32 slot, i, oldest;
	u64 key;

	if (!shard->tombs || !ctx->engine->params.tombstone_ms)
		return;
	key = homa_tomb_key(peer, id);
	slot = homa_tomb_slot(shard, peer, id);
	oldest = slot;
	for (i = slot; i < slot + HOMA_TOMB_WAYS; i++) {
		if (!shard->tombs[i] || (s32)(shard->tombs_ms[i] - now) <= 0) {
			oldest = i;
			break;
		}
		if ((s32)(shard->tombs_ms[i] - shard->tombs_ms[oldest]) < 0)
			oldest = i;
	}
	shard->tombs[oldest] = key;
	shard->tombs_ms[oldest] = now + ctx->engine->params.tombstone_ms + 1;
	shard->tombs_used = 1;
}
