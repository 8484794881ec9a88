// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Programs that are run in a child get descriptors by which they find the TCP sockets (exec.c). A
 * child of another thread's call at the same time would have these, too, and show the ticket that
 * is not its own. So such calls, and fork(), come one after the other.
 */
#include <pthread.h>
#include "exec.h"

/* Who runs a program in a child has it until that runs, so that the child gets no descriptors that
 * are for another one, and shows no ticket of another one's. */
static pthread_mutex_t alone = PTHREAD_MUTEX_INITIALIZER;
/* This thread has it: a signal handler may fork or run a program in the middle of such a call, as
 * signals are not held, whose mask the child would have. */
static __thread bool has_alone __attribute__((tls_model("initial-exec")));

bool homa_pl_exec_lock(void)
{
	if (has_alone)
		return false;
	pthread_mutex_lock(&alone);
	has_alone = true;
	return true;
}

void homa_pl_exec_unlock(void)
{
	has_alone = false;
	pthread_mutex_unlock(&alone);
}

/* This thread has taken the lock for fork(). */
static __thread bool forks_alone __attribute__((tls_model("initial-exec")));

static void before_fork(void)
{
	forks_alone = homa_pl_exec_lock();
}

static void in_parent(void)
{
	if (forks_alone)
		homa_pl_exec_unlock();
}

static void in_child(void)
{
	has_alone = false;
	pthread_mutex_init(&alone, NULL);
}

void homa_pl_exec_watch_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}
