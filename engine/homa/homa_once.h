/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Requests that ran already: what homa_once.c keeps of them.
 */
#ifndef HOMA_ONCE_H
#define HOMA_ONCE_H

#include "homa_ctx.h"
#include "homa_list.h"

#define HOMA_ONCE_IDS 128u    /* ids that one block remembers */
#define HOMA_ONCE_STRIPES 16u /* parts, each with a lock */
#define HOMA_ONCE_SHARES 64u  /* groups of addresses in a stripe */

/*
 * struct homa_once - HOMA_ONCE_IDS ids in a row of one client; stripe lock
 */
struct homa_once {
	/* The next one of its bucket. */
	struct homa_once *next;
	/* Links it into the stripe's list while @open is 0, the first to expire first. */
	struct homa_list idle;
	/* The hash of the client's address and of the ids. */
	u64 key;
	/* A bit for each id: its request has begun. */
	u64 bits[HOMA_ONCE_IDS / 64];
	/* It expires at this time, ms, while @open is 0. */
	u32 until_ms;
	/* So many RPCs of these ids have not ended. */
	u16 open;
	/* It is counted in this element of homa_once_stripe.shares. */
	u16 share;
};
HOMA_STATIC_ASSERT(sizeof(struct homa_once) <= HOMA_RECORD_SIZE,
		   "made of a spare record");

/*
 * struct homa_once_stripe - a part of what is remembered
 */
struct homa_once_stripe {
	struct homa_lock lock;
	/* Those that nobody uses, the first to expire first. */
	struct homa_list idle;
	struct homa_once **buckets;
	/* There are @mask + 1 buckets; constant. */
	u32 mask;
	/* So many belong to each group of addresses. */
	u32 shares[HOMA_ONCE_SHARES];
};

size_t homa_once_bytes(const struct homa_limits *limits);
void homa_once_init(struct homa_engine *engine, void *mem);
/* @peer's request @id begins, with its only packet if it is @whole. 0, and *begun, which
 * may be NULL, is for homa_once_end(); else why it must not: it ran, or no memory. */
u16 homa_once_begin(struct homa_ctx *ctx, const struct homa_link *link,
		    const struct homa_peer *peer, u64 id, bool whole,
		    struct homa_once **begun);
/* @peer's request @id has ended. If @executed, copies of it are refused until what is
 * remembered of it expires; else a copy may run. */
void homa_once_end(struct homa_ctx *ctx, const struct homa_link *link,
		   const struct homa_peer *peer, u64 id, struct homa_once *once,
		   bool executed);
/* What has expired becomes spare: at most @budget blocks of each stripe. */
void homa_once_collect(struct homa_ctx *ctx, u32 budget);
/* At most @budget blocks become spare, expired or not; what is left of @budget. */
u32 homa_once_drain(struct homa_ctx *ctx, u32 budget);

#endif
