/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the files of the TCP engine call of each other. Written by: nobody; the struct is a
 * constant. */
#ifndef HOMA_TAS_IMPL_H
#define HOMA_TAS_IMPL_H

#include "tas_engine.h"

/* Time after bytes have come within which bytes that are sent count as their answer, in
 * ns. */
#define TAS_ANSWER_NS (40 * TAS_MSEC)

/* Least time between two measurements of a round trip in the short form, in ns. */
#define TAS_TIMED_NS TAS_MSEC

/* Most ACKs that a new connection sends at once, as Linux does. */
#define TAS_QUICK_ACKS 16u

/* Number of ACKs that must have left alone before those of a connection wait longer. */
#define TAS_ALONE 8u

/* A connection with any of these flags cannot be in the short form (tas_short.c). */
#define TAS_F_LONG                                                         \
	((u32)(TAS_F_ECN | TAS_F_FIN | TAS_F_FIN_SEEN | TAS_F_CLOSED |     \
	       TAS_F_RECOVERY | TAS_F_LOSS | TAS_F_CORK | TAS_F_PROBE |    \
	       TAS_F_ALIVE | TAS_F_PACED | TAS_F_WAITS | TAS_F_CWND_FULL | \
	       TAS_F_URGENT))

/* ---- tas_delack.c ---- */

/* How long an ACK of @conn waits for company, in ns; 0: not at all. */
static inline u64 tas_ack_wait(const struct tas_engine *engine,
			       const struct tas_conn *conn)
{
	u32 ms = conn->ack_wait_ms;

	return (likely(!ms) ? engine->params.delack_ms : ms) * TAS_MSEC;
}

/* Learns from an ACK that has waited and leaves alone. */
void tas_ack_alone(struct tas_engine *engine, struct tas_conn *conn);
/* Notes that the peer has sent something again, so an ACK may have waited for too long. */
void tas_ack_too_late(struct tas_conn *conn);

/* ---- tas_short.c ---- */

/* Is the connection in the short form? */
static inline bool tas_is_short(const struct tas_flow *f)
{
	return (f->flags & (TAS_F_LONG | TAS_F_SHORT)) == TAS_F_SHORT;
}

/* Sets what the short form keeps of the receive window, after the window or the buffer has
 * changed. */
static inline void tas_note_window(struct tas_conn *conn)
{
	u32 size = tas_rx_size(conn);

	conn->rcv_open = conn->f.rcv_edge + conn->rcv_mss - size;
	conn->rcv_low = conn->f.rcv_edge - size / 2;
}

/* Brings @conn into the short form; false if that is not possible now. */
bool tas_fold(struct tas_engine *engine, struct tas_conn *conn);
/* Brings @conn out of the short form: all fields get the values that they are said to
 * have. */
void tas_unfold(struct tas_engine *engine, struct tas_conn *conn);
/* What deadline[@timer] is, or would be outside of the short form, in ns. */
u64 tas_deadline(const struct tas_engine *engine, const struct tas_conn *conn,
		 enum tas_timer timer);

/* ---- tas_table.c ---- */

/* Bytes 8 to 11 of ::ffff:a.b.c.d, read as a little-endian word. */
#define TAS_V4_MAPPED 0xffff0000u

/* The hash of a connection; tas_table.c says why it is this one. @ports is the first
 * word of the header of a segment that comes: the peer's port and ours. */
static inline u32 tas_hash_of(const struct tas_engine *engine, const u8 *remote,
			      u32 ports)
{
	u64 high = homa_get_le64(remote), low = homa_get_le64(remote + 8);
	const u64 *key = engine->hash_key;
	u64 h;

	/* A host has few addresses of its own: they need not be in the hash. */
	h = (key[0] + ports) * (key[1] + (u32)(low >> 32));
	if (unlikely(high | ((u32)low ^ TAS_V4_MAPPED)))
		h += (key[2] + (u32)low) * (key[3] + (u32)high) +
		     (key[4] + (u32)(high >> 32)) * key[5];
	return (u32)((h + key[6]) >> 32);
}

static inline u32 tas_hash(const struct tas_engine *engine,
			   const struct tas_pair *pair)
{
	return tas_hash_of(engine, pair->remote,
			   (u32)pair->remote_port << 16 | pair->local_port);
}

static inline struct tas_conn *tas_conn_at(const struct homa_list *node)
{
	return homa_container_of(node, struct tas_conn, f.hash);
}

static inline struct tas_conn *tas_find(struct tas_engine *engine,
					const struct tas_pair *pair)
{
	u32 hash = tas_hash(engine, pair);
	struct homa_list *head = homa_table_find(&engine->table, hash), *node;

	homa_list_for_each(node, head)
		if (tas_conn_at(node)->hash == hash &&
		    tas_pair_equal(&tas_conn_at(node)->f.pair, pair))
			return tas_conn_at(node);
	return NULL;
}

struct tas_listener *tas_find_listener(struct tas_engine *engine,
				       const struct tas_pair *pair);
/* Makes a connection and puts it into the table; NULL: the host has handed in no memory. */
struct tas_conn *tas_new(struct tas_engine *engine, const struct tas_pair *pair);
/* Ends @conn and takes it out of the table. If its application has closed the host gets
 * TAS_EV_FREE now, else when it closes. */
void tas_gone(struct tas_engine *engine, struct tas_conn *conn);
/* The host will hear of @events (TAS_EV_*). */
void tas_tell(struct tas_engine *engine, struct tas_conn *conn, u32 events);
/* Returns the initial sequence number of a connection (RFC 6528), and writes to @ts_offset
 * what is added to our clock in its timestamps. */
u32 tas_initial_seq(const struct tas_engine *engine,
		    const struct tas_pair *pair, u32 *ts_offset);

/* ---- tas_timer.c ---- */

/* Sets @timer to @deadline, in ns. */
static inline void tas_arm(struct tas_engine *engine, struct tas_conn *conn,
			   enum tas_timer timer, u64 deadline)
{
	conn->deadline[timer] = deadline;
	if (!homa_wheel_linked(&conn->wheel) || conn->wheel.deadline > deadline)
		homa_wheel_add(&engine->wheel, &conn->wheel, deadline,
			       engine->now);
}

static inline void tas_disarm(struct tas_conn *conn, enum tas_timer timer)
{
	conn->deadline[timer] = TAS_NEVER;
}

/* Sets the timers of retransmission and tail loss anew after bytes were sent or
 * acknowledged. */
void tas_rearm(struct tas_engine *engine, struct tas_conn *conn);
/* Sets the timer of the tail loss probe anew after more bytes were sent. */
void tas_rearm_tail(struct tas_engine *engine, struct tas_conn *conn);
/* Returns @time doubled @doublings times, but at most rto_max_ms; in ns. */
u64 tas_backed_off(const struct tas_engine *engine, u64 time, u32 doublings);
/* May the last bytes be probed by a tail loss probe? */
bool tas_wants_tail_probe(const struct tas_engine *engine,
			  const struct tas_conn *conn);
/* Time from sending bytes to their tail loss probe, in ns. */
u64 tas_tail_after(const struct tas_engine *engine, const struct tas_conn *conn);

/* ---- tas_state.c ---- */

/* Ends @conn with @error, a negative errno, of which the host hears. */
void tas_fail(struct tas_engine *engine, struct tas_conn *conn, int error);
/* Brings @conn into TIME_WAIT, or begins that time anew. */
void tas_time_wait(struct tas_engine *engine, struct tas_conn *conn);
/* Lets @conn, which is closed and in FIN_WAIT_2, wait for the peer's FIN for
 * fin_wait_ms. */
void tas_orphan(struct tas_engine *engine, struct tas_conn *conn);
/* Does what follows when the peer has acknowledged our FIN. */
void tas_fin_acked(struct tas_engine *engine, struct tas_conn *conn);
/* Takes the peer's FIN, before which no byte is missing. */
void tas_fin_in(struct tas_engine *engine, struct tas_conn *conn);
/* Resets connections of @refused, as long as half of @stray is left to others. */
void tas_refuse(struct tas_engine *engine);

/* ---- tas_ended.c ---- */

/* The connection in TIME_WAIT with @pair, if it is kept as struct tas_ended; or NULL. */
struct tas_ended *tas_find_ended(struct tas_engine *engine,
				 const struct tas_pair *pair);
/* Moves @conn, which is in TIME_WAIT, to a struct tas_ended; false if its application
 * has not closed or there is no memory for it. */
bool tas_shrink(struct tas_engine *engine, struct tas_conn *conn);
/* Answers @seg; false if it begins a new connection, for which @ended was forgotten. */
bool tas_ended_rx(struct tas_engine *engine, struct tas_ended *ended,
		  const struct tas_segment *seg);
/* May connect() use the pair of @ended already? */
bool tas_may_follow(const struct tas_engine *engine,
		    const struct tas_ended *ended);
/* Lets the new @conn go on with the numbers of @ended, which is forgotten. */
void tas_follow_ended(struct tas_engine *engine, struct tas_ended *ended,
		      struct tas_conn *conn);
/* Sends an ACK for @ended. */
void tas_ended_ack(struct tas_engine *engine, struct tas_ended *ended);
/* Forgets at most @budget of them whose time is over; returns what is left of @budget. */
u32 tas_expire_ended(struct tas_engine *engine, u32 budget);
/* Time at which the next of them is to be forgotten, in ns, or TAS_NEVER. */
u64 tas_next_ended(const struct tas_engine *engine);

/* ---- tas_slow.c ---- */

/* Takes any segment of a connection that there is. */
void tas_slow_rx(struct tas_engine *engine, struct tas_conn *conn,
		 const struct tas_segment *seg, u8 ecn, struct tas_copy *copy);

/* ---- tas_handshake.c, tas_cookie.c ---- */

/* Takes a segment of a connection that connect() is opening. */
void tas_syn_sent_rx(struct tas_engine *engine, struct tas_conn *conn,
		     const struct tas_segment *seg);
/* Opens @conn, as @seg acknowledges our SYN-ACK, if its listener has room. */
void tas_opened(struct tas_engine *engine, struct tas_conn *conn,
		const struct tas_segment *seg);
/* Counts one half-open connection of @listener more, or one less. */
static inline void tas_half(struct tas_engine *engine,
			    struct tas_listener *listener, bool more)
{
	u32 change = more ? 1 : -1u;

	listener->num_half += change;
	engine->num_half += change;
	if (listener->shared_half)
		*listener->shared_half += change;
}
/* Counts one open connection of @listener that waits for tas_accept() more, or one less. Those that
 * are refused wait only until their resets have gone, and nobody has them any more. */
static inline void tas_ready(struct tas_engine *engine,
			     struct tas_listener *listener, bool more)
{
	u32 change = more ? 1 : -1u;

	listener->num_ready += change;
	if (listener == &engine->refused)
		return;
	engine->num_ready += change;
	if (listener->shared_ready)
		*listener->shared_ready += change;
}
/* Takes a segment of no connection at the port of @listener. */
void tas_listener_rx(struct tas_engine *engine, struct tas_listener *listener,
		     const struct tas_pair *pair, const struct tas_segment *seg);
/* Settles the options of @conn by those of the peer's SYN. */
void tas_take_options(struct tas_engine *engine, struct tas_conn *conn,
		      const struct tas_segment *seg);
/* Begins @conn, which was just made, with the SYN of a peer. */
void tas_begin_passive(struct tas_engine *engine, struct tas_listener *listener,
		       struct tas_conn *conn, const struct tas_segment *syn);
/* Answers a SYN by a SYN-ACK whose sequence number is a cookie. */
void tas_send_cookie(struct tas_engine *engine,
		     const struct tas_listener *listener,
		     const struct tas_pair *pair, const struct tas_segment *syn);
/* Was a cookie sent that is still good? */
bool tas_cookies_out(const struct tas_engine *engine);
/* Writes to @syn the SYN for which the cookie in @seg was sent; false if the cookie is not
 * ours or too old. */
bool tas_check_cookie(const struct tas_engine *engine,
		      const struct tas_pair *pair,
		      const struct tas_segment *seg, struct tas_segment *syn);

/* ---- tas_ack.c, tas_scoreboard.c, tas_loss.c, tas_rtt.c ---- */

/* Does our SYN ask for ECN? DCTCP always does if ECN is not off, as it needs marks. */
static inline bool tas_asks_ecn(const struct tas_engine *engine,
				const struct tas_conn *conn)
{
	return engine->params.ecn == 1 ||
	       (engine->params.ecn &&
		(conn->control == TAS_DCTCP || conn->control == TAS_RATE_DCTCP));
}

/* Remembers the timestamp of @seg if that is to be echoed (RFC 7323, 4.3). */
void tas_take_timestamp(struct tas_conn *conn, const struct tas_segment *seg);
/* Takes what @seg, whose ACK is acceptable, says about bytes that we have sent. */
void tas_ack_in(struct tas_engine *engine, struct tas_conn *conn,
		const struct tas_segment *seg);
/* Are bytes missing on either side, or to be sent again? */
static inline bool tas_repairs(const struct tas_conn *conn)
{
	return conn->f.gaps | conn->f.sacks | conn->f.dupacks ||
	       conn->rtx_nxt != conn->rtx_end;
}

/* Sets sequence numbers that are remembered and lie before snd_una to snd_una. */
void tas_follow(struct tas_conn *conn);
/* Takes the SACK blocks of @seg; true if the peer has bytes that we did not know of. */
bool tas_sacked(struct tas_conn *conn, const struct tas_segment *seg);
/* Forgets what @sacked holds before snd_una. */
void tas_sacked_trim(struct tas_conn *conn);
/* Number of our bytes that the peer has behind gaps. */
u32 tas_sacked_bytes(const struct tas_conn *conn);
/* Number of bytes that are believed to be under way. */
u32 tas_pipe(const struct tas_conn *conn);
/* Goes on with the repair of a loss after @seg has acknowledged @acked bytes. */
void tas_loss_acked(struct tas_engine *engine, struct tas_conn *conn,
		    const struct tas_segment *seg, u32 acked);
/* Takes a duplicate ACK, or one (@news) that acknowledges bytes and reports others. */
void tas_loss_dupack(struct tas_engine *engine, struct tas_conn *conn, bool news);
/* Repairs what should have arrived long ago, by what is known of that; returns false if nothing
 * is known. */
bool tas_loss_late(struct tas_engine *engine, struct tas_conn *conn);
/* Takes all bytes for lost that the peer has not reported, after a timeout. */
void tas_loss_timeout(struct tas_engine *engine, struct tas_conn *conn);
/* Takes a round trip that was measured, in ns, into the average and the timeout. */
void tas_rtt_sample(struct tas_engine *engine, struct tas_conn *conn, u64 rtt);
/* Measures a round trip by the ACK in @seg, if that is possible. */
void tas_rtt_acked(struct tas_engine *engine, struct tas_conn *conn,
		   const struct tas_segment *seg);

/* ---- tas_cc.c, tas_cubic.c, tas_dctcp.c, tas_timely.c, tas_rate.c, tas_pace.c ---- */

#define TAS_CWND_MOST (1u << 30) /* largest congestion window, in bytes */
#define TAS_ALPHA_ONE 1024u	 /* tas_conn.alpha if all bytes are marked */

/**
 * struct tas_congestion - a congestion control, by window or by rate
 * @grow: lets the window grow, after @acked bytes were acknowledged while it was full and
 *	slow start was over; NULL in a control by rate.
 * @reduced: returns ssthresh after a loss or a mark, in bytes, before its lower limit is
 *	applied; @window bytes were under way. NULL in a control by rate.
 * @adjust: returns the new tas_rate.rate at the end of a control interval; NULL in a control
 *	by window.
 */
struct tas_congestion {
	void (*grow)(struct tas_engine *engine, struct tas_conn *conn, u32 acked);
	u32 (*reduced)(struct tas_conn *conn, u32 window);
	u64 (*adjust)(struct tas_engine *engine, struct tas_conn *conn);
};

extern const struct tas_congestion tas_cubic, tas_rate_dctcp, tas_timely,
	tas_constant;

/* Is the congestion control of @conn one by rate? */
bool tas_by_rate(const struct tas_conn *conn);
/* Takes the share of marked bytes in the last window or interval into tas_conn.alpha. */
void tas_dctcp_average(struct tas_conn *conn);
/* Forgets the rate: nothing is known of the path. */
void tas_rate_reset(struct tas_conn *conn);
/* Sets the rate with which a connection begins. */
void tas_rate_begin(struct tas_engine *engine, struct tas_conn *conn);
/* Counts what was acknowledged, and decides anew if the interval is over. */
void tas_rate_acked(struct tas_engine *engine, struct tas_conn *conn,
		    const struct tas_congestion *control, u32 acked, bool marked);
/* Begins a new interval, perhaps with a lower rate, as nothing was under way until now. */
void tas_rate_resumed(struct tas_engine *engine, struct tas_conn *conn);
/* Sets the congestion window that goes with the rate. */
void tas_rate_window(struct tas_conn *conn);
/* Sets the rate that goes with the congestion window. */
void tas_pace_window(struct tas_conn *conn);
/* Number of @bytes, in full segments, that may leave now. If it is 0 the connection
 * waits in tas_engine.pace. */
u32 tas_paced(struct tas_engine *engine, struct tas_conn *conn, u32 bytes);
/* Puts off the time of the next bytes after @bytes have left. */
void tas_pace_sent(struct tas_engine *engine, struct tas_conn *conn, u32 bytes);

/* Sets the congestion window with which a connection begins. */
void tas_cc_init(struct tas_engine *engine, struct tas_conn *conn);
/* Tells the congestion control that @acked bytes were acknowledged, with a mark or not. */
void tas_cc_acked(struct tas_engine *engine, struct tas_conn *conn, u32 acked,
		  bool marked);
/* Makes the window smaller before bytes leave, if none did for a timeout (RFC 5681,
 * 4.1). */
void tas_restart(struct tas_engine *engine, struct tas_conn *conn);
/* Sets ssthresh after a loss was found. */
void tas_cc_loss(struct tas_engine *engine, struct tas_conn *conn);

/* ---- tas_data.c ---- */

/* Takes the payload of an acceptable segment, and says in @copy what the host shall do. */
void tas_data_in(struct tas_engine *engine, struct tas_conn *conn,
		 const struct tas_segment *seg, struct tas_copy *copy);
/* Takes the congestion mark of a segment, or its CWR flag. */
void tas_ecn_in(struct tas_engine *engine, struct tas_conn *conn,
		const struct tas_segment *seg, u8 ecn);

/* ---- tas_urgent.c ---- */

/* Takes the urgent pointer of an acceptable segment, before its payload. */
void tas_urgent_in(struct tas_engine *engine, struct tas_conn *conn,
		   const struct tas_segment *seg);
/* Forgets the peer's urgent byte if the application takes the bytes before @upto. */
void tas_urgent_taken(struct tas_conn *conn, u32 upto);
/* Writes the urgent pointer to @seg if it begins before our last urgent byte. */
void tas_urgent_out(const struct tas_conn *conn, struct tas_segment *seg);

/* ---- tas_window.c, tas_path.c ---- */

/* Window that our SYN offers, in bytes, as windows of SYNs are not scaled. */
u16 tas_syn_window(const struct tas_conn *conn);
/* Window that our next segment offers, in bytes from rcv_nxt on. */
u32 tas_window(const struct tas_conn *conn);
/* Window scale that is needed to offer a window of @bytes. */
u8 tas_scale_for(u32 bytes);
/* Payload and options of a segment that fills a packet, in bytes. */
u32 tas_mss_of(const struct tas_engine *engine, const struct tas_conn *conn);
/* Sets tas_flow.mss after the limit of the peer or of the path has changed. */
void tas_set_mss(struct tas_engine *engine, struct tas_conn *conn);
/* Tries smaller packets, or the old size again, after several timeouts: the path may drop
 * long packets without an error. */
void tas_black_hole(struct tas_engine *engine, struct tas_conn *conn);

/* ---- tas_want.c, tas_tx.c ---- */

/* Writes the next segment to @out if it is not the usual one; false if there is none. */
bool tas_next_other(struct tas_engine *engine, struct tas_out *out);

/* Sees to it that an ACK is sent, at once if @now. */
void tas_owe_ack(struct tas_engine *engine, struct tas_conn *conn, bool now);

/* Puts @conn into tas_engine.tx if it may have something to send. */
void tas_want(struct tas_engine *engine, struct tas_conn *conn);
/* Answers @seg, which belongs to no connection, by a reset, if the limit allows. */
void tas_stray_reset(struct tas_engine *engine, const struct tas_pair *pair,
		     const struct tas_segment *seg);
/* Writes an ACK at once, which will not count what comes before it leaves. */
void tas_send_ack(struct tas_engine *engine, struct tas_conn *conn);
/* Sends a reset of @conn to its peer. */
void tas_send_reset(struct tas_engine *engine, const struct tas_conn *conn);
/* Puts @seg into tas_engine.stray; it is lost if that is full. */
void tas_stray_send(struct tas_engine *engine, const struct tas_pair *pair,
		    const struct tas_segment *seg);
/* Answers a probe by an ACK, unless @conn answered such a segment 500 ms ago or less. */
void tas_answer(struct tas_engine *engine, struct tas_conn *conn);
/* Does the same, unless all connections have sent too many in this second (RFC 5961). */
void tas_challenge(struct tas_engine *engine, struct tas_conn *conn);
/* Counts one more under @limit, which is about @each_second; false if that is too many. */
bool tas_within(struct tas_engine *engine, struct tas_limit *limit,
		u32 each_second);

#endif
