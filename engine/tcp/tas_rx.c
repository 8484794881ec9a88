// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The fast path: segments of established connections that say nothing unusual. Nearly
 * all bring the next bytes in order or acknowledge what is under way, on a connection
 * that repairs nothing: one test finds that out (header prediction, after Van Jacobson).
 * Others are taken by the general functions; whatever is an exception goes to the slow
 * path, which does the same by the book, as long as its turn lasts.
 */
#include "tas_impl.h"

#define UNUSUAL (TAS_SYN | TAS_FIN | TAS_RST | TAS_URG)

/* With any of these flags of a connection a segment may be an exception. */
#define UNUSUAL_IN                                               \
	(TAS_F_ECN | TAS_F_FIN | TAS_F_FIN_SEEN | TAS_F_CLOSED | \
	 TAS_F_RECOVERY | TAS_F_LOSS | TAS_F_URGENT)

/* Each time that snd_una passes a multiple of 2^28, sequence numbers that are remembered
 * follow it, so that none seems to lie ahead. */
#define FOLLOW_SHIFT 28

static bool expected(const struct tas_conn *conn, const struct tas_segment *seg)
{
	const struct tas_flow *f = &conn->f;
	u32 acked = seg->ack - f->snd_una;

	if ((seg->flags & ~TAS_PSH) != TAS_ACK || f->state != TAS_ESTABLISHED ||
	    (f->flags & UNUSUAL_IN) || seg->seq != f->rcv_nxt ||
	    seg->length > f->rcv_edge - f->rcv_nxt ||
	    acked > f->snd_nxt - f->snd_una)
		return false;
	if (f->flags & TAS_F_TS) {
		if (seg->options != TAS_OPT_TS ||
		    (s32)(seg->ts - f->ts_recent) < 0)
			return false;
	} else if (seg->options) {
		return false;
	}
	if (seg->length > conn->rcv_mss || f->rcv_nxt == conn->irs + 1)
		return false;
	/* An ACK that brings no news may open the window, or be a duplicate. */
	if (!acked &&
	    (!seg->length ||
	     seg->ack + ((u32)seg->window << f->snd_wscale) != f->snd_edge))
		return false;
	return !conn->listener && !tas_repairs(conn);
}

static void ack_in(struct tas_engine *engine, struct tas_conn *conn,
		   const struct tas_segment *seg)
{
	struct tas_flow *f = &conn->f;
	u32 una = f->snd_una, width = (u32)seg->window << f->snd_wscale;

	f->snd_edge = seg->ack + width;
	if (unlikely(width > conn->snd_most))
		conn->snd_most = width;
	if (conn->rtt_at && !tas_before(seg->ack, conn->rtt_seq)) {
		conn->rate.rtt = engine->now - conn->rtt_at;
		tas_rtt_sample(engine, conn, conn->rate.rtt);
		conn->rtt_at = 0;
	} else if (!conn->rtt_at) {
		tas_rtt_acked(engine, conn, seg);
	}
	f->snd_una = seg->ack;
	conn->backoff = 0;
	conn->stalled_at = 0;
	conn->tail_probes = 0;
	if (unlikely((una ^ seg->ack) >> FOLLOW_SHIFT))
		tas_follow(conn);
	if (f->flags & (TAS_F_CWND_FULL | TAS_F_PACED))
		tas_cc_acked(engine, conn, seg->ack - una, false);
	if (likely(f->snd_end == seg->ack)) {
		conn->deadline[TAS_TIMER_RETRANSMIT] = TAS_NEVER;
		conn->deadline[TAS_TIMER_TAIL] = TAS_NEVER;
		return;
	}
	tas_rearm(engine, conn);
	tas_want(engine, conn);
}

static void data_in(struct tas_engine *engine, struct tas_conn *conn, u32 length)
{
	struct tas_flow *f = &conn->f;
	u64 later = tas_ack_wait(engine, conn);

	conn->data_at = engine->now;
	f->rcv_nxt += length;
	if ((f->quick && !(f->flags & TAS_F_PINGPONG)) ||
	    f->rcv_nxt - f->rcv_acked > conn->rcv_mss || !later) {
		f->flags |= TAS_F_ACK_NOW;
		if (!homa_list_linked(&f->tx))
			homa_list_add_tail(&engine->tx, &f->tx);
	} else if (!(f->flags & (TAS_F_ACK_NOW | TAS_F_ACK_LATER))) {
		f->flags |= TAS_F_ACK_LATER;
		tas_arm(engine, conn, TAS_TIMER_DELACK, engine->now + later);
	}
}

/* Takes a segment if it is what is expected; false: it is not, and nothing was done. */
static bool next_in(struct tas_engine *engine, struct tas_conn *conn,
		    const struct tas_segment *seg, struct tas_copy *copy)
{
	struct tas_flow *f = &conn->f;
	u32 events = 0;

	if (unlikely(!expected(conn, seg)))
		return false;
	if ((f->flags & TAS_F_TS) && !tas_after(seg->seq, f->rcv_acked))
		f->ts_recent = seg->ts;
	conn->heard_at = engine->now;
	conn->keep_probes = 0;
	conn->probes = 0;
	if (seg->ack != f->snd_una) {
		ack_in(engine, conn, seg);
		events = TAS_EV_WRITABLE;
	}
	if (seg->length) {
		copy->conn = conn;
		copy->from = 0;
		copy->length = seg->length;
		copy->to = seg->seq - conn->irs - 1;
		data_in(engine, conn, seg->length);
		events |= TAS_EV_READABLE;
	}
	conn->events |= events;
	if (!homa_list_linked(&conn->event))
		homa_list_add_tail(&engine->events, &conn->event);
	return true;
}

static bool usual(const struct tas_conn *conn, const struct tas_segment *seg)
{
	const struct tas_flow *f = &conn->f;

	if (unlikely(f->state != TAS_ESTABLISHED ||
		     (seg->flags & (UNUSUAL | TAS_ACK)) != TAS_ACK ||
		     (f->flags & (TAS_F_FIN_SEEN | TAS_F_WAITS))))
		return false;
	if (unlikely((f->flags & TAS_F_TS) && (!(seg->options & TAS_OPT_TS) ||
					       (s32)(seg->ts - f->ts_recent) < 0)))
		return false;
	/* The ACK must be of bytes under way, and the segment not far from the window. */
	return seg->ack - f->snd_una <= f->snd_nxt - f->snd_una &&
	       !tas_before(seg->seq + seg->length, f->rcv_nxt) &&
	       !tas_after(seg->seq, f->rcv_edge + tas_scale_slack(conn)) &&
	       (!seg->length || tas_before(seg->seq, tas_rx_limit(conn)));
}

static void stranger(struct tas_engine *engine, const struct tas_pair *pair,
		     const struct tas_segment *seg)
{
	struct tas_listener *listener = NULL;
	struct tas_ended *ended;

	if (!engine->slow_left) {
		engine->metrics.slow_drops++;
		return;
	}
	engine->slow_left--;
	engine->metrics.slow_segments++;
	ended = tas_find_ended(engine, pair);
	if (ended && tas_ended_rx(engine, ended, seg))
		return;
	if (seg->flags & (TAS_SYN | TAS_ACK))
		listener = tas_find_listener(engine, pair);
	if (listener)
		tas_listener_rx(engine, listener, pair, seg);
	else
		tas_stray_reset(engine, pair, seg);
}

void tas_rx(struct tas_engine *engine, const struct tas_pair *pair,
	    const struct tas_segment *seg, u8 ecn, struct tas_copy *copy)
{
	struct tas_conn *conn = tas_find(engine, pair);

	copy->conn = NULL;
	if (unlikely(!conn)) {
		stranger(engine, pair, seg);
		return;
	}
	tas_unfold(engine, conn);
	conn->segs_in++;
	conn->data_in += !!seg->length;
	if (likely(next_in(engine, conn, seg, copy))) {
		engine->metrics.fast_segments++;
		return;
	}
	if (unlikely(!usual(conn, seg))) {
		if (!engine->slow_left) {
			engine->metrics.slow_drops++;
			return;
		}
		engine->slow_left--;
		engine->metrics.slow_segments++;
		tas_slow_rx(engine, conn, seg, ecn, copy);
		return;
	}
	engine->metrics.fast_segments++;
	tas_take_timestamp(conn, seg);
	conn->heard_at = engine->now;
	conn->keep_probes = 0;
	if (conn->f.flags & TAS_F_ECN)
		tas_ecn_in(engine, conn, seg, ecn);
	tas_ack_in(engine, conn, seg);
	if (seg->length)
		tas_data_in(engine, conn, seg, copy);
}
