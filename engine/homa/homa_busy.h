/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * When a peer is asked about an RPC, and when again. All under the shard's lock.
 */
#ifndef HOMA_BUSY_H
#define HOMA_BUSY_H

#include "homa_rpc.h"

/* The interval between two questions doubles so often at most. */
#define HOMA_DOUBLINGS 3u

/* How long to wait for an answer, ns: @base, doubled so often. */
static inline u64 homa_ask_after(const struct homa_rpc *rpc, u64 base,
				 u32 doublings)
{
	u64 cap = HOMA_READ_ONCE(rpc->link->derived.timeout_ns) / 4;

	return homa_max_u64(base, homa_min_u64(base << doublings, cap));
}

#define HOMA_PATIENT 16u /* questions to a busy peer per RESEND interval */

/* How long it takes to ask a busy peer about @rpcs once, ns; @base: RESEND interval. */
static inline u64 homa_busy_round(u32 rpcs, u64 base)
{
	return rpcs * base / HOMA_PATIENT;
}

/* The peer said BUSY about @rpc: @rpc gets HOMA_RPC_BUSY, and the peer is asked about it
 * again in its turn. */
void homa_busy(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* The peer is asked about @rpc next after @least ns, or later if so many of its other busy
 * RPCs have their turn first. */
void homa_busy_wait(struct homa_ctx *ctx, struct homa_rpc *rpc, u64 least);
/* Takes HOMA_RPC_BUSY from @rpc, which has it. */
void homa_busy_ends(struct homa_rpc *rpc);

/* The peer has said something else about @rpc, or nothing of it is waited for any more. */
static inline void homa_busy_over(struct homa_rpc *rpc)
{
	if (rpc->flags & HOMA_RPC_BUSY)
		homa_busy_ends(rpc);
}

/* The answer to questions about @rpc has come, which was heard just now: it waits for what
 * comes next as if none had been asked. */
void homa_patience_ends(struct homa_ctx *ctx, struct homa_rpc *rpc);

/* Was @rpc patient, as its peer was asked or said BUSY? */
static inline bool homa_is_patient(const struct homa_rpc *rpc)
{
	return rpc->probes || rpc->flags & HOMA_RPC_BUSY;
}

/* A question about @rpc goes out. */
static inline void homa_rpc_asked(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	homa_busy_over(rpc);
	rpc->probe_at = ctx->now;
	if (rpc->probes < 255)
		rpc->probes++;
}

#endif
