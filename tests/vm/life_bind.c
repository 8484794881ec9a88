// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Who may bind to low ports: as with UDP, the network namespace says from where on all may. */
#include <grp.h>
#include <sched.h>
#include <sys/wait.h>
#include "life.h"

#define UNPRIVILEGED "/proc/sys/net/ipv4/ip_unprivileged_port_start"
#define USER 1000

/* Makes this process one of a user who has no capabilities. */
static void become_user(void)
{
	CHECK(!setgroups(0, NULL) && !setgid(USER) && !setuid(USER), "user");
}

/* Binds a new socket to @port; 0 or the errno. */
static int bind_new(int port)
{
	union address a = address(family, NULL, port);
	struct sock s = open_bare(family, 0);
	int err = bind(s.fd, &a.sa, size_of(family)) ? errno : 0;

	close(s.fd);
	return err;
}

static void must_bind(int port, int want)
{
	int err = bind_new(port);

	CHECK(err == want, "port %d: %s, not %s", port, strerror(err),
	      strerror(want));
}

/* The socket that a process has inherited is asked about with its own capabilities. */
static struct sock inherited;

static void as_user_inherited(void)
{
	union address low = address(family, NULL, 1023);

	become_user();
	FAILS(bind(inherited.fd, &low.sa, size_of(family)), EACCES);
}

/* Runs @run in a process of its own, for it gives up what it may do. */
static void apart(void (*run)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		run();
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && !status, "%x", status);
}

static void as_user(void)
{
	become_user();
	must_bind(1, EACCES);
	must_bind(1023, EACCES);
	must_bind(1024, 0);
}

static void as_user_by_setting(void)
{
	become_user();
	must_bind(1022, EACCES);
	must_bind(1023, 0);
}

/* Capabilities in a namespace of his own are none in the one that has the ports. */
static void as_user_inside(void)
{
	become_user();
	CHECK(!unshare(CLONE_NEWUSER), "user namespace");
	must_bind(1023, EACCES);
	CHECK(!unshare(CLONE_NEWNET), "network namespace");
	must_bind(1023, 0);
}

void life_low_ports(void)
{
	must_bind(1, 0);
	must_bind(1023, 0);
	apart(as_user);
	apart(as_user_inside);
	CHECK(!write_file(UNPRIVILEGED, "1023"), "setting");
	apart(as_user_by_setting);
	CHECK(!write_file(UNPRIVILEGED, "1024"), "setting");
	/* A refused bind() leaves the port that the socket had. */
	inherited = open_bare(family, 0);
	bind_sock(&inherited, 1024);
	apart(as_user_inherited);
	must_bind(1024, EADDRINUSE);
	must_bind(1023, 0);
	close_sock(&inherited);
}
