// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Pacing: what a connection sends leaves at its rate, a little at once. After each piece
 * the time of the next one is known; until then the connection waits in a wheel of its
 * own, which is finer than that of the deadlines, and nobody looks at it.
 */
#include "tas_impl.h"

#define LATE_NS TAS_MSEC /* lateness of a host that is made up for, in ns */

u32 tas_paced(struct tas_engine *engine, struct tas_conn *conn, u32 bytes)
{
	struct tas_rate *r = &conn->rate;
	u64 most, mss = conn->f.mss;

	if (!r->rate)
		return bytes;
	if (r->next_at > engine->now) {
		r->waits = true;
		if (!homa_wheel_linked(&r->node) || r->node.deadline != r->next_at)
			homa_wheel_add(&engine->pace, &r->node, r->next_at,
				       engine->now);
		return 0;
	}
	most = homa_div64(r->rate * engine->params.pace_burst_us, 1000000);
	if (most >= bytes)
		return bytes;
	return homa_min_u32(bytes,
			    (u32)(homa_max_u64(homa_div64(most, (u32)mss), 1) *
				  mss));
}

void tas_pace_sent(struct tas_engine *engine, struct tas_conn *conn, u32 bytes)
{
	struct tas_rate *r = &conn->rate;
	u64 from = engine->now;

	if (!r->rate)
		return;
	/* A connection that had nothing to send does not save up time. */
	if (r->waits)
		from -= homa_min_u64(from, LATE_NS);
	r->next_at = homa_max_u64(r->next_at, from) +
		     homa_div64(bytes * TAS_SEC, r->rate);
	r->waits = r->waits && r->next_at <= engine->now;
}

/* The rate is two windows in a round trip while the window doubles, later one and a
 * quarter, so that it is the window that limits (as Linux does it). */
void tas_pace_window(struct tas_conn *conn)
{
	u64 window = conn->f.cwnd;

	window += conn->f.cwnd < conn->ssthresh ? window : window / 4;
	if (conn->srtt)
		conn->rate.rate =
			homa_max_u64(homa_div64(window * TAS_SEC, conn->srtt),
				     TAS_RATE_LEAST);
}
