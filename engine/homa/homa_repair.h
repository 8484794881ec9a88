/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a receiver asks for again, and when; see homa_repair.c. All under the shard's
 * lock.
 */
#ifndef HOMA_REPAIR_H
#define HOMA_REPAIR_H

#include "homa_rpc.h"

#define HOMA_MAX_GAPS_ASKED 64u /* one question asks for so many gaps at most */
#define HOMA_NO_EARLY 0xffffffffu /* homa_rpc.asked_to: only silence counts */
#define HOMA_TICK_SHIFT 17u	  /* of homa_rpc.overtaken_at: 131 us */
#define HOMA_REPAIR_ROUNDS 8u /* questions per interval while repair goes on */

/* Is something missing that was overtaken by what was sent again after it? */
static inline bool homa_rpc_overtaken(const struct homa_rpc *rpc)
{
	return rpc->repaired_to > homa_ranges_in_order(&rpc->ranges);
}

/* Ask for what is missing of @rpc's granted bytes before @end, @most gaps of it; how many
 * were asked for. Shard locked. */
u32 homa_resend_missing(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 end,
			u32 most, u8 prio);
/* A first transmission of @rpc has arrived, whose bytes end at @end. @more: bytes before it are
 * missing that were not so before; else it came into a gap. Shard locked. */
void homa_rpc_gaps(struct homa_ctx *ctx, struct homa_rpc *rpc, bool more,
		   u32 end);
/* Bytes up to @end came again that had been asked for. */
void homa_rpc_repaired(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 end);
/* When to look at @rpc next because packets were overtaken, ns; @base: its interval
 * between questions. HOMA_NEVER: nothing was overtaken. */
u64 homa_rpc_early(struct homa_ctx *ctx, struct homa_rpc *rpc, u64 base);

#endif
