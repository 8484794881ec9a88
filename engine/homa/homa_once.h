/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Requests that ran already: what homa_once.c keeps of them.
 */
#ifndef HOMA_ONCE_H
#define HOMA_ONCE_H

#include "homa_ctx.h"
#include "homa_list.h"

#define HOMA_ONCE_IDS 128u /* number of ids that one block remembers */
#define HOMA_ONCE_STRIPES \
	16u /* number of parts of the table, each with a lock */
#define HOMA_ONCE_SHARES \
	64u /* number of groups of client addresses in a stripe */

/*
 * struct homa_once - HOMA_ONCE_IDS ids in a row of one client
 *
 * Guarded by: the lock of the stripe that the block is in.
 */
struct homa_once {
	/* Next block of the hash bucket. */
	struct homa_once *next;
	/* Links the block into homa_once_stripe.idle while @open is 0. */
	struct homa_list idle;
	/* Hash of the client's address and of the ids. */
	u64 key;
	/* A bit for each id, which is set once its request has begun. */
	u64 bits[HOMA_ONCE_IDS / 64];
	/* Time at which the block expires, in ms; valid while @open is 0. */
	u32 until_ms;
	/* Number of RPCs with these ids that have not ended. */
	u16 open;
	/* Index of the element of homa_once_stripe.shares that counts the block. */
	u16 share;
};
HOMA_STATIC_ASSERT(sizeof(struct homa_once) <= HOMA_RECORD_SIZE,
		   "made of a spare record");

/*
 * struct homa_once_stripe - a part of what is remembered
 *
 * Guarded by: @lock.
 */
struct homa_once_stripe {
	/* The lock of the stripe and of its blocks. */
	struct homa_lock lock;
	/* Blocks whose RPCs have all ended, the first to expire first. */
	struct homa_list idle;
	/* Hash buckets, @mask + 1 of them, each a list of blocks by homa_once.next. */
	struct homa_once **buckets;
	/* Number of buckets less 1, which is a bit mask; constant. */
	u32 mask;
	/* Number of blocks of each group of client addresses. */
	u32 shares[HOMA_ONCE_SHARES];
};

size_t homa_once_bytes(const struct homa_limits *limits);
void homa_once_init(struct homa_engine *engine, void *mem);
/* Notes that @peer's request @id begins; @whole: its first packet is its only one. Returns
 * 0 and sets *begun, which may be NULL and is for homa_once_end(); else the counter (enum
 * homa_metric) of the reason why the request must not run: it ran already, or there is no
 * memory. */
HOMA_HOT u16 homa_once_begin(struct homa_ctx *ctx, const struct homa_link *link,
			     const struct homa_peer *peer, u64 id, bool whole,
			     struct homa_once **begun);
/* Notes that @peer's request @id has ended. If @executed, copies of it are refused until
 * the block that remembers it expires; else a copy may run. */
HOMA_HOT void homa_once_end(struct homa_ctx *ctx, const struct homa_link *link,
			    const struct homa_peer *peer, u64 id,
			    struct homa_once *once, bool executed);
/* Makes at most @budget expired blocks of each stripe spare memory. */
void homa_once_collect(struct homa_ctx *ctx, u32 budget);
/* Makes at most @budget blocks spare memory, expired or not; returns what is left of
 * @budget. */
u32 homa_once_drain(struct homa_ctx *ctx, u32 budget);

#endif
