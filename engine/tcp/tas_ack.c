// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* What a segment says about what we have sent: its ACK, its window, its SACK blocks. */
#include "tas_impl.h"

void tas_take_timestamp(struct tas_conn *conn, const struct tas_segment *seg)
{
	/* A segment that begins behind the end of our last ACK does not count. */
	if ((seg->options & TAS_OPT_TS) &&
	    (s32)(seg->ts - conn->f.ts_recent) >= 0 &&
	    !tas_after(seg->seq, conn->f.rcv_acked))
		conn->f.ts_recent = seg->ts;
}

/*
 * Segments overtake each other, so a window is believed if it comes with news, or with a
 * segment that is not older than what has arrived (RFC 9293, 3.10.7.4, with rcv_nxt in
 * the place of SND.WL1).
 */
static bool take_window(struct tas_conn *conn, const struct tas_segment *seg,
			bool news)
{
	u32 shift = seg->flags & TAS_SYN ? 0 : conn->f.snd_wscale;
	u32 edge = seg->ack + ((u32)seg->window << shift);
	bool grows = tas_after(edge, conn->f.snd_edge);

	if (edge == conn->f.snd_edge ||
	    (!news && !grows && tas_before(seg->seq, conn->f.rcv_nxt)))
		return false;
	conn->f.snd_edge = edge;
	conn->snd_most = homa_max_u32(conn->snd_most, edge - seg->ack);
	return true;
}

/* Moves a sequence number that is remembered up to @ack, or it would seem to lie ahead
 * after 2 GB. */
static void follow(u32 *mark, u32 ack)
{
	if (tas_before(*mark, ack))
		*mark = ack;
}

void tas_follow(struct tas_conn *conn)
{
	u32 una = conn->f.snd_una;

	follow(&conn->rtx_nxt, una);
	follow(&conn->rtx_end, conn->rtx_nxt);
	follow(&conn->recover, una);
	follow(&conn->ecn_seq, una);
	follow(&conn->snd_small, una);
	if (unlikely(conn->f.flags & TAS_F_URGENT) &&
	    !tas_after(conn->snd_up, una))
		conn->f.flags &= ~(u32)TAS_F_URGENT;
}

static void acknowledged(struct tas_engine *engine, struct tas_conn *conn,
			 const struct tas_segment *seg)
{
	u32 acked = seg->ack - conn->f.snd_una;
	bool marked = (seg->flags & TAS_ECE) && (conn->f.flags & TAS_F_ECN);

	tas_rtt_acked(engine, conn, seg);
	conn->f.snd_una = seg->ack;
	conn->f.dupacks = 0;
	conn->backoff = 0;
	conn->stalled_at = 0;
	conn->tail_probes = 0;
	tas_follow(conn);
	if (unlikely(conn->f.sacks))
		tas_sacked_trim(conn);
	tas_cc_acked(engine, conn, acked, marked);
	if (unlikely(conn->f.flags & (TAS_F_RECOVERY | TAS_F_LOSS)))
		tas_loss_acked(engine, conn, seg, acked);
	tas_tell(engine, conn, TAS_EV_WRITABLE);
}

/* The peer's window has changed, and nothing else. */
static void window_in(struct tas_engine *engine, struct tas_conn *conn)
{
	/* When the application has closed the connection, the time until the next try passes and
	 * tries count whatever the peer says of its window, or it could keep the connection and its
	 * memory for ever. */
	if ((conn->f.flags & TAS_F_CLOSED) &&
	    conn->deadline[TAS_TIMER_RETRANSMIT] != TAS_NEVER)
		return;
	/* A window that has opened is probed soon, if it is too narrow to be used at
	 * once. */
	if (!tas_in_flight(conn) && tas_after(conn->f.snd_edge, conn->f.snd_nxt))
		conn->backoff = 0;
	tas_rearm(engine, conn);
}

void tas_ack_in(struct tas_engine *engine, struct tas_conn *conn,
		const struct tas_segment *seg)
{
	bool news = tas_after(seg->ack, conn->f.snd_una), sacked = false, window;

	conn->probes = 0;
	window = take_window(conn, seg, news);
	if (unlikely(seg->options & TAS_OPT_SACK) && (conn->f.flags & TAS_F_SACK))
		sacked = tas_sacked(conn, seg);
	if (news)
		acknowledged(engine, conn, seg);
	else if (unlikely(seg->flags & TAS_ECE) &&
		 (conn->f.flags & TAS_F_ECN) && tas_in_flight(conn))
		tas_cc_acked(engine, conn, 0, true);
	/* RFC 5681, 2; with SACK only news count, so that copies of ACKs do not. */
	if (unlikely(sacked || (!news && !window && !seg->length &&
				tas_in_flight(conn) && seg->ack == conn->f.snd_una &&
				!(conn->f.flags & TAS_F_SACK))))
		tas_loss_dupack(engine, conn, news);
	if (news)
		tas_rearm(engine, conn);
	else if (window)
		window_in(engine, conn);
	tas_want(engine, conn);
}
