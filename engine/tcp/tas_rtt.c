// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The round trip time and what follows from it (RFC 6298). One segment at a time is
 * timed with the host's clock, which is finer than timestamps; while something is sent
 * again only timestamps tell which of two copies was acknowledged (Karn's algorithm).
 */
#include "tas_impl.h"

#define CLOCK_NS TAS_MSEC /* granularity of timers */

void tas_rtt_sample(struct tas_engine *engine, struct tas_conn *conn, u64 rtt)
{
	u64 min = homa_max_u64(engine->params.rto_min_ms * TAS_MSEC, CLOCK_NS);
	u64 rto;
	s64 off;

	if (unlikely(!conn->srtt)) {
		conn->srtt = homa_max_u64(rtt, 1);
		conn->rttvar = rtt / 2;
	} else {
		off = (s64)(rtt - conn->srtt);
		conn->srtt += (u64)(off >> 3);
		off = off < 0 ? -off : off;
		conn->rttvar += (u64)((off - (s64)conn->rttvar) >> 2);
		conn->srtt += !conn->srtt;
	}
	/* As Linux does, the least is that of the variance, so that the timeout is
	 * always behind the round trip. */
	rto = conn->srtt + homa_max_u64(4 * conn->rttvar, min);
	conn->rto = homa_min_u64(rto, engine->params.rto_max_ms * TAS_MSEC);
}

/* Takes the age of a timestamp that has come back, in ns. The clock of timestamps has ticks of
 * 1 ms, so the round trip was less than a tick longer or shorter. What is known already is not
 * replaced by that while both agree: round trips of 100 us would become 1 ms. */
static void tell_of_echo(struct tas_engine *engine, struct tas_conn *conn, u64 age)
{
	if (age > conn->srtt + CLOCK_NS)
		tas_rtt_sample(engine, conn, age);
	else if (age + CLOCK_NS < conn->srtt || !conn->srtt)
		tas_rtt_sample(engine, conn, age + CLOCK_NS);
}

void tas_rtt_acked(struct tas_engine *engine, struct tas_conn *conn,
		   const struct tas_segment *seg)
{
	u32 echo;

	if (conn->rtt_at && !tas_before(seg->ack, conn->rtt_seq)) {
		conn->rate.rtt = engine->now - conn->rtt_at;
		tas_rtt_sample(engine, conn, conn->rate.rtt);
		conn->rtt_at = 0;
		return;
	}
	if (conn->rtt_at || !(conn->f.flags & TAS_F_TS) ||
	    !(seg->options & TAS_OPT_TS))
		return;
	echo = engine->clock_ms + conn->ts_offset - seg->ts_echo;
	/* An echo that is not plausible is not of a timestamp that we have sent. */
	if (echo && echo < engine->params.rto_max_ms && tas_in_flight(conn))
		tell_of_echo(engine, conn, echo * TAS_MSEC);
}
