// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Deadlines of connections. A connection has one for each purpose and is in the wheel
 * once, for a time that is not later than the earliest of them: when a deadline moves
 * away, as it does with each ACK, the wheel is left alone, and the connection comes out
 * of it too early once.
 */
#include "tas_impl.h"

#define TAIL_MIN_NS (2 * TAS_MSEC) /* least time to a tail loss probe, in ns */
/* The most probes in a row; each waits twice as long as the one before. */
#define PROBES 3u
/* Least time in which a segment that was overtaken may still come, in ns. */
#define REORDER_MIN_NS TAS_MSEC

u64 tas_backed_off(const struct tas_engine *engine, u64 time, u32 doublings)
{
	u64 most = engine->params.rto_max_ms * TAS_MSEC;

	return doublings > 20 ? most : homa_min_u64(time << doublings, most);
}

/* Do bytes wait for the peer's window while nothing is under way that would bring an
 * ACK? */
static bool waits_for_window(const struct tas_conn *conn)
{
	return !tas_in_flight(conn) && conn->f.snd_nxt != conn->f.snd_end;
}

/* RFC 8985, 7.2, as it is if bytes were sent once and in order. */
u64 tas_tail_after(const struct tas_engine *engine, const struct tas_conn *conn)
{
	u64 after = 2 * conn->srtt;

	if (tas_in_flight(conn) <= conn->f.mss)
		after += conn->srtt / 2 +
			 homa_min_u64(engine->params.delack_ms * TAS_MSEC,
				      conn->rto);
	return homa_max_u64(after, TAIL_MIN_NS);
}

bool tas_wants_tail_probe(const struct tas_engine *engine,
			  const struct tas_conn *conn)
{
	/* If the ACK of a probe reports a gap, that is to be repaired, however many there were. */
	return engine->params.tail_loss_probe && conn->srtt &&
	       conn->f.state >= TAS_ESTABLISHED &&
	       (conn->f.flags & (TAS_F_SACK | TAS_F_LOSS)) == TAS_F_SACK &&
	       !conn->backoff &&
	       (conn->tail_probes < PROBES ||
		(conn->f.sacks && !(conn->f.flags & TAS_F_RECOVERY)));
}

/* Time after which what was sent is looked at before the timeout, ns. */
static u64 look_after(const struct tas_engine *engine, const struct tas_conn *conn)
{
	/* What was sent again had one round trip to arrive, and one for what came between. */
	if (conn->f.flags & TAS_F_RECOVERY)
		return homa_max_u64(2 * conn->srtt, TAIL_MIN_NS)
		       << conn->tail_probes;
	/* What was overtaken arrives in a quarter of one or never (RFC 8985, 6.2). */
	if (conn->f.sacks)
		return homa_max_u64(conn->srtt / 4, REORDER_MIN_NS);
	return tas_tail_after(engine, conn) << conn->tail_probes;
}

/* Time until the user timeout, in ns. */
static u64 time_left(const struct tas_engine *engine, const struct tas_conn *conn)
{
	u64 end = conn->stalled_at + conn->user_timeout;

	return end > engine->now ? end - engine->now : 0;
}

void tas_rearm_tail(struct tas_engine *engine, struct tas_conn *conn)
{
	u64 tail;

	tas_disarm(conn, TAS_TIMER_TAIL);
	if (!tas_in_flight(conn) || !tas_wants_tail_probe(engine, conn))
		return;
	tail = engine->now + look_after(engine, conn);
	if (tail < conn->deadline[TAS_TIMER_RETRANSMIT])
		tas_arm(engine, conn, TAS_TIMER_TAIL, tail);
}

void tas_rearm(struct tas_engine *engine, struct tas_conn *conn)
{
	u64 wait;

	if (!tas_in_flight(conn) && !waits_for_window(conn)) {
		tas_disarm(conn, TAS_TIMER_RETRANSMIT);
		tas_disarm(conn, TAS_TIMER_TAIL);
		conn->stalled_at = 0;
		return;
	}
	if (!conn->stalled_at)
		conn->stalled_at = engine->now;
	wait = tas_backed_off(engine, conn->rto, conn->backoff);
	if (unlikely(conn->user_timeout))
		wait = homa_min_u64(wait, time_left(engine, conn));
	tas_arm(engine, conn, TAS_TIMER_RETRANSMIT, engine->now + wait);
	tas_rearm_tail(engine, conn);
}
