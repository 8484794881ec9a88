// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Messages going out. Each is a sendable of its link's scheduler (homa_sched.h), which
 * says whose packet is next; here is what the packet contains, and when a message can
 * send: it has bytes that were handed in and that its receiver expects. Control packets
 * go before all messages.
 *
 * A message is cut on a fixed grid of segments from its first byte, and the
 * unscheduled part ends on the grid. A grant that ends inside a segment
 * releases the whole segment: runt packets would cost more than they save.
 */
#include "homa_life.h"
#include "homa_link_open.h"
#include "homa_out_impl.h"

/* Can new bytes be sent? They can if they are a whole segment or the message's end. */
static bool homa_out_sendable(const struct homa_out *out)
{
	return out->next < out->limit &&
	       out->available >=
		       homa_min_u32(out->length, out->next + out->send.packet);
}

/*
 * Returns how many bytes to send from @out->next on: at most @room (a multiple of the
 * segment size), in whole segments. It divides only when it has to.
 */
static u32 homa_out_next_bytes(const struct homa_out *out, u32 room)
{
	u32 n = homa_min_u32(homa_out_left(out), room);
	u32 allowed = out->limit - out->next;
	u32 seg = out->send.packet;

	if (unlikely(n > allowed) && n > seg) {
		allowed += seg - 1;
		n = homa_min_u32(n, allowed - allowed % seg);
	}
	if (unlikely(out->available - out->next < n)) {
		n = out->available - out->next;
		n -= n % seg;
	}
	return n;
}

/* Writes the header that all packets of a message begin with. */
static void homa_out_header(const struct homa_engine *engine, struct homa_rpc *rpc)
{
	homa_out_begin(engine, rpc, rpc->out.hdr);
	rpc->out.send.overhead =
		(u16)homa_cable_bytes(&rpc->peer->addr, HOMA_DATA_HDR);
}

void homa_out_queue(struct homa_link *link, struct homa_rpc *rpc)
{
	struct homa_out *out = &rpc->out;
	bool ready = out->active && (out->num_rtx || homa_out_sendable(out));

	if (ready == out->send.queued)
		return;
	if (ready) {
		/* It was sent at once, and is to be sent again. */
		if (unlikely(!out->send.overhead))
			homa_out_header(link->engine, rpc);
		homa_sched_enter(&link->sched, &out->send, homa_out_left(out),
				 rpc->birth, rpc->id);
	} else {
		homa_sched_leave(&link->sched, &out->send);
	}
	homa_link_look(link);
}

void homa_out_grant(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 limit, u8 prio)
{
	struct homa_link *link = rpc->link;
	struct homa_out *out = &rpc->out;

	homa_lock(&link->lock);
	out->sched_prio = prio;
	limit = homa_min_u32(limit, out->length);
	if (limit > out->limit) {
		out->limit = limit;
		homa_out_queue(link, rpc);
	}
	homa_unlock(&link->lock);
	homa_tx_wanted(ctx, link);
}

void homa_out_supply(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 available)
{
	struct homa_link *link = rpc->link;
	struct homa_out *out = &rpc->out;

	homa_lock(&link->lock);
	available = homa_min_u32(available, out->length);
	if (available > out->available) {
		out->available = available;
		homa_out_queue(link, rpc);
	}
	homa_unlock(&link->lock);
	homa_tx_wanted(ctx, link);
}

void homa_out_cancel(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	struct homa_link *link = rpc->link;

	if (!rpc->out.active)
		return;
	/* Who pulls packets has never seen a message that was sent at once. */
	if (likely(!rpc->out.send.overhead)) {
		rpc->out.active = 0;
		return;
	}
	homa_lock(&link->lock);
	rpc->out.active = 0;
	homa_rtx_clear(ctx, &rpc->out);
	homa_out_queue(link, rpc);
	homa_unlock(&link->lock);
}

/* ---- pulling ---- */

static struct homa_out *homa_out_of(struct homa_sendable *s)
{
	return homa_container_of(s, struct homa_out, send);
}

/* Chooses the bytes of the next transmission of @rpc; link locked. */
static void homa_out_take(struct homa_ctx *ctx, struct homa_link *link,
			  struct homa_rpc *rpc, u32 max_segs,
			  struct homa_tx_desc *desc)
{
	struct homa_out *out = &rpc->out;
	u32 room = homa_sched_burst(&link->sched, &out->send, max_segs) *
		   out->send.packet;

	if (unlikely(out->num_rtx)) {
		homa_rtx_take(ctx, out, room, desc);
	} else {
		u32 n = homa_out_next_bytes(out, room);

		desc->retransmit = out->anew;
		desc->offset = out->next;
		if (out->next < out->unsched) {
			n = homa_min_u32(n, out->unsched - out->next);
			desc->prio =
				link->engine->params.prio_by_remaining ?
					homa_peer_unsched_prio(rpc->peer,
							       homa_out_left(out)) :
					out->unsched_prio;
		} else {
			desc->prio = out->sched_prio;
		}
		desc->length = n;
		if (!out->first_at)
			HOMA_WRITE_ONCE(out->first_at, ctx->now);
		HOMA_WRITE_ONCE(out->next, out->next + n);
		HOMA_WRITE_ONCE(out->sent_at, ctx->now);
	}
	desc->seg_size = out->send.packet;
}

static enum homa_tx_result homa_tx_ctrl(struct homa_ctx *ctx,
					struct homa_link *link,
					struct homa_tx_desc *desc)
{
	static const u8 metric[HOMA_TYPES] = {
		[HOMA_GRANT - HOMA_TYPE_FIRST] = HOMA_M_tx_grant,
		[HOMA_RESEND - HOMA_TYPE_FIRST] = HOMA_M_tx_resend,
		[HOMA_RPC_UNKNOWN - HOMA_TYPE_FIRST] = HOMA_M_tx_unknown,
		[HOMA_BUSY - HOMA_TYPE_FIRST] = HOMA_M_tx_busy,
		[HOMA_CUTOFFS - HOMA_TYPE_FIRST] = HOMA_M_tx_cutoffs,
		[HOMA_NEED_ACK - HOMA_TYPE_FIRST] = HOMA_M_tx_need_ack,
		[HOMA_ACK - HOMA_TYPE_FIRST] = HOMA_M_tx_ack,
	};
	const struct homa_ctrl *ctrl =
		&link->ctrl[link->ctrl_head & link->ctrl_mask];

	homa_count(ctx, metric[ctrl->type - HOMA_TYPE_FIRST], 1);
	desc->dst = ctrl->dst;
	desc->rpc = NULL;
	desc->link = link;
	desc->from = ctrl->from;
	desc->offset = 0;
	desc->length = 0;
	desc->seg_size = 0;
	desc->retransmit = false;
	desc->more = true;
	desc->prio = (u8)(link->engine->params.num_priorities - 1);
	desc->hdr_len = (u8)homa_ctrl_encode(link->engine, ctrl, desc->hdr);
	link->ctrl_head++;
	/* An empty ring begins at its first slot again, so that few slots need be in a
	 * cache. */
	if (link->ctrl_head == link->ctrl_tail) {
		link->ctrl_head = link->ctrl_tail = 0;
		homa_link_look(link);
	}
	homa_sched_charge(&link->sched, ctx->now,
			  homa_cable_bytes(&desc->dst, desc->hdr_len));
	homa_unlock(&link->lock);
	return HOMA_TX_PACKET;
}

/* Writes the DATA header of a packet, whose RPC is held; no lock held. */
static void homa_tx_header(const struct homa_ctx *ctx, struct homa_rpc *rpc,
			   struct homa_tx_desc *desc)
{
	struct homa_wire_data *w = (struct homa_wire_data *)desc->hdr;
	/* The RPC's flags belong to the shard, whose lock is not held here. */
	const bool asks = !(rpc->id & 1);
	struct homa_peer *peer = rpc->peer;
	struct homa_ack ack = { 0 };

	memcpy(desc->hdr, rpc->out.hdr, HOMA_DATA_HDR);
	homa_data_segment(desc->hdr, desc->offset);
	homa_put_be16(&w->cutoff_version, HOMA_READ_ONCE(peer->cutoff_version));
	if (unlikely(desc->retransmit)) {
		homa_put_be32(&w->incoming, desc->offset + desc->length);
		w->retransmit = 1;
		if (asks)
			homa_wire_set_life(desc->hdr, HOMA_READ_ONCE(rpc->life));
	}
	if (desc->offset == 0) {
		ack = rpc->out.ack;
		if (asks) {
			w->ext |= HOMA_EXT_REJECT;
			if (unlikely(rpc->within))
				homa_tx_left(ctx, rpc, desc->hdr);
		}
	}
	if (!ack.client_id && HOMA_READ_ONCE(peer->num_acks))
		homa_peer_take_acks(peer, &ack, 1);
	if (ack.client_id)
		homa_data_set_ack(desc->hdr, &ack);
	desc->dst = peer->addr;
	desc->hdr_len = HOMA_DATA_HDR;
}

static void homa_tx_account(struct homa_ctx *ctx, struct homa_link *link,
			    const struct homa_tx_desc *desc, u32 packets)
{
	homa_count(ctx, HOMA_M_tx_data, packets);
	homa_count(ctx, HOMA_M_tx_bytes, desc->length);
	if (unlikely(desc->retransmit)) {
		homa_count(ctx, HOMA_M_tx_retransmits, packets);
		homa_count(ctx, HOMA_M_tx_retransmit_bytes, desc->length);
	}
	homa_sched_credit(&link->sched, desc->length,
			  link->engine->params.pacer_fifo_fraction);
}

/* Returns the message bytes in a packet to @peer, which is reached over @link. */
static u32 homa_peer_seg(struct homa_ctx *ctx, struct homa_peer *peer,
			 const struct homa_link *link)
{
	if (unlikely(HOMA_READ_ONCE(peer->link_mtu) !=
		     (u16)HOMA_READ_ONCE(link->mtu)))
		homa_peer_try_mtu(ctx, peer, link);
	return HOMA_READ_ONCE(peer->mtu_seg);
}

HOMA_HOT bool homa_out_start_now(struct homa_ctx *ctx, struct homa_rpc *rpc,
				 u32 length, u32 available, u32 unsched,
				 struct homa_tx_desc *now)
{
	struct homa_link *link = rpc->link;
	struct homa_out *out = &rpc->out;
	u32 seg = homa_peer_seg(ctx, rpc->peer, link);

	if (unsched >= length || unsched + seg - 1 >= length)
		unsched = length;
	else
		unsched += seg - 1 - (unsched + seg - 1) % seg;
	out->length = length;
	out->next = 0;
	out->unsent = 0;
	out->resent = 0;
	out->anew = 0;
	out->limit = unsched;
	out->unsched = unsched;
	out->available = homa_min_u32(available, length);
	out->send.packet = (u16)seg;
	out->send.brief = unsched == length;
	out->sched_prio = 0;
	out->sent_at = ctx->now;
	out->first_at = 0;
	/* The acks are taken now, not when the packet leaves: a client that takes many
	 * responses and sends many requests before the device is fed would overflow the few
	 * acks kept per peer. */
	if (HOMA_READ_ONCE(rpc->peer->num_acks))
		homa_peer_take_acks(rpc->peer, &out->ack, 1);
	out->unsched_prio = homa_peer_unsched_prio(rpc->peer, length);
	if (now && unsched == length && length <= seg && available >= length &&
	    homa_out_at_once(ctx, rpc, now))
		return true;
	homa_out_header(ctx->engine, rpc);
	homa_lock(&link->lock);
	out->active = 1;
	homa_out_queue(link, rpc);
	homa_unlock(&link->lock);
	homa_tx_wanted(ctx, link);
	return false;
}

HOMA_HOT void homa_out_start(struct homa_ctx *ctx, struct homa_rpc *rpc,
			     u32 length, u32 available, u32 unsched)
{
	if (homa_out_start_now(ctx, rpc, length, available, unsched, ctx->tx_now))
		ctx->tx_now = NULL;
}

enum homa_tx_result homa_tx(struct homa_ctx *ctx, struct homa_link *link,
			    u32 max_segs, struct homa_tx_desc *desc)
{
	struct homa_sched *sched = &link->sched;
	struct homa_sendable *first, *oldest;
	struct homa_rpc *rpc;
	struct homa_out *out;
	u32 packets = 1;
	u64 later;

	homa_lock(&link->lock);
	if (link->ctrl_head != link->ctrl_tail)
		return homa_tx_ctrl(ctx, link, desc);
	first = homa_sched_first(sched);
	if (!first) {
		homa_unlock(&link->lock);
		return HOMA_TX_IDLE;
	}
	out = homa_out_of(first);
	if (!homa_out_ready(link, out, ctx->now, &desc->not_before)) {
		homa_unlock(&link->lock);
		homa_count(ctx, HOMA_M_tx_paced, 1);
		return HOMA_TX_WAIT;
	}
	oldest = homa_sched_oldest(sched, first);
	if (unlikely(oldest) &&
	    homa_out_ready(link, homa_out_of(oldest), ctx->now, &later))
		out = homa_out_of(oldest);
	else
		oldest = NULL;
	rpc = homa_container_of(out, struct homa_rpc, out);
	homa_out_take(ctx, link, rpc, max_segs, desc);
	if (desc->length > desc->seg_size)
		packets = (desc->length + desc->seg_size - 1) / desc->seg_size;
	homa_sched_charge(sched, ctx->now,
			  desc->length + packets * out->send.overhead);
	homa_tx_account(ctx, link, desc, packets);
	if (unlikely(oldest)) {
		homa_sched_debit(sched, desc->length);
		homa_count(ctx, HOMA_M_tx_fifo, packets);
	}
	if (out->num_rtx || homa_out_sendable(out))
		homa_sched_again(sched, &out->send, homa_out_left(out));
	else
		homa_sched_leave(sched, &out->send);
	homa_ref_get(&rpc->refs);
	desc->more = homa_sched_first(sched) != NULL;
	homa_link_look(link);
	homa_unlock(&link->lock);
	desc->rpc = rpc;
	desc->link = link;
	homa_tx_header(ctx, rpc, desc);
	return HOMA_TX_PACKET;
}

u32 homa_tx_segment(const struct homa_tx_desc *desc, u32 skip, void *hdr)
{
	memcpy(hdr, desc->hdr, desc->hdr_len);
	homa_data_segment(hdr, desc->offset + skip);
	return desc->hdr_len;
}
