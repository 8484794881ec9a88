// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What is sent next. Connections with something to send take turns, a piece each; a
 * piece is as many full segments as the windows let through, for the device to cut.
 */
#include "tas_impl.h"

static bool has_unsent(const struct tas_conn *conn)
{
	return tas_before(conn->f.snd_nxt, conn->f.snd_end);
}

/* Fills in the fields that each segment of a connection has, and notes that no ACK is owed
 * any more. */
static void common(struct tas_engine *engine, struct tas_conn *conn,
		   struct tas_segment *seg, u32 length)
{
	u32 window, i;

	seg->sport = conn->f.pair.local_port;
	seg->dport = conn->f.pair.remote_port;
	seg->ack = conn->f.rcv_nxt;
	window = tas_window(conn);
	conn->f.rcv_edge = conn->f.rcv_nxt + window;
	/* The window is rounded up, or the peer would take it for a window that was made
	 * smaller. */
	seg->window = (u16)homa_min_u32((window + tas_scale_slack(conn)) >>
						conn->f.rcv_wscale,
					65535);
	if (conn->f.flags & TAS_F_TS) {
		seg->options |= TAS_OPT_TS;
		seg->ts = engine->clock_ms + conn->ts_offset;
		seg->ts_echo = conn->f.ts_recent;
	}
	/* A full segment has no room for SACK blocks. */
	if (unlikely(conn->f.gaps) && !length && (conn->f.flags & TAS_F_SACK)) {
		seg->options |= TAS_OPT_SACK;
		seg->num_sacks = (u8)homa_min_u32(conn->f.gaps, TAS_SACKS);
		for (i = 0; i < seg->num_sacks; i++)
			seg->sack[i] = conn->interval[i];
	}
	if (conn->f.flags & TAS_F_ECHO)
		seg->flags |= TAS_ECE;
	if (unlikely(conn->f.flags & TAS_F_URGENT))
		tas_urgent_out(conn, seg);
	conn->f.flags &= ~(TAS_F_ACK_NOW | TAS_F_ACK_LATER);
	conn->f.rcv_acked = conn->f.rcv_nxt;
	if (conn->f.quick)
		conn->f.quick--;
	tas_disarm(conn, TAS_TIMER_DELACK);
}

void tas_send_ack(struct tas_engine *engine, struct tas_conn *conn)
{
	struct tas_segment seg = { .seq = conn->f.snd_nxt, .flags = TAS_ACK };

	common(engine, conn, &seg, 0);
	engine->metrics.acks_sent++;
	conn->segs_out++;
	tas_stray_send(engine, &conn->f.pair, &seg);
}

static void write_out(struct tas_conn *conn, const struct tas_segment *seg,
		      u32 length, struct tas_out *out)
{
	out->pair = &conn->f.pair;
	out->conn = conn;
	out->from = seg->seq - conn->iss - 1;
	out->length = length;
	out->mss = conn->f.mss;
	out->header_length = (u8)tas_encode(seg, out->header);
}

u16 tas_syn_window(const struct tas_conn *conn)
{
	u32 size = tas_rx_size(conn),
	    slack = (1u << tas_scale_for(conn->rx_max)) - 1;

	/* Later segments say the same edge rounded up, if windows are scaled. */
	return (u16)homa_min_u32(size > slack ? size - slack : 0, 65535);
}

static void syn_options(struct tas_engine *engine, struct tas_conn *conn,
			struct tas_segment *seg)
{
	bool answer = seg->flags & TAS_ACK;

	seg->options = TAS_OPT_MSS;
	seg->mss = (u16)tas_mss_of(engine, conn);
	if (answer ? conn->f.flags & TAS_F_SACK : engine->params.sack)
		seg->options |= TAS_OPT_SACK_OK;
	if (answer ? conn->f.flags & TAS_F_TS : engine->params.timestamps) {
		seg->options |= TAS_OPT_TS;
		seg->ts = engine->clock_ms + conn->ts_offset;
		seg->ts_echo = answer ? conn->f.ts_recent : 0;
	}
	if (answer ? conn->wscale_ok : engine->params.window_scaling) {
		seg->options |= TAS_OPT_WSCALE;
		seg->wscale = tas_scale_for(conn->rx_max);
	}
	if (answer && (conn->f.flags & TAS_F_ECN))
		seg->flags |= TAS_ECE;
	/* A SYN without an answer may have met somebody who drops those that ask for
	 * ECN. */
	if (!answer && tas_asks_ecn(engine, conn) && conn->backoff < 2)
		seg->flags |= TAS_ECE | TAS_CWR;
}

static bool send_syn(struct tas_engine *engine, struct tas_conn *conn,
		     struct tas_out *out)
{
	struct tas_segment seg = { .seq = conn->iss, .flags = TAS_SYN };
	bool first = conn->f.snd_nxt == conn->iss;

	if (!first && conn->rtx_nxt == conn->rtx_end &&
	    !(conn->f.flags & TAS_F_ACK_NOW))
		return false;
	/* A SYN that crossed ours is answered when it comes; our own SYN is what is
	 * repeated. */
	if (conn->listener ||
	    (tas_crossed(conn) && (conn->f.flags & TAS_F_ACK_NOW))) {
		seg.flags |= TAS_ACK;
		seg.ack = conn->f.rcv_nxt;
	}
	seg.sport = conn->f.pair.local_port;
	seg.dport = conn->f.pair.remote_port;
	seg.window = tas_syn_window(conn);
	syn_options(engine, conn, &seg);
	conn->f.rcv_edge = conn->f.rcv_nxt + seg.window;
	conn->f.rcv_acked = conn->f.rcv_nxt;
	conn->f.flags &= ~(TAS_F_ACK_NOW | TAS_F_ACK_LATER);
	conn->f.snd_nxt = conn->iss + 1;
	conn->rtx_nxt = conn->rtx_end = conn->f.snd_nxt;
	if (first) {
		conn->rtt_seq = conn->f.snd_nxt;
		conn->rtt_at = engine->now;
		tas_rearm(engine, conn);
	} else {
		conn->rtt_at = 0;
		engine->metrics.retransmits++;
		conn->resent++;
	}
	conn->segs_out++;
	out->ecn = TAS_ECN_NONE;
	write_out(conn, &seg, 0, out);
	return true;
}

/* Writes a segment with the bytes [@from, @from + @length), of which the last may be the
 * FIN. */
static void send_bytes(struct tas_engine *engine, struct tas_conn *conn,
		       u32 from, u32 length, bool again, struct tas_out *out)
{
	bool fin = length && (conn->f.flags & TAS_F_FIN) &&
		   from + length == conn->f.snd_end;
	struct tas_segment seg = { .seq = from, .flags = TAS_ACK };
	u32 pieces = 1;

	length -= fin;
	if (fin)
		seg.flags |= TAS_FIN;
	if (length &&
	    from + length + !!(conn->f.flags & TAS_F_FIN) == conn->f.snd_end)
		seg.flags |= TAS_PSH;
	common(engine, conn, &seg, length);
	out->ecn = TAS_ECN_NONE;
	if ((conn->f.flags & TAS_F_ECN) && length && !again) {
		out->ecn = TAS_ECN_ECT0;
		if (conn->f.flags & TAS_F_SAY_CWR)
			seg.flags |= TAS_CWR;
		conn->f.flags &= ~TAS_F_SAY_CWR;
	}
	if (length) {
		engine->metrics.data_sent++;
		engine->metrics.data_bytes += length;
		pieces = length > conn->f.mss ? (length - 1) / conn->f.mss + 1 :
						1;
		conn->data_out += pieces;
	} else {
		engine->metrics.acks_sent++;
	}
	conn->segs_out += pieces;
	write_out(conn, &seg, length, out);
}

/* Moves rtx_nxt to the next bytes that are to be sent again and that the peer does not
 * have, which end at *@end; false: there are none. */
static bool next_lost(struct tas_conn *conn, u32 *end)
{
	u32 i;

	*end = conn->rtx_end;
	for (i = 0; i < conn->f.sacks; i++) {
		const struct tas_range *r = &conn->sacked[i];

		if (!tas_after(r->end, conn->rtx_nxt))
			continue;
		if (tas_after(r->start, conn->rtx_nxt)) {
			if (tas_before(r->start, *end))
				*end = r->start;
			break;
		}
		conn->rtx_nxt = tas_before(r->end, conn->rtx_end) ?
					r->end :
					conn->rtx_end;
	}
	return tas_before(conn->rtx_nxt, *end);
}

static bool send_lost(struct tas_engine *engine, struct tas_conn *conn,
		      struct tas_out *out)
{
	u32 end, length, pipe;

	if (!next_lost(conn, &end))
		return false;
	length = homa_min_u32(end - conn->rtx_nxt, conn->f.mss);
	pipe = tas_pipe(conn);
	if (pipe && pipe + length > conn->f.cwnd &&
	    conn->rtx_nxt != conn->f.snd_una)
		return false;
	if (conn->f.flags & TAS_F_PACED) {
		if (!tas_paced(engine, conn, length))
			return false;
		tas_pace_sent(engine, conn, length);
	}
	engine->metrics.retransmits++;
	conn->resent++;
	conn->resent_bytes += length;
	conn->rtt_at = 0;
	send_bytes(engine, conn, conn->rtx_nxt, length, true, out);
	conn->rtx_nxt += length;
	conn->rtx_edge = conn->f.snd_nxt;
	tas_rearm(engine, conn);
	return true;
}

/* Would a small segment have to wait for an ACK? (RFC 896, after Minshall.) */
static bool nagle_waits(const struct tas_conn *conn)
{
	/* What is urgent does not wait, as in Linux. */
	if (conn->f.flags & TAS_F_URGENT)
		return false;
	if (conn->f.flags & TAS_F_CORK)
		return true;
	return !(conn->f.flags & TAS_F_NODELAY) && tas_in_flight(conn) &&
	       tas_after(conn->snd_small, conn->f.snd_una);
}

/* Returns how much of @room, less than a full segment, may be filled: all of it if it is
 * half of the largest window that the peer has had, as it may never have more (RFC 9293,
 * 3.8.6.2.1). */
static u32 half_window(const struct tas_conn *conn, u32 room)
{
	if (tas_in_flight(conn) && !(conn->f.flags & TAS_F_NODELAY))
		return 0;
	return room < conn->snd_most - conn->snd_most / 2 ? 0 : room;
}

/* Number of new bytes that may be sent now; the FIN counts as one. */
static u32 may_send(struct tas_engine *engine, struct tas_conn *conn)
{
	u32 left = conn->f.snd_end - conn->f.snd_nxt, most = left,
	    mss = conn->f.mss;
	u32 fin = !!(conn->f.flags & TAS_F_FIN);
	u32 room = tas_after(conn->f.snd_edge, conn->f.snd_nxt) ?
			   conn->f.snd_edge - conn->f.snd_nxt :
			   0;
	u32 pipe = tas_pipe(conn);

	if (most > engine->params.max_segment)
		most = homa_min_u32(most,
				    homa_max_u32(engine->params.max_segment / mss,
						 1) *
					    mss);
	/* A device that cuts a segment would repeat its urgent pointer. */
	if (unlikely(conn->f.flags & TAS_F_URGENT))
		most = homa_min_u32(most, mss);
	if (room < most)
		most = room >= mss ? room / mss * mss : half_window(conn, room);
	if (pipe + most > conn->f.cwnd) {
		conn->f.flags |= TAS_F_CWND_FULL;
		most = conn->f.cwnd > pipe ? conn->f.cwnd - pipe : 0;
		most = most / mss * mss;
		if (!most && !pipe)
			most = homa_min_u32(left, mss);
	}
	/* Nagle's rule is about the end of what was written, if it fills no segment. */
	if (most == left && !fin && most % mss && nagle_waits(conn))
		most = most / mss * mss;
	/* A FIN that does not fit into a full segment goes alone. */
	if (most == left && fin && most > 1 && (most - 1) % mss == 0 &&
	    most - 1 > 0)
		most -= 1;
	return most && (conn->f.flags & TAS_F_PACED) ?
		       tas_paced(engine, conn, most) :
		       most;
}

static bool send_new(struct tas_engine *engine, struct tas_conn *conn,
		     struct tas_out *out)
{
	u32 length, from = conn->f.snd_nxt;
	bool idle = !tas_in_flight(conn);

	if (!has_unsent(conn))
		return false;
	tas_restart(engine, conn);
	conn->f.flags &= ~TAS_F_CWND_FULL;
	length = may_send(engine, conn);
	if (!length && (conn->f.flags & TAS_F_PROBE) &&
	    tas_after(conn->f.snd_edge, from))
		length = homa_min_u32(homa_min_u32(conn->f.snd_edge - from,
						   conn->f.mss),
				      conn->f.snd_end - from);
	if (!length)
		return false;
	conn->f.flags &= ~TAS_F_PROBE;
	if (idle)
		conn->backoff = 0;
	if (conn->f.flags & TAS_F_PACED)
		tas_pace_sent(engine, conn, length);
	send_bytes(engine, conn, from, length, false, out);
	conn->f.snd_nxt += length;
	if (out->length % conn->f.mss)
		conn->snd_small = conn->f.snd_nxt;
	if (!conn->rtt_at && !(conn->f.flags & (TAS_F_RECOVERY | TAS_F_LOSS))) {
		conn->rtt_seq = conn->f.snd_nxt;
		conn->rtt_at = engine->now;
	}
	if (2 * tas_in_flight(conn) > conn->f.cwnd &&
	    conn->f.cwnd < conn->ssthresh)
		conn->f.flags |= TAS_F_CWND_FULL;
	if (out->length && conn->data_at &&
	    engine->now - conn->data_at < TAS_ANSWER_NS)
		conn->f.flags |= TAS_F_PINGPONG;
	conn->sent_at = homa_max_u64(engine->now, 1);
	if (idle || conn->deadline[TAS_TIMER_RETRANSMIT] == TAS_NEVER)
		tas_rearm(engine, conn);
	else if (conn->deadline[TAS_TIMER_TAIL] != TAS_NEVER)
		tas_rearm_tail(engine, conn);
	return true;
}

/* Sends an ACK. A probe has an old sequence number, so that the peer answers it by an
 * ACK. */
static void send_ack(struct tas_engine *engine, struct tas_conn *conn,
		     bool probe, struct tas_out *out)
{
	u32 seq = conn->f.snd_nxt;

	/* A peer that has made its window smaller would not look at what is behind it. */
	if (tas_after(seq, conn->f.snd_edge + (1u << conn->f.snd_wscale)))
		seq = tas_after(conn->f.snd_edge, conn->f.snd_una) ?
			      conn->f.snd_edge :
			      conn->f.snd_una;
	send_bytes(engine, conn, probe ? conn->f.snd_una - 1 : seq, 0, true, out);
}

static bool build(struct tas_engine *engine, struct tas_conn *conn,
		  struct tas_out *out)
{
	u32 probe = conn->f.flags & (TAS_F_PROBE | TAS_F_ALIVE);

	if (conn->f.state == TAS_SYN_SENT || conn->f.state == TAS_SYN_RECEIVED)
		return send_syn(engine, conn, out);
	/* Bytes behind a gap are reported at once, by a segment without payload. */
	if ((conn->f.flags & TAS_F_ACK_NOW) && conn->f.gaps) {
		send_ack(engine, conn, false, out);
		return true;
	}
	if (conn->rtx_nxt != conn->rtx_end && send_lost(engine, conn, out))
		return true;
	if (send_new(engine, conn, out))
		return true;
	if (probe) {
		conn->f.flags &= ~(TAS_F_PROBE | TAS_F_ALIVE);
		send_ack(engine, conn, true, out);
		return true;
	}
	if (conn->f.flags & TAS_F_ACK_NOW) {
		send_ack(engine, conn, false, out);
		return true;
	}
	/* Bytes wait for a window: a probe asks for one. */
	if (has_unsent(conn) && !tas_in_flight(conn) &&
	    conn->deadline[TAS_TIMER_RETRANSMIT] == TAS_NEVER)
		tas_rearm(engine, conn);
	return false;
}

static void stray_out(struct tas_engine *engine, struct tas_out *out)
{
	const struct tas_stray *stray =
		&engine->stray[engine->stray_head++ % TAS_STRAYS];

	out->pair = &stray->pair;
	out->conn = NULL;
	out->from = out->length = 0;
	out->mss = 0;
	out->ecn = TAS_ECN_NONE;
	out->header_length = (u8)tas_encode(&stray->seg, out->header);
}

bool tas_next_other(struct tas_engine *engine, struct tas_out *out)
{
	struct homa_list *node;

	if (engine->stray_head != engine->stray_tail) {
		stray_out(engine, out);
		if (unlikely(tas_refuses(engine)))
			tas_refuse(engine);
		return true;
	}
	while ((node = homa_list_pop(&engine->tx))) {
		struct tas_conn *conn =
			homa_container_of(node, struct tas_conn, f.tx);

		tas_unfold(engine, conn);
		if (!build(engine, conn, out))
			continue;
		tas_want(engine, conn);
		return true;
	}
	return false;
}
