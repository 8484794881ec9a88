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

/* A listener at a port that others may have, too. */
static int listening_together(const struct tcp_end *end)
{
	int fd = tcp_socket(end);

	tcp_set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	tcp_set(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	MUST(bind(fd, &end->address.any, end->length));
	MUST(listen(fd, 4));
	return fd;
}

/* A program without libraries of others has the listeners as this one has set them up. */
static void exec_leaves_listeners__server(struct tcp_end *end)
{
	static const char program[] =
		"import fcntl, os, sys\n"
		"waits, never = (fcntl.fcntl(int(fd), fcntl.F_GETFL) for fd in sys.argv[1:])\n"
		"assert not waits & (os.O_NONBLOCK | os.O_APPEND), hex(waits)\n"
		"assert never & (os.O_NONBLOCK | os.O_APPEND) == os.O_NONBLOCK, hex(never)\n"
		"print('ok')\n";
	int waits = listening_together(end), never, fd;
	char numbers[2][12], *env[] = { NULL };
	char *words[] = { "python3",  "-c",	  (char *)program,
			  numbers[0], numbers[1], NULL };

	tcp_ready();
	fd = tcp_accept(waits);
	never = listening_together(end);
	tcp_nonblocking(never, true);
	/* A program that cannot be run changes nothing. */
	FAILS(execve("/nowhere", words, env), ENOENT);
	FAILS(accept(never, NULL, NULL), EAGAIN);
	tcp_greet(fd);
	tcp_close(fd);
	snprintf(numbers[0], sizeof(numbers[0]), "%d", waits);
	snprintf(numbers[1], sizeof(numbers[1]), "%d", never);
	MUST(execve("/usr/bin/python3", words, env));
}

static void exec_leaves_listeners__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_greet(fd);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

const struct tcp_case tcp_spawn_cases[] = {
	TCP_CASE(exec_leaves_listeners),
	TCP_CASE(spawn_of_many),
	TCP_CASE(spawn_at_once),
	{ 0 },
};
