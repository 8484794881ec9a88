/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Unscheduled priorities that we ask our peers to use.
 */
#ifndef HOMA_PRIO_H
#define HOMA_PRIO_H

#include "homa_ctx.h"

/* Number of bins in which message lengths are counted, 4 for each doubling. */
#define HOMA_SIZE_BINS 128u

/*
 * struct homa_prio - our cutoffs, and the traffic they follow from
 *
 * Guarded by: @lock, whose class is the peer's, unless a field says otherwise.
 */
struct homa_prio {
	/* The lock of the cutoffs. */
	struct homa_lock lock;
	/* For each level, the length in bytes up to which messages come unasked on it; read
	 * without the lock. */
	u32 cutoffs[HOMA_PRIORITIES];
	/* Version of @cutoffs, which grows with each change; read without the lock. */
	u16 version;
	/* Number of the lowest levels, which are for scheduled packets; read without the
	 * lock. */
	u8 sched_levels;
	/* True if peers know @cutoffs without being told, see homa_engine_set_cutoffs(). */
	bool agreed;
	/* True if an administrator chose @cutoffs. */
	bool fixed;
	/* Time at which @cutoffs are computed anew, in ns. */
	u64 recompute_at;
	/* For each bin, the number of messages of that length that came, but for those that
	 * contexts have not counted here yet (homa_ctx.sizes); counters, halved now and
	 * then. */
	u64 bins[HOMA_SIZE_BINS];
};

void homa_prio_init(struct homa_engine *engine);
/* Counts an incoming message of @message_length bytes. */
void homa_prio_saw(struct homa_ctx *ctx, u32 message_length);
/* Computes @cutoffs anew from what came, if that is due. */
void homa_prio_recompute(struct homa_ctx *ctx, struct homa_link *link);
/* Level that our cutoffs give to the unscheduled bytes of a message of @bytes, or of one that has
 * @bytes left. */
u8 homa_prio_unsched(const struct homa_engine *engine, u32 bytes);

#endif
