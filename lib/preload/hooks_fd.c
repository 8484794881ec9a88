// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Hooks of the calls that close and configure descriptors, whatever they
 * are of; and of munmap(), as receive regions are in use until then.
 */
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "hook.h"
#include "internal.h"
#include "pl_signals.h"
#include "tcp.h"
#include "tcp_common.h"

/* Close one of our own descriptors. The program hears that it has none of that number. */
static int close_own(int fd)
{
	if (homa_pl_signals.depth) {
		homa_pl_close_own_fd(fd);
		return 0;
	}
	errno = EBADF;
	return -1;
}

HOMA_PL_HOOK int close(int fd)
{
	struct homa_pl_sock *s = homa_pl_find_or_cancel(fd);

	if (!s && homa_pl_is_own_fd(fd))
		return close_own(fd);
	/* A child of vfork() that closes all descriptors is about to run another program. */
	if (!s && HOMA_PL_LIKELY(!homa_pl_live || fd != homa_pl_tcp_kept_pipe()))
		return HOMA_PL_REAL(close)(fd);
	if (!s)
		return 0;
	if (s->tcp)
		homa_pl_tcp_leaves(s, fd);
	return (int)homa_pl_result(s, homa_pl_close(fd));
}

static void close_from_to(unsigned int first, unsigned int last)
{
	int fd = first > INT32_MAX ? -1 : homa_pl_table_next((int)first);

	while (fd >= 0 && (unsigned int)fd <= last) {
		close(fd);
		fd = homa_pl_table_next(fd + 1);
	}
}

/* The first descriptor from @first on that is left open, as in close(): the pipe that a child of
 * vfork() has to keep, and our own. ~0 if there is none. */
static unsigned int next_kept(unsigned int first)
{
	unsigned int pipe =
		homa_pl_live ? (unsigned int)homa_pl_tcp_kept_pipe() : ~0u;
	unsigned int own = first > INT32_MAX ?
				   ~0u :
				   (unsigned int)homa_pl_next_own_fd((int)first);

	return pipe >= first && pipe < own ? pipe : own;
}

HOMA_PL_HOOK int close_range(unsigned int first, unsigned int last, int flags)
{
	unsigned int kept;

	if (!HOMA_PL_REAL(close_range)) {
		errno = ENOSYS;
		return -1;
	}
	if (first > last || (flags & CLOSE_RANGE_CLOEXEC))
		return HOMA_PL_REAL(close_range)(first, last, flags);
	if (homa_pl_live)
		close_from_to(first, last);
	while ((kept = next_kept(first)) <= last) {
		if (kept > first &&
		    HOMA_PL_REAL(close_range)(first, kept - 1, flags))
			return -1;
		if (kept == last)
			return 0;
		first = kept + 1;
	}
	return HOMA_PL_REAL(close_range)(first, last, flags);
}

HOMA_PL_HOOK void closefrom(int low)
{
	unsigned int first = low < 0 ? 0 : (unsigned int)low;

	if (next_kept(first) != ~0u && !close_range(first, ~0u, 0))
		return;
	if (homa_pl_live)
		close_from_to(first, INT32_MAX);
	HOMA_PL_REAL(closefrom)(low);
}

static void set_nonblock(struct homa_pl_sock *s, bool on)
{
	homa_pl_tcp_change(s);
	s->status = on ? O_NONBLOCK : 0;
	if (s->tcp->listens)
		homa_pl_tcp_store_listener(s);
	homa_pl_tcp_changed(s);
}

/* Of a socket that listens the kernel keeps O_ASYNC alone as the program has set it. */
static int listener_flags(struct homa_pl_sock *s, int fd, int cmd, int wanted)
{
	int flags = HOMA_PL_REAL(fcntl)(fd, F_GETFL);

	if (cmd == F_SETFL && flags >= 0 && ((flags ^ wanted) & O_ASYNC))
		HOMA_PL_REAL(fcntl)(fd, F_SETFL, flags ^ O_ASYNC);
	homa_pl_tcp_fetch_listener(s);
	return cmd == F_SETFL ? 0 : O_RDWR | s->status | (flags & O_ASYNC);
}

/* Do F_GETFL and F_SETFL of a TCP socket. One that listens must never block in the kernel. */
static int tcp_flags(struct homa_pl_sock *s, int fd, int cmd, void *arg)
{
	int rc;

	if (cmd == F_SETFL)
		set_nonblock(s, (int)(intptr_t)arg & O_NONBLOCK);
	if (s->tcp->listens)
		return listener_flags(s, fd, cmd, (int)(intptr_t)arg);
	rc = HOMA_PL_REAL(fcntl)(fd, cmd, arg);
	if (rc < 0 || cmd == F_SETFL || !s->tcp->common)
		return rc < 0 ? -errno : rc;
	/* Another process may have set it, at a socket of the kernel of its own. */
	homa_pl_tcp_fetch(s);
	return (rc & ~O_NONBLOCK) | s->status;
}

/* Could the call change who gets which signals of the socket? */
static bool is_about_signals(int cmd, const void *arg)
{
	return cmd == F_SETOWN || cmd == F_SETOWN_EX || cmd == F_SETSIG ||
	       (cmd == F_SETFL && ((intptr_t)arg & O_ASYNC));
}

static int tcp_control(struct homa_pl_sock *s, int fd, int cmd, void *arg)
{
	int rc;

	if (cmd == F_GETFL || cmd == F_SETFL) {
		rc = tcp_flags(s, fd, cmd, arg);
	} else {
		rc = HOMA_PL_REAL(fcntl)(fd, cmd, arg);
		rc = rc < 0 ? -errno : rc;
	}
	if (rc >= 0 &&
	    (is_about_signals(cmd, arg) || (cmd == F_SETFL && s->tcp->async.on)))
		homa_pl_tcp_async_changed(s, fd);
	return rc;
}

static int control(struct homa_pl_sock *s, int fd, int cmd, void *arg)
{
	int rc;

	if (s->tcp && cmd != F_DUPFD && cmd != F_DUPFD_CLOEXEC)
		return tcp_control(s, fd, cmd, arg);
	if ((cmd == F_GETFL || cmd == F_SETFL) && s->set) {
		rc = HOMA_PL_REAL(fcntl)(fd, cmd, arg);
		return rc < 0 ? -errno : rc;
	}
	switch (cmd) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		return homa_pl_dup(s, fd, (int)(intptr_t)arg,
				   cmd == F_DUPFD_CLOEXEC);
	case F_GETFL:
		return O_RDWR | s->status;
	case F_SETFL:
		/* The flags of the real descriptor stay, because libhoma relies on them. */
		s->status = (int)(intptr_t)arg & O_NONBLOCK;
		return 0;
	}
	rc = HOMA_PL_REAL(fcntl)(fd, cmd, arg);
	return rc < 0 ? -errno : rc;
}

HOMA_PL_HOOK int fcntl(int fd, int cmd, ...)
{
	struct homa_pl_sock *s = homa_pl_find(fd);
	va_list args;
	void *arg;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	if (!s)
		return HOMA_PL_REAL(fcntl)(fd, cmd, arg);
	return (int)homa_pl_result(s, control(s, fd, cmd, arg));
}

HOMA_PL_HOOK int fcntl64(int fd, int cmd, ...)
{
	struct homa_pl_sock *s = homa_pl_find(fd);
	va_list args;
	void *arg;

	va_start(args, cmd);
	arg = va_arg(args, void *);
	va_end(args);
	if (!s)
		return HOMA_PL_REAL(fcntl64)(fd, cmd, arg);
	return (int)homa_pl_result(s, control(s, fd, cmd, arg));
}

/* Do ioctl() of a TCP socket or an epoll set. The kernel does it, except for what concerns a
 * stream. */
static int kernels_ioctl(struct homa_pl_sock *s, int fd, unsigned long request,
			 void *arg)
{
	int rc;

	if (s->tcp && s->tcp->stream && arg &&
	    (request == FIONREAD || request == SIOCOUTQ || request == SIOCOUTQNSD))
		return homa_pl_tcp_count(s, request, arg);
	if (s->tcp && s->tcp->stream && arg && request == SIOCATMARK)
		return homa_pl_tcp_at_mark(s, arg);
	if (s->tcp && request == FIONBIO && arg) {
		set_nonblock(s, *(const int *)arg);
		if (s->tcp->listens)
			return 0;
	}
	rc = HOMA_PL_REAL(ioctl)(fd, request, arg);
	if (rc >= 0 && s->tcp &&
	    (request == FIOASYNC || request == FIOSETOWN || request == SIOCSPGRP))
		homa_pl_tcp_async_changed(s, fd);
	return rc < 0 ? -errno : rc;
}

HOMA_PL_HOOK int ioctl(int fd, unsigned long request, ...)
{
	struct homa_pl_sock *s = homa_pl_find(fd);
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (!s)
		return HOMA_PL_REAL(ioctl)(fd, request, arg);
	if (s->tcp || s->set)
		return (int)homa_pl_result(s, kernels_ioctl(s, fd, request, arg));
	return (int)homa_pl_result(s, homa_pl_ioctl(s, fd, request, arg));
}

/* The C library's own calls ioctl() where it cannot be replaced. */
HOMA_PL_HOOK int sockatmark(int fd)
{
	int at;

	return ioctl(fd, SIOCATMARK, &at) < 0 ? -1 : at;
}

HOMA_PL_HOOK int munmap(void *start, size_t length)
{
	int rc;

	/* homa_pl_enter() fails for libhoma's own calls of munmap(). */
	if (HOMA_PL_LIKELY(!homa_pl_live) || homa_pl_enter())
		return HOMA_PL_REAL(munmap)(start, length);
	rc = homa_pl_region_unmap(start, length);
	homa_pl_leave();
	if (!rc)
		return 0;
	errno = -rc;
	return -1;
}

/*
 * A child that shares our memory until it calls exec would close and replace
 * descriptors in our table, too. POSIX lets vfork() be fork().
 */
HOMA_PL_HOOK pid_t vfork(void)
{
	pid_t pid;

	/* The child is about to run another program, which gets the streams then. */
	homa_pl_tcp_vforks(true);
	pid = fork();
	homa_pl_tcp_vforks(false);
	return pid;
}
