/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Signals that come while a thread is in one of our calls: see signals.c.
 */
#ifndef HOMA_PRELOAD_SIGNALS_H
#define HOMA_PRELOAD_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* What a blocking call says if handlers ran meanwhile that all were set up with SA_RESTART: go
 * on, unless that kind of call never does (signal(7)). Linux's number. */
#define HOMA_PL_RESTART 512

/**
 * struct homa_pl_signals - a thread's signals; its own
 * @depth: calls inside each other in which no handler runs. @deferred: a signal has come
 *	meanwhile, and is pending in the kernel; all are blocked until homa_pl_signals_again()
 *	sets @mask, which was the mask before.
 * @ran, @ran_hard: handlers that have run; those without SA_RESTART.
 * @wake_fd: written to by a handler that runs, for a thread that is about to sleep; -1: not.
 */
struct homa_pl_signals {
	unsigned int depth;
	bool deferred;
	int wake_fd;
	unsigned int ran, ran_hard;
	sigset_t mask;
};

extern __thread struct homa_pl_signals homa_pl_signals
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/** homa_pl_signals_again() - those that were deferred are handled now. */
void homa_pl_signals_again(void);

/** homa_pl_hold(), homa_pl_unhold() - no handler runs in between, as this thread has locks. */
static inline void homa_pl_hold(void)
{
	homa_pl_signals.depth++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void homa_pl_unhold(void)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	homa_pl_signals.depth--;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (__builtin_expect(homa_pl_signals.deferred, 0) &&
	    !homa_pl_signals.depth)
		homa_pl_signals_again();
}

/** homa_pl_let_signals() - they are handled from now on, as this thread may sleep in the
 *  kernel; returns what homa_pl_hold_again() takes. @wake_fd: -1, or see above. */
unsigned int homa_pl_let_signals(int wake_fd);
void homa_pl_hold_again(unsigned int depth);

/** homa_pl_signals_in_child() - after fork(): who changed something is not here. */
void homa_pl_signals_in_child(void);

/** homa_pl_sigaction() - as sigaction(); 0 or a negative errno. */
int homa_pl_sigaction(int number, const struct sigaction *act,
		      struct sigaction *old);

#endif
