/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Work that takes long and touches nothing but memory of its own: a thread does it,
 * one piece after the other in the order in which they were given.
 *
 * Written by: control, and the memory thread while it has the piece of work.
 */
#ifndef HOMAD_WORKER_H
#define HOMAD_WORKER_H

#include "slowpath.h"

/**
 * struct homad_work - a piece of work; embedded in what it is about
 * @next: the piece of work after this one in a queue.
 * @run: called on the worker's thread.
 * @done: called on the main thread afterwards; may free the object in which the work is
 *	embedded.
 */
struct homad_work {
	struct homad_work *next;
	void (*run)(struct homad_work *work);
	void (*done)(struct homad *d, struct homad_work *work);
};

/** homad_populate() - have shared memory behind @bytes at @base; bytes that are there stay.
 *  On the worker's thread. 0 or -errno. */
int homad_populate(void *base, u64 bytes);
/** homad_work() - have @work done; without a worker at once, before this returns. */
void homad_work(struct homad *d, struct homad_work *work);
/** homad_worker_start() - begin the thread, with the privileges that homad has now. */
int homad_worker_start(struct homad *d, char *err, size_t errlen);
/** homad_worker_stop() - end the thread; all work that was given is done when this
 * returns. */
void homad_worker_stop(struct homad *d);

#endif
