/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Receive pages: where incoming messages go, 64 KiB pages of a region that the host has.
 * A message's last part may share a page with others. All under the sock lock.
 */
#ifndef HOMA_POOL_H
#define HOMA_POOL_H

#include "homa_ctx.h"

/* What peers hold is counted in so many rows of so many counters; see homa_share.h. */
#define HOMA_HOLDER_ROWS 3u
/* tests/cbmc has fewer of these. */
#ifndef HOMA_LEASES
#define HOMA_HOLDERS 256u
#define HOMA_LEASES 8u
#endif
/* Stands in the place of a page's offset: there is none. */
#define HOMA_NO_PAGE 0xffffffffu

/*
 * struct homa_lease - a partly used page, from which short messages of one CPU take
 */
struct homa_lease {
	/* It is given up at this time, ns. */
	u64 until;
	/* The page's number. */
	u32 page;
	/* Its bytes before this are in use; HOMA_BPAGE_SIZE: there is no page. */
	u32 used;
};

/*
 * struct homa_pool - the pages of a socket's region
 */
struct homa_pool {
	/* The region has so many pages; constant. */
	u32 num_pages;
	/* So many of them, the first ones, are given to messages; the others have no memory
	 * behind them now. Written under the sock lock, read by anyone. */
	u32 num_backed;
	/* So many of those are free: the first of @free. Written under the sock lock, read by
	 * anyone. */
	u32 num_free;
	/* One for each CPU slot. */
	struct homa_lease lease[HOMA_LEASES];
	/* A bit for each 64 bytes of the region: a part of a message that the application
	 * has, or will get, begins there. */
	u64 *out;
	/* A stack of the free pages' numbers. */
	u32 *free;
	/* For each page, how many messages are in it, and one more while it is leased. */
	u16 *refs;
	/* Pages that incomplete messages have or were promised, by peer. */
	u32 held_by[HOMA_HOLDER_ROWS][HOMA_HOLDERS];
};

void homa_pool_init(struct homa_pool *pool, u32 pages);
/* Only the first @pages are given to messages; a page in use, and all before it, stay.
 * Returns how many it is now. */
u32 homa_pool_limit(struct homa_pool *pool, u32 pages);
/* Pages for a message of @length; 0 or -ENOBUFS with nothing taken. */
int homa_pool_alloc(struct homa_pool *pool, u64 now, u64 lease_ns, u32 cpu,
		    u32 length, u32 *pages, u32 *num_pages);
/* Has @pages free if that can be; returns how many are. */
u32 homa_pool_want(struct homa_pool *pool, u32 pages);
/* Returns pages; -EINVAL for an offset that is not out (nothing changed). */
int homa_pool_free(struct homa_pool *pool, const u32 *pages, u32 num);

#endif
