// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Programs that are run by others which have sockets: they go on with them. A case's other
 * program is tcp_calls itself, run as "tcp_calls --part NAME NUMBER...", or any other.
 */
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include "tcp_calls.h"

#define CHUNK 3000u /* bytes; two of them fit into the smallest buffer */
#define WAYS 8u

/* Sends and receives some, ends, and hears the end. */
static void talk(const struct tcp_end *end)
{
	tcp_talk(tcp_connect(end));
}

static void one__client(struct tcp_end *end)
{
	talk(end);
}

static char *number(int value)
{
	char *text;

	MUST(asprintf(&text, "%d", value));
	return text;
}

/* This program again, to do @part with two numbers. */
static void go_on_as(const struct tcp_end *end, const char *part, int a, int b)
{
	char *words[] = { (char *)end->program,
			  "--part",
			  (char *)part,
			  number(a),
			  number(b),
			  NULL };

	MUST(execv(end->program, words));
}

/* ---- one process is one program after the other ---- */

/* A listener, and a connection in the middle of its bytes. */
static void exec_itself__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4), fd;

	tcp_ready();
	fd = tcp_accept(listener);
	tcp_receive(fd, CHUNK, 0);
	tcp_send(fd, CHUNK, 0);
	go_on_as(end, "itself", listener, fd);
}

static void itself(int listener, int fd)
{
	tcp_receive(fd, CHUNK, CHUNK);
	tcp_send(fd, CHUNK, CHUNK);
	tcp_expect_eof(fd);
	tcp_close(fd);
	tcp_echo(tcp_accept(listener));
	tcp_close(listener);
}

static void exec_itself__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_send(fd, 2 * CHUNK, 0);
	tcp_receive(fd, 2 * CHUNK, 0);
	MUST(shutdown(fd, SHUT_WR));
	tcp_expect_eof(fd);
	tcp_close(fd);
	talk(end);
}

/* Who has not been accepted yet is accepted by the next program; and again by the next. */
static void exec_accepts__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4);

	tcp_ready();
	SAME(tcp_poll(listener, POLLIN), POLLIN);
	go_on_as(end, "accepts", listener, 1);
}

static void accepts(int listener, int again)
{
	struct tcp_end end = { .program = "/proc/self/exe" };

	tcp_echo(tcp_accept(listener));
	if (again)
		go_on_as(&end, "accepts", listener, 0);
	tcp_close(listener);
}

static void exec_accepts__client(struct tcp_end *end)
{
	talk(end);
	talk(end);
}

/* The one that has FD_CLOEXEC ends, the other goes on. */
static void exec_closes_one__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4), closes, stays;

	tcp_ready();
	closes = (int)MUST(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
	stays = tcp_accept(listener);
	tcp_greet(closes);
	tcp_greet(stays);
	MUST(fcntl(listener, F_SETFD, FD_CLOEXEC));
	go_on_as(end, "closes_one", stays, closes);
}

static void closes_one(int stays, int closed)
{
	/* Something else may have its number. */
	EXPECT(getpeername(closed, NULL, NULL) < 0 &&
	       (errno == EBADF || errno == ENOTSOCK));
	tcp_greet(stays);
	tcp_expect_eof(stays);
	tcp_close(stays);
}

static void exec_closes_one__client(struct tcp_end *end)
{
	int closes = tcp_connect(end), stays = tcp_connect(end);

	tcp_greet(closes);
	tcp_greet(stays);
	tcp_expect_eof(closes);
	tcp_greet(stays);
	tcp_close(stays);
	tcp_close(closes);
}

/* A program that is not there: everything goes on. */
static void exec_fails__server(struct tcp_end *end)
{
	char *words[] = { "nothing", NULL };
	int listener = tcp_listening(end, 4), fd;
	pid_t child;

	tcp_ready();
	fd = tcp_accept(listener);
	tcp_greet(fd);
	FAILS(execv("/there/is/nothing", words), ENOENT);
	FAILS(execvp("there-is-nothing-of-that-name", words), ENOENT);
	SAME(posix_spawn(&child, "/there/is/nothing", NULL, NULL, words, environ),
	     ENOENT);
	tcp_echo(fd);
	tcp_echo(tcp_accept(listener));
	tcp_close(listener);
}

static void exec_fails__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_greet(fd);
	tcp_send(fd, CHUNK, 0);
	tcp_receive(fd, CHUNK, 0);
	tcp_close(fd);
	talk(end);
}

/* What was set stays set; two descriptors are one socket. */
static void exec_keeps__server(struct tcp_end *end)
{
	struct timeval limit = { .tv_sec = 7 };
	int fd = tcp_accept_one(end), copy;

	tcp_set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	tcp_set(fd, SOL_SOCKET, SO_RCVLOWAT, 2);
	MUST(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	tcp_nonblocking(fd, true);
	copy = (int)MUST(dup(fd));
	go_on_as(end, "keeps", fd, copy);
}

static void keeps(int fd, int copy)
{
	struct timeval limit = { 0 };
	socklen_t length = sizeof(limit);
	char byte;

	SAME(tcp_get(fd, IPPROTO_TCP, TCP_NODELAY), 1);
	SAME(tcp_get(copy, SOL_SOCKET, SO_RCVLOWAT), 2);
	MUST(getsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, &length));
	SAME(limit.tv_sec, 7);
	EXPECT(fcntl(fd, F_GETFL) & O_NONBLOCK);
	FAILS(recv(fd, &byte, 1, 0), EAGAIN);
	tcp_nonblocking(copy, false);
	EXPECT(!(fcntl(fd, F_GETFL) & O_NONBLOCK));
	tcp_close(fd);
	tcp_set(copy, SOL_SOCKET, SO_RCVLOWAT, 1);
	tcp_greet(copy);
	tcp_echo(copy);
}

static void exec_keeps__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	/* Only now is there something to read. */
	tcp_receive(fd, 1, 7);
	tcp_send(fd, 1, 7);
	tcp_send(fd, CHUNK, 0);
	tcp_receive(fd, CHUNK, 0);
	MUST(shutdown(fd, SHUT_WR));
	tcp_expect_eof(fd);
	tcp_close(fd);
}

/* Few descriptors, and others where one would look for news. */
static void exec_few_descriptors__server(struct tcp_end *end)
{
	struct rlimit limit;
	int fd = tcp_accept_one(end);

	MUST(getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = 64;
	MUST(setrlimit(RLIMIT_NOFILE, &limit));
	go_on_as(end, "echoes", fd, 0);
}

#define exec_few_descriptors__client one__client

/* Sealed memory of others, from the first number on that a library might look at. */
static void exec_strange_memory__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	char bytes[4096];

	memset(bytes, 0xff, sizeof(bytes));
	memcpy(bytes, "homaexec", 8);
	for (unsigned int i = 0; i < 4; i++) {
		int memory = (int)MUST(memfd_create("x", MFD_ALLOW_SEALING));

		SAME(write(memory, bytes, i * 1000), i * 1000);
		MUST(fcntl(memory, F_ADD_SEALS,
			   F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW |
				   F_SEAL_WRITE));
		MUST(dup2(memory, 1000 + (int)i));
		tcp_close(memory);
	}
	go_on_as(end, "echoes", fd, 0);
}

#define exec_strange_memory__client one__client

static void echoes(int fd, int unused)
{
	(void)unused;
	tcp_echo(fd);
}

/* An environment of nothing, but for the libraries that are loaded. */
static void exec_clears_environment__server(struct tcp_end *end)
{
	char *libraries = getenv("LD_PRELOAD"), *env[2] = { NULL };
	char *words[] = {
		(char *)end->program, "--part", "echoes", NULL, "0", NULL
	};

	if (libraries)
		MUST(asprintf(&env[0], "LD_PRELOAD=%s", libraries));
	words[3] = number(tcp_accept_one(end));
	MUST(execve(end->program, words, env));
}

#define exec_clears_environment__client one__client

/* ---- in a child ---- */

static void run(unsigned int way, const char *path, const char *fd)
{
	char *words[] = { "tcp_calls", "--part", "echoes", (char *)fd, "0", NULL };
	int file;

	switch (way) {
	case 0:
		execl(path, words[0], words[1], words[2], fd, "0", NULL);
		break;
	case 1:
		execlp(path, words[0], words[1], words[2], fd, "0", NULL);
		break;
	case 2:
		execle(path, words[0], words[1], words[2], fd, "0", NULL,
		       environ);
		break;
	case 3:
		execv(path, words);
		break;
	case 4:
		execvp(path, words);
		break;
	case 5:
		execvpe(path, words, environ);
		break;
	case 6:
		file = (int)MUST(open(path, O_RDONLY | O_CLOEXEC));
		fexecve(file, words, environ);
		break;
	default:
		execveat(AT_FDCWD, path, words, environ, 0);
	}
	WRONG("way %u: %s", way, strerror(errno));
}

static void exec_in_all_ways__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4);

	tcp_ready();
	for (unsigned int way = 0; way < WAYS; way++) {
		int fd = tcp_accept(listener);
		pid_t child = (pid_t)MUST(fork());

		if (!child)
			run(way, end->program, number(fd));
		tcp_close(fd);
		tcp_child_ended(child);
	}
	tcp_close(listener);
}

static void exec_in_all_ways__client(struct tcp_end *end)
{
	for (unsigned int way = 0; way < WAYS; way++)
		talk(end);
}

/* As a shell does, or Python: vfork(), all other descriptors are closed, and exec. */
static void exec_after_vfork__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	pid_t child = vfork();

	if (!child) {
		dup2(fd, 0);
		dup2(fd, 1);
		close_range(3, ~0u, 0);
		execlp("cat", "cat", NULL);
		_exit(1);
	}
	tcp_close(fd);
	tcp_child_ended(child);
}

#define exec_after_vfork__client one__client

/* Shells and what they run have it, too; who ran them goes on with it. */
static void exec_by_shell__server(struct tcp_end *end)
{
	char *command, line[64];
	int fd = tcp_accept_one(end);
	FILE *from;

	tcp_greet(fd);
	MUST(asprintf(&command, "dd bs=1 count=1 status=none <&%d >&%d", fd, fd));
	SAME(system(command), 0);
	MUST(asprintf(&command, "dd bs=1 count=1 status=none <&%d; echo", fd));
	from = popen(command, "r");
	EXPECT(from && fgets(line, sizeof(line), from));
	EXPECT(!strcmp(line, "b\n"));
	SAME(pclose(from), 0);
	tcp_greet(fd);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void exec_by_shell__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	char byte;

	tcp_greet(fd);
	SAME(send(fd, "a", 1, 0), 1);
	SAME(recv(fd, &byte, 1, 0), 1);
	SAME(byte, 'a');
	SAME(send(fd, "b", 1, 0), 1);
	tcp_greet(fd);
	tcp_close(fd);
}

/* ---- programs that cannot have it ---- */

/* The connection ends as its last process does or, where that cannot have it, by a reset. */
static void expect_end(int fd)
{
	char byte;

	if (getenv("TCP_RESET"))
		FAILS(recv(fd, &byte, 1, 0), ECONNRESET);
	else
		tcp_expect_eof(fd);
	tcp_close(fd);
}

static void ends__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_greet(fd);
	/* A reset would overtake what was not read yet. */
	tcp_tell(end);
	expect_end(fd);
}

/* Debian's ldconfig is static. */
static void exec_static__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);

	tcp_greet(fd);
	tcp_await(end);
	printf("ok\n");
	fflush(stdout);
	close(1);
	MUST(open("/dev/null", O_WRONLY));
	MUST(execl("/sbin/ldconfig", "ldconfig", "--version", NULL));
}

#define exec_static__client ends__client

static void exec_without_library__server(struct tcp_end *end)
{
	char *words[] = {
		(char *)end->program, "--part", "waits", NULL, "0", NULL
	};
	char *env[] = { NULL };
	int fd = tcp_accept_one(end);

	tcp_greet(fd);
	tcp_await(end);
	words[3] = number(fd);
	MUST(execve(end->program, words, env));
}

/* It has it without knowing: until it ends nothing but a reset ends the connection. */
static void waits(int fd, int unused)
{
	(void)unused;
	usleep(300000);
	tcp_close(fd);
}

#define exec_without_library__client ends__client

/* Of another user, who must not get what our environment and descriptors say. */
static void exec_set_user__server(struct tcp_end *end)
{
	char *path, *command;
	int fd;

	MUST(asprintf(&path, "%s.program", end->path));
	MUST(asprintf(&command, "cp %s %s; chown nobody %s; chmod 4755 %s",
		      end->program, path, path, path));
	SAME(system(command), 0);
	fd = tcp_accept_one(end);
	tcp_greet(fd);
	tcp_await(end);
	MUST(execl(path, path, "--part", "waits", number(fd), "0", NULL));
}

#define exec_set_user__client ends__client

/* A child that cannot have it does its parent no harm. */
static void spawn_static__server(struct tcp_end *end)
{
	char *words[] = { "ldconfig", "--version", NULL };
	posix_spawn_file_actions_t actions;
	int fd = tcp_accept_one(end);
	pid_t child;

	SAME(posix_spawn_file_actions_init(&actions), 0);
	SAME(posix_spawn_file_actions_addopen(&actions, 1, "/dev/null",
					      O_WRONLY, 0),
	     0);
	for (int i = 0; i < 3; i++) {
		SAME(posix_spawn(&child, "/sbin/ldconfig", &actions, NULL,
				 words, environ),
		     0);
		tcp_child_ended(child);
		tcp_greet(fd);
	}
	child = (pid_t)MUST(fork());
	if (!child) {
		MUST(dup2(MUST(open("/dev/null", O_WRONLY)), 1));
		MUST(execv("/sbin/ldconfig", words));
	}
	tcp_child_ended(child);
	tcp_echo(fd);
}

static void spawn_static__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	for (int i = 0; i < 3; i++)
		tcp_greet(fd);
	tcp_send(fd, CHUNK, 0);
	tcp_receive(fd, CHUNK, 0);
	MUST(shutdown(fd, SHUT_WR));
	tcp_expect_eof(fd);
	tcp_close(fd);
}

/* What a program that another one runs sets, counts for that one, too. */
static void exec_agrees__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	pid_t child = (pid_t)MUST(fork());
	char byte;

	if (!child) {
		MUST(dup2(MUST(open("/dev/null", O_WRONLY)), 1));
		go_on_as(end, "agrees", fd, 0);
	}
	tcp_child_ended(child);
	FAILS(recv(fd, &byte, 1, 0), EAGAIN);
	tcp_nonblocking(fd, false);
	tcp_tell(end);
	tcp_echo(fd);
}

static void exec_agrees__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_await(end);
	tcp_greet(fd);
	tcp_close(fd);
}

static void agrees(int fd, int unused)
{
	(void)unused;
	tcp_nonblocking(fd, true);
}

void tcp_exec_part(const char *name, int a, int b)
{
	static const struct {
		const char *name;
		void (*does)(int a, int b);
	} parts[] = {
		{ "itself", itself }, { "accepts", accepts },
		{ "keeps", keeps },   { "closes_one", closes_one },
		{ "echoes", echoes }, { "waits", waits },
		{ "agrees", agrees },
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (!strcmp(name, parts[i].name)) {
			parts[i].does(a, b);
			return;
		}
	WRONG("no part is called %s", name);
}

const struct tcp_case tcp_exec_cases[] = {
	TCP_CASE(exec_itself),
	TCP_CASE(exec_accepts),
	TCP_CASE(exec_closes_one),
	TCP_CASE(exec_fails),
	TCP_CASE(exec_keeps),
	TCP_CASE(exec_few_descriptors),
	TCP_CASE(exec_strange_memory),
	TCP_CASE(exec_clears_environment),
	TCP_CASE(exec_in_all_ways),
	TCP_CASE(exec_after_vfork),
	TCP_CASE(exec_by_shell),
	TCP_CASE(exec_static),
	TCP_CASE(exec_without_library),
	TCP_CASE(exec_set_user),
	TCP_CASE(spawn_static),
	TCP_CASE(exec_agrees),
	{ 0 },
};
