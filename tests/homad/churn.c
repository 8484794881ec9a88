// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Attach, bind a port, put many RPCs in flight, die by kill -9; and again. The
 * port must be free at once: the next life binds the same one, and homad has
 * until then only as long as a process takes to start. Prints "COUNT cycles".
 *
 *	churn CYCLES RPCS IP PORT	an echo server
 */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "raw.h"

#define OUR_PORT 31000

static uint8_t server_ip[16];
static uint16_t server_port;

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

static void life(int rpcs, int say)
{
	struct raw r;
	int rc = raw_attach(&r, 2 << 20);

	if (rc)
		raw_die("attach: %s; %s", strerror(-rc), r.answer.text);
	bind_soon(&r);
	if (rpcs > (int)r.answer.max_rpcs)
		rpcs = (int)r.answer.max_rpcs;
	fly(&r, rpcs);
	if (write(say, "x", 1) != 1)
		_exit(1);
	pause();
}

int main(int argc, char **argv)
{
	int i, cycles, rpcs;

	if (argc != 5)
		raw_die("usage: churn CYCLES RPCS IP PORT");
	cycles = atoi(argv[1]);
	rpcs = atoi(argv[2]);
	if (inet_pton(AF_INET, argv[3], server_ip + 12) == 1)
		server_ip[10] = server_ip[11] = 0xff;
	else if (inet_pton(AF_INET6, argv[3], server_ip) != 1)
		raw_die("%s is not an address", argv[3]);
	server_port = (uint16_t)atoi(argv[4]);
	for (i = 0; i < cycles; i++) {
		int say[2], status;
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
			life(rpcs, say[1]);
		}
		close(say[1]);
		if (read(say[0], &byte, 1) != 1)
			raw_die("cycle %d failed", i);
		close(say[0]);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	printf("%d cycles\n", cycles);
	return 0;
}
