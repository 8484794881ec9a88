// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A handler may call read(), write(), close() and many more, and so may one that has
 * interrupted such a call. Ours have locks, which the interrupted thread cannot give back
 * before the handler is through. So handlers do not run then: the kernel knows a handler
 * of ours, which calls the program's, or, if the thread is in one of our calls, sends the
 * signal to this thread once more, with all that was told of it, and blocks all signals.
 * When the call ends or is about to sleep, the mask is set as it was, and the kernel
 * delivers what is pending. This costs a call two additions.
 *
 * The program's masks and flags are as it wants them: ours runs with all signals blocked
 * and sets the handler's mask before it calls that, and sigaction() tells what the program
 * has set. What a fault raises (SIGSEGV and the like) cannot wait and is left alone.
 *
 * A thread is not cancelled in a call of ours either, until it sleeps; what it calls of the C
 * library meanwhile would be a place for that.
 *
 * It also counts which handlers ran, so that a call that sleeps knows whether it ends with
 * EINTR, as Linux does it, see SA_RESTART.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include "preload.h"
#include "real.h"
#include "pl_signals.h"

/* The number of copies of what is known of a signal. There are several because readers may
 * still use an old one. */
#define COPIES 4

__thread struct homa_pl_signals homa_pl_signals;

/* What the program has set up, for each signal. Handlers read it at any time: it is changed
 * in a copy that then becomes the present one. */
static struct {
	/* The present copy, and others for the next change. */
	struct sigaction copy[COPIES];
	/* The index of the present copy. It is atomic. */
	unsigned int present;
} wanted[_NSIG];
static pthread_mutex_t wanted_lock = PTHREAD_MUTEX_INITIALIZER;

static struct sigaction *present(int number)
{
	return &wanted[number].copy[__atomic_load_n(&wanted[number].present,
						    __ATOMIC_ACQUIRE)];
}

static void want(int number, const struct sigaction *act)
{
	unsigned int next = (wanted[number].present + 1) % COPIES;

	wanted[number].copy[next] = *act;
	__atomic_store_n(&wanted[number].present, next, __ATOMIC_RELEASE);
}

/* ---- now or later ---- */

/* Send the signal to this thread again, and block all signals when this handler returns, so that
 * it stays pending. */
static void defer(int number, siginfo_t *info, ucontext_t *context)
{
	struct homa_pl_signals *own = &homa_pl_signals;
	int before = errno;

	if (!own->deferred)
		own->mask = context->uc_sigmask;
	own->deferred = true;
	sigfillset(&context->uc_sigmask);
	/* If the kernel has no memory for @info, the signal is sent without it. */
	if (HOMA_PL_REAL(syscall)(SYS_rt_tgsigqueueinfo, getpid(), gettid(),
				  number, info))
		HOMA_PL_REAL(syscall)(SYS_tgkill, getpid(), gettid(), number);
	errno = before;
}

static void before_handler(int number, const struct sigaction *act,
			   const ucontext_t *context)
{
	struct homa_pl_signals *own = &homa_pl_signals;
	struct sigaction none = { .sa_handler = SIG_DFL };
	sigset_t mask = context->uc_sigmask;
	int before = errno;

	own->ran++;
	own->ran_hard += !(act->sa_flags & SA_RESTART);
	if (own->interrupted)
		own->interrupted();
	if (act->sa_flags & SA_RESETHAND)
		HOMA_PL_REAL(sigaction)(number, &none, NULL);
	sigorset(&mask, &mask, &act->sa_mask);
	if (!(act->sa_flags & SA_NODEFER))
		sigaddset(&mask, number);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	errno = before;
}

static void handle(int number, siginfo_t *info, void *context)
{
	struct sigaction act;

	if (homa_pl_signals.depth) {
		defer(number, info, context);
		return;
	}
	act = *present(number);
	before_handler(number, &act, context);
	if (act.sa_flags & SA_SIGINFO)
		act.sa_sigaction(number, info, context);
	else
		act.sa_handler(number);
}

void homa_pl_signals_again(void)
{
	struct homa_pl_signals *own = &homa_pl_signals;
	int before = errno;
	sigset_t mask = own->mask;

	own->deferred = false;
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	errno = before;
}

unsigned int homa_pl_let_signals(void (*interrupted)(void))
{
	struct homa_pl_signals *own = &homa_pl_signals;
	unsigned int depth = own->depth;

	own->interrupted = interrupted;
	pthread_setcancelstate(own->cancel, NULL);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	own->depth = 0;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (own->deferred)
		homa_pl_signals_again();
	return depth;
}

void homa_pl_hold_again(unsigned int depth)
{
	homa_pl_signals.depth = depth;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &homa_pl_signals.cancel);
	homa_pl_signals.interrupted = NULL;
}

/* ---- sigaction ---- */

/* Is it a signal that faults raise? Then the thread cannot go on before it is handled. */
static bool is_of_fault(int number)
{
	return number == SIGSEGV || number == SIGBUS || number == SIGFPE ||
	       number == SIGILL || number == SIGTRAP || number == SIGSYS ||
	       number == SIGABRT;
}

static bool is_ours(const struct sigaction *act)
{
	return (act->sa_flags & SA_SIGINFO) && act->sa_sigaction == handle;
}

/* Do sigaction() with our handler in place of the program's. The caller has the lock. */
static int set(int number, const struct sigaction *act, struct sigaction *old)
{
	struct sigaction ours = { .sa_sigaction = handle }, before, told;
	bool wraps =
		act && act->sa_handler != SIG_DFL && act->sa_handler != SIG_IGN;

	if (HOMA_PL_REAL(sigaction)(number, NULL, &before))
		return -errno;
	told = is_ours(&before) ? *present(number) : before;
	if (wraps) {
		want(number, act);
		ours.sa_flags = (act->sa_flags & ~SA_RESETHAND) | SA_SIGINFO;
		sigfillset(&ours.sa_mask);
	}
	if (act && HOMA_PL_REAL(sigaction)(number, wraps ? &ours : act, NULL)) {
		int rc = -errno;

		want(number, &told);
		return rc;
	}
	if (old)
		*old = told;
	return 0;
}

void homa_pl_signals_in_child(void)
{
	pthread_mutex_init(&wanted_lock, NULL);
}

int homa_pl_sigaction(int number, const struct sigaction *act,
		      struct sigaction *old)
{
	int rc;

	if (number <= 0 || number >= _NSIG || is_of_fault(number) ||
	    (act && is_ours(act)))
		return HOMA_PL_REAL(sigaction)(number, act, old) ? -errno : 0;
	homa_pl_signals.depth++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	pthread_mutex_lock(&wanted_lock);
	rc = set(number, act, old);
	pthread_mutex_unlock(&wanted_lock);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (!--homa_pl_signals.depth && homa_pl_signals.deferred)
		homa_pl_signals_again();
	return rc;
}
