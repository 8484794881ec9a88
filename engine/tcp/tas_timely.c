// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * TIMELY (Mittal et al., SIGCOMM 2015): the rate follows round trips and their trend.
 * As TAS does, it begins with doubling. Its thresholds are of queueing here, the round
 * trip less the least one seen, so that they hold on any path. Without a measurement
 * in the interval the rate stays.
 */
#include "tas_impl.h"

/* The newest difference counts 1/8 in the average (paper, section 4.3: alpha is 0.875). */
#define GAIN_SHIFT 3
/* Factor of decreases, in tenths (paper: beta is 0.8). */
#define BETA_TENTHS 8u
/* Number of intervals in a row without a longer round trip after which the rate grows
 * faster. */
#define FALLS 5u

/* Returns @rate less beta * @part / @whole of it. */
static u64 reduced(u64 rate, u64 part, u64 whole)
{
	part = homa_min_u64(part, whole);
	while (whole >> 20) {
		part >>= 1;
		whole >>= 1;
	}
	return rate -
	       homa_div64(homa_div64(rate * part, whole) * BETA_TENTHS, 10);
}

static u64 adjust(struct tas_engine *engine, struct tas_conn *conn)
{
	struct tas_rate *r = &conn->rate;
	u64 low = engine->params.timely_low_us * 1000ull, queued;
	u64 high = homa_max_u64(engine->params.timely_high_us * 1000ull, low);
	u64 step = engine->params.rate_step_kbps * 125ull;
	u64 spacing = TAS_NEVER;
	s64 longer;

	/* The rate is 0 here if next to nothing arrived. */
	if (r->rate)
		spacing = homa_div64(conn->f.mss * TAS_SEC, r->rate);
	if (!r->rtt)
		return r->lost ? r->rate / 2 : r->rate;
	if (!r->rtt_least || r->rtt < r->rtt_least)
		r->rtt_least = r->rtt;
	queued = r->rtt - r->rtt_least;
	/* The ACK of a segment may have waited for the next one: a round trip says no more than
	 * that, or who was once as slow as this would remain so. */
	if (spacing > high)
		queued -= homa_min_u64(queued, spacing);
	longer = r->rtt_before ? (s64)(r->rtt - r->rtt_before) : 0;
	r->gradient += (longer - r->gradient) / (1 << GAIN_SHIFT);
	r->falls = r->gradient > 0 ? 0 : (u8)homa_min_u32(r->falls + 1u, FALLS);
	if (r->starts && queued < low && !r->lost)
		return 2 * r->rate;
	r->starts = false;
	if (r->lost)
		return r->rate / 2;
	if (queued < low)
		return r->rate + step;
	if (queued > high)
		return reduced(r->rate, queued - high, queued);
	if (r->gradient <= 0)
		return r->rate + (r->falls == FALLS ? FALLS * step : step);
	return reduced(r->rate, (u64)r->gradient, r->rtt_least);
}

const struct tas_congestion tas_timely = {
	.adjust = adjust,
};
