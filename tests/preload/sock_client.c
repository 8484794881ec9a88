// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Checks of the socket API against a sock_server:
 *
 *	sock_client 4|6 IP PORT CHECK
 *
 * Prints "ok", or says what is wrong and ends with 1.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include "sock.h"

static int family;
static union address server, nobody;
static unsigned char buf[HOMA_MAX_MESSAGE_LENGTH];

static const char ignore[] = { IGNORE };
static const char late[] = { LATE };

/* One request and its response. */
static void call(struct sock *s, size_t size, unsigned int seed)
{
	uint64_t id;
	ssize_t n;

	fill(buf, size, seed);
	id = request(s, &server, buf, size, seed, 0);
	n = receive(s, 0, 0);
	CHECK(n == (ssize_t)size, "%zd of %zu bytes", n, size);
	CHECK(s->args.id == id, "another RPC");
	CHECK(s->args.completion_cookie == seed, "cookie");
	CHECK(s->from.in4.sin_port == server.in4.sin_port, "port %d",
	      ntohs(s->from.in4.sin_port));
	if (family == AF_INET)
		CHECK(s->from.in4.sin_addr.s_addr == server.in4.sin_addr.s_addr, "ip");
	else
		CHECK(!memcmp(&s->from.in6.sin6_addr, &server.in6.sin6_addr, 16), "ip");
	verify(s, size, seed);
}

static void sizes(void)
{
	static const size_t all[] = { 1, 2, 100, 1400, 1500, 9000, 65535, 65536,
				      65537, 131072, 500000, 999999, 1000000 };
	struct sock s = open_sock(family, 0);
	unsigned int i;

	for (i = 0; i < 3 * sizeof(all) / sizeof(*all); i++)
		call(&s, all[i % (sizeof(all) / sizeof(*all))], i + 1);
	close_sock(&s);
}

static void async(void)
{
	struct sock s = open_sock(family, 0);
	unsigned char seen[200] = { 0 };
	unsigned int i;

	for (i = 0; i < sizeof(seen); i++) {
		fill(buf, 100 + i * 50, i);
		request(&s, &server, buf, 100 + i * 50, 1000 + i, 0);
	}
	for (i = 0; i < sizeof(seen); i++) {
		ssize_t n = receive(&s, 0, 0);
		uint64_t which = s.args.completion_cookie - 1000;

		CHECK(which < sizeof(seen) && !seen[which]++, "cookie");
		CHECK(n == 100 + (ssize_t)which * 50, "%zd bytes", n);
		verify(&s, (size_t)n, (unsigned int)which);
	}
	close_sock(&s);
}

static void private_rpc(void)
{
	struct sock s = open_sock(family, 0);
	uint64_t one, two, common;
	ssize_t n;

	fill(buf, 500, 1);
	one = request(&s, &server, buf, 500, 11, HOMA_SENDMSG_PRIVATE);
	fill(buf, 700000, 2);
	two = request(&s, &server, buf, 700000, 22, HOMA_SENDMSG_PRIVATE);
	/* Invisible but by id. */
	usleep(200000);
	CHECK(!readable(s.fd, 0), "poll sees a private RPC");
	FAILS(receive(&s, 0, MSG_DONTWAIT), EAGAIN);
	n = receive(&s, two, 0);
	CHECK(n == 700000 && s.args.id == two && s.args.completion_cookie == 22,
	      "%zd", n);
	verify(&s, 700000, 2);
	n = receive(&s, one, 0);
	CHECK(n == 500 && s.args.id == one && s.args.completion_cookie == 11, "%zd", n);
	verify(&s, 500, 1);
	/* Received, unknown, not private. */
	FAILS(receive(&s, one, 0), EINVAL);
	FAILS(receive(&s, 0x123456, 0), EINVAL);
	common = request(&s, &server, buf, 10, 0, 0);
	FAILS(receive(&s, common, 0), EINVAL);
	CHECK(receive(&s, 0, 0) == 10 && s.args.id == common, "shared");
	close_sock(&s);
}

static void aborts(void)
{
	struct sock s = open_sock(family, 0);
	struct homa_abort_args a = { 0 };

	/* With an error it comes back with id and cookie. */
	a.id = request(&s, &server, ignore, 1, 5, 0);
	a.error = ECANCELED;
	CHECK(!ioctl(s.fd, HOMAIOCABORT, &a), "abort");
	FAILS(receive(&s, 0, 0), ECANCELED);
	CHECK(s.args.id == a.id && s.args.completion_cookie == 5, "id, cookie");
	FAILS(ioctl(s.fd, HOMAIOCABORT, &a), EINVAL);
	/* Without one it vanishes. */
	a.id = request(&s, &server, ignore, 1, 6, 0);
	a.error = 0;
	CHECK(!ioctl(s.fd, HOMAIOCABORT, &a), "abort");
	FAILS(receive(&s, 0, MSG_DONTWAIT), EAGAIN);
	/* All at once; private ones, too. */
	request(&s, &server, ignore, 1, 7, 0);
	request(&s, &server, ignore, 1, 8, 0);
	a.id = 0;
	a.error = ETIME;
	CHECK(!ioctl(s.fd, HOMAIOCABORT, &a), "abort");
	FAILS(receive(&s, 0, 0), ETIME);
	FAILS(receive(&s, 0, 0), ETIME);
	a.id = request(&s, &server, ignore, 1, 9, HOMA_SENDMSG_PRIVATE);
	a.error = 0;
	CHECK(!ioctl(s.fd, HOMAIOCABORT, &a), "abort");
	FAILS(receive(&s, a.id, 0), EINVAL);
	call(&s, 100, 3);
	close_sock(&s);
}

static void information(void)
{
	struct sock s = open_sock(family, 0);
	struct homa_rpc_info rpcs[4];
	struct homa_info info = { .rpc_info = rpcs, .rpc_info_length = sizeof(rpcs) };
	union address us;
	socklen_t size = sizeof(us);
	uint64_t id;
	int i;

	CHECK(!getsockname(s.fd, &us.sa, &size) && size == size_of(family), "%u", size);
	CHECK(ntohs(us.in4.sin_port) >= HOMA_MIN_DEFAULT_PORT, "port");
	CHECK(!ioctl(s.fd, HOMAIOCINFO, &info), "info");
	CHECK(info.port == ntohs(us.in4.sin_port), "port %u", info.port);
	CHECK(info.num_rpcs == 0, "%u RPCs", info.num_rpcs);
	CHECK(info.bpool_avail_bytes == REGION, "%llu", (unsigned long long)info.bpool_avail_bytes);
	request(&s, &server, ignore, 1, 5, 0);
	id = request(&s, &server, ignore, 1, 7, HOMA_SENDMSG_PRIVATE);
	/* They may still be on their way to who runs the protocol. */
	for (i = 0; i < 200 && info.num_rpcs < 2; i++) {
		usleep(10000);
		CHECK(!ioctl(s.fd, HOMAIOCINFO, &info), "info");
	}
	CHECK(info.num_rpcs == 2, "%u RPCs", info.num_rpcs);
	if (rpcs[0].id != id)
		rpcs[0] = rpcs[1];
	CHECK(rpcs[0].id == id && rpcs[0].completion_cookie == 7, "id, cookie");
	CHECK(rpcs[0].flags & HOMA_RPC_PRIVATE, "flags %x", rpcs[0].flags);
	CHECK(rpcs[0].tx_length == 1, "%d", rpcs[0].tx_length);
	CHECK(rpcs[0].peer.in4.sin_family == family &&
		      rpcs[0].peer.in4.sin_port == server.in4.sin_port, "peer");
	/* Less room than RPCs. */
	info.rpc_info_length = sizeof(rpcs[0]) + 5;
	rpcs[1].id = 99;
	CHECK(!ioctl(s.fd, HOMAIOCINFO, &info) && info.num_rpcs == 2, "info");
	CHECK(rpcs[1].id == 99, "written beyond the end");
	FAILS(receive(&s, 0x998, 0), EINVAL);
	CHECK(!ioctl(s.fd, HOMAIOCINFO, &info) && strlen(info.error_msg) > 10,
	      "'%s'", info.error_msg);
	close_sock(&s);
}

static void *blocked(void *arg)
{
	struct sock *s = arg;

	FAILS(receive(s, 0, 0), ESHUTDOWN);
	return NULL;
}

static void shuts(void)
{
	struct sock s = open_sock(family, 0), copy = s;
	struct homa_sendmsg_args args = { 0 };
	pthread_t thread;

	call(&s, 10, 1);
	copy = s;
	copy.args.num_bpages = 0;
	request(&s, &server, ignore, 1, 0, 0);
	CHECK(!pthread_create(&thread, NULL, blocked, &copy), "thread");
	usleep(50000);
	CHECK(!readable(s.fd, 0), "readable");
	CHECK(!shutdown(s.fd, SHUT_RD), "shutdown");
	pthread_join(thread, NULL);
	CHECK(readable(s.fd, 1000), "not readable after shutdown");
	CHECK(readable(s.fd, 0), "not readable for ever");
	FAILS(receive(&s, 0, 0), ESHUTDOWN);
	FAILS(send_raw(s.fd, &server, size_of(family), buf, 10, &args, 0), ESHUTDOWN);
	CHECK(!shutdown(s.fd, SHUT_RDWR), "a second shutdown");
	close_sock(&s);
}

static void failures(void)
{
	struct sock s = open_sock(family, 0);
	uint64_t id;

	id = request(&s, &nobody, buf, 10, 77, 0);
	FAILS(receive(&s, 0, 0), ENOTCONN);
	CHECK(s.args.id == id && s.args.completion_cookie == 77, "id, cookie");
	CHECK(s.from.in4.sin_port == nobody.in4.sin_port, "port");
	id = request(&s, &nobody, buf, 10, 78, HOMA_SENDMSG_PRIVATE);
	FAILS(receive(&s, id, 0), ENOTCONN);
	CHECK(s.args.id == id && s.args.completion_cookie == 78, "id, cookie");
	FAILS(receive(&s, id, 0), EINVAL);
	call(&s, 10, 1);
	close_sock(&s);
}

static void nonblocking(void)
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
	CHECK(!setsockopt(s.fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), "RCVTIMEO");
	begin = now();
	FAILS(receive(&s, 0, 0), EAGAIN);
	CHECK(now() - begin > 0.04, "came back at once");
	close_sock(&s);
}

static void polls(void)
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
		      FD_ISSET(s.fd, &writes), "select for writing");
	CHECK(!readable(s.fd, 0), "readable");
	request(&s, &server, late, 1, 0, 0);
	p.events = POLLIN;
	CHECK(ppoll(&p, 1, &ts, NULL) == 1 && p.revents == POLLIN, "%x", p.revents);
	CHECK(readable(s.fd, 0), "not level-triggered");
	CHECK(receive(&s, 0, 0) == 1, "receive");
	CHECK(!readable(s.fd, 0), "readable after all was taken");
	/* select, beside a pipe */
	CHECK(!pipe(fds), "pipe");
	request(&s, &server, late, 1, 0, 0);
	FD_ZERO(&reads);
	FD_SET(s.fd, &reads);
	FD_SET(fds[0], &reads);
	CHECK(select((s.fd > fds[0] ? s.fd : fds[0]) + 1, &reads, NULL, NULL, &tv) == 1 &&
		      FD_ISSET(s.fd, &reads) && !FD_ISSET(fds[0], &reads), "select");
	CHECK(tv.tv_sec < 10, "the rest of the time");
	CHECK(receive(&s, 0, 0) == 1, "receive");
	FD_ZERO(&reads);
	FD_SET(s.fd, &reads);
	FD_SET(fds[0], &reads);
	CHECK(write(fds[1], "x", 1) == 1, "pipe");
	CHECK(pselect((s.fd > fds[0] ? s.fd : fds[0]) + 1, &reads, NULL, NULL, &ts, NULL) == 1 &&
		      !FD_ISSET(s.fd, &reads) && FD_ISSET(fds[0], &reads), "pselect");
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

static void epoll_level(void)
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
	CHECK(write(fds[1], "x", 1) == 1 && wait_one(ep, 10000) == fds[0], "pipe");
	CHECK(read(fds[0], &byte, 1) == 1, "pipe");
	request(&s, &server, late, 1, 0, 0);
	CHECK(wait_one(ep, 10000) == s.fd && wait_one(ep, 0) == s.fd, "Homa");
	CHECK(receive(&s, 0, 0) == 1 && wait_one(ep, 0) == -1, "Homa");
	/* Output: always. */
	event.events = EPOLLIN | EPOLLOUT;
	event.data.fd = s.fd;
	CHECK(!epoll_ctl(ep, EPOLL_CTL_MOD, s.fd, &event), "EPOLL_CTL_MOD");
	CHECK(epoll_wait(ep, &event, 1, 0) == 1 && event.events == EPOLLOUT &&
		      event.data.fd == s.fd, "%x", event.events);
	CHECK(wait_one(ep, 0) == s.fd, "not level-triggered");
	event.events = EPOLLIN;
	CHECK(!epoll_ctl(ep, EPOLL_CTL_MOD, s.fd, &event) && wait_one(ep, 0) == -1, "MOD");
	CHECK(!epoll_ctl(ep, EPOLL_CTL_DEL, s.fd, NULL), "EPOLL_CTL_DEL");
	request(&s, &server, late, 1, 0, 0);
	CHECK(wait_one(ep, 300) == -1 && receive(&s, 0, 0) == 1, "DEL");
	close(ep);
	close(timer);
	close_sock(&s);
}

static void epoll_edge(void)
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

static void dups(void)
{
	struct sock s = open_sock(family, 0);
	struct sock copy = s;
	int first = s.fd, fds[2];
	struct stat st;

	call(&s, 100, 1);
	copy.fd = dup(first);
	CHECK(copy.fd >= 0 && copy.fd != first, "dup");
	CHECK(!(fcntl(copy.fd, F_GETFD) & FD_CLOEXEC), "FD_CLOEXEC");
	copy.args = s.args;
	/* A request through one, its response through the other. */
	request(&s, &server, buf, 10, 3, 0);
	CHECK(receive(&copy, 0, 0) == 10 && copy.args.completion_cookie == 3, "dup");
	/* Flags of the description are common. */
	CHECK(!fcntl(first, F_SETFL, O_NONBLOCK), "F_SETFL");
	CHECK(fcntl(copy.fd, F_GETFL) & O_NONBLOCK, "F_GETFL");
	CHECK(!fcntl(first, F_SETFL, 0), "F_SETFL");
	CHECK(readable(copy.fd, 0) == 0, "armed");
	CHECK(!close(first), "close");
	call(&copy, 1000, 4);
	/* Over a pipe's end, and back. */
	CHECK(!pipe(fds), "pipe");
	CHECK(dup2(copy.fd, fds[0]) == fds[0], "dup2");
	FAILS(write(fds[1], "x", 1), EPIPE);
	close(copy.fd);
	copy.fd = fcntl(fds[0], F_DUPFD_CLOEXEC, 100);
	CHECK(copy.fd >= 100 && fcntl(copy.fd, F_GETFD) == FD_CLOEXEC, "F_DUPFD_CLOEXEC");
	CHECK(dup3(fds[1], fds[0], O_CLOEXEC) == fds[0], "dup3");
	CHECK(!fstat(fds[0], &st) && S_ISFIFO(st.st_mode), "not a pipe again");
	request(&copy, &server, late, 1, 0, 0);
	CHECK(readable(copy.fd, 10000), "poll");
	CHECK(receive(&copy, 0, 0) == 1, "receive");
	CHECK(!close_range((unsigned int)copy.fd, (unsigned int)copy.fd, 0), "close_range");
	FAILS(receive(&copy, 0, 0), EBADF);
	close(fds[0]);
	close(fds[1]);
}

static void forks(void)
{
	struct sock s = open_sock(family, 0);
	int i, status;
	pid_t pid;

	call(&s, 100, 1);
	CHECK(!readable(s.fd, 0), "armed");
	request(&s, &server, late, 1, 42, 0);
	for (i = 0; i < 3; i++) {
		pid = i == 2 ? vfork() : fork();
		if (!pid) {
			if (i == 1) {
				/* What is open in the parent is not ours. */
				s.args.num_bpages = 0;
				call(&s, 5000, 2);
				request(&s, &server, late, 1, 0, 0);
				CHECK(readable(s.fd, 10000), "poll in the child");
				CHECK(receive(&s, 0, 0) == 1, "child");
			}
			close(s.fd);
			_exit(0);
		}
		CHECK(waitpid(pid, &status, 0) == pid && !status, "child %d: %x", i, status);
	}
	/* The parent has noticed nothing of it. */
	CHECK(readable(s.fd, 10000), "poll in the parent");
	CHECK(receive(&s, 0, 0) == 1 && s.args.completion_cookie == 42, "parent");
	call(&s, 100000, 3);
	close_sock(&s);
}

static void *caller(void *arg)
{
	struct sock s = *(struct sock *)arg;
	static __thread unsigned char bytes[20000];
	unsigned int i;

	for (i = 0; i < 100; i++) {
		size_t size = 1 + (i * 197) % sizeof(bytes);
		uint64_t id;
		ssize_t n;

		fill(bytes, size, i);
		id = request(&s, &server, bytes, size, i, HOMA_SENDMSG_PRIVATE);
		n = receive(&s, id, 0);
		CHECK(n == (ssize_t)size, "%zd", n);
		verify(&s, size, i);
	}
	/* Pages go back by whatever recvmsg() comes next. */
	receive(&s, 0x776, 0);
	return NULL;
}

static void threads(void)
{
	struct sock s = open_sock(family, 0);
	struct homa_info info = { 0 };
	pthread_t ids[4];
	int i;

	for (i = 0; i < 4; i++)
		CHECK(!pthread_create(&ids[i], NULL, caller, &s), "thread");
	for (i = 0; i < 4; i++)
		pthread_join(ids[i], NULL);
	CHECK(!ioctl(s.fd, HOMAIOCINFO, &info) && !info.num_rpcs, "%u RPCs", info.num_rpcs);
	close_sock(&s);
}

/* Short messages share pages: many more fit than there are pages. */
static void slices(void)
{
	struct sock s = open_bare(family, 0);
	uint32_t offsets[300];
	unsigned int i;

	give_region(&s, (size_t)4 << 20);
	for (i = 0; i < 300; i++) {
		fill(buf, 1000, i);
		request(&s, &server, buf, 1000, i, 0);
		s.args.num_bpages = 0;
		CHECK(receive(&s, 0, 0) == 1000, "message %u", i);
		verify(&s, 1000, i);
		offsets[i] = s.args.bpage_offsets[0];
	}
	for (i = 0; i < 300; i += 10) {
		memcpy(s.args.bpage_offsets, offsets + i, 10 * sizeof(*offsets));
		s.args.num_bpages = 10;
		FAILS(receive(&s, 0, MSG_DONTWAIT), EAGAIN);
	}
	call(&s, 1000000, 1);
	s.args.num_bpages = 1;
	s.args.bpage_offsets[0] = 1u << 30;
	FAILS(receive(&s, 0, MSG_DONTWAIT), EINVAL);
	close_sock(&s);
}

/* All of the region is held; messages come when some of it goes back. */
static void hold_all(bool late_region)
{
	struct sock s = open_bare(family, 0);
	struct homa_recvmsg_args held[3];
	uint64_t id;
	int i;

	/* Then messages cannot come into the region directly. */
	if (late_region)
		request(&s, &server, late, 1, 0, 0);
	give_region(&s, ((size_t)2 << 20) + 16 * 65536);
	if (late_region)
		CHECK(receive(&s, 0, 0) == 1, "receive");
	fill(buf, 1000000, 1);
	for (i = 0; i < 3; i++) {
		request(&s, &server, buf, 1000000, 0, 0);
		s.args.num_bpages = 0;
		CHECK(receive(&s, 0, 0) == 1000000, "message %d", i);
		held[i] = s.args;
	}
	request(&s, &server, buf, 1000000, 9, 0);
	s.args.num_bpages = 0;
	usleep(100000);
	FAILS(receive(&s, 0, MSG_DONTWAIT), EAGAIN);
	s.args = held[1];
	CHECK(receive(&s, 0, 0) == 1000000 && s.args.completion_cookie == 9, "not given");
	verify(&s, 1000000, 1);
	/* The same by id, while the region is full again. */
	held[1] = s.args;
	id = request(&s, &server, buf, 1000000, 10, HOMA_SENDMSG_PRIVATE);
	s.args.num_bpages = 0;
	usleep(100000);
	FAILS(receive(&s, id, MSG_DONTWAIT), EAGAIN);
	FAILS(receive(&s, id, MSG_DONTWAIT), EAGAIN);
	s.args = held[2];
	CHECK(receive(&s, id, 0) == 1000000 && s.args.completion_cookie == 10, "not given");
	verify(&s, 1000000, 1);
	close_sock(&s);
}

static void exhaust(void)
{
	hold_all(false);
}

static void exhaust_copied(void)
{
	hold_all(true);
}

/* No room for more requests, the host lets us have a few only: SO_SNDTIMEO. */
static void full(void)
{
	struct timeval tv = { .tv_usec = 100000 };
	struct sock s = open_sock(family, 0);
	struct homa_sendmsg_args args = { 0 };
	struct homa_abort_args all = { 0 };
	double begin;
	int i;

	for (i = 0; i < 100000; i++) {
		args.id = 0;
		if (send_raw(s.fd, &server, size_of(family), ignore, 1, &args, MSG_DONTWAIT))
			break;
	}
	CHECK(i < 100000 && errno == EAGAIN, "never full");
	CHECK(!setsockopt(s.fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)), "SO_SNDTIMEO");
	begin = now();
	args.id = 0;
	FAILS(send_raw(s.fd, &server, size_of(family), ignore, 1, &args, 0), EAGAIN);
	CHECK(now() - begin > 0.09, "did not wait");
	/* Room again; the server still has what it ignores. */
	CHECK(!ioctl(s.fd, HOMAIOCABORT, &all), "abort");
	CHECK(!send_raw(s.fd, &server, size_of(family), ignore, 1, &args, 0), "send");
	CHECK(args.id, "no id");
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

static void handlers(void)
{
	struct sigaction action = { .sa_handler = in_handler, .sa_flags = SA_RESTART };
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

/* The region comes late: after an RPC was started. */
static void late_region(void)
{
	struct sock s = open_bare(family, 0);
	int i;

	request(&s, &server, late, 1, 31, 0);
	give_region(&s, REGION);
	CHECK(receive(&s, 0, 0) == 1 && s.args.completion_cookie == 31, "receive");
	for (i = 1; i < 40; i++)
		call(&s, (size_t)i * 25000, (unsigned int)i);
	close_sock(&s);
	s = open_bare(family, 0);
	request(&s, &server, late, 1, 32, 0);
	FAILS(receive(&s, 0, 0), ENOMEM);
	CHECK(s.args.completion_cookie == 32, "cookie");
	close_sock(&s);
}

static void many(void)
{
	struct mmsghdr msgs[3];
	struct homa_sendmsg_args out[3];
	struct homa_recvmsg_args in[3];
	struct iovec iov = { buf, 100 };
	struct sock s = open_sock(family, 0);
	int i, got = 0, n;

	memset(msgs, 0, sizeof(msgs));
	memset(out, 0, sizeof(out));
	memset(in, 0, sizeof(in));
	fill(buf, 100, 1);
	for (i = 0; i < 3; i++) {
		msgs[i].msg_hdr.msg_name = &server;
		msgs[i].msg_hdr.msg_namelen = size_of(family);
		msgs[i].msg_hdr.msg_iov = &iov;
		msgs[i].msg_hdr.msg_iovlen = 1;
		msgs[i].msg_hdr.msg_control = &out[i];
	}
	CHECK(sendmmsg(s.fd, msgs, 3, 0) == 3 && out[2].id, "sendmmsg");
	while (got < 3) {
		memset(msgs, 0, sizeof(msgs));
		for (i = got; i < 3; i++) {
			msgs[i].msg_hdr.msg_control = &in[i];
			msgs[i].msg_hdr.msg_controllen = sizeof(in[i]);
		}
		n = recvmmsg(s.fd, msgs + got, (unsigned int)(3 - got), MSG_WAITFORONE, NULL);
		CHECK(n > 0 && msgs[got].msg_len == 100, "recvmmsg %d", n);
		got += n;
	}
	close_sock(&s);
}

static void on_alarm(int sig)
{
	(void)sig;
}

static void signals(void)
{
	struct sigaction action = { .sa_handler = on_alarm };
	struct itimerval soon = { .it_value.tv_usec = 50000 };
	struct sock s = open_sock(family, 0);

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	FAILS(receive(&s, 0, 0), EINTR);
	call(&s, 10, 1);
	close_sock(&s);
}

static const struct {
	const char *name;
	void (*run)(void);
} checks[] = {
	{ "sizes", sizes },	      { "async", async },
	{ "private", private_rpc },   { "aborts", aborts },
	{ "information", information }, { "shuts", shuts },
	{ "failures", failures },     { "nonblocking", nonblocking },
	{ "polls", polls },	      { "epoll_level", epoll_level },
	{ "epoll_edge", epoll_edge }, { "dups", dups },
	{ "forks", forks },	      { "threads", threads },
	{ "slices", slices },	      { "exhaust", exhaust },
	{ "late_region", late_region }, { "many", many },
	{ "signals", signals },	      { "handlers", handlers },
	{ "full", full },	      { "exhaust_copied", exhaust_copied },
};

int main(int argc, char **argv)
{
	size_t i;

	CHECK(argc == 5, "arguments");
	signal(SIGPIPE, SIG_IGN);
	family = *argv[1] == '4' ? AF_INET : AF_INET6;
	server = address(family, argv[2], atoi(argv[3]));
	nobody = address(family, argv[2], atoi(argv[3]) + 1);
	for (i = 0; i < sizeof(checks) / sizeof(*checks); i++) {
		if (strcmp(argv[4], checks[i].name))
			continue;
		checks[i].run();
		printf("ok\n");
		return 0;
	}
	CHECK(0, "no check %s", argv[4]);
}
