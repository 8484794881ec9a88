// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Messages and receive pages. A message takes a page when the first byte of a
 * 64 KiB part arrives. One of several pages is begun only when all of them are
 * free or promised to nobody (homa_sock.owed), so that long messages do not stop
 * half-way for each other; else it waits, fewest bytes left first. A message
 * that is shorter than all that wait takes what is there, also pages that long
 * ones were promised; then such a one may have to wait in the middle.
 *
 * Pages belong to those who send. While pages are short, messages of which
 * nothing came for a while give back all they have and start over later. Those
 * whose senders owe us bytes are not asked again before they speak; others give
 * back for the sake of a shorter one. They are found by a clock: a list of
 * incomplete messages, of which a few are looked at.
 */
#include "homa_busy.h"
#include "homa_share.h"

#define HOMA_SILENT	 (1ull << 32)	/* in a key: behind all who are not */
#define HOMA_CLOCK_STEPS 16u		/* messages looked at in a turn */
#define HOMA_CLOCK_NS	 300000u	/* until the next turn, if one was in vain */

/* ---- what is free (sock lock) ---- */

/* Pages that messages of several pages leave to those of one. */
static u32 homa_pool_kept(const struct homa_pool *pool)
{
	return pool->num_pages < 4 ? 0 : homa_max_u32(pool->num_pages / 8, 1);
}

/* Somebody waits who is not silent. */
static const struct homa_heap_node *homa_sock_waits(const struct homa_sock *sock)
{
	const struct homa_heap_node *first = homa_heap_min(&sock->starving);

	return first && first->key < HOMA_SILENT ? first : NULL;
}

/* The place in the queue that @rpc has by what it lacks. */
static u64 homa_rpc_place(const struct homa_rpc *rpc)
{
	return homa_greedy(rpc->sock, rpc->peer, rpc->held) + rpc->in.length -
	       rpc->in.received;
}

/* Shortest first: those that wait for more keep it from nothing that is there. */
bool homa_sock_may_take(const struct homa_sock *sock, const struct homa_peer *peer,
			u32 length)
{
	const struct homa_heap_node *first = homa_heap_min(&sock->starving);

	return !first || (peer ? homa_greedy(sock, peer, 0) : 0) + length < first->key;
}

static bool homa_sock_short(const struct homa_sock *sock)
{
	return homa_sock_waits(sock) ||
	       sock->pool->num_free < sock->owed + homa_pool_kept(sock->pool);
}

/* Have @sock looked at in homa_rx_flush(), where no lock is held. */
static void homa_sock_hungry(struct homa_ctx *ctx, struct homa_sock *sock)
{
	if (ctx->hungry || ctx->now < sock->reclaim_at)
		return;
	homa_ref_get(&sock->refs);
	ctx->hungry = sock;
}

/* ---- pages of one message (sock lock) ---- */

/* A page, or a slice of one, for 64 KiB part @part of a message. */
static bool homa_take_part(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 part,
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

/* Promise @rpc the pages of its message; false: there are not so many. */
static bool homa_rpc_book(struct homa_rpc *rpc, u64 now)
{
	struct homa_sock *sock = rpc->sock;
	struct homa_pool *pool = sock->pool;
	u32 need = rpc->num_pages;

	if (need > 1) {
		/* Alone it may have all, and a slice of a page in use. */
		u32 want = sock->num_long ? sock->owed + need + homa_pool_kept(pool) :
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

/* Also shard locked; not in the grant scheduler, whose node this is as well. */
static void homa_rpc_starve(struct homa_rpc *rpc, u64 penalty)
{
	rpc->flags |= HOMA_RPC_NO_BUFFER;
	rpc->in.node.key = penalty + homa_rpc_place(rpc);
	rpc->in.node.tie = rpc->birth;
	homa_heap_insert(&rpc->sock->starving, &rpc->in.node);
}

/* Parts @first to @last have pages, and are what comes next in all likelihood. */
static void homa_rpc_placed(struct homa_rpc *rpc, u32 first, u32 last)
{
	rpc->placed_from = first << HOMA_BPAGE_SHIFT;
	rpc->placed_to = (last + 1) << HOMA_BPAGE_SHIFT;
}

static void homa_rpc_displaced(struct homa_rpc *rpc)
{
	rpc->placed_from = 0;
	rpc->placed_to = 0;
}

/* Pages for the parts of bytes [@start, @end) that have none. */
static bool homa_take_parts(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 start,
			    u32 end)
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

/* Pages for a new message and the bytes of it that are here, or a place in the queue. */
static void homa_rpc_first_pages(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 start,
				 u32 end)
{
	struct homa_sock *sock = rpc->sock;
	bool whole = end - start == rpc->in.length;
	bool found = homa_sock_may_take(sock, rpc->peer, rpc->in.length);

	/* One that is here in one packet holds nothing for others to wait for. */
	if (found && !(whole && rpc->num_pages == 1)) {
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

bool homa_rpc_find_pages(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 start,
			 u32 end)
{
	struct homa_sock *sock = rpc->sock;
	u32 i, need = (rpc->in.length + HOMA_BPAGE_SIZE - 1) >> HOMA_BPAGE_SHIFT;
	bool ok;

	rpc->placed_from = 0;
	rpc->placed_to = 0xffffffff;
	if (!HOMA_READ_ONCE(sock->pool))
		return true;
	homa_rpc_displaced(rpc);
	homa_lock(&sock->lock);
	ok = need <= homa_min_u32(HOMA_MAX_BPAGES, sock->pool->num_pages);
	if (ok) {
		rpc->num_pages = (u8)need;
		for (i = 0; i < need; i++)
			rpc->pages[i] = HOMA_NO_PAGE;
		homa_rpc_first_pages(ctx, rpc, start, end);
	}
	homa_unlock(&sock->lock);
	return ok;
}

/* All parts of bytes [@start, @end) have pages already. */
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

bool homa_rpc_more_pages(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 start, u32 end)
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
	/*
	 * Its place is that of what it lacks now. The one that was promised pages may
	 * not stay behind a longer one, which waits for that promise.
	 */
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

/* ---- how long they wait ---- */

/*
 * A request that waits here for pages is its client's to ask about: it had no
 * response. A client with many of them at us asks in turn (homa_busy.c), so one
 * that speaks gets the time for two turns.
 */
u64 homa_starving_until(const struct homa_rpc *rpc)
{
	const struct homa_derived *d = &rpc->link->derived;
	const struct homa_peer *peer = rpc->peer;
	u64 timeout = HOMA_READ_ONCE(d->timeout_ns);
	u64 until = rpc->heard_at + timeout;

	if (HOMA_READ_ONCE(peer->heard_at) <= rpc->heard_at)
		return until;
	return homa_min_u64(HOMA_READ_ONCE(peer->heard_at) + timeout,
			    until + 2 * homa_busy_round(HOMA_READ_ONCE(peer->server_rpcs),
							HOMA_READ_ONCE(d->resend_ns)));
}

/* ---- pages came back ---- */

/*
 * struct homa_feed - a message that waited and now has a page
 * @rpc: it; a reference is the caller's.
 * @part, @page: the first page that it lacked.
 */
struct homa_feed {
	struct homa_rpc *rpc;
	u32 part;
	u32 page;
};

/* The first page that @rpc lacks, and a promise of the others. Sock locked. */
static bool homa_feed_take(struct homa_ctx *ctx, struct homa_feed *feed)
{
	struct homa_rpc *rpc = feed->rpc;
	bool held = homa_list_linked(&rpc->holding);

	if (!held && !homa_rpc_book(rpc, ctx->now))
		return false;
	feed->part = 0;
	while (rpc->pages[feed->part] != HOMA_NO_PAGE)
		feed->part++;
	homa_heap_remove(&rpc->sock->starving, &rpc->in.node);
	if (homa_take_part(ctx, rpc, feed->part, &feed->page))
		return true;
	if (!held)
		homa_rpc_unqueue(rpc);
	homa_heap_insert(&rpc->sock->starving, &rpc->in.node);
	return false;
}

/* The message that waits with the fewest bytes left gets a page, if there is one. */
static bool homa_sock_feed_one(struct homa_ctx *ctx, struct homa_sock *sock,
			       struct homa_feed *feed)
{
	const struct homa_heap_node *node;
	bool fed = false;

	homa_lock(&sock->lock);
	node = homa_sock_waits(sock);
	if (node) {
		feed->rpc = homa_container_of(node, struct homa_rpc, in.node);
		fed = homa_feed_take(ctx, feed);
		if (fed)
			homa_ref_get(&feed->rpc->refs);
	}
	homa_unlock(&sock->lock);
	return fed;
}

/*
 * A message that waited goes on. If it has nothing it asks for as much as could
 * have come unscheduled. Requests and responses alike, else responses, whose
 * senders hold grants, would starve requests.
 */
static void homa_rpc_fed(struct homa_ctx *ctx, const struct homa_feed *feed)
{
	u32 top = ctx->engine->params.num_priorities - 1;
	u8 level = (u8)(top ? top - 1 : 0);
	struct homa_rpc *rpc = feed->rpc;
	struct homa_ctrl *ctrl;

	homa_lock(&rpc->shard->lock);
	rpc->pages[feed->part] = feed->page;
	rpc->flags |= HOMA_RPC_OWN_PAGES | HOMA_RPC_HOLDING;
	if (rpc->state == HOMA_RPC_INCOMING) {
		rpc->flags &= (u8)~HOMA_RPC_NO_BUFFER;
		rpc->heard_at = ctx->now;
		rpc->fresh_at = ctx->now;
		rpc->probes = 0;
		if (rpc->in.received) {
			homa_resend_missing(ctx, rpc, 0xffffffff, level);
		} else {
			HOMA_WRITE_ONCE(rpc->in.granted,
					homa_min_u32(rpc->in.length, HOMA_READ_ONCE(
						rpc->link->derived.rtt_bytes)));
			ctrl = homa_ctrl_rpc(ctx, rpc, HOMA_RESEND);
			ctrl->offset = 0;
			ctrl->length = rpc->in.granted;
			ctrl->priority = level;
		}
		homa_grant_add(ctx, rpc);
		homa_rpc_arm(rpc, ctx->now +
			     HOMA_READ_ONCE(rpc->link->derived.resend_ns));
	}
	homa_unlock(&rpc->shard->lock);
	homa_rpc_put(ctx, rpc);
}

/* ---- giving back ---- */

/*
 * How long may a sender that owes us bytes be silent while pages are short, ns? One
 * that has sent all that it may send unasked gets the time in which it is asked once
 * and answers; who sent one packet of that gets little more than it took.
 */
static u64 homa_patience(const struct homa_rpc *rpc, u64 resend_ns)
{
	u32 first = homa_min_u32(rpc->in.length,
				 HOMA_READ_ONCE(rpc->link->derived.rtt_bytes));
	u32 got = homa_min_u32(rpc->in.received, first);

	return resend_ns / 8 + homa_div64(resend_ns * 3 / 2 * got, first);
}

/*
 * May @rpc's pages be had? @shortest: the key of who waits first, 0: nobody does. What
 * is being copied now keeps them; nothing else is written there. Shard locked.
 */
static bool homa_rpc_idle(const struct homa_ctx *ctx, const struct homa_rpc *rpc,
			  u64 shortest, u64 *penalty)
{
	u64 resend_ns = HOMA_READ_ONCE(rpc->link->derived.resend_ns);
	u64 silence = homa_since(ctx->now, rpc->fresh_at);
	const struct homa_grantee *in = &rpc->in;
	u64 place;

	if (rpc->state != HOMA_RPC_INCOMING || !(rpc->flags & HOMA_RPC_HOLDING) ||
	    rpc->copied != in->received)
		return false;
	place = homa_rpc_place(rpc);
	*penalty = 0;
	/* As it was queued, or one could wait for the other for ever. */
	if (rpc->flags & HOMA_RPC_NO_BUFFER)
		return shortest && in->node.key > shortest && silence >= resend_ns / 2;
	if (place >= HOMA_GREEDY && shortest && shortest < HOMA_GREEDY &&
	    homa_since(ctx->now, rpc->held_at) >= resend_ns / 2)
		return true;
	if (HOMA_READ_ONCE(in->granted) > in->received) {
		*penalty = HOMA_SILENT;
		return silence >= homa_patience(rpc, resend_ns);
	}
	return shortest && place > shortest &&
	       silence >= resend_ns / 2;
}

/* All of @rpc's pages, and what came of it is forgotten. Shard locked. */
static bool homa_rpc_give_back(struct homa_ctx *ctx, struct homa_rpc *rpc, u64 penalty)
{
	struct homa_grantee *in = &rpc->in;
	struct homa_sock *sock = rpc->sock;

	if (!(rpc->flags & HOMA_RPC_NO_BUFFER))
		homa_grant_remove(ctx, rpc);
	homa_lock(&sock->lock);
	/* Somebody feeds it at this moment. */
	if (rpc->flags & HOMA_RPC_NO_BUFFER && !homa_heap_linked(&in->node)) {
		homa_unlock(&sock->lock);
		return false;
	}
	homa_rpc_unqueue(rpc);
	homa_rpc_pages_back(rpc);
	homa_rpc_displaced(rpc);
	HOMA_WRITE_ONCE(in->received, 0);
	homa_rpc_starve(rpc, penalty);
	homa_unlock(&sock->lock);
	rpc->flags &= 0xff ^ (HOMA_RPC_HOLDING | HOMA_RPC_OWN_PAGES);
	homa_rpc_gaps_back(ctx, rpc);
	homa_ranges_init(&rpc->ranges);
	rpc->copied = 0;
	rpc->repaired_to = 0;
	in->again = homa_max_u32(in->again, in->granted);
	HOMA_WRITE_ONCE(in->granted, 0);
	HOMA_WRITE_ONCE(in->in_order, 0);
	in->low_until = 0;
	in->low_level = 0;
	in->wire_prio = 0;
	homa_count(ctx, HOMA_M_buffers_given_back, 1);
	return true;
}

/* The message that the clock's hand stands at, NULL: none, or pages are not short. */
static struct homa_rpc *homa_clock_next(struct homa_sock *sock, u64 *shortest)
{
	const struct homa_heap_node *first;
	struct homa_list *node = NULL;
	struct homa_rpc *rpc = NULL;

	homa_lock(&sock->lock);
	if (sock->pool && homa_sock_short(sock))
		node = homa_list_first(&sock->holders);
	if (node) {
		rpc = homa_container_of(node, struct homa_rpc, holding);
		homa_ref_get(&rpc->refs);
		homa_list_del(node);
		homa_list_add_tail(&sock->holders, node);
		first = homa_sock_waits(sock);
		*shortest = first ? first->key : 0;
	}
	homa_unlock(&sock->lock);
	return rpc;
}

/* Look at a few messages until one gives its pages back; false: none did. */
static bool homa_sock_reclaim(struct homa_ctx *ctx, struct homa_sock *sock, u32 *steps)
{
	const struct homa_rpc *first = NULL;
	struct homa_rpc *rpc;
	u64 shortest, penalty;
	bool round, gave;

	while (*steps && (rpc = homa_clock_next(sock, &shortest))) {
		(*steps)--;
		round = rpc == first;
		if (!first)
			first = rpc;
		homa_lock(&rpc->shard->lock);
		gave = !round && homa_rpc_idle(ctx, rpc, shortest, &penalty) &&
		       homa_rpc_give_back(ctx, rpc, penalty);
		homa_unlock(&rpc->shard->lock);
		homa_rpc_put(ctx, rpc);
		if (gave)
			return true;
		if (round)
			break;
	}
	if (first) {
		homa_lock(&sock->lock);
		sock->reclaim_at = ctx->now + HOMA_CLOCK_NS;
		homa_unlock(&sock->lock);
	}
	return false;
}

void homa_sock_feed(struct homa_ctx *ctx, struct homa_sock *sock)
{
	u32 steps = HOMA_CLOCK_STEPS;
	struct homa_feed feed;

	do {
		while (homa_sock_feed_one(ctx, sock, &feed))
			homa_rpc_fed(ctx, &feed);
	} while (homa_sock_reclaim(ctx, sock, &steps));
}

void homa_hungry_feed(struct homa_ctx *ctx)
{
	struct homa_sock *sock = ctx->hungry;

	ctx->hungry = NULL;
	homa_sock_feed(ctx, sock);
	homa_sock_put(sock);
}
