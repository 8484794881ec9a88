// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * splice() between a connection of homad's and a pipe. The bytes are copied. What is taken from
 * the one end is never more than the other has room for, so no call waits that must not, and what
 * has no room stays where it is. Only if another thread fills the room meanwhile, the rest waits,
 * as it must not be lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "pl_signals.h"
#include "real.h"
#include "stream_fork.h"
#include "tcp.h"

#define SCRATCH 16384u /* bytes that are moved at once */
#define SLOT \
	4096u /* bytes in a page of a pipe, which a short write uses up, too */
#define FLAGS \
	(SPLICE_F_MOVE | SPLICE_F_NONBLOCK | SPLICE_F_MORE | SPLICE_F_GIFT)

/* Is @fd a pipe that is open for @access? Returns 0, -EBADF, or -EINVAL if it is no pipe. */
static int check_pipe(int fd, int access)
{
	int flags = HOMA_PL_REAL(fcntl)(fd, F_GETFL);
	struct stat file;

	if (flags < 0 || fstat(fd, &file))
		return -EBADF;
	if ((flags & O_ACCMODE) != access && (flags & O_ACCMODE) != O_RDWR)
		return -EBADF;
	return S_ISFIFO(file.st_mode) ? 0 : -EINVAL;
}

static bool may_wait(int fd, unsigned int flags)
{
	return !(flags & SPLICE_F_NONBLOCK) &&
	       !(HOMA_PL_REAL(fcntl)(fd, F_GETFL) & O_NONBLOCK);
}

static bool is_of_pipe(const void *arg, struct homa_pl_sock *const *told, int n)
{
	(void)arg;
	(void)told;
	return n < 0;
}

/* Wait until the pipe is ready for @events. Returns what it is ready for, or -EAGAIN if it is not
 * and nobody waits, or -EINTR. */
static int await_pipe(int fd, short events, bool waits)
{
	/* homa_pl_sleep() needs room for one more. */
	struct pollfd fds[2] = { { .fd = fd, .events = events } };
	/* No news concerns it. */
	struct homa_pl_waits sleeps = { .concerned = is_of_pipe };
	int rc;

	for (;;) {
		fds[0].revents = 0;
		if (HOMA_PL_REAL(poll)(fds, 1, 0) > 0)
			return fds[0].revents;
		if (!waits)
			return -EAGAIN;
		rc = homa_pl_sleep(fds, 1, INT64_MAX, NULL, &sleeps);
		if (rc < 0 && rc != -HOMA_PL_RESTART)
			return rc;
	}
}

/* ---- from the socket ---- */

/* The bytes that the pipe takes without waiting, or a negative errno. */
static ssize_t room_in(int fd, bool waits)
{
	int events = await_pipe(fd, POLLOUT, waits), held, size;

	if (events < 0)
		return events;
	if (events & POLLERR) {
		pthread_kill(pthread_self(), SIGPIPE);
		return -EPIPE;
	}
	size = HOMA_PL_REAL(fcntl)(fd, F_GETPIPE_SZ);
	/* If there are bytes in it, nobody says in how many pages they are; one is free. */
	if (size < (int)SLOT || HOMA_PL_REAL(ioctl)(fd, FIONREAD, &held) || held)
		return SLOT;
	return size;
}

/* Write all that was taken; the pipe has room, unless another thread was quicker. */
static ssize_t put(int fd, const char *bytes, size_t size)
{
	size_t done = 0;
	ssize_t rc;

	while (done < size) {
		rc = HOMA_PL_REAL(write)(fd, bytes + done, size - done);
		if (rc < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (rc < 0)
			await_pipe(fd, POLLOUT, true);
		done += rc > 0 ? (size_t)rc : 0;
	}
	return (ssize_t)size;
}

static ssize_t to_pipe(struct homa_pl_sock *s, int fd, size_t count,
		       unsigned int flags)
{
	ssize_t room = room_in(fd, may_wait(fd, flags)), got = 0;
	char bytes[SCRATCH];
	size_t done = 0;

	if (room < 0)
		return room;
	while (done < count && room > 0) {
		struct iovec one = { bytes, sizeof(bytes) };

		if (one.iov_len > (size_t)room)
			one.iov_len = (size_t)room;
		if (one.iov_len > count - done)
			one.iov_len = count - done;
		got = homa_pl_tcp_read(s, &one, 1, done ? MSG_DONTWAIT : 0);
		if (got <= 0)
			break;
		room -= (got + SLOT - 1) / SLOT * SLOT;
		got = put(fd, bytes, (size_t)got);
		if (got < 0)
			break;
		done += (size_t)got;
		if (room <= 0 && done < count)
			room = room_in(fd, false);
	}
	return done ? (ssize_t)done : got;
}

/* ---- to the socket ---- */

/* The bytes for which the socket has room, or a negative errno. It waits as write() does. */
static ssize_t room_of(struct homa_pl_sock *s)
{
	struct iovec none = { NULL, 0 };
	size_t room;
	ssize_t rc;

	for (;;) {
		/* It says if the connection takes no bytes any more. */
		rc = homa_pl_tcp_write(s, &none, 1, 0);
		if (rc < 0 && rc != -EAGAIN)
			return rc;
		room = homa_stream_writable(s->tcp->last);
		if (room)
			return (ssize_t)room;
		if (s->status & O_NONBLOCK) {
			if (homa_pl_tcp_await_growth(s))
				continue;
			return -EAGAIN;
		}
		rc = homa_pl_wait_for(s, HOMA_STREAM_OUT,
				      homa_pl_until(s->sndtimeo));
		if (rc)
			return rc;
	}
}

/* Send all that was taken; the socket has room, unless another thread was quicker. */
static ssize_t send_all(struct homa_pl_sock *s, char *bytes, size_t size)
{
	size_t done = 0;
	ssize_t rc;

	while (done < size) {
		struct iovec rest = { bytes + done, size - done };

		rc = homa_pl_tcp_write(s, &rest, 1, 0);
		if (rc < 0 && rc != -EAGAIN && rc != -EINTR)
			return rc;
		if (rc < 0)
			homa_pl_wait_for(s, HOMA_STREAM_OUT, INT64_MAX);
		done += rc > 0 ? (size_t)rc : 0;
	}
	return (ssize_t)size;
}

/* Move at most @count bytes, and SCRATCH, from the pipe, which has some. */
static ssize_t move_some(struct homa_pl_sock *s, int fd, size_t count)
{
	ssize_t room = room_of(s), got;
	char bytes[SCRATCH];

	if (room < 0)
		return room;
	if (count > (size_t)room)
		count = (size_t)room;
	got = HOMA_PL_REAL(read)(fd, bytes,
				 count < sizeof(bytes) ? count : sizeof(bytes));
	if (got < 0)
		return -errno;
	return send_all(s, bytes, (size_t)got);
}

static ssize_t from_pipe(struct homa_pl_sock *s, int fd, size_t count,
			 unsigned int flags)
{
	int events = await_pipe(fd, POLLIN, may_wait(fd, flags));
	size_t done = 0;
	ssize_t rc = 0;

	if (events < 0)
		return events;
	while (done < count && (events & POLLIN)) {
		rc = move_some(s, fd, count - done);
		if (rc <= 0)
			break;
		done += (size_t)rc;
		events = await_pipe(fd, POLLIN, false);
		if (events < 0)
			break;
	}
	return done ? (ssize_t)done : rc;
}

static ssize_t check(int rc, const off64_t *pipe_at, const off64_t *socket_at)
{
	if (rc)
		return rc;
	if (pipe_at || socket_at)
		return pipe_at ? -ESPIPE : -EINVAL;
	return 0;
}

ssize_t homa_pl_tcp_splice_out(struct homa_pl_sock *s, const off64_t *at,
			       int to, const off64_t *to_at, size_t count,
			       unsigned int flags)
{
	int cancel = homa_pl_signals.cancel;
	ssize_t rc;

	if (!count || (flags & ~FLAGS))
		return count ? -EINVAL : 0;
	rc = check(check_pipe(to, O_WRONLY), to_at, at);
	/* It is no place to be cancelled at: what was taken would be lost. */
	homa_pl_signals.cancel = PTHREAD_CANCEL_DISABLE;
	if (!rc)
		rc = to_pipe(s, to, count, flags);
	homa_pl_signals.cancel = cancel;
	return rc;
}

ssize_t homa_pl_tcp_splice_in(struct homa_pl_sock *s, const off64_t *at,
			      int from, const off64_t *from_at, size_t count,
			      unsigned int flags)
{
	int cancel = homa_pl_signals.cancel;
	ssize_t rc;

	if (!count || (flags & ~FLAGS))
		return count ? -EINVAL : 0;
	rc = check(check_pipe(from, O_RDONLY), from_at, at);
	homa_pl_signals.cancel = PTHREAD_CANCEL_DISABLE;
	if (!rc)
		rc = from_pipe(s, from, count, flags);
	homa_pl_signals.cancel = cancel;
	return rc;
}
