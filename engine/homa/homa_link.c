// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The send scheduler of a link: which message's packet goes next. Messages
 * that can send something wait in a heap ordered by bytes left (SRPT); a share
 * of the paced output goes to the oldest one, so that long messages finish
 * under overload. Nothing is queued behind this: the host pulls one packet
 * when the device has room, so the choice is made at the last moment.
 *
 * A message is cut on a fixed grid of segments from its first byte, and the
 * unscheduled part ends on the grid. A grant that ends inside a segment
 * releases the whole segment: runt packets would cost more than they save.
 */
#include "homa_impl.h"

#define HOMA_FIFO_CREDIT_MAX 100000000ll	/* 1/1000 bytes */

static u32 homa_out_left(const struct homa_out *out)
{
	return out->length - out->next;
}

/* Can anything new be sent? A whole segment, or the end of the message. */
static bool homa_out_sendable(const struct homa_out *out)
{
	return out->next < out->limit &&
	       out->available >= homa_min_u32(out->length,
					      out->next + out->seg_size);
}

/*
 * How many bytes to send from @out->next on: at most @room (a multiple of the
 * segment size), in whole segments. Divides only when it has to.
 */
static u32 homa_out_next_bytes(const struct homa_out *out, u32 room)
{
	u32 n = homa_min_u32(homa_out_left(out), room);
	u32 allowed = out->limit - out->next;
	u32 seg = out->seg_size;

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

void homa_out_queue(struct homa_link *link, struct homa_rpc *rpc)
{
	struct homa_out *out = &rpc->out;
	bool ready = out->active && (out->num_rtx || homa_out_sendable(out));

	if (ready == out->queued)
		return;
	HOMA_WRITE_ONCE(out->queued, ready);	/* timers look without the lock */
	if (ready) {
		out->node.key = homa_out_left(out);
		out->node.tie = rpc->birth;
		homa_heap_insert(&link->heap, &out->node);
	} else {
		homa_heap_remove(&link->heap, &out->node);
	}
	if (out->length > out->unsched) {
		out->fifo.key = rpc->birth;
		out->fifo.tie = rpc->id;
		if (ready)
			homa_heap_insert(&link->fifo, &out->fifo);
		else
			homa_heap_remove(&link->fifo, &out->fifo);
	}
}

/* Bytes on the cable for a packet that carries @len bytes of Homa. */
static u32 homa_wire_bytes(const struct homa_addr *dst, u32 len)
{
	return len + (homa_addr_is_v4(dst) ? 20 : 40) + (dst->encap ? 8 : 0) +
	       HOMA_ETH_HEADER + HOMA_WIRE_OVERHEAD;
}

/* What all packets of a message have in common. */
static void homa_out_header(struct homa_rpc *rpc)
{
	struct homa_out *out = &rpc->out;
	struct homa_packet p HOMA_NOINIT;

	p.hdr.sport = rpc->sport;
	p.hdr.dport = rpc->dport;
	p.hdr.sender_id = rpc->id;
	p.hdr.type = HOMA_DATA;
	memset(&p.data, 0, sizeof(p.data));
	p.data.length = out->length;
	p.data.incoming = out->unsched;
	p.data.incast = out->incast;
	p.data.resp_limit_kib = out->resp_limit_kib;
	homa_packet_encode(out->hdr, &p);
	out->wire_bytes = (u16)homa_wire_bytes(&rpc->peer->addr, HOMA_DATA_HDR);
}

void homa_out_grant(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 limit,
		    u8 prio)
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
	homa_lock(&link->lock);
	rpc->out.active = 0;
	homa_rtx_clear(ctx, &rpc->out);
	homa_out_queue(link, rpc);
	homa_unlock(&link->lock);
}

/* ---- pulling ---- */

static void homa_link_charge(struct homa_link *link, u64 now, u64 bytes)
{
	if (link->by_room) {
		link->room -= homa_min_u64(link->room, bytes);
	} else if (link->ps_per_byte) {
		u64 ns = homa_div64(bytes * link->ps_per_byte, 1000);

		link->idle_at = homa_max_u64(link->idle_at, now) + ns;
	}
}

/* May @out send now? Else the time at which to ask again. */
static bool homa_link_ready(struct homa_link *link, const struct homa_out *out,
			    u64 now, u64 *not_before)
{
	u64 limit;

	if (homa_out_left(out) <= link->engine->params.defer_min_bytes &&
	    out->length <= out->unsched)
		return true;
	if (link->by_room) {
		*not_before = HOMA_NEVER;
		return link->room >= out->seg_size;
	}
	if (!link->ps_per_byte || link->idle_at <= now)
		return true;
	limit = HOMA_READ_ONCE(link->backlog_ns);
	*not_before = link->idle_at - homa_min_u64(limit, link->idle_at);
	return *not_before <= now;
}

/* How many segments fit into the device's room or the pacing limit. */
static u32 homa_link_burst(const struct homa_link *link,
			   const struct homa_out *out, u32 max_segs)
{
	u64 segs;

	if (max_segs <= 1)
		return 1;
	if (link->by_room)
		segs = homa_div64(link->room, out->seg_size);
	else if (link->ps_per_byte)
		segs = homa_div64(HOMA_READ_ONCE(link->backlog_ns) * 1000,
				  (u64)link->ps_per_byte * out->seg_size);
	else
		return max_segs;
	return (u32)homa_max_u64(1, homa_min_u64(segs, max_segs));
}

/*
 * The oldest message if its share is due, else NULL. Only asked when the link
 * could take the packet, so that waiting costs it nothing.
 */
static struct homa_rpc *homa_link_oldest(const struct homa_link *link,
					 const struct homa_rpc *shortest)
{
	struct homa_heap_node *first = homa_heap_min(&link->fifo);
	struct homa_rpc *oldest;

	if (likely(link->fifo_bytes < shortest->out.seg_size * 1000ll) || !first)
		return NULL;
	oldest = homa_container_of(first, struct homa_rpc, out.fifo);
	return oldest == shortest ? NULL : oldest;
}

/* Choose the bytes of the next transmission of @rpc; link locked. */
static void homa_link_take(struct homa_ctx *ctx, struct homa_link *link,
			   struct homa_rpc *rpc, u32 max_segs,
			   struct homa_tx_desc *desc)
{
	struct homa_out *out = &rpc->out;
	u32 room = homa_link_burst(link, out, max_segs) * out->seg_size;

	if (unlikely(out->num_rtx)) {
		homa_rtx_take(ctx, out, room, desc);
	} else {
		u32 n = homa_out_next_bytes(out, room);

		desc->retransmit = false;
		desc->offset = out->next;
		if (out->next < out->unsched) {
			n = homa_min_u32(n, out->unsched - out->next);
			desc->prio = link->engine->params.prio_by_remaining ?
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
	desc->seg_size = out->seg_size;
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
	const struct homa_ctrl *ctrl = &link->ctrl[link->ctrl_head &
						   link->ctrl_mask];

	homa_count(ctx, metric[ctrl->type - HOMA_TYPE_FIRST], 1);
	desc->dst = ctrl->dst;
	desc->rpc = NULL;
	desc->link = link;
	desc->offset = 0;
	desc->length = 0;
	desc->seg_size = 0;
	desc->retransmit = false;
	desc->more = true;
	desc->prio = (u8)(link->engine->params.num_priorities - 1);
	desc->hdr_len = (u8)homa_ctrl_encode(ctrl, desc->hdr);
	link->ctrl_head++;
	/* An empty ring begins anew: then few of its slots need be in a cache. */
	if (link->ctrl_head == link->ctrl_tail)
		link->ctrl_head = link->ctrl_tail = 0;
	homa_link_charge(link, ctx->now, homa_wire_bytes(&desc->dst,
							 desc->hdr_len));
	homa_unlock(&link->lock);
	return HOMA_TX_PACKET;
}

/* The DATA header of a pinned message; no lock held. */
static void homa_tx_header(struct homa_rpc *rpc, struct homa_tx_desc *desc)
{
	struct homa_wire_data *w = (struct homa_wire_data *)desc->hdr;
	struct homa_peer *peer = rpc->peer;
	struct homa_ack ack = { 0 };

	memcpy(desc->hdr, rpc->out.hdr, HOMA_DATA_HDR);
	homa_data_segment(desc->hdr, desc->offset);
	homa_put_be16(&w->cutoff_version, HOMA_READ_ONCE(peer->cutoff_version));
	if (unlikely(desc->retransmit)) {
		homa_put_be32(&w->incoming, desc->offset + desc->length);
		w->retransmit = 1;
	}
	if (desc->offset == 0)
		ack = rpc->out.ack;
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
	if (link->heap.count > 1 && link->fifo_bytes < HOMA_FIFO_CREDIT_MAX)
		link->fifo_bytes += (s64)desc->length *
				    link->engine->params.pacer_fifo_fraction;
}

/*
 * A message that is all there and fits one packet, on a link where nothing else
 * waits, is what homa_tx() would choose now: it need not be queued for that. Link
 * locked; the header is the caller's.
 */
static bool homa_tx_at_once(struct homa_ctx *ctx, struct homa_link *link,
			    struct homa_rpc *rpc)
{
	struct homa_tx_desc *desc = ctx->tx_now;
	struct homa_out *out = &rpc->out;
	u64 later;

	if (out->length > out->seg_size || out->available < out->length ||
	    out->limit < out->length || link->heap.count ||
	    link->ctrl_head != link->ctrl_tail || link->by_room ||
	    !homa_link_ready(link, out, ctx->now, &later))
		return false;
	homa_link_take(ctx, link, rpc, 1, desc);
	homa_link_charge(link, ctx->now, desc->length + out->wire_bytes);
	homa_tx_account(ctx, link, desc, 1);
	homa_ref_get(&rpc->refs);
	desc->more = false;
	desc->rpc = rpc;
	desc->link = link;
	return true;
}

void homa_out_start(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 length,
		    u32 available, u32 unsched)
{
	struct homa_link *link = rpc->link;
	struct homa_out *out = &rpc->out;
	u32 seg = HOMA_READ_ONCE(rpc->peer->mtu_seg);
	bool now;

	if (unsched >= length || unsched + seg - 1 >= length)
		unsched = length;
	else
		unsched += seg - 1 - (unsched + seg - 1) % seg;
	out->length = length;
	out->next = 0;
	out->unsent = 0;
	out->resent = 0;
	out->limit = unsched;
	out->unsched = unsched;
	out->available = homa_min_u32(available, length);
	out->seg_size = (u16)seg;
	out->sched_prio = 0;
	out->sent_at = ctx->now;
	out->first_at = 0;
	/* Now, not when the packet leaves: a client that takes many responses
	 * and sends many requests before the device is fed would overflow
	 * the few acks kept per peer. */
	if (HOMA_READ_ONCE(rpc->peer->num_acks))
		homa_peer_take_acks(rpc->peer, &out->ack, 1);
	out->unsched_prio = homa_peer_unsched_prio(rpc->peer, length);
	homa_out_header(rpc);
	homa_lock(&link->lock);
	out->active = 1;
	now = ctx->tx_now && homa_tx_at_once(ctx, link, rpc);
	if (!now)
		homa_out_queue(link, rpc);
	homa_unlock(&link->lock);
	if (!now) {
		homa_tx_wanted(ctx, link);
		return;
	}
	homa_tx_header(rpc, ctx->tx_now);
	ctx->tx_now = NULL;
}

enum homa_tx_result homa_tx(struct homa_ctx *ctx, struct homa_link *link,
			    u32 max_segs, struct homa_tx_desc *desc)
{
	struct homa_heap_node *node;
	struct homa_rpc *rpc, *oldest;
	struct homa_out *out;
	u32 packets = 1;
	u64 later;

	homa_lock(&link->lock);
	if (link->ctrl_head != link->ctrl_tail)
		return homa_tx_ctrl(ctx, link, desc);
	node = homa_heap_min(&link->heap);
	if (!node) {
		homa_unlock(&link->lock);
		return HOMA_TX_IDLE;
	}
	rpc = homa_container_of(node, struct homa_rpc, out.node);
	if (!homa_link_ready(link, &rpc->out, ctx->now, &desc->not_before)) {
		homa_unlock(&link->lock);
		homa_count(ctx, HOMA_M_tx_paced, 1);
		return HOMA_TX_WAIT;
	}
	oldest = homa_link_oldest(link, rpc);
	if (unlikely(oldest) && homa_link_ready(link, &oldest->out, ctx->now, &later))
		rpc = oldest;
	else
		oldest = NULL;
	out = &rpc->out;
	homa_link_take(ctx, link, rpc, max_segs, desc);
	if (desc->length > desc->seg_size)
		packets = (desc->length + desc->seg_size - 1) / desc->seg_size;
	homa_link_charge(link, ctx->now, desc->length +
			 packets * rpc->out.wire_bytes);
	homa_tx_account(ctx, link, desc, packets);
	if (unlikely(oldest)) {
		/* A burst may be more than the credit: then it is in debt. */
		link->fifo_bytes -= desc->length * 1000ll;
		homa_count(ctx, HOMA_M_tx_fifo, packets);
	}
	if (out->num_rtx || homa_out_sendable(out)) {
		if (homa_heap_min(&link->heap) == &out->node)
			out->node.key = homa_out_left(out);
		else
			homa_heap_update(&link->heap, &out->node,
					 homa_out_left(out), rpc->birth);
	} else {
		homa_out_queue(link, rpc);
	}
	homa_ref_get(&rpc->refs);
	desc->more = link->heap.count != 0;
	homa_unlock(&link->lock);
	desc->rpc = rpc;
	desc->link = link;
	homa_tx_header(rpc, desc);
	return HOMA_TX_PACKET;
}

u32 homa_tx_segment(const struct homa_tx_desc *desc, u32 skip, void *hdr)
{
	memcpy(hdr, desc->hdr, desc->hdr_len);
	homa_data_segment(hdr, desc->offset + skip);
	return desc->hdr_len;
}

void homa_tx_done(struct homa_ctx *ctx, struct homa_tx_desc *desc, int err)
{
	struct homa_rpc *rpc = desc->rpc;

	if (unlikely(err))
		homa_count(ctx, HOMA_M_tx_failed, 1);
	if (!rpc) {
		if (unlikely(err) && err != -HOMA_EHOSTUNREACH)
			homa_ctrl_again(ctx, desc);
		return;
	}
	if (unlikely(err))
		homa_out_unsent(ctx, rpc, desc, err == -HOMA_EHOSTUNREACH);
	desc->rpc = NULL;
	homa_rpc_put(ctx, rpc);
}

/* ---- set-up and looking in ---- */

size_t homa_link_size(u32 ctrl_slots)
{
	return sizeof(struct homa_link) + ctrl_slots * sizeof(struct homa_ctrl);
}

void homa_link_init(struct homa_link *link, struct homa_engine *engine,
		    u32 rate_mbps, u32 mtu, u32 ctrl_slots)
{
	memset(link, 0, sizeof(*link));
	link->engine = engine;
	homa_lock_init(&link->lock, HOMA_LOCK_LINK);
	homa_heap_init(&link->heap);
	homa_heap_init(&link->fifo);
	link->ctrl = (struct homa_ctrl *)(link + 1);
	link->ctrl_mask = ctrl_slots - 1;
	link->rate_mbps = rate_mbps;
	link->mtu = mtu;
	homa_grants_init(&link->grants);
	homa_link_derive(link);
}

void homa_link_set(struct homa_link *link, u32 rate_mbps, u32 mtu)
{
	HOMA_WRITE_ONCE(link->rate_mbps, rate_mbps);
	HOMA_WRITE_ONCE(link->mtu, mtu);
	homa_link_derive(link);
}

void homa_link_pace_by_room(struct homa_link *link)
{
	homa_lock(&link->lock);
	link->by_room = true;
	homa_unlock(&link->lock);
}

void homa_link_pace_by_rate(struct homa_link *link)
{
	homa_lock(&link->lock);
	link->by_room = false;
	homa_unlock(&link->lock);
}

void homa_link_room(struct homa_link *link, u64 bytes)
{
	homa_lock(&link->lock);
	link->room = bytes;
	homa_unlock(&link->lock);
}
