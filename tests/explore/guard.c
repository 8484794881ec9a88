/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Steps of code that may be wrong: one that crashes, or does not come back for some
 * seconds, is a property that does not hold like any other.
 */
#include "explore.h"

#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>

/* looks of the clock, 2.5 s apart, that find the same step */
#define PATIENCE 4

static sigjmp_buf way_out;
static volatile sig_atomic_t inside, looks;

static void leave(int sig)
{
	if (!inside) {
		signal(sig, SIG_DFL);
		raise(sig);
		return;
	}
	inside = 0;
	siglongjmp(way_out, sig);
}

static void look(int sig)
{
	if (inside && ++looks > PATIENCE)
		leave(sig);
}

void xp_guard_init(void)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL };
	struct itimerval every = { { 2, 500000 }, { 2, 500000 } };
	struct sigaction act;
	u32 i;

	memset(&act, 0, sizeof(act));
	act.sa_flags = SA_NODEFER | SA_RESTART;
	act.sa_handler = leave;
	for (i = 0; i < HOMA_ARRAY_SIZE(signals); i++)
		sigaction(signals[i], &act, NULL);
	act.sa_handler = look;
	sigaction(SIGVTALRM, &act, NULL);
	/* Of the time that this process runs: a busy machine is not its fault. */
	setitimer(ITIMER_VIRTUAL, &every, NULL);
}

void xp_apply_guarded(struct xp_world *w, struct xp_choice c)
{
	int sig = sigsetjmp(way_out, 0);

	if (sig) {
		xp_fail(sig == SIGVTALRM ? "the code does not come back" :
					   "the code crashes (signal %d)",
			sig);
		return;
	}
	looks = 0;
	inside = 1;
	xp_apply(w, c);
	inside = 0;
}
