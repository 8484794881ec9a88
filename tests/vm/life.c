// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Life and death of sockets and of those who use them, on one machine:
 *
 *	life 4|6 IP [CHECK...]
 *
 * IP is this machine's. Each check has a server of its own, in a process that
 * ends with it. After each one nothing may be left: no RPC, no socket.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include "life.h"

int family;
const char *ip;
union address server;
unsigned char buf[HOMA_MAX_MESSAGE_LENGTH];

/* A sock_server in small: echoes, ignores or is late, see tests/preload/sock.h. */
static void serve(int port, int ready)
{
	struct sock s = open_sock(family, 0);
	struct iovec iov[HOMA_MAX_BPAGES];

	bind_sock(&s, port);
	CHECK(write(ready, "r", 1) == 1, "pipe");
	close(ready);
	for (;;) {
		ssize_t n = receive(&s, 0, 0);
		struct homa_sendmsg_args args = { .id = s.args.id };
		struct msghdr hdr = {
			.msg_name = &s.from,
			.msg_namelen = s.from_size,
			.msg_iov = iov,
			.msg_control = &args,
		};

		if (n < 0)
			continue;
		hdr.msg_iovlen = (size_t)pieces(&s, (size_t)n, iov);
		if (*(char *)iov[0].iov_base == IGNORE)
			continue;
		if (*(char *)iov[0].iov_base == LATE)
			usleep(100000);
		/* Its client may be dead by now, and we are not to care. */
		sendmsg(s.fd, &hdr, 0);
	}
}

pid_t start_server(int port)
{
	int fds[2];
	char byte;
	pid_t pid;

	server = address(family, ip, port);
	CHECK(!pipe(fds), "pipe");
	pid = fork();
	CHECK(pid >= 0, "fork");
	if (!pid) {
		close(fds[0]);
		serve(port, fds[1]);
	}
	close(fds[1]);
	CHECK(read(fds[0], &byte, 1) == 1, "the server died");
	close(fds[0]);
	return pid;
}

void end(pid_t pid)
{
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid, "waitpid");
}

void call(struct sock *s, size_t size, unsigned int seed)
{
	uint64_t id;
	ssize_t n;

	fill(buf, size, seed);
	id = request(s, &server, buf, size, seed, 0);
	n = receive(s, 0, 0);
	CHECK(n == (ssize_t)size, "%zd of %zu bytes", n, size);
	CHECK(s->args.id == id && s->args.completion_cookie == seed,
	      "another RPC");
	verify(s, size, seed);
}

static void calls_work(void)
{
	struct sock s = open_sock(family, 0);
	unsigned int i;

	for (i = 1; i < 4; i++)
		call(&s, i * i * 30000 - 29999, i);
	CHECK(rpcs_become(s.fd, 0, 10000) == 0, "%u RPCs are left",
	      rpcs_of(s.fd));
	close_sock(&s);
}

/* ---- processes that die ---- */

/* Clients killed in the middle of whatever they did; the server lives on. */
static void kill_client(void)
{
	uint64_t rng = 11;
	pid_t pid = start_server(4010);
	int i;

	for (i = 0; i < 5; i++) {
		pid_t child = fork();

		if (!child) {
			struct sock s = open_sock(family, 0);
			unsigned int k;

			for (k = 0;; k++) {
				struct homa_sendmsg_args args = { 0 };

				buf[0] = k % 3 ? ECHO : LATE;
				send_raw(s.fd, &server, size_of(family), buf,
					 1 + k * 7919 % 300000, &args,
					 MSG_DONTWAIT);
				if (k % 2)
					receive(&s, 0, MSG_DONTWAIT);
			}
		}
		usleep(5000 + rng_below(&rng, 60000));
		end(child);
	}
	calls_work();
	end(pid);
}

/* The server is killed: every request fails with an error of the kind, none hangs. */
static void kill_server(void)
{
	struct sock s = open_sock(family, 0);
	pid_t pid = start_server(4011);
	unsigned int i, failed = 0;

	call(&s, 100, 1);
	for (i = 0; i < 20; i++) {
		memset(buf, 0, 1);
		buf[0] = i % 2 ? IGNORE : LATE;
		request(&s, &server, buf, 1 + i * 20000, i, 0);
	}
	end(pid);
	for (i = 0; i < 20; i++) {
		ssize_t n = receive(&s, 0, 0);

		if (n >= 0)
			continue;
		failed++;
		CHECK(errno == ENOTCONN || errno == ETIMEDOUT ||
			      errno == ECONNREFUSED,
		      "an odd error");
		s.args.num_bpages = 0;
	}
	CHECK(failed >= 10, "%u failed", failed);
	CHECK(rpcs_of(s.fd) == 0, "%u RPCs are left", rpcs_of(s.fd));
	/* The port is free again at once. */
	pid = start_server(4011);
	call(&s, 50000, 2);
	close_sock(&s);
	end(pid);
}

static void *wait_for_ever(void *arg)
{
	struct sock s = *(struct sock *)arg;

	receive(&s, s.args.id, 0);
	return NULL;
}

/* exit() while threads wait in recvmsg(). */
static void exit_in_recvmsg(void)
{
	pid_t child, pid = start_server(4012);
	int i, status;

	child = fork();
	if (!child) {
		struct sock s = open_sock(family, 0), copies[4];
		pthread_t id;

		for (i = 0; i < 4; i++) {
			copies[i] = s;
			copies[i].args.id =
				i % 2 ? request(&s, &server, (char[]){ IGNORE },
						1, 0, HOMA_SENDMSG_PRIVATE) :
					0;
			CHECK(!pthread_create(&id, NULL, wait_for_ever,
					      &copies[i]),
			      "thread");
		}
		usleep(50000);
		_exit(5);
	}
	CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 5,
	      "%x", status);
	calls_work();
	end(pid);
}

/* close() in one thread while another one waits in recvmsg() on it. */
static void close_in_recvmsg(void)
{
	struct sock s = open_sock(family, 0), copy = s;
	pid_t pid = start_server(4013);
	pthread_t id;

	CHECK(!pthread_create(&id, NULL, wait_for_ever, &copy), "thread");
	usleep(50000);
	/* The call holds the file; shutdown() is what ends it. */
	CHECK(!shutdown(s.fd, SHUT_RDWR), "shutdown");
	pthread_join(id, NULL);
	CHECK(!close(s.fd), "close");
	calls_work();
	end(pid);
}

/* Close with RPCs open in every state. */
static void close_with_rpcs(void)
{
	pid_t pid = start_server(4014);
	uint64_t rng = 5;
	int round, i;

	for (round = 0; round < 15; round++) {
		struct sock s = open_sock(family, 0);

		for (i = 0; i < 12; i++) {
			buf[0] = "EIL"[rng_below(&rng, 3)];
			request(&s, &server, buf,
				1 + rng_below(&rng, i % 4 ? 2000 : 400000), 0,
				rng_below(&rng, 4) ? 0 : HOMA_SENDMSG_PRIVATE);
		}
		usleep(rng_below(&rng, 20000));
		if (round % 3 == 0)
			receive(&s, 0, MSG_DONTWAIT);
		close_sock(&s);
	}
	calls_work();
	end(pid);
}

/* Nobody has responded, and the server closes: its clients hear of it. */
static void close_server_socket(void)
{
	struct sock s = open_sock(family, 0), t = open_sock(family, 0);
	ssize_t n;

	bind_sock(&t, 4015);
	server = address(family, ip, 4015);
	request(&s, &server, (char[]){ IGNORE }, 1, 9, 0);
	CHECK(receive(&t, 0, 0) == 1, "receive");
	close_sock(&t);
	n = receive(&s, 0, 0);
	CHECK(n < 0 && (errno == ENOTCONN || errno == ETIMEDOUT), "%zd", n);
	CHECK(s.args.completion_cookie == 9, "cookie");
	close_sock(&s);
}

/* Nobody listens: an error with id and cookie, at once, for shared and private RPCs. */
static void nobody_listens(void)
{
	struct sock s = open_sock(family, 0);
	union address nobody = address(family, ip, 4999);
	uint64_t id;

	id = request(&s, &nobody, "x", 1, 77, 0);
	FAILS(receive(&s, 0, 0), ENOTCONN);
	CHECK(s.args.id == id && s.args.completion_cookie == 77, "id, cookie");
	s.args.num_bpages = 0;
	id = request(&s, &nobody, buf, 100000, 78, HOMA_SENDMSG_PRIVATE);
	FAILS(receive(&s, id, 0), ENOTCONN);
	CHECK(s.args.id == id && s.args.completion_cookie == 78, "id, cookie");
	s.args.num_bpages = 0;
	FAILS(receive(&s, id, 0), EINVAL);
	CHECK(rpcs_become(s.fd, 0, 10000) == 0, "%u RPCs are left",
	      rpcs_of(s.fd));
	close_sock(&s);
}

/* ---- processes that share ---- */

/* Parent and child both serve one socket; each request reaches one of them. */
static void fork_shared(void)
{
	struct sock s = open_sock(family, 0);
	unsigned int i;
	pid_t pid[3];
	int fds[2], status;
	char byte;

	CHECK(!pipe(fds), "pipe");
	for (i = 0; i < 3; i++) {
		pid[i] = fork();
		if (!pid[i])
			serve(4016,
			      fds[1]); /* the second and third: the port is taken */
		if (!i)
			CHECK(read(fds[0], &byte, 1) == 1, "server");
	}
	CHECK(waitpid(pid[1], NULL, 0) == pid[1] &&
		      waitpid(pid[2], NULL, 0) == pid[2],
	      "waitpid");
	server = address(family, ip, 4016);
	/* Now a client's socket in two processes: both send. The region is in the process
	 * that gave it, so the other cannot receive, and nothing is lost by trying. */
	pid[1] = fork();
	for (i = 0; i < 50; i++) {
		size_t size = 1 + i * 331 % 20000;
		uint64_t id;

		fill(buf, size, i + (pid[1] ? 0 : 1000));
		id = request(&s, &server, buf, size, 0, HOMA_SENDMSG_PRIVATE);
		if (pid[1]) {
			CHECK(receive(&s, id, 0) == (ssize_t)size, "receive");
			verify(&s, size, i);
			continue;
		}
		FAILS(receive(&s, id, 0), EFAULT);
		FAILS(receive(&s, 0, MSG_DONTWAIT), EFAULT);
		CHECK(write(fds[1], &id, sizeof(id)) == sizeof(id), "write");
	}
	if (!pid[1])
		_exit(0);
	CHECK(waitpid(pid[1], &status, 0) == pid[1] && !status, "%x", status);
	for (i = 0; i < 50; i++) {
		size_t size = 1 + i * 331 % 20000;
		uint64_t id;

		CHECK(read(fds[0], &id, sizeof(id)) == sizeof(id), "read");
		CHECK(receive(&s, id, 0) == (ssize_t)size, "receive");
		verify(&s, size, i + 1000);
	}
	CHECK(rpcs_become(s.fd, 0, 10000) == 0, "%u RPCs are left",
	      rpcs_of(s.fd));
	close_sock(&s);
	end(pid[0]);
}

/* The socket goes to another process, and its first owner ends. */
static void pass_socket(void)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	pid_t child, pid = start_server(4017);
	struct sock s = { .family = family };
	int ends[2];

	CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), "socketpair");
	child = fork();
	if (!child) {
		struct cmsghdr *c = &control.align;

		s = open_bare(family, 0);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &s.fd, sizeof(int));
		CHECK(sendmsg(ends[1], &msg, 0) == 1, "sendmsg");
		/* A response that comes before there is a region is lost. */
		CHECK(read(ends[1], &byte, 1) == 1, "read");
		request(&s, &server, (char[]){ LATE }, 1, 3, 0);
		_exit(0);
	}
	CHECK(recvmsg(ends[0], &msg, 0) == 1, "recvmsg");
	memcpy(&s.fd, CMSG_DATA(&control.align), sizeof(int));
	give_region(&s, REGION);
	CHECK(write(ends[0], &byte, 1) == 1, "write");
	CHECK(waitpid(child, NULL, 0) == child, "waitpid");
	CHECK(receive(&s, 0, 0) == 1 && s.args.completion_cookie == 3, "receive");
	call(&s, 100000, 2);
	close_sock(&s);
	end(pid);
}

/* ---- many, and too much ---- */

static void thousand_sockets(void)
{
	enum { N = 1000 };
	static struct sock socks[N];
	struct rlimit files = { 4096, 4096 };
	size_t region = ((size_t)2 << 20) +
			65536 * (size_t)sysconf(_SC_NPROCESSORS_CONF);
	pid_t pid = start_server(4018);
	int i;

	CHECK(!setrlimit(RLIMIT_NOFILE, &files), "RLIMIT_NOFILE");
	for (i = 0; i < N; i++) {
		socks[i] = open_bare(family, 0);
		give_region(&socks[i], region);
	}
	for (i = 0; i < N; i++) {
		fill(buf, 100, (unsigned int)i);
		request(&socks[i], &server, buf, 100, (uint64_t)i, 0);
	}
	for (i = N - 1; i >= 0; i--) {
		CHECK(receive(&socks[i], 0, 0) == 100, "socket %d", i);
		CHECK(socks[i].args.completion_cookie == (uint64_t)i, "cookie");
		verify(&socks[i], 100, (unsigned int)i);
	}
	for (i = 0; i < N; i++)
		close_sock(&socks[i]);
	calls_work();
	end(pid);
}

/* Ports of the automatic range are unique; the same socket can be opened for ever. */
static void open_and_close(void)
{
	int i;

	for (i = 0; i < 2000; i++) {
		struct sock s = open_bare(family, 0);

		close_sock(&s);
	}
}

static const struct check checks[] = {
	{ "kill -9 of clients in the middle", kill_client },
	{ "kill -9 of a server fails its RPCs", kill_server },
	{ "exit with threads in recvmsg", exit_in_recvmsg },
	{ "shutdown and close with a thread in recvmsg", close_in_recvmsg },
	{ "close with RPCs in every state", close_with_rpcs },
	{ "a server's close is heard by its clients", close_server_socket },
	{ "nobody listens", nobody_listens },
	{ "a socket shared by fork", fork_shared },
	{ "a socket passed to another process", pass_socket },
	{ "1,000 sockets", thousand_sockets },
	{ "2,000 times open and close", open_and_close },
	LIFE_ANSWER_CHECKS,
	LIFE_BIND_CHECKS,
	LIFE_ADDRESS_CHECKS,
	LIFE_COMPAT_CHECKS,
	LIFE_DROPS_CHECKS,
	LIFE_PAYS_CHECKS,
	LIFE_SEND_CHECKS,
	LIFE_FAULTS_CHECKS,
	LIFE_ENDS_CHECKS,
};

int main(int argc, char **argv)
{
	char prefix[32];
	int failed;

	CHECK(argc >= 3, "arguments");
	signal(SIGPIPE, SIG_IGN);
	family = *argv[1] == '4' ? AF_INET : AF_INET6;
	ip = argv[2];
	/* A busy test machine is not a dead peer. */
	sysctl_set("timeout_ticks", 5000);
	snprintf(prefix, sizeof(prefix), "life v%c: ", *argv[1]);
	failed = run_checks(checks, ARRAY_SIZE(checks), prefix, 120, argv + 3);
	print_plan();
	return failed != 0;
}
