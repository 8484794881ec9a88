// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Losses. With SACK what the peer has is known, and what is missing below it is sent
 * again (RFC 6675); without, one segment for each round trip (NewReno, RFC 6582). After
 * a timeout all that was not reported is taken for lost. [rtx_nxt, rtx_end) is what is
 * still to be sent again; the transmitter leaves out what the peer has.
 */
#include "tas_impl.h"

#define DUPACKS 3u /* duplicate ACKs that mean a loss */

/* Sequence number below which everything that the peer does not have is lost, as more
 * than two segments above it have arrived (RFC 6675, 4). */
static u32 lost_below(const struct tas_conn *conn)
{
	u32 above = 0, i = conn->f.sacks;

	while (i--) {
		above += conn->sacked[i].end - conn->sacked[i].start;
		if (above > (DUPACKS - 1) * conn->f.mss)
			return conn->sacked[i].start;
	}
	return conn->f.snd_una;
}

/* Takes bytes before @upto for lost: they are to be sent again. */
static void lost(struct tas_conn *conn, u32 upto)
{
	if (tas_after(upto, conn->f.snd_nxt))
		upto = conn->f.snd_nxt;
	if (tas_after(upto, conn->rtx_end))
		conn->rtx_end = upto;
}

/* Remembers what a repair changes, so that one that was not needed can be undone. */
static void remember(struct tas_engine *engine, struct tas_conn *conn)
{
	conn->undo_cwnd = conn->f.flags & TAS_F_TS ? conn->f.cwnd : 0;
	conn->undo_ssthresh = conn->ssthresh;
	conn->undo_ts = engine->clock_ms + conn->ts_offset;
}

static void begin(struct tas_engine *engine, struct tas_conn *conn)
{
	engine->metrics.fast_recoveries++;
	remember(engine, conn);
	tas_cc_loss(engine, conn);
	conn->f.flags |= TAS_F_RECOVERY;
	conn->f.cwnd = conn->ssthresh;
	conn->recover = conn->f.snd_nxt;
	conn->rtt_at = 0;
	conn->tail_probes = 0;
	conn->rtx_nxt = conn->rtx_end = conn->f.snd_una;
	lost(conn, conn->f.snd_una + conn->f.mss);
}

bool tas_loss_late(struct tas_engine *engine, struct tas_conn *conn)
{
	if (conn->f.flags & TAS_F_RECOVERY) {
		engine->metrics.lost_again++;
		conn->tail_probes++;
		conn->rtx_nxt = conn->f.snd_una;
		return true;
	}
	if (!conn->f.sacks)
		return false;
	engine->metrics.lost_late++;
	begin(engine, conn);
	lost(conn, conn->sacked[conn->f.sacks - 1].start);
	return true;
}

/* If a segment has arrived that was sent after all that was sent again, what is still missing
 * of that was lost once more (as RACK finds it, RFC 8985, by order instead of by time), and is
 * sent again. Where segments have overtaken others it takes more than two of them. */
static void lost_again(struct tas_engine *engine, struct tas_conn *conn)
{
	u32 edge = conn->rtx_edge +
		   (conn->overtaken || !(conn->f.flags & TAS_F_TS) ?
			    (DUPACKS - 1) * conn->f.mss :
			    0);

	if (!conn->f.sacks || conn->rtx_nxt != conn->rtx_end ||
	    !tas_after(conn->rtx_end, conn->f.snd_una) ||
	    !tas_after(conn->sacked[conn->f.sacks - 1].end, edge))
		return;
	engine->metrics.lost_again++;
	conn->rtx_nxt = conn->f.snd_una;
}

void tas_loss_dupack(struct tas_engine *engine, struct tas_conn *conn, bool news)
{
	bool sack = conn->f.flags & TAS_F_SACK;
	u32 below = sack ? lost_below(conn) : conn->f.snd_una;

	if (!news && conn->f.dupacks < 255)
		conn->f.dupacks++;
	if (!(conn->f.flags & (TAS_F_RECOVERY | TAS_F_LOSS))) {
		/* What a repair that has ended was about is not repaired once more. */
		if (tas_before(conn->f.snd_una, conn->recover) && !sack)
			return;
		if (conn->f.dupacks < DUPACKS && below == conn->f.snd_una) {
			if (sack)
				tas_rearm_tail(engine, conn);
			return;
		}
		begin(engine, conn);
	}
	if (sack && (conn->f.flags & TAS_F_RECOVERY)) {
		lost(conn, below);
		lost_again(engine, conn);
	}
}

static void end(struct tas_conn *conn)
{
	if (tas_by_rate(conn))
		tas_rate_window(conn);
	else if (conn->f.flags & TAS_F_RECOVERY)
		conn->f.cwnd =
			homa_min_u32(conn->ssthresh,
				     homa_max_u32(tas_pipe(conn), conn->f.mss) +
					     conn->f.mss);
	conn->f.flags &= ~(TAS_F_RECOVERY | TAS_F_LOSS);
	conn->rtx_nxt = conn->rtx_end = conn->f.snd_una;
}

/* Undoes a repair that was not needed: the first ACK of new bytes echoes the timestamp
 * of a segment that was sent before the repair began, so that one was late and not lost
 * (Eifel, RFC 3522, RFC 4015). */
static bool needless(struct tas_engine *engine, struct tas_conn *conn,
		     const struct tas_segment *seg)
{
	u32 cwnd = conn->undo_cwnd;

	conn->undo_cwnd = 0;
	if (!cwnd || !(seg->options & TAS_OPT_TS) || (seg->flags & TAS_ECE) ||
	    !tas_before(seg->ts_echo, conn->undo_ts))
		return false;
	engine->metrics.repairs_undone++;
	conn->overtaken = true;
	conn->rate.lost = false;
	conn->f.cwnd = homa_max_u32(cwnd, conn->f.cwnd);
	conn->ssthresh = homa_max_u32(conn->undo_ssthresh, conn->ssthresh);
	conn->f.flags &= ~(TAS_F_RECOVERY | TAS_F_LOSS);
	conn->rtx_nxt = conn->rtx_end = conn->f.snd_una;
	return true;
}

void tas_loss_acked(struct tas_engine *engine, struct tas_conn *conn,
		    const struct tas_segment *seg, u32 acked)
{
	if (needless(engine, conn, seg))
		return;
	if (!tas_before(conn->f.snd_una, conn->recover)) {
		end(conn);
		return;
	}
	if ((conn->f.flags & TAS_F_SACK) || (conn->f.flags & TAS_F_LOSS))
		return;
	/* A partial ACK: the segment behind it is lost, too. */
	conn->rtx_nxt = conn->f.snd_una;
	conn->rtx_end = conn->f.snd_una;
	lost(conn, conn->f.snd_una + conn->f.mss);
	conn->f.cwnd -= homa_min_u32(acked, conn->f.cwnd - conn->f.mss);
	conn->f.cwnd += conn->f.mss;
}

void tas_loss_timeout(struct tas_engine *engine, struct tas_conn *conn)
{
	/* What is lost again within one repair counts once. */
	if (!(conn->f.flags & TAS_F_LOSS)) {
		remember(engine, conn);
		tas_cc_loss(engine, conn);
	}
	conn->f.flags = (conn->f.flags & ~TAS_F_RECOVERY) | TAS_F_LOSS;
	conn->f.cwnd = conn->f.mss;
	conn->cwnd_acked = 0;
	conn->f.dupacks = 0;
	conn->recover = conn->f.snd_nxt;
	conn->rtt_at = 0;
	/* After several timeouts the peer may have taken back what it had (RFC 2018, 8). */
	if (conn->backoff > 1)
		conn->f.sacks = 0;
	conn->rtx_nxt = conn->f.snd_una;
	conn->rtx_end = conn->f.snd_nxt;
}
