// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Descriptors, processes and threads: dup, fork, shutdown in another thread. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "sock_client.h"

void check_dups(void)
{
	struct sock s = open_sock(family, 0);
	struct sock copy = s;
	int first = s.fd, fds[2];
	struct stat st;

	sock_call(&s, 100, 1);
	copy.fd = dup(first);
	CHECK(copy.fd >= 0 && copy.fd != first, "dup");
	CHECK(!(fcntl(copy.fd, F_GETFD) & FD_CLOEXEC), "FD_CLOEXEC");
	copy.args = s.args;
	/* A request through one, its response through the other. */
	request(&s, &server, buf, 10, 3, 0);
	CHECK(receive(&copy, 0, 0) == 10 && copy.args.completion_cookie == 3,
	      "dup");
	/* Flags of the description are common. */
	CHECK(!fcntl(first, F_SETFL, O_NONBLOCK), "F_SETFL");
	CHECK(fcntl(copy.fd, F_GETFL) & O_NONBLOCK, "F_GETFL");
	CHECK(!fcntl(first, F_SETFL, 0), "F_SETFL");
	CHECK(readable(copy.fd, 0) == 0, "armed");
	CHECK(!close(first), "close");
	sock_call(&copy, 1000, 4);
	/* Over a pipe's end, and back. */
	CHECK(!pipe(fds), "pipe");
	CHECK(dup2(copy.fd, fds[0]) == fds[0], "dup2");
	FAILS(write(fds[1], "x", 1), EPIPE);
	close(copy.fd);
	copy.fd = fcntl(fds[0], F_DUPFD_CLOEXEC, 100);
	CHECK(copy.fd >= 100 && fcntl(copy.fd, F_GETFD) == FD_CLOEXEC,
	      "F_DUPFD_CLOEXEC");
	CHECK(dup3(fds[1], fds[0], O_CLOEXEC) == fds[0], "dup3");
	CHECK(!fstat(fds[0], &st) && S_ISFIFO(st.st_mode), "not a pipe again");
	request(&copy, &server, late, 1, 0, 0);
	CHECK(readable(copy.fd, 10000), "poll");
	CHECK(receive(&copy, 0, 0) == 1, "receive");
	CHECK(!close_range((unsigned int)copy.fd, (unsigned int)copy.fd, 0),
	      "close_range");
	FAILS(receive(&copy, 0, 0), EBADF);
	close(fds[0]);
	close(fds[1]);
}

void check_forks(void)
{
	struct sock s = open_sock(family, 0);
	int i, status;
	pid_t pid;

	sock_call(&s, 100, 1);
	CHECK(!readable(s.fd, 0), "armed");
	request(&s, &server, late, 1, 42, 0);
	for (i = 0; i < 3; i++) {
		pid = i == 2 ? vfork() : fork();
		if (!pid) {
			/* In the kernel it is the same socket. */
			if (i == 1 && !in_kernel()) {
				/* What is open in the parent is not ours. */
				s.args.num_bpages = 0;
				sock_call(&s, 5000, 2);
				request(&s, &server, late, 1, 0, 0);
				CHECK(readable(s.fd, 10000), "poll in the child");
				CHECK(receive(&s, 0, 0) == 1, "child");
			}
			close(s.fd);
			_exit(0);
		}
		CHECK(waitpid(pid, &status, 0) == pid && !status,
		      "child %d: %x", i, status);
	}
	/* The parent has noticed nothing of it. */
	CHECK(readable(s.fd, 10000), "poll in the parent");
	CHECK(receive(&s, 0, 0) == 1 && s.args.completion_cookie == 42, "parent");
	sock_call(&s, 100000, 3);
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

void check_threads(void)
{
	struct sock s = open_sock(family, 0);
	struct homa_info info = { 0 };
	pthread_t ids[4];
	int i;

	for (i = 0; i < 4; i++)
		CHECK(!pthread_create(&ids[i], NULL, caller, &s), "thread");
	for (i = 0; i < 4; i++)
		pthread_join(ids[i], NULL);
	CHECK(!ioctl(s.fd, HOMAIOCINFO, &info) && !info.num_rpcs, "%u RPCs",
	      info.num_rpcs);
	close_sock(&s);
}

static void *blocked(void *arg)
{
	struct sock *s = arg;

	FAILS(receive(s, s->args.id, 0), ESHUTDOWN);
	return NULL;
}

void check_shuts(void)
{
	struct sock s = open_sock(family, 0), copies[2];
	struct homa_sendmsg_args args = { 0 };
	pthread_t threads[2];
	int i;

	/* One thread waits for anything, one for a private RPC. */
	sock_call(&s, 10, 1);
	for (i = 0; i < 2; i++) {
		copies[i] = s;
		copies[i].args.num_bpages = 0;
		copies[i].args.id = request(&s, &server, ignore, 1, 0,
					    i ? HOMA_SENDMSG_PRIVATE : 0);
		copies[i].args.id *= (uint64_t)i;
		CHECK(!pthread_create(&threads[i], NULL, blocked, &copies[i]),
		      "thread");
	}
	usleep(50000);
	CHECK(!readable(s.fd, 0), "readable");
	CHECK(!shutdown(s.fd, SHUT_RD), "shutdown");
	for (i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	CHECK(readable(s.fd, 1000), "not readable after shutdown");
	CHECK(readable(s.fd, 0), "not readable for ever");
	FAILS(receive(&s, 0, 0), ESHUTDOWN);
	FAILS(send_raw(s.fd, &server, size_of(family), buf, 10, &args, 0),
	      ESHUTDOWN);
	CHECK(!shutdown(s.fd, SHUT_RDWR), "a second shutdown");
	close_sock(&s);
}

/* Everything at once: does anything reach the wrong descriptor, or block? */
static struct sock common;
static int stop;

static int going(void)
{
	return !__atomic_load_n(&stop, __ATOMIC_RELAXED);
}

static void *copier(void *arg)
{
	struct pollfd p = { .events = POLLIN };

	while (going()) {
		int fd = dup(common.fd);

		CHECK(fd >= 0, "dup");
		p.fd = fd;
		CHECK(poll(&p, 1, 0) >= 0, "poll");
		CHECK(fcntl(fd, F_GETFL) >= 0, "F_GETFL");
		CHECK(!close(fd), "close");
	}
	return arg;
}

static void *piper(void *arg)
{
	char in[9], out[9] = "pipe pip";
	int fds[2];

	while (going()) {
		CHECK(!pipe(fds), "pipe");
		CHECK(write(fds[1], out, 9) == 9 && read(fds[0], in, 9) == 9 &&
			      !strcmp(in, out),
		      "a pipe is something else");
		CHECK(!close(fds[0]) && !close(fds[1]), "close");
	}
	return arg;
}

static void *opener(void *arg)
{
	while (going()) {
		struct sock s = open_sock(family, SOCK_CLOEXEC);
		struct homa_sendmsg_args args = { .flags = HOMA_SENDMSG_PRIVATE };

		CHECK(!send_raw(s.fd, &server, size_of(family), "Ehello", 6,
				&args, 0),
		      "send");
		CHECK(receive(&s, args.id, 0) == 6, "receive");
		close_sock(&s);
	}
	return arg;
}

static void *forker(void *arg)
{
	while (going()) {
		int status;
		pid_t pid = fork();

		CHECK(pid >= 0, "fork");
		if (!pid) {
			close(common.fd);
			_exit(0);
		}
		CHECK(waitpid(pid, &status, 0) == pid && !status, "child");
		usleep(2000);
	}
	return arg;
}

void check_storm(void)
{
	static void *(*const runs[])(void *) = { copier, piper, opener, forker,
						 copier };
	pthread_t ids[sizeof(runs) / sizeof(*runs)];
	double end = now() + 3;
	unsigned int i, calls = 0;

	common = open_sock(family, 0);
	for (i = 0; i < sizeof(runs) / sizeof(*runs); i++)
		CHECK(!pthread_create(&ids[i], NULL, runs[i], NULL), "thread");
	while (now() < end)
		sock_call(&common, 1 + calls * 997 % 100000, calls + 1), calls++;
	stop = 1;
	for (i = 0; i < sizeof(runs) / sizeof(*runs); i++)
		pthread_join(ids[i], NULL);
	CHECK(calls > 10, "%u calls", calls);
	close_sock(&common);
}
