// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Calls that wait for an answer. Who called may be gone at any time, and its number another's:
 * after something was opened by that number, the kernel is asked whether the call still waits. A
 * signal interrupts a call that waits; then an answer finds nobody, and if the program does not
 * give up, the call comes again. So whatever is done for a call is found when it is done once
 * more.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <fcntl.h>
#include "supervisor.h"

/* Headers of the C library may be older. */
#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

bool homa_sv_receive(struct homa_supervisor *sv, struct homa_sv_call *call)
{
	/* A kernel may have longer structs than the headers that we were compiled with. */
	union {
		/* What we know of it. */
		struct seccomp_notif one;
		/* Room for what later kernels add. */
		u8 room[512];
	} told;
	int i;

	memset(&told, 0, sizeof(told));
	if (ioctl(sv->notify, SECCOMP_IOCTL_NOTIF_RECV, &told.one))
		return false;
	homa_list_init(&call->link);
	call->id = told.one.id;
	call->until = ~(u64)0;
	call->thread = (pid_t)told.one.pid;
	call->fd = -1;
	call->number = told.one.data.nr;
	for (i = 0; i < 6; i++)
		call->args[i] = told.one.data.args[i];
	return true;
}

static bool send_answer(struct homa_supervisor *sv, u64 id, s64 value, u32 flags)
{
	union {
		/* What we know of it. */
		struct seccomp_notif_resp one;
		/* Room for what later kernels read. */
		u8 room[256];
	} answer;

	memset(&answer, 0, sizeof(answer));
	answer.one.id = id;
	answer.one.flags = flags;
	if (value < 0)
		answer.one.error = (s32)value;
	else
		answer.one.val = value;
	return !ioctl(sv->notify, SECCOMP_IOCTL_NOTIF_SEND, &answer.one);
}

void homa_sv_done(struct homa_sv_call *call)
{
	if (call->fd >= 0)
		close(call->fd);
	call->fd = -1;
}

bool homa_sv_answer(struct homa_supervisor *sv, struct homa_sv_call *call,
		    s64 value)
{
	homa_sv_done(call);
	return send_answer(sv, call->id, value, 0);
}

void homa_sv_pass(struct homa_supervisor *sv, struct homa_sv_call *call)
{
	homa_sv_done(call);
	send_answer(sv, call->id, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
}

bool homa_sv_valid(struct homa_supervisor *sv, const struct homa_sv_call *call)
{
	u64 id = call->id;

	return !ioctl(sv->notify, SECCOMP_IOCTL_NOTIF_ID_VALID, &id);
}

/* The process of a thread, as /proc tells it; 0 if it does not. */
static pid_t process_of(pid_t thread)
{
	char path[64], line[128];
	pid_t process = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)thread);
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (!process && fgets(line, sizeof(line), file))
		if (!strncmp(line, "Tgid:", 5))
			process = atoi(line + 5);
	fclose(file);
	return process;
}

int homa_sv_fetch_from(pid_t thread, int fd)
{
	long pidfd, got;

	pidfd = syscall(SYS_pidfd_open, thread, PIDFD_THREAD);
	/* Before Linux 6.9 there are none for threads. */
	if (pidfd < 0 && errno == EINVAL)
		pidfd = syscall(SYS_pidfd_open, process_of(thread), 0);
	if (pidfd < 0)
		return -errno;
	got = syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	if (got < 0)
		got = -errno;
	close((int)pidfd);
	return (int)got;
}

void homa_sv_keep_spare(struct homa_supervisor *sv)
{
	int i;

	for (i = 0; i < 2; i++)
		if (sv->spare[i] < 0)
			sv->spare[i] = fcntl(sv->epoll, F_DUPFD_CLOEXEC, 0);
}

bool homa_sv_is_full(const struct homa_supervisor *sv)
{
	return sv->spare[0] < 0 || sv->spare[1] < 0;
}

static int fetch_with_spare(struct homa_supervisor *sv, pid_t thread, int fd)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (sv->spare[i] >= 0)
			close(sv->spare[i]);
		sv->spare[i] = -1;
	}
	return homa_sv_fetch_from(thread, fd);
}

bool homa_sv_fetch(struct homa_supervisor *sv, struct homa_sv_call *call)
{
	int fd = (int)call->args[0];

	call->fd = homa_sv_fetch_from(call->thread, fd);
	if (call->fd == -EMFILE || call->fd == -ENFILE)
		call->fd = fetch_with_spare(sv, call->thread, fd);
	if (call->fd >= 0 && !homa_sv_valid(sv, call))
		homa_sv_done(call);
	return call->fd >= 0;
}

/* Is the caller's descriptor one that exec closes? */
static bool closes_on_exec(const struct homa_sv_call *call, int fd)
{
	char path[64], text[256], *flags;
	ssize_t n = 0;
	int file;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", (int)call->thread, fd);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return false;
	n = read(file, text, sizeof(text) - 1);
	close(file);
	text[n > 0 ? n : 0] = 0;
	flags = strstr(text, "flags:");
	return flags && (strtoul(flags + 6, NULL, 8) & O_CLOEXEC);
}

static int add(struct homa_supervisor *sv, const struct homa_sv_call *call,
	       int from, int fd, u32 flags, bool close_on_exec)
{
	struct seccomp_notif_addfd what = {
		.id = call->id,
		.flags = flags,
		.srcfd = (u32)from,
		.newfd = (u32)fd,
		.newfd_flags = close_on_exec ? O_CLOEXEC : 0,
	};
	int got = ioctl(sv->notify, SECCOMP_IOCTL_NOTIF_ADDFD, &what);

	return got < 0 ? -errno : got;
}

/* Another thread may have closed the descriptor while the call waited, and opened a file there. */
static int has_socket(const struct homa_sv_call *call, int fd, u64 cookie)
{
	int there = homa_sv_fetch_from(call->thread, fd), rc = 0;

	if (there < 0)
		return there;
	if (homa_sv_cookie(there) != cookie)
		rc = -EBADF;
	close(there);
	return rc;
}

int homa_sv_put(struct homa_supervisor *sv, const struct homa_sv_call *call,
		int from, int fd, u64 cookie)
{
	int rc = has_socket(call, fd, cookie);

	if (rc)
		return homa_sv_valid(sv, call) ? rc : -ENOENT;
	rc = add(sv, call, from, fd, SECCOMP_ADDFD_FLAG_SETFD,
		 closes_on_exec(call, fd));
	return rc < 0 ? rc : 0;
}

int homa_sv_give(struct homa_supervisor *sv, struct homa_sv_call *call,
		 int from, bool close_on_exec)
{
	/* Not with SECCOMP_ADDFD_FLAG_SEND: then the program goes on while this system call still
	 * has the socket, and a close() of the program would not be its end. */
	homa_sv_done(call);
	return add(sv, call, from, 0, 0, close_on_exec);
}

bool homa_sv_load(const struct homa_sv_call *call, void *to, u64 from,
		  size_t bytes)
{
	struct iovec here = { to, bytes };
	struct iovec there = { (void *)(uintptr_t)from, bytes };

	return process_vm_readv(call->thread, &here, 1, &there, 1, 0) ==
	       (ssize_t)bytes;
}

bool homa_sv_store(const struct homa_sv_call *call, u64 to, const void *from,
		   size_t bytes)
{
	struct iovec here = { (void *)(uintptr_t)from, bytes };
	struct iovec there = { (void *)(uintptr_t)to, bytes };

	return process_vm_writev(call->thread, &here, 1, &there, 1, 0) ==
	       (ssize_t)bytes;
}
