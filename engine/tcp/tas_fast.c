// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What is sent nearly always: an ACK, or bytes that fit into one segment with it, on a
 * connection that repairs nothing and is neither being opened nor closed. It does what
 * the functions of tas_tx.c do in such a case, without what they would find out in
 * vain; whatever is not so is left to them, untouched.
 */
#include "tas_impl.h"

/* With any of these it is something else. */
#define UNUSUAL_OUT                                                           \
	(TAS_F_ECN | TAS_F_FIN | TAS_F_CLOSED | TAS_F_RECOVERY | TAS_F_LOSS | \
	 TAS_F_CORK | TAS_F_PROBE | TAS_F_ALIVE | TAS_F_PACED)

#define TS_HEADER (TAS_HDR + 12u)
#define TS_WORD 0x0101080au /* two NOPs, kind and length of the option */

/* All that there is to send is one segment, or an ACK, and it may go now. */
static bool ready(const struct tas_engine *engine, const struct tas_conn *conn)
{
	const struct tas_flow *f = &conn->f;
	u32 left = f->snd_end - f->snd_nxt, under_way = f->snd_nxt - f->snd_una;

	if (f->state != TAS_ESTABLISHED || (f->flags & UNUSUAL_OUT) || !f->rx_shift ||
	    tas_repairs(conn))
		return false;
	if (!left)
		return (f->flags & TAS_F_ACK_NOW) && !tas_after(f->snd_nxt, f->snd_edge);
	if (left > f->mss || (s32)(f->snd_edge - f->snd_end) < 0 || under_way + left > f->cwnd ||
	    !conn->srtt || conn->user_timeout)
		return false;
	if (under_way) /* Nagle's rule */
		return left == f->mss || (f->flags & TAS_F_NODELAY) ||
		       !tas_after(conn->snd_small, f->snd_una);
	return engine->now - conn->sent_at <= conn->rto;
}

/* The window, as tas_window() says; what the application has not taken fits. */
static u32 window(struct tas_conn *conn)
{
	struct tas_flow *f = &conn->f;
	u32 size = 1u << f->rx_shift, old = f->rcv_edge - f->rcv_nxt;
	u32 room = (size - (f->rcv_nxt - f->rcv_read)) >> f->rcv_wscale;

	room = homa_min_u32(room, 65535) << f->rcv_wscale;
	if (room < old + homa_min_u32(conn->rcv_mss, size / 2))
		return old;
	f->rcv_edge = f->rcv_nxt + room;
	return room;
}

static void write_header(struct tas_engine *engine, struct tas_conn *conn, u32 length,
			 struct tas_out *out)
{
	struct tas_flow *f = &conn->f;
	u32 header = f->flags & TAS_F_TS ? TS_HEADER : TAS_HDR;
	u32 flags = length ? TAS_ACK | TAS_PSH : TAS_ACK;
	u32 shown = (window(conn) + tas_scale_slack(conn)) >> f->rcv_wscale;
	u8 *p = out->header;

	homa_put_be32(p, (u32)f->pair.local_port << 16 | f->pair.remote_port);
	homa_put_be32(p + 4, f->snd_nxt);
	homa_put_be32(p + 8, f->rcv_nxt);
	homa_put_be32(p + 12, header << 26 | flags << 16 | homa_min_u32(shown, 65535));
	homa_put_be32(p + 16, 0);
	if (f->flags & TAS_F_TS) {
		homa_put_be32(p + 20, TS_WORD);
		homa_put_be32(p + 24, engine->clock_ms + conn->ts_offset);
		homa_put_be32(p + 28, f->ts_recent);
	}
	out->header_length = (u8)header;
	out->pair = f->pair;
	out->conn = conn;
	out->from = f->snd_nxt - conn->iss - 1;
	out->length = length;
	out->mss = f->mss;
	out->ecn = TAS_ECN_NONE;
}

static void bytes_out(struct tas_engine *engine, struct tas_conn *conn, u32 length)
{
	struct tas_flow *f = &conn->f;
	bool first = f->snd_nxt == f->snd_una;

	engine->metrics.data_sent++;
	engine->metrics.data_bytes += length;
	conn->data_out++;
	f->snd_nxt += length;
	if (length != f->mss)
		conn->snd_small = f->snd_nxt;
	if (!conn->rtt_at) {
		conn->rtt_seq = f->snd_nxt;
		conn->rtt_at = engine->now;
	}
	f->flags &= ~TAS_F_CWND_FULL;
	if (unlikely(2 * (f->snd_nxt - f->snd_una) > f->cwnd) && f->cwnd < conn->ssthresh)
		f->flags |= TAS_F_CWND_FULL;
	if (conn->data_at && engine->now - conn->data_at < TAS_ANSWER_NS)
		f->flags |= TAS_F_PINGPONG;
	conn->sent_at = engine->now;
	if (first)
		tas_arm_first(engine, conn);
	else if (conn->deadline[TAS_TIMER_RETRANSMIT] == TAS_NEVER)
		tas_rearm(engine, conn);
	else if (conn->deadline[TAS_TIMER_TAIL] != TAS_NEVER)
		tas_rearm_tail(engine, conn);
}

bool tas_fast_out(struct tas_engine *engine, struct tas_conn *conn, struct tas_out *out)
{
	struct tas_flow *f = &conn->f;
	u32 length = f->snd_end - f->snd_nxt;

	if (unlikely(!ready(engine, conn)))
		return false;
	write_header(engine, conn, length, out);
	f->flags &= ~(TAS_F_ACK_NOW | TAS_F_ACK_LATER);
	f->rcv_acked = f->rcv_nxt;
	f->quick -= !!f->quick;
	conn->deadline[TAS_TIMER_DELACK] = TAS_NEVER;
	conn->segs_out++;
	if (length)
		bytes_out(engine, conn, length);
	else
		engine->metrics.acks_sent++;
	return true;
}
