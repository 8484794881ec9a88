/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Signals that come while a thread is in one of our calls, and its cancellation: see signals.c.
 */
#ifndef HOMA_PRELOAD_SIGNALS_H
#define HOMA_PRELOAD_SIGNALS_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

/* A blocking call returns the negative of this if handlers ran meanwhile that all were set up with
 * SA_RESTART. Its caller goes on, unless calls of its kind never do (signal(7)). Linux has the
 * same number. */
#define HOMA_PL_RESTART 512

/**
 * struct homa_pl_signals - what a thread knows of its signals; each thread has its own. Written by:
 *	that thread and the handlers that run on it.
 * @depth: the number of calls inside each other in which no handler may run.
 * @deferred: true if a signal has come in such a call. It is pending in the kernel, and all
 *	signals are blocked until homa_pl_signals_again().
 * @interrupted: what is called before a handler runs, because the thread sleeps or is about to;
 *	NULL if it does not.
 * @ran: the number of handlers that have run.
 * @ran_hard: the number of those that were set up without SA_RESTART.
 * @cancel: if @depth is not 0, the thread's cancel state from before, which holds while it sleeps.
 * @mask: if @deferred, the thread's signal mask from before.
 */
struct homa_pl_signals {
	unsigned int depth;
	bool deferred;
	void (*interrupted)(void);
	unsigned int ran, ran_hard;
	int cancel;
	sigset_t mask;
};

extern __thread struct homa_pl_signals homa_pl_signals
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/** homa_pl_signals_again() - let the kernel deliver the signals that were deferred. */
void homa_pl_signals_again(void);

/** homa_pl_hold(), homa_pl_unhold() - between the two no handler runs and the thread is not
 *  cancelled, as it has locks. */
static inline void homa_pl_hold(void)
{
	homa_pl_signals.depth++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (homa_pl_signals.depth == 1)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE,
				       &homa_pl_signals.cancel);
}

static inline void homa_pl_unhold(void)
{
	/* A handler that runs once @depth is 0 may hold anew and use @cancel. */
	if (homa_pl_signals.depth == 1)
		pthread_setcancelstate(homa_pl_signals.cancel, NULL);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	homa_pl_signals.depth--;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(homa_pl_signals.deferred, 0) &&
	    !homa_pl_signals.depth)
		homa_pl_signals_again();
}

/** homa_pl_let_signals() - let handlers run and the thread be cancelled, as it is about to sleep in
 *  the kernel. It holds; if it is cancelled, the caller's cleanup handler holds again.
 *  @interrupted: see struct homa_pl_signals. Returns what homa_pl_hold_again() takes. */
unsigned int homa_pl_let_signals(void (*interrupted)(void));
/** homa_pl_hold_again() - from now on no handler runs again, and the thread is not cancelled. */
void homa_pl_hold_again(unsigned int depth);

/** homa_pl_signals_in_child() - make the lock of another thread's sigaction() free after fork(). */
void homa_pl_signals_in_child(void);

/** homa_pl_sigaction() - do what sigaction() does; 0 or a negative errno. */
int homa_pl_sigaction(int number, const struct sigaction *act,
		      struct sigaction *old);

#endif
