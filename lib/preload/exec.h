/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* What is done before and after every call that runs another program. Written by: the thread that
 * makes the call. */
#ifndef HOMA_PRELOAD_EXEC_H
#define HOMA_PRELOAD_EXEC_H

#include <stdbool.h>

/** struct homa_pl_exec - what the other program is given
 * @memory: the descriptor of the memfd that says what is known of the sockets, or -1.
 * @pipe: the descriptor of the ticket's pipe, or -1.
 * @left: true if sockets were prepared for a program that does not load this library.
 * @alone: true if other threads that run programs wait for this one. */
struct homa_pl_exec {
	int memory, pipe;
	bool left, alone;
};

/* How a program is run; a set of these. */
enum {
	/* A child runs the program, and this process goes on. */
	HOMA_PL_SPAWNS = 1,
	/* The child changes descriptors before, and this library does not know which. */
	HOMA_PL_ACTIONS = 2,
	/* The program is looked for in PATH. */
	HOMA_PL_SEARCHES = 4,
	/* The call returns as soon as the program runs. */
	HOMA_PL_ALONE = 8,
};

/** homa_pl_exec_begin() - prepare for the program @path to run with @env. @path is NULL if it
 *  is not known. @how: HOMA_PL_SPAWNS and the others. */
void homa_pl_exec_begin(struct homa_pl_exec *exec, const char *path,
			char *const *env, int how);
/** homa_pl_exec_end() - undo that in this process, when the program runs in another or could not
 *  be run; keeps errno. */
void homa_pl_exec_end(struct homa_pl_exec *exec);

/** homa_pl_exec_lock(), homa_pl_exec_unlock() - between the two no other thread runs a program in
 *  a child by a call that returns at once, and none forks. It returns false, and has not taken the
 *  lock, if this thread has it already. */
bool homa_pl_exec_lock(void);
void homa_pl_exec_unlock(void);
/** homa_pl_exec_watch_forks() - have fork() wait for other threads that run programs, before it
 *  takes the locks whose handlers were registered until now. */
void homa_pl_exec_watch_forks(void);

/** homa_pl_exec_refuses() - the reason why the program @path will not load this library if it is
 *  run with @env; NULL if it will, or that is not known. @searches: look for it in PATH. */
const char *homa_pl_exec_refuses(const char *path, char *const *env,
				 bool searches);

#endif
