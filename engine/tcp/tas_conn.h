/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A connection. What a segment of an established connection touches are the two cache
 * lines of struct tas_flow (TAS, table 3: 102 bytes); the rest is for losses, timers,
 * and the beginning and end of a connection.
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
	TAS_F_TS = 1 << 0,	  /* both sides use timestamps */
	TAS_F_SACK = 1 << 1,	  /* both sides use selective acknowledgements */
	TAS_F_ECN = 1 << 2,	  /* both sides use ECN */
	TAS_F_ECHO = 1 << 3,	  /* ACKs carry ECE until the peer says CWR */
	TAS_F_SAY_CWR = 1 << 4,	  /* the next new segment says CWR */
	TAS_F_ACK_NOW = 1 << 5,	  /* an ACK is owed at once */
	TAS_F_ACK_LATER = 1 << 6, /* an ACK is owed when its time comes */
	TAS_F_NODELAY = 1 << 7,	  /* no Nagle */
	TAS_F_FIN = 1 << 8,	  /* the application sends no more: snd_end counts a FIN */
	TAS_F_FIN_IN = 1 << 9,	  /* the peer's FIN came in order: rcv_nxt counts it */
	TAS_F_CLOSED = 1 << 10,	  /* the application has let go of the connection */
	TAS_F_NO_READ = 1 << 11,  /* it takes no more bytes, whatever comes */
	TAS_F_RECOVERY = 1 << 12, /* a loss is being repaired, up to @recover */
	TAS_F_LOSS = 1 << 13,	  /* the same after a timeout */
	TAS_F_KEEPALIVE = 1 << 14,
	TAS_F_CORK = 1 << 15,	  /* only full segments are sent */
	TAS_F_CWND_FULL = 1 << 16, /* the congestion window was what held us back */
	TAS_F_PASSIVE = 1 << 17,  /* a listener took it */
	TAS_F_PROBE = 1 << 18,	  /* one byte or segment goes beyond the window */
	TAS_F_PINGPONG = 1 << 19, /* replies carry the ACKs, no need for quick ones */
	TAS_F_ALIVE = 1 << 20,	  /* a keepalive probe is to be sent */
	TAS_F_FIN_SEEN = 1 << 21, /* the peer's FIN came, behind a gap */
};

/**
 * struct tas_flow - what the fast path touches
 * @hash: in the engine's table.
 * @rcv_acked: rcv_nxt of the last segment that was sent.
 * @cwnd: congestion window, in bytes.
 * @ts_recent: the peer's last timestamp in order (RFC 7323, 4.3).
 * @rx_shift: the receive buffer has 2^@rx_shift bytes; 0: there is none yet.
 * @acked: bytes acknowledged in this control interval.
 * @mss: payload of a full segment, in bytes, options taken off.
 * @snd_wscale, @rcv_wscale: of the peer's windows, and of ours.
 * @dupacks: duplicate ACKs in a row.
 * @gaps: entries of tas_conn.interval in use.
 * @sacks: entries of tas_conn.sacked in use.
 * @quick: ACKs that are still sent at once, as the connection is new.
 * @tx: in the engine's list of those with something to send.
 */
struct tas_flow {
	struct homa_list hash;
	struct tas_pair pair;
	u32 flags;
	u32 rcv_nxt;
	u32 rcv_edge;
	u32 rcv_acked;
	u32 rcv_read;
	u32 snd_una;
	u32 snd_nxt;
	u32 snd_end;
	u32 snd_edge;
	u32 cwnd;
	u32 ts_recent;
	u32 acked;
	u16 mss;
	u8 state;
	u8 rx_shift;
	u8 snd_wscale;
	u8 rcv_wscale;
	u8 dupacks;
	u8 gaps;
	u8 sacks;
	u8 quick;
	struct homa_list tx;
};

HOMA_STATIC_ASSERT(sizeof(struct tas_flow) <= 128, "cache lines of a segment");

/* Kinds of deadlines; each has a time of its own, and the wheel the earliest. */
enum tas_timer {
	TAS_TIMER_DELACK,
	TAS_TIMER_RETRANSMIT, /* also of SYN, FIN, and probes of a closed window */
	TAS_TIMER_TAIL,	      /* tail loss probe */
	TAS_TIMER_KEEPALIVE,
	TAS_TIMER_END,	      /* TIME_WAIT, FIN_WAIT_2 */
	TAS_TIMERS,
};

struct tas_listener;

/**
 * struct tas_conn - a connection
 * @f: what the fast path touches; first.
 * @host: the host's own.
 * @listener: of a passive connection that was not accepted yet, else NULL.
 * @pending: in its listener's list of those that accept() may take.
 * @event: in the engine's list of those with something to tell; @events says what.
 * @hash: of its pair.
 * @wheel: waits for the earliest of @deadline, ns, TAS_NEVER each if unused.
 * @interval: bytes behind gaps, the one that grew last first (RFC 2018, 4).
 * @sacked: bytes that the peer has behind gaps, ascending.
 * @iss, @irs: initial sequence numbers, ours and the peer's.
 * @recover: a repair ends when this is acknowledged.
 * @rtx_nxt, @rtx_end: what is to be sent again; nothing if they are equal.
 * @ssthresh: bytes. @cwnd_acked: bytes acknowledged towards the next increase.
 * @rtt_seq, @rtt_at: the segment that is being timed, and when it was sent; 0: none.
 * @srtt, @rttvar, @rto: ns (RFC 6298). @backoff: timeouts in a row.
 * @probes: probes in a row without an answer.
 * @stalled_at: when the oldest byte was first sent without an answer; 0: none waits.
 * @heard_at: when a segment came last. @data_at: when one with payload did, ns. @user_timeout: ns, 0: none.
 * @ts_offset: added to our clock, so that the peer does not learn how long it runs.
 * @ecn_seq: snd_nxt when congestion was last reacted to.
 * @marked: bytes acknowledged with ECE in this control interval.
 * @alpha: DCTCP's share of marked bytes, 1/1024ths.
 * @snd_small: behind the last segment that was not full.
 * @fin_at: sequence number of the peer's FIN, if it has come before bytes in front of it.
 * @challenged_at: when a segment that was not acceptable was answered last, ns.
 * @sent_at: when new bytes were sent last, ns.
 * @peer_mss: as the peer's SYN said. @path_mtu: of the path, 0: the engine's.
 * @rcv_mss: what the peer seems to send.
 * @rx_max: bytes that the receive buffer may grow to; decides about window scaling.
 * @keep_probes: keepalive probes without an answer. @keep_most: as many end it.
 * @tail_probed: a tail loss probe was sent, and nothing acknowledged since.
 * @wscale_ok: both sides scale their windows.
 * @keep_idle_ms, @keep_interval_ms: of keepalive.
 * @error: why it failed, 0 or negative.
 */
struct tas_conn {
	struct tas_flow f;
	void *host;
	struct tas_listener *listener;
	struct homa_list pending;
	struct homa_list event;
	u32 events;
	u32 hash;
	struct homa_wheel_node wheel;
	u64 deadline[TAS_TIMERS];
	struct tas_range interval[TAS_INTERVALS];
	struct tas_range sacked[TAS_INTERVALS];
	u32 iss, irs;
	u32 recover;
	u32 rtx_nxt, rtx_end;
	u32 ssthresh;
	u32 cwnd_acked;
	u32 rtt_seq;
	u64 rtt_at;
	u64 srtt, rttvar, rto;
	u64 stalled_at;
	u64 heard_at, data_at;
	u64 user_timeout;
	u32 ts_offset;
	u32 ecn_seq;
	u32 marked;
	u32 alpha;
	u32 keep_idle_ms, keep_interval_ms;
	u32 rx_max;
	int error;
	u32 snd_small;
	u32 fin_at;
	u64 sent_at, challenged_at;
	u16 peer_mss, path_mtu, rcv_mss;
	u8 backoff;
	u8 probes;
	u8 keep_probes, keep_most;
	bool tail_probed;
	bool wscale_ok;
};

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

/** tas_open() - bytes may flow in at least one direction */
static inline bool tas_open(const struct tas_conn *conn)
{
	return conn->f.state >= TAS_ESTABLISHED && conn->f.state <= TAS_LAST_ACK;
}

#endif
