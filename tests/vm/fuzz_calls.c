// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Random system calls on Homa sockets, for a time:
 *
 *	fuzz_calls SEED SECONDS [FILE]
 *
 * Processes live short lives one after the other (two at a time), each with some
 * sockets, threads and a region, and do what comes: calls with pointers to
 * nothing, lengths of all kinds, regions unmapped under a call, sockets shared
 * by fork and passed on, settings changed meanwhile (fuzz_life.c, fuzz_admin.h). A life
 * may end as it likes; it must end. Between lives an RPC over loopback must work, and at the
 * end nothing may be left. With FILE, what an earlier run printed: the same lives
 * again (steer.h).
 */
#include <signal.h>
#include <sys/wait.h>
#include "fuzz_admin.h"
#include "fuzz_life.h"

static unsigned char bytes[5000];

/* Waits for all lives; one that does not end is shown by its stack. */
static void reap(pid_t *pids, int n, unsigned long long number)
{
	double end = now() + 60;
	int i, status;

	for (i = 0; i < n; i++) {
		/* A life may wait where it was told to: for ever is not the kernel's fault then. */
		while (waitpid(pids[i], &status, WNOHANG) == 0) {
			if (now() > end - 55)
				kill(-pids[i], SIGKILL);
			CHECK(now() < end, "life %llu cannot be killed",
			      number + (unsigned)i);
			usleep(2000);
		}
		kill(-pids[i], SIGKILL);
	}
}

static void still_works(int family, unsigned long long number)
{
	struct sock s = open_sock(family, 0), t = open_sock(family, 0);
	struct homa_sendmsg_args args = { 0 };
	union address to =
		address(family, family == AF_INET ? "127.0.0.1" : "::1", 7000);

	bind_sock(&t, 7000);
	request(&s, &to, bytes, 3000, 5, 0);
	CHECK(readable(t.fd, 60000), "after life %llu: no request", number);
	CHECK(receive(&t, 0, 0) == 3000, "after life %llu: another request",
	      number);
	args.id = t.args.id;
	CHECK(!send_raw(t.fd, &t.from, t.from_size, bytes, 5000, &args, 0),
	      "response");
	CHECK(readable(s.fd, 60000), "after life %llu: no response", number);
	CHECK(receive(&s, 0, 0) == 5000, "after life %llu: another response",
	      number);
	close_sock(&s);
	close_sock(&t);
}

int main(int argc, char **argv)
{
	unsigned long long seed, number = 0;
	struct genome genomes[WHO];
	bool more = true;
	pid_t pids[WHO];
	double end;
	int i, lives;

	CHECK(argc >= 3, "arguments");
	seed = strtoull(argv[1], NULL, 0);
	printf("# seed %llu\n", seed);
	steer_begin(seed, argc > 3 ? argv[3] : NULL);
	sysctl_set("timeout_ticks", 500);
	admin_begin();
	end = now() + atof(argv[2]);
	while (more && (argc > 3 || now() < end)) {
		for (lives = 0; lives < WHO; lives++) {
			more = steer_next(&genomes[lives],
					  number + (unsigned)lives);
			if (!more)
				break;
			pids[lives] = fork();
			if (!pids[lives])
				one_life(&genomes[lives], (unsigned)lives);
			CHECK(pids[lives] > 0, "fork");
		}
		reap(pids, lives, number);
		admin_restore();
		for (i = 0; i < lives; i++)
			steer_lived(&genomes[i], (unsigned)i);
		number += (unsigned int)lives;
		still_works(number % 4 ? AF_INET : AF_INET6, number);
	}
	/* A stream that was closed may keep its sockets for a minute. */
	for (i = 0; i < 1500 && (metric("rpcs") > 0 || metric("socks") > 0); i++)
		usleep(100000);
	CHECK(metric("rpcs") <= 0, "%lld RPCs are left", metric("rpcs"));
	CHECK(metric("socks") <= 0, "%lld sockets are left", metric("socks"));
	steer_print(number, "lives");
	return 0;
}
