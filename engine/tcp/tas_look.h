/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The TCP engine's contract with tools: how a connection does, and which connections and
 * listeners there are, a bounded piece at a time. Nothing here changes anything.
 *
 * Written by: the engine, into memory of the caller's, who has it alone.
 */
#ifndef HOMA_TAS_LOOK_H
#define HOMA_TAS_LOOK_H

#include "tas_engine.h"

#define TAS_LOOK_BUCKETS 128u		  /* buckets that one call looks at */
#define TAS_LISTENING (TAS_TIME_WAIT + 1) /* tas_look.state of a listener */

/* What a connection does about losses. */
enum tas_repair {
	TAS_REPAIR_NONE,
	TAS_REPAIR_RECOVERY, /* found by acknowledgements */
	TAS_REPAIR_LOSS,     /* after a timeout */
};

/**
 * struct tas_info - how a connection does; times in ns, TAS_NEVER: never or not measured
 * @flags: bits TAS_F_*.
 * @state: an enum tas_state.
 * @repair: what is done about losses, an enum tas_repair.
 * @control: the congestion control, an enum tas_control.
 * @timer: timer that is due next, an enum tas_timer; TAS_TIMERS: none is set.
 * @backoff: number of timeouts and window probes since something new was acknowledged.
 * @probes: number of timeouts and window probes since the peer last said anything.
 * @keep_probes: number of keepalive probes since the peer last said anything.
 * @snd_wscale: bits by which the windows in the peer's segments are shifted left.
 * @rcv_wscale: bits by which the windows in our segments are shifted right.
 * @mss: payload of a full segment that we send, in bytes.
 * @rcv_mss: longest payload that has come in a segment, in bytes.
 * @path_mtu: longest IP packet that the path takes, in bytes.
 * @cwnd: congestion window, in bytes.
 * @ssthresh: congestion window at which slow start ends, in bytes; UINT32_MAX: no loss yet.
 * @in_flight: bytes sent and not acknowledged.
 * @unsent: bytes written and not sent.
 * @sacked: bytes of @in_flight that the peer has behind gaps.
 * @lost: bytes that are to be sent again.
 * @readable: bytes in order that the application has not taken.
 * @gap_bytes: bytes that came behind gaps.
 * @snd_wnd: bytes from the first unacknowledged one on that the peer lets us send.
 * @rcv_wnd: bytes from the first missing one on that we let the peer send.
 * @rx_size: size of the receive buffer, in bytes.
 * @segs_in: number of segments that came, modulo 2^32, as are all counts below.
 * @segs_out: number of segments that were sent.
 * @data_in: number of segments that came with payload.
 * @data_out: number of segments that were sent with payload.
 * @resent: number of pieces that were sent again.
 * @resent_bytes: number of bytes in these pieces.
 * @out_of_order: number of segments that came with bytes behind a gap.
 * @marks_in: number of segments that came with a congestion mark.
 * @srtt: smoothed round trip time (RFC 6298).
 * @rttvar: variation of the round trip time (RFC 6298).
 * @rto: retransmission timeout before it is doubled (RFC 6298).
 * @age: time since the connection began.
 * @heard: time since a segment came last.
 * @heard_data: time since a segment with payload came last.
 * @sent_data: time since new payload was sent last.
 * @due: time until @timer is due.
 * @error: negative errno with which the connection failed; 0: it did not fail.
 */
struct tas_info {
	u32 flags;
	u8 state, repair, control, timer;
	u8 backoff, probes, keep_probes;
	u8 snd_wscale, rcv_wscale;
	u32 mss, rcv_mss, path_mtu;
	u32 cwnd, ssthresh;
	u32 in_flight, unsent, sacked, lost;
	u32 readable, gap_bytes;
	u32 snd_wnd, rcv_wnd, rx_size;
	u32 segs_in, segs_out, data_in, data_out;
	u32 resent, resent_bytes, out_of_order, marks_in;
	u64 srtt, rttvar, rto;
	u64 age, heard, heard_data, sent_data, due;
	int error;
};

/** tas_conn_info() - write to @info how @conn does now */
void tas_conn_info(const struct tas_engine *engine, const struct tas_conn *conn,
		   struct tas_info *info);

/**
 * struct tas_look - a connection or a listener as tools see it
 * @state: an enum tas_state, or TAS_LISTENING.
 * @pair: its two ends; a listener has only @local and @local_port.
 * @conn: the connection, valid until the engine is called again; NULL: this is a listener,
 *	or a connection in TIME_WAIT that is kept as struct tas_ended.
 * @listener: the listener, or the listener of a connection that is not accepted yet, valid
 *	until the engine is called again; NULL: there is none.
 * @info: how @conn does. If @conn is NULL and this is no listener, only @state, @timer and
 *	@due are set.
 */
struct tas_look {
	u8 state;
	struct tas_pair pair;
	const struct tas_conn *conn;
	const struct tas_listener *listener;
	struct tas_info info;
};

/**
 * struct tas_look_cursor - where the next tas_look_some() goes on; all zeros: the beginning
 * @part: table that is being read: 0: listeners, 1: connections, 2: those in TIME_WAIT.
 * @bucket: next bucket of that table.
 * @skip: number of entries of that bucket that were seen already.
 * @ended: connections that are kept as struct tas_ended are seen, too. The caller sets it.
 * @end: everything was seen.
 */
struct tas_look_cursor {
	u32 part, bucket, skip;
	bool ended;
	bool end;
};

/** tas_look_some() - write the next connections and listeners to @out, at most @max
 *
 * One call looks at TAS_LOOK_BUCKETS buckets at most. The tables may change between two calls:
 * what stays in them is seen at least once, unless its bucket changed while it was being read.
 * Returns the number of entries written; @at->end and not 0 means the end.
 */
u32 tas_look_some(const struct tas_engine *engine, struct tas_look_cursor *at,
		  struct tas_look *out, u32 max);

/**
 * struct tas_counts - how many connections there are now
 * @connections: number of connections that are not counted in @ended.
 * @ended: number of connections in TIME_WAIT that are kept as struct tas_ended.
 */
struct tas_counts {
	u32 connections, ended;
};

/** tas_count() - count the connections; any thread may call this */
static inline struct tas_counts tas_count(const struct tas_engine *engine)
{
	return (struct tas_counts){ HOMA_READ_ONCE(engine->table.count),
				    HOMA_READ_ONCE(engine->ended.count) };
}

#endif
