// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The slow path of a connection that is known: RFC 9293, 3.10.7.4, step by step, with
 * RFC 5961's answers to blind attacks and RFC 7323's check of timestamps.
 */
#include "tas_impl.h"

/* A peer that was silent for longer may have timestamps that look older, in ns. */
#define PAWS_NS (24 * 86400 * TAS_SEC)

/* Is the timestamp of @seg older than the last one (RFC 7323, 5.3)? Not if that was so
 * long ago that newer ones look older (5.5). */
static bool is_old(const struct tas_engine *engine, const struct tas_conn *conn,
		   const struct tas_segment *seg)
{
	return (conn->f.flags & TAS_F_TS) && (seg->options & TAS_OPT_TS) &&
	       engine->now - conn->heard_at <= PAWS_NS &&
	       (s32)(seg->ts - conn->f.ts_recent) < 0;
}

/* Is a byte of @seg, or its number if it has none, in the receive window (RFC 9293,
 * table 6)? */
static bool in_window(const struct tas_conn *conn, const struct tas_segment *seg)
{
	u32 length = seg->length + !!(seg->flags & TAS_SYN) +
		     !!(seg->flags & TAS_FIN);
	u32 nxt = conn->f.rcv_nxt,
	    edge = conn->f.rcv_edge + tas_scale_slack(conn);

	if (!length)
		return !tas_before(seg->seq, nxt) && !tas_after(seg->seq, edge);
	return tas_after(seg->seq + length, nxt) &&
	       (seg->seq == nxt || tas_before(seg->seq, edge));
}

static void reset_in(struct tas_engine *engine, struct tas_conn *conn,
		     const struct tas_segment *seg)
{
	/* Only the exact number resets; others in the window are asked about (RFC 5961,
	 * 3.2). */
	if (seg->seq != conn->f.rcv_nxt) {
		if (!tas_before(seg->seq, conn->f.rcv_nxt) &&
		    !tas_after(seg->seq, conn->f.rcv_edge))
			tas_challenge(engine, conn);
		return;
	}
	engine->metrics.resets_received++;
	tas_fail(engine, conn,
		 conn->f.state == TAS_CLOSE_WAIT ? TAS_EPIPE : TAS_ECONNRESET);
}

/* Is the ACK within the last window? Else it is a guess (RFC 5961, 5.2). */
static bool ack_is_sound(struct tas_engine *engine, struct tas_conn *conn,
			 const struct tas_segment *seg)
{
	u32 window = homa_max_u32(conn->f.snd_edge - conn->f.snd_una, 65535);

	if (tas_after(seg->ack, conn->f.snd_nxt) ||
	    tas_before(seg->ack, conn->f.snd_una - window)) {
		tas_challenge(engine, conn);
		return false;
	}
	return true;
}

/* Resets @conn if bytes came that its application will not read (RFC 9293, 3.6.1, and
 * RFC 2525, 2.17). */
static bool unwanted(struct tas_engine *engine, struct tas_conn *conn,
		     const struct tas_segment *seg)
{
	if (!seg->length || !(conn->f.flags & TAS_F_CLOSED) ||
	    !tas_after(seg->seq + seg->length, conn->f.rcv_nxt))
		return false;
	tas_stray_reset(engine, &conn->f.pair, seg);
	tas_fail(engine, conn, TAS_ECONNRESET);
	return true;
}

static void fin(struct tas_engine *engine, struct tas_conn *conn,
		const struct tas_segment *seg)
{
	if (seg->flags & TAS_FIN) {
		conn->fin_at = seg->seq + seg->length;
		conn->f.flags |= TAS_F_FIN_SEEN;
		if (conn->fin_at != conn->f.rcv_nxt)
			tas_owe_ack(engine, conn, true);
	}
	if ((conn->f.flags & TAS_F_FIN_SEEN) &&
	    !(conn->f.flags & TAS_F_FIN_IN) && conn->fin_at == conn->f.rcv_nxt)
		tas_fin_in(engine, conn);
}

static void time_wait_rx(struct tas_engine *engine, struct tas_conn *conn,
			 const struct tas_segment *seg)
{
	struct tas_pair pair = conn->f.pair;
	struct tas_listener *listener;
	bool newer;

	/* A newer SYN cannot be of the old connection (RFC 6191 and RFC 1122, 4.2.2.13). */
	newer = (conn->f.flags & TAS_F_TS) && (seg->options & TAS_OPT_TS) ?
			(s32)(seg->ts - conn->f.ts_recent) > 0 :
			tas_after(seg->seq, conn->f.rcv_nxt);
	if ((seg->flags & (TAS_SYN | TAS_ACK | TAS_RST)) == TAS_SYN && newer) {
		listener = tas_find_listener(engine, &pair);
		if (listener || engine->elsewhere) {
			engine->metrics.time_wait_recycled++;
			tas_gone(engine, conn);
		}
		if (listener)
			tas_listener_rx(engine, listener, &pair, seg);
		return;
	}
	/* RFC 1337: a reset does not end TIME_WAIT. */
	if (seg->flags & TAS_RST)
		return;
	if (seg->length || (seg->flags & (TAS_FIN | TAS_SYN)))
		tas_owe_ack(engine, conn, true);
	/* If the peer's FIN comes once more, it has not heard our ACK. */
	if ((seg->flags & TAS_FIN) &&
	    seg->seq + seg->length + 1 == conn->f.rcv_nxt)
		tas_time_wait(engine, conn);
}

static void outside(struct tas_engine *engine, struct tas_conn *conn,
		    const struct tas_segment *seg)
{
	if (seg->flags & TAS_RST)
		return;
	/* If something comes once more, our answer was lost. */
	if (seg->length || (seg->flags & TAS_FIN) ||
	    (conn->f.state == TAS_SYN_RECEIVED && (seg->flags & TAS_SYN) &&
	     seg->seq == conn->irs))
		tas_owe_ack(engine, conn, true);
	else if (seg->flags & TAS_SYN)
		tas_challenge(engine, conn);
	else
		tas_answer(engine, conn);
}

/* Does steps one to four of RFC 9293, 3.10.7.4; true: the segment is acceptable. */
static bool acceptable(struct tas_engine *engine, struct tas_conn *conn,
		       const struct tas_segment *seg)
{
	bool rst = seg->flags & TAS_RST;

	if (is_old(engine, conn, seg) && !rst) {
		engine->metrics.paws_drops++;
		tas_challenge(engine, conn);
		return false;
	}
	if (!in_window(conn, seg)) {
		engine->metrics.outside_window++;
		outside(engine, conn, seg);
		return false;
	}
	if (rst) {
		reset_in(engine, conn, seg);
		return false;
	}
	if (seg->flags & TAS_SYN) {
		tas_challenge(engine, conn);
		return false;
	}
	return seg->flags & TAS_ACK;
}

/* Is @seg the third segment of a simultaneous open, from whoever sent the SYN that crossed
 * ours? */
static bool confirms(const struct tas_conn *conn, const struct tas_segment *seg)
{
	return (seg->flags & (TAS_SYN | TAS_RST | TAS_ACK)) == TAS_ACK &&
	       in_window(conn, seg);
}

/* Has the host no memory for @conn yet? Then payload is dropped, and comes again. */
static bool no_place(const struct tas_conn *conn)
{
	return (conn->f.flags & TAS_F_WAITS) && !*conn->listener->places;
}

void tas_slow_rx(struct tas_engine *engine, struct tas_conn *conn,
		 const struct tas_segment *seg, u8 ecn, struct tas_copy *copy)
{
	if (conn->f.state == TAS_SYN_SENT ||
	    (tas_crossed(conn) && !confirms(conn, seg))) {
		tas_syn_sent_rx(engine, conn, seg);
		return;
	}
	if (conn->f.state == TAS_TIME_WAIT) {
		time_wait_rx(engine, conn, seg);
		return;
	}
	if (conn->f.state == TAS_CLOSED || !acceptable(engine, conn, seg))
		return;
	if (conn->f.state == TAS_SYN_RECEIVED) {
		if (seg->ack != conn->iss + 1) {
			tas_stray_reset(engine, &conn->f.pair, seg);
			return;
		}
		tas_opened(engine, conn, seg);
		/* The listener had no room for it: the segment counts as lost. */
		if (conn->f.state == TAS_SYN_RECEIVED)
			return;
	}
	if (!ack_is_sound(engine, conn, seg) || unwanted(engine, conn, seg))
		return;
	if (unlikely(engine->now - conn->heard_at > PAWS_NS) &&
	    (seg->options & TAS_OPT_TS))
		conn->f.ts_recent = seg->ts;
	tas_take_timestamp(conn, seg);
	conn->heard_at = engine->now;
	conn->keep_probes = 0;
	if (conn->f.flags & TAS_F_ECN)
		tas_ecn_in(engine, conn, seg, ecn);
	if (!tas_before(seg->ack, conn->f.snd_una))
		tas_ack_in(engine, conn, seg);
	if ((conn->f.flags & TAS_F_FIN) && conn->f.snd_una == conn->f.snd_end)
		tas_fin_acked(engine, conn);
	if (conn->f.state == TAS_CLOSED)
		return;
	if (seg->length && no_place(conn))
		return;
	if (seg->flags & TAS_URG)
		tas_urgent_in(engine, conn, seg);
	if (seg->length && !(conn->f.flags & TAS_F_FIN_IN))
		tas_data_in(engine, conn, seg, copy);
	else if (seg->length ||
		 ((seg->flags & TAS_FIN) && (conn->f.flags & TAS_F_FIN_IN)))
		tas_owe_ack(engine, conn, true);
	fin(engine, conn, seg);
}
