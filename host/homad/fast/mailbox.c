// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * How the slow path reaches the engine: it hangs a job on a fast-path thread's
 * stack and sleeps until the thread has run it between two rounds. The fast
 * path thereby needs no lock for its own data, and whoever asks sees it at rest.
 * The thread for routes posts its answers the same way, and does not wait.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "fast.h"

static long futex(u32 *word, int op, u32 value)
{
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL,
		       NULL, 0);
}

static void wake_thread(struct homad_thread *t)
{
	u64 one = 1;

	/* The counter cannot overflow: the thread reads it when it wakes. */
	if (write(t->mail_fd, &one, sizeof(one)) < 0)
		return;
}

void homad_ask(struct homad_thread *t, struct homad_job *job)
{
	job->next = __atomic_load_n(&t->mail, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&t->mail, &job->next, job, false,
					    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		;
	wake_thread(t);
}

void homad_post(struct homad_thread *t, struct homad_job *job)
{
	job->posted = true;
	homad_ask(t, job);
}

int homad_await(struct homad_job *job)
{
	while (!__atomic_load_n(&job->done, __ATOMIC_ACQUIRE))
		futex(&job->done, FUTEX_WAIT, 0);
	return job->result;
}

int homad_call(struct homad_thread *t, int (*fn)(struct homad_thread *, void *),
	       void *arg)
{
	struct homad_job job = { .run = fn, .arg = arg };

	if (!__atomic_load_n(&t->running, __ATOMIC_ACQUIRE))
		/* the thread has not started yet, or has ended */
		return fn(t, arg);
	homad_ask(t, &job);
	return homad_await(&job);
}

int homad_mail(struct homad_thread *t)
{
	struct homad_job *job;
	int n = 0;

	if (likely(!__atomic_load_n(&t->mail, __ATOMIC_RELAXED)))
		return 0;
	/* The newest job is first; jobs are waited for, so there is rarely more than
	 * one. */
	job = __atomic_exchange_n(&t->mail, NULL, __ATOMIC_ACQUIRE);
	while (job) {
		struct homad_job *next = job->next;

		if (job->posted) {
			job->run(t, job->arg);
		} else {
			job->result = job->run(t, job->arg);
			__atomic_store_n(&job->done, 1, __ATOMIC_RELEASE);
			futex(&job->done, FUTEX_WAKE, 1);
		}
		job = next;
		n++;
	}
	t->counters.jobs += (u64)n;
	return n;
}
