// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * CUBIC (RFC 9438): after a loss the congestion window grows back towards where the loss
 * was, first fast, then slowly, then away from it, as a cubic function of time and
 * not of round trips; but never slower than NewReno would. Windows are in bytes, times in
 * ms, and C is 0.4 segments per second cubed.
 */
#include "tas_impl.h"

#define BETA(bytes) ((u32)((u64)(bytes) * 717 / 1024))	    /* 0.7 */
#define CONVERGED(bytes) ((u32)((u64)(bytes) * 870 / 1024)) /* (1 + 0.7) / 2 */
#define ALPHA(bytes) ((u32)((u64)(bytes) * 542 / 1024))	    /* 3 * 0.3 / 1.7 */
/* Time from the inflection point that counts at most, in ms, so that its cube fits into 64
 * bits. */
#define FARTHEST 40000u

u32 tas_cube_root(u64 value)
{
	u64 root = 0, next;
	int bit;

	for (bit = 20; bit >= 0; bit--) {
		next = root | 1ull << bit;
		if (next * next * next <= value)
			root = next;
	}
	return (u32)root;
}

static void begin_epoch(struct tas_engine *engine, struct tas_conn *conn)
{
	struct tas_cubic *c = &conn->cubic;

	c->epoch = engine->now;
	c->estimate = conn->f.cwnd;
	c->k_ms = 0;
	if (c->most <= conn->f.cwnd)
		c->most = conn->f.cwnd;
	else
		c->k_ms = tas_cube_root(
			homa_div64((u64)(c->most - conn->f.cwnd) * 2500000000ull,
				   conn->f.mss));
	conn->cwnd_acked = 0;
}

/* W_cubic @ms after the epoch began, but at most half as much again as the window is
 * now. */
static u32 cubic_at(const struct tas_conn *conn, u64 ms)
{
	const struct tas_cubic *c = &conn->cubic;
	u64 far = ms > c->k_ms ? ms - c->k_ms : c->k_ms - ms, window;

	far = homa_min_u64(far, FARTHEST);
	far = homa_div64(far * far * far * 4 * conn->f.mss, 10000000000ull);
	if (ms > c->k_ms)
		window = c->most + far;
	else
		window = c->most > far ? c->most - far : 0;
	return (u32)homa_min_u64(window, conn->f.cwnd + conn->f.cwnd / 2);
}

/* Moves on the window that NewReno would have (RFC 9438, 4.3). */
static void estimate(struct tas_conn *conn, u32 acked)
{
	struct tas_cubic *c = &conn->cubic;
	u64 step = homa_div64((u64)acked * conn->f.mss, conn->f.cwnd);

	c->estimate += c->estimate < c->prior ? ALPHA(step) : (u32)step;
}

static void grow(struct tas_engine *engine, struct tas_conn *conn, u32 acked)
{
	struct tas_cubic *c = &conn->cubic;
	u32 cwnd = conn->f.cwnd, target, more;
	u64 ms;

	/* Time in which the window was not used does not count (RFC 9438, 5.8). */
	if (!c->epoch || engine->now - c->grown_at > conn->rto)
		begin_epoch(engine, conn);
	c->grown_at = engine->now;
	estimate(conn, acked);
	ms = homa_div64(engine->now - c->epoch, TAS_MSEC);
	if (cubic_at(conn, ms) < c->estimate && c->estimate > cwnd) {
		conn->f.cwnd = homa_min_u32(c->estimate, cwnd + acked);
		return;
	}
	target = cubic_at(conn, ms + homa_div64(conn->srtt, TAS_MSEC));
	conn->cwnd_acked += acked;
	if (target <= cwnd)
		return;
	more = (u32)homa_div64((u64)(target - cwnd) * conn->cwnd_acked, cwnd);
	if (!more)
		return;
	conn->f.cwnd += homa_min_u32(more, conn->cwnd_acked);
	conn->cwnd_acked = 0;
}

static u32 reduced(struct tas_conn *conn, u32 window)
{
	struct tas_cubic *c = &conn->cubic;

	/* A connection that has less than before leaves room to others (RFC 9438, 4.7). */
	c->most = conn->f.cwnd < c->most ? CONVERGED(conn->f.cwnd) : conn->f.cwnd;
	c->prior = conn->f.cwnd;
	c->epoch = 0;
	return BETA(window);
}

const struct tas_congestion tas_cubic = {
	.grow = grow,
	.reduced = reduced,
};
