// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Control packets in: one function per type. All numbers in them come from
 * outside; the codec has bounded them, here they are clamped to the message
 * they are about. None of these functions believes that the peer's view of an
 * RPC matches ours.
 */
#include "homa_ack.h"
#include "homa_busy.h"
#include "homa_life.h"
#include "homa_rx.h"

static void homa_ctrl_heard(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	if (homa_wheel_linked(&rpc->timer))
		homa_rpc_note_sleep(ctx, rpc);
	rpc->heard_at = ctx->now;
	HOMA_WRITE_ONCE(rpc->peer->heard_at, ctx->now);
}

static void homa_ctrl_drop(struct homa_ctx *ctx, struct homa_rx_pkt *pkt,
			   enum homa_metric reason)
{
	pkt->verdict = HOMA_RX_DROP;
	pkt->reason = (u16)reason;
	homa_count(ctx, reason, 1);
}

static u8 homa_ctrl_level(const struct homa_ctx *ctx, u8 priority)
{
	u32 top = ctx->engine->params.num_priorities - 1;

	return (u8)homa_min_u32(priority, top);
}

/* Is @rpc sending a message, which a GRANT or a RESEND can be about? */
static bool homa_is_sending(const struct homa_rpc *rpc)
{
	return rpc->state == HOMA_RPC_OUTGOING && rpc->out.active;
}

static void homa_rx_grant(struct homa_ctx *ctx, struct homa_rpc *rpc,
			  struct homa_rx_pkt *pkt, const struct homa_packet *p)
{
	if (!homa_is_sending(rpc)) {
		homa_ctrl_drop(ctx, pkt, HOMA_M_drop_state);
		return;
	}
	homa_ctrl_heard(ctx, rpc);
	if (homa_is_patient(rpc))
		homa_patience_ends(ctx, rpc);
	if (p->grant.offset > HOMA_READ_ONCE(rpc->out.limit))
		homa_out_grant(ctx, rpc, p->grant.offset,
			       homa_ctrl_level(ctx, p->grant.priority));
}

/*
 * May the server have executed the request and forgotten it? So it may if this host slept,
 * because the server's question may have waited meanwhile. A request that had not been sent
 * whole when this host awoke was not executed. Shard locked.
 */
static bool homa_maybe_executed(const struct homa_rpc *rpc)
{
	return rpc->slept & HOMA_SLEPT_WHOLE && homa_rpc_is_client(rpc) &&
	       !homa_out_never_left(&rpc->out);
}

/*
 * The peer misses bytes. What we have sent goes out again; what it has granted
 * (a GRANT got lost) becomes sendable; if neither applies we are BUSY.
 */
static void homa_rx_resend(struct homa_ctx *ctx, struct homa_rpc *rpc,
			   struct homa_rx_pkt *pkt, const struct homa_packet *p)
{
	u8 prio = homa_ctrl_level(ctx, p->resend.priority);
	u32 start = p->resend.offset;
	u32 next, end;

	HOMA_WRITE_ONCE(rpc->peer->heard_at, ctx->now);
	if (!homa_is_sending(rpc)) {
		if (rpc->flags & HOMA_RPC_NO_BUFFER)
			homa_rpc_speaks(ctx, rpc);
		/* The peer is told of a request that has failed as if it were forgotten. */
		if (rpc->state == HOMA_RPC_FAILED) {
			homa_ctrl_rpc(ctx, rpc, HOMA_RPC_UNKNOWN);
		} else if (homa_rpc_is_client(rpc)) {
			homa_ctrl_drop(ctx, pkt, HOMA_M_drop_state);
		} else {
			/* If a part of the request is missing, the question does not count
			 * as a sign of life: a client that keeps asking must not keep us
			 * from asking. If we have no room for the request, the client's
			 * question is all that we can know. */
			if (rpc->state != HOMA_RPC_INCOMING ||
			    rpc->flags & HOMA_RPC_NO_BUFFER)
				homa_ctrl_heard(ctx, rpc);
			homa_ctrl_rpc(ctx, rpc, HOMA_BUSY);
		}
		return;
	}
	/* A peer that believes in another length gets no answer and gives up: BUSY would
	 * keep it waiting for bytes that do not exist. */
	if (start >= rpc->out.length) {
		homa_ctrl_drop(ctx, pkt, HOMA_M_drop_offset);
		return;
	}
	homa_ctrl_heard(ctx, rpc);
	/* The peer lacks bytes, so it is not busy with the request any more. */
	if (rpc->flags & HOMA_RPC_BUSY)
		homa_patience_ends(ctx, rpc);
	next = HOMA_READ_ONCE(rpc->out.next);
	if (p->resend.length == HOMA_RESEND_ALL)
		end = next;
	else
		end = homa_min_u32(start + p->resend.length, rpc->out.length);
	if (end > HOMA_READ_ONCE(rpc->out.limit))
		homa_out_grant(ctx, rpc, end, prio);
	if (start >= homa_min_u32(end, next)) {
		/* The turn of these bytes has not come, or the application has not handed
		 * them in yet. */
		homa_ctrl_rpc(ctx, rpc, HOMA_BUSY);
	} else if (unlikely(homa_maybe_executed(rpc))) {
		homa_count(ctx, HOMA_M_rpc_timeouts, 1);
		homa_rpc_fail(ctx, rpc, HOMA_ETIMEDOUT);
	} else if (!homa_out_resend(ctx, rpc, start, homa_min_u32(end, next),
				    prio)) {
		/* These bytes were asked for before, and the device has not taken them
		 * yet. */
		homa_ctrl_rpc(ctx, rpc, HOMA_BUSY);
	}
}

static void homa_rx_unknown(struct homa_ctx *ctx, struct homa_rpc *rpc,
			    struct homa_rx_pkt *pkt)
{
	HOMA_WRITE_ONCE(rpc->peer->heard_at, ctx->now);
	if (!homa_rpc_is_client(rpc)) {
		if (rpc->state == HOMA_RPC_OUTGOING)
			homa_ack_came(ctx, rpc);
		homa_count(ctx, HOMA_M_server_discards, 1);
		homa_rpc_kill(ctx, rpc);
		return;
	}
	/* The server has never seen the request, or has forgotten it; in the latter case
	 * its at-most-once memory decides what happens. */
	if (!homa_is_sending(rpc) || HOMA_READ_ONCE(rpc->out.num_rtx)) {
		homa_ctrl_drop(ctx, pkt, HOMA_M_drop_state);
		return;
	}
	if (!homa_life_again(ctx, rpc, pkt->data)) {
		homa_count(ctx, HOMA_M_rpc_timeouts, 1);
		homa_rpc_fail(ctx, rpc, HOMA_ETIMEDOUT);
		return;
	}
	/* The server's restart guard and its tombstones count on this: no client starts a
	 * request again long after the last sign of the server that may have executed it,
	 * nor if the age of that sign is unknown. A request that never left has not been
	 * executed. */
	if (!homa_out_never_left(&rpc->out) &&
	    (rpc->slept ||
	     homa_since(ctx->now, homa_max_u64(rpc->heard_at,
					       HOMA_READ_ONCE(rpc->out.sent_at))) >=
		     HOMA_READ_ONCE(rpc->link->derived.restart_ns))) {
		homa_count(ctx, HOMA_M_rpc_timeouts, 1);
		homa_rpc_fail(ctx, rpc, HOMA_ETIMEDOUT);
		return;
	}
	homa_count(ctx, HOMA_M_restarts, 1);
	homa_out_restart(ctx, rpc);
}

/*
 * Bytes of @rpc that we lack may still be under way, behind others in the server's
 * device or a switch: until it has been silent about it for as long as makes our own
 * timer ask, they are not lost. (The question itself has overtaken them.)
 */
static bool homa_not_silent(struct homa_ctx *ctx, const struct homa_rpc *rpc)
{
	u64 since = homa_max_u64(rpc->heard_at, rpc->probe_at);
	struct homa_ranges_iter iter;
	u32 start, end;

	if (rpc->state == HOMA_RPC_OUTGOING) {
		since = homa_max_u64(since, HOMA_READ_ONCE(rpc->out.sent_at));
	} else {
		homa_ranges_iter_init(&iter, &rpc->ranges);
		if (!homa_ranges_missing(&iter, HOMA_READ_ONCE(rpc->in.granted),
					 &start, &end))
			return false;
	}
	return homa_since(ctx->now, since) <
	       HOMA_READ_ONCE(rpc->link->derived.resend_ns);
}

/* Answers a server that wants to forget an RPC for which it has no ack from us. */
static void homa_rx_need_ack(struct homa_ctx *ctx, struct homa_rpc *rpc,
			     struct homa_rx_pkt *pkt)
{
	struct homa_ctrl *ctrl;

	if (!homa_rpc_is_client(rpc)) {
		homa_ctrl_drop(ctx, pkt, HOMA_M_drop_id);
		return;
	}
	/* The peer lives, but only bytes bring this RPC forward: if the two ends disagree
	 * about the response, our RPC must be able to fail. */
	HOMA_WRITE_ONCE(rpc->peer->heard_at, ctx->now);
	/* A client whose RPC has failed wants nothing more from the server. */
	if (rpc->state == HOMA_RPC_READY || rpc->state == HOMA_RPC_FAILED) {
		ctrl = homa_ctrl_rpc(ctx, rpc, HOMA_ACK);
		ctrl->num = 0;
		return;
	}
	/* The server is not busy any more: its response has been on its way since it
	 * asked. */
	if (rpc->flags & HOMA_RPC_BUSY) {
		homa_patience_ends(ctx, rpc);
		rpc->probe_at = ctx->now;
	}
	/* The server has the response, for which we have no room. */
	if (rpc->flags & HOMA_RPC_NO_BUFFER) {
		rpc->heard_at = ctx->now;
		homa_rpc_speaks(ctx, rpc);
	} else if (homa_not_silent(ctx, rpc)) {
		return;
	}
	if (rpc->state == HOMA_RPC_OUTGOING) {
		/* Nothing of the response has come: ask for all of it. */
		ctrl = homa_ctrl_rpc(ctx, rpc, HOMA_RESEND);
		ctrl->offset = 0;
		ctrl->length = HOMA_RESEND_ALL;
		ctrl->priority = homa_ctrl_level(ctx, 7);
	} else if (!homa_resend_missing(ctx, rpc, 0xffffffff, HOMA_MAX_GAPS_ASKED,
					homa_ctrl_level(ctx, 7))) {
		homa_ctrl_rpc(ctx, rpc, HOMA_BUSY);
		return;
	}
	/* This counts as a question like the timer's, which waits for its answer now: if it
	 * did not count, a server that asks again and again and sends nothing that fits
	 * would keep us from giving up. */
	homa_rpc_asked(ctx, rpc);
}

struct homa_ctrl *homa_ctrl_answer(struct homa_ctx *ctx, struct homa_link *link,
				   const struct homa_rx_pkt *pkt,
				   const struct homa_hdr *hdr, u8 type)
{
	struct homa_ctrl *ctrl = homa_ctrl_to(ctx, link, pkt->src, type);

	ctrl->sport = hdr->dport;
	ctrl->dport = hdr->sport;
	ctrl->sender_id = hdr->sender_id ^ 1;
	ctrl->from = ctx->heard_at;
	if (type == HOMA_RPC_UNKNOWN)
		ctrl->offset = homa_life_up(ctx);
	return ctrl;
}

HOMA_RARE void homa_rx_other_life(struct homa_ctx *ctx, struct homa_link *link,
				  const struct homa_addr *src, u64 id,
				  u16 sport, u16 dport)
{
	const struct homa_rx_pkt pkt = { .src = src };
	const struct homa_hdr hdr = { .sender_id = id,
				      .sport = sport,
				      .dport = dport };

	homa_ctrl_answer(ctx, link, &pkt, &hdr, HOMA_RPC_UNKNOWN);
}

/*
 * Answers NEED_ACK for an RPC that we have finished and forgotten. RPC_UNKNOWN ends it
 * there just as well as ACK, but is not three times as long as the question, which a
 * stranger may have asked in another's name. ACK is sent if there are acks to go with it,
 * which only this host can bring about.
 */
static void homa_rx_need_ack_done(struct homa_ctx *ctx, struct homa_link *link,
				  struct homa_rx_pkt *pkt,
				  const struct homa_hdr *hdr)
{
	struct homa_peer *peer =
		homa_peer_get(ctx, link, pkt->src, HOMA_PEER_FIND);
	struct homa_ack acks[HOMA_MAX_ACKS];
	struct homa_ctrl *ctrl;
	u32 i, n = 0;

	if (peer) {
		n = homa_peer_take_acks(peer, acks, HOMA_MAX_ACKS);
		homa_peer_put(ctx, peer);
	}
	ctrl = homa_ctrl_answer(ctx, link, pkt, hdr,
				n ? HOMA_ACK : HOMA_RPC_UNKNOWN);
	ctrl->num = (u16)n;
	for (i = 0; i < n; i++) {
		ctrl->acks.ids[i] = acks[i].client_id;
		ctrl->acks.ports[i] = acks[i].server_port;
	}
}

/* Answers an older homad that asks with id 1 whether UDP is understood here. Only ACK tells
 * it; few are sent, and a host has no more of them by asking from many ports. */
static void homa_rx_are_you_there(struct homa_ctx *ctx, struct homa_link *link,
				  struct homa_rx_pkt *pkt,
				  const struct homa_hdr *hdr)
{
	struct homa_engine *engine = ctx->engine;
	u64 hash = homa_hash_ip(pkt->src->ip, engine->seeds.keys[0],
				engine->seeds.keys[1]);

	if (!pkt->src->encap || !homa_seldom(&engine->answered, hash, ctx->now)) {
		homa_ctrl_drop(ctx, pkt, HOMA_M_drop_id);
		return;
	}
	homa_ctrl_answer(ctx, link, pkt, hdr, HOMA_ACK);
}

/* The cutoffs belong to the peer that the RPC's packets go to, however this packet came. */
static void homa_rx_cutoffs(struct homa_ctx *ctx, struct homa_rpc *rpc,
			    const struct homa_packet *p)
{
	u32 cutoffs[HOMA_PRIORITIES];

	memcpy(cutoffs, p->cutoffs.cutoff, sizeof(cutoffs));
	homa_peer_set_cutoffs(rpc->peer, cutoffs, p->cutoffs.version);
	HOMA_WRITE_ONCE(rpc->peer->heard_at, ctx->now);
}

/* Answers a packet about an RPC that does not exist here. */
static void homa_rx_no_rpc(struct homa_ctx *ctx, struct homa_link *link,
			   struct homa_rx_pkt *pkt, const struct homa_hdr *hdr)
{
	if (hdr->type == HOMA_RESEND)
		homa_ctrl_answer(ctx, link, pkt, hdr, HOMA_RPC_UNKNOWN);
	else if (hdr->type == HOMA_NEED_ACK && hdr->sender_id == 1)
		homa_rx_are_you_there(ctx, link, pkt, hdr);
	else if (hdr->type == HOMA_NEED_ACK && (hdr->sender_id & 1))
		homa_rx_need_ack_done(ctx, link, pkt, hdr);
	else
		homa_ctrl_drop(ctx, pkt, HOMA_M_drop_unknown_rpc);
}

void homa_rx_control(struct homa_ctx *ctx, const struct homa_rx_in *in,
		     struct homa_rx_pkt *pkt, const struct homa_packet *p)
{
	static const u16 metric[HOMA_TYPES] = {
		[HOMA_GRANT - HOMA_TYPE_FIRST] = HOMA_M_rx_grant,
		[HOMA_RESEND - HOMA_TYPE_FIRST] = HOMA_M_rx_resend,
		[HOMA_RPC_UNKNOWN - HOMA_TYPE_FIRST] = HOMA_M_rx_unknown,
		[HOMA_BUSY - HOMA_TYPE_FIRST] = HOMA_M_rx_busy,
		[HOMA_CUTOFFS - HOMA_TYPE_FIRST] = HOMA_M_rx_cutoffs,
		[HOMA_NEED_ACK - HOMA_TYPE_FIRST] = HOMA_M_rx_need_ack,
	};
	struct homa_rpc *rpc;

	if (unlikely(p->hdr.type == HOMA_FREEZE)) {
		homa_count(ctx, HOMA_M_rx_freeze, 1);
		if (!ctx->engine->params.freeze)
			homa_ctrl_drop(ctx, pkt, HOMA_M_drop_freeze);
		return;
	}
	homa_count(ctx, metric[p->hdr.type - HOMA_TYPE_FIRST], 1);
	rpc = ctx->rx_rpc;
	if (!rpc) {
		homa_rx_no_rpc(ctx, in->link, pkt, &p->hdr);
		return;
	}
	if (!homa_rx_fits(rpc, &p->hdr)) {
		homa_ctrl_drop(ctx, pkt, HOMA_M_drop_ports);
		return;
	}
	if (homa_rpc_is_client(rpc) && p->hdr.type != HOMA_RPC_UNKNOWN &&
	    !homa_life_same(rpc, pkt->data)) {
		homa_ctrl_drop(ctx, pkt, HOMA_M_drop_life);
		return;
	}
	switch (p->hdr.type) {
	case HOMA_GRANT:
		homa_rx_grant(ctx, rpc, pkt, p);
		break;
	case HOMA_RESEND:
		homa_rx_resend(ctx, rpc, pkt, p);
		break;
	case HOMA_RPC_UNKNOWN:
		homa_rx_unknown(ctx, rpc, pkt);
		break;
	case HOMA_BUSY:
		homa_ctrl_heard(ctx, rpc);
		homa_busy(ctx, rpc);
		break;
	case HOMA_CUTOFFS:
		homa_rx_cutoffs(ctx, rpc, p);
		break;
	case HOMA_NEED_ACK:
		homa_rx_need_ack(ctx, rpc, pkt);
		break;
	}
}

void homa_rx_ack(struct homa_ctx *ctx, const struct homa_addr *peer,
		 u64 client_id, u16 server_port)
{
	struct homa_shard *shard;
	struct homa_rpc *rpc;
	u32 hash;

	if (client_id & 1)
		return;
	hash = homa_rpc_hash(ctx, client_id ^ 1, peer);
	shard = homa_shard_at(ctx->engine, hash);
	homa_lock(&shard->lock);
	rpc = homa_rpc_find(shard, hash, client_id ^ 1, peer);
	/* Only a response can be acknowledged. Anything else is an error of the sender, and
	 * the request would be lost if it were believed. */
	if (rpc && rpc->state == HOMA_RPC_OUTGOING && rpc->sport == server_port) {
		HOMA_WRITE_ONCE(rpc->peer->heard_at, ctx->now);
		homa_ack_came(ctx, rpc);
		homa_rpc_over(ctx, rpc);
	}
	homa_unlock(&shard->lock);
}

void homa_rx_owed(struct homa_ctx *ctx)
{
	u32 i, n = ctx->num_acks;

	ctx->num_acks = 0;
	for (i = 0; i < n; i++)
		homa_rx_ack(ctx, &ctx->acks[i].peer, ctx->acks[i].client_id,
			    ctx->acks[i].server_port);
}

void homa_rx_acks(struct homa_ctx *ctx, const struct homa_rx_pkt *pkt,
		  const struct homa_packet *p)
{
	u32 i;

	homa_count(ctx, HOMA_M_rx_ack, 1);
	homa_rx_ack(ctx, pkt->src, p->hdr.sender_id, p->hdr.dport);
	for (i = 0; i < p->ack.num; i++)
		homa_rx_ack(ctx, pkt->src, p->ack.ack[i].client_id,
			    p->ack.ack[i].server_port);
}
