/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What other threads want of a fast-path thread, and what it asks of them: a job runs
 * between two rounds (mailbox.c), a question for a route is answered by the thread for
 * routes (slow/routes.c) and comes back as a job.
 */
#ifndef HOMAD_JOB_H
#define HOMAD_JOB_H

#include <sys/types.h>
#include "way.h"

struct homad;
struct homad_thread;

/* Put @item, linked by its member @next, into an atomic stack. Whoever takes from the stack takes
 * all items. */
#define HOMAD_PUSH(stack, item, next)                                           \
	do {                                                                    \
		(item)->next = __atomic_load_n(stack, __ATOMIC_RELAXED);        \
		while (!__atomic_compare_exchange_n(stack, &(item)->next, item, \
						    false, __ATOMIC_RELEASE,    \
						    __ATOMIC_RELAXED))          \
			;                                                       \
	} while (0)

/* struct homad_job - something for a fast-path thread to do; see mailbox.c. Written by: who asks,
 * before it is pushed, and the thread (@result, @done), after that. */
struct homad_job {
	/* The next job in homad_thread.mail. */
	struct homad_job *next;
	/* The thread calls this with @arg between two rounds, and keeps what it returns in
	 * @result. */
	int (*run)(struct homad_thread *t, void *arg);
	/* What @run is called with. */
	void *arg;
	/* What @run returned; valid when @done is 1. */
	int result;
	/* True if no thread waits for it, and @run may free it. */
	bool posted;
	/* A futex: the thread sets it to 1 when @result is there. */
	u32 done;
};

/*
 * struct homad_question - which way does the kernel send to an address? It belongs to the
 * thread that made it, except from homad_ask_route() until its job runs.
 * Written by: the thread that it belongs to at the time.
 */
struct homad_question {
	/* The next question in homad.questions, an atomic stack. */
	struct homad_question *next;
	/* Runs on @thread when the answer is there; the maker sets @job.run. */
	struct homad_job job;
	/* The thread that is to learn the answer. */
	struct homad_thread *thread;
	/* The destination. */
	struct homa_addr addr;
	/* The user for whom the kernel is asked. */
	uid_t user;
	/* True if nobody has sent there of late, so that the device will want to know the
	 * next hop, too. */
	bool is_new;
	/* True while this question, if it is one of homad_dests.questions, waits for its
	 * answer; the thread writes it. */
	bool open;
	/* The answer: a negative errno, or 0 and @route. */
	int error;
	/* The kernel's route; valid if @error is 0. */
	struct nic_route_result route;
	/* The question and answer for the device; its @ifindex is 0 if the device's way was
	 * not asked. */
	struct nic_way way;
};

/* The most questions that a device queue has under way. */
#define HOMAD_WAYS_ASKED 16u

/*
 * struct homad_way_question - a device queue's own question to the kernel (ways.c). It
 * belongs to the thread that made it, except from homad_ask_way() until its job runs.
 * Written by: the thread that it belongs to at the time.
 */
struct homad_way_question {
	/* The next question in homad.way_questions, an atomic stack. */
	struct homad_way_question *next;
	/* Runs on the thread that serves @port when the answer is there. */
	struct homad_job job;
	/* The daemon. */
	struct homad *d;
	/* The port whose device asks. */
	struct homad_port *port;
	/* In: the next hop that the queue asks about. Out: the kernel's answer. */
	struct nic_way way;
	/* True while the question waits for its answer; the thread that serves @port writes it. */
	bool open;
};

#endif
