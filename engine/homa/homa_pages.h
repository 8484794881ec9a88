/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * How messages take pages (homa_pages.c), and the queue of those that wait for some,
 * which homa_starve.c works off.
 */
#ifndef HOMA_PAGES_H
#define HOMA_PAGES_H

#include "homa_rpc.h"

/* Finds pages for a new message whose bytes [@start, @end) are here, or puts it into the
 * socket's queue; homa_grantee.length is set, shard locked. False: it is too long for
 * the region. */
HOMA_HOT bool homa_rpc_find_pages(struct homa_ctx *ctx, struct homa_rpc *rpc,
				  u32 start, u32 end);
/* Finds pages for its bytes [@start, @end), of which homa_rpc_lacks() says that they may
 * have none; shard locked. False: the message waits for some. */
bool homa_rpc_more_pages(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 start,
			 u32 end);

/* May bytes [@start, @end) of an incoming message be without a page? */
static inline bool homa_rpc_lacks(const struct homa_rpc *rpc, u32 start, u32 end)
{
	return start < rpc->placed_from || end > rpc->placed_to;
}

/* Notes that the sender of a message that waits for pages was heard, or that more of the
 * message came where it has pages; shard locked. */
void homa_rpc_speaks(struct homa_ctx *ctx, struct homa_rpc *rpc);
/* Ends HOMA_RPC_HOLDING of a message that is complete or over for another reason; shard
 * locked. */
void homa_rpc_complete(struct homa_rpc *rpc);
/* Removes the message from the queue for pages and takes its promised pages back; sock lock
 * held, not in the grant scheduler. */
void homa_rpc_unqueue(struct homa_rpc *rpc);
/* Returns the pages of the message to the pool; sock lock held. */
void homa_rpc_pages_back(struct homa_rpc *rpc);
/* May a message of @length bytes from @peer (NULL: from this host) take pages before those
 * that wait? Sock lock held. */
bool homa_sock_may_take(const struct homa_sock *sock,
			const struct homa_peer *peer, u32 length);

/* ---- the queue; sock lock ---- */

/* This bit of a key puts messages whose sender is silent behind all others. */
#define HOMA_SILENT (1ull << 32)

/* The first message of the queue whose sender is not silent; NULL: there is none. */
const struct homa_heap_node *homa_sock_waits(const struct homa_sock *sock);
/* Key of @rpc in the queue by the bytes that it lacks. */
u64 homa_rpc_place(const struct homa_rpc *rpc);
/* Are pages short? They are if a message waits, or fewer are free than were promised. */
bool homa_sock_short(const struct homa_sock *sock);
/* Takes a page, or a slice of one, for part @part (of 64 KiB) of a message; false: there is
 * none. */
bool homa_take_part(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 part,
		    u32 *page);
/* Promises @rpc the pages of its message; false: not enough are free. */
bool homa_rpc_book(struct homa_rpc *rpc, u64 now);
/* Puts @rpc, which is not in the grant scheduler, into the queue; @penalty is added to its
 * key. Shard locked as well. */
void homa_rpc_starve(struct homa_rpc *rpc, u64 penalty);
/* Forgets which bytes of @rpc are known to have pages; shard locked. */
void homa_rpc_displaced(struct homa_rpc *rpc);

#endif
