// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * CUBIC (RFC 9438) as Linux has it. After a loss 0.7 of the window is left, and it grows back as a
 * cubic function of time towards where the loss was, then away from it, but not slower than a
 * NewReno would that also keeps 0.7; C is 0.4 segments per second cubed. Time in which a stream
 * had nothing under way does not count.
 *
 * What is Linux' and not the RFC's: a window grows at most by half in a round trip; one that knows
 * of no loss, or of a time-out only, which forgets all, grows by a twentieth at least.
 *
 * HyStart ends slow start before losses do, in a window of 16 segments or more: when the least
 * of more than eight round trips of a round is longer than the least of all by an eighth, at
 * least by 4 and at most by 16 ms; or when acks that follow each other within 2 ms have come for
 * more than half of the least round trip and 1 ms. (That is Linux' HyStart, not RFC 9406.) These
 * times are real ones, whatever the rate of links.
 *
 * While a loss is being repaired the window follows what has come (PRR, RFC 6937): for so much as
 * comes 0.7 of it is sent until as little is under way as will be left, and then as much and at
 * most a segment more with each ack. So nothing is sent in a burst, however large the window was.
 *
 * A round trip begins when the segment waits for its host's link, as Linux counts it, and is known
 * from each ack: acks echo that time.
 */
#include <string.h>

#include "tas_engine.h"
#include "window.h"

/* What is left of a window after a loss, and of the place of the loss if it was below the last
 * one ("fast convergence"), in 1024ths. */
#define LEFT 717u
#define LEFT_PLACE 870u
/* What NewReno gains in a round trip, in 1024ths of a segment. */
#define GAIN 542u
/* Segments whose acks let a window grow by one, at least, and at most before any loss. */
#define FASTEST 2u
#define SLOWEST 20u
/* As many times the window does it grow after, if neither of the functions is above it. */
#define HARDLY 100u
/* Longest time from the inflection point that counts, ms, so that its cube fits into 64 bits. */
#define FARTHEST 40000u

#define LOW_WINDOW 16u /* segments */
#define SAMPLES 8u
#define DELAY_LEAST (4 * SIM_MS)
#define DELAY_MOST (16 * SIM_MS)
#define TRAIN_GAP (2 * SIM_MS)
#define TRAIN_MORE SIM_MS
/* After a reduction round trips say nothing for so long. */
#define DISCARD SIM_S

static void window_cubic_begin(const struct window *w, struct window_flow *f, u64 now)
{
	struct window_cubic *c = &f->cubic;

	c->epoch = now;
	c->estimate = f->cwnd;
	c->estimate_acked = 0;
	c->most_now = c->most > f->cwnd ? c->most : f->cwnd;
	/* (ms / 1000)^3 * 0.4 segments are missing. */
	c->place_ms = tas_cube_root((c->most_now - f->cwnd) * 2500000000ull / w->mss);
}

/* Returns the window, in bytes, @ms after the epoch began. */
static u64 window_cubic_at(const struct window *w, const struct window_flow *f, u64 ms)
{
	const struct window_cubic *c = &f->cubic;
	u64 far = ms > c->place_ms ? ms - c->place_ms : c->place_ms - ms;

	far = far < FARTHEST ? far : FARTHEST;
	far = far * far * far / 100000 * 4 * w->mss / 100000;
	if (ms > c->place_ms)
		return c->most_now + far;
	return c->most_now > far ? c->most_now - far : 0;
}

/* Returns how many bytes must be acked for the window to grow by a segment so that it would be
 * @target in a round trip. */
static u64 window_cubic_pace(const struct window *w, const struct window_flow *f, u64 target)
{
	return target > f->cwnd ? f->cwnd * w->mss / (target - f->cwnd) : HARDLY * f->cwnd;
}

/* NewReno's window by an ack of @acked bytes. */
static void window_cubic_estimate(const struct window *w, struct window_flow *f, u64 acked)
{
	struct window_cubic *c = &f->cubic;
	u64 pace = f->cwnd * 1024 / GAIN;

	c->estimate_acked += acked;
	c->estimate += c->estimate_acked / pace * w->mss;
	c->estimate_acked %= pace;
}

void window_cubic_grow(const struct window *w, struct window_flow *f, u64 now, u64 acked)
{
	struct window_cubic *c = &f->cubic;
	u64 pace, friendly;

	if (!c->epoch)
		window_cubic_begin(w, f, now);
	window_cubic_estimate(w, f, acked);
	pace = window_cubic_pace(w, f,
				 window_cubic_at(w, f,
						 (now - c->epoch + c->least_rtt) / SIM_MS));
	if (!c->most && pace > SLOWEST * w->mss)
		pace = SLOWEST * w->mss;
	friendly = window_cubic_pace(w, f, c->estimate);
	pace = friendly < pace ? friendly : pace;
	pace = pace > FASTEST * w->mss ? pace : FASTEST * w->mss;
	/* What was acked at a slower pace is worth a segment at most. */
	if (f->ca_bytes >= pace) {
		f->ca_bytes = 0;
		f->cwnd += w->mss;
	}
	f->ca_bytes += acked;
	f->cwnd += f->ca_bytes / pace * w->mss;
	f->ca_bytes %= pace;
}

u64 window_cubic_reduced(struct window_flow *f)
{
	struct window_cubic *c = &f->cubic;

	/* A stream that has less than before leaves room to others. */
	c->most = f->cwnd < c->most ? f->cwnd * LEFT_PLACE / 1024 : f->cwnd;
	c->epoch = 0;
	return f->cwnd * LEFT / 1024;
}

void window_cubic_recover(struct window_flow *f, u64 prior)
{
	struct window_cubic *c = &f->cubic;

	c->prior = prior;
	c->seen = window_sack_come(f);
	c->delivered = c->out = 0;
	/* The first segment is sent again whatever the window. */
	f->cwnd = window_sack_pipe(f);
}

void window_cubic_recovering(const struct window *w, struct window_flow *f, bool good)
{
	struct window_cubic *c = &f->cubic;
	u64 come = window_sack_come(f), pipe = window_sack_pipe(f), may, part;

	if (come == c->seen)
		return;
	c->delivered += come - c->seen;
	if (pipe > f->ssthresh) {
		part = c->delivered * f->ssthresh / c->prior;
		may = part > c->out ? part - c->out : 0;
	} else {
		may = c->delivered > c->out ? c->delivered - c->out : 0;
		may = may > come - c->seen ? may : come - c->seen;
		may += good ? w->mss : 0;
		may = may < f->ssthresh - pipe ? may : f->ssthresh - pipe;
	}
	c->seen = come;
	f->cwnd = pipe + may;
}

void window_cubic_forget(struct window_flow *f)
{
	memset(&f->cubic, 0, sizeof(f->cubic));
}

/* ---- HyStart ---- */

static bool window_train_is_long(struct window_cubic *c, u64 now)
{
	if (now - c->train_at > TRAIN_GAP)
		return false;
	c->train_at = now;
	return now - c->round_at > (c->least_rtt + TRAIN_MORE) / 2;
}

static bool window_delay_grows(struct window_cubic *c, u64 rtt)
{
	u64 more = c->least_rtt / 8;

	more = more > DELAY_LEAST ? more : DELAY_LEAST;
	more = more < DELAY_MOST ? more : DELAY_MOST;
	if (rtt < c->round_rtt)
		c->round_rtt = rtt;
	if (c->samples < SAMPLES) {
		c->samples++;
		return false;
	}
	return c->round_rtt > c->least_rtt + more;
}

void window_cubic_rtt(const struct window *w, struct window_flow *f, u64 ack, u64 now,
		      u64 rtt)
{
	struct window_cubic *c = &f->cubic;
	bool train;

	if (c->epoch && now - c->epoch < DISCARD)
		return;
	if (!c->least_rtt || rtt < c->least_rtt)
		c->least_rtt = rtt;
	if (c->left || f->cwnd >= f->ssthresh)
		return;
	if (ack > c->round_end) {
		c->round_end = f->snd_max;
		c->round_at = c->train_at = now;
		c->round_rtt = UINT64_MAX;
		c->samples = 0;
	}
	if (f->cwnd < LOW_WINDOW * w->mss)
		return;
	train = window_train_is_long(c, now);
	if (window_delay_grows(c, rtt) || train) {
		c->left = true;
		f->ssthresh = f->cwnd;
	}
}
