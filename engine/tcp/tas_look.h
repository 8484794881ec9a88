/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The TCP engine's contract with tools: how a connection does, and which connections and
 * listeners there are, a bounded piece at a time. Nothing here changes anything.
 */
#ifndef HOMA_TAS_LOOK_H
#define HOMA_TAS_LOOK_H

#include "tas_engine.h"

#define TAS_LOOK_BUCKETS 128u		  /* looked at by one call */
#define TAS_LISTENING (TAS_TIME_WAIT + 1) /* tas_look.state of a listener */

/* What a connection does about losses. */
enum tas_repair {
	TAS_REPAIR_NONE,
	TAS_REPAIR_RECOVERY, /* found by acknowledgements */
	TAS_REPAIR_LOSS,     /* after a timeout */
};

/**
 * struct tas_info - how a connection does; times in ns, TAS_NEVER: never or not measured
 * @flags: TAS_F_*. @state: enum tas_state. @repair: enum tas_repair. @control: enum
 *	tas_control. @timer: enum tas_timer, what is due next; TAS_TIMERS: nothing.
 * @backoff: timeouts in a row. @probes: of a closed window in a row. @keep_probes: of a
 *	silent connection.
 * @snd_wscale, @rcv_wscale: shifts of the peer's windows and of ours.
 * @mss, @rcv_mss: payload of a full segment, ours and the peer's, bytes; @path_mtu: of
 *	an IP packet.
 * @cwnd, @ssthresh: bytes; @ssthresh is all ones before the first reduction.
 * @in_flight: bytes sent and not acknowledged; @unsent: written and not sent; @sacked:
 *	in flight, and behind gaps with the peer; @lost: that are to be sent again.
 * @readable: bytes in order that the application has not taken; @gap_bytes: behind gaps.
 * @snd_wnd, @rcv_wnd: what the peer lets us send, and we the peer. @rx_size: of the
 *	receive buffer, bytes.
 * @segs_in, @segs_out: segments that came and were sent; @data_in, @data_out: those of
 *	them with payload. All modulo 2^32, as are the next.
 * @resent: pieces sent again; @resent_bytes: in them. @out_of_order: segments that came
 *	with bytes behind a gap. @marks_in: segments that came with a congestion mark.
 * @srtt, @rttvar, @rto: RFC 6298.
 * @age: since it began. @heard, @heard_data, @sent_data: since a segment came, one
 *	with payload came, and new payload was sent.
 * @due: until @timer.
 * @error: negative errno, 0: none.
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

/** tas_conn_info() - how @conn does now */
void tas_conn_info(const struct tas_engine *engine, const struct tas_conn *conn,
		   struct tas_info *info);

/**
 * struct tas_look - a connection or a listener as tools see it
 * @state: enum tas_state, or TAS_LISTENING.
 * @pair: its ends; of a listener @local and @local_port.
 * @conn: the connection, NULL if that is only remembered (TIME_WAIT) or it is a listener;
 *	valid as long as the engine is not called, as is @listener: of a listener, and of a
 *	connection that was not accepted yet.
 * @info: of @conn. Of what is only remembered: @state and @due.
 */
struct tas_look {
	u8 state;
	struct tas_pair pair;
	const struct tas_conn *conn;
	const struct tas_listener *listener;
	struct tas_info info;
};

/**
 * struct tas_look_cursor - all zeros: from the begin; @end: everything was seen
 * @part: listeners, connections, remembered ones. @bucket, @skip: next bucket of it, and
 *	how many there were seen already.
 * @ended: the remembered ones, too; the caller's.
 */
struct tas_look_cursor {
	u32 part, bucket, skip;
	bool ended;
	bool end;
};

/** tas_look_some() - the next ones, @max at most, out of TAS_LOOK_BUCKETS buckets at most
 *
 * Between two calls the tables change: what stays is seen at least once unless its own
 * bucket changed in the middle of being read. Returns how many; 0 is not the end.
 */
u32 tas_look_some(const struct tas_engine *engine, struct tas_look_cursor *at,
		  struct tas_look *out, u32 max);

/**
 * struct tas_counts - how many there are now
 * @connections: of all kinds but @ended, which are those in TIME_WAIT that are only
 *	remembered.
 */
struct tas_counts {
	u32 connections, ended;
};

static inline struct tas_counts tas_count(const struct tas_engine *engine)
{
	return (struct tas_counts){ HOMA_READ_ONCE(engine->table.count),
				    HOMA_READ_ONCE(engine->ended.count) };
}

#endif
