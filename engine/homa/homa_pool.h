/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Receive pages: where incoming messages go, 64 KiB pages of a region that the host has.
 * A message's last part may share a page with others.
 *
 * Guarded by: the sock lock, unless a field says otherwise.
 */
#ifndef HOMA_POOL_H
#define HOMA_POOL_H

#include "homa_ctx.h"

/* Numbers of rows, and of counters in each row, by which it is counted what peers hold; see
 * homa_share.h. */
#define HOMA_HOLDER_ROWS 3u
/* The proofs in tests/cbmc define smaller numbers. */
#ifndef HOMA_LEASES
#define HOMA_HOLDERS 256u
#define HOMA_LEASES 8u
#endif
/* Value in place of a page's offset that means that there is no page. */
#define HOMA_NO_PAGE 0xffffffffu

/*
 * struct homa_lease - a partly used page, from which short messages of one CPU take
 */
struct homa_lease {
	/* Time at which the lease is given up, in ns. */
	u64 until;
	/* Number of the page. */
	u32 page;
	/* Offset in the page before which its bytes are used; HOMA_BPAGE_SIZE: there is no
	 * page. */
	u32 used;
};

/*
 * struct homa_pool - the pages of a socket's region
 */
struct homa_pool {
	/* Number of pages of the region; constant. */
	u32 num_pages;
	/* Number of pages at the beginning of the region that have memory and are given
	 * to messages; the others have none now. Written under the sock lock, read
	 * without it. */
	u32 num_backed;
	/* Number of free pages, which is the number of entries of @free that are used.
	 * Written under the sock lock, read without it. */
	u32 num_free;
	/* Leases, one for each CPU slot. */
	struct homa_lease lease[HOMA_LEASES];
	/* A bit for each 64 bytes of the region, which is set if a part of a message begins
	 * there that the application has or will get. */
	u64 *out;
	/* Stack of the numbers of free pages. */
	u32 *free;
	/* For each page the number of messages in it, and one more while it is leased. */
	u16 *refs;
	/* Pages that incomplete messages have or were promised, by peer. */
	u32 held_by[HOMA_HOLDER_ROWS][HOMA_HOLDERS];
};

void homa_pool_init(struct homa_pool *pool, u32 pages);
/* Sets the number of pages that are given to messages to @pages; a page in use, and all
 * before it, stay. Returns the number in force. */
u32 homa_pool_limit(struct homa_pool *pool, u32 pages);
/* Takes pages for a message of @length bytes; 0, or -ENOBUFS with nothing taken. */
int homa_pool_alloc(struct homa_pool *pool, u64 now, u64 lease_ns, u32 cpu,
		    u32 length, u32 *pages, u32 *num_pages);
/* Takes a slice of the leased page for a message of @length bytes, which is not 0; false:
 * nothing was taken, and homa_pool_alloc() may find more. */
HOMA_HOT bool homa_pool_slice(struct homa_pool *pool, u64 now, u64 lease_ns,
			      u32 cpu, u32 length, u32 *page);
/* Tries to have @pages free pages by ending leases; returns the number of free pages. */
u32 homa_pool_want(struct homa_pool *pool, u32 pages);
/* Takes pages back from the application; -EINVAL, and nothing is changed, for an offset
 * that it does not have. */
HOMA_HOT int homa_pool_free(struct homa_pool *pool, const u32 *pages, u32 num);

#endif
