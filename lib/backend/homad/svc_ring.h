/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A submission ring of an attachment, and the destinations to which its threads know a way.
 */
#ifndef HOMA_SVC_RING_H
#define HOMA_SVC_RING_H

#include "homa_addr.h"
#include "homa_gate.h"
#include "shm.h"

struct homa_svc;

#define HOMA_SVC_ROUTES 256u /* destinations a ring knows to be reachable */

/* struct homa_svc_way - a destination that can be reached. Guarded by: the lock of its ring */
struct homa_svc_way {
	/* Its member @zero is 1 in a place that is free. */
	struct homa_addr addr;
	/* The address's hash under the attachment's key, which ids of requests contain. */
	u64 hash;
};

/* struct homa_svc_ring - a submission ring. Guarded by: @lock */
struct homa_svc_ring {
	/* The lock of the ring; a thread that submits holds it. */
	struct homa_gate lock;
	/* The number of entries that this process has filled so far, and that homad had taken when
	 * we last looked. */
	u32 tail, head;
	/* The number of bytes beside the ring that were filled so far, and that homad had read
	 * when we last looked. */
	u32 stage_tail, stage_head;
	/* The destinations to which this ring's threads know a way, at homa_svc_way()'s places. */
	struct homa_svc_way routes[HOMA_SVC_ROUTES];
	/* The value of @stage_tail after each entry had been filled. */
	u32 stage_end[HOMA_SHM_SQ_MAX];
} __attribute__((aligned(64)));

/* routes.c: the caller has the ring's lock */
/** homa_svc_way() - return the place for @to; it has this address if a way is known. */
struct homa_svc_way *homa_svc_way(struct homa_svc_ring *ring,
				  const struct homa_addr *to);
/** homa_svc_learn() - note at the place @way that @to can be reached. */
void homa_svc_learn(struct homa_svc *c, struct homa_svc_way *way,
		    const struct homa_addr *to);
/** homa_svc_unlearn() - forget the way to @to (NULL: to all), so that homad is asked again. */
void homa_svc_unlearn(struct homa_svc_ring *ring, const struct homa_addr *to);

/* submit.c */
struct homa_svc_ring *homa_svc_my_ring(struct homa_svc *c);
/** homa_svc_begin() - lock a ring with room for an entry and @staged bytes; it may wait. */
int homa_svc_begin(struct homa_svc *c, u32 staged, struct homa_svc_ring **ring);
/** homa_svc_try_begin() - do the same, but -EAGAIN instead of waiting. */
int homa_svc_try_begin(struct homa_svc *c, u32 staged,
		       struct homa_svc_ring **ring);
/** homa_svc_entry() - return the entry to fill. */
struct homa_sqe *homa_svc_entry(struct homa_svc *c, struct homa_svc_ring *ring);
/** homa_svc_stage() - return where @bytes go; @offset gets their place in segment 0. */
u8 *homa_svc_stage(struct homa_svc *c, struct homa_svc_ring *ring, u32 bytes,
		   u32 *offset);
/** homa_svc_submit() - show the complete entry to homad, and unlock the ring. */
void homa_svc_submit(struct homa_svc *c, struct homa_svc_ring *ring);

#endif
