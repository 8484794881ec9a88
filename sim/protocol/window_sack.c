// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Loss recovery as Linux does it, in place of window_loss.c's: acks say which
 * bytes came out of order (RFC 2018), what was sent before them and has not come
 * is lost (RACK, RFC 8985), all that is lost is sent again as the window allows,
 * and what was sent again and is still missing when something that was sent
 * later has come is sent once more. Silence for two round trips sends the last
 * segment again as a probe (tail loss probe, RFC 8985), so that a lost tail
 * needs no time-out; the time-out is that of Linux, the smoothed round trip and
 * at least rto-min, after which all is lost that no ack has spoken of.
 *
 * Left out: reordering, F-RTO, undoing, and rate halving: the window is halved
 * at once.
 */
#include <stdlib.h>
#include <string.h>

#include "window.h"

/* Time that a probe waits beside the two round trips, ps. */
#define PROBE_WAIT (2 * SIM_MS)

static u64 window_highest(const struct window_flow *f)
{
	const struct window_ranges *r = &f->sacked;

	return r->num ? r->at[r->num - 1].to : f->snd_una;
}

/* Returns the number of bytes in [from, to) that no ack has spoken of. */
static u64 window_unsacked(const struct window_flow *f, u64 from, u64 to)
{
	u64 bytes = to > from ? to - from : 0;
	u32 i;

	for (i = 0; i < f->sacked.num; i++) {
		u64 a = f->sacked.at[i].from, b = f->sacked.at[i].to;

		a = a > from ? a : from;
		b = b < to ? b : to;
		if (b > a)
			bytes -= b - a;
	}
	return bytes;
}

u64 window_sack_pipe(const struct window_flow *f)
{
	u64 from = f->high_rxt > f->snd_una ? f->high_rxt : f->snd_una;

	return window_unsacked(f, f->snd_una, f->snd_max) -
	       window_unsacked(f, from, f->lost_to);
}

bool window_sack_hole(const struct window_flow *f, u64 *from, u64 *to)
{
	u64 at = f->high_rxt > f->snd_una ? f->high_rxt : f->snd_una;
	u32 i;

	for (i = 0; i < f->sacked.num; i++) {
		const struct window_range *r = &f->sacked.at[i];

		if (at < r->from)
			break;
		if (at < r->to)
			at = r->to;
	}
	if (at >= f->lost_to)
		return false;
	*from = at;
	*to = i < f->sacked.num && f->sacked.at[i].from < f->lost_to ?
		      f->sacked.at[i].from :
		      f->lost_to;
	return true;
}

void window_sack_blocks(const struct window_flow *f, u64 latest, struct sim_pkt *pkt)
{
	struct window_range *block = (struct window_range *)(void *)pkt->hdr;
	u32 i = f->in.num, n = 0;

	/* The range of the segment that came last, and those below it. */
	while (i > 0 && f->in.at[i - 1].from > latest)
		i--;
	for (; i > 0 && n < WINDOW_SACK_BLOCKS; i--)
		memcpy(&block[n++], &f->in.at[i - 1], sizeof(*block));
	pkt->hdr_len = (u8)(n * sizeof(*block));
}

void window_sack_take(struct window_flow *f, const struct sim_pkt *pkt)
{
	struct window_range block;
	u32 at;

	for (at = 0; at < pkt->hdr_len; at += sizeof(block)) {
		memcpy(&block, pkt->hdr + at, sizeof(block));
		if (block.from < f->snd_una || block.to <= block.from)
			continue;
		/* Something that was sent again has come, and what was sent again before it
		 * has not. */
		if (window_unsacked(f, block.from,
				    block.to < f->high_rxt ? block.to : f->high_rxt))
			f->overtaken = true;
		window_ranges_add(&f->sacked, block.from, block.to);
	}
}

/* Begins to send again all that is lost, the first segment whatever the window says. */
static void window_pass(struct sim *sim, struct window_flow *f)
{
	const struct window *w = window_of(sim);
	u64 from, to;

	f->overtaken = false;
	f->high_rxt = f->snd_una;
	f->pass_mark = f->snd_max;
	f->pass_at = sim->now;
	if (window_sack_hole(f, &from, &to)) {
		f->rexmit = true;
		f->rexmit_at = from;
		f->high_rxt = from + (to - from < w->mss ? to - from : w->mss);
	}
	window_set_deadline(sim, f);
}

static void window_recover(struct sim *sim, struct window_flow *f)
{
	struct window *w = window_of(sim);

	w->counts.fast++;
	f->ssthresh = window_half_flight(w, f);
	f->cwnd = f->ssthresh;
	f->ca_bytes = 0;
	f->recover = f->snd_max;
	f->recovering = true;
	f->timed_out = false;
	window_pass(sim, f);
}

/* Takes in an ack during recovery, of @acked bytes. */
static void window_sack_recovering(struct sim *sim, struct window_flow *f, u64 acked)
{
	struct window *w = window_of(sim);

	if (f->snd_una >= f->recover) {
		f->recovering = false;
		f->lost_to = f->snd_una;
		return;
	}
	w->counts.partial += acked > 0;
	if (f->timed_out && acked)
		window_grow(w, f, acked);
	/* What was sent later has come, so what was sent again is lost again. */
	if (window_highest(f) > f->pass_mark)
		f->overtaken = true;
	if (f->overtaken && f->high_rxt > f->snd_una && sim->now - f->pass_at > f->srtt)
		window_pass(sim, f);
}

void window_sack_ack(struct sim *sim, struct window_flow *f, u64 ack)
{
	struct window *w = window_of(sim);
	u64 pipe = window_sack_pipe(f), acked = ack - f->snd_una, highest;
	bool limiting = window_was_limiting(w, f, pipe);

	if (acked) {
		f->snd_una = ack;
		if (f->snd_nxt < ack)
			f->snd_nxt = ack;
		window_ranges_drop(&f->sacked, ack);
		window_measured(sim, f, ack);
		f->backoff = 0;
		f->probed = false;
	}
	highest = window_highest(f);
	if (highest > f->lost_to)
		f->lost_to = highest;
	if (f->recovering)
		window_sack_recovering(sim, f, acked);
	else if (f->lost_to > f->snd_una && f->sacked.num)
		window_recover(sim, f);
	else if (acked && limiting)
		window_grow(w, f, acked);
	if (f->snd_una == f->snd_max)
		f->deadline = SIM_NEVER;
	else if (acked)
		window_set_deadline(sim, f);
}

u64 window_sack_patience(const struct window *w, const struct window_flow *f)
{
	u64 rto = f->rto << f->backoff, probe;

	if (f->recovering || f->probed || f->backoff || !f->srtt)
		return rto;
	probe = 2 * f->srtt + (f->snd_max - f->snd_una <= w->mss ? w->rto_min : PROBE_WAIT);
	return probe < rto ? probe : rto;
}

void window_sack_timeout(struct sim *sim, struct window_flow *f)
{
	struct window *w = window_of(sim);

	if (!f->recovering && !f->probed && !f->backoff && f->srtt) {
		u64 flight = f->snd_max - f->snd_una;

		/* A new segment would do, too; the last one always can be sent. */
		w->counts.probes++;
		f->probed = true;
		f->rexmit = true;
		f->rexmit_at = f->snd_max - (flight < w->mss ? flight : w->mss);
	} else {
		w->counts.timeouts++;
		if (!f->backoff)
			f->ssthresh = window_half_flight(w, f);
		if (f->backoff < WINDOW_MAX_BACKOFF)
			f->backoff++;
		f->cwnd = w->mss;
		f->ca_bytes = 0;
		f->recover = f->snd_max;
		f->recovering = true;
		f->timed_out = true;
		f->lost_to = f->snd_max;
		f->timed_seq = 0;
		window_pass(sim, f);
	}
	window_set_deadline(sim, f);
	window_wake(sim, f);
}
