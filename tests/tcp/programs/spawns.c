// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Programs that are run with a connection as their standard input and output, by a process that has
 * many descriptors, and by several threads at once.
 */
#include <spawn.h>
#include <sys/resource.h>
#include "tcp_calls.h"

#define MANY 1200
#define THREADS 16

extern char **environ;

static void spawn_cat(int fd)
{
	char *words[] = { "cat", NULL };
	posix_spawn_file_actions_t actions;
	pid_t child;

	SAME(posix_spawn_file_actions_init(&actions), 0);
	SAME(posix_spawn_file_actions_adddup2(&actions, fd, 0), 0);
	SAME(posix_spawn_file_actions_adddup2(&actions, fd, 1), 0);
	SAME(posix_spawnp(&child, "cat", &actions, NULL, words, environ), 0);
	SAME(posix_spawn_file_actions_destroy(&actions), 0);
	tcp_close(fd);
	tcp_child_ended(child);
}

static void exec_cat(int fd)
{
	pid_t child = (pid_t)MUST(fork());

	if (!child) {
		MUST(dup2(fd, 0));
		MUST(dup2(fd, 1));
		execlp("cat", "cat", NULL);
		_exit(1);
	}
	tcp_close(fd);
	tcp_child_ended(child);
}

/* The process has more than a thousand descriptors, of which the program gets none. */
static void spawn_of_many__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4);
	struct rlimit limit;

	MUST(getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max;
	MUST(setrlimit(RLIMIT_NOFILE, &limit));
	EXPECT(limit.rlim_cur > 2 * MANY);
	for (int i = 0; i < MANY; i++)
		MUST(open("/dev/null", O_RDONLY | O_CLOEXEC));
	tcp_ready();
	exec_cat(tcp_accept(listener));
	spawn_cat(tcp_accept(listener));
	tcp_close(listener);
}

static void spawn_of_many__client(struct tcp_end *end)
{
	tcp_talk(tcp_connect(end));
	tcp_talk(tcp_connect(end));
}

static void *spawn_one(void *argument)
{
	spawn_cat((int)(intptr_t)argument);
	return NULL;
}

/* Each program gets its connection, though all are run at the same time. */
static void spawn_at_once__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, THREADS), fds[THREADS];
	pthread_t threads[THREADS];

	tcp_ready();
	for (int i = 0; i < THREADS; i++)
		fds[i] = (int)MUST(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
	for (int i = 0; i < THREADS; i++)
		SAME(pthread_create(&threads[i], NULL, spawn_one,
				    (void *)(intptr_t)fds[i]),
		     0);
	for (int i = 0; i < THREADS; i++)
		SAME(pthread_join(threads[i], NULL), 0);
	tcp_close(listener);
}

static void spawn_at_once__client(struct tcp_end *end)
{
	int fds[THREADS];

	for (int i = 0; i < THREADS; i++)
		fds[i] = tcp_connect(end);
	for (int i = 0; i < THREADS; i++)
		tcp_talk(fds[i]);
}

const struct tcp_case tcp_spawn_cases[] = {
	TCP_CASE(spawn_of_many),
	TCP_CASE(spawn_at_once),
	{ 0 },
};
