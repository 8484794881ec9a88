// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Hooks of the calls that set up signal handlers: with TCP these do not run while the
 * thread is in one of our calls (signals.c).
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "real.h"
#include "pl_signals.h"
#include "tcp.h"

/* True for each signal for which siginterrupt() was called. */
static bool interrupts[_NSIG];

/* Are handlers to be wrapped? If they were once, they stay so, whatever the environment says. */
static bool wanted(void)
{
	static bool ever;

	if (!ever && homa_pl_tcp_wanted(AF_INET, SOCK_STREAM, 0))
		ever = true;
	return ever;
}

static int result(int rc)
{
	if (rc >= 0)
		return rc;
	errno = -rc;
	return -1;
}

HOMA_PL_HOOK int sigaction(int number, const struct sigaction *act,
			   struct sigaction *old)
{
	if (!wanted())
		return HOMA_PL_REAL(sigaction)(number, act, old);
	return result(homa_pl_sigaction(number, act, old));
}

static sighandler_t set_handler(int number, sighandler_t handler, int flags)
{
	struct sigaction act = { .sa_handler = handler, .sa_flags = flags }, old;
	int rc;

	sigemptyset(&act.sa_mask);
	if (handler == SIG_ERR || number <= 0 || number >= _NSIG) {
		errno = EINVAL;
		return SIG_ERR;
	}
	rc = wanted() ? homa_pl_sigaction(number, &act, &old) :
	     HOMA_PL_REAL(sigaction)(number, &act, &old) ? -errno :
							   0;
	if (!rc)
		return old.sa_handler;
	errno = -rc;
	return SIG_ERR;
}

/* This is BSD's signal(), as it is in glibc. */
HOMA_PL_HOOK sighandler_t signal(int number, sighandler_t handler)
{
	bool ends = number > 0 && number < _NSIG && interrupts[number];

	return set_handler(number, handler, ends ? 0 : SA_RESTART);
}

/* This is System V's: the handler runs once, and may interrupt itself. */
HOMA_PL_HOOK sighandler_t sysv_signal(int number, sighandler_t handler)
{
	return set_handler(number, handler, (int)(SA_RESETHAND | SA_NODEFER));
}

HOMA_PL_HOOK sighandler_t __sysv_signal(int number, sighandler_t handler)
{
	return sysv_signal(number, handler);
}

HOMA_PL_HOOK int siginterrupt(int number, int ends)
{
	struct sigaction act;

	if (sigaction(number, NULL, &act))
		return -1;
	interrupts[number] = ends;
	if (ends)
		act.sa_flags &= ~SA_RESTART;
	else
		act.sa_flags |= SA_RESTART;
	return sigaction(number, &act, NULL);
}
