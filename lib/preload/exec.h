/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Around every call that runs another program. */
#ifndef HOMA_PRELOAD_EXEC_H
#define HOMA_PRELOAD_EXEC_H

#include <stdbool.h>

/** struct homa_pl_exec - what the other program is given: descriptors, -1: none
 * @memory: what is known of the sockets. @pipe: the ticket's. @resets: connections will be
 *	reset, as it does not know of us. */
struct homa_pl_exec {
	int memory, pipe;
	bool resets;
};

/* How a program is run. */
enum {
	HOMA_PL_SPAWNS = 1, /* by a child, and this one goes on */
	HOMA_PL_ACTIONS = 2, /* descriptors are changed before, nobody knows how */
	HOMA_PL_SEARCHES = 4, /* its name is looked for in PATH */
};

/** homa_pl_exec_begin() - before @path runs with @env; NULL: whatever it is. */
void homa_pl_exec_begin(struct homa_pl_exec *exec, const char *path,
			char *const *env, int how);
/** homa_pl_exec_end() - it runs elsewhere, or could not be run; keeps errno. */
void homa_pl_exec_end(struct homa_pl_exec *exec);

/** homa_pl_exec_refuses() - why the program at @path does not load this library, given @env;
 *  NULL: it does, or nobody knows. @searches: look for it in PATH. */
const char *homa_pl_exec_refuses(const char *path, char *const *env,
				 bool searches);

#endif
