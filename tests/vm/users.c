// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * A user who wants too much. What he gets is printed; who asks knows what to expect.
 *
 *	users deaf 4|6 PORT NUMBER MIB	servers on NUMBER ports from PORT on, with
 *						regions of MIB MiB, that never receive
 *	users hog 4|6 IP PORT NUMBER N [abort]	N requests of a byte from four sockets in turn
 *						to the NUMBER ports: "HOG begun=N". With
 *						"abort" they are aborted, each 64 of them
 *						silently, and it ends; else it waits for ever
 *	users crowd IP PORT NUMBER HOSTS N	the same to HOSTS addresses (IPv4) from IP on
 *	users take 4|6 PORT NUMBER		a server that sleeps until `USR1`, then receives
 *	users socks 4|6 N			opens up to N sockets: "SOCKS open=N"
 *	users inside UID COMMAND...		as a user with an id of its own in a user
 *						namespace of UID's (root only)
 *	users idle COMMAND...			when nobody else wants the processor
 *
 * The first lines of `deaf`, `hog` and `socks` are printed when they have done their work.
 */
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include "guest.h"

#define SOCKS 4u
#define BATCH 64u

static int family;

static void wait_for_ever(void)
{
	fflush(stdout);
	for (;;)
		pause();
}

static void deaf(int port, int number, size_t mib)
{
	int i;

	for (i = 0; i < number; i++) {
		struct sock s = open_bare(family, 0);

		give_region(&s, mib << 20);
		bind_sock(&s, port + i);
	}
	printf("ready\n");
	wait_for_ever();
}

static void abort_all(const struct sock *socks)
{
	struct homa_abort_args all = { .error = 0 };
	unsigned int i;

	for (i = 0; i < SOCKS; i++)
		CHECK(!ioctl(socks[i].fd, HOMAIOCABORT, &all), "abort");
}

static void hog(const char *ip, int port, unsigned int number,
		unsigned int hosts, unsigned int n, bool aborts)
{
	union address to[16], one;
	struct sock socks[SOCKS];
	unsigned int i, begun = 0;

	CHECK(number && number <= ARRAY_SIZE(to) && hosts, "arguments");
	for (i = 0; i < number; i++)
		to[i] = address(family, ip, port + (int)i);
	for (i = 0; i < SOCKS; i++)
		socks[i] = open_sock(family, 0);
	for (i = 0; i < n; i++) {
		struct homa_sendmsg_args args = { 0 };

		one = to[i / SOCKS % number];
		if (hosts > 1)
			one.in4.sin_addr.s_addr =
				htonl(ntohl(one.in4.sin_addr.s_addr) + i % hosts);
		if (!send_raw(socks[i % SOCKS].fd, &one, size_of(family), "x",
			      1, &args, MSG_DONTWAIT))
			begun++;
		else
			CHECK(errno == EAGAIN, "request %u", i);
		if (aborts && i % BATCH == BATCH - 1)
			abort_all(socks);
	}
	if (aborts)
		abort_all(socks);
	printf("HOG begun=%u\n", begun);
	if (!aborts)
		wait_for_ever();
}

static void go_on(int number)
{
	(void)number;
}

static void take(int port, unsigned int number)
{
	struct sigaction act = { .sa_handler = go_on };
	struct sock s = open_bare(family, 0);
	unsigned int i;

	CHECK(!sigaction(SIGUSR1, &act, NULL), "sigaction");
	give_region(&s, (size_t)64 << 20);
	bind_sock(&s, port);
	printf("ready\n");
	fflush(stdout);
	pause();
	for (i = 0; i < number; i++)
		CHECK(receive(&s, 0, 0) == 1, "request %u", i);
	printf("TAKEN n=%u\n", i);
	wait_for_ever();
}

static void sockets(unsigned int n)
{
	unsigned int i;

	errno = 0;
	for (i = 0; i < n; i++)
		if (socket(family, SOCK_DGRAM, IPPROTO_HOMA) < 0)
			break;
	CHECK(i == n || errno == EADDRINUSE, "socket %u", i);
	printf("SOCKS open=%u\n", i);
	wait_for_ever();
}

/* Ids 0 to 9 of the namespace are 100000 to 100009 outside: those that its maker was given. */
static void inside(unsigned int uid, char **command)
{
	int ready[2], mapped[2];
	char path[64], byte = 0;
	pid_t pid;

	CHECK(!pipe(ready) && !pipe(mapped), "pipe");
	pid = fork();
	CHECK(pid >= 0, "fork");
	if (!pid) {
		CHECK(!setgid(uid) && !setuid(uid) && !unshare(CLONE_NEWUSER),
		      "user namespace of %u", uid);
		CHECK(write(ready[1], &byte, 1) == 1 &&
			      read(mapped[0], &byte, 1) == 1,
		      "pipe");
		CHECK(!setuid(5), "user 5");
		execvp(*command, command);
		CHECK(0, "%s", *command);
	}
	CHECK(read(ready[0], &byte, 1) == 1, "pipe");
	snprintf(path, sizeof(path), "/proc/%d/uid_map", pid);
	CHECK(!write_file(path, "0 100000 10"), "uid_map");
	CHECK(write(mapped[1], &byte, 1) == 1, "pipe");
	waitpid(pid, NULL, 0);
}

static void idle(char **command)
{
	const struct sched_param param = { .sched_priority = 0 };

	CHECK(!sched_setscheduler(0, SCHED_IDLE, &param), "SCHED_IDLE");
	execvp(*command, command);
	CHECK(0, "%s", *command);
}

int main(int argc, char **argv)
{
	const char *what = argc > 3 ? argv[1] : "";

	CHECK(argc > 3, "arguments");
	if (!strcmp(what, "inside")) {
		inside((unsigned int)atoi(argv[2]), argv + 3);
		return 0;
	}
	if (!strcmp(what, "idle"))
		idle(argv + 2);
	family = *argv[2] == '4' ? AF_INET : AF_INET6;
	if (!strcmp(what, "crowd") && argc == 7) {
		family = AF_INET;
		hog(argv[2], atoi(argv[3]), (unsigned int)atoi(argv[4]),
		    (unsigned int)atoi(argv[5]), (unsigned int)atoi(argv[6]),
		    false);
	}
	if (!strcmp(what, "deaf") && argc == 6)
		deaf(atoi(argv[3]), atoi(argv[4]), (size_t)atol(argv[5]));
	else if (!strcmp(what, "hog") && argc >= 7)
		hog(argv[3], atoi(argv[4]), (unsigned int)atoi(argv[5]), 1,
		    (unsigned int)atoi(argv[6]), argc > 7);
	else if (!strcmp(what, "take") && argc == 5)
		take(atoi(argv[3]), (unsigned int)atoi(argv[4]));
	else if (!strcmp(what, "socks"))
		sockets((unsigned int)atoi(argv[3]));
	else
		CHECK(0, "arguments");
	return 0;
}
