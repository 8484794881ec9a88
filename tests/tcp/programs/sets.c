// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * epoll sets: who is told when few events are asked for, what epoll_ctl() refuses, duplicates of
 * sets.
 */
#include <sys/resource.h>
#include "tcp_calls.h"

#define TURNS 100

static int new_set(void)
{
	return (int)MUST(epoll_create1(EPOLL_CLOEXEC));
}

static void control(int set, int operation, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	MUST(epoll_ctl(set, operation, fd, &event));
}

static void greet__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_greet(fd);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

/* A connection that is always ready does not keep a pipe from its turn. */
static void sets_fair__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), set = new_set(), ends[2];
	int of_pipe = 0, of_connection = 0;

	MUST(pipe(ends));
	control(set, EPOLL_CTL_ADD, fd, EPOLLIN);
	control(set, EPOLL_CTL_ADD, ends[0], EPOLLIN);
	SAME(write(ends[1], "", 1), 1);
	SAME(tcp_poll(fd, POLLIN), POLLIN);
	for (int i = 0; i < TURNS; i++) {
		struct epoll_event event;

		SAME(epoll_wait(set, &event, 1, TCP_PATIENCE), 1);
		of_pipe += event.data.fd == ends[0];
		of_connection += event.data.fd == fd;
	}
	EXPECT(of_pipe > TURNS / 10);
	EXPECT(of_connection > TURNS / 10);
	tcp_greet(fd);
	tcp_close(fd);
}

#define sets_fair__client greet__client

static void sets_wrong__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), set = new_set();
	struct epoll_event event = { .events = EPOLLIN };

	FAILS(epoll_ctl(set, 99, fd, &event), EINVAL);
	event.events = EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT;
	FAILS(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), EINVAL);
	event.events = EPOLLIN | EPOLLEXCLUSIVE | EPOLLRDHUP;
	FAILS(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event), EINVAL);
	event.events = EPOLLIN | EPOLLEXCLUSIVE;
	FAILS(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event), EINVAL);
	MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
	FAILS(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event), EINVAL);
	event.events = EPOLLIN;
	FAILS(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event), EINVAL);
	FAILS(epoll_ctl(set, 99, fd, &event), EINVAL);
	MUST(epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL));
	MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
	tcp_greet(fd);
	tcp_close(fd);
}

#define sets_wrong__client greet__client

/* The event of the listener, which is told of other things before it listens. */
static void await_connection(int set, int listener)
{
	struct epoll_event event;

	do {
		SAME(epoll_wait(set, &event, 1, TCP_PATIENCE), 1);
		SAME(event.data.fd, listener);
	} while (!(event.events & EPOLLIN));
}

/* A socket with EPOLLEXCLUSIVE is in the set before it listens, and leaves it when it is told. */
static void sets_exclusive__server(struct tcp_end *end)
{
	int listener = tcp_bound(end), set = new_set(), fd;
	struct epoll_event event;

	control(set, EPOLL_CTL_ADD, listener, EPOLLIN | EPOLLEXCLUSIVE);
	MUST(listen(listener, 8));
	tcp_ready();
	await_connection(set, listener);
	fd = tcp_accept(listener);
	control(set, EPOLL_CTL_DEL, listener, 0);
	/* Whatever comes to a duplicate now is not told. */
	MUST(shutdown(listener, SHUT_RDWR));
	SAME(epoll_wait(set, &event, 1, 50), 0);
	tcp_greet(fd);
	tcp_close(fd);
	tcp_close(listener);
}

#define sets_exclusive__client greet__client

static void sets_duplicated__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);

	tcp_greet(fd);
	tcp_close(fd);
}

/* The set goes on by a duplicate, while another file has its first number. */
static void sets_duplicated__client(struct tcp_end *end)
{
	int fd = tcp_socket(end), set = new_set(), other;
	struct epoll_event events[4];

	control(set, EPOLL_CTL_ADD, fd, EPOLLIN);
	other = (int)MUST(dup(set));
	tcp_close(set);
	SAME(MUST(open("/dev/null", O_RDONLY)), set);
	/* The set is told no more of what the socket was before. */
	MUST(connect(fd, &end->address.any, end->length));
	SAME(tcp_poll(fd, POLLIN), POLLIN);
	SAME(epoll_wait(other, events, 4, TCP_PATIENCE), 1);
	SAME(events[0].events, EPOLLIN);
	tcp_greet(fd);
	tcp_expect_eof(fd);
	tcp_close(fd);
	SAME(epoll_wait(other, events, 4, 0), 0);
}

/* If the process has no descriptor for what the set needs, the set does not tell what is not so. */
static void sets_without_descriptor__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), set, last = -1, more;
	struct rlimit few = { 100, 100 };
	struct epoll_event event = { .events = EPOLLIN };

	MUST(setrlimit(RLIMIT_NOFILE, &few));
	while ((more = dup(2)) >= 0)
		last = more;
	tcp_close(last);
	set = new_set();
	if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &event))
		SAME(errno, ENOMEM);
	else
		SAME(epoll_wait(set, &event, 1, 0), 0);
	tcp_close(set);
	tcp_send(fd, 1, 7);
	tcp_receive(fd, 1, 7);
	tcp_close(fd);
}

static void sets_without_descriptor__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_receive(fd, 1, 7);
	tcp_send(fd, 1, 7);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

#define OF_PIPE 1000000

/* Puts @fd into the set by a duplicate, which is closed then, and gives its number to the end of a
 * pipe that is in the set, too. Returns the number; @in gets the pipe's other end. */
static int by_number_of_pipe(int set, int fd, uint32_t events, int *in)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = OF_PIPE };
	int number = (int)MUST(dup(fd)), ends[2];

	control(set, EPOLL_CTL_ADD, number, events);
	tcp_close(number);
	MUST(pipe(ends));
	MUST(dup2(ends[0], number));
	MUST(epoll_ctl(set, EPOLL_CTL_ADD, number, &event));
	*in = ends[1];
	return number;
}

/* The set tells of the pipe and of the socket, whose number the pipe has. */
static void expect_both(int set, int number, int in)
{
	struct epoll_event event;
	bool pipe = false, sock = false;

	SAME(write(in, "", 1), 1);
	while (!pipe || !sock) {
		SAME(epoll_wait(set, &event, 1, TCP_PATIENCE), 1);
		EXPECT(event.data.fd == OF_PIPE || event.data.fd == number);
		pipe |= event.data.fd == OF_PIPE && (event.events & EPOLLIN);
		sock |= event.data.fd == number && (event.events & EPOLLIN);
	}
}

/* A listener goes on in the set when the number by which it was added is another file's. */
static void sets_number_listens(struct tcp_end *end, uint32_t events)
{
	int listener = tcp_bound(end), set = new_set(), in, number, fd;
	struct epoll_event event;

	number = by_number_of_pipe(set, listener, events, &in);
	MUST(listen(listener, 8));
	/* Until now it was told that the socket has no connection. */
	while (epoll_wait(set, &event, 1, 0) > 0 && (event.events & EPOLLHUP) &&
	       (events & EPOLLET))
		;
	tcp_ready();
	SAME(tcp_poll(listener, POLLIN), POLLIN);
	expect_both(set, number, in);
	fd = tcp_accept(listener);
	tcp_receive(fd, 1, 0);
	tcp_send(fd, 1, 0);
	tcp_close(fd);
	tcp_close(listener);
}

static void sets_number__server(struct tcp_end *end)
{
	sets_number_listens(end, EPOLLIN);
}

/* So does a socket that is connected then, and it is told no more of what it was before. */
static void sets_number__client(struct tcp_end *end)
{
	int fd = tcp_socket(end), set = new_set(), in, number;
	struct epoll_event events[4];

	number = by_number_of_pipe(set, fd, EPOLLIN, &in);
	MUST(connect(fd, &end->address.any, end->length));
	SAME(epoll_wait(set, events, 4, 50), 0);
	tcp_send(fd, 1, 0);
	expect_both(set, number, in);
	tcp_receive(fd, 1, 0);
	tcp_expect_eof(fd);
	tcp_close(fd);
	SAME(epoll_wait(set, events, 4, 50), 1);
	SAME(events[0].data.fd, OF_PIPE);
}

static void one_byte__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_send(fd, 1, 0);
	tcp_receive(fd, 1, 0);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void sets_number_edge__server(struct tcp_end *end)
{
	sets_number_listens(end, EPOLLIN | EPOLLET);
}

#define sets_number_edge__client one_byte__client

/* What a listener with EPOLLONESHOT is told while another file has its number. */
static void sets_number_once__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 8), set = new_set(), in, number, fd;
	struct epoll_event events[4];

	number = by_number_of_pipe(set, listener, EPOLLIN | EPOLLONESHOT, &in);
	tcp_ready();
	expect_both(set, number, in);
	fd = tcp_accept(listener);
	SAME(epoll_wait(set, events, 4, 50), 1);
	SAME(events[0].data.fd, OF_PIPE);
	tcp_greet(fd);
	tcp_close(fd);
	tcp_close(listener);
}

#define sets_number_once__client greet__client

/* With EPOLLONESHOT a socket is told that it has no connection, and then nothing until it is armed
 * anew, whether it listens meanwhile, or is connected in vain or not. */
static void sets_once__server(struct tcp_end *end)
{
	int listener = tcp_bound(end), set = new_set(), fd;
	struct epoll_event event;

	control(set, EPOLL_CTL_ADD, listener, EPOLLIN | EPOLLONESHOT);
	SAME(epoll_wait(set, &event, 1, TCP_PATIENCE), 1);
	SAME(event.events, EPOLLHUP);
	SAME(epoll_wait(set, &event, 1, 0), 0);
	MUST(listen(listener, 8));
	SAME(epoll_wait(set, &event, 1, 0), 0);
	tcp_ready();
	SAME(tcp_poll(listener, POLLIN), POLLIN);
	SAME(epoll_wait(set, &event, 1, 50), 0);
	control(set, EPOLL_CTL_MOD, listener, EPOLLIN | EPOLLONESHOT);
	SAME(epoll_wait(set, &event, 1, TCP_PATIENCE), 1);
	SAME(event.events, EPOLLIN);
	SAME(event.data.fd, listener);
	fd = tcp_accept(listener);
	tcp_greet(fd);
	tcp_close(fd);
	tcp_close(listener);
}

static void sets_once__client(struct tcp_end *end)
{
	int fd = tcp_socket(end), set = new_set();
	struct epoll_event event;

	control(set, EPOLL_CTL_ADD, fd, EPOLLIN | EPOLLOUT | EPOLLONESHOT);
	SAME(epoll_wait(set, &event, 1, TCP_PATIENCE), 1);
	SAME(event.events, EPOLLOUT | EPOLLHUP);
	MUST(connect(fd, &end->address.any, end->length));
	SAME(epoll_wait(set, &event, 1, 50), 0);
	control(set, EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLOUT | EPOLLONESHOT);
	SAME(epoll_wait(set, &event, 1, TCP_PATIENCE), 1);
	SAME(event.events & ~EPOLLIN, EPOLLOUT);
	SAME(epoll_wait(set, &event, 1, 0), 0);
	tcp_greet(fd);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

/* A connection that is refused is told, once. */
static void sets_once_refused__client(struct tcp_end *end)
{
	int fd = tcp_socket(end), set = new_set(), turn;
	struct epoll_event event;

	tcp_nonblocking(fd, true);
	for (turn = 0; turn < 3; turn++) {
		FAILS(connect(fd, &end->address.any, end->length), EINPROGRESS);
		SAME(tcp_poll(fd, POLLOUT) & POLLERR, POLLERR);
		control(set, turn ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd,
			EPOLLOUT | EPOLLONESHOT);
		SAME(epoll_wait(set, &event, 1, TCP_PATIENCE), 1);
		EXPECT(event.events & EPOLLERR);
		SAME(epoll_wait(set, &event, 1, 0), 0);
		FAILS(connect(fd, &end->address.any, end->length), ECONNREFUSED);
		SAME(epoll_wait(set, &event, 1, 50), 0);
	}
	tcp_close(fd);
}

static void sets_once_refused__server(struct tcp_end *end)
{
	(void)end;
	tcp_ready();
}

/* Two processes ask for what is told of @fd, which is ready: one of them is told. */
static void told_to_one(int set, int fd)
{
	struct epoll_event event;
	int status, told;
	pid_t child = (pid_t)MUST(fork());

	SAME(tcp_poll(fd, POLLIN), POLLIN);
	told = epoll_wait(set, &event, 1, 50);
	if (!child)
		_exit(told);
	SAME(waitpid(child, &status, 0), child);
	EXPECT(WIFEXITED(status));
	SAME(told + WEXITSTATUS(status), 1);
	SAME(epoll_wait(set, &event, 1, 0), 0);
}

/* A set is two processes' by fork(). With EPOLLONESHOT one of them is told. */
static void sets_once_forked__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 8), set = new_set(), fd;
	const uint32_t once = EPOLLIN | EPOLLONESHOT;

	control(set, EPOLL_CTL_ADD, listener, once);
	tcp_ready();
	told_to_one(set, listener);
	control(set, EPOLL_CTL_MOD, listener, once);
	told_to_one(set, listener);
	fd = tcp_accept(listener);
	control(set, EPOLL_CTL_ADD, fd, once);
	tcp_send(fd, 1, 0);
	told_to_one(set, fd);
	control(set, EPOLL_CTL_MOD, fd, once);
	told_to_one(set, fd);
	tcp_receive(fd, 1, 0);
	tcp_close(fd);
	tcp_close(listener);
}

static void sets_once_forked__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_receive(fd, 1, 0);
	tcp_send(fd, 1, 0);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

const struct tcp_case tcp_set_cases[] = {
	TCP_CASE(sets_fair),
	TCP_CASE(sets_wrong),
	TCP_CASE(sets_exclusive),
	TCP_CASE(sets_duplicated),
	TCP_CASE(sets_number),
	TCP_CASE(sets_number_edge),
	TCP_CASE(sets_number_once),
	TCP_CASE(sets_once),
	TCP_CASE(sets_once_refused),
	TCP_CASE(sets_once_forked),
	TCP_CASE(sets_without_descriptor),
	{ 0 },
};
