// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Attach, bind a port, put many RPCs in flight, die by kill -9; and again. The
 * port must be free at once: the next life binds the same one, and homad has
 * until then only as long as a process takes to start. Prints "COUNT cycles".
 *
 *	churn CYCLES RPCS IP PORT [RATE]	an echo server; lives begin RATE times a second,
 *						or as soon as the last has ended
 *	churn CYCLES bare SIZE [RATE]		the same processes without homad, each with SIZE
 *						bytes of shared memory: what the machine makes
 *						of it
 */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "raw.h"

#define OUR_PORT 31000

static uint8_t server_ip[16];
static uint16_t server_port;
/* Size of a bare life's memory, in bytes; 0: lives attach to homad. */
static size_t bare;

/* Half to the server, half to ourselves, where nobody answers them. */
static void fly(struct raw *r, int rpcs)
{
	int i, wait;

	for (i = 0; i < rpcs; i++) {
		bool own = i & 1;
		struct homa_sqe sqe = raw_sqe(r, own ? r->answer.ip : server_ip,
					      own ? OUR_PORT : server_port, 0,
					      i % 16 ? 100 : 20000);

		if (sqe.length <= HOMA_SHM_COPY_MAX)
			sqe.flags = HOMA_SQE_COPY;
		for (wait = 0; !raw_push(r, 0, &sqe); wait++) {
			if (wait > 1000000)
				raw_die("homad takes no commands");
			usleep(20);
		}
	}
}

/* The kernel closes a dead process's descriptors a moment after its end is
 * known to its parent at the latest; homad hears of it then. */
static void bind_soon(struct raw *r)
{
	int i, rc = 0;

	for (i = 0; i < 2000; i++) {
		rc = raw_bind(r, OUR_PORT);
		if (rc != -EADDRINUSE)
			break;
		usleep(1000);
	}
	if (rc)
		raw_die("port %u is not free again: %s", OUR_PORT, strerror(-rc));
}

/* A process that has as much memory as one with homad, and sends nothing. */
static void bare_life(void)
{
	char *memory = mmap(NULL, bare, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	size_t at;

	if (memory == MAP_FAILED)
		raw_die("mmap: %s", strerror(errno));
	for (at = 0; at < bare; at += 4096)
		memory[at] = 1;
}

static void homa_life(int rpcs)
{
	struct raw r;
	int rc = raw_attach(&r, 2 << 20);

	if (rc)
		raw_die("attach: %s; %s", strerror(-rc), r.answer.text);
	bind_soon(&r);
	if (rpcs > (int)r.answer.max_rpcs)
		rpcs = (int)r.answer.max_rpcs;
	fly(&r, rpcs);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Begins a life; returns when it has done what it shall do before it is killed. */
static pid_t begin(int rpcs)
{
	int say[2];
	char byte;
	pid_t pid;

	if (pipe(say))
		raw_die("pipe: %s", strerror(errno));
	pid = fork();
	if (pid < 0)
		raw_die("fork: %s", strerror(errno));
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(say[0]);
		if (bare)
			bare_life();
		else
			homa_life(rpcs);
		if (write(say[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(say[1]);
	if (read(say[0], &byte, 1) != 1)
		raw_die("a life has failed");
	close(say[0]);
	return pid;
}

int main(int argc, char **argv)
{
	bool without = argc > 2 && !strcmp(argv[2], "bare");
	int i, cycles, rpcs, rate, fixed = without ? 4 : 5;
	uint64_t start;

	if (argc != fixed && argc != fixed + 1)
		raw_die("usage: churn CYCLES RPCS IP PORT [RATE] | churn CYCLES bare SIZE [RATE]");
	cycles = atoi(argv[1]);
	rpcs = atoi(argv[2]);
	rate = argc > fixed ? atoi(argv[fixed]) : 0;
	if (without) {
		bare = strtoull(argv[3], NULL, 10);
	} else {
		if (inet_pton(AF_INET, argv[3], server_ip + 12) == 1)
			server_ip[10] = server_ip[11] = 0xff;
		else if (inet_pton(AF_INET6, argv[3], server_ip) != 1)
			raw_die("%s is not an address", argv[3]);
		server_port = (uint16_t)atoi(argv[4]);
	}
	start = now_ns();
	for (i = 0; i < cycles; i++) {
		uint64_t now = now_ns(), due = start;
		pid_t pid;
		int status;

		if (rate)
			due += (uint64_t)i * 1000000000u / (uint64_t)rate;
		if (due > now)
			usleep((useconds_t)((due - now) / 1000));
		pid = begin(rpcs);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	printf("%d cycles\n", cycles);
	return 0;
}
