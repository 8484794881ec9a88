/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What a receiver asks for again, and when; see homa_repair.c. All under the shard's
 * lock.
 */
#ifndef HOMA_REPAIR_H
#define HOMA_REPAIR_H

#include "homa_rpc.h"

/* Most gaps that one question asks for. */
#define HOMA_MAX_GAPS_ASKED 64u
/* Value of homa_rpc.asked_to: gaps are asked for only after silence. */
#define HOMA_NO_EARLY 0xffffffffu
/* homa_rpc.overtaken_at counts in units of 2^17 ns, which is 131 us, or longer ones if the
 * RESEND interval is above 134 ms. */
#define HOMA_TICK_SHIFT 17u
/* Most questions in a RESEND interval while what was asked for keeps coming. */
#define HOMA_REPAIR_ROUNDS 8u

/* Are bytes missing that were sent again before others that have come already? */
static inline bool homa_rpc_overtaken(const struct homa_rpc *rpc)
{
	return rpc->repaired_to > homa_ranges_in_order(&rpc->ranges);
}

/* Asks for the granted bytes of @rpc before @end that are missing, in at most @most
 * gaps, and returns for how many gaps. Shard locked. */
u32 homa_resend_missing(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 end,
			u32 most, u8 prio);
/* A first transmission of @rpc has arrived, whose bytes end at @end. @more: bytes before
 * it are missing that were not so before; else it came into a gap. Shard locked. */
void homa_rpc_gaps(struct homa_ctx *ctx, struct homa_rpc *rpc, bool more,
		   u32 end);
/* Bytes up to @end came again that had been asked for. */
void homa_rpc_repaired(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 end);
/* Time at which @rpc is to be looked at next because packets were overtaken, in ns.
 * HOMA_NEVER: nothing was overtaken. */
u64 homa_rpc_early(struct homa_ctx *ctx, struct homa_rpc *rpc);

#endif
