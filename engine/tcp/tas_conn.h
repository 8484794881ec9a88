/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A connection. What decides about a segment of an established connection is in the two
 * cache lines of struct tas_flow (TAS, table 3: 102 bytes). What the usual segment writes
 * beside them, times and counts, is in the two behind; the rest is for losses, timers,
 * round trip times, and the beginning and end of a connection.
 *
 * Names of sequence variables are those of RFC 9293, 3.3.1. The receive side counts
 * three positions: rcv_read <= rcv_nxt <= rcv_edge, what the application has taken, what
 * is there in order, and the end of the window that the peer knows. The send side counts
 * four: snd_una <= snd_nxt <= snd_end, acknowledged, sent, written; and snd_edge, the end
 * of the peer's window. A FIN takes the number behind the last byte: snd_end counts it
 * as soon as the application has closed.
 */
#ifndef HOMA_TAS_CONN_H
#define HOMA_TAS_CONN_H

#include "homa_list.h"
#include "homa_wheel.h"
#include "tas_types.h"

#define TAS_INTERVALS 8u /* that a connection has room for, of either side */

/* tas_flow.flags */
enum {
	TAS_F_TS = 1 << 0,	/* both sides use timestamps */
	TAS_F_SACK = 1 << 1,	/* both sides use selective acknowledgements */
	TAS_F_ECN = 1 << 2,	/* both sides use ECN */
	TAS_F_ECHO = 1 << 3,	/* ACKs carry ECE until the peer says CWR */
	TAS_F_SAY_CWR = 1 << 4, /* the next new segment says CWR */
	TAS_F_ACK_NOW = 1 << 5, /* an ACK is owed at once */
	TAS_F_ACK_LATER = 1 << 6, /* an ACK is owed when its time comes */
	TAS_F_NODELAY = 1 << 7,	  /* no Nagle */
	TAS_F_FIN = 1 << 8, /* the application sends no more: snd_end counts a FIN */
	TAS_F_FIN_IN = 1 << 9, /* the peer's FIN came in order: rcv_nxt counts it */
	TAS_F_CLOSED = 1 << 10, /* the application has let go of the connection */
	TAS_F_RECOVERY = 1 << 12, /* a loss is being repaired, up to @recover */
	TAS_F_LOSS = 1 << 13,	  /* the same after a timeout */
	TAS_F_KEEPALIVE = 1 << 14,
	TAS_F_CORK = 1 << 15,	   /* only full segments are sent */
	TAS_F_CWND_FULL = 1 << 16, /* the congestion window was what held us back */
	TAS_F_PROBE = 1 << 18, /* one byte or segment goes beyond the window */
	TAS_F_PINGPONG = 1
		<< 19, /* replies carry the ACKs, no need for quick ones */
	TAS_F_ALIVE = 1 << 20,	  /* a keepalive probe is to be sent */
	TAS_F_FIN_SEEN = 1 << 21, /* the peer's FIN came, behind a gap */
	TAS_F_WAITS = 1 << 22, /* its listener's host may have no place for it yet */
	TAS_F_PACED = 1
		<< 23, /* what it sends leaves at a rate; see struct tas_rate */
	TAS_F_SHORT = 1
		<< 24, /* its book-keeping is in the short form; see tas_short.c */
	TAS_F_UNTIMED = 1
		<< 25, /* @stalled_at is not when what is under way was sent */
};

/** struct tas_flow - what decides about a segment */
struct tas_flow {
	/* Its place in the engine's table. */
	struct homa_list hash;
	struct tas_pair pair;
	/* TAS_F_*. */
	u32 flags;
	/* The next byte that is missing; the end of the window that the peer knows; rcv_nxt of
	 * the last segment that was sent; the next byte that the application takes. */
	u32 rcv_nxt;
	u32 rcv_edge;
	u32 rcv_acked;
	u32 rcv_read;
	/* The first byte not acknowledged, not sent, not written; the end of the window. */
	u32 snd_una;
	u32 snd_nxt;
	u32 snd_end;
	u32 snd_edge;
	/* Congestion window, in bytes. */
	u32 cwnd;
	/* The peer's last timestamp in order (RFC 7323, 4.3). */
	u32 ts_recent;
	/* Bytes acknowledged since the last control interval began. */
	u32 acked;
	/* Payload of a full segment, in bytes, options taken off. */
	u16 mss;
	/* enum tas_state. */
	u8 state;
	/* The receive buffer has 2^rx_shift bytes; 0: there is none yet. */
	u8 rx_shift;
	/* Shifts of the peer's windows, and of ours. */
	u8 snd_wscale;
	u8 rcv_wscale;
	/* Duplicate ACKs in a row. */
	u8 dupacks;
	/* Entries of tas_conn.interval, and of tas_conn.sacked, that are in use. */
	u8 gaps;
	u8 sacks;
	/* ACKs that are still sent at once, as the connection is new. */
	u8 quick;
	/* Its place among those with something to send. */
	struct homa_list tx;
};

HOMA_STATIC_ASSERT(sizeof(struct tas_flow) <= 128, "cache lines of a segment");

/* Kinds of deadlines; each has a time of its own, and the wheel the earliest. */
enum tas_timer {
	TAS_TIMER_DELACK,
	TAS_TIMER_RETRANSMIT, /* also of SYN, FIN, and probes of a closed window */
	TAS_TIMER_TAIL,	      /* tail loss probe */
	TAS_TIMER_KEEPALIVE,
	TAS_TIMER_END, /* TIME_WAIT, FIN_WAIT_2 */
	TAS_TIMERS,
};

struct tas_listener;

/** struct tas_cubic - what CUBIC remembers; windows in bytes, see RFC 9438, 4.1.2
 * @epoch: when the growth after the last reduction began, ns; 0: not yet.
 * @grown_at: when it went on last, ns.
 * @most: W_max. @prior: cwnd_prior. @estimate: W_est. @k_ms: K, ms.
 */
struct tas_cubic {
	u64 epoch;
	u64 grown_at;
	u32 most;
	u32 prior;
	u32 estimate;
	u32 k_ms;
};

/**
 * struct tas_rate - pacing, and control by rate once in a control interval (tas_pace.c,
 *	tas_rate.c); bytes are payload
 * @node: waits in tas_engine.pace until @next_at, if there is something to send.
 * @next_at: when the next bytes may leave, ns.
 * @rate: bytes per second; 0: not known yet, nothing is held back.
 * @given: of TAS_CONSTANT, bytes per second; 0: the setting's.
 * @begun_at: when the control interval began, ns, perhaps later than now. What was
 *	acknowledged since then is tas_flow.acked, and tas_conn.marked of it with a mark.
 * @rtt: the last round trip measured in it, ns; 0: none was. @rtt_before: the last one
 *	before it. @rtt_least: the least of all.
 * @gradient: TIMELY's moving average of the differences of round trips, ns.
 * @falls: intervals in a row in which round trips became no longer.
 * @starts: no congestion was seen yet: the rate doubles.
 * @lost: bytes were lost in the interval.
 * @waits: bytes waited for @next_at: the host's lateness is made up for.
 */
struct tas_rate {
	struct homa_wheel_node node;
	u64 next_at;
	u64 rate;
	u64 given;
	u64 begun_at;
	u64 rtt, rtt_before, rtt_least;
	s64 gradient;
	u8 falls;
	bool starts;
	bool lost;
	bool waits;
};

/** struct tas_conn - a connection; its memory is the host's */
struct tas_conn {
	/* What decides about a segment; first. */
	struct tas_flow f;
	/*
	 * Up to @rcv_mss: what the usual segment writes, too, or needs beside struct tas_flow.
	 */
	/* Its place among the connections whose host is to hear of @events (TAS_EV_*). */
	struct homa_list event;
	u32 events;
	/* Hash of its pair. */
	u32 hash;
	/* Segments that came and were sent, and those of them with payload. Nothing decides
	 * by them: they are told. */
	u32 segs_in, segs_out, data_in, data_out;
	/* When a segment came last, and when one with payload did, in ns. */
	u64 heard_at, data_at;
	/* When new bytes were sent last, in ns. */
	u64 sent_at;
	/* Since when bytes have waited for an answer, in ns; 0: none wait. */
	u64 stalled_at;
	/* In the short form: since when an ACK is owed; when a round trip was measured; ns. */
	u64 owed_at, timed_at;
	/* Initial sequence numbers, ours and the peer's. */
	u32 iss, irs;
	/* Added to our clock in timestamps, so that no peer learns how long the host runs. */
	u32 ts_offset;
	/* The largest window that the peer has offered, in bytes. */
	u32 snd_most;
	/* The end of the last segment that was sent and not full (Nagle). */
	u32 snd_small;
	/* Segment that the peer seems to send, in bytes. */
	u16 rcv_mss;
	/* Largest segment that the peer said, in bytes. */
	u16 peer_mss;
	/* The host's own, NULL at first; if it is not, TAS_EV_FREE comes even for a
	 * connection that ended before accept(). */
	void *host;
	/* The listener that took it, until it is accepted; then NULL. */
	struct tas_listener *listener;
	/* Its place in tas_listener.half or .ready, or among the engine's orphans. */
	struct homa_list pending;
	/* It waits for the earliest of @deadline, or for a time before that. */
	struct homa_wheel_node wheel;
	/* When each kind of timer is due, in ns; TAS_NEVER: it is not set. */
	u64 deadline[TAS_TIMERS];
	/* Bytes received behind gaps, the interval that grew last first (RFC 2018, 4). */
	struct tas_range interval[TAS_INTERVALS];
	/* Bytes that the peer has behind gaps, in ascending order. */
	struct tas_range sacked[TAS_INTERVALS];
	/* The repair of a loss ends when this is acknowledged. */
	u32 recover;
	/* What is to be sent again; nothing if the two are equal. */
	u32 rtx_nxt, rtx_end;
	/* @snd_nxt when something was sent again last: what is behind it was sent later. */
	u32 rtx_edge;
	/* Congestion window, in bytes, from which on it grows slowly (RFC 5681). */
	u32 ssthresh;
	/* Bytes acknowledged towards its next step of growth. */
	u32 cwnd_acked;
	/* The segment whose round trip is being timed ends here, and was sent at @rtt_at, in
	 * ns; 0: none is timed. */
	u32 rtt_seq;
	u64 rtt_at;
	/* Round trip, its variation, and the retransmission timeout, in ns (RFC 6298). */
	u64 srtt, rttvar, rto;
	/* Time after which the connection fails if bytes wait for an answer, in ns; 0: none. */
	u64 user_timeout;
	/* A congestion mark counts again when this is acknowledged. */
	u32 ecn_seq;
	/* Bytes acknowledged with a congestion mark since then. */
	u32 marked;
	/* DCTCP's share of marked bytes, in TAS_ALPHA_ONE-ths. */
	u32 alpha;
	struct tas_cubic cubic;
	struct tas_rate rate;
	/* Silence before the first keepalive probe, and time between two, in ms. */
	u32 keep_idle_ms, keep_interval_ms;
	/* Bytes that the receive buffer may grow to; decides about window scaling. */
	u32 rx_max;
	/* Pieces sent again, and bytes in them; segments that came with bytes behind a gap, and
	 * with a congestion mark. All of them are only told. */
	u32 resent, resent_bytes, out_of_order, marks_in;
	/* When it began, ns. */
	u64 born_at;
	/* Why the connection failed, a negative errno; 0: it did not. */
	int error;
	/* Before the repair: congestion window, 0 if that is not to come back, and ssthresh; and
	 * our timestamp when it began. */
	u32 undo_cwnd, undo_ssthresh, undo_ts;
	/* Sequence number of the peer's FIN, if TAS_F_FIN_SEEN. */
	u32 fin_at;
	/* When a segment that was not acceptable was answered last, in ns. */
	u64 challenged_at;
	/* Packet that the path takes, in bytes; 0: the engine's. */
	u16 path_mtu;
	/* What @path_mtu was before a smaller one was tried. */
	u16 wide_mtu;
	/* Timeouts and probes of a closed window in a row, and those of them without any
	 * answer. */
	u8 backoff;
	u8 probes;
	/* Keepalive probes without an answer, and how many end the connection. */
	u8 keep_probes, keep_most;
	/* enum tas_control. */
	u8 control;
	/* Pacing also if the control is by window. */
	bool pacing;
	/* A tail loss probe was sent, and nothing was acknowledged since. */
	bool tail_probed;
	/* Both sides scale their windows. */
	bool wscale_ok;
};

HOMA_STATIC_ASSERT(offsetof(struct tas_conn, rcv_mss) + sizeof(u16) <= 256,
		   "cache lines that the usual segment touches");

/**
 * struct tas_ended - what is remembered of a connection in TIME_WAIT; its memory is the
 *	host's
 * @hash, @value: its place in the engine's table of these, and its hash.
 * @order: its place among them by time, or among the spare ones.
 * @deadline: when it is forgotten, ns.
 * @snd_nxt, @rcv_nxt, @ts_recent, @ts_offset: as in the connection.
 * @window: as its ACKs say it. @ts: both sides used timestamps.
 */
struct tas_ended {
	struct homa_list hash;
	struct homa_list order;
	u64 deadline;
	struct tas_pair pair;
	u32 value;
	u32 snd_nxt;
	u32 rcv_nxt;
	u32 ts_recent;
	u32 ts_offset;
	u16 window;
	bool ts;
};

HOMA_STATIC_ASSERT(sizeof(struct tas_ended) <= 104, "TIME_WAIT in little memory");

/** tas_rx_size() - bytes of the receive buffer */
static inline u32 tas_rx_size(const struct tas_conn *conn)
{
	return conn->f.rx_shift ? 1u << conn->f.rx_shift : 0;
}

/** tas_scale_slack() - bytes by which a window is rounded up in a segment, at most */
static inline u32 tas_scale_slack(const struct tas_conn *conn)
{
	return (1u << conn->f.rcv_wscale) - 1;
}

/** tas_in_flight() - bytes sent and not acknowledged, FIN included */
static inline u32 tas_in_flight(const struct tas_conn *conn)
{
	return conn->f.snd_nxt - conn->f.snd_una;
}

/** tas_crossed() - connect() was called, and a SYN has come that does not answer ours */
static inline bool tas_crossed(const struct tas_conn *conn)
{
	return conn->f.state == TAS_SYN_RECEIVED && !conn->listener;
}

/** tas_open() - bytes may flow in at least one direction */
static inline bool tas_open(const struct tas_conn *conn)
{
	return conn->f.state >= TAS_ESTABLISHED && conn->f.state <= TAS_LAST_ACK;
}

#endif
