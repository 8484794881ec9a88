// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * poll() and select() of streams mixed with other descriptors. What is homad's is asked in
 * shared memory; the kernel is asked for the rest, and does the sleeping. Of an epoll set
 * both are asked, as it may have sockets of either in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "internal.h"
#include "pl_signals.h"
#include "tcp.h"
#include "real.h"

#define FEW 64 /* descriptors for which no memory is allocated */

/* The socket of @fd with a reference, if it is homad's; else NULL. */
static struct homa_pl_sock *find_stream(int fd)
{
	struct homa_pl_sock *s = fd < 0 ? NULL : homa_pl_find(fd);

	if (s && s->tcp && homa_pl_tcp_stream(s->tcp))
		return s;
	if (s)
		homa_pl_put(s);
	return NULL;
}

/* The same for an epoll set. */
static struct homa_pl_sock *find_set(int fd)
{
	struct homa_pl_sock *s = fd < 0 ? NULL : homa_pl_find(fd);

	if (s && s->set)
		return s;
	if (s)
		homa_pl_put(s);
	return NULL;
}

bool homa_pl_tcp_any(const struct pollfd *fds, nfds_t n)
{
	struct homa_pl_sock *s;
	nfds_t i;

	for (i = 0; i < n; i++) {
		s = find_stream(fds[i].fd);
		if (!s)
			s = find_set(fds[i].fd);
		if (s) {
			homa_pl_put(s);
			return true;
		}
	}
	return false;
}

/* struct round - the @n descriptors of a call of poll() */
struct round {
	/* The program's array. */
	struct pollfd *fds;
	nfds_t n;
};

/* What @fd is ready for as far as homad is concerned. */
static int ready_of(int fd)
{
	struct homa_pl_sock *s = find_stream(fd);
	int got = 0;

	if (s) {
		got = homa_pl_tcp_ready(s);
	} else {
		s = find_set(fd);
		if (s && homa_pl_tcp_set_ready(s))
			got = POLLIN | POLLRDNORM;
	}
	if (s)
		homa_pl_put(s);
	return got;
}

/* Fill in what streams are ready for, and sets by their streams; returns how many are. */
static int look(struct pollfd *fds, nfds_t n)
{
	int count = 0;
	nfds_t i;

	for (i = 0; i < n; i++) {
		fds[i].revents = (short)(ready_of(fds[i].fd) &
					 (fds[i].events | POLLERR | POLLHUP));
		count += fds[i].revents != 0;
	}
	return count;
}

static bool any_ready(void *arg)
{
	struct round *r = arg;

	return look(r->fds, r->n) > 0;
}

/* Is one of the sockets @told polled? An epoll set may have such a socket in it. */
static bool any_told(const void *arg, struct homa_pl_sock *const *told, int n)
{
	const struct round *r = arg;
	nfds_t i;
	int j;

	for (i = 0; i < r->n; i++) {
		const struct homa_pl_sock *s = homa_pl_table_get(r->fds[i].fd);

		if (s && s->set)
			return true;
		for (j = 0; s && j < n; j++)
			if (told[j] == s)
				return true;
	}
	return false;
}

/* Write to @kernel what the kernel is asked: listening sockets, and all that are not homad's. */
static void prepare(const struct pollfd *fds, nfds_t n, struct pollfd *kernel)
{
	nfds_t i;

	homa_pl_tcp_sets_tell();
	for (i = 0; i < n; i++) {
		struct homa_pl_sock *s = find_stream(fds[i].fd);

		kernel[i] = fds[i];
		kernel[i].revents = 0;
		if (s && !s->tcp->listens)
			kernel[i].fd = -1;
		if (s)
			homa_pl_put(s);
	}
}

/* Join what streams and the kernel are ready for; returns how many descriptors are ready. */
static int merge(struct pollfd *fds, nfds_t n, const struct pollfd *kernel)
{
	int count = 0;
	nfds_t i;

	look(fds, n);
	for (i = 0; i < n; i++) {
		if (kernel[i].fd >= 0)
			fds[i].revents |= kernel[i].revents;
		count += fds[i].revents != 0;
	}
	return count;
}

static int poll_in(struct pollfd *fds, nfds_t n, int64_t until,
		   const sigset_t *mask, struct pollfd *kernel)
{
	const struct timespec now = { 0, 0 };
	struct round r = { fds, n };
	struct homa_pl_waits waits = { any_ready, any_told, &r };
	/* Signals that only the mask lets in run their handlers, also if nobody waits. */
	bool slept = !mask;
	int rc, ended = 0;

	for (;;) {
		homa_pl_pump();
		prepare(fds, n, kernel);
		rc = HOMA_PL_REAL(ppoll)(kernel, n, &now, NULL);
		if (rc < 0)
			return -errno;
		rc = merge(fds, n, kernel);
		if (rc || ended || (slept && until <= homa_pl_now()))
			return rc ? rc : ended;
		rc = homa_pl_sleep(kernel, n, until, mask, &waits);
		slept |= rc <= 0;
		/* A signal always ends poll(), but what has come is returned before EINTR. */
		ended = rc == -HOMA_PL_RESTART ? -EINTR : rc < 0 ? rc : 0;
	}
}

static int poll_many(struct pollfd *fds, nfds_t n, int64_t until,
		     const sigset_t *mask)
{
	struct pollfd *kernel = NULL;
	int rc;

	if (n < SIZE_MAX - 1)
		kernel = reallocarray(NULL, n + 1, sizeof(*kernel));
	if (!kernel)
		return -ENOMEM;
	pthread_cleanup_push(free, kernel);
	rc = poll_in(fds, n, until, mask, kernel);
	pthread_cleanup_pop(1);
	return rc;
}

static void is_cancelled(void *arg)
{
	(void)arg;
	homa_pl_unhold();
}

int homa_pl_tcp_poll(struct pollfd *fds, nfds_t n, int64_t until,
		     const sigset_t *mask)
{
	struct pollfd few[FEW + 1];
	int rc;

	pthread_testcancel();
	homa_pl_hold();
	pthread_cleanup_push(is_cancelled, NULL);
	rc = n <= FEW ? poll_in(fds, n, until, mask, few) :
			poll_many(fds, n, until, mask);
	pthread_cleanup_pop(0);
	homa_pl_unhold();
	return rc;
}

/* ---- select ---- */

static bool in(int fd, const fd_set *set)
{
	return set && FD_ISSET(fd, set);
}

static nfds_t from_sets(int n, const fd_set *reads, const fd_set *writes,
			const fd_set *excepts, struct pollfd *fds)
{
	nfds_t count = 0;
	int fd;

	for (fd = 0; fd < n; fd++) {
		short events = 0;

		events |= in(fd, reads) ? POLLIN : 0;
		events |= in(fd, writes) ? POLLOUT : 0;
		events |= in(fd, excepts) ? POLLPRI : 0;
		if (events)
			fds[count++] =
				(struct pollfd){ .fd = fd, .events = events };
	}
	return count;
}

/* What select() says of sets. poll() tells more: an end of what is neither read nor written. */
#define READABLE (POLLIN | POLLHUP | POLLERR)
#define WRITABLE (POLLOUT | POLLERR)

static bool is_wanted(int fd, int got, const fd_set *reads,
		      const fd_set *writes, const fd_set *excepts)
{
	return (got & POLLNVAL) || (in(fd, reads) && (got & READABLE)) ||
	       (in(fd, writes) && (got & WRITABLE)) ||
	       (in(fd, excepts) && (got & POLLPRI));
}

/* Is there something that select() tells? Descriptors of which only something else was told, which
 * would stay so, are not asked again: their numbers are inverted. */
static bool any_wanted(struct pollfd *fds, nfds_t n, const fd_set *reads,
		       const fd_set *writes, const fd_set *excepts)
{
	bool any = false;
	nfds_t i;

	for (i = 0; i < n; i++) {
		if (!fds[i].revents)
			continue;
		if (is_wanted(fds[i].fd, fds[i].revents, reads, writes, excepts))
			any = true;
		else
			fds[i].fd = ~fds[i].fd;
	}
	return any;
}

static int keep_if_ready(int fd, fd_set *set, bool is_ready)
{
	if (!in(fd, set))
		return 0;
	if (!is_ready)
		FD_CLR(fd, set);
	return is_ready;
}

static int to_sets(const struct pollfd *fds, nfds_t n, fd_set *reads,
		   fd_set *writes, fd_set *excepts)
{
	int count = 0;
	nfds_t i;

	for (i = 0; i < n; i++) {
		int fd = fds[i].fd < 0 ? ~fds[i].fd : fds[i].fd;
		int got = fds[i].revents;

		if (got & POLLNVAL)
			return -EBADF;
		count += keep_if_ready(fd, reads, got & READABLE);
		count += keep_if_ready(fd, writes, got & WRITABLE);
		count += keep_if_ready(fd, excepts, got & POLLPRI);
	}
	return count;
}

/* The size of the kernel's table of descriptors; -1 if /proc does not tell it. */
static int read_table_size(void)
{
	char text[1024], *line;
	int fd = open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		return -1;
	got = HOMA_PL_REAL(read)(fd, text, sizeof(text) - 1);
	HOMA_PL_REAL(close)(fd);
	text[got > 0 ? got : 0] = 0;
	line = strstr(text, "\nFDSize:");
	return line ? atoi(line + sizeof("\nFDSize:") - 1) : -1;
}

/* Returns the number of bits of sets of @n bits that the kernel would look at. Programs may
 * say any number, and have memory for fewer bits: the kernel stops at the size of its table
 * of descriptors. Where /proc does not tell that, -1 is returned for more than there may be
 * descriptors. */
static int bits_of_sets(int n)
{
	struct rlimit most;
	int size, cancel;

	if (n <= FD_SETSIZE)
		return n;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	size = read_table_size();
	pthread_setcancelstate(cancel, &cancel);
	if (size > 0)
		return n < size ? n : size;
	return getrlimit(RLIMIT_NOFILE, &most) || (rlim_t)n > most.rlim_cur ? -1 :
									      n;
}

static int select_bits(int n, fd_set *reads, fd_set *writes, fd_set *excepts,
		       int64_t until, const sigset_t *mask)
{
	struct pollfd *fds = reallocarray(NULL, (size_t)n, sizeof(*fds));
	nfds_t count;
	int rc;

	if (!fds)
		return -ENOMEM;
	pthread_cleanup_push(free, fds);
	count = from_sets(n, reads, writes, excepts, fds);
	do
		rc = homa_pl_tcp_poll(fds, count, until, mask);
	while (rc > 0 && !any_wanted(fds, count, reads, writes, excepts));
	if (rc >= 0)
		rc = to_sets(fds, count, reads, writes, excepts);
	pthread_cleanup_pop(1);
	return rc;
}

int homa_pl_tcp_select(int n, fd_set *reads, fd_set *writes, fd_set *excepts,
		       int64_t until, const sigset_t *mask)
{
	n = bits_of_sets(n);
	return n < 0 ? -EINVAL :
		       select_bits(n, reads, writes, excepts, until, mask);
}
