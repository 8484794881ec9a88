// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Two processes that have the same connection or listener: what one does the other sees, and
 * what kills one does not harm the other.
 */
#include "tcp_calls.h"

#define RECORD 16u
#define RECORDS 100u /* all of them fit into the smallest buffer */
#define CHUNK 1000u

static void one__client(struct tcp_end *end)
{
	tcp_talk(tcp_connect(end));
}

/* A connection that came before fork(), and that the parent never accepts. */
static void fork_before_accept__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4);
	struct pollfd waits = { .fd = listener, .events = POLLIN };
	pid_t child;

	tcp_ready();
	SAME(poll(&waits, 1, TCP_PATIENCE), 1);
	child = (pid_t)MUST(fork());
	if (!child) {
		tcp_echo(tcp_accept(listener));
		_exit(0);
	}
	tcp_child_ended(child);
	tcp_close(listener);
}

#define fork_before_accept__client one__client

/* Who accepted is killed, and its child goes on. */
static void fork_outlives_parent__server(struct tcp_end *end)
{
	int gone[2], status, fd;
	pid_t parent, self;
	char byte;

	MUST(pipe(gone));
	parent = (pid_t)MUST(fork());
	if (parent) {
		SAME(waitpid(parent, &status, 0), parent);
		EXPECT(WIFSIGNALED(status));
		tcp_close(gone[1]);
		SAME(read(gone[0], &byte, 1), 1);
		return;
	}
	fd = tcp_accept_one(end);
	self = getpid();
	if (MUST(fork()))
		raise(SIGKILL);
	while (getppid() == self)
		usleep(2000);
	tcp_echo(fd);
	SAME(write(gone[1], "", 1), 1);
	_exit(0);
}

#define fork_outlives_parent__client one__client

/* A child reads and writes, and is killed; its parent goes on where it stopped. */
static void fork_outlives_child__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), status;
	pid_t child = (pid_t)MUST(fork());

	if (!child) {
		tcp_receive(fd, CHUNK, 0);
		tcp_send(fd, CHUNK, 0);
		raise(SIGKILL);
	}
	SAME(waitpid(child, &status, 0), child);
	EXPECT(WIFSIGNALED(status));
	tcp_receive(fd, CHUNK, CHUNK);
	tcp_send(fd, CHUNK, CHUNK);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void fork_outlives_child__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_send(fd, 2 * CHUNK, 0);
	tcp_receive(fd, 2 * CHUNK, 0);
	MUST(shutdown(fd, SHUT_WR));
	tcp_expect_eof(fd);
	tcp_close(fd);
}

/* Both write at once: each record arrives whole, and none is lost. */
static void write_records(int fd, char letter)
{
	char record[RECORD];

	memset(record, letter, sizeof(record));
	for (unsigned int i = 0; i < RECORDS; i++)
		SAME(send(fd, record, sizeof(record), 0), RECORD);
}

static void fork_both_write__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	pid_t child = (pid_t)MUST(fork());

	write_records(fd, child ? 'p' : 'c');
	if (!child)
		_exit(0);
	tcp_child_ended(child);
	tcp_close(fd);
}

static void fork_both_write__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	unsigned int seen[2] = { 0 };
	char record[RECORD], same[RECORD];

	for (unsigned int i = 0; i < 2 * RECORDS; i++) {
		SAME(recv(fd, record, sizeof(record), MSG_WAITALL), RECORD);
		memset(same, record[0], sizeof(same));
		EXPECT(!memcmp(record, same, sizeof(same)));
		seen[record[0] == 'c']++;
	}
	SAME(seen[0], RECORDS);
	SAME(seen[1], RECORDS);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

/* What one has shut down is shut for the other. */
static void fork_shuts__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	pid_t child = (pid_t)MUST(fork());

	if (!child) {
		tcp_greet(fd);
		MUST(shutdown(fd, SHUT_WR));
		_exit(0);
	}
	tcp_child_ended(child);
	FAILS(send(fd, "x", 1, MSG_NOSIGNAL), EPIPE);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void fork_shuts__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_greet(fd);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

/* ---- what both have together ---- */

/* A child does it, and has ended when this returns. */
#define IN_CHILD(what)                              \
	do {                                        \
		pid_t child_ = (pid_t)MUST(fork()); \
                                                    \
		if (!child_) {                      \
			what;                       \
			_exit(0);                   \
		}                                   \
		tcp_child_ended(child_);            \
	} while (0)

static bool is_nonblocking(int fd)
{
	return MUST(fcntl(fd, F_GETFL)) & O_NONBLOCK;
}

static void await_bytes(int fd, int bytes)
{
	int waiting = 0;

	while (waiting < bytes)
		MUST(ioctl(fd, FIONREAD, &waiting));
}

/* What a child has set counts for its parent, and the other way round. */
static void fork_agrees__server(struct tcp_end *end)
{
	struct timeval limit = { .tv_usec = 10000 }, none = { 0 };
	int fd = tcp_accept_one(end), on = 1;
	char byte;

	IN_CHILD(tcp_nonblocking(fd, true));
	EXPECT(is_nonblocking(fd));
	FAILS(recv(fd, &byte, 1, 0), EAGAIN);
	IN_CHILD(FAILS(recv(fd, &byte, 1, 0), EAGAIN);
		 tcp_nonblocking(fd, false));
	EXPECT(!is_nonblocking(fd));
	IN_CHILD(MUST(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit,
				 sizeof(limit))));
	FAILS(recv(fd, &byte, 1, 0), EAGAIN);
	MUST(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none)));
	IN_CHILD(tcp_set(fd, SOL_SOCKET, SO_RCVLOWAT, 10));
	tcp_tell(end);
	await_bytes(fd, 5);
	SAME(tcp_ask(fd, POLLIN), 0);
	IN_CHILD(SAME(tcp_ask(fd, POLLIN), 0);
		 tcp_set(fd, SOL_SOCKET, SO_RCVLOWAT, 1));
	SAME(tcp_ask(fd, POLLIN), POLLIN);
	tcp_receive(fd, 5, 0);
	IN_CHILD(MUST(ioctl(fd, FIONBIO, &on)));
	FAILS(recv(fd, &byte, 1, 0), EAGAIN);
	tcp_close(fd);
}

static void fork_agrees__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_await(end);
	tcp_send(fd, 5, 0);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

/* So it is for a listener. */
static void fork_agrees_listener__server(struct tcp_end *end)
{
	struct timeval limit = { .tv_usec = 10000 }, none = { 0 };
	int listener = tcp_listening(end, 4), on = 1;

	IN_CHILD(tcp_nonblocking(listener, true));
	EXPECT(is_nonblocking(listener));
	FAILS(accept(listener, NULL, NULL), EAGAIN);
	IN_CHILD(FAILS(accept(listener, NULL, NULL), EAGAIN);
		 tcp_nonblocking(listener, false));
	EXPECT(!is_nonblocking(listener));
	IN_CHILD(MUST(setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &limit,
				 sizeof(limit))));
	FAILS(accept(listener, NULL, NULL), EAGAIN);
	MUST(setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none)));
	IN_CHILD(MUST(ioctl(listener, FIONBIO, &on)));
	FAILS(accept(listener, NULL, NULL), EAGAIN);
	on = 0;
	MUST(ioctl(listener, FIONBIO, &on));
	tcp_ready();
	IN_CHILD(EXPECT(!is_nonblocking(listener));
		 tcp_echo(tcp_accept(listener)));
	tcp_close(listener);
}

#define fork_agrees_listener__client one__client

/* A child shuts down, and its parent, which waits, hears of it. */
static void fork_shuts_read__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	pid_t child = (pid_t)MUST(fork());
	char byte;

	if (!child) {
		usleep(20000);
		MUST(shutdown(fd, SHUT_RD));
		_exit(0);
	}
	SAME(recv(fd, &byte, 1, 0), 0);
	tcp_child_ended(child);
	SAME(tcp_ask(fd, POLLIN | POLLRDHUP), POLLIN | POLLRDHUP);
	tcp_send(fd, 1, 7);
	tcp_close(fd);
}

static void fork_shuts_read__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_receive(fd, 1, 7);
	tcp_close(fd);
}

/* The same of a parent that has more to send than there is room for. */
static void fork_shuts_write__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	pid_t child = (pid_t)MUST(fork());
	static char bytes[65536];

	if (!child) {
		usleep(20000);
		MUST(shutdown(fd, SHUT_WR));
		_exit(0);
	}
	while (send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) > 0)
		;
	SAME(errno, EPIPE);
	tcp_child_ended(child);
	tcp_tell(end);
	tcp_close(fd);
}

static void fork_shuts_write__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	static char bytes[65536];

	tcp_await(end);
	while (MUST(recv(fd, bytes, sizeof(bytes), 0)) > 0)
		;
	tcp_close(fd);
}

/* A child's child has what its grandparent had accepted, and a listener of its parent's. */
static void fork_twice__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4), fd;
	pid_t child, grandchild;

	tcp_ready();
	fd = tcp_accept(listener);
	child = (pid_t)MUST(fork());
	if (!child) {
		grandchild = (pid_t)MUST(fork());
		if (!grandchild) {
			tcp_echo(fd);
			tcp_echo(tcp_accept(listener));
			_exit(0);
		}
		tcp_close(fd);
		tcp_child_ended(grandchild);
		_exit(0);
	}
	tcp_close(fd);
	tcp_child_ended(child);
	tcp_close(listener);
}

static void fork_twice__client(struct tcp_end *end)
{
	one__client(end);
	one__client(end);
}

#define FORKS 20
#define PIECE 100
#define PIECES 200

static volatile bool is_over;

static void send_piece(int fd, const char *piece, size_t length)
{
	for (size_t done = 0; done < length;)
		done += (size_t)MUST(send(fd, piece + done, length - done, 0));
}

static void *send_on(void *argument)
{
	char piece[PIECE];
	size_t all = 0;

	memset(piece, 'p', sizeof(piece));
	while (!is_over || all < PIECE * PIECES) {
		send_piece(*(int *)argument, piece, sizeof(piece));
		all += sizeof(piece);
	}
	return (void *)all;
}

/* One thread sends while another forks, and each child sends: nothing is lost or comes twice. */
static void fork_in_send__client(struct tcp_end *end)
{
	char piece[PIECE];
	size_t told[2];
	int fd = tcp_connect(end);
	pthread_t thread;
	void *all;

	memset(piece, 'c', sizeof(piece));
	SAME(pthread_create(&thread, NULL, send_on, &fd), 0);
	for (int i = 0; i < FORKS; i++) {
		pid_t child = (pid_t)MUST(fork());

		if (!child) {
			for (int j = 0; j < PIECES; j++)
				send_piece(fd, piece, sizeof(piece));
			_exit(0);
		}
		if (i % 2)
			tcp_child_ended(child);
	}
	while (wait(NULL) > 0)
		;
	is_over = true;
	SAME(pthread_join(thread, &all), 0);
	MUST(shutdown(fd, SHUT_WR));
	SAME(recv(fd, told, sizeof(told), MSG_WAITALL), sizeof(told));
	SAME(told[0], (size_t)all);
	SAME(told[1], FORKS * PIECE * PIECES);
	tcp_close(fd);
}

static void fork_in_send__server(struct tcp_end *end)
{
	static char bytes[65536];
	size_t told[2] = { 0 };
	int fd = tcp_accept_one(end);
	ssize_t got;

	while ((got = MUST(recv(fd, bytes, sizeof(bytes), 0))) > 0)
		for (ssize_t i = 0; i < got; i++) {
			EXPECT(bytes[i] == 'p' || bytes[i] == 'c');
			told[bytes[i] == 'c']++;
		}
	SAME(send(fd, told, sizeof(told), 0), sizeof(told));
	tcp_close(fd);
}

/* Does the listener stop to be readable? homad tells others than who has taken the connection a
 * moment later, the kernel at once. */
static void becomes_quiet(int listener)
{
	struct pollfd waits = { .fd = listener, .events = POLLIN };
	unsigned int tries = TCP_PATIENCE / 2;

	while (MUST(poll(&waits, 1, 0)) && --tries)
		usleep(2000);
	SAME(waits.revents, 0);
}

/* Who has taken the only connection does not find the listener readable any more, nor does the
 * other process, which had found it readable, too. */
static void fork_takes_last__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4), ready[2], taken[2], fd;
	struct pollfd waits = { .fd = listener, .events = POLLIN };
	pid_t child;
	char byte;

	MUST(pipe(ready));
	MUST(pipe(taken));
	child = (pid_t)MUST(fork());
	if (!child) {
		SAME(poll(&waits, 1, TCP_PATIENCE), 1);
		SAME(write(ready[1], "", 1), 1);
		SAME(read(taken[0], &byte, 1), 1);
		becomes_quiet(listener);
		_exit(0);
	}
	tcp_ready();
	SAME(poll(&waits, 1, TCP_PATIENCE), 1);
	SAME(read(ready[0], &byte, 1), 1);
	fd = tcp_accept(listener);
	becomes_quiet(listener);
	SAME(write(taken[1], "", 1), 1);
	tcp_child_ended(child);
	becomes_quiet(listener);
	tcp_echo(fd);
	tcp_close(listener);
}

#define fork_takes_last__client one__client

/* Processes that have a socket listen at it, each by itself, and wait in accept(). */
static void fork_listens__server(struct tcp_end *end)
{
	int listener = tcp_bound(end), ready[2];
	pid_t children[3];
	char byte;

	MUST(pipe(ready));
	for (int i = 0; i < 3; i++) {
		children[i] = (pid_t)MUST(fork());
		if (children[i])
			continue;
		MUST(listen(listener, 8));
		SAME(write(ready[1], "", 1), 1);
		for (;;)
			tcp_echo(tcp_accept(listener));
	}
	for (int i = 0; i < 3; i++)
		SAME(read(ready[0], &byte, 1), 1);
	tcp_ready();
	tcp_await(end);
	for (int i = 0; i < 3; i++) {
		SAME(waitpid(children[i], NULL, WNOHANG), 0);
		MUST(kill(children[i], SIGKILL));
		SAME(waitpid(children[i], NULL, 0), children[i]);
	}
	tcp_close(listener);
}

static void fork_listens__client(struct tcp_end *end)
{
	for (int i = 0; i < 6; i++)
		one__client(end);
	tcp_tell(end);
}

/* ---- sockets that were there before ---- */

static void fork_connects__server(struct tcp_end *end)
{
	int listener = tcp_listening(end, 4);

	tcp_ready();
	tcp_echo(tcp_accept(listener));
	tcp_echo(tcp_accept(listener));
	tcp_close(listener);
}

/* A child connects its parent's socket, and the parent uses it; then the other way round. */
static void fork_connects__client(struct tcp_end *end)
{
	int fd = tcp_socket(end), connected[2];
	pid_t child = (pid_t)MUST(fork());
	char byte;

	if (!child) {
		MUST(connect(fd, &end->address.any, end->length));
		_exit(0);
	}
	tcp_child_ended(child);
	tcp_talk(fd);

	MUST(pipe(connected));
	fd = tcp_socket(end);
	child = (pid_t)MUST(fork());
	if (!child) {
		SAME(read(connected[0], &byte, 1), 1);
		tcp_talk(fd);
		_exit(0);
	}
	MUST(connect(fd, &end->address.any, end->length));
	SAME(write(connected[1], "", 1), 1);
	tcp_child_ended(child);
	tcp_close(fd);
}

const struct tcp_case tcp_fork_cases[] = {
	TCP_CASE(fork_before_accept),
	TCP_CASE(fork_outlives_parent),
	TCP_CASE(fork_outlives_child),
	TCP_CASE(fork_both_write),
	TCP_CASE(fork_shuts),
	TCP_CASE(fork_twice),
	TCP_CASE(fork_in_send),
	TCP_CASE(fork_agrees),
	TCP_CASE(fork_agrees_listener),
	TCP_CASE(fork_shuts_read),
	TCP_CASE(fork_shuts_write),
	TCP_CASE(fork_takes_last),
	TCP_CASE(fork_listens),
	TCP_CASE(fork_connects),
	{ 0 },
};
