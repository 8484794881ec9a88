// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * How a thread of the application enters the host and leaves it, and the two
 * ways to wake a thread that sleeps here: the poller by a kick, the progress
 * thread by its alarm. Nothing in this file calls the rest of the host.
 */
#include <sys/timerfd.h>
#include <unistd.h>
#include "embedded.h"

/* No RPC needs its first timer much earlier than this after it was sent, ns. */
#define FIRST_TIMER 6000000u

/* Reads the clock into the context. */
void homa_emb_now(struct homa_emb *e)
{
	u64 now = homa_clock_ns();

	/* Another thread's reading may be later than ours. */
	if (now > e->ctx.now)
		e->ctx.now = now;
}

/* Begins a call of the application. It does not read the clock, because many calls can do with
 * the time that was read last. */
void homa_emb_lock(struct homa_emb *e)
{
	homa_gate_lock(&e->lock);
	__atomic_store_n(&e->entries, e->entries + 1, __ATOMIC_RELAXED);
}

/* Wakes the poller if it sleeps in ppoll(). */
void homa_emb_kick(struct homa_emb *e)
{
	u64 value = 1;

	/* This fails only if the counter is full, and then the eventfd can be read as well. */
	if (write(e->kick_fd, &value, sizeof(value)) < 0)
		return;
}

/* Has the progress thread wake up in @delay_ns; HOMA_NEVER: not by time. The lock is held. */
void homa_emb_alarm(struct homa_emb *e, u64 delay_ns)
{
	struct itimerspec when = { 0 };

	e->progress.wake_at = HOMA_NEVER;
	if (delay_ns != HOMA_NEVER) {
		e->progress.wake_at = e->ctx.now + delay_ns;
		delay_ns = delay_ns ? delay_ns : 1;
		when.it_value.tv_sec = (time_t)(delay_ns / 1000000000u);
		when.it_value.tv_nsec = (long)(delay_ns % 1000000000u);
	}
	timerfd_settime(e->progress.timer_fd, 0, &when, NULL);
}

/*
 * Ends a call of the application. If the progress thread has stopped watching, or does not know
 * that there is something to wait for now (@submitted), it gets an alarm.
 */
void homa_emb_unlock(struct homa_emb *e, bool submitted)
{
	struct homa_emb_progress *p = &e->progress;

	if (submitted && e->blocked && e->blocked_until > e->ctx.now + FIRST_TIMER)
		homa_emb_kick(e);
	if (p->on && !e->poller && (p->parked || submitted) &&
	    p->wake_at > e->ctx.now + 2 * p->tick_ns)
		homa_emb_alarm(e, p->tick_ns);
	homa_gate_unlock(&e->lock);
}
