/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * When a peer is asked about an RPC, and when again. All under the shard's lock.
 */
#ifndef HOMA_BUSY_H
#define HOMA_BUSY_H

#include "homa_rpc.h"

/* Most times that the interval between two questions is doubled. */
#define HOMA_DOUBLINGS 3u

/* Time to wait for an answer, in ns: @base, doubled @doublings times, and bounded by the
 * RPC's timeout. */
static inline u64 homa_ask_after(const struct homa_rpc *rpc, u64 base,
				 u32 doublings)
{
	u64 cap = HOMA_READ_ONCE(rpc->link->derived.timeout_ns) / 4;

	return homa_max_u64(base, homa_min_u64(base << doublings, cap));
}

#define HOMA_PATIENT \
	16u /* most questions to a busy peer in a RESEND interval */

/* Time that it takes to ask a busy peer about each of @rpcs RPCs once, in ns; @base is the
 * RESEND interval, in ns. */
static inline u64 homa_busy_round(u32 rpcs, u64 base)
{
	return rpcs * base / HOMA_PATIENT;
}

/* Notes that the peer said BUSY about @rpc: sets HOMA_RPC_BUSY, and the peer is asked about
 * it again in its turn. */
void homa_busy(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* Sets the time of the next question about @rpc to @least ns from now, or later if many
 * other RPCs with the same peer are busy. */
void homa_busy_wait(struct homa_ctx *ctx, struct homa_rpc *rpc, u64 least);
/* Takes HOMA_RPC_BUSY from @rpc, which has it. */
void homa_busy_ends(struct homa_rpc *rpc);

/* Ends HOMA_RPC_BUSY, if set, because the peer has said something else about @rpc or
 * nothing of it is waited for any more. */
static inline void homa_busy_over(struct homa_rpc *rpc)
{
	if (rpc->flags & HOMA_RPC_BUSY)
		homa_busy_ends(rpc);
}

/* Notes that the peer has answered the questions about @rpc, so that the next wait begins
 * as if none had been asked. */
void homa_patience_ends(struct homa_ctx *ctx, struct homa_rpc *rpc);

/* Was the peer asked about @rpc, or did it say BUSY, since it was last heard? */
static inline bool homa_is_patient(const struct homa_rpc *rpc)
{
	return rpc->probes || rpc->flags & HOMA_RPC_BUSY;
}

/* Notes that a question about @rpc is sent. */
static inline void homa_rpc_asked(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	homa_busy_over(rpc);
	rpc->probe_at = ctx->now;
	if (rpc->probes < 255)
		rpc->probes++;
}

#endif
