// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The sender's half of a stream that reacts: an ack opens the window, three
 * duplicates mean a loss that is repaired within the round trip, silence for a
 * time-out means that everything is lost and the stream starts over from one
 * segment. See window.h for the RFCs.
 *
 * With setting "sack" losses are found as Linux does (RACK and tail loss
 * probes, RFC 8985): what was sent before something that has come is lost, all
 * that is lost is sent again as the window allows, and once more if something
 * that was sent after it has come. Silence for two round trips sends the last
 * segment again as a probe, so that a lost tail needs no time-out. Left out:
 * reordering and, without setting "cubic", rate halving: the window is halved at
 * once.
 *
 * With setting "undo", too, a time-out that was too early is undone as Linux does
 * it (F-RTO, RFC 5682): it sends one segment again; if then bytes come that were
 * not sent again, they were only late, and all is as before.
 *
 * The sender never sends from here. It only moves the edges of what may be
 * sent and wakes the NIC, which pulls when it is free.
 */
#include "window.h"

u64 window_usable(const struct window *w, const struct window_flow *f)
{
	u64 usable = f->cwnd;

	/* Limited transmit; in recovery the window is inflated instead. */
	if (f->dupacks && !f->recovering && w->dup_limit != WINDOW_NO_DUPACKS)
		usable += (u64)(f->dupacks < 2 ? f->dupacks : 2) * w->mss;
	return usable < w->max ? usable : w->max;
}

/* Time that a probe waits beside two round trips, ps; Linux' least wait. */
#define PROBE_WAIT (2 * SIM_MS)

/* ---- the time-out ---- */

/* Returns the time, ps, until a probe or, else, the time-out. */
static u64 window_sack_patience(const struct window *w, const struct window_flow *f)
{
	u64 rto = f->rto << f->backoff, probe;

	if (f->recovering || f->probed || f->backoff || !f->srtt)
		return rto;
	probe = 2 * f->srtt + (f->snd_max - f->snd_una <= w->mss ? w->rto_min : PROBE_WAIT);
	return probe < rto ? probe : rto;
}

static void window_set_deadline(struct sim *sim, struct window_flow *f)
{
	const struct window *w = window_of(sim);

	f->deadline =
		sim->now + (w->sack ? window_sack_patience(w, f) : f->rto << f->backoff);
	if (sim_event_pending(&f->timer)) {
		if (f->timer.at <= f->deadline)
			return;
		sim_event_cancel(sim->agenda, &f->timer);
	}
	sim_event_add(sim->agenda, &f->timer, f->deadline);
}

void window_arm(struct sim *sim, struct window_flow *f)
{
	if (f->deadline == SIM_NEVER)
		window_set_deadline(sim, f);
}

/* Returns the window that is left after a loss, in bytes. */
static u64 window_reduced(const struct window *w, struct window_flow *f)
{
	u64 left = w->cubic ? window_cubic_reduced(f) : (f->snd_max - f->snd_una) / 2;

	return left > 2ull * w->mss ? left : 2ull * w->mss;
}

/* Makes the window smaller by a loss, and remembers how it was. */
static void window_reduce(const struct window *w, struct window_flow *f)
{
	f->undo_cwnd = f->cwnd;
	f->undo_ssthresh = f->ssthresh;
	f->undo_seq = 0;
	f->ssthresh = window_reduced(w, f);
}

static void window_timeout(struct sim *sim, struct window_flow *f)
{
	struct window *w = window_of(sim);

	w->counts.timeouts++;
	/* A segment lost twice says no more about the path than lost once. */
	if (!f->backoff)
		f->ssthresh = window_reduced(w, f);
	else
		f->level_base = f->snd_una;
	window_cubic_forget(f);
	if (f->backoff < WINDOW_MAX_BACKOFF)
		f->backoff++;
	f->cwnd = w->mss;
	f->ca_bytes = 0;
	f->recover = f->snd_max;
	f->recovering = false;
	f->rexmit = false;
	f->dupacks = 0;
	f->timed_seq = 0;
	f->snd_nxt = f->snd_una;
	f->cursor = f->head;
	window_set_deadline(sim, f);
	window_wake(sim, f);
}

/* ---- losses as Linux finds them ---- */

/* Begins to send again all that is lost, the first segment whatever the window says, but for
 * what was sent again before and begins at @under_way or later. */
static void window_pass(struct sim *sim, struct window_flow *f, u64 under_way)
{
	const struct window *w = window_of(sim);
	u64 from, to;

	f->skip_from = under_way;
	f->skip_to = f->high_rxt;
	f->come = f->new_after = 0;
	f->overtaken = f->doubtful = false;
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

/* The patience of window_sack_patience() is over: probes or gives up. */
static void window_sack_timeout(struct sim *sim, struct window_flow *f)
{
	struct window *w = window_of(sim);

	if (!f->recovering && !f->probed && !f->backoff && f->srtt) {
		u64 flight = f->snd_max - f->snd_una;

		/* A new segment would do, too; the last one always can be sent. */
		w->counts.probes++;
		f->probed = true;
		f->rexmit = true;
		f->rexmit_at = f->snd_max - (flight < w->mss ? flight : w->mss);
		window_set_deadline(sim, f);
	} else {
		/* Recovery from a loss, without a time-out, has begun with a smaller window. */
		bool smaller = f->recovering && !f->timed_out;
		/* No loss was known before, so there may be none. */
		bool early = w->undo && (!f->recovering || f->backoff);

		w->counts.timeouts++;
		if (!f->backoff && !smaller) {
			window_reduce(w, f);
			f->undo_seq = f->timed_seq;
			f->undo_at = f->timed_at;
		}
		window_cubic_forget(f);
		f->undo_from = window_sack_highest(f);
		if (f->backoff < WINDOW_MAX_BACKOFF)
			f->backoff++;
		f->cwnd = w->mss;
		f->ca_bytes = 0;
		f->recover = f->snd_max;
		f->recovering = true;
		f->timed_out = true;
		f->lost_to = f->snd_max;
		f->timed_seq = 0;
		window_pass(sim, f, UINT64_MAX);
		f->doubtful = early;
	}
	window_wake(sim, f);
}

void window_timer(struct sim *sim, struct sim_event *ev)
{
	struct window_flow *f = homa_container_of(ev, struct window_flow, timer);

	if (f->deadline == SIM_NEVER)
		return;
	if (sim->now < f->deadline)
		sim_event_add(sim->agenda, ev, f->deadline);
	else if (window_of(sim)->sack)
		window_sack_timeout(sim, f);
	else
		window_timeout(sim, f);
}

static void window_measure(struct window *w, struct window_flow *f, u64 rtt)
{
	u64 diff;

	if (!f->srtt) {
		f->srtt = rtt;
		f->rttvar = rtt / 2;
	} else {
		diff = rtt > f->srtt ? rtt - f->srtt : f->srtt - rtt;
		f->rttvar = (3 * f->rttvar + diff) / 4;
		f->srtt = (7 * f->srtt + rtt) / 8;
	}
	f->rto = f->srtt + 4 * f->rttvar;
	if (w->sack && 4 * f->rttvar < w->rto_min)
		f->rto = f->srtt + w->rto_min;
	if (f->rto < w->rto_min)
		f->rto = w->rto_min;
}

static void window_measured(struct sim *sim, struct window_flow *f, u64 ack)
{
	if (!f->timed_seq || ack < f->timed_seq)
		return;
	window_measure(window_of(sim), f, sim->now - f->timed_at);
	f->timed_seq = 0;
}

/* ---- acks ---- */

/* Was it the window that kept the sender from sending more, with @flight bytes under
 * way? */
static bool window_was_limiting(const struct window *w, const struct window_flow *f,
				u64 flight)
{
	if (f->cwnd < f->ssthresh)
		return 2 * flight >= f->cwnd;
	return flight + w->mss > f->cwnd;
}

static void window_grow(struct sim *sim, struct window_flow *f, u64 acked)
{
	const struct window *w = window_of(sim);

	if (f->cwnd < f->ssthresh) {
		f->cwnd += acked < 2ull * w->mss ? acked : 2ull * w->mss;
	} else if (w->cubic) {
		window_cubic_grow(w, f, sim->now, acked);
	} else {
		f->ca_bytes += acked;
		if (f->ca_bytes >= f->cwnd) {
			f->ca_bytes -= f->cwnd;
			f->cwnd += w->mss;
		}
	}
	if (f->cwnd > w->max)
		f->cwnd = w->max;
}

/* Takes in an ack during recovery, which goes on if @ack does not cover all that was under
 * way when it began. */
static void window_recovery_ack(struct sim *sim, struct window_flow *f, u64 acked)
{
	struct window *w = window_of(sim);
	u64 flight = f->snd_nxt - f->snd_una;

	if (f->snd_una >= f->recover) {
		if (flight < w->mss)
			flight = w->mss;
		flight += w->mss;
		f->cwnd = flight < f->ssthresh ? flight : f->ssthresh;
		f->recovering = false;
		f->dupacks = 0;
		window_set_deadline(sim, f);
		return;
	}
	w->counts.partial++;
	f->rexmit = true;
	f->cwnd -= acked < f->cwnd ? acked : f->cwnd;
	if (acked >= w->mss || f->cwnd < w->mss)
		f->cwnd += w->mss;
	if (!f->partial_seen)
		window_set_deadline(sim, f);
	f->partial_seen = true;
}

static void window_new_ack(struct sim *sim, struct window_flow *f, u64 ack, bool ce)
{
	struct window *w = window_of(sim);
	u64 acked = ack - f->snd_una;
	bool limiting = window_was_limiting(w, f, f->snd_nxt - f->snd_una);
	bool grow = true;

	f->snd_una = ack;
	if (f->snd_nxt < ack)
		f->snd_nxt = ack;
	window_measured(sim, f, ack);
	f->backoff = 0;
	if (w->policy->acked)
		grow = w->policy->acked(w, f, (u32)acked, ce);
	if (f->recovering) {
		window_recovery_ack(sim, f, acked);
	} else {
		f->dupacks = 0;
		f->rexmit = false;
		if (grow && limiting)
			window_grow(sim, f, acked);
		window_set_deadline(sim, f);
	}
	if (f->snd_una == f->snd_max)
		f->deadline = SIM_NEVER;
}

static void window_dup_ack(struct sim *sim, struct window_flow *f)
{
	struct window *w = window_of(sim);

	f->dupacks++;
	if (f->recovering) {
		f->cwnd += w->mss;
		return;
	}
	if (f->dupacks != w->dup_limit)
		return;
	/* Duplicates up to @recover may be echoes of what was sent twice. */
	if (f->recover && f->snd_una <= f->recover)
		return;
	w->counts.fast++;
	f->ssthresh = window_reduced(w, f);
	f->cwnd = f->ssthresh + (u64)w->dup_limit * w->mss;
	f->ca_bytes = 0;
	f->recover = f->snd_max;
	f->recovering = true;
	f->partial_seen = false;
	f->rexmit = true;
	window_set_deadline(sim, f);
}

static void window_recover(struct sim *sim, struct window_flow *f)
{
	struct window *w = window_of(sim);

	w->counts.fast++;
	window_reduce(w, f);
	f->cwnd = f->ssthresh;
	f->ca_bytes = 0;
	f->recover = f->snd_max;
	f->recovering = true;
	f->timed_out = false;
	window_pass(sim, f, UINT64_MAX);
	if (w->cubic)
		window_cubic_recover(f, f->undo_cwnd);
}

/* Have bytes come since the time-out that were not sent again? */
static bool window_was_early(const struct window_flow *f)
{
	u64 highest = window_sack_highest(f);
	u64 known = f->undo_from > f->high_rxt ? f->undo_from : f->high_rxt;

	return f->doubtful && (highest < f->recover ? highest : f->recover) > known;
}

/* All is as before the time-out. What was timed then has come as it was sent first. */
static void window_undo(struct sim *sim, struct window_flow *f)
{
	window_of(sim)->counts.undone++;
	if (f->cwnd < f->undo_cwnd)
		f->cwnd = f->undo_cwnd;
	if (f->ssthresh < f->undo_ssthresh)
		f->ssthresh = f->undo_ssthresh;
	f->recovering = f->timed_out = f->doubtful = false;
	f->rexmit = f->overtaken = false;
	f->high_rxt = f->snd_una;
	f->lost_to = window_sack_highest(f);
	f->backoff = 0;
	if (f->undo_seq && f->snd_una >= f->undo_seq)
		window_measure(window_of(sim), f, sim->now - f->undo_at);
}

/* Takes in an ack during recovery, of @acked bytes; @more: it tells of another loss. */
static void window_sack_recovering(struct sim *sim, struct window_flow *f, u64 acked,
				   bool more)
{
	struct window *w = window_of(sim);

	if (window_was_early(f)) {
		window_undo(sim, f);
		return;
	}
	if (f->snd_una >= f->recover) {
		f->recovering = false;
		f->lost_to = f->snd_una;
		if (w->cubic && !f->timed_out)
			f->cwnd = f->ssthresh;
		return;
	}
	w->counts.partial += acked > 0;
	if (f->timed_out && acked)
		window_grow(sim, f, acked);
	/* What was sent later has come, so what was sent again is lost again. */
	if (window_sack_highest(f) > f->pass_mark) {
		f->overtaken = true;
		f->come = f->come > f->new_after ? f->come : f->new_after;
	}
	if (f->overtaken && f->high_rxt > f->snd_una && sim->now - f->pass_at > f->srtt)
		window_pass(sim, f, w->cubic ? f->come : UINT64_MAX);
	if (w->cubic && !f->timed_out)
		window_cubic_recovering(w, f, acked && !more);
}

static void window_sack_ack(struct sim *sim, struct window_flow *f, u64 ack)
{
	struct window *w = window_of(sim);
	u64 pipe = window_sack_pipe(f), acked = ack - f->snd_una, highest;
	bool limiting = window_was_limiting(w, f, pipe), more;

	if (acked) {
		f->snd_una = ack;
		if (f->snd_nxt < ack)
			f->snd_nxt = ack;
		window_ranges_drop(&f->sacked, ack);
		window_measured(sim, f, ack);
		f->backoff = 0;
		f->probed = false;
	}
	highest = window_sack_highest(f);
	more = highest > f->lost_to;
	if (more)
		f->lost_to = highest;
	if (f->recovering)
		window_sack_recovering(sim, f, acked, more);
	else if (f->lost_to > f->snd_una && f->sacked.num)
		window_recover(sim, f);
	else if (acked && limiting)
		window_grow(sim, f, acked);
	if (f->snd_una == f->snd_max)
		f->deadline = SIM_NEVER;
	else if (acked)
		window_set_deadline(sim, f);
}

void window_ack(struct sim *sim, struct window_flow *f, u64 ack, bool ce)
{
	if (ack < f->snd_una)
		return;
	if (window_of(sim)->sack)
		window_sack_ack(sim, f, ack);
	else if (ack > f->snd_una)
		window_new_ack(sim, f, ack, ce);
	else if (ack == f->snd_una && f->snd_max > f->snd_una)
		window_dup_ack(sim, f);
	else
		return;
	if (f->snd_una == f->written && window_of(sim)->per_message)
		window_flow_done(sim, f);
	else
		window_wake(sim, f);
}
