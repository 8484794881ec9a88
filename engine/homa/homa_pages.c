// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Pages for incoming messages. A message takes a page when the first byte of a 64 KiB
 * part arrives. One of several pages is begun only when all of them are free or promised
 * to nobody (homa_sock.owed), so that long messages do not stop half-way for each other;
 * else it waits, fewest bytes left first. A message that is shorter than all that wait
 * takes what is there, also pages that long ones were promised; then such a one may have
 * to wait in the middle. Who waits, and who gives back, is in homa_starve.c.
 */
#include "homa_impl.h"
#include "homa_pages.h"
#include "homa_share.h"

/* ---- what is free (sock lock) ---- */

/* Returns the number of pages that messages of several pages leave to those of one. */
static u32 homa_pool_kept(const struct homa_pool *pool)
{
	return pool->num_backed < 4 ? 0 : homa_max_u32(pool->num_backed / 8, 1);
}

const struct homa_heap_node *homa_sock_waits(const struct homa_sock *sock)
{
	const struct homa_heap_node *first = homa_heap_min(&sock->starving);

	return first && first->key < HOMA_SILENT ? first : NULL;
}

u64 homa_rpc_place(const struct homa_rpc *rpc)
{
	return homa_greedy(rpc->sock, rpc->peer, rpc->held) + rpc->in.length -
	       rpc->in.received;
}

/* The shortest message goes first: messages that wait for more bytes keep no free page from
 * it. */
bool homa_sock_may_take(const struct homa_sock *sock,
			const struct homa_peer *peer, u32 length)
{
	const struct homa_heap_node *first = homa_heap_min(&sock->starving);

	return !first ||
	       (peer ? homa_greedy(sock, peer, 0) : 0) + length < first->key;
}

bool homa_sock_short(const struct homa_sock *sock)
{
	return homa_sock_waits(sock) ||
	       sock->pool->num_free < sock->owed + homa_pool_kept(sock->pool);
}

/* Lets homa_rx_flush(), which holds no lock, look at @sock. */
static void homa_sock_hungry(struct homa_ctx *ctx, struct homa_sock *sock)
{
	if (ctx->hungry || ctx->now < sock->reclaim_at)
		return;
	homa_ref_get(&sock->refs);
	ctx->hungry = sock;
}

/* ---- pages of one message (sock lock) ---- */

bool homa_take_part(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 part,
		    u32 *page)
{
	struct homa_sock *sock = rpc->sock;
	u64 lease = ctx->engine->params.bpage_lease_us * 1000ull;
	u32 n, length = homa_min_u32(rpc->in.length - part * HOMA_BPAGE_SIZE,
				     HOMA_BPAGE_SIZE);

	if (homa_pool_alloc(sock->pool, ctx->now, lease, ctx->cpu, length, page,
			    &n))
		return false;
	if (rpc->owed) {
		rpc->owed--;
		sock->owed--;
	}
	return true;
}

bool homa_rpc_book(struct homa_rpc *rpc, u64 now)
{
	struct homa_sock *sock = rpc->sock;
	struct homa_pool *pool = sock->pool;
	u32 need = rpc->num_pages;

	if (need > 1) {
		/* If the socket has no message of several pages, this one may have all
		 * pages, and a slice of a page in use. */
		u32 want = sock->num_long ?
				   sock->owed + need + homa_pool_kept(pool) :
				   rpc->in.length >> HOMA_BPAGE_SHIFT;

		if (homa_pool_want(pool, want) < want)
			return false;
		sock->num_long++;
		sock->owed += need;
		rpc->owed = (u8)need;
	}
	rpc->held = (u8)need;
	rpc->held_at = now;
	homa_hold(pool, rpc->peer, need);
	homa_list_add_tail(&sock->holders, &rpc->holding);
	return true;
}

void homa_rpc_unqueue(struct homa_rpc *rpc)
{
	struct homa_sock *sock = rpc->sock;

	if (homa_heap_linked(&rpc->in.node))
		homa_heap_remove(&sock->starving, &rpc->in.node);
	if (!homa_list_linked(&rpc->holding))
		return;
	homa_list_del(&rpc->holding);
	homa_hold(sock->pool, rpc->peer, -(u32)rpc->held);
	rpc->held = 0;
	sock->owed -= rpc->owed;
	rpc->owed = 0;
	if (rpc->num_pages > 1)
		sock->num_long--;
}

void homa_rpc_pages_back(struct homa_rpc *rpc)
{
	u32 i;

	for (i = 0; i < rpc->num_pages; i++) {
		if (rpc->pages[i] == HOMA_NO_PAGE)
			continue;
		homa_pool_free(rpc->sock->pool, &rpc->pages[i], 1);
		rpc->pages[i] = HOMA_NO_PAGE;
	}
}

/* The node is also the grant scheduler's, so @rpc must not be there. */
void homa_rpc_starve(struct homa_rpc *rpc, u64 penalty)
{
	rpc->flags |= HOMA_RPC_NO_BUFFER;
	rpc->in.node.key = penalty + homa_rpc_place(rpc);
	rpc->in.node.tie = rpc->birth;
	homa_heap_insert(&rpc->sock->starving, &rpc->in.node);
}

/* Notes that parts @first to @last have pages, because the next bytes will likely belong
 * there. */
static void homa_rpc_placed(struct homa_rpc *rpc, u32 first, u32 last)
{
	rpc->placed_from = first << HOMA_BPAGE_SHIFT;
	rpc->placed_to = (last + 1) << HOMA_BPAGE_SHIFT;
}

void homa_rpc_displaced(struct homa_rpc *rpc)
{
	rpc->placed_from = 0;
	rpc->placed_to = 0;
}

/* Takes pages for the parts of bytes [@start, @end) that have none. */
static bool homa_take_parts(struct homa_ctx *ctx, struct homa_rpc *rpc,
			    u32 start, u32 end)
{
	u32 first = start >> HOMA_BPAGE_SHIFT;
	u32 last = (end - 1) >> HOMA_BPAGE_SHIFT;
	u32 i;

	for (i = first; i <= last; i++)
		if (rpc->pages[i] == HOMA_NO_PAGE &&
		    !homa_take_part(ctx, rpc, i, &rpc->pages[i]))
			return false;
	homa_rpc_placed(rpc, first, last);
	return true;
}

/* ---- a message begins, or goes on (shard locked) ---- */

/* Takes pages for a new message and the bytes of it that are here, or puts it into the
 * queue. */
static void homa_rpc_first_pages(struct homa_ctx *ctx, struct homa_rpc *rpc,
				 u32 start, u32 end)
{
	struct homa_sock *sock = rpc->sock;
	/* A message that has arrived in one packet keeps no page from others for long. */
	bool whole = end - start == rpc->in.length && rpc->num_pages == 1;
	bool found = homa_sock_may_take(sock, whole ? NULL : rpc->peer,
					rpc->in.length);

	if (found && !whole) {
		found = homa_rpc_book(rpc, ctx->now);
		if (found)
			rpc->flags |= HOMA_RPC_HOLDING;
	}
	if (found && homa_take_parts(ctx, rpc, start, end)) {
		rpc->flags |= HOMA_RPC_OWN_PAGES;
	} else {
		homa_rpc_pages_back(rpc);
		homa_rpc_displaced(rpc);
		homa_rpc_unqueue(rpc);
		rpc->flags &= (u8)~HOMA_RPC_HOLDING;
		homa_rpc_starve(rpc, 0);
	}
	if (homa_sock_short(sock))
		homa_sock_hungry(ctx, sock);
}

/* The usual case: all of the message is here, it fits the page that is in use, and nobody
 * waits for pages; sock locked. */
static HOMA_HOT bool homa_rpc_slice(struct homa_ctx *ctx, struct homa_rpc *rpc,
				    u32 start, u32 end)
{
	struct homa_sock *sock = rpc->sock;
	u64 lease = ctx->engine->params.bpage_lease_us * 1000ull;

	if (end - start != rpc->in.length || homa_heap_min(&sock->starving) ||
	    !homa_pool_slice(sock->pool, ctx->now, lease, ctx->cpu,
			     rpc->in.length, &rpc->pages[0]))
		return false;
	rpc->num_pages = 1;
	rpc->placed_to = HOMA_BPAGE_SIZE;
	rpc->flags |= HOMA_RPC_OWN_PAGES;
	if (homa_sock_short(sock))
		homa_sock_hungry(ctx, sock);
	return true;
}

/* Does what homa_rpc_find_pages() says where homa_rpc_slice() does not, once for each such
 * message; sock locked. */
static HOMA_RARE bool homa_rpc_find_several(struct homa_ctx *ctx,
					    struct homa_rpc *rpc, u32 start,
					    u32 end)
{
	u32 i, need = (rpc->in.length + HOMA_BPAGE_SIZE - 1) >> HOMA_BPAGE_SHIFT;

	if (need > homa_min_u32(HOMA_MAX_BPAGES, rpc->sock->pool->num_pages))
		return false;
	rpc->num_pages = (u8)need;
	for (i = 0; i < need; i++)
		rpc->pages[i] = HOMA_NO_PAGE;
	homa_rpc_first_pages(ctx, rpc, start, end);
	return true;
}

HOMA_HOT bool homa_rpc_find_pages(struct homa_ctx *ctx, struct homa_rpc *rpc,
				  u32 start, u32 end)
{
	struct homa_sock *sock = rpc->sock;
	bool ok;

	rpc->placed_from = 0;
	rpc->placed_to = 0xffffffff;
	if (!HOMA_READ_ONCE(sock->pool))
		return true;
	homa_rpc_displaced(rpc);
	homa_lock(&sock->lock);
	ok = likely(homa_rpc_slice(ctx, rpc, start, end)) ||
	     homa_rpc_find_several(ctx, rpc, start, end);
	homa_unlock(&sock->lock);
	return ok;
}

/* Do all parts of bytes [@start, @end) have pages already? */
static bool homa_rpc_has_parts(struct homa_rpc *rpc, u32 start, u32 end)
{
	u32 first = start >> HOMA_BPAGE_SHIFT;
	u32 last = (end - 1) >> HOMA_BPAGE_SHIFT;
	u32 i;

	for (i = first; i <= last; i++)
		if (rpc->pages[i] == HOMA_NO_PAGE)
			return false;
	homa_rpc_placed(rpc, first, last);
	return true;
}

bool homa_rpc_more_pages(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 start,
			 u32 end)
{
	struct homa_sock *sock = rpc->sock;
	bool ok;

	if (homa_rpc_has_parts(rpc, start, end))
		return true;
	if (rpc->flags & HOMA_RPC_NO_BUFFER) {
		homa_rpc_speaks(ctx, rpc);
		return false;
	}
	homa_lock(&sock->lock);
	ok = homa_take_parts(ctx, rpc, start, end);
	homa_list_del(&rpc->holding);
	homa_list_add_tail(&sock->holders, &rpc->holding);
	if (homa_sock_short(sock))
		homa_sock_hungry(ctx, sock);
	homa_unlock(&sock->lock);
	if (ok)
		return true;
	homa_count(ctx, HOMA_M_buffer_waits, 1);
	homa_grant_remove(ctx, rpc);
	homa_lock(&sock->lock);
	homa_rpc_starve(rpc, 0);
	homa_sock_hungry(ctx, sock);
	homa_unlock(&sock->lock);
	return false;
}

void homa_rpc_speaks(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	struct homa_heap_node *node = &rpc->in.node;
	struct homa_sock *sock = rpc->sock;
	u64 place;

	homa_lock(&sock->lock);
	place = homa_rpc_place(rpc);
	/* The place in the queue follows from what the message lacks now. The one that was
	 * promised pages may not stay behind a longer one, which waits for that promise. */
	if (homa_heap_linked(node) && node->key != place)
		homa_heap_update(&sock->starving, node, place, node->tie);
	homa_sock_hungry(ctx, sock);
	homa_unlock(&sock->lock);
}

void homa_rpc_complete(struct homa_rpc *rpc)
{
	struct homa_sock *sock = rpc->sock;

	homa_lock(&sock->lock);
	homa_rpc_unqueue(rpc);
	homa_unlock(&sock->lock);
	rpc->flags &= (u8)~HOMA_RPC_HOLDING;
}
