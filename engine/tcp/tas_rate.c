// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Congestion control by rate, as TAS does it (EuroSys 2019, section 3.2): ACKs are only
 * counted, and once in a control interval, by default two round trips, the connection's
 * control gets what was counted and says a rate. The interval ends with the first ACK
 * after its time, so there is no timer, and none that comes without news. A rate alone
 * would fill any queue while no ACKs come: a window of twice of what the rate carries in
 * a round trip goes with it.
 */
#include "tas_impl.h"

/* Control interval before a round trip was measured, in ns. */
#define UNMEASURED_NS TAS_MSEC
/* Highest rate, in bytes per second, and longest round trip that counts, in ns; their
 * product fits into 64 bits. */
#define RATE_MOST (1ull << 35)
#define SRTT_MOST (1ull << 28)
#define WINDOW_LEAST 4u /* smallest window, in segments */
/* In each interval the floor of round trips rises by itself divided by 2^FLOOR_SHIFT. */
#define FLOOR_SHIFT 6

/* The last round trip or the average, whichever is less, in ns: a queue may have gone. */
static u64 round_trip(const struct tas_conn *conn)
{
	u64 last = conn->rate.rtt ? conn->rate.rtt : conn->rate.rtt_before;

	return last ? homa_min_u64(last, conn->srtt) : conn->srtt;
}

/* Raises the floor a little, or lowers it to what was measured in this interval. */
static void learn_floor(struct tas_conn *conn)
{
	struct tas_rate *r = &conn->rate;
	u64 floor = r->rtt_floor + (r->rtt_floor >> FLOOR_SHIFT);

	if (r->rtt)
		r->rtt_floor = floor ? homa_min_u64(floor, r->rtt) : r->rtt;
}

/* Returns the round trip without what an ACK may have waited at the peer for the next segment, in
 * ns: at a low rate that is most of it, so intervals would be long, and the rate would grow
 * slowly, and stay low. */
static u64 network_trip(const struct tas_conn *conn)
{
	const struct tas_rate *r = &conn->rate;
	u64 trip = conn->srtt;

	if (r->rate)
		trip -= homa_min_u64(trip,
				     homa_div64(conn->f.mss * TAS_SEC, r->rate));
	return homa_min_u64(homa_max_u64(trip, r->rtt_floor), conn->srtt);
}

/* Returns the length of the control interval that begins now, in ns. */
static u64 next_interval(const struct tas_engine *engine,
			 const struct tas_conn *conn)
{
	u64 given = engine->params.control_interval_us * 1000ull;

	if (given)
		return given;
	if (!conn->srtt)
		return UNMEASURED_NS;
	return 2 * (conn->rate.rtt_floor ? network_trip(conn) : conn->srtt);
}

/* Returns the rate of an initial window in each round trip; 0: no round trip was
 * measured. */
static u64 first_rate(const struct tas_engine *engine, const struct tas_conn *conn)
{
	u64 bytes = (u64)engine->params.initial_window * conn->f.mss;

	return conn->srtt ? homa_div64(bytes * TAS_SEC, conn->srtt) : 0;
}

static u64 within(u64 rate)
{
	return homa_min_u64(homa_max_u64(rate, TAS_RATE_LEAST), RATE_MOST);
}

void tas_rate_window(struct tas_conn *conn)
{
	struct tas_rate *r = &conn->rate;
	u64 window;

	if (!r->rate)
		return;
	window = conn->control == TAS_CONSTANT ?
			 TAS_CWND_MOST :
			 homa_div64(2 * r->rate *
					    homa_min_u64(conn->srtt, SRTT_MOST),
				    TAS_SEC);
	window = homa_max_u64(window, (u64)WINDOW_LEAST * conn->f.mss);
	conn->f.cwnd = (u32)homa_min_u64(window, TAS_CWND_MOST);
}

static void begin_interval(const struct tas_engine *engine,
			   struct tas_conn *conn, u64 at)
{
	struct tas_rate *r = &conn->rate;

	r->begun_at = at;
	learn_floor(conn);
	if (r->rtt)
		r->rtt_before = r->rtt;
	r->rtt = 0;
	r->interval = next_interval(engine, conn);
	r->lost = false;
	conn->f.acked = 0;
	conn->marked = 0;
}

void tas_rate_reset(struct tas_conn *conn)
{
	conn->rate.rate = 0;
	conn->rate.starts = true;
	conn->rate.lost = false;
	conn->rate.next_at = 0;
}

void tas_rate_begin(struct tas_engine *engine, struct tas_conn *conn)
{
	struct tas_rate *r = &conn->rate;

	tas_rate_reset(conn);
	begin_interval(engine, conn, engine->now + round_trip(conn));
	r->rate = first_rate(engine, conn);
	if (conn->control == TAS_CONSTANT)
		r->rate = r->asked ? r->asked : engine->params.rate_kbps * 125ull;
	if (r->rate)
		r->rate = within(r->rate);
	tas_rate_window(conn);
}

void tas_rate_resumed(struct tas_engine *engine, struct tas_conn *conn)
{
	struct tas_rate *r = &conn->rate;
	u64 first = first_rate(engine, conn);

	/* No ACK can come within a round trip. */
	if (engine->now > r->begun_at + r->interval && !r->lost)
		begin_interval(engine, conn, engine->now + round_trip(conn));
	if (conn->control != TAS_CONSTANT && first && r->rate > first &&
	    engine->now - conn->sent_at > conn->rto) {
		r->rate = within(first);
		tas_rate_window(conn);
	}
}

static void end_interval(struct tas_engine *engine, struct tas_conn *conn,
			 const struct tas_congestion *control)
{
	struct tas_rate *r = &conn->rate;
	u64 first = first_rate(engine, conn);
	u64 achieved =
		homa_div64(conn->f.acked * TAS_SEC, engine->now - r->begun_at);

	if (!r->rate)
		r->rate = first;
	if (!r->rate)
		return;
	/* As in TAS the rate is no more than 20 % above what arrived. But a connection that
	 * had little to send does not get less than one that begins, as long as there is no
	 * congestion. While a gap is open what arrives behind it is not acknowledged, so what
	 * was acknowledged says nothing then. */
	if (conn->marked)
		first = 0;
	if (conn->control != TAS_CONSTANT && !r->lost &&
	    !(conn->f.flags & (TAS_F_RECOVERY | TAS_F_LOSS)))
		r->rate = homa_min_u64(r->rate,
				       homa_max_u64(achieved + achieved / 5,
						    first));
	r->rate = within(control->adjust(engine, conn));
	/* One segment goes in each interval at least, or there would be nothing to decide
	 * by for long. */
	if (conn->control != TAS_CONSTANT)
		r->rate = homa_max_u64(r->rate,
				       homa_div64((u64)conn->f.mss * TAS_SEC,
						  r->interval));
	if (!(conn->f.flags & (TAS_F_RECOVERY | TAS_F_LOSS)))
		tas_rate_window(conn);
	begin_interval(engine, conn, engine->now);
}

void tas_rate_acked(struct tas_engine *engine, struct tas_conn *conn,
		    const struct tas_congestion *control, u32 acked, bool marked)
{
	u64 passed = engine->now - homa_min_u64(conn->rate.begun_at, engine->now);

	conn->f.acked += acked;
	/* What was sent before the rate was reduced says nothing about the new one. */
	if (marked && !tas_before(conn->f.snd_una, conn->ecn_seq))
		conn->marked += homa_max_u32(acked, 1);
	/* After a timeout the window grows by what arrives. */
	if (conn->f.flags & TAS_F_LOSS)
		conn->f.cwnd =
			homa_min_u32(conn->f.cwnd +
					     homa_min_u32(acked, conn->f.mss),
				     homa_max_u32(conn->ssthresh, conn->f.cwnd));
	if (passed && passed >= conn->rate.interval)
		end_interval(engine, conn, control);
}

static u64 constant(struct tas_engine *engine, struct tas_conn *conn)
{
	const struct tas_rate *r = &conn->rate;

	return r->asked ? r->asked : engine->params.rate_kbps * 125ull;
}

const struct tas_congestion tas_constant = {
	.adjust = constant,
};

int tas_set_rate(struct tas_conn *conn, u64 rate)
{
	if (rate && rate < TAS_RATE_LEAST)
		return TAS_EINVAL;
	conn->rate.asked = homa_min_u64(rate, RATE_MOST);
	if (conn->control == TAS_CONSTANT && rate)
		conn->rate.rate = conn->rate.asked;
	return 0;
}
