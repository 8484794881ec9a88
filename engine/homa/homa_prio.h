/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Unscheduled priorities that we ask our peers to use.
 */
#ifndef HOMA_PRIO_H
#define HOMA_PRIO_H

#include "homa_ctx.h"

/* Message sizes are counted in so many bins, 4 to an octave. */
#define HOMA_SIZE_BINS 128u

/*
 * struct homa_prio - our cutoffs, and the traffic they follow from
 *
 * Under @lock, whose class is the peer's, unless a field says otherwise.
 */
struct homa_prio {
	struct homa_lock lock;
	/* A message of at most so many bytes comes unasked on the level that is the index;
	 * read anywhere. */
	u32 cutoffs[HOMA_PRIORITIES];
	/* Counts the changes of @cutoffs; read anywhere. */
	u16 version;
	/* Levels below this one are for grants; read anywhere. */
	u8 sched_levels;
	/* Peers know @cutoffs without being told; see homa_engine_set_cutoffs(). */
	bool agreed;
	/* An administrator chose @cutoffs. */
	bool fixed;
	/* @cutoffs are computed anew at this time, ns. */
	u64 recompute_at;
	/* So many bytes of messages of each size came; counters, halved now and then. */
	u64 bins[HOMA_SIZE_BINS];
};

void homa_prio_init(struct homa_engine *engine);
/* A message of this length comes in. */
void homa_prio_saw(struct homa_engine *engine, u32 message_length);
/* Cutoffs follow what came, if it is time. */
void homa_prio_recompute(struct homa_ctx *ctx, struct homa_link *link);
/* Our cutoffs give this level to unscheduled bytes of that size (or bytes left). */
u8 homa_prio_unsched(const struct homa_engine *engine, u32 bytes);

#endif
