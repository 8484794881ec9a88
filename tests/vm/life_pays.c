// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Life and death of sockets: who pays for their memory; see life.c. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
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

static void reserve(const struct sock *s, int bytes)
{
	CHECK(!setsockopt(s->fd, SOL_SOCKET, SO_RESERVE_MEM, &bytes,
			  sizeof(bytes)),
	      "SO_RESERVE_MEM");
}

/* struct reserver - a thread that reserves memory and gives it back all the time. */
struct reserver {
	/* The sockets for which it does. Written by: the check. */
	struct sock s, t;
	/* True when it has to end. Written by: the check. */
	atomic_bool ends;
};

static void *reserve_always(void *arg)
{
	struct reserver *r = arg;

	while (!atomic_load(&r->ends)) {
		reserve(&r->s, 1 << 16);
		reserve(&r->t, 1 << 16);
		reserve(&r->s, 0);
		reserve(&r->t, 0);
	}
	return NULL;
}

/* Does the kernel reserve memory for sockets of UDP, or TCP? Linux 7.2 does so for TCP alone. */
static bool reserves_for(int type)
{
	int fd = socket(AF_INET, type, 0), bytes = 4096, err = 0;

	CHECK(fd >= 0, "socket");
	if (setsockopt(fd, SOL_SOCKET, SO_RESERVE_MEM, &bytes, sizeof(bytes)))
		err = errno;
	CHECK(!err || err == EOPNOTSUPP, "SO_RESERVE_MEM");
	close(fd);
	return !err;
}

/* Who reserves memory for a socket, and gives it back, does not give back what is paid for
 * messages: neither afterwards nor while these come and go. */
void life_cgroup_reserve(void)
{
	struct reserver r = { 0 };
	pthread_t thread;
	long long before;
	int i;

	cgroup_join();
	if (!reserves_for(SOCK_DGRAM)) {
		CHECK(reserves_for(SOCK_STREAM), "nor for TCP");
		cgroup_leave();
		skip("a kernel that has SO_RESERVE_MEM for TCP alone");
	}
	r.s = open_sock(family, 0);
	r.t = open_sock(family, 0);
	bind_sock(&r.t, 4019);
	server = address(family, ip, 4019);
	for (i = 0; i < 50; i++)
		request(&r.s, &server, buf, 100000, 0, 0);
	cgroup_becomes_charged("sock", 50 * 100000 + 1000000, 1 << 30);
	before = cgroup_charged("sock");
	reserve(&r.s, 1 << 20);
	reserve(&r.s, 0);
	/* The kernel sums up every other second. */
	for (i = 0; i < 10; i++) {
		usleep(500000);
		CHECK(cgroup_charged("sock") > before - 1000000,
		      "%lld bytes are charged, before %lld",
		      cgroup_charged("sock"), before);
	}
	close_sock(&r.s);
	close_sock(&r.t);
	cgroup_becomes_charged("sock", 0, 0);
	r.s = open_sock(family, 0);
	r.t = open_sock(family, 0);
	bind_sock(&r.t, 4019);
	CHECK(!pthread_create(&thread, NULL, reserve_always, &r), "thread");
	for (i = 0; i < 500 / slowness(); i++) {
		struct homa_sendmsg_args args = { 0 };

		request(&r.s, &server, buf, 50000, 0, 0);
		CHECK(receive(&r.t, 0, 0) == 50000, "request %d", i);
		args.id = r.t.args.id;
		CHECK(!send_raw(r.t.fd, &r.t.from, size_of(family), buf, 50000,
				&args, 0),
		      "response %d", i);
		CHECK(receive(&r.s, 0, 0) == 50000, "response %d", i);
	}
	atomic_store(&r.ends, true);
	pthread_join(thread, NULL);
	/* What is reserved at the end goes with the socket. */
	reserve(&r.s, 1 << 20);
	close_sock(&r.s);
	close_sock(&r.t);
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
