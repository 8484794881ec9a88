// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The receive side: which bytes of a segment are new and where they go, what is behind
 * gaps, when an ACK is owed, and how wide the window is.
 */
#include "tas_call.h"
#include "tas_impl.h"

/* ACKs of their own for segments behind a gap, with SACK: as many as senders wait for. */
#define GAP_ACKS 3u

static void forget(struct tas_conn *conn, u32 at)
{
	conn->f.gaps--;
	memmove(&conn->interval[at], &conn->interval[at + 1],
		(conn->f.gaps - at) * sizeof(conn->interval[0]));
}

/* Moves rcv_nxt on to the end of the intervals that it touches. */
static void close_gaps(struct tas_conn *conn)
{
	u32 i = 0;

	while (i < conn->f.gaps) {
		struct tas_range *r = &conn->interval[i];

		if (tas_after(r->start, conn->f.rcv_nxt)) {
			i++;
			continue;
		}
		if (tas_after(r->end, conn->f.rcv_nxt))
			conn->f.rcv_nxt = r->end;
		forget(conn, i);
		i = 0;
	}
}

/* Adds the bytes from @start to @end to the intervals, of which theirs becomes the
 * first; false: there are too many. */
static bool keep(struct tas_engine *engine, struct tas_conn *conn, u32 start,
		 u32 end)
{
	struct tas_range grown = { start, end };
	u32 i = 0;

	while (i < conn->f.gaps) {
		struct tas_range *r = &conn->interval[i];

		if (tas_before(r->end, grown.start) ||
		    tas_after(r->start, grown.end)) {
			i++;
			continue;
		}
		if (tas_before(r->start, grown.start))
			grown.start = r->start;
		if (tas_after(r->end, grown.end))
			grown.end = r->end;
		forget(conn, i);
		i = 0;
	}
	if (conn->f.gaps >= engine->params.max_intervals)
		return false;
	memmove(&conn->interval[1], &conn->interval[0],
		conn->f.gaps * sizeof(conn->interval[0]));
	conn->interval[0] = grown;
	conn->f.gaps++;
	return true;
}

/* Makes the bytes from *@start to *@end fewer, so that the first and the last of them are new:
 * those that lie behind a gap already are not copied again. Returns false if none is new. */
static bool has_new(const struct tas_conn *conn, u32 *start, u32 *end)
{
	u32 i = 0;

	while (i < conn->f.gaps) {
		const struct tas_range *r = &conn->interval[i++];
		bool first = !tas_before(*start, r->start) &&
			     tas_before(*start, r->end);
		bool last = tas_after(*end, r->start) && !tas_after(*end, r->end);

		if (first && last)
			return false;
		if (first)
			*start = r->end;
		else if (last)
			*end = r->start;
		else
			continue;
		/* The rest may begin or end in one that was looked at. */
		i = 0;
	}
	return true;
}

static void ack_in_order(struct tas_engine *engine, struct tas_conn *conn)
{
	u32 unacked = conn->f.rcv_nxt - conn->f.rcv_acked;
	bool quick = conn->f.quick && !(conn->f.flags & TAS_F_PINGPONG);

	/* At least each second full segment is acknowledged (RFC 9293, 3.8.6.3). */
	tas_owe_ack(engine, conn,
		    quick || unacked > conn->rcv_mss || conn->f.gaps);
}

/* Segments behind a gap may come together, and all would be told by one ACK, or by one with
 * bytes. But without SACK a sender counts ACKs without bytes (RFC 5681, 3.2), and some do so
 * with it, too. */
static void ack_behind_gap(struct tas_engine *engine, struct tas_conn *conn)
{
	u32 waiting = engine->stray_tail - engine->stray_head;

	if (waiting + 2 > TAS_STRAYS / 2 ||
	    ((conn->f.flags & TAS_F_SACK) && conn->gap_acks >= GAP_ACKS)) {
		tas_owe_ack(engine, conn, true);
		return;
	}
	/* The first ACK of what is in order is no duplicate. */
	if (conn->f.rcv_acked != conn->f.rcv_nxt)
		tas_send_ack(engine, conn);
	tas_send_ack(engine, conn);
	if (conn->gap_acks < GAP_ACKS)
		conn->gap_acks++;
}

static u32 first_acks(const struct tas_conn *conn)
{
	return homa_max_u32(2,
			    homa_min_u32(tas_rx_size(conn) / (2 * conn->rcv_mss),
					 TAS_QUICK_ACKS));
}

void tas_data_in(struct tas_engine *engine, struct tas_conn *conn,
		 const struct tas_segment *seg, struct tas_copy *copy)
{
	u32 start = seg->seq, end = seg->seq + seg->length;
	bool closes = false, kept, known;
	u32 new_start, new_end;

	if (tas_before(start, conn->f.rcv_nxt))
		start = conn->f.rcv_nxt;
	if (tas_after(end, tas_rx_limit(conn)))
		end = tas_rx_limit(conn);
	if (!tas_after(end, start)) {
		engine->metrics.duplicates++;
		tas_ack_too_late(conn);
		tas_owe_ack(engine, conn, true);
		return;
	}
	if (seg->length > conn->rcv_mss)
		conn->rcv_mss =
			(u16)homa_min_u32(seg->length,
					  homa_min_u32(engine->mtu, 65535));
	conn->data_at = engine->now;
	new_start = start;
	new_end = end;
	if (likely(start == conn->f.rcv_nxt)) {
		if (!conn->f.quick && conn->f.rcv_nxt == conn->irs + 1)
			conn->f.quick = (u8)first_acks(conn);
		conn->f.rcv_nxt = end;
		if (unlikely(conn->f.gaps)) {
			closes = true;
			has_new(conn, &new_start, &new_end);
			close_gaps(conn);
			conn->gap_acks = 0;
		}
		if (unlikely(tas_after(conn->f.rcv_nxt, conn->f.rcv_edge)))
			conn->f.rcv_edge = conn->f.rcv_nxt;
		if (closes)
			tas_owe_ack(engine, conn, true);
		else
			ack_in_order(engine, conn);
		tas_tell(engine, conn, TAS_EV_READABLE);
	} else {
		engine->metrics.out_of_order++;
		conn->out_of_order++;
		/* What has come before is not copied again: an application that agrees with its
		 * peer could else take any number of bytes from there that no limit counts. */
		known = !has_new(conn, &new_start, &new_end);
		engine->metrics.duplicates += known;
		kept = keep(engine, conn, start, end);
		ack_behind_gap(engine, conn);
		if (known)
			return;
		if (!kept) {
			engine->metrics.out_of_order_drops++;
			return;
		}
	}
	copy->conn = conn;
	copy->from = new_start - seg->seq;
	copy->length = new_end - new_start;
	copy->to = new_start - conn->irs - 1;
}

void tas_ecn_in(struct tas_engine *engine, struct tas_conn *conn,
		const struct tas_segment *seg, u8 ecn)
{
	bool marked = ecn == TAS_ECN_CE;

	engine->metrics.ecn_marked += marked;
	conn->marks_in += marked;
	if (conn->control != TAS_DCTCP && conn->control != TAS_RATE_DCTCP) {
		if (seg->flags & TAS_CWR)
			conn->f.flags &= ~TAS_F_ECHO;
		/* The sender is to hear of the mark soon. */
		if (marked && !(conn->f.flags & TAS_F_ECHO))
			tas_owe_ack(engine, conn, true);
		if (marked)
			conn->f.flags |= TAS_F_ECHO;
		return;
	}
	if (!seg->length || marked == !!(conn->f.flags & TAS_F_ECHO))
		return;
	/* The bytes that were not acknowledged yet had the other mark (RFC 8257, 3.2). */
	if (conn->f.flags & TAS_F_ACK_LATER)
		tas_send_ack(engine, conn);
	conn->f.flags ^= TAS_F_ECHO;
}

static void room_again(struct tas_engine *engine, struct tas_conn *conn,
		       u32 offered)
{
	u32 window;

	if (!tas_open(conn) || (conn->f.flags & TAS_F_FIN_IN))
		return;
	/* The peer is told of the window when it has doubled. */
	window = tas_window(conn);
	if (window > offered && window >= 2 * offered)
		tas_owe_ack(engine, conn, true);
}

void tas_taken_other(struct tas_engine *engine, struct tas_conn *conn, u32 bytes)
{
	struct tas_flow *f = &conn->f;
	s32 offered = (s32)(f->rcv_edge - f->rcv_nxt);

	if (bytes > f->rcv_nxt - f->rcv_read ||
	    (f->flags & (TAS_F_FIN_IN | TAS_F_URGENT_IN))) {
		bytes = homa_min_u32(bytes, tas_readable(conn));
		tas_urgent_taken(conn, f->rcv_read + bytes);
	}
	f->rcv_read += bytes;
	/* If the peer may send less than half of the buffer, it may be told of more. */
	if (offered <= (s32)((1u << f->rx_shift) >> 1))
		room_again(engine, conn, offered > 0 ? (u32)offered : 0);
}

void tas_set_buffer(struct tas_engine *engine, struct tas_conn *conn, u8 rx_shift)
{
	if (rx_shift <= conn->f.rx_shift || rx_shift > 30)
		return;
	conn->f.rx_shift = rx_shift;
	tas_note_window(conn);
	tas_taken_other(engine, conn, 0);
}
