// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Waiting: O_NONBLOCK, timeouts, poll, select, epoll, signals. */
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include "sock_client.h"

void check_nonblocking(void)
{
	struct sock s = open_sock(family, SOCK_NONBLOCK);
	struct timeval tv = { .tv_usec = 50000 };
	double begin;
	int on = 0;

	CHECK(fcntl(s.fd, F_GETFL) & O_NONBLOCK, "SOCK_NONBLOCK");
	FAILS(receive(&s, 0, 0), EAGAIN);
	request(&s, &server, late, 1, 0, 0);
	FAILS(receive(&s, 0, 0), EAGAIN);
	CHECK(readable(s.fd, 10000), "nothing came");
	CHECK(receive(&s, 0, 0) == 1, "receive");
	/* Blocking again, by ioctl. */
	CHECK(!ioctl(s.fd, FIONBIO, &on), "FIONBIO");
	request(&s, &server, late, 1, 0, 0);
	FAILS(receive(&s, 0, MSG_DONTWAIT), EAGAIN);
	CHECK(receive(&s, 0, 0) == 1, "receive");
	/* SO_RCVTIMEO */
	CHECK(!setsockopt(s.fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)),
	      "RCVTIMEO");
	begin = now();
	FAILS(receive(&s, 0, 0), EAGAIN);
	CHECK(now() - begin > 0.04, "came back at once");
	close_sock(&s);
}

void check_polls(void)
{
	struct sock s = open_sock(family, 0);
	struct timespec ts = { 10, 0 };
	struct timeval tv = { 10, 0 };
	struct pollfd p = { .fd = s.fd, .events = POLLIN | POLLOUT };
	fd_set reads, writes;
	int fds[2];

	/* Always writable. */
	CHECK(poll(&p, 1, -1) == 1 && p.revents == POLLOUT, "%x", p.revents);
	FD_ZERO(&writes);
	FD_SET(s.fd, &writes);
	CHECK(select(s.fd + 1, NULL, &writes, NULL, NULL) == 1 &&
		      FD_ISSET(s.fd, &writes),
	      "select for writing");
	CHECK(!readable(s.fd, 0), "readable");
	request(&s, &server, late, 1, 0, 0);
	p.events = POLLIN;
	CHECK(ppoll(&p, 1, &ts, NULL) == 1 && p.revents == POLLIN, "%x",
	      p.revents);
	CHECK(readable(s.fd, 0), "not level-triggered");
	CHECK(receive(&s, 0, 0) == 1, "receive");
	CHECK(!readable(s.fd, 0), "readable after all was taken");
	/* select, beside a pipe */
	CHECK(!pipe(fds), "pipe");
	request(&s, &server, late, 1, 0, 0);
	FD_ZERO(&reads);
	FD_SET(s.fd, &reads);
	FD_SET(fds[0], &reads);
	CHECK(select((s.fd > fds[0] ? s.fd : fds[0]) + 1, &reads, NULL, NULL,
		     &tv) == 1 &&
		      FD_ISSET(s.fd, &reads) && !FD_ISSET(fds[0], &reads),
	      "select");
	CHECK(tv.tv_sec < 10, "the rest of the time");
	CHECK(receive(&s, 0, 0) == 1, "receive");
	FD_ZERO(&reads);
	FD_SET(s.fd, &reads);
	FD_SET(fds[0], &reads);
	CHECK(write(fds[1], "x", 1) == 1, "pipe");
	CHECK(pselect((s.fd > fds[0] ? s.fd : fds[0]) + 1, &reads, NULL, NULL,
		      &ts, NULL) == 1 &&
		      !FD_ISSET(s.fd, &reads) && FD_ISSET(fds[0], &reads),
	      "pselect");
	close(fds[0]);
	close(fds[1]);
	close_sock(&s);
}

static int wait_one(int ep, int ms)
{
	struct epoll_event event;
	int n = epoll_wait(ep, &event, 1, ms);

	CHECK(n >= 0, "epoll_wait");
	return n ? event.data.fd : -1;
}

static void add(int ep, int fd, unsigned int events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	CHECK(!epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event), "EPOLL_CTL_ADD");
}

void check_epoll_level(void)
{
	struct itimerspec soon = { .it_value.tv_nsec = 20000000 };
	struct sock s = open_sock(family, 0);
	int fds[2], timer, ep = epoll_create1(0);
	struct epoll_event event;
	char byte;

	timer = timerfd_create(CLOCK_MONOTONIC, 0);
	CHECK(!pipe(fds) && timer >= 0 && ep >= 0, "descriptors");
	add(ep, s.fd, EPOLLIN);
	add(ep, fds[0], EPOLLIN);
	add(ep, timer, EPOLLIN);
	CHECK(wait_one(ep, 0) == -1, "early");
	timerfd_settime(timer, 0, &soon, NULL);
	CHECK(wait_one(ep, 10000) == timer, "timer");
	CHECK(read(timer, &(uint64_t){ 0 }, 8) == 8, "timer");
	CHECK(write(fds[1], "x", 1) == 1 && wait_one(ep, 10000) == fds[0],
	      "pipe");
	CHECK(read(fds[0], &byte, 1) == 1, "pipe");
	request(&s, &server, late, 1, 0, 0);
	CHECK(wait_one(ep, 10000) == s.fd && wait_one(ep, 0) == s.fd, "Homa");
	CHECK(receive(&s, 0, 0) == 1 && wait_one(ep, 0) == -1, "Homa");
	/* Output: always. */
	event.events = EPOLLIN | EPOLLOUT;
	event.data.fd = s.fd;
	CHECK(!epoll_ctl(ep, EPOLL_CTL_MOD, s.fd, &event), "EPOLL_CTL_MOD");
	CHECK(epoll_wait(ep, &event, 1, 0) == 1 && event.events == EPOLLOUT &&
		      event.data.fd == s.fd,
	      "%x", event.events);
	CHECK(wait_one(ep, 0) == s.fd, "not level-triggered");
	event.events = EPOLLIN;
	CHECK(!epoll_ctl(ep, EPOLL_CTL_MOD, s.fd, &event) && wait_one(ep, 0) == -1,
	      "MOD");
	CHECK(!epoll_ctl(ep, EPOLL_CTL_DEL, s.fd, NULL), "EPOLL_CTL_DEL");
	request(&s, &server, late, 1, 0, 0);
	CHECK(wait_one(ep, 300) == -1 && receive(&s, 0, 0) == 1, "DEL");
	close(ep);
	close(timer);
	close_sock(&s);
}

void check_epoll_edge(void)
{
	struct sock s = open_sock(family, 0);
	int i, ep = epoll_create1(0);

	add(ep, s.fd, EPOLLIN | EPOLLET);
	for (i = 0; i < 5; i++) {
		/* None is taken, yet each one that comes is told. */
		request(&s, &server, late, 1, 0, 0);
		CHECK(wait_one(ep, 10000) == s.fd, "message %d has no edge", i);
		CHECK(wait_one(ep, 0) == -1, "a second edge");
	}
	for (i = 0; i < 5; i++)
		CHECK(receive(&s, 0, MSG_DONTWAIT) == 1, "receive");
	FAILS(receive(&s, 0, MSG_DONTWAIT), EAGAIN);
	request(&s, &server, late, 1, 0, 0);
	CHECK(wait_one(ep, 10000) == s.fd, "no edge after all were taken");
	CHECK(receive(&s, 0, 0) == 1, "receive");
	close(ep);
	close_sock(&s);
}

static void on_alarm(int sig)
{
	(void)sig;
}

/* A wait for RPC @id, or any, that signals interrupt; a library may miss the first. */
static void interrupted(struct sock *s, uint64_t id, int flags)
{
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = flags };
	struct itimerval often = { { .tv_usec = 47000 }, { .tv_usec = 47000 } };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	FAILS(receive(s, id, 0), EINTR);
	memset(&often, 0, sizeof(often));
	setitimer(ITIMER_REAL, &often, NULL);
	/* What was asked for is not the id of an RPC that failed. */
	CHECK(!s->args.id && !s->args.num_bpages, "id, pages");
}

void check_signals(void)
{
	struct sock s = open_sock(family, 0);
	uint64_t id;

	interrupted(&s, 0, 0);
	sock_call(&s, 10, 1);
	id = request(&s, &server, ignore, 1, 9, HOMA_SENDMSG_PRIVATE);
	FAILS(receive(&s, id, MSG_DONTWAIT), EAGAIN);
	CHECK(!s.args.id && !s.args.num_bpages, "id, pages");
	interrupted(&s, id, 0);
	/* The kernel cannot begin the call again, with the id gone. */
	interrupted(&s, id, SA_RESTART);
	sock_call(&s, 10, 2);
	close_sock(&s);
}

static struct sock handled;

/* A signal handler may do with descriptors what it likes. */
static void in_handler(int sig)
{
	struct pollfd p = { .fd = handled.fd, .events = POLLIN };
	int old = errno, fd = dup(handled.fd);

	(void)sig;
	if (fd >= 0)
		close(fd);
	poll(&p, 1, 0);
	errno = old;
}

void check_handlers(void)
{
	struct sigaction action = { .sa_handler = in_handler,
				    .sa_flags = SA_RESTART };
	struct itimerval often = { { .tv_usec = 500 }, { .tv_usec = 500 } };
	double end = now() + 2;
	unsigned int i;

	handled = open_sock(family, 0);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (i = 0; now() < end; i++) {
		ssize_t n;

		fill(buf, 2000, i);
		request(&handled, &server, buf, 2000, i, 0);
		do {
			n = receive(&handled, 0, 0);
		} while (n < 0 && errno == EINTR);
		CHECK(n == 2000 && handled.args.completion_cookie == i, "%zd", n);
		verify(&handled, 2000, i);
	}
	memset(&often, 0, sizeof(often));
	setitimer(ITIMER_REAL, &often, NULL);
	close_sock(&handled);
}
