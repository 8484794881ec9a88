// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Messages that wait for pages: how pages that came back are given to them, and who
 * gives back when too few do. How a message takes pages is in homa_pages.c.
 *
 * Pages belong to those who send. While pages are short, messages of which
 * nothing came for a while give back all they have and start over later. Those
 * whose senders owe us bytes are not asked again before they speak; others give
 * back for the sake of a shorter one. They are found by a clock: a list of
 * incomplete messages, of which a few are looked at.
 */
#include "homa_busy.h"
#include "homa_ctrl.h"
#include "homa_impl.h"
#include "homa_pages.h"
#include "homa_repair.h"
#include "homa_share.h"
#include "homa_starve.h"

#define HOMA_CLOCK_STEPS 16u /* most messages that one turn looks at */
/* time after a turn in vain before the next one, in ns */
#define HOMA_CLOCK_NS 300000u

/* ---- how long they wait ---- */

/*
 * Returns until when a message may wait for pages, in ns. A client must ask about a request
 * of its own that waits here for pages, as it had no response. A client with many of them
 * at us asks in turn (homa_busy.c), so one that speaks gets the time for two turns.
 */
u64 homa_starving_until(const struct homa_rpc *rpc)
{
	const struct homa_derived *d = &rpc->link->derived;
	const struct homa_peer *peer = rpc->peer;
	u64 timeout = HOMA_READ_ONCE(d->timeout_ns);
	u64 until = rpc->heard_at + timeout;

	if (HOMA_READ_ONCE(peer->heard_at) <= rpc->heard_at)
		return until;
	return homa_min_u64(
		HOMA_READ_ONCE(peer->heard_at) + timeout,
		until + 2 * homa_busy_round(HOMA_READ_ONCE(peer->server_rpcs),
					    HOMA_READ_ONCE(d->resend_ns)));
}

/* ---- pages came back ---- */

/*
 * struct homa_feed - a message that waited and now has a page
 * @rpc: RPC of the message; the caller has a reference.
 * @part: number of the first 64 KiB part that lacked a page.
 * @page: the page that this part gets.
 */
struct homa_feed {
	struct homa_rpc *rpc;
	u32 part;
	u32 page;
};

/* Takes the first page that feed->rpc lacks, and has the others promised to it. Sock
 * locked. */
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

/* Gives a page to the message that waits with the fewest bytes left; false: there is
 * none. */
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
 * Continues a message that waited and has pages now. If nothing of it is here, as much is
 * asked for as could have come unscheduled. This holds for requests and responses alike,
 * else responses, whose senders hold grants, would starve requests.
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
			homa_resend_missing(ctx, rpc, 0xffffffff,
					    HOMA_MAX_GAPS_ASKED, level);
		} else {
			HOMA_WRITE_ONCE(rpc->in.granted,
					homa_min_u32(rpc->in.length,
						     HOMA_READ_ONCE(
							     rpc->link->derived
								     .rtt_bytes)));
			ctrl = homa_ctrl_rpc(ctx, rpc, HOMA_RESEND);
			ctrl->offset = 0;
			ctrl->length = rpc->in.granted;
			ctrl->priority = level;
		}
		homa_grant_add(ctx, rpc);
		homa_rpc_arm(rpc,
			     ctx->now + HOMA_READ_ONCE(
						rpc->link->derived.resend_ns));
	}
	homa_unlock(&rpc->shard->lock);
	homa_rpc_put(ctx, rpc);
}

/* ---- giving back ---- */

/*
 * Returns how long a sender that owes us bytes may be silent while pages are short, in ns.
 * A sender that has sent all that it may without a grant gets the time in which it is asked
 * once and answers; one that has sent one packet of that gets little more than the packet
 * took.
 */
static u64 homa_patience(const struct homa_rpc *rpc, u64 resend_ns)
{
	u32 first = homa_min_u32(rpc->in.length,
				 HOMA_READ_ONCE(rpc->link->derived.rtt_bytes));
	u32 got = homa_min_u32(rpc->in.received, first);

	return resend_ns / 8 + homa_div64(resend_ns * 3 / 2 * got, first);
}

/*
 * struct homa_first - the message that waits first, as it was when it was looked at
 * @node: node of the message in the queue, only to compare with; NULL: no message waits.
 * @copy: copy of the node; zeros: no message waits.
 */
struct homa_first {
	const struct homa_heap_node *node;
	struct homa_heap_node copy;
};

/* Is @node behind @first in the queue, so that @first may have its pages? */
static bool homa_is_behind(const struct homa_heap_node *node,
			   const struct homa_first *first)
{
	return first->node && node != first->node &&
	       !homa_heap_before(node, &first->copy);
}

/*
 * May @rpc give its pages back, perhaps for @first? A message that is being copied keeps
 * them, since only copies write there. *@penalty is for its key in the queue. Shard locked.
 */
static bool homa_rpc_idle(const struct homa_ctx *ctx, const struct homa_rpc *rpc,
			  const struct homa_first *first, u64 *penalty)
{
	u64 shortest = first->copy.key;
	u64 resend_ns = HOMA_READ_ONCE(rpc->link->derived.resend_ns);
	u64 silence = homa_since(ctx->now, rpc->fresh_at);
	const struct homa_grantee *in = &rpc->in;
	u64 place;

	if (rpc->state != HOMA_RPC_INCOMING ||
	    !(rpc->flags & HOMA_RPC_HOLDING) || rpc->copied != in->received)
		return false;
	place = homa_rpc_place(rpc);
	*penalty = 0;
	/* Pages are given back only in the order of the queue, or two messages could wait
	 * for each other for ever. */
	if (rpc->flags & HOMA_RPC_NO_BUFFER)
		return homa_is_behind(&in->node, first) &&
		       silence >= resend_ns / 2;
	if (place >= HOMA_GREEDY && shortest && shortest < HOMA_GREEDY &&
	    homa_since(ctx->now, rpc->held_at) >= resend_ns / 2)
		return true;
	if (HOMA_READ_ONCE(in->granted) > in->received) {
		*penalty = HOMA_SILENT;
		return silence >= homa_patience(rpc, resend_ns);
	}
	return shortest && place > shortest && silence >= resend_ns / 2;
}

/* Gives back all of @rpc's pages, and forgets what came of it; false: not now. Shard
 * locked. */
static bool homa_rpc_drop_pages(struct homa_ctx *ctx, struct homa_rpc *rpc,
				u64 penalty)
{
	struct homa_grantee *in = &rpc->in;
	struct homa_sock *sock = rpc->sock;

	if (!(rpc->flags & HOMA_RPC_NO_BUFFER))
		homa_grant_remove(ctx, rpc);
	homa_lock(&sock->lock);
	/* Another thread is giving it a page at this moment. */
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
	rpc->repaired = 0;
	in->again = homa_max_u32(in->again, in->granted);
	HOMA_WRITE_ONCE(in->granted, 0);
	HOMA_WRITE_ONCE(in->in_order, 0);
	HOMA_WRITE_ONCE(in->low_until, 0);
	rpc->overtaken_to = 0;
	rpc->asked_to = HOMA_NO_EARLY;
	in->low_level = 0;
	in->wire_prio = 0;
	homa_count(ctx, HOMA_M_buffers_given_back, 1);
	return true;
}

/* Returns the message at which the clock's hand stands, with a reference; NULL: there is
 * none, or pages are not short. */
static struct homa_rpc *homa_clock_next(struct homa_sock *sock,
					struct homa_first *first)
{
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
		first->node = homa_sock_waits(sock);
		first->copy = first->node ? *first->node :
					    (struct homa_heap_node){ 0 };
	}
	homa_unlock(&sock->lock);
	return rpc;
}

/* Looks at a few messages until one gives its pages back; false: none did. */
static bool homa_sock_reclaim(struct homa_ctx *ctx, struct homa_sock *sock,
			      u32 *steps)
{
	const struct homa_rpc *began = NULL;
	struct homa_first first = { 0 };
	struct homa_rpc *rpc;
	bool round, gave;
	u64 penalty;

	while (*steps && (rpc = homa_clock_next(sock, &first))) {
		(*steps)--;
		round = rpc == began;
		if (!began)
			began = rpc;
		homa_lock(&rpc->shard->lock);
		gave = !round && homa_rpc_idle(ctx, rpc, &first, &penalty) &&
		       homa_rpc_drop_pages(ctx, rpc, penalty);
		homa_unlock(&rpc->shard->lock);
		homa_rpc_put(ctx, rpc);
		if (gave)
			return true;
		if (round)
			break;
	}
	if (began) {
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
