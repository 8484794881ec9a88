// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Hooks of the calls that run other programs: these get the TCP sockets (exec.c). */
#include <alloca.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
#include "exec.h"
#include "hook.h"

HOMA_PL_HOOK int execve(const char *path, char *const argv[], char *const env[])
{
	struct homa_pl_exec exec;
	int rc;

	homa_pl_exec_begin(&exec, path, env, 0);
	rc = HOMA_PL_REAL(execve)(path, argv, env);
	homa_pl_exec_end(&exec);
	return rc;
}

HOMA_PL_HOOK int execvpe(const char *file, char *const argv[], char *const env[])
{
	struct homa_pl_exec exec;
	int rc;

	homa_pl_exec_begin(&exec, file, env, HOMA_PL_SEARCHES);
	rc = HOMA_PL_REAL(execvpe)(file, argv, env);
	homa_pl_exec_end(&exec);
	return rc;
}

HOMA_PL_HOOK int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

HOMA_PL_HOOK int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

HOMA_PL_HOOK int fexecve(int fd, char *const argv[], char *const env[])
{
	struct homa_pl_exec exec;
	int rc;

	homa_pl_exec_begin(&exec, NULL, env, 0);
	rc = HOMA_PL_REAL(fexecve)(fd, argv, env);
	homa_pl_exec_end(&exec);
	return rc;
}

HOMA_PL_HOOK int execveat(int folder, const char *path, char *const argv[],
			  char *const env[], int flags)
{
	struct homa_pl_exec exec;
	int rc;

	if (!HOMA_PL_REAL(execveat)) {
		errno = ENOSYS;
		return -1;
	}
	homa_pl_exec_begin(&exec, NULL, env, 0);
	rc = HOMA_PL_REAL(execveat)(folder, path, argv, env, flags);
	homa_pl_exec_end(&exec);
	return rc;
}

/* ---- with the words as arguments ---- */

/* The number of pointers that the array of words needs, with the first one and the last NULL. */
static size_t count(va_list from)
{
	size_t n = 2;
	va_list args;

	va_copy(args, from);
	while (va_arg(args, char *))
		n++;
	va_end(args);
	return n;
}

/* Write the words to an array. This is a macro, as the array has to live on the caller's stack:
 * these functions may be called in a child that shares memory, and in signal handlers. */
#define GATHER_WORDS(argv, first, args)                        \
	do {                                                   \
		size_t i_ = 0;                                 \
                                                               \
		(argv) = alloca(count(args) * sizeof(char *)); \
		(argv)[i_] = (char *)(first);                  \
		while ((argv)[i_])                             \
			(argv)[++i_] = va_arg(args, char *);   \
	} while (0)

HOMA_PL_HOOK int execl(const char *path, const char *word, ...)
{
	char **argv;
	va_list args;

	va_start(args, word);
	GATHER_WORDS(argv, word, args);
	va_end(args);
	return execve(path, argv, environ);
}

HOMA_PL_HOOK int execlp(const char *file, const char *word, ...)
{
	char **argv;
	va_list args;

	va_start(args, word);
	GATHER_WORDS(argv, word, args);
	va_end(args);
	return execvpe(file, argv, environ);
}

HOMA_PL_HOOK int execle(const char *path, const char *word, ...)
{
	char **argv, **env;
	va_list args;

	va_start(args, word);
	GATHER_WORDS(argv, word, args);
	env = va_arg(args, char **);
	va_end(args);
	return execve(path, argv, env);
}

/* ---- calls that run the program in a child ---- */

HOMA_PL_HOOK int posix_spawn(pid_t *pid, const char *path,
			     const posix_spawn_file_actions_t *actions,
			     const posix_spawnattr_t *attributes,
			     char *const argv[], char *const env[])
{
	struct homa_pl_exec exec;
	int rc;

	homa_pl_exec_begin(&exec, path, env,
			   HOMA_PL_SPAWNS | HOMA_PL_ALONE |
				   (actions ? HOMA_PL_ACTIONS : 0));
	rc = HOMA_PL_REAL(posix_spawn)(pid, path, actions, attributes, argv, env);
	homa_pl_exec_end(&exec);
	return rc;
}

HOMA_PL_HOOK int posix_spawnp(pid_t *pid, const char *file,
			      const posix_spawn_file_actions_t *actions,
			      const posix_spawnattr_t *attributes,
			      char *const argv[], char *const env[])
{
	struct homa_pl_exec exec;
	int rc;

	homa_pl_exec_begin(&exec, file, env,
			   HOMA_PL_SPAWNS | HOMA_PL_ALONE | HOMA_PL_SEARCHES |
				   (actions ? HOMA_PL_ACTIONS : 0));
	rc = HOMA_PL_REAL(posix_spawnp)(pid, file, actions, attributes, argv,
					env);
	homa_pl_exec_end(&exec);
	return rc;
}

static void end(void *exec)
{
	homa_pl_exec_end(exec);
}

HOMA_PL_HOOK int system(const char *command)
{
	struct homa_pl_exec exec;
	int rc;

	if (!command)
		return HOMA_PL_REAL(system)(command);
	homa_pl_exec_begin(&exec, "/bin/sh", environ, HOMA_PL_SPAWNS);
	/* The thread may be cancelled meanwhile. */
	pthread_cleanup_push(end, &exec);
	rc = HOMA_PL_REAL(system)(command);
	pthread_cleanup_pop(1);
	return rc;
}

HOMA_PL_HOOK FILE *popen(const char *command, const char *mode)
{
	struct homa_pl_exec exec;
	FILE *stream;

	homa_pl_exec_begin(&exec, "/bin/sh", environ,
			   HOMA_PL_SPAWNS | HOMA_PL_ALONE);
	stream = HOMA_PL_REAL(popen)(command, mode);
	homa_pl_exec_end(&exec);
	return stream;
}
