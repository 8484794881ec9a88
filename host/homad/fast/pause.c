// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * How the slow path has something done while no fast-path thread is in the engine: each
 * thread gets a job and waits in it, whoever comes last runs the function, and all go on.
 * With one thread this is an ordinary job.
 *
 * A thread may come late because its core has something else to do, and the others do not
 * wait for it as long as it likes: after some patience they go on with their rounds, and
 * the slow path asks again with more patience. Only the slow path starts, ends, scales and
 * pauses threads, one after the other, so a pause never meets another one, or a thread
 * that ends; one that sleeps is woken by its job.
 */
#include <errno.h>
#include "fast.h"
#include "homa_gate.h"

/* The time that a thread waits for the others at first, ns, which is many rounds. */
#define FIRST_PATIENCE_NS 5000000ull
/* The longest time that a thread waits for the others, ns. Peers do not count a host as
 * dead so soon. */
#define MOST_PATIENCE_NS 1000000000ull
/* The time that a waiting thread looks before it sleeps, ns. */
#define LOOK_NS 50000u

enum { GATHERING, ALONE, OVER, BROKEN_OFF };

struct pause;

/* struct seat - the place at which one thread waits */
struct seat {
	/* The job that brings the thread here. */
	struct homad_job job;
	/* Wakes the thread when all go on. */
	struct homa_wake wake;
	/* The pause that the seat belongs to. */
	struct pause *pause;
};

/* struct pause - what the threads wait for; it is on the slow path's stack until all jobs
 * have run */
struct pause {
	/* The last thread that comes runs it with @arg. */
	int (*fn)(struct homad_thread *t, void *arg);
	/* What @fn is called with. */
	void *arg;
	/* The value that @fn returned, valid when @state is OVER. */
	int result;
	/* The time that a thread waits for the others, ns. */
	u64 patience;
	/* GATHERING, ALONE, OVER or BROKEN_OFF; atomic. */
	u32 state;
	/* The number of threads that have not come yet; atomic. */
	u32 missing;
	/* The number of threads that are asked to come. */
	u32 num_seats;
	/* A place for each of them. */
	struct seat seats[HOMAD_MAX_THREADS];
};

static bool turn_to(struct pause *p, u32 state)
{
	u32 expected = GATHERING;

	return __atomic_compare_exchange_n(&p->state, &expected, state, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static void let_all_go(struct pause *p)
{
	u32 i;

	for (i = 0; i < p->num_seats; i++)
		homa_wake_signal(&p->seats[i].wake);
}

static void wait_for_the_others(struct homad_thread *t, struct seat *seat)
{
	struct pause *p = seat->pause;
	u64 until = homa_clock_ns() + p->patience;

	while (homa_wake_wait(&seat->wake, LOOK_NS, until)) {
		if (homa_clock_ns() < until)
			continue; /* a signal */
		if (turn_to(p, BROKEN_OFF)) {
			let_all_go(p);
			break;
		}
		/* The last thread is running @fn, which does not take long. */
		until = HOMA_NEVER;
	}
	homad_now(t);
}

static int sit_down(struct homad_thread *t, void *arg)
{
	struct seat *seat = arg;
	struct pause *p = seat->pause;

	if (__atomic_sub_fetch(&p->missing, 1, __ATOMIC_ACQ_REL)) {
		wait_for_the_others(t, seat);
		return 0;
	}
	if (!turn_to(p, ALONE))
		return 0;
	p->result = p->fn(t, p->arg);
	__atomic_store_n(&p->state, OVER, __ATOMIC_RELEASE);
	let_all_go(p);
	return 0;
}

/* Returns false if a thread did not come in time. */
static bool pause_once(struct homad *d, struct pause *p)
{
	u32 i;

	p->num_seats = p->missing = d->num_threads;
	for (i = 0; i < p->num_seats; i++) {
		p->seats[i].job.run = sit_down;
		p->seats[i].job.arg = &p->seats[i];
		p->seats[i].pause = p;
	}
	for (i = 0; i < p->num_seats; i++)
		homad_ask(d->threads[i], &p->seats[i].job);
	/* No thread needs @p any more when all jobs have run. */
	for (i = 0; i < p->num_seats; i++)
		homad_await(&p->seats[i].job);
	return p->state == OVER;
}

int homad_call_alone(struct homad *d,
		     int (*fn)(struct homad_thread *t, void *arg), void *arg)
{
	u64 patience = FIRST_PATIENCE_NS;
	struct pause p;

	/* The threads start and end together, so one tells for all. */
	if (!__atomic_load_n(&d->threads[0]->running, __ATOMIC_ACQUIRE))
		return fn(d->threads[0], arg);
	do {
		p = (struct pause){ .fn = fn, .arg = arg, .patience = patience };
		patience = homa_min_u64(2 * patience, MOST_PATIENCE_NS);
	} while (!pause_once(d, &p));
	return p.result;
}
