// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Life and death of sockets: who pays for their memory; see life.c. */
#include <sched.h>
#include "cgroup.h"
#include "life.h"

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

	cgroup_join();
	cgroup_becomes_charged("sock", 0, 0);
	s = open_sock(family, 0);
	t = open_sock(family, 0);
	bind_sock(&t, 4018);
	server = address(family, ip, 4018);
	for (i = 0; i < 50; i++)
		request(&s, &server, buf, 100000, 0, 0);
	/* The sender's copy, and what has arrived. */
	cgroup_becomes_charged("sock", 50 * 100000 + 1000000, 1 << 30);
	close_sock(&s);
	close_sock(&t);
	cgroup_becomes_charged("sock", 0, 0);
	/* Of each an RPC at both ends, and a short message. */
	s = open_sock(family, 0);
	t = open_sock(family, 0);
	bind_sock(&t, 4018);
	/* They are open for minutes where memory is checked: no questions meanwhile. */
	sysctl_set("resend_ticks", 10000);
	in_service(&s, &t, SERVED);
	cgroup_becomes_charged("sock", SERVED * (2 * 768 + 256) - 200000,
			       SERVED * (2 * 768 + 256) + 400000);
	close_sock(&s);
	close_sock(&t);
	sysctl_set("resend_ticks", 0);
	cgroup_becomes_charged("sock", 0, 0);
	cgroup_leave();
}

/* The engine of a network namespace of one's own, some hundred kilobytes. */
void life_cgroup_pays_namespace(void)
{
	long long before;
	struct sock s;

	cgroup_join();
	CHECK(!unshare(CLONE_NEWNET), "namespace");
	before = cgroup_charged("vmalloc");
	s = open_bare(family, 0);
	cgroup_becomes_charged("vmalloc", before + 200000, before + 8000000);
	close_sock(&s);
	cgroup_leave();
}
