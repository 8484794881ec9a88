// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Life and death of sockets: who pays for their memory; see life.c. */
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include "life.h"

#define CGROUP "/run/cg"
#define OURS CGROUP "/ours"

/* Bytes that our cgroup is charged with for @what, a line of memory.stat. */
static long long charged(const char *what)
{
	size_t n = strlen(what);
	FILE *f = fopen(OURS "/memory.stat", "r");
	long long bytes = -1;
	char line[256];

	CHECK(f, "memory.stat");
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, what, n) && sscanf(line + n, " %lld", &bytes) == 1)
			break;
	fclose(f);
	CHECK(bytes >= 0, "no line \"%s\" in memory.stat", what);
	return bytes;
}

/* Wait for the kernel to have summed it up: at least @low bytes, at most @high. */
static void becomes_charged(const char *what, long long low, long long high)
{
	double end = now() + 30 * slowness();
	long long bytes;

	while ((bytes = charged(what)) < low || bytes > high) {
		CHECK(now() < end, "%lld bytes are charged for %s, not %lld to %lld",
		      bytes, what, low, high);
		usleep(100000);
	}
}

static void join(void)
{
	char text[32];

	mkdir(CGROUP, 0755);
	CHECK(!mount("none", CGROUP, "cgroup2", 0, NULL) || errno == EBUSY, "mount");
	if (write_file(CGROUP "/cgroup.subtree_control", "+memory"))
		skip("no memory controller");
	CHECK(!mkdir(OURS, 0755) || errno == EEXIST, "mkdir");
	snprintf(text, sizeof(text), "%d", getpid());
	CHECK(!write_file(OURS "/cgroup.procs", text), "cgroup.procs");
}

static void leave(void)
{
	char text[32];

	snprintf(text, sizeof(text), "%d", getpid());
	CHECK(!write_file(CGROUP "/cgroup.procs", text), "cgroup.procs");
	rmdir(OURS);
}

#define SERVED 5000

/* @n requests of a byte from @s to @t, received and not answered. */
static void in_service(struct sock *s, struct sock *t, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		request(s, &server, buf, 1, 0, 0);
		CHECK(receive(t, 0, 0) == 1, "request %d", i);
	}
}

/* Messages that nobody receives or takes, and RPCs that nobody ends, are charged to the cgroup
 * of their socket, and no more when the sockets are closed. */
void life_cgroup_pays(void)
{
	struct sock s, t;
	int i;

	join();
	becomes_charged("sock", 0, 0);
	s = open_sock(family, 0);
	t = open_sock(family, 0);
	bind_sock(&t, 4018);
	server = address(family, ip, 4018);
	for (i = 0; i < 50; i++)
		request(&s, &server, buf, 100000, 0, 0);
	/* The sender's copy, and what has arrived. */
	becomes_charged("sock", 50 * 100000 + 1000000, 1 << 30);
	close_sock(&s);
	close_sock(&t);
	becomes_charged("sock", 0, 0);
	/* Of each an RPC at both ends, and a short message. */
	s = open_sock(family, 0);
	t = open_sock(family, 0);
	bind_sock(&t, 4018);
	in_service(&s, &t, SERVED);
	becomes_charged("sock", SERVED * (2 * 768 + 256) - 200000,
			SERVED * (2 * 768 + 256) + 400000);
	close_sock(&s);
	close_sock(&t);
	becomes_charged("sock", 0, 0);
	leave();
}

/* The engine of a network namespace of one's own, some hundred kilobytes. */
void life_cgroup_pays_namespace(void)
{
	long long before;
	struct sock s;

	join();
	CHECK(!unshare(CLONE_NEWNET), "namespace");
	before = charged("vmalloc");
	s = open_bare(family, 0);
	becomes_charged("vmalloc", before + 200000, before + 8000000);
	close_sock(&s);
	leave();
}
