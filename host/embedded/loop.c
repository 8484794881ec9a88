// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * One round of the run-to-completion loop: packets in, events to whoever
 * waits for them, packets out, timers when they are due. Every thread that
 * runs the protocol does so by this function and under the lock.
 */
#include "embedded.h"

/* The time after which the engine is asked again for its next timer, in ns, because it does
 * not say that a send or a packet has set an earlier one. */
#define TIMER_LAG 500000u
#define TIMER_BUDGET 64u

static void run_timer(struct homa_emb *e)
{
	homa_emb_refill(e);
	e->deadline = homa_timer(&e->ctx, 0, TIMER_BUDGET);
	homa_rx_flush(&e->ctx);
}

/* Runs timers that are due, after a round that has taken @received packets. */
static void overdue(struct homa_emb *e, u32 received)
{
	if (homa_overdue_wait(&e->overdue, received, received == HOMA_EMB_BATCH)) {
		e->counters.timers_waited++;
		return;
	}
	homa_emb_icmp(e);
	run_timer(e);
}

/* Runs the protocol once. Returns how much was done; 0: there is nothing to do now. */
int homa_emb_round(struct homa_emb *e)
{
	int done;

	homa_emb_now(e);
	e->counters.rounds++;
	done = homa_emb_rx(e);
	if (unlikely(e->ctx.now >= e->deadline))
		overdue(e, (u32)done);
	if (done) {
		e->deadline = homa_min_u64(e->deadline, e->ctx.now + TIMER_LAG);
		homa_emb_events(e);
	} else if (unlikely(e->ctx.event_head)) {
		homa_emb_events(e);
		done = 1;
	}
	/* There is nothing new to send. While polling this is the usual case. */
	if (done || e->ctx.tx_link || e->ctx.retired_rpc || e->deferred ||
	    e->tx_blocked || e->ctx.now >= e->tx_at) {
		done += homa_emb_tx(e);
		homa_emb_reap(e);
	}
	return done;
}

/* Computes when the loop must run again if no packet arrives, ns, or HOMA_NEVER. */
u64 homa_emb_next_deadline(struct homa_emb *e)
{
	u64 next;

	homa_emb_icmp(e);
	run_timer(e);
	homa_emb_events(e);
	if (homa_emb_tx(e))
		e->deadline = e->ctx.now;
	homa_emb_reap(e);
	next = homa_min_u64(e->deadline, e->tx_at);
	/* No interface tells when a full nic has room again. */
	if (e->tx_blocked)
		next = homa_min_u64(next, e->ctx.now + TIMER_LAG);
	return next;
}
