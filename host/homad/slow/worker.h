/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Work that takes long and touches nothing but memory of its own: a thread does it. Users take
 * turns, and a user's pieces of work are done one after the other in the order in which they were
 * given. One that is large does a part of itself in a turn.
 *
 * Written by: control, and the memory thread while it has the piece of work.
 */
#ifndef HOMAD_WORKER_H
#define HOMAD_WORKER_H

#include "slowpath.h"

/* The most bytes of memory that a piece of work makes in a turn: some milliseconds. */
#define HOMAD_SLICE ((u64)8 << 20)

/**
 * struct homad_line - the pieces of work of one user
 * @turn: links it into homad_worker.todo while the thread has work of its.
 * @first, @last: the pieces of work that are not done; NULL: there is none.
 * @num: the number of pieces of work for which @done is to be called yet. Control's alone.
 */
struct homad_line {
	struct homa_list turn;
	struct homad_work *first, *last;
	u32 num;
};

/**
 * struct homad_work - a piece of work; embedded in what it is about
 * @next: the piece of work after this one in a queue.
 * @line: the user's whose it is.
 * @run: called on the worker's thread. Returns true to be called again, after others had their
 *	turns.
 * @done: called on the main thread afterwards; may free the object in which the work is
 *	embedded.
 */
struct homad_work {
	struct homad_work *next;
	struct homad_line *line;
	bool (*run)(struct homad_work *work);
	void (*done)(struct homad *d, struct homad_work *work);
};

/** homad_populate() - have shared memory behind @bytes at @base; bytes that are there stay.
 *  On the worker's thread. 0 or -errno. */
int homad_populate(void *base, u64 bytes);
/** homad_work() - have @work done; without a worker at once, before this returns. @line: whose it
 *  is, zeroed at first; it must stay while @num is not 0. NULL: homad's own. */
void homad_work(struct homad *d, struct homad_line *line,
		struct homad_work *work);
/** homad_worker_start() - begin the thread, with the privileges that homad has now. */
int homad_worker_start(struct homad *d, char *err, size_t errlen);
/** homad_worker_stop() - end the thread; all work that was given is done when this
 * returns. */
void homad_worker_stop(struct homad *d);

#endif
