// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The usual segments, in and out: bytes in order, the ACK of what is under way, and the
 * answer with its ACK, one segment, on a connection whose book-keeping is in the short
 * form. They are read from the packet and written into the header without struct
 * tas_segment between. Whatever is not so is left to the general functions, untouched.
 */
#include "tas_impl.h"

/* Bytes of a header that has timestamps as its only option. */
#define TS_HEADER (TAS_HDR + 12u)
/* First word of that option: two NOPs, its kind and its length. */
#define TS_WORD 0x0101080au

/* The word of the header that ends with the window, without it: data offset and flags. The
 * mask leaves PSH out. */
#define SHAPE(header, flags) ((u32)((header) / 4 << 12 | (flags)) << 16)
#define SHAPE_MASK (0xffff0000u & ~((u32)TAS_PSH << 16))

/* ---- in ---- */

/* Flags of a connection that takes plain segments: only those of @PLAIN are set of these. */
#define PLAIN (TAS_F_SHORT | TAS_F_TS)
#define PLAIN_MASK (TAS_F_LONG | PLAIN | TAS_F_ACK_NOW | TAS_F_ACK_LATER)

/* Is @pair what @conn has? @ports is the first word of the header of a segment that comes; it is
 * compared first, as many connections share an address. The ports in @pair do not count. */
static inline bool is_of(const struct tas_conn *conn,
			 const struct tas_pair *pair, u32 ports)
{
	const struct tas_pair *its = &conn->f.pair;

	return ((u32)its->remote_port << 16 | its->local_port) == ports &&
	       homa_get_le64(its->remote + 8) == homa_get_le64(pair->remote + 8) &&
	       homa_get_le64(its->remote) == homa_get_le64(pair->remote) &&
	       homa_get_le64(its->local + 8) == homa_get_le64(pair->local + 8) &&
	       homa_get_le64(its->local) == homa_get_le64(pair->local);
}

/* Finds the connection of a segment. */
static inline struct tas_conn *find(struct tas_engine *engine,
				    const struct tas_pair *pair, u32 ports)
{
	u32 hash = tas_hash_of(engine, pair->remote, ports);
	struct homa_list *head = homa_table_find(&engine->table, hash), *node;

	homa_list_for_each(node, head)
		if (likely(is_of(tas_conn_at(node), pair, ports)))
			return tas_conn_at(node);
	return NULL;
}

/* Measures a round trip that has ended, as none was measured for a while. Sequence
 * numbers that are remembered and lie before snd_una follow it here, which is often
 * enough. */
static HOMA_RARE void timed(struct tas_engine *engine, struct tas_conn *conn)
{
	tas_follow(conn);
	conn->measure_at = engine->now + TAS_TIMED_NS;
	if (conn->f.flags & TAS_F_UNTIMED)
		return;
	conn->rate.rtt = engine->now - conn->stalled_at;
	tas_rtt_sample(engine, conn, conn->rate.rtt);
}

static inline void acked_in(struct tas_engine *engine, struct tas_conn *conn,
			    u32 ack, u32 width)
{
	struct tas_flow *f = &conn->f;

	f->snd_edge = ack + width;
	if (unlikely(width > conn->snd_most))
		conn->snd_most = width;
	if (unlikely(engine->now >= conn->measure_at))
		timed(engine, conn);
	f->snd_una = ack;
	if (likely(f->snd_end == ack))
		return;
	conn->stalled_at = engine->now;
	f->flags |= TAS_F_UNTIMED;
	tas_want(engine, conn);
}

/* Takes bytes up to @end; @due: so many are not acknowledged that an ACK is due at once. */
static inline void bytes_in(struct tas_engine *engine, struct tas_conn *conn,
			    u32 end, bool due)
{
	struct tas_flow *f = &conn->f;
	u32 flags = f->flags;
	u64 now = engine->now;

	conn->data_in++;
	conn->data_at = now;
	f->rcv_nxt = end;
	if (unlikely(due)) {
		f->flags = flags | TAS_F_ACK_NOW;
		if (!homa_list_linked(&f->tx))
			homa_list_add_tail(&engine->tx, &f->tx);
	} else if (!(flags & (TAS_F_ACK_NOW | TAS_F_ACK_LATER))) {
		f->flags = flags | TAS_F_ACK_LATER;
		conn->owed_at = now;
	}
}

/* Says what the host shall do with @length bytes behind the @header bytes of a segment. */
static inline void fill(struct tas_copy *copy, struct tas_conn *conn,
			u32 header, u32 length, u32 seq)
{
	copy->conn = conn;
	copy->from = header;
	copy->length = length;
	copy->to = seq - conn->irs - 1;
}

static inline void tell(struct tas_engine *engine, struct tas_conn *conn,
			u32 events)
{
	conn->events |= events;
	if (likely(!homa_list_linked(&conn->event)))
		homa_list_add_tail(&engine->events, &conn->event);
	engine->metrics.usual_segments++;
}

/* Takes a segment if it is the usual one; false: it is not, and nothing was done. @ts, a constant:
 * both sides use timestamps. */
static HOMA_INLINE bool usual_in(struct tas_engine *engine,
				 struct tas_conn *conn, const u8 *p, u32 length,
				 struct tas_copy *copy, bool ts)
{
	struct tas_flow *f = &conn->f;
	u32 header = ts ? TS_HEADER : TAS_HDR, una = f->snd_una, width, end;
	u32 seq = homa_get_be32(p + 4), ack = homa_get_be32(p + 8);
	u32 events = TAS_EV_WRITABLE;
	bool due;

	/* The length of what is shorter than its header is more than any window. */
	length -= header;
	if ((homa_get_be32(p + 12) & SHAPE_MASK) != SHAPE(header, TAS_ACK) ||
	    seq != f->rcv_nxt || length > f->rcv_edge - seq ||
	    ack - una > f->snd_nxt - una)
		return false;
	if (ts && (homa_get_be32(p + 20) != TS_WORD ||
		   (s32)(homa_get_be32(p + 24) - f->ts_recent) < 0))
		return false;
	end = seq + length;
	due = end - f->rcv_acked > conn->rcv_mss;
	if (due && length > conn->rcv_mss)
		return false;
	width = (u32)homa_get_be16(p + 14) << f->snd_wscale;
	/* An ACK that brings no news may open the window, or be a duplicate. */
	if (ack == una && (!length || ack + width != f->snd_edge))
		return false;
	if (ts && seq == f->rcv_acked)
		f->ts_recent = homa_get_be32(p + 24);
	conn->segs_in++;
	if (ack != una)
		acked_in(engine, conn, ack, width);
	else
		events = 0;
	if (likely(length)) {
		fill(copy, conn, header, length, seq);
		bytes_in(engine, conn, end, due);
		events |= TAS_EV_READABLE;
	} else {
		copy->conn = NULL;
		conn->heard_at = engine->now;
	}
	tell(engine, conn, events);
	return true;
}

/* The same for a connection without timestamps. */
static HOMA_APART bool usual_without_ts(struct tas_engine *engine,
					struct tas_conn *conn, const u8 *p,
					u32 length, struct tas_copy *copy)
{
	return usual_in(engine, conn, p, length, copy, false);
}

/* Takes a segment if it is a plain one: the usual one with bytes and timestamps, on a connection
 * that owes no ACK and whose peer may send more than half of the receive buffer, and it
 * acknowledges all that was written, when no round trip is to be measured. False: it is not, and
 * nothing was done. This calls nothing, so no registers are saved for it. */
static inline bool plain_in(struct tas_engine *engine, struct tas_conn *conn,
			    const u8 *p, u32 length, struct tas_copy *copy)
{
	struct tas_flow *f = &conn->f;
	u32 seq, ack = homa_get_be32(p + 8), ts, width;
	u64 now = engine->now;

	if ((f->flags & PLAIN_MASK) != PLAIN || ack == f->snd_una ||
	    ack != f->snd_nxt || ack != f->snd_end || now >= conn->measure_at)
		return false;
	/* The length of what is shorter than this header is more than that of any segment. */
	length -= TS_HEADER;
	seq = homa_get_be32(p + 4);
	if (length - 1 >= conn->rcv_mss || seq != f->rcv_nxt ||
	    !tas_before(seq, conn->rcv_low) ||
	    (homa_get_be32(p + 12) & SHAPE_MASK) != SHAPE(TS_HEADER, TAS_ACK) ||
	    homa_get_be32(p + 20) != TS_WORD)
		return false;
	ts = homa_get_be32(p + 24);
	if ((s32)(ts - f->ts_recent) < 0)
		return false;
	/* As no ACK is owed, rcv_acked is rcv_nxt. */
	f->ts_recent = ts;
	width = (u32)homa_get_be16(p + 14) << f->snd_wscale;
	f->snd_edge = ack + width;
	if (unlikely(width > conn->snd_most))
		conn->snd_most = width;
	f->snd_una = ack;
	fill(copy, conn, TS_HEADER, length, seq);
	f->rcv_nxt = seq + length;
	f->flags |= TAS_F_ACK_LATER;
	conn->owed_at = now;
	conn->segs_in++;
	conn->data_in++;
	conn->data_at = now;
	tell(engine, conn, TAS_EV_READABLE | TAS_EV_WRITABLE);
	return true;
}

/* Brings @conn into the short form, unless the segment is too long to be the usual one. */
static bool fold_for(struct tas_engine *engine, struct tas_conn *conn, u32 length)
{
	return length <= TAS_HDR_MAX + conn->rcv_mss && tas_fold(engine, conn);
}

static HOMA_RARE int other_in(struct tas_engine *engine, struct tas_pair *pair,
			      const void *packet, u32 length, u8 ecn,
			      struct tas_copy *copy)
{
	struct tas_segment seg;

	copy->conn = NULL;
	if (tas_decode(&seg, packet, length))
		return -1;
	pair->local_port = seg.dport;
	pair->remote_port = seg.sport;
	tas_rx(engine, pair, &seg, ecn, copy);
	copy->from += seg.payload;
	return 0;
}

/* Takes a segment that is not plain, of the connection @copy->conn. */
static HOMA_APART int less_usual_in(struct tas_engine *engine,
				    struct tas_pair *pair, const void *packet,
				    u32 length, u8 ecn, struct tas_copy *copy)
{
	struct tas_conn *conn = copy->conn;

	if ((likely(tas_is_short(&conn->f)) || fold_for(engine, conn, length)) &&
	    (likely(conn->f.flags & TAS_F_TS) ?
		     usual_in(engine, conn, packet, length, copy, true) :
		     usual_without_ts(engine, conn, packet, length, copy)))
		return 0;
	return other_in(engine, pair, packet, length, ecn, copy);
}

int tas_rx_packet(struct tas_engine *engine, struct tas_pair *pair,
		  const void *packet, u32 length, u8 ecn, struct tas_copy *copy)
{
	struct tas_conn *conn;

	if (unlikely(length < TAS_HDR))
		return other_in(engine, pair, packet, length, ecn, copy);
	conn = find(engine, pair, homa_get_be32(packet));
	if (unlikely(!conn))
		return other_in(engine, pair, packet, length, ecn, copy);
	if (likely(plain_in(engine, conn, packet, length, copy)))
		return 0;
	copy->conn = conn;
	return less_usual_in(engine, pair, packet, length, ecn, copy);
}

/* ---- out ---- */

/* The same of a connection that sends plain segments. */
#define PLAIN_OUT (TAS_F_SHORT | TAS_F_TS | TAS_F_PINGPONG)
#define PLAIN_OUT_MASK (TAS_F_LONG | PLAIN_OUT)

/* Is all that there is to send one segment or an ACK, and may it go now? */
static inline bool ready(const struct tas_conn *conn, u32 left)
{
	const struct tas_flow *f = &conn->f;
	u32 under_way = f->snd_nxt - f->snd_una;

	if (unlikely(!left))
		return (f->flags & TAS_F_ACK_NOW) &&
		       !tas_after(f->snd_nxt, f->snd_edge);
	if (under_way + left > f->mss || tas_before(f->snd_edge, f->snd_end))
		return false;
	/* Nagle's rule */
	return !under_way || (f->flags & TAS_F_NODELAY) ||
	       !tas_after(conn->snd_small, f->snd_una);
}

/* Has the application taken so much that the receive window may be opened? */
static inline bool may_open(const struct tas_conn *conn)
{
	return !tas_before(conn->f.rcv_read, conn->rcv_open);
}

/* Opens the receive window by the rule of tas_window(). */
static inline void open_window(struct tas_conn *conn)
{
	struct tas_flow *f = &conn->f;
	u32 old = f->rcv_edge - f->rcv_nxt;
	u32 room = (1u << f->rx_shift) - (f->rcv_nxt - f->rcv_read);
	u32 slack = tas_scale_slack(conn);

	room = room > slack ? (room - slack) >> f->rcv_wscale : 0;
	room = homa_min_u32(room, 65535) << f->rcv_wscale;
	if (room >= old + conn->rcv_mss) {
		f->rcv_edge = f->rcv_nxt + room;
		tas_note_window(conn);
	}
}

/* Writes a header with @flags, and what else the host is to know of a segment of @length bytes;
 * no ACK is owed any more. With @ts the header has timestamps. Constants are folded into it. */
static HOMA_INLINE void write_out(struct tas_engine *engine,
				  struct tas_conn *conn, u32 length, u32 flags,
				  bool ts, struct tas_out *out)
{
	struct tas_flow *f = &conn->f;
	u32 header = ts ? TS_HEADER : TAS_HDR, nxt = f->snd_nxt;
	u32 rcv_nxt = f->rcv_nxt, ports;
	u8 *p = out->header;
	s32 behind;

	/* The window is rounded up: a negative number is, if bits are shifted out of it. In the
	 * short form it fits into its field. */
	behind = (s32)(rcv_nxt - f->rcv_edge) >> f->rcv_wscale;
	ports = (u32)f->pair.remote_port << 16 | f->pair.local_port;
	homa_put_be32(p, ports << 16 | ports >> 16);
	homa_put_be32(p + 4, nxt);
	homa_put_be32(p + 8, rcv_nxt);
	homa_put_be32(p + 12, SHAPE(header, flags) - (u32)behind);
	homa_put_be32(p + 16, 0);
	if (ts) {
		homa_put_be32(p + 20, TS_WORD);
		homa_put_be32(p + 24, engine->clock_ms + conn->ts_offset);
		homa_put_be32(p + 28, f->ts_recent);
	}
	out->pair = &f->pair;
	out->conn = conn;
	out->from = nxt - conn->iss - 1;
	out->length = length;
	out->mss = f->mss;
	out->ecn = TAS_ECN_NONE;
	out->header_length = (u8)header;
	f->rcv_acked = rcv_nxt;
	conn->segs_out++;
	engine->metrics.usual_sent++;
}

static inline void bytes_out(struct tas_engine *engine, struct tas_conn *conn,
			     u32 length)
{
	struct tas_flow *f = &conn->f;

	engine->metrics.data_sent++;
	engine->metrics.data_bytes += length;
	conn->data_out++;
	if (likely(f->snd_nxt == f->snd_una)) {
		conn->stalled_at = engine->now;
		f->flags &= ~(u32)TAS_F_UNTIMED;
	}
	f->snd_nxt += length;
	if (likely(length != f->mss))
		conn->snd_small = f->snd_nxt;
	if (unlikely(!(f->flags & TAS_F_PINGPONG)) && conn->data_at &&
	    engine->now - conn->data_at < TAS_ANSWER_NS)
		f->flags |= TAS_F_PINGPONG;
	conn->sent_at = engine->now;
}

/* Writes the next segment if it is the usual one; false: it is not, and nothing was
 * done. */
static inline bool usual_out(struct tas_engine *engine, struct tas_conn *conn,
			     struct tas_out *out)
{
	struct tas_flow *f = &conn->f;
	u32 length = f->snd_end - f->snd_nxt;
	u32 flags = length ? TAS_ACK | TAS_PSH : TAS_ACK;

	if (unlikely(!tas_is_short(f)) && !tas_fold(engine, conn))
		return false;
	if (unlikely(!ready(conn, length)))
		return false;
	if (unlikely(may_open(conn)))
		open_window(conn);
	if (likely(f->flags & TAS_F_TS))
		write_out(engine, conn, length, flags, true, out);
	else
		write_out(engine, conn, length, flags, false, out);
	f->flags &= ~(u32)(TAS_F_ACK_NOW | TAS_F_ACK_LATER);
	if (likely(length))
		bytes_out(engine, conn, length);
	else
		engine->metrics.acks_sent++;
	return true;
}

/* Is the next segment of @conn a plain one? It is the usual one with bytes, less than a full
 * segment, and with timestamps, when nothing is under way and replies carry the ACKs. */
static inline bool is_plain(const struct tas_conn *conn)
{
	const struct tas_flow *f = &conn->f;
	u32 length = f->snd_end - f->snd_una;

	return (f->flags & PLAIN_OUT_MASK) == PLAIN_OUT &&
	       f->snd_nxt == f->snd_una && length - 1 < f->mss - 1u &&
	       !tas_before(f->snd_edge, f->snd_end);
}

/* Writes the plain segment of @conn, which is the first that waits for its turn. */
static HOMA_INLINE bool plain_out(struct tas_engine *engine,
				  struct tas_conn *conn, struct tas_out *out)
{
	struct tas_flow *f = &conn->f;
	u32 end = f->snd_end, length = end - f->snd_una;

	write_out(engine, conn, length, TAS_ACK | TAS_PSH, true, out);
	f->flags &= ~(u32)(TAS_F_ACK_NOW | TAS_F_ACK_LATER | TAS_F_UNTIMED);
	f->snd_nxt = end;
	conn->snd_small = end;
	conn->stalled_at = engine->now;
	conn->sent_at = engine->now;
	conn->data_out++;
	engine->metrics.data_sent++;
	engine->metrics.data_bytes += length;
	homa_list_del_first(&engine->tx, &f->tx);
	return true;
}

/* The connection that is the first that waits for its turn. */
static inline struct tas_conn *first_out(const struct tas_engine *engine)
{
	return homa_container_of(engine->tx.next, struct tas_conn, f.tx);
}

/* Opens the window and writes a plain segment. This stands apart, as do the segments that are not
 * plain, so that tas_next_out() calls nothing and saves no registers. */
static HOMA_APART bool opening_out(struct tas_engine *engine, struct tas_out *out)
{
	struct tas_conn *conn = first_out(engine);

	open_window(conn);
	return plain_out(engine, conn, out);
}

static HOMA_APART bool less_usual_out(struct tas_engine *engine,
				      struct tas_out *out)
{
	struct tas_conn *conn = first_out(engine);

	if (unlikely(!usual_out(engine, conn, out)))
		return tas_next_other(engine, out);
	homa_list_del_first(&engine->tx, &conn->f.tx);
	return true;
}

bool tas_next_out(struct tas_engine *engine, struct tas_out *out)
{
	struct tas_conn *conn = first_out(engine);

	if (unlikely(&conn->f.tx == &engine->tx ||
		     engine->stray_head != engine->stray_tail))
		return tas_next_other(engine, out);
	if (unlikely(!is_plain(conn)))
		return less_usual_out(engine, out);
	if (unlikely(may_open(conn)))
		return opening_out(engine, out);
	return plain_out(engine, conn, out);
}
