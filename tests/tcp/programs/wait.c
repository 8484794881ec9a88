// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Waiting by poll() and select(), with signals, too.
 */
#include <sys/resource.h>
#include <sys/select.h>
#include "tcp_calls.h"

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
	(void)number;
	signals++;
}

static void ping__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_await(end);
	tcp_send(fd, 10, 0);
	tcp_await(end);
	MUST(shutdown(fd, SHUT_WR));
	tcp_expect_eof(fd);
	tcp_close(fd);
}

/* What poll() says of a connection during its life. */
static void poll_events__server(struct tcp_end *end)
{
	struct pollfd entries[4];
	int fd = tcp_accept_one(end);

	SAME(tcp_ask(fd, POLLIN | POLLOUT), POLLOUT);
	tcp_tell(end);
	SAME(tcp_poll(fd, POLLIN), POLLIN);
	SAME(tcp_ask(fd, POLLIN | POLLOUT | POLLPRI), POLLIN | POLLOUT);
	tcp_receive(fd, 10, 0);
	SAME(tcp_ask(fd, POLLIN), 0);
	tcp_tell(end);
	SAME(tcp_poll(fd, POLLIN | POLLRDHUP), POLLIN | POLLRDHUP);
	tcp_expect_eof(fd);
	SAME(tcp_ask(fd, POLLIN), POLLIN);
	/* Entries that are no descriptors. */
	entries[0] = (struct pollfd){ .fd = -1, .events = POLLIN, .revents = 7 };
	entries[1] = (struct pollfd){ .fd = 999, .events = POLLIN };
	entries[2] = (struct pollfd){ .fd = fd, .events = POLLIN };
	entries[3] = (struct pollfd){ .fd = fd, .events = POLLOUT };
	SAME(poll(entries, 4, TCP_PATIENCE), 3);
	SAME(entries[0].revents, 0);
	SAME(entries[1].revents, POLLNVAL);
	SAME(entries[2].revents, POLLIN);
	SAME(entries[3].revents, POLLOUT);
	tcp_close(fd);
	SAME(tcp_ask(fd, POLLIN), POLLNVAL);
}

#define poll_events__client ping__client

static void select_events__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	struct timeval time = { .tv_usec = 10000 };
	fd_set in, out, bad;

	FD_ZERO(&in);
	FD_SET(fd, &in);
	SAME(select(fd + 1, &in, NULL, NULL, &time), 0);
	EXPECT(!FD_ISSET(fd, &in));
	tcp_tell(end);
	FD_SET(fd, &in);
	SAME(select(fd + 1, &in, NULL, NULL, NULL), 1);
	EXPECT(FD_ISSET(fd, &in));
	FD_ZERO(&out);
	FD_ZERO(&bad);
	FD_SET(fd, &out);
	FD_SET(fd, &bad);
	SAME(select(fd + 1, &in, &out, &bad, NULL), 2);
	EXPECT(!FD_ISSET(fd, &bad));
	tcp_receive(fd, 10, 0);
	tcp_tell(end);
	SAME(select(fd + 1, &in, NULL, NULL, NULL), 1);
	tcp_expect_eof(fd);
	tcp_close(fd);
	FAILS(select(fd + 1, &in, NULL, NULL, NULL), EBADF);
}

#define select_events__client ping__client

/* Signals that are blocked but for the wait itself. */
static void block_signal(sigset_t *without)
{
	struct sigaction action = { .sa_handler = count_signal };
	sigset_t blocked;

	MUST(sigaction(SIGUSR1, &action, NULL));
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	MUST(sigprocmask(SIG_BLOCK, &blocked, without));
	MUST(raise(SIGUSR1));
	SAME(signals, 0);
}

static void waits_with_signals__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), set = (int)MUST(epoll_create1(0));
	struct epoll_event event = { .events = EPOLLIN };
	struct pollfd entry = { .fd = fd, .events = POLLIN };
	sigset_t without;
	fd_set in;

	MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
	block_signal(&without);
	FAILS(ppoll(&entry, 1, NULL, &without), EINTR);
	SAME(signals, 1);
	MUST(raise(SIGUSR1));
	FD_ZERO(&in);
	FD_SET(fd, &in);
	FAILS(pselect(fd + 1, &in, NULL, NULL, NULL, &without), EINTR);
	SAME(signals, 2);
	MUST(raise(SIGUSR1));
	FAILS(epoll_pwait(set, &event, 1, -1, &without), EINTR);
	SAME(signals, 3);
	/* The mask is as it was. */
	MUST(raise(SIGUSR1));
	SAME(signals, 3);
	/* What is ready comes without the signal, or instead of it the next time. */
	MUST(sigprocmask(SIG_SETMASK, &without, NULL));
	SAME(signals, 4);
	tcp_tell(end);
	SAME(ppoll(&entry, 1, &(struct timespec){ .tv_sec = 20 }, NULL), 1);
	SAME(epoll_pwait(set, &event, 1, TCP_PATIENCE, &without), 1);
	tcp_receive(fd, 10, 0);
	tcp_tell(end);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

#define waits_with_signals__client ping__client

/* A call that does not wait lets signals in, too. */
static void looks_with_signals__server(struct tcp_end *end)
{
	const struct timespec now = { 0 };
	int fd = tcp_accept_one(end);
	struct pollfd entry = { .fd = fd, .events = POLLIN };
	sigset_t without;
	fd_set in;

	block_signal(&without);
	SAME(ppoll(&entry, 1, &now, NULL), 0);
	SAME(signals, 0);
	FAILS(ppoll(&entry, 1, &now, &without), EINTR);
	SAME(signals, 1);
	SAME(ppoll(&entry, 1, &now, &without), 0);
	MUST(raise(SIGUSR1));
	FD_ZERO(&in);
	FD_SET(fd, &in);
	FAILS(pselect(fd + 1, &in, NULL, NULL, &now, &without), EINTR);
	SAME(signals, 2);
	SAME(pselect(fd + 1, &in, NULL, NULL, &now, &without), 0);
	/* What is ready goes before the signal. */
	MUST(raise(SIGUSR1));
	entry.events = POLLOUT;
	SAME(ppoll(&entry, 1, &now, &without), 1);
	SAME(signals, 2);
	tcp_tell(end);
	entry.events = POLLIN;
	SAME(poll(&entry, 1, TCP_PATIENCE), 1);
	tcp_receive(fd, 10, 0);
	tcp_tell(end);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

#define looks_with_signals__client ping__client

/* select() does not come back because of an end where nobody reads, and poll() takes as many
 * entries as there may be descriptors. */
static void waits_in_vain__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end), ends[2], i, most;
	struct timeval time = { .tv_usec = 50000 };
	struct pollfd *entries;
	struct rlimit limit;
	fd_set bad;

	MUST(getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_cur < 1024 ? limit.rlim_cur : 1024;
	MUST(setrlimit(RLIMIT_NOFILE, &limit));
	most = (int)limit.rlim_cur;
	entries = calloc((size_t)most, sizeof(*entries));
	EXPECT(entries);
	MUST(pipe(ends));
	for (i = 0; i < most; i++)
		entries[i].fd = -1;
	entries[most - 1] = (struct pollfd){ .fd = fd, .events = POLLIN };
	entries[most - 2] = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	SAME(poll(entries, (nfds_t)most, 10), 0);
	tcp_tell(end);
	SAME(poll(entries, (nfds_t)most, TCP_PATIENCE), 1);
	SAME(entries[most - 1].revents, POLLIN);
	free(entries);
	tcp_receive(fd, 10, 0);
	tcp_tell(end);
	tcp_expect_eof(fd);
	MUST(shutdown(fd, SHUT_WR));
	EXPECT(tcp_poll(fd, 0) & POLLHUP);
	FD_ZERO(&bad);
	FD_SET(fd, &bad);
	SAME(select(fd + 1, NULL, NULL, &bad, &time), 0);
	EXPECT(!FD_ISSET(fd, &bad));
	/* What is left of the time. */
	SAME(time.tv_usec, 0);
	FD_SET(fd, &bad);
	SAME(select(fd + 1, &bad, NULL, NULL, NULL), 1);
	tcp_close(fd);
}

#define waits_in_vain__client ping__client

/* A signal ends recv(), accept() and poll() with EINTR, or not if the handler says SA_RESTART. */
static void interrupted__server(struct tcp_end *end)
{
	struct sigaction action = { .sa_handler = count_signal };
	int fd = tcp_accept_one(end);
	pid_t self = getpid(), child;
	char bytes[10];

	MUST(sigaction(SIGUSR1, &action, NULL));
	child = (pid_t)MUST(fork());
	if (!child) {
		/* As often as it takes: the first may come before the call. */
		while (getppid() == self) {
			kill(self, SIGUSR1);
			usleep(3000);
		}
		_exit(0);
	}
	FAILS(recv(fd, bytes, 1, 0), EINTR);
	SAME(poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, -1), -1);
	SAME(errno, EINTR);
	action.sa_flags = SA_RESTART;
	MUST(sigaction(SIGUSR1, &action, NULL));
	signals = 0;
	tcp_tell(end);
	SAME(recv(fd, bytes, 10, MSG_WAITALL), 10);
	EXPECT(tcp_filled(bytes, 10, 0));
	MUST(kill(child, SIGKILL));
	MUST(waitpid(child, NULL, 0));
	tcp_tell(end);
	tcp_expect_eof(fd);
	tcp_close(fd);
}

static void interrupted__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);

	tcp_await(end);
	/* Signals meanwhile restart the call. */
	usleep(20000);
	tcp_send(fd, 10, 0);
	tcp_await(end);
	MUST(shutdown(fd, SHUT_WR));
	tcp_expect_eof(fd);
	tcp_close(fd);
}

/* A full socket is not writable until its peer has read, by poll(). */
static void writable_again__server(struct tcp_end *end)
{
	int fd = tcp_accept_one(end);
	size_t sent = tcp_send_full(fd);

	SAME(tcp_ask(fd, POLLOUT), 0);
	tcp_tell(end);
	SAME(tcp_poll(fd, POLLOUT), POLLOUT);
	tcp_send(fd, 100, sent);
	tcp_close(fd);
}

static void writable_again__client(struct tcp_end *end)
{
	int fd = tcp_connect(end);
	static char bytes[65536];
	size_t all = 0;
	ssize_t got;

	tcp_await(end);
	while ((got = MUST(recv(fd, bytes, sizeof(bytes), 0))) > 0) {
		EXPECT(tcp_filled(bytes, (size_t)got, all));
		all += (size_t)got;
	}
	EXPECT(all > 100);
	tcp_close(fd);
}

const struct tcp_case tcp_wait_cases[] = {
	TCP_CASE(poll_events),	      TCP_CASE(select_events),
	TCP_CASE(waits_with_signals), TCP_CASE(interrupted),
	TCP_CASE(looks_with_signals), TCP_CASE(waits_in_vain),
	TCP_CASE(writable_again),     { 0 },
};
