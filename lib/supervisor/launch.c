// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Starts the supervisor and the program. The program has the process, so it is who was started, to
 * the shell and to systemd; the supervisor is nobody's child, in a session of its own, so that
 * neither the program's wait() nor signals of a terminal see it. It ends after the last process
 * that the program has started. If it ends before, the calls that it would be told of fail with
 * ENOSYS, and connections of homad's end; so the program never waits for who is not there.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "supervisor.h"

/* Headers of the C library may be older. */
#ifndef PR_SET_PTRACER
#define PR_SET_PTRACER 0x59616d61
#endif

/** struct greeting - what the supervisor says first. Written by: launch.c */
struct greeting {
	/* 0, or why there is no attachment to homad, a negative errno. */
	int rc;
	/* The supervisor's process. */
	pid_t pid;
};

/* ---- a descriptor through a socket ---- */

static bool send_fd(int to, int fd)
{
	union {
		/* Its begin, which aligns it. */
		struct cmsghdr header;
		/* All of it. */
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec byte = { .iov_base = "", .iov_len = 1 };
	struct msghdr message = { .msg_iov = &byte,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	return sendmsg(to, &message, MSG_NOSIGNAL) == 1;
}

static int receive_fd(int from)
{
	union {
		/* Its begin, which aligns it. */
		struct cmsghdr header;
		/* All of it. */
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	char byte;
	struct iovec piece = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = { .msg_iov = &piece,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *header;
	int fd;

	if (recvmsg(from, &message, MSG_CMSG_CLOEXEC) != 1)
		return -1;
	header = CMSG_FIRSTHDR(&message);
	if (!header || header->cmsg_level != SOL_SOCKET ||
	    header->cmsg_type != SCM_RIGHTS)
		return -1;
	memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

/* ---- the supervisor ---- */

/* Keep of root's rights only that to look into processes. They may have given theirs away, and
 * must not do with our help what they could not do themselves. */
static int drop_rights(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct rights[_LINUX_CAPABILITY_U32S_3];
	u32 kept = 1u << CAP_SYS_PTRACE;
	size_t i;

	if (syscall(SYS_capget, &head, rights))
		return -errno;
	for (i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		rights[i].effective &= i ? 0 : kept;
		rights[i].permitted &= i ? 0 : kept;
		rights[i].inheritable = 0;
	}
	return syscall(SYS_capset, &head, rights) ? -errno : 0;
}

/* Keep nothing that belongs to the program: who reads its output waits until nobody has it. */
static void leave_program(int link)
{
	/* Who ends a service sends a signal to each of its processes. The program may have work to
	 * end then, and needs us; we end after it. */
	static const int ignored[] = { SIGPIPE, SIGHUP,	 SIGINT,  SIGQUIT,
				       SIGTERM, SIGUSR1, SIGUSR2, SIGALRM };
	size_t i;
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct rlimit files;

	setsid();
	if (chdir("/"))
		_exit(1);
	dup2(nothing, STDIN_FILENO);
	dup2(nothing, STDOUT_FILENO);
	if (!getenv("HOMA_PRELOAD_DEBUG"))
		dup2(nothing, STDERR_FILENO);
	if (link > 3)
		syscall(SYS_close_range, 3u, (unsigned int)link - 1, 0u);
	syscall(SYS_close_range, (unsigned int)link + 1, ~0u, 0u);
	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	for (i = 0; i < sizeof(ignored) / sizeof(*ignored); i++)
		signal(ignored[i], SIG_IGN);
}

static void supervise(int link)
{
	struct greeting greeting = { .pid = getpid() };
	struct homa_streams *streams = NULL;
	int notify;

	leave_program(link);
	greeting.rc = homa_streams_open(&streams, NULL);
	if (!greeting.rc)
		greeting.rc = drop_rights();
	if (write(link, &greeting, sizeof(greeting)) != sizeof(greeting) ||
	    greeting.rc)
		_exit(1);
	notify = receive_fd(link);
	/* The program waits until this socket is closed. */
	if (notify < 0)
		_exit(1);
	close(link);
	homa_sv_run(streams, notify);
	_exit(0);
}

/* Start the supervisor, as nobody's child. Returns the socket to it, or -1. */
static int start_supervisor(void)
{
	int link[2];
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link))
		return -1;
	child = fork();
	if (!child) {
		close(link[0]);
		if (!fork())
			supervise(link[1]);
		_exit(0);
	}
	close(link[1]);
	if (child > 0 && waitpid(child, NULL, 0) == child)
		return link[0];
	close(link[0]);
	return -1;
}

/* ---- the program ---- */

/* Have the supervisor told of this process's calls. Why not, or NULL. */
static const char *be_supervised(int link)
{
	struct greeting greeting;
	char end;
	int notify;

	if (read(link, &greeting, sizeof(greeting)) != sizeof(greeting))
		return "the supervisor has not begun";
	if (greeting.rc)
		return strerror(-greeting.rc);
	/* Where only a process's ancestors may look into it (Yama). */
	prctl(PR_SET_PTRACER, (unsigned long)greeting.pid, 0, 0, 0);
	notify = homa_sv_filter();
	if (notify < 0)
		return strerror(-notify);
	if (!send_fd(link, notify)) {
		/* Calls would fail from now on. */
		fputs("homa-supervisor: the supervisor has ended\n", stderr);
		_exit(127);
	}
	close(notify);
	return read(link, &end, 1) ? "the supervisor says something strange" :
				     NULL;
}

int homa_sv_launch(char **argv)
{
	int link = start_supervisor();
	const char *why = link < 0 ? "no process or socket" : be_supervised(link);

	if (why)
		homa_sv_debug("TCP is the kernel's: %s", why);
	if (link >= 0)
		close(link);
	execvp(argv[0], argv);
	fprintf(stderr, "homa-supervisor: %s: %s\n", argv[0], strerror(errno));
	return errno == ENOENT ? 127 : 126;
}
