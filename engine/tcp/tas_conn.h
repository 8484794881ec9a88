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
 *
 * Written by: the one thread that the connection's engine belongs to, in the engine's calls.
 */
#ifndef HOMA_TAS_CONN_H
#define HOMA_TAS_CONN_H

#include "homa_list.h"
#include "homa_wheel.h"
#include "tas_types.h"

/* Intervals that a connection has room for, in each of @interval and @sacked. */
#define TAS_INTERVALS 8u

/* Bits of tas_flow.flags. */
enum {
	TAS_F_TS = 1 << 0,	/* both sides use timestamps */
	TAS_F_SACK = 1 << 1,	/* both sides use selective acknowledgements */
	TAS_F_ECN = 1 << 2,	/* both sides use ECN */
	TAS_F_ECHO = 1 << 3,	/* ACKs carry ECE until the peer says CWR */
	TAS_F_SAY_CWR = 1 << 4, /* the next new segment says CWR */
	TAS_F_ACK_NOW = 1 << 5, /* an ACK is owed at once */
	TAS_F_ACK_LATER = 1 << 6, /* an ACK is owed when its time comes */
	TAS_F_NODELAY = 1 << 7,	  /* Nagle's rule is off (the host sets it) */
	TAS_F_FIN = 1 << 8, /* the application sends no more: snd_end counts a FIN */
	TAS_F_FIN_IN = 1 << 9, /* the peer's FIN came in order: rcv_nxt counts it */
	TAS_F_CLOSED = 1 << 10, /* the application has let go of the connection */
	TAS_F_URGENT = 1
		<< 11, /* bytes before @snd_up are urgent: the peer does not have all */
	TAS_F_RECOVERY = 1 << 12, /* a loss is being repaired, up to @recover */
	TAS_F_LOSS = 1 << 13, /* all since a timeout is repaired, up to @recover */
	TAS_F_KEEPALIVE = 1 << 14, /* silence is probed (the host sets it) */
	TAS_F_CORK = 1 << 15, /* only full segments are sent (the host sets it) */
	TAS_F_CWND_FULL = 1 << 16, /* the congestion window was what held us back */
	TAS_F_URGENT_IN = 1
		<< 17, /* the byte @rcv_up is urgent, and was not taken */
	TAS_F_PROBE = 1 << 18, /* a probe of the peer's window is to be sent */
	TAS_F_PINGPONG = 1
		<< 19, /* replies carry the ACKs, no need for quick ones */
	TAS_F_ALIVE = 1 << 20,	  /* a keepalive probe is to be sent */
	TAS_F_FIN_SEEN = 1 << 21, /* the peer's FIN came, behind a gap */
	TAS_F_WAITS = 1
		<< 22, /* it is not accepted yet, and tas_listener.places may be 0 */
	TAS_F_PACED = 1
		<< 23, /* the connection sends at a rate; see struct tas_rate */
	TAS_F_SHORT = 1
		<< 24, /* the fields are in the short form; see tas_short.c */
	TAS_F_UNTIMED = 1 << 25, /* no round trip may be measured from @stalled_at */
};

/* Of these flags only TAS_F_SHORT is set if bytes that the application takes are just bytes. */
#define TAS_F_TAKES (TAS_F_SHORT | TAS_F_FIN_IN | TAS_F_URGENT_IN)

/* Most bytes in a send buffer, as sequence numbers compare within 2^31. */
#define TAS_WRITTEN_MOST (1u << 30)

/** struct tas_flow - what decides about a segment */
struct tas_flow {
	/* Links the connection into tas_engine.table, or into tas_engine.spare. */
	struct homa_list hash;
	/* Addresses and ports of the two ends. */
	struct tas_pair pair;
	/* Bits TAS_F_*. */
	u32 flags;
	/* Sequence number of the next byte that is missing in order. */
	u32 rcv_nxt;
	/* Sequence number behind the receive window that the peer knows. */
	u32 rcv_edge;
	/* Value of rcv_nxt when the last segment was sent: the number up to which we have
	 * acknowledged. */
	u32 rcv_acked;
	/* Sequence number of the next byte that the application will take. */
	u32 rcv_read;
	/* Sequence number of the first byte that the peer has not acknowledged. */
	u32 snd_una;
	/* Sequence number of the next byte that has never been sent. */
	u32 snd_nxt;
	/* Sequence number behind the last byte that the application has written, or its
	 * FIN. */
	u32 snd_end;
	/* Sequence number behind the window that the peer offers. */
	u32 snd_edge;
	/* Congestion window, in bytes. */
	u32 cwnd;
	/* The peer's timestamp that our segments echo (RFC 7323, 4.3). */
	u32 ts_recent;
	/* Bytes acknowledged since the control interval, or the window of marks, began. */
	u32 acked;
	/* Payload of a full segment that we send, in bytes, without options. */
	u16 mss;
	/* enum tas_state. */
	u8 state;
	/* The receive buffer has 2^rx_shift bytes; 0: there is none yet. */
	u8 rx_shift;
	/* The window in the peer's segments is shifted left by this many bits. */
	u8 snd_wscale;
	/* The window in our segments is shifted right by this many bits. */
	u8 rcv_wscale;
	/* Duplicate ACKs since an ACK brought news. */
	u8 dupacks;
	/* Number of entries of tas_conn.interval that are in use. */
	u8 gaps;
	/* Number of entries of tas_conn.sacked that are in use. */
	u8 sacks;
	/* Number of ACKs that are still sent at once because the connection is new. */
	u8 quick;
	/* Links the connection into tas_engine.tx while it may have something to send. */
	struct homa_list tx;
};

HOMA_STATIC_ASSERT(sizeof(struct tas_flow) <= 128, "cache lines of a segment");

/* Kinds of deadlines. Each has its time in tas_conn.deadline. */
enum tas_timer {
	TAS_TIMER_DELACK,     /* a delayed ACK is sent */
	TAS_TIMER_RETRANSMIT, /* something is sent again, or a window is probed */
	TAS_TIMER_TAIL,	      /* a tail loss probe is sent */
	TAS_TIMER_KEEPALIVE, /* a silent peer is probed */
	TAS_TIMER_END, /* TIME_WAIT, or FIN_WAIT_2 without an application, ends */
	TAS_TIMERS,
};

struct tas_listener;

/** struct tas_cubic - what CUBIC remembers; windows in bytes, see RFC 9438, 4.1.2
 * @epoch: time at which the window began to grow after the last reduction, in ns; 0: it has
 *	not grown since.
 * @grown_at: time at which an ACK last let the window grow, in ns.
 * @most: W_max: the window to which the growth leads back first.
 * @prior: cwnd_prior: the congestion window before the last reduction.
 * @estimate: W_est: the window that NewReno would have now.
 * @k_ms: K: time from @epoch until the window is @most again, in ms.
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
 *	tas_rate.c); bytes are bytes of payload
 * @node: links the connection into tas_engine.pace while bytes wait for @next_at.
 * @next_at: time before which no more bytes may leave, in ns.
 * @rate: rate at which bytes leave, in bytes per second; 0: it is not known yet, and nothing
 *	is held back.
 * @asked: rate that tas_set_rate() asked for under TAS_CONSTANT, in bytes per second; 0: the
 *	setting rate_kbps counts.
 * @begun_at: time at which the control interval began or will begin, in ns. The engine
 *	counts in tas_flow.acked the bytes acknowledged since, and in tas_conn.marked those of
 *	them that were marked.
 * @interval: length of the control interval, in ns.
 * @rtt: last round trip measured in this interval, in ns; 0: none was measured.
 * @rtt_before: last round trip measured in an earlier interval, in ns; 0: none was measured.
 * @rtt_floor: shortest round trip measured of late, in ns; 0: none was measured. It rises a little
 *	in each interval, so that a path that became longer is learned.
 * @rtt_least: shortest round trip that TIMELY has seen, in ns; 0: it has seen none.
 * @gradient: TIMELY's moving average of the differences between round trips, in ns.
 * @falls: number of intervals in a row in which @gradient was not positive, at most 5.
 * @starts: no congestion has been seen yet, so the rate doubles in each interval.
 * @lost: bytes were lost in this interval.
 * @waits: bytes had to wait for @next_at, so the next ones may make up for a host that asks
 *	late.
 */
struct tas_rate {
	struct homa_wheel_node node;
	u64 next_at;
	u64 rate;
	u64 asked;
	u64 begun_at;
	u64 interval;
	u64 rtt, rtt_before, rtt_floor, rtt_least;
	s64 gradient;
	u8 falls;
	bool starts;
	bool lost;
	bool waits;
};

/** struct tas_conn - a connection, in memory that the host has handed in */
struct tas_conn {
	/* What decides about a segment. It stands first. */
	struct tas_flow f;
	/*
	 * The usual segment writes or reads the fields from here to @rcv_mss beside struct
	 * tas_flow, so they stand together.
	 */
	/* Links the connection into tas_engine.events while @events is not 0. */
	struct homa_list event;
	/* TAS_EV_* that tas_next_event() has not told the host yet. */
	u32 events;
	/* tas_hash() of the pair. */
	u32 hash;
	/* Number of segments that came and were sent, modulo 2^32. Only tools read it. */
	u32 segs_in, segs_out;
	/* Number of those segments that had payload. Tools read it, and tas_delack.c @data_in. */
	u32 data_in, data_out;
	/* Time at which a segment came last, in ns. In the short form segments with payload
	 * write only @data_at. */
	u64 heard_at;
	/* Time at which a segment with payload came last, in ns; 0: none has come. */
	u64 data_at;
	/* Time at which new bytes were sent last, in ns; 0: none were sent. */
	u64 sent_at;
	/* Time since which bytes have waited for an answer of the peer, in ns; 0: none
	 * wait. */
	u64 stalled_at;
	/* Time since which an ACK has been owed, in ns. Only the short form uses it. */
	u64 owed_at;
	/* Time from which on a round trip is measured again, in ns. Only the short form uses
	 * it. */
	u64 measure_at;
	/* Initial sequence numbers: @iss is ours, @irs the peer's. */
	u32 iss, irs;
	/* Added to our clock in timestamps, so that no peer learns how long the host
	 * runs. */
	u32 ts_offset;
	/* The largest window that the peer has offered, in bytes. */
	u32 snd_most;
	/* Sequence number behind the last segment that was not full (Nagle's rule needs
	 * it). */
	u32 snd_small;
	/* Value of rcv_read from which on our next segment opens the window. Only the short
	 * form uses it; tas_note_window() says what it follows from. */
	u32 rcv_open;
	/* Value of rcv_nxt from which on the peer may send no more than half of the receive
	 * buffer. Only the short form uses it. */
	u32 rcv_low;
	/* Longest payload of a segment that has come from the peer, in bytes. */
	u16 rcv_mss;
	/* Largest segment that the peer takes, as its SYN said, in bytes. */
	u16 peer_mss;
	/* Word for the host's own use. If this is not NULL the host gets TAS_EV_FREE even
	 * for a connection that ended before accept(). */
	void *host;
	/* The listener whose connection this is, until tas_accept() sets it to NULL. */
	struct tas_listener *listener;
	/* Links the connection into tas_listener.half or .ready, or tas_engine.orphans. */
	struct homa_list pending;
	/* Links the connection into tas_engine.wheel, for a time not later than the
	 * earliest of @deadline. */
	struct homa_wheel_node wheel;
	/* Time at which each kind of timer is due, in ns; TAS_NEVER: it is not set. */
	u64 deadline[TAS_TIMERS];
	/* Bytes that we have received behind gaps. The interval that grew last stands first
	 * (RFC 2018, 4). */
	struct tas_range interval[TAS_INTERVALS];
	/* Our bytes that the peer has behind gaps, as its SACK blocks say, in ascending
	 * order. */
	struct tas_range sacked[TAS_INTERVALS];
	/* The repair of a loss ends when this sequence number is acknowledged. */
	u32 recover;
	/* The bytes [rtx_nxt, rtx_end) are to be sent again, without those in @sacked. */
	u32 rtx_nxt, rtx_end;
	/* Value of snd_nxt when bytes were last sent again: all bytes behind it were sent
	 * later. */
	u32 rtx_edge;
	/* Congestion window from which on slow start is over, in bytes (RFC 5681). */
	u32 ssthresh;
	/* Bytes acknowledged since the congestion window last grew by a step. */
	u32 cwnd_acked;
	/* Sequence number behind the segment whose round trip is being timed. */
	u32 rtt_seq;
	/* Time at which that segment was sent, in ns; 0: none is being timed. */
	u64 rtt_at;
	/* Smoothed round trip time, in ns; 0: none was measured (RFC 6298). */
	u64 srtt;
	/* Variation of the round trip time, in ns (RFC 6298). */
	u64 rttvar;
	/* Retransmission timeout before it is doubled, in ns (RFC 6298). */
	u64 rto;
	/* The connection fails when bytes have waited for an answer for this long, in
	 * ns; 0: the number of retries counts. The host writes it. */
	u64 user_timeout;
	/* A congestion mark counts again when this sequence number is acknowledged. */
	u32 ecn_seq;
	/* Bytes that were acknowledged with a congestion mark, out of tas_flow.acked. */
	u32 marked;
	/* DCTCP's moving average of the share of marked bytes, in units of 1 /
	 * TAS_ALPHA_ONE. */
	u32 alpha;
	/* State of the congestion control CUBIC. */
	struct tas_cubic cubic;
	/* State of pacing and of congestion control by rate. */
	struct tas_rate rate;
	/* Time at which the segment came whose ACK last left alone, in ns; 0: none did. */
	u64 alone_at;
	/* Value of @data_in at that moment. */
	u32 alone_in;
	/* Time that an ACK waits for company here, in ms; 0: the setting delack_ms. */
	u16 ack_wait_ms;
	/* Number of ACKs that left alone although an answer came soon after, up to
	 * TAS_ALONE; see tas_delack.c. */
	u8 alone;
	/* Silence before the first keepalive probe, in ms. The host may write it. */
	u32 keep_idle_ms;
	/* Time between two keepalive probes, in ms. The host may write it. */
	u32 keep_interval_ms;
	/* Size to which the receive buffer may grow, in bytes. Window scaling follows
	 * from it. */
	u32 rx_max;
	/* Number of pieces that were sent again, and of bytes in them. Only tools read
	 * it. */
	u32 resent, resent_bytes;
	/* Number of segments that came with bytes behind a gap. Only tools read it. */
	u32 out_of_order;
	/* Number of segments that came with a congestion mark. Only tools read it. */
	u32 marks_in;
	/* Time at which the connection began, in ns. */
	u64 born_at;
	/* Negative errno that says why the connection failed; 0: it did not fail. */
	int error;
	/* Congestion window before the repair of a loss, in bytes; 0: it is not
	 * restored. */
	u32 undo_cwnd;
	/* ssthresh before the repair, in bytes. */
	u32 undo_ssthresh;
	/* Our timestamp when the repair began. */
	u32 undo_ts;
	/* Sequence number of the peer's FIN. It counts while TAS_F_FIN_SEEN is set. */
	u32 fin_at;
	/* Sequence number behind our last urgent byte. It counts while TAS_F_URGENT is set. */
	u32 snd_up;
	/* Sequence number of the peer's last urgent byte. It counts while TAS_F_URGENT_IN is
	 * set. */
	u32 rcv_up;
	/* Time at which an unacceptable segment was last answered, in ns; 0: none was. */
	u64 challenged_at;
	/* Longest IP packet that the path takes, in bytes; 0: as long as tas_engine.mtu. */
	u16 path_mtu;
	/* Value of @path_mtu that comes back if smaller packets do not help, in bytes;
	 * 0: no smaller ones are being tried. */
	u16 wide_mtu;
	/* Number of timeouts and window probes since something new was acknowledged. */
	u8 backoff;
	/* Number of timeouts and window probes since the peer last said anything. */
	u8 probes;
	/* Number of keepalive probes since the peer last said anything. */
	u8 keep_probes;
	/* Number of keepalive probes without an answer after which the connection fails.
	 * The host may write it. */
	u8 keep_most;
	/* Number of ACKs that segments behind the first gap have had of their own. It stops
	 * where it decides nothing any more. */
	u8 gap_acks;
	/* The congestion control, an enum tas_control. */
	u8 control;
	/* The connection is paced even if its control is by window. */
	bool pacing;
	/* The number of times since the last acknowledgement, or since a repair began, that
	 * something was sent before the timeout because nothing came. */
	u8 tail_probes;
	/* A segment was taken for lost that others had only overtaken. */
	bool overtaken;
	/* Both sides scale their windows. */
	bool wscale_ok;
};

HOMA_STATIC_ASSERT(offsetof(struct tas_conn, rcv_mss) + sizeof(u16) <= 256,
		   "cache lines that the usual segment touches");

/**
 * struct tas_ended - what is remembered of a connection in TIME_WAIT; the memory belongs to
 *	the host
 * @hash: links it into tas_engine.ended.
 * @order: links it into tas_engine.ended_order, or into spare_ended if it is not in use.
 * @deadline: time at which the connection is forgotten, in ns.
 * @pair: addresses and ports of the two ends.
 * @value: tas_hash() of @pair.
 * @snd_nxt: as tas_flow.snd_nxt at the end of the connection.
 * @rcv_nxt: as tas_flow.rcv_nxt at the end of the connection.
 * @ts_recent: as tas_flow.ts_recent at the end of the connection.
 * @ts_offset: as tas_conn.ts_offset.
 * @window: window field of the ACKs that are sent for it.
 * @ts: both sides used timestamps.
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

/** tas_rx_size() - size of the receive buffer, in bytes; 0: there is none yet */
static inline u32 tas_rx_size(const struct tas_conn *conn)
{
	return conn->f.rx_shift ? 1u << conn->f.rx_shift : 0;
}

/** tas_scale_slack() - most bytes by which a window is rounded up in a segment */
static inline u32 tas_scale_slack(const struct tas_conn *conn)
{
	return (1u << conn->f.rcv_wscale) - 1;
}

/**
 * tas_rx_limit() - position behind the last byte that is taken from the peer
 *
 * A peer may send up to the window as segments told it, which is rounded up. The buffer has
 * room for that, except after rcv_edge was moved to bytes that lay beyond it.
 */
static inline u32 tas_rx_limit(const struct tas_conn *conn)
{
	u32 full = conn->f.rcv_read + tas_rx_size(conn);
	u32 told = conn->f.rcv_edge + tas_scale_slack(conn);

	return (s32)(full - told) < 0 ? full : told;
}

/**
 * tas_in_flight() - return the number of bytes sent and not acknowledged; SYN and FIN
 * count, too
 */
static inline u32 tas_in_flight(const struct tas_conn *conn)
{
	return conn->f.snd_nxt - conn->f.snd_una;
}

/**
 * tas_crossed() - does the application connect, and has a SYN come that does not answer
 * ours?
 */
static inline bool tas_crossed(const struct tas_conn *conn)
{
	return conn->f.state == TAS_SYN_RECEIVED && !conn->listener;
}

/** tas_open() - may bytes flow in at least one direction? */
static inline bool tas_open(const struct tas_conn *conn)
{
	return conn->f.state >= TAS_ESTABLISHED && conn->f.state <= TAS_LAST_ACK;
}

#endif
