/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What the files of the TCP engine call of each other. */
#ifndef HOMA_TAS_IMPL_H
#define HOMA_TAS_IMPL_H

#include "tas_engine.h"

/* bytes sent so soon after others came answer them */
#define TAS_ANSWER_NS (40 * TAS_MSEC)

/* from one round trip that is measured to the next, if shorter */
#define TAS_TIMED_NS TAS_MSEC

/* With any of these the short form says too little (tas_short.c). */
#define TAS_F_LONG                                                      \
	((u32)(TAS_F_ECN | TAS_F_FIN | TAS_F_FIN_SEEN | TAS_F_CLOSED |  \
	       TAS_F_RECOVERY | TAS_F_LOSS | TAS_F_CORK | TAS_F_PROBE | \
	       TAS_F_ALIVE | TAS_F_PACED | TAS_F_WAITS | TAS_F_CWND_FULL))

/* ---- tas_short.c ---- */

/* The short form holds. */
static inline bool tas_is_short(const struct tas_flow *f)
{
	return (f->flags & (TAS_F_LONG | TAS_F_SHORT)) == TAS_F_SHORT;
}

/* It does from now on, if it can. */
bool tas_fold(struct tas_engine *engine, struct tas_conn *conn);
/* It does not from now on: all fields are as they are documented. */
void tas_unfold(struct tas_engine *engine, struct tas_conn *conn);
/* What deadline[@timer] is, or would be. */
u64 tas_deadline(const struct tas_engine *engine, const struct tas_conn *conn,
		 enum tas_timer timer);

/* ---- tas_table.c ---- */

/* How connections are hashed, and why so, says tas_table.c. */
#define TAS_V4_MAPPED 0xffff0000u /* bytes 8 to 11 of ::ffff:a.b.c.d */

/* @ports: the first word of a segment's header. */
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
/* A new connection in the table; NULL: no memory was handed in. */
struct tas_conn *tas_new(struct tas_engine *engine, const struct tas_pair *pair);
/* It leaves the table; its host hears of it once it has let go. */
void tas_gone(struct tas_engine *engine, struct tas_conn *conn);
void tas_tell(struct tas_engine *engine, struct tas_conn *conn, u32 events);
/* RFC 6528; and what is added to the clock for timestamps. */
u32 tas_initial_seq(const struct tas_engine *engine,
		    const struct tas_pair *pair, u32 *ts_offset);

/* ---- tas_timer.c ---- */

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

/* After something was sent or acknowledged: the retransmission timer as it must be. */
void tas_rearm(struct tas_engine *engine, struct tas_conn *conn);
/* After more was sent: the tail loss probe alone, as the timeout is of what was sent first. */
void tas_rearm_tail(struct tas_engine *engine, struct tas_conn *conn);
/* A time after so many timeouts, ns. */
u64 tas_backed_off(const struct tas_engine *engine, u64 time, u32 doublings);
bool tas_wants_tail_probe(const struct tas_engine *engine,
			  const struct tas_conn *conn);
/* Time until then for what is sent now, ns. */
u64 tas_tail_after(const struct tas_engine *engine, const struct tas_conn *conn);

/* ---- tas_state.c ---- */

/* The connection has failed: the host hears @error, nothing more is sent. */
void tas_fail(struct tas_engine *engine, struct tas_conn *conn, int error);
void tas_time_wait(struct tas_engine *engine, struct tas_conn *conn);
/* In FIN_WAIT_2, and its application has let go. */
void tas_orphan(struct tas_engine *engine, struct tas_conn *conn);
/* Our FIN was acknowledged. */
void tas_fin_acked(struct tas_engine *engine, struct tas_conn *conn);
/* The peer's FIN is the next in order. */
void tas_fin_in(struct tas_engine *engine, struct tas_conn *conn);

/* ---- tas_ended.c ---- */

struct tas_ended *tas_find_ended(struct tas_engine *engine,
				 const struct tas_pair *pair);
/* From now on a connection in TIME_WAIT is remembered in less memory; false: it is not,
 * as it has an application or there is no such memory. */
bool tas_shrink(struct tas_engine *engine, struct tas_conn *conn);
/* False: it begins a new connection, and the old one is forgotten. */
bool tas_ended_rx(struct tas_engine *engine, struct tas_ended *ended,
		  const struct tas_segment *seg);
/* connect() may use the pair of @ended already. */
bool tas_may_follow(const struct tas_engine *engine,
		    const struct tas_ended *ended);
/* @conn, which is new, follows it; it is forgotten. */
void tas_follow_ended(struct tas_engine *engine, struct tas_ended *ended,
		      struct tas_conn *conn);
void tas_ended_ack(struct tas_engine *engine, struct tas_ended *ended);
/* Those whose time is over are forgotten, @budget at most; what is left of it. */
u32 tas_expire_ended(struct tas_engine *engine, u32 budget);
u64 tas_next_ended(const struct tas_engine *engine);

/* ---- tas_slow.c ---- */

void tas_slow_rx(struct tas_engine *engine, struct tas_conn *conn,
		 const struct tas_segment *seg, u8 ecn, struct tas_copy *copy);

/* ---- tas_handshake.c, tas_cookie.c ---- */

void tas_syn_sent_rx(struct tas_engine *engine, struct tas_conn *conn,
		     const struct tas_segment *seg);
/* An ACK of our SYN-ACK. */
void tas_opened(struct tas_engine *engine, struct tas_conn *conn,
		const struct tas_segment *seg);
/* One more of @listener that is not open, or one less. */
static inline void tas_half(struct tas_engine *engine,
			    struct tas_listener *listener, bool more)
{
	u32 change = more ? 1 : -1u;

	listener->num_half += change;
	engine->num_half += change;
	if (listener->shared_half)
		*listener->shared_half += change;
}
void tas_listener_rx(struct tas_engine *engine, struct tas_listener *listener,
		     const struct tas_pair *pair, const struct tas_segment *seg);
/* The options of a SYN are taken over. */
void tas_take_options(struct tas_engine *engine, struct tas_conn *conn,
		      const struct tas_segment *seg);
void tas_begin_passive(struct tas_engine *engine, struct tas_listener *listener,
		       struct tas_conn *conn, const struct tas_segment *syn);
void tas_send_cookie(struct tas_engine *engine,
		     const struct tas_listener *listener,
		     const struct tas_pair *pair, const struct tas_segment *syn);
/* One that is still good may be on its way back. */
bool tas_cookies_out(const struct tas_engine *engine);
/* The SYN that @seg's cookie remembers; false: it is none of ours, or too old. */
bool tas_check_cookie(const struct tas_engine *engine,
		      const struct tas_pair *pair,
		      const struct tas_segment *seg, struct tas_segment *syn);

/* ---- tas_ack.c, tas_scoreboard.c, tas_loss.c, tas_rtt.c ---- */

/* DCTCP is nothing without marks. */
static inline bool tas_asks_ecn(const struct tas_engine *engine,
				const struct tas_conn *conn)
{
	return engine->params.ecn == 1 ||
	       (engine->params.ecn && conn->control == TAS_DCTCP);
}

/* The peer's timestamp is remembered (RFC 7323, 4.3). */
void tas_take_timestamp(struct tas_conn *conn, const struct tas_segment *seg);
/* What @seg, whose ACK is acceptable, says about what we have sent. */
void tas_ack_in(struct tas_engine *engine, struct tas_conn *conn,
		const struct tas_segment *seg);
/* Bytes are missing on either side, or are to be sent again. */
static inline bool tas_repairs(const struct tas_conn *conn)
{
	return conn->f.gaps | conn->f.sacks | conn->f.dupacks ||
	       conn->rtx_nxt != conn->rtx_end;
}

/* Marks that lie behind snd_una are set to it. */
void tas_follow(struct tas_conn *conn);
/* Its SACK blocks; true if the peer has bytes that we did not know of. */
bool tas_sacked(struct tas_conn *conn, const struct tas_segment *seg);
/* Blocks that a new snd_una has overtaken are forgotten. */
void tas_sacked_trim(struct tas_conn *conn);
/* What the peer has of bytes behind gaps. */
u32 tas_sacked_bytes(const struct tas_conn *conn);
/* Bytes that are believed to be under way. */
u32 tas_pipe(const struct tas_conn *conn);
/* @seg acknowledges @acked bytes while a loss is being repaired. */
void tas_loss_acked(struct tas_engine *engine, struct tas_conn *conn,
		    const struct tas_segment *seg, u32 acked);
void tas_loss_dupack(struct tas_engine *engine, struct tas_conn *conn, bool news);
void tas_loss_timeout(struct tas_engine *engine, struct tas_conn *conn);
/* A round trip was measured, in ns. */
void tas_rtt_sample(struct tas_engine *engine, struct tas_conn *conn, u64 rtt);
void tas_rtt_acked(struct tas_engine *engine, struct tas_conn *conn,
		   const struct tas_segment *seg);

/* ---- tas_cc.c, tas_cubic.c, tas_dctcp.c, tas_timely.c, tas_rate.c, tas_pace.c ---- */

#define TAS_CWND_MOST (1u << 30)
#define TAS_ALPHA_ONE 1024u

/**
 * struct tas_congestion - a congestion control, by window or by rate
 * @grow: @acked bytes arrived, the window was full and there is no slow start.
 * @reduced: ssthresh after a loss or a mark, before its lower limit; @window: bytes that
 *	were under way.
 * @adjust: a control interval is over: the new tas_rate.rate; then there are no others.
 */
struct tas_congestion {
	void (*grow)(struct tas_engine *engine, struct tas_conn *conn, u32 acked);
	u32 (*reduced)(struct tas_conn *conn, u32 window);
	u64 (*adjust)(struct tas_engine *engine, struct tas_conn *conn);
};

extern const struct tas_congestion tas_cubic, tas_rate_dctcp, tas_timely,
	tas_constant;

bool tas_by_rate(const struct tas_conn *conn);
/* The share of marked bytes among those of a window or interval goes into the average. */
void tas_dctcp_average(struct tas_conn *conn);
/* As if nothing were known of the path. */
void tas_rate_reset(struct tas_conn *conn);
/* The rate of a connection that begins, or begins again. */
void tas_rate_begin(struct tas_engine *engine, struct tas_conn *conn);
void tas_rate_acked(struct tas_engine *engine, struct tas_conn *conn,
		    const struct tas_congestion *control, u32 acked, bool marked);
/* Nothing was under way until now: what happened before says nothing about the path. */
void tas_rate_resumed(struct tas_engine *engine, struct tas_conn *conn);
/* The window that goes with the rate. */
void tas_rate_window(struct tas_conn *conn);
/* The rate that goes with the window. */
void tas_pace_window(struct tas_conn *conn);
/* How many of @bytes, in full segments, may leave now; 0: later, and the wheel is set. */
u32 tas_paced(struct tas_engine *engine, struct tas_conn *conn, u32 bytes);
void tas_pace_sent(struct tas_engine *engine, struct tas_conn *conn, u32 bytes);

void tas_cc_init(struct tas_engine *engine, struct tas_conn *conn);
void tas_cc_acked(struct tas_engine *engine, struct tas_conn *conn, u32 acked,
		  bool marked);
/* After a silence of a timeout a window says nothing about the path (RFC 5681, 4.1). */
void tas_restart(struct tas_engine *engine, struct tas_conn *conn);
/* A loss was found: what ssthresh shall be. */
void tas_cc_loss(struct tas_engine *engine, struct tas_conn *conn);

/* ---- tas_data.c ---- */

/* The payload of an acceptable segment. */
void tas_data_in(struct tas_engine *engine, struct tas_conn *conn,
		 const struct tas_segment *seg, struct tas_copy *copy);
void tas_ecn_in(struct tas_engine *engine, struct tas_conn *conn,
		const struct tas_segment *seg, u8 ecn);

/* ---- tas_window.c, tas_path.c ---- */

/* Bytes that our SYN offers; windows of SYNs are not scaled. */
u16 tas_syn_window(const struct tas_conn *conn);
/* Bytes that the peer may send from rcv_nxt on, as the next segment will say. */
u32 tas_window(const struct tas_conn *conn);
/* The window scale that lets a peer send so many bytes. */
u8 tas_scale_for(u32 bytes);
/* Payload and options of a segment that fills a packet. */
u32 tas_mss_of(const struct tas_engine *engine, const struct tas_conn *conn);
/* The payload of a full segment, after the peer's or the path's limit has changed. */
void tas_set_mss(struct tas_engine *engine, struct tas_conn *conn);
/* After a timeout: the path may drop what is long without a word. */
void tas_black_hole(struct tas_engine *engine, struct tas_conn *conn);

/* ---- tas_want.c, tas_tx.c ---- */

/* What is not the usual segment: strays, and what connections that wait have to send. */
bool tas_next_other(struct tas_engine *engine, struct tas_out *out);

void tas_owe_ack(struct tas_engine *engine, struct tas_conn *conn, bool now);

/* It may have something to send. */
void tas_want(struct tas_engine *engine, struct tas_conn *conn);
void tas_stray_reset(struct tas_engine *engine, const struct tas_pair *pair,
		     const struct tas_segment *seg);
/* An ACK of what is known now, whatever comes later. */
void tas_send_ack(struct tas_engine *engine, struct tas_conn *conn);
/* A reset of the connection itself. */
void tas_send_reset(struct tas_engine *engine, const struct tas_conn *conn);
void tas_stray_send(struct tas_engine *engine, const struct tas_pair *pair,
		    const struct tas_segment *seg);
/* An ACK of what is known, unless this connection has sent one just now; of probes. */
void tas_answer(struct tas_engine *engine, struct tas_conn *conn);
/* The same, unless there were too many of all connections (RFC 5961). */
void tas_challenge(struct tas_engine *engine, struct tas_conn *conn);
bool tas_within(struct tas_engine *engine, struct tas_limit *limit,
		u32 each_second);

#endif
