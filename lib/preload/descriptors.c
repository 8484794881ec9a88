// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The descriptors of Homa sockets: closed, duplicated, and filled with
 * libhoma's readiness descriptor when somebody wants to wait for them. One
 * lock over all of it, so that a number that is being closed in one thread is
 * never written over by another.
 *
 * A signal handler may close or duplicate while its thread is in the middle of
 * such a call, or of a call of libhoma; what it closes then is closed when that
 * call ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "libhoma_preload.h"
#include "internal.h"
#include "real.h"
#include "preload_sock.h"

/* The most descriptors that a signal handler can close while its thread is in a call. */
#define LATER 32

static pthread_mutex_t fds_lock = PTHREAD_MUTEX_INITIALIZER;

/* With initial-exec nothing is allocated when a signal handler is the first to look. */
static __thread struct {
	/* 1 while the thread is in a call of homa_pl_enter(), else 0. */
	int depth;
	/* The number of descriptors in @fds, which are closed when that call ends. */
	int closes;
	int fds[LATER];
} self __attribute__((tls_model("initial-exec")));

static void close_one(int fd);

bool homa_pl_inside(void)
{
	return self.depth > 0;
}

int homa_pl_enter(void)
{
	if (self.depth)
		return -EDEADLK;
	self.depth = 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return 0;
}

void homa_pl_leave(void)
{
	while (self.closes)
		close_one(self.fds[--self.closes]);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	self.depth = 0;
}

void homa_pl_lock_fds(void)
{
	pthread_mutex_lock(&fds_lock);
}

void homa_pl_unlock_fds(void)
{
	pthread_mutex_unlock(&fds_lock);
}

void homa_pl_reset_fds(void)
{
	pthread_mutex_init(&fds_lock, NULL);
}

int homa_pl_placeholder(bool cloexec)
{
	int fd = eventfd(0, EFD_NONBLOCK | (cloexec ? EFD_CLOEXEC : 0));

	return fd < 0 ? -errno : fd;
}

static void close_one(int fd)
{
	struct homa_pl_sock *s;

	homa_pl_lock_fds();
	s = homa_pl_table_set(fd, NULL);
	HOMA_PL_REAL(close)(fd);
	homa_pl_unlock_fds();
	if (s)
		homa_pl_drop(s);
}

int homa_pl_close(int fd)
{
	if (homa_pl_enter()) {
		if (self.closes == LATER)
			return -EDEADLK;
		self.fds[self.closes++] = fd;
		return 0;
	}
	close_one(fd);
	homa_pl_leave();
	return 0;
}

int homa_pl_dup(struct homa_pl_sock *s, int old, int lowest, bool cloexec)
{
	int fd, rc = homa_pl_enter();

	if (rc)
		return rc;
	homa_pl_lock_fds();
	fd = HOMA_PL_REAL(fcntl)(old, cloexec ? F_DUPFD_CLOEXEC : F_DUPFD,
				 lowest);
	rc = fd < 0 ? -errno : homa_pl_table_room(fd);
	/* Another thread may have closed @old, and made something else of the number. */
	if (!rc && homa_pl_table_get(old) != s)
		rc = -EBADF;
	if (!rc) {
		__atomic_fetch_add(&s->refs, 1, __ATOMIC_RELAXED);
		homa_pl_table_set(fd, s);
	} else if (fd >= 0) {
		HOMA_PL_REAL(close)(fd);
	}
	homa_pl_unlock_fds();
	homa_pl_leave();
	return rc ? rc : fd;
}

void homa_pl_add_fd(struct homa_pl_sock *s, int fd)
{
	if (homa_pl_table_room(fd))
		return;
	__atomic_fetch_add(&s->refs, 1, __ATOMIC_RELAXED);
	homa_pl_table_set(fd, s);
}

int homa_pl_dup_to(struct homa_pl_sock *s, int old, int fd, int flags)
{
	struct homa_pl_sock *before = NULL;
	int rc = homa_pl_enter();

	if (rc)
		return rc;
	homa_pl_lock_fds();
	rc = s ? homa_pl_table_room(fd) : 0;
	/* dup() says EMFILE of so large a number, dup2() does not. */
	if (rc == -EMFILE)
		rc = -EBADF;
	/* Another thread may have closed @old, and made something else of the number. */
	if (!rc && s && homa_pl_table_get(old) != s)
		rc = -EBADF;
	if (!rc && HOMA_PL_REAL(dup3)(old, fd, flags) < 0)
		rc = -errno;
	if (!rc) {
		if (s)
			__atomic_fetch_add(&s->refs, 1, __ATOMIC_RELAXED);
		before = homa_pl_table_set(fd, s);
	}
	homa_pl_unlock_fds();
	if (before)
		homa_pl_drop(before);
	homa_pl_leave();
	return rc ? rc : fd;
}

/* Is the descriptor writable? Some readiness descriptors never are, while sockets always are. */
static bool writable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	return HOMA_PL_REAL(poll)(&p, 1, 0) == 1 && (p.revents & POLLOUT);
}

/* Put @ready behind every descriptor of @s. The caller has the lock. */
static int fill_in(struct homa_pl_sock *s, int ready)
{
	int fd = -1;

	while ((fd = homa_pl_table_next(fd + 1)) >= 0) {
		int flags;

		if (homa_pl_table_get(fd) != s)
			continue;
		flags = HOMA_PL_REAL(fcntl)(fd, F_GETFD);
		if (HOMA_PL_REAL(dup3)(ready, fd,
				       flags & FD_CLOEXEC ? O_CLOEXEC : 0) < 0)
			return -errno;
	}
	return 0;
}

int homa_pl_arm(struct homa_pl_sock *s, bool edges)
{
	int ready, rc;

	rc = homa_pl_ready(s);
	if (rc || (s->armed && (s->edges || !edges)))
		return rc;
	homa_pl_lock_fds();
	if (!s->armed) {
		ready = homa_fd(s->h);
		rc = ready < 0 ? ready : fill_in(s, ready);
		s->no_out = !rc && !writable(ready);
		s->armed = !rc;
	}
	if (!rc && edges && !s->edges) {
		s->edges = true;
		homa_internal_fd_edges(s->h);
	}
	homa_pl_unlock_fds();
	return rc;
}
