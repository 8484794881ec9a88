// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The sender's half of a stream that reacts: an ack opens the window, three
 * duplicates mean a loss that is repaired within the round trip, silence for a
 * time-out means that everything is lost and the stream starts over from one
 * segment. See window.h for the RFCs.
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

/* ---- the time-out ---- */

void window_set_deadline(struct sim *sim, struct window_flow *f)
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

u64 window_half_flight(const struct window *w, const struct window_flow *f)
{
	u64 half = (f->snd_max - f->snd_una) / 2;

	return half > 2ull * w->mss ? half : 2ull * w->mss;
}

static void window_timeout(struct sim *sim, struct window_flow *f)
{
	struct window *w = window_of(sim);

	w->counts.timeouts++;
	/* A segment lost twice says no more about the path than lost once. */
	if (!f->backoff)
		f->ssthresh = window_half_flight(w, f);
	else
		f->level_base = f->snd_una;
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

void window_measured(struct sim *sim, struct window_flow *f, u64 ack)
{
	if (!f->timed_seq || ack < f->timed_seq)
		return;
	window_measure(window_of(sim), f, sim->now - f->timed_at);
	f->timed_seq = 0;
}

/* ---- acks ---- */

/* Was it the window that kept the sender from sending more, with @flight bytes under
 * way? */
bool window_was_limiting(const struct window *w, const struct window_flow *f, u64 flight)
{
	if (f->cwnd < f->ssthresh)
		return 2 * flight >= f->cwnd;
	return flight + w->mss > f->cwnd;
}

void window_grow(const struct window *w, struct window_flow *f, u64 acked)
{
	if (f->cwnd < f->ssthresh) {
		f->cwnd += acked < 2ull * w->mss ? acked : 2ull * w->mss;
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
			window_grow(w, f, acked);
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
	f->ssthresh = window_half_flight(w, f);
	f->cwnd = f->ssthresh + (u64)w->dup_limit * w->mss;
	f->ca_bytes = 0;
	f->recover = f->snd_max;
	f->recovering = true;
	f->partial_seen = false;
	f->rexmit = true;
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
