// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The short form of a connection's book-keeping. While a connection repairs nothing, is
 * not paced, and has at most one segment under way, most of what struct tas_conn
 * documents follows from a few of its fields: no retransmission or probe was made, and
 * its deadlines follow from when something was sent or came last. The usual segments
 * (tas_fast.c) write only these fields. Whatever else looks at a connection has it
 * unfolded first: then all fields are what they are said to be.
 *
 * The wheel wakes a connection in the short form no later than the shortest of the times
 * that it may wait for, counted from the moment when it was folded. So the wheel is set
 * then and left alone by each segment, and a deadline that has passed is found late by
 * no more than before.
 */
#include "tas_impl.h"

/* Shortest time after which a deadline that is implied may be due, in ns. */
static u64 horizon(const struct tas_engine *engine, const struct tas_conn *conn)
{
	u64 least = homa_min_u32(engine->params.rto_min_ms,
				 engine->params.rto_max_ms) *
		    TAS_MSEC;

	return homa_min_u64(homa_min_u64(tas_ack_wait(engine, conn), least),
			    conn->rto);
}

/* True if @conn repairs, probes and paces nothing, and has at most one segment under
 * way. */
static bool plain(const struct tas_conn *conn)
{
	const struct tas_flow *f = &conn->f;

	return f->state == TAS_ESTABLISHED && !(f->flags & TAS_F_LONG) &&
	       tas_in_flight(conn) <= f->mss && !tas_repairs(conn) &&
	       conn->srtt && !conn->rtt_at && !conn->listener &&
	       !conn->user_timeout &&
	       !(conn->backoff | conn->probes | conn->keep_probes |
		 conn->tail_probes);
}

/* True if fields that the usual segments do not look at have the values that these
 * expect. */
static bool settled(const struct tas_conn *conn)
{
	const struct tas_flow *f = &conn->f;

	if (f->rcv_acked != f->rcv_nxt &&
	    !(f->flags & (TAS_F_ACK_NOW | TAS_F_ACK_LATER)))
		return false;
	return (!f->quick || (f->flags & TAS_F_PINGPONG)) &&
	       f->rcv_nxt != conn->irs + 1 && f->rx_shift &&
	       conn->rcv_mss <= tas_rx_size(conn) / 2 &&
	       f->cwnd >= 2u * f->mss && !tas_after(f->rcv_nxt, f->rcv_edge) &&
	       f->rcv_edge - f->rcv_nxt <= 65535u << f->rcv_wscale;
}

u64 tas_deadline(const struct tas_engine *engine, const struct tas_conn *conn,
		 enum tas_timer timer)
{
	u64 retransmit, tail;

	if (!(conn->f.flags & TAS_F_SHORT))
		return conn->deadline[timer];
	retransmit =
		tas_in_flight(conn) ? conn->stalled_at + conn->rto : TAS_NEVER;
	switch (timer) {
	case TAS_TIMER_DELACK:
		return conn->f.flags & TAS_F_ACK_LATER ?
			       conn->owed_at + tas_ack_wait(engine, conn) :
			       TAS_NEVER;
	case TAS_TIMER_RETRANSMIT:
		return retransmit;
	case TAS_TIMER_TAIL:
		if (!tas_in_flight(conn) || !tas_wants_tail_probe(engine, conn))
			return TAS_NEVER;
		tail = homa_max_u64(conn->stalled_at, conn->sent_at) +
		       tas_tail_after(engine, conn);
		return tail < retransmit ? tail : TAS_NEVER;
	default:
		return conn->deadline[timer];
	}
}

static void set_wheel(struct tas_engine *engine, struct tas_conn *conn)
{
	u64 wake = engine->now + horizon(engine, conn);
	u32 i;

	for (i = 0; i < TAS_TIMERS; i++)
		wake = homa_min_u64(wake, tas_deadline(engine, conn, i));
	if (!homa_wheel_linked(&conn->wheel) || conn->wheel.deadline > wake)
		homa_wheel_add(&engine->wheel, &conn->wheel, wake, engine->now);
}

/* May @conn send with its window until the wheel wakes it? The usual segment does not
 * look how long nothing was sent, so this does. */
static bool rested(struct tas_engine *engine, struct tas_conn *conn)
{
	tas_restart(engine, conn);
	return conn->f.cwnd <= engine->params.initial_window * conn->f.mss ||
	       !conn->sent_at ||
	       engine->now + horizon(engine, conn) - conn->sent_at <= conn->rto;
}

bool tas_fold(struct tas_engine *engine, struct tas_conn *conn)
{
	u64 retransmit = conn->deadline[TAS_TIMER_RETRANSMIT];

	if (!plain(conn) || !settled(conn) || !engine->params.delack_ms)
		return false;
	if (tas_in_flight(conn)) {
		if (retransmit == TAS_NEVER || retransmit < conn->rto)
			return false;
		conn->stalled_at = retransmit - conn->rto;
		conn->f.flags |= TAS_F_UNTIMED;
	} else if (retransmit != TAS_NEVER || !rested(engine, conn)) {
		return false; /* the closed window is to be probed */
	}
	if (conn->f.flags & TAS_F_ACK_LATER)
		conn->owed_at = conn->deadline[TAS_TIMER_DELACK] -
				tas_ack_wait(engine, conn);
	tas_follow(conn);
	tas_note_window(conn);
	conn->f.flags |= TAS_F_SHORT;
	set_wheel(engine, conn);
	return true;
}

void tas_unfold(struct tas_engine *engine, struct tas_conn *conn)
{
	u32 i;

	if (!(conn->f.flags & TAS_F_SHORT))
		return;
	for (i = 0; i < TAS_TIMERS; i++)
		conn->deadline[i] = tas_deadline(engine, conn, i);
	conn->heard_at = homa_max_u64(conn->heard_at, conn->data_at);
	if (!tas_in_flight(conn)) {
		conn->stalled_at = 0;
	} else if (!(conn->f.flags & TAS_F_UNTIMED)) {
		conn->rtt_at = conn->stalled_at;
		conn->rtt_seq = conn->f.snd_nxt;
	}
	conn->f.flags &= ~(u32)(TAS_F_SHORT | TAS_F_UNTIMED);
	tas_follow(conn);
}
