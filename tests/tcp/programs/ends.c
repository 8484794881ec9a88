// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What becomes of bytes that are under way when a program closes with SO_LINGER, ends or is
 * killed: all of them arrive and the end comes behind them, or there is a reset, and nobody
 * waits for ever.
 */
#include <sys/syscall.h>
#include "tcp_calls.h"

static void set_linger(int fd, int seconds)
{
	struct linger linger = { .l_onoff = 1, .l_linger = seconds };

	MUST(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
}

/* All bytes until recv() says something else: how many. */
static size_t receive_rest(int fd, int *error)
{
	unsigned char piece[65536];
	size_t all = 0;
	ssize_t got;

	while ((got = recv(fd, piece, sizeof(piece), 0)) > 0) {
		EXPECT(tcp_filled(piece, (size_t)got, all));
		all += (size_t)got;
	}
	*error = got ? errno : 0;
	return all;
}

/* How many bytes the client has got off its hands comes from it by SYNC, when they are. */
static void receive_what_was_sent(struct tcp_end *end, int fd)
{
	size_t sent;
	int error;

	tcp_await(end);
	SAME(read(end->sync, &sent, sizeof(sent)), sizeof(sent));
	SAME(receive_rest(fd, &error), sent);
	SAME(error, 0);
	tcp_close(fd);
}

static void tell_sent(struct tcp_end *end, size_t sent)
{
	tcp_tell(end);
	SAME(write(end->sync, &sent, sizeof(sent)), sizeof(sent));
}

/* ---- more bytes than the peer takes ---- */

/* bytes; a server whose SO_RCVBUF is small takes fewer before it reads */
#define TOO_MANY 100000u

/* Sends as much as fits, until that is too much for the server. */
static size_t send_too_many(int fd)
{
	size_t sent = 0;

	tcp_set(fd, SOL_SOCKET, SO_SNDBUF, 2 * TOO_MANY);
	while (sent < TOO_MANY) {
		EXPECT(tcp_poll(fd, POLLOUT) & POLLOUT);
		sent += tcp_send_full_from(fd, sent);
	}
	return sent;
}

/* A connection whose client cannot get TOO_MANY bytes off its hands while nobody reads. */
static int accept_few_bytes(const struct tcp_end *end)
{
	int listener = tcp_bound(end), fd;

	tcp_set(listener, SOL_SOCKET, SO_RCVBUF, 16384);
	MUST(listen(listener, 4));
	tcp_ready();
	fd = tcp_accept(listener);
	tcp_close(listener);
	return fd;
}

/* ---- close() waits ---- */

struct closing {
	int fd;
	pid_t thread; /* atomic; 0: it has not begun */
	bool closed;  /* atomic */
};

static void *close_it(void *arg)
{
	struct closing *closing = arg;

	__atomic_store_n(&closing->thread, (pid_t)syscall(SYS_gettid),
			 __ATOMIC_SEQ_CST);
	tcp_close(closing->fd);
	__atomic_store_n(&closing->closed, true, __ATOMIC_SEQ_CST);
	return NULL;
}

static void linger_waits__server(struct tcp_end *end)
{
	receive_what_was_sent(end, accept_few_bytes(end));
}

/*
 * Until the peer has all, also if the socket does not block otherwise. That a socket is full for
 * once says nothing: buffers grow, and then all of its bytes may fit into the peer's.
 */
static void linger_waits__client(struct tcp_end *end)
{
	struct closing closing = { .fd = tcp_connect(end) };
	pthread_t thread;
	size_t sent;
	pid_t number;

	tcp_nonblocking(closing.fd, true);
	sent = send_too_many(closing.fd);
	set_linger(closing.fd, 1000);
	SAME(pthread_create(&thread, NULL, close_it, &closing), 0);
	while (!(number = __atomic_load_n(&closing.thread, __ATOMIC_SEQ_CST)))
		usleep(1000);
	tcp_await_sleep(number);
	EXPECT(!__atomic_load_n(&closing.closed, __ATOMIC_SEQ_CST));
	tell_sent(end, sent);
	SAME(pthread_join(thread, NULL), 0);
}

/* No longer than was asked for, and what was not sent then is sent later. */
static void linger_ends__server(struct tcp_end *end)
{
	receive_what_was_sent(end, tcp_accept_one(end));
}

static void linger_ends__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	size_t sent = tcp_send_full(fd);

	set_linger(fd, 1);
	tcp_close(fd);
	tell_sent(end, sent);
}

/* ---- nothing is waited for, and bytes are lost ---- */

/* The test says so where SO_RCVBUF limits nothing: then all may have come before close(). Another
 * test fills all buffers there (test_supervisor_attacked.py). */
static bool took_all(void)
{
	return getenv("TCP_TAKES_ALL");
}

static void linger_zero_drops__server(struct tcp_end *end)
{
	int fd = accept_few_bytes(end), error;
	size_t sent, got;

	/* A connection that is reset before accept() need not be told of; and bytes that were
	 * lost on their way do not come again after a reset. */
	tcp_receive(fd, 1, 7);
	tcp_send(fd, 1, 7);
	tcp_await(end);
	SAME(read(end->sync, &sent, sizeof(sent)), sizeof(sent));
	/* Who reads before the reset has come may get all. */
	EXPECT(tcp_poll(fd, 0) & POLLHUP);
	got = receive_rest(fd, &error);
	SAME(error, ECONNRESET);
	EXPECT(took_all() ? got <= sent : got < sent);
	tcp_close(fd);
}

static void linger_zero_drops__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	size_t sent;

	tcp_greet(fd);
	sent = send_too_many(fd);
	set_linger(fd, 0);
	tcp_close(fd);
	tell_sent(end, sent);
}

/* Also if the program does not close, but ends. */
#define linger_zero_exit__server linger_zero_drops__server

static void linger_zero_exit__client(struct tcp_end *end)
{
	int pipe_ends[2];
	size_t sent = 0;
	pid_t child;

	MUST(pipe(pipe_ends));
	child = (pid_t)MUST(fork());
	if (!child) {
		int fd = tcp_connect(end);

		tcp_greet(fd);
		sent = send_too_many(fd);
		set_linger(fd, 0);
		SAME(write(pipe_ends[1], &sent, sizeof(sent)), sizeof(sent));
		_exit(0);
	}
	SAME(read(pipe_ends[0], &sent, sizeof(sent)), sizeof(sent));
	tcp_child_ended(child);
	tell_sent(end, sent);
}

/* ---- programs that are killed ---- */

/* A child sends as much as fits and is killed; its bytes arrive, and the end behind them. */
static void killed_after_sending(struct tcp_end *end, int signal)
{
	int pipe_ends[2], status;
	size_t sent = 0;
	pid_t child;

	MUST(pipe(pipe_ends));
	child = (pid_t)MUST(fork());
	if (!child) {
		sent = tcp_send_full(tcp_connect(end));
		SAME(write(pipe_ends[1], &sent, sizeof(sent)), sizeof(sent));
		for (;;)
			pause();
	}
	close(pipe_ends[1]);
	SAME(read(pipe_ends[0], &sent, sizeof(sent)), sizeof(sent));
	MUST(kill(child, signal));
	SAME(waitpid(child, &status, 0), child);
	EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == signal);
	tell_sent(end, sent);
}

#define terminated_after_send__server linger_ends__server

static void terminated_after_send__client(struct tcp_end *end)
{
	killed_after_sending(end, SIGTERM);
}

#define killed_after_send__server linger_ends__server

static void killed_after_send__client(struct tcp_end *end)
{
	killed_after_sending(end, SIGKILL);
}

/* A server that has read all and answered is killed: nothing of the answer is lost. */
static void terminated_after_answer__server(struct tcp_end *end)
{
	pid_t child = (pid_t)MUST(fork());
	int status;

	if (!child) {
		int fd = tcp_accept_one(end);

		tcp_receive(fd, 30000, 0);
		tcp_send(fd, 30000, 5);
		raise(SIGTERM);
	}
	SAME(waitpid(child, &status, 0), child);
	EXPECT(WIFSIGNALED(status));
	tcp_tell(end);
}

static void terminated_after_answer__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_send(fd, 30000, 0);
	tcp_await(end);
	tcp_receive(fd, 30000, 5);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

/* One that has not read everything resets, as if it had closed. */
static void terminated_unread__server(struct tcp_end *end)
{
	pid_t child = (pid_t)MUST(fork());
	int status;

	if (!child) {
		int fd = tcp_accept_one(end), waiting = 0;

		while (waiting < 1000)
			MUST(ioctl(fd, FIONREAD, &waiting));
		raise(SIGTERM);
	}
	SAME(waitpid(child, &status, 0), child);
	EXPECT(WIFSIGNALED(status));
}

static void terminated_unread__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	char byte;

	tcp_send(fd, 1000, 0);
	FAILS(recv(fd, &byte, 1, 0), ECONNRESET);
	tcp_close(fd);
}

/* Connections that nobody has accepted end with their server, and no client waits for ever. */
static void terminated_unaccepted__server(struct tcp_end *end)
{
	pid_t child = (pid_t)MUST(fork());
	int status;

	if (!child) {
		tcp_listening(end, 16);
		tcp_ready();
		for (;;)
			pause();
	}
	tcp_await(end);
	MUST(kill(child, SIGTERM));
	SAME(waitpid(child, &status, 0), child);
	EXPECT(WIFSIGNALED(status));
}

static void terminated_unaccepted__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	char byte;

	tcp_tell(end);
	EXPECT(recv(fd, &byte, 1, 0) <= 0);
	tcp_close(fd);
}

const struct tcp_case tcp_end_cases[] = {
	TCP_CASE(linger_waits),
	TCP_CASE(linger_ends),
	TCP_CASE(linger_zero_drops),
	TCP_CASE(linger_zero_exit),
	TCP_CASE(terminated_after_send),
	TCP_CASE(killed_after_send),
	TCP_CASE(terminated_after_answer),
	TCP_CASE(terminated_unread),
	TCP_CASE(terminated_unaccepted),
	{ 0 },
};
