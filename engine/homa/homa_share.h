/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A peer's share of a region's pages. A peer whose other incomplete messages hold, or
 * were promised, more than a quarter of them is greedy: while pages are short a message
 * of it waits behind those of others, and gives its pages back for them, however it
 * goes on. See homa_starve.c.
 */
#ifndef HOMA_SHARE_H
#define HOMA_SHARE_H

#include "homa_rpc.h"

/* This bit in the key of a waiting message puts it behind all messages without it. */
#define HOMA_GREEDY (1ull << 31)
/* A peer is greedy if it holds more than one in HOMA_SHARE pages. */
#define HOMA_SHARE 4u

/*
 * What peers hold is counted in rows of counters, in each by other bits of the peer's
 * keyed hash; the least of a peer's counters is what it holds, unless somebody shares
 * all of them. No more than four of a row are above the share at a time, so that is one
 * peer in 262,144.
 */
/* The counter of @peer in row @row, in pages. */
static inline u32 *homa_held_by(struct homa_pool *pool,
				const struct homa_peer *peer, u32 row)
{
	return &pool->held_by[row][(u32)(peer->key >> 8 * row) % HOMA_HOLDERS];
}

/* Counts @pages more for @peer; negative numbers wrap. Sock lock held. */
static inline void homa_hold(struct homa_pool *pool,
			     const struct homa_peer *peer, u32 pages)
{
	u32 row;

	for (row = 0; row < HOMA_HOLDER_ROWS; row++) {
		u32 *held = homa_held_by(pool, peer, row);

		HOMA_WRITE_ONCE(*held, *held + pages);
	}
}

/* Returns HOMA_GREEDY if @peer holds more than its share, the message in question with its
 * @own pages not counted; else 0. */
static inline u64 homa_greedy(const struct homa_sock *sock,
			      const struct homa_peer *peer, u32 own)
{
	u32 row, held = 0xffffffff;

	for (row = 0; row < HOMA_HOLDER_ROWS; row++)
		held = homa_min_u32(held,
				    HOMA_READ_ONCE(*homa_held_by(sock->pool,
								 peer, row)));
	return (u64)(held - homa_min_u32(own, held)) * HOMA_SHARE >
			       HOMA_READ_ONCE(sock->pool->num_backed) ?
		       HOMA_GREEDY :
		       0;
}

#endif
