// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Time: what to do about silence. Each RPC that waits for its peer has one
 * deadline in its shard's wheel. The deadline is lazy: packets only note when
 * they came, and when the deadline fires it is computed anew. Loss is repaired
 * by the receiver: it asks with RESEND for what was granted and did not come.
 * Retries are kept few on purpose: one RESEND at a time to a peer that does
 * not answer, intervals that double, no clock while the delay is our own
 * (ungranted, unsent, no buffers, in service). A peer that says BUSY has the RPC and
 * speaks up by itself (DATA, NEED_ACK), so it is asked so many times per interval
 * and no more, however many RPCs wait for it. Eager retries were measured
 * elsewhere to multiply traffic twentyfold just when the network is full.
 */
#include "homa_ack.h"
#include "homa_busy.h"
#include "homa_repair.h"
#include "homa_rx.h"

/* Least number of questions without an answer after which an RPC is given up. */
#define HOMA_MIN_PROBES 2u
/* Number of timeouts after which a request ends of which nothing new comes. */
#define HOMA_STALLED 4u
/* Number of timeouts for which a response may stand still, and least time for that, in ns. Its
 * client may be stopped, be exported, have no room, or take many responses in turn, so this is
 * long: it is only there so that no client keeps memory for ever. */
#define HOMA_KEPT 256u
#define HOMA_KEPT_NS 128000000000ull

/* ---- asking the peer ---- */

/*
 * May a question go to this peer? If the last one is open and nothing was
 * heard for @interval, wait for its answer: a peer that is silent needs no more
 * than one per interval. One that speaks may be asked about every RPC, or many
 * that lost a packet at once would be repaired one by one.
 */
static bool homa_peer_may_ask(struct homa_ctx *ctx, struct homa_peer *peer,
			      u64 interval)
{
	u64 heard;
	bool ok;

	homa_lock(&peer->lock);
	heard = HOMA_READ_ONCE(peer->heard_at);
	if (heard >= peer->resend_at)
		peer->probes = 0;
	ok = !peer->probes || homa_since(ctx->now, heard) < interval ||
	     homa_since(ctx->now, peer->resend_at) >= interval;
	if (ok) {
		peer->resend_at = ctx->now;
		if (peer->probes < 255)
			peer->probes++;
	}
	homa_unlock(&peer->lock);
	if (!ok)
		homa_count(ctx, HOMA_M_resends_deferred, 1);
	return ok;
}

/* Has this RPC, or its peer as a whole, been asked often enough in vain? */
static bool homa_rpc_is_lost(struct homa_ctx *ctx, struct homa_rpc *rpc, u64 quiet)
{
	u64 timeout = HOMA_READ_ONCE(rpc->link->derived.timeout_ns);
	struct homa_peer *peer = rpc->peer;
	u64 heard;
	bool lost;

	if (quiet < timeout)
		return false;
	if (rpc->probes >= HOMA_MIN_PROBES)
		return true;
	homa_lock(&peer->lock);
	heard = HOMA_READ_ONCE(peer->heard_at);
	lost = heard < peer->resend_at && peer->probes >= HOMA_MIN_PROBES &&
	       homa_since(ctx->now, heard) >= timeout;
	homa_unlock(&peer->lock);
	return lost;
}

static u64 homa_backoff(const struct homa_rpc *rpc, u64 base)
{
	return homa_ask_after(rpc, base,
			      homa_min_u32(rpc->probes, HOMA_DOUBLINGS));
}

/* What a peer is asked about an RPC. */
enum homa_question {
	HOMA_ASK_RESPONSE, /* a client asks whether there is a response */
	HOMA_ASK_MISSING,  /* a receiver asks for bytes that should have come */
	HOMA_ASK_ALIVE, /* a client asks whether the response is still there */
	HOMA_ASK_ACK,	/* a server asks whether the response has arrived */
	HOMA_ASK_WAITING, /* a server asks whether the client still waits */
};

static void homa_rpc_ask(struct homa_ctx *ctx, struct homa_rpc *rpc,
			 enum homa_question question)
{
	u8 top = (u8)(ctx->engine->params.num_priorities - 1);
	struct homa_ctrl *ctrl;

	switch (question) {
	case HOMA_ASK_RESPONSE:
		ctrl = homa_ctrl_rpc(ctx, rpc, HOMA_RESEND);
		ctrl->offset = 0;
		ctrl->length = HOMA_RESEND_ALL;
		ctrl->priority = top;
		break;
	case HOMA_ASK_MISSING:
		if (homa_rpc_overtaken(rpc))
			homa_resend_missing(ctx, rpc, rpc->repaired_to,
					    homa_min_u32(rpc->repaired,
							 HOMA_MAX_GAPS_ASKED),
					    top);
		else
			homa_resend_missing(ctx, rpc, 0xffffffff,
					    HOMA_MAX_GAPS_ASKED, top);
		break;
	case HOMA_ASK_ALIVE:
		ctrl = homa_ctrl_rpc(ctx, rpc, HOMA_RESEND);
		ctrl->offset = 0;
		ctrl->length = 1;
		ctrl->priority = 0;
		break;
	case HOMA_ASK_ACK:
		homa_ctrl_rpc(ctx, rpc, HOMA_NEED_ACK);
		break;
	case HOMA_ASK_WAITING:
		ctrl = homa_ctrl_rpc(ctx, rpc, HOMA_RESEND);
		ctrl->offset = 0;
		ctrl->length = 0;
		ctrl->priority = 0;
		break;
	}
	homa_rpc_asked(ctx, rpc);
}

/* ---- one RPC's deadline ---- */

static void homa_rpc_abandon(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	homa_count(ctx, HOMA_M_rpc_timeouts, 1);
	if (homa_rpc_is_client(rpc)) {
		homa_rpc_fail(ctx, rpc, HOMA_ETIMEDOUT);
	} else {
		homa_count(ctx, HOMA_M_server_discards, 1);
		homa_rpc_kill(ctx, rpc);
	}
}

/* Are there bytes that could go out but have not, new ones or some to be sent again, so that
 * the silence is our own? */
static bool homa_out_pending(const struct homa_rpc *rpc)
{
	const struct homa_out *out = &rpc->out;

	return HOMA_READ_ONCE(out->send.queued) &&
	       (HOMA_READ_ONCE(out->next) < HOMA_READ_ONCE(out->limit) ||
		HOMA_READ_ONCE(out->num_rtx));
}

/* What does this RPC wait for from its peer? *@base is the time between two questions,
 * in ns. False: it waits for nothing. */
static bool homa_rpc_waits_for(struct homa_ctx *ctx, struct homa_rpc *rpc,
			       enum homa_question *question, u64 *base)
{
	const struct homa_derived *d = &rpc->link->derived;
	struct homa_ranges_iter iter;
	u32 start, end;

	*base = HOMA_READ_ONCE(d->resend_ns);
	switch (rpc->state) {
	case HOMA_RPC_OUTGOING:
		if (homa_out_pending(rpc))
			return false;
		if (homa_rpc_is_client(rpc)) {
			*question = HOMA_ASK_RESPONSE;
			return true;
		}
		*question = HOMA_ASK_ACK;
		if (HOMA_READ_ONCE(rpc->out.next) == rpc->out.length)
			*base = homa_ack_wait(ctx, rpc);
		return true;
	case HOMA_RPC_INCOMING:
		if (rpc->flags & HOMA_RPC_NO_BUFFER) {
			/* The sender is asked seldom, because there is no room for the
			 * answer. */
			*base = HOMA_READ_ONCE(d->timeout_ns) / 2;
			*question = HOMA_ASK_ALIVE;
			return homa_rpc_is_client(rpc);
		}
		/* The number of missing bytes is not enough to tell: some bytes may have
		 * come from beyond what is granted. */
		homa_ranges_iter_init(&iter, &rpc->ranges);
		if (!homa_ranges_missing(&iter, HOMA_READ_ONCE(rpc->in.granted),
					 &start, &end))
			return false;
		*question = HOMA_ASK_MISSING;
		return true;
	default:
		return false;
	}
}

/*
 * Is this a request that nobody seems to want any more? It is if it has no pages and its
 * client does not ask, or if its client sends nothing new and only says that it lives, by
 * BUSY or by bytes that we have already.
 */
static bool homa_request_is_stale(const struct homa_ctx *ctx,
				  const struct homa_rpc *rpc)
{
	u64 timeout = HOMA_READ_ONCE(rpc->link->derived.timeout_ns);

	if (rpc->state != HOMA_RPC_INCOMING || homa_rpc_is_client(rpc))
		return false;
	return ctx->now >= (rpc->flags & HOMA_RPC_NO_BUFFER ?
				    homa_starving_until(rpc) :
				    rpc->fresh_at + HOMA_STALLED * timeout);
}

/*
 * Is this a response that nobody seems to want any more? It is if all that its client lets go
 * has been sent, and the client has asked for no new byte for long, but only says that it
 * lives: by BUSY, by old grants, by questions for bytes that it was sent.
 */
static bool homa_response_is_stale(const struct homa_ctx *ctx,
				   const struct homa_rpc *rpc)
{
	u64 timeout = HOMA_READ_ONCE(rpc->link->derived.timeout_ns);

	if (rpc->state != HOMA_RPC_OUTGOING || homa_rpc_is_client(rpc) ||
	    HOMA_READ_ONCE(rpc->out.next) < HOMA_READ_ONCE(rpc->out.limit) ||
	    homa_out_pending(rpc))
		return false;
	return homa_since(ctx->now, HOMA_READ_ONCE(rpc->out.sent_at)) >=
	       homa_max_u64(HOMA_KEPT * timeout, HOMA_KEPT_NS);
}

/* Returns the next deadline of an RPC that waits for this end: the peer is asked
 * nothing, and its silence begins afterwards. 0: it has none. */
static u64 homa_rpc_ours(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	if (rpc->state == HOMA_RPC_INCOMING) {
		if (rpc->flags & HOMA_RPC_NO_BUFFER)
			return homa_starving_until(rpc);
		/* If all messages wait for grants, no packet comes that would make us
		 * grant. */
		homa_grant_due(ctx, rpc->link);
		rpc->fresh_at = ctx->now;
	} else if (rpc->state != HOMA_RPC_OUTGOING) {
		return 0;
	}
	rpc->heard_at = ctx->now;
	rpc->probes = 0;
	return ctx->now + HOMA_READ_ONCE(rpc->link->derived.resend_ns);
}

/*
 * Returns the next deadline of a request that its application has not taken, in ns; 0: the
 * request was given up. The client asks for the response now and then. If it does not, it
 * is asked to resend no byte at all: a client that still waits answers by BUSY at most, and
 * one that does not by RPC_UNKNOWN. However many such requests a peer has, they ask in
 * turn.
 */
static u64 homa_untaken_deadline(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	const struct homa_derived *d = &rpc->link->derived;
	u64 timeout = HOMA_READ_ONCE(d->timeout_ns);
	u64 heard = rpc->heard_at;
	u64 since = homa_max_u64(heard, HOMA_READ_ONCE(rpc->peer->heard_at));

	if (homa_rpc_is_lost(ctx, rpc, homa_since(ctx->now, since))) {
		homa_rpc_abandon(ctx, rpc);
		return 0;
	}
	if (rpc->flags & HOMA_RPC_BUSY) {
		if (ctx->now < rpc->probe_at)
			return rpc->probe_at;
		if (homa_since(ctx->now, heard) >= timeout &&
		    homa_peer_may_ask(ctx, rpc->peer,
				      HOMA_READ_ONCE(d->resend_ns)))
			homa_rpc_ask(ctx, rpc, HOMA_ASK_WAITING);
		homa_busy_over(rpc);
	}
	homa_busy_wait(ctx, rpc, 0);
	rpc->probe_at += timeout;
	return rpc->probe_at;
}

/* Asks or gives up if that is due; returns the next deadline of the RPC, in ns; 0: none. */
static u64 homa_rpc_deadline(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	enum homa_question question;
	u64 base, since, due, death, early = HOMA_NEVER;

	if (rpc->state == HOMA_RPC_READY && !homa_rpc_is_client(rpc))
		return homa_untaken_deadline(ctx, rpc);
	if (homa_request_is_stale(ctx, rpc) || homa_response_is_stale(ctx, rpc)) {
		homa_rpc_abandon(ctx, rpc);
		return 0;
	}
	if (!homa_rpc_waits_for(ctx, rpc, &question, &base)) {
		rpc->overtaken_to = 0;
		return homa_rpc_ours(ctx, rpc);
	}
	since = rpc->heard_at;
	if (rpc->state == HOMA_RPC_OUTGOING)
		since = homa_max_u64(since, HOMA_READ_ONCE(rpc->out.sent_at));
	if (homa_rpc_is_lost(ctx, rpc, homa_since(ctx->now, since))) {
		homa_rpc_abandon(ctx, rpc);
		return 0;
	}
	if (question == HOMA_ASK_MISSING)
		early = homa_rpc_early(ctx, rpc);
	due = homa_max_u64(since, rpc->probe_at) + homa_backoff(rpc, base);
	if (question == HOMA_ASK_MISSING && homa_rpc_overtaken(rpc))
		due = rpc->probe_at + base / HOMA_REPAIR_ROUNDS;
	if (rpc->flags & HOMA_RPC_BUSY) {
		due = rpc->probe_at;
		since = homa_max_u64(since, HOMA_READ_ONCE(rpc->peer->heard_at));
	}
	death = homa_max_u64(since + HOMA_READ_ONCE(rpc->link->derived.timeout_ns),
			     ctx->now + base);
	death = homa_min_u64(death, early);
	if (ctx->now < due)
		return homa_min_u64(due, death);
	if (!homa_peer_may_ask(ctx, rpc->peer,
			       HOMA_READ_ONCE(rpc->link->derived.resend_ns)))
		return ctx->now + base / 2; /* the peer's answer may come before */
	homa_rpc_ask(ctx, rpc, question);
	return homa_min_u64(ctx->now + homa_backoff(rpc, base), death);
}

/* ---- a shard's turn ---- */

/* Gives pages to messages of @sock that homa_timer() found waiting; one socket per turn. */
static void homa_timer_feed(struct homa_ctx *ctx, struct homa_sock *sock)
{
	if (!sock)
		return;
	homa_sock_feed(ctx, sock);
	homa_sock_put(sock);
}

u64 homa_timer(struct homa_ctx *ctx, u32 index, u32 budget)
{
	struct homa_shard *shard = &ctx->engine->shards[index];
	struct homa_sock *starving = NULL;
	struct homa_wheel_node *node;
	u64 next;

	if (ctx->num_acks)
		homa_rx_owed(ctx);
	homa_lock(&shard->lock);
	while (budget && (node = homa_wheel_pop(&shard->wheel, ctx->now))) {
		struct homa_rpc *rpc =
			homa_container_of(node, struct homa_rpc, timer);
		u64 deadline;

		budget--;
		if (node->deadline > ctx->now) {
			homa_wheel_add(&shard->wheel, node, node->deadline,
				       ctx->now);
			continue;
		}
		homa_rpc_note_sleep(ctx, rpc);
		if ((rpc->flags & HOMA_RPC_NO_BUFFER) && !starving) {
			starving = rpc->sock;
			homa_ref_get(&starving->refs);
		}
		deadline = homa_rpc_deadline(ctx, rpc);
		if (deadline && rpc->flags & HOMA_RPC_NO_BUFFER)
			deadline = homa_min_u64(
				deadline,
				ctx->now +
					4 * HOMA_READ_ONCE(
						    rpc->link->derived.resend_ns));
		if (deadline)
			homa_wheel_add(&shard->wheel, node,
				       homa_max_u64(deadline, ctx->now + 1),
				       ctx->now);
	}
	next = homa_wheel_next(&shard->wheel);
	homa_unlock(&shard->lock);
	homa_timer_feed(ctx, starving);
	homa_rx_flush(ctx);
	return budget ? next : ctx->now;
}
