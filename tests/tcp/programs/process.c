// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Sockets and processes: workers, children that serve, exec, descriptors sent to others.
 */
#include <spawn.h>
#include "tcp_calls.h"

#define WORKERS 3
#define CONNECTIONS 12

/* Talk on one connection after the other. */
static void one_by_one__client(struct tcp_end *end)
{
	for (int i = 0; i < CONNECTIONS; i++) {
		int fd = tcp_connect(end);

		tcp_greet(fd);
		MUST(shutdown(fd, SHUT_WR));
		tcp_expect_eof(fd);
		tcp_close(fd);
	}
}

static void one__client(struct tcp_end *end)
{
	tcp_talk(tcp_connect(end));
}

/* Workers that were forked before there was a connection accept from one listener. */
static void prefork__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 64), done[2];
	pid_t workers[WORKERS];
	char bytes[CONNECTIONS];

	MUST(pipe(done));
	for (int i = 0; i < WORKERS; i++) {
		workers[i] = (pid_t)MUST(fork());
		if (workers[i])
			continue;
		for (;;) {
			tcp_echo(tcp_accept(listener));
			SAME(write(done[1], "", 1), 1);
		}
	}
	tcp_ready();
	for (int i = 0; i < CONNECTIONS; i++)
		SAME(read(done[0], bytes, 1), 1);
	for (int i = 0; i < WORKERS; i++) {
		MUST(kill(workers[i], SIGKILL));
		MUST(waitpid(workers[i], NULL, 0));
	}
	tcp_close(listener);
}

#define prefork__client one_by_one__client

/* A child for each connection, while the parent accepts on. */
static void fork_per_connection__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 64);
	pid_t children[CONNECTIONS];

	tcp_ready();
	for (int i = 0; i < CONNECTIONS; i++) {
		int fd = tcp_accept(listener);

		children[i] = (pid_t)MUST(fork());
		if (!children[i]) {
			tcp_close(listener);
			tcp_echo(fd);
			_exit(0);
		}
		tcp_close(fd);
	}
	for (int i = 0; i < CONNECTIONS; i++)
		tcp_child_ended(children[i]);
}

#define fork_per_connection__client one_by_one__client

/* The connection ends when the last process has closed it. */
static void fork_shares__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), go[2];
	pid_t child;
	char byte;

	MUST(pipe(go));
	child = (pid_t)MUST(fork());
	if (!child) {
		SAME(read(go[0], &byte, 1), 1);
		tcp_greet(fd);
		SAME(read(go[0], &byte, 1), 1);
		_exit(0);
	}
	tcp_greet(fd);
	tcp_close(fd);
	SAME(write(go[1], "", 1), 1);
	tcp_await(end);
	SAME(write(go[1], "", 1), 1);
	tcp_child_ended(child);
}

static void fork_shares__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_greet(fd);
	tcp_greet(fd);
	SAME(tcp_ask(fd, POLLIN | POLLRDHUP), 0);
	tcp_tell(end);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void echo__server(struct tcp_end *end)
{
	tcp_echo(tcp_accept_one(end));
}

#define fork_after_connect__server echo__server

/* A child goes on with its parent's connection, then the parent does. */
static void fork_after_connect__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	pid_t child;

	tcp_send(fd, 100, 0);
	child = (pid_t)MUST(fork());
	if (!child) {
		tcp_receive(fd, 100, 0);
		tcp_send(fd, 100, 100);
		_exit(0);
	}
	tcp_child_ended(child);
	tcp_receive(fd, 100, 100);
	tcp_greet(fd);
	MUST(shutdown(fd, SHUT_WR));
	tcp_expect_eof(fd);
	tcp_close(fd);
}

/* daemon(): who listened is gone, and its child serves. */
static void daemonise__server(struct tcp_end *end)
{
	pid_t child, self;
	int gone[2], listener;
	char byte;

	MUST(pipe(gone));
	child = (pid_t)MUST(fork());
	if (child) {
		tcp_child_ended(child);
		tcp_close(gone[1]);
		/* The end of the pipe is the end of the server. */
		SAME(read(gone[0], &byte, 1), 1);
		return;
	}
	listener = tcp_listening(end, 4);
	self = getpid();
	if (MUST(fork()))
		_exit(0);
	while (getppid() == self)
		usleep(2000);
	tcp_ready();
	tcp_echo(tcp_accept(listener));
	SAME(write(gone[1], "", 1), 1);
	_exit(0);
}

#define daemonise__client one__client

/* A program that is run by exec goes on with the connection. */
static void exec_inherits__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	pid_t child = (pid_t)MUST(fork());
	char number[12];

	snprintf(number, sizeof(number), "%d", fd);
	if (!child) {
		MUST(execl(end->program, end->program, "--inherited", number,
			   NULL));
		_exit(1);
	}
	tcp_close(fd);
	tcp_child_ended(child);
}

#define exec_inherits__client one__client

/* As inetd does: any program, with the connection for its input and output. */
static void exec_cat__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	pid_t child = (pid_t)MUST(fork());

	if (!child) {
		MUST(dup2(fd, 0));
		MUST(dup2(fd, 1));
		tcp_close(fd);
		MUST(execlp("cat", "cat", NULL));
	}
	tcp_close(fd);
	tcp_child_ended(child);
}

#define exec_cat__client one__client

/* posix_spawn() with the connection as standard input and output, and a program without it. */
static void spawn__server(struct tcp_end *end)
{
	char *words[] = { "cat", NULL };
	posix_spawn_file_actions_t actions;
	int fd = tcp_accept_one(end);
	pid_t child;

	SAME(system("true"), 0);
	SAME(posix_spawn_file_actions_init(&actions), 0);
	SAME(posix_spawn_file_actions_adddup2(&actions, fd, 0), 0);
	SAME(posix_spawn_file_actions_adddup2(&actions, fd, 1), 0);
	SAME(posix_spawn_file_actions_addclose(&actions, fd), 0);
	SAME(posix_spawnp(&child, "cat", &actions, NULL, words, environ), 0);
	tcp_close(fd);
	tcp_child_ended(child);
	SAME(posix_spawn_file_actions_destroy(&actions), 0);
}

#define spawn__client one__client

_Noreturn static void work(int listener, int done)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLEXCLUSIVE };
	int set = (int)MUST(epoll_create1(0));

	MUST(epoll_ctl(set, EPOLL_CTL_ADD, listener, &event));
	for (;;) {
		int fd;

		SAME(epoll_wait(set, &event, 1, -1), 1);
		fd = accept(listener, NULL, NULL);
		if (fd < 0) {
			/* Another worker was faster. */
			SAME(errno, EAGAIN);
			continue;
		}
		tcp_echo(fd);
		SAME(write(done, "", 1), 1);
	}
}

/* Workers with a set each wait for one listener. */
static void prefork_epoll__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 64), done[2];
	pid_t workers[WORKERS];
	char byte;

	MUST(pipe(done));
	tcp_nonblocking(listener, true);
	for (int i = 0; i < WORKERS; i++) {
		workers[i] = (pid_t)MUST(fork());
		if (!workers[i])
			work(listener, done[1]);
	}
	tcp_ready();
	for (int i = 0; i < CONNECTIONS; i++)
		SAME(read(done[0], &byte, 1), 1);
	for (int i = 0; i < WORKERS; i++) {
		MUST(kill(workers[i], SIGKILL));
		MUST(waitpid(workers[i], NULL, 0));
	}
	tcp_close(listener);
}

#define prefork_epoll__client one_by_one__client

/* FD_CLOEXEC: a program that is run does not hold the connection. */
static void exec_closes__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4), fd, wait[2];
	pid_t child;

	tcp_ready();
	fd = (int)MUST(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
	tcp_greet(fd);
	MUST(pipe(wait));
	child = (pid_t)MUST(fork());
	if (!child) {
		MUST(dup2(wait[0], 0));
		tcp_close(wait[1]);
		MUST(execlp("cat", "cat", NULL));
	}
	tcp_close(wait[0]);
	tcp_close(fd);
	tcp_await(end);
	tcp_close(wait[1]);
	tcp_child_ended(child);
}

static void exec_closes__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_greet(fd);
	tcp_expect_eof(fd);
	tcp_tell(end);
	tcp_close(fd);
}

static void send_descriptor(int to, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *part = CMSG_FIRSTHDR(&message);

	part->cmsg_level = SOL_SOCKET;
	part->cmsg_type = SCM_RIGHTS;
	part->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(part), &fd, sizeof(fd));
	SAME(sendmsg(to, &message, 0), 1);
}

static int receive_descriptor(int from)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 }, byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *part;
	int fd;

	SAME(recvmsg(from, &message, 0), 1);
	part = CMSG_FIRSTHDR(&message);
	EXPECT(part);
	SAME(part->cmsg_type, SCM_RIGHTS);
	memcpy(&fd, CMSG_DATA(part), sizeof(fd));
	return fd;
}

/* A connection goes to another process through a Unix socket. */
static void send_connection__server(struct tcp_end *end)
{
	int pair[2], fd;
	pid_t child;

	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	child = (pid_t)MUST(fork());
	if (!child) {
		tcp_close(pair[0]);
		tcp_echo(receive_descriptor(pair[1]));
		_exit(0);
	}
	tcp_close(pair[1]);
	fd = tcp_accept_one(end);
	send_descriptor(pair[0], fd);
	tcp_close(fd);
	tcp_child_ended(child);
}

#define send_connection__client one__client

/* So does a listener, as in a restart of a server without a pause. */
static void send_listener__server(struct tcp_end *end)
{
	int pair[2], listener;
	pid_t child;

	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	child = (pid_t)MUST(fork());
	if (!child) {
		tcp_close(pair[0]);
		listener = receive_descriptor(pair[1]);
		tcp_ready();
		for (int i = 0; i < CONNECTIONS; i++)
			tcp_echo(tcp_accept(listener));
		_exit(0);
	}
	tcp_close(pair[1]);
	listener = tcp_listening(end, 16);
	send_descriptor(pair[0], listener);
	tcp_close(listener);
	tcp_child_ended(child);
}

#define send_listener__client one_by_one__client

/* O_NONBLOCK is the connection's, and F_GETFL says it in each process that has the connection. */
static void send_flags__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), ends[2];
	pid_t child;
	char byte;

	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	child = (pid_t)MUST(fork());
	if (!child) {
		tcp_close(fd);
		fd = receive_descriptor(ends[1]);
		SAME(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
		SAME(write(ends[1], "", 1), 1);
		SAME(read(ends[1], &byte, 1), 1);
		SAME(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
		tcp_nonblocking(fd, false);
		_exit(0);
	}
	send_descriptor(ends[0], fd);
	SAME(read(ends[0], &byte, 1), 1);
	tcp_nonblocking(fd, true);
	SAME(write(ends[0], "", 1), 1);
	tcp_child_ended(child);
	SAME(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	tcp_echo(fd);
}

#define send_flags__client one__client

/* A process that is killed ends its connections. */
static void killed__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);

	tcp_greet(fd);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void killed__client(struct tcp_end *end)
{
	pid_t child = (pid_t)MUST(fork());
	int status;

	if (!child) {
		tcp_greet(tcp_connect(end));
		raise(SIGKILL);
	}
	SAME(waitpid(child, &status, 0), child);
	EXPECT(WIFSIGNALED(status));
}

const struct tcp_case tcp_process_cases[] = {
	TCP_CASE(prefork),
	TCP_CASE(prefork_epoll),
	TCP_CASE(spawn),
	TCP_CASE(fork_per_connection),
	TCP_CASE(fork_shares),
	TCP_CASE(fork_after_connect),
	TCP_CASE(daemonise),
	TCP_CASE(exec_inherits),
	TCP_CASE(exec_cat),
	TCP_CASE(exec_closes),
	TCP_CASE(send_connection),
	TCP_CASE(send_listener),
	TCP_CASE(send_flags),
	TCP_CASE(killed),
	{ 0 },
};
