// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Reading and writing streams as POSIX has it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "pl_signals.h"
#include "tcp.h"
#include "tcp_common.h"
#include "real.h"

#define SCRATCH 16384u /* bytes that are read at once into memory of our own */
#define MOST 0x7ffff000u /* bytes that a call of sendfile() sends at most */
#define FEW 8		 /* pieces of memory for which none is allocated */
/* With MSG_PEEK, a flag of our own: look at the next byte, whatever SO_PEEK_OFF says. */
#define NEXT_BYTE 0x10000000
/* How long a look that begins behind all that there is room for sleeps between two tries, in ns. */
#define LATER_NS 1000000

static bool may_wait(const struct homa_pl_sock *s, int flags)
{
	return !(flags & MSG_DONTWAIT) && !(s->status & O_NONBLOCK);
}

/* What the kernel says of pieces that cannot be: -EINVAL if there are too many, or more bytes than
 * a call can return as a count; -EFAULT if one is nowhere; else 0. */
static int check(const struct iovec *iov, int n)
{
	size_t bytes = 0;
	bool nowhere = false;
	int i;

	if (n < 0 || n > IOV_MAX)
		return -EINVAL;
	if (n && !iov)
		return -EFAULT;
	for (i = 0; i < n; i++) {
		if (iov[i].iov_len > SSIZE_MAX ||
		    (bytes += iov[i].iov_len) > SSIZE_MAX)
			return -EINVAL;
		nowhere |= !iov[i].iov_base && iov[i].iov_len;
	}
	return nowhere ? -EFAULT : 0;
}

static size_t total(const struct iovec *iov, int n)
{
	size_t bytes = 0;
	int i;

	for (i = 0; i < n; i++)
		bytes += iov[i].iov_len;
	return bytes;
}

/* Write what is left of @iov behind its first @done bytes to @rest, which has as many entries. */
static int behind(const struct iovec *iov, int n, size_t done, struct iovec *rest)
{
	int i, out = 0;

	for (i = 0; i < n; i++) {
		if (done >= iov[i].iov_len) {
			done -= iov[i].iov_len;
			continue;
		}
		rest[out].iov_base = (char *)iov[i].iov_base + done;
		rest[out++].iov_len = iov[i].iov_len - done;
		done = 0;
	}
	return out;
}

/* Several threads may read a socket, or write it: each byte goes to one of them, and what one
 * writes at a time stays together. So they take a lock, under which nobody waits. */

/* ---- reading ---- */

/* Take bytes without giving them to the program (MSG_TRUNC). */
static ssize_t discard(struct homa_pl_sock *s, size_t bytes)
{
	char scratch[SCRATCH];
	struct iovec one = { scratch, bytes < SCRATCH ? bytes : SCRATCH };

	return homa_stream_read_stopping(s->tcp->last, &one, 1, 0,
					 s->tcp->inlines);
}

/* Count the bytes that have arrived, @bytes at most, and give the program none of them (MSG_TRUNC
 * with MSG_PEEK). */
static ssize_t measure(struct homa_pl_sock *s, size_t bytes)
{
	struct homa_stream *stream = s->tcp->last;
	struct iovec piece[2];
	char first;
	struct iovec one = { &first, 1 };
	ssize_t rc =
		homa_stream_read_stopping(stream, &one, 1, 1, s->tcp->inlines);
	size_t all;

	if (rc <= 0)
		return rc;
	all = homa_stream_arrived(stream, piece);
	return (ssize_t)(all < bytes ? all : bytes);
}

static ssize_t read_once(struct homa_pl_sock *s, const struct iovec *iov, int n,
			 int flags)
{
	struct homa_pl_tcp *tcp = s->tcp;
	bool moves = !HOMA_PL_LIKELY(tcp->peek_off < 0) && !(flags & NEXT_BYTE);
	ssize_t rc;

	pthread_mutex_lock(&s->reading);
	if (moves && (flags & MSG_PEEK))
		rc = homa_pl_tcp_peek(s, iov, n, total(iov, n),
				      flags & MSG_TRUNC);
	else if (flags & MSG_TRUNC)
		rc = (flags & MSG_PEEK ? measure : discard)(s, total(iov, n));
	else
		rc = homa_stream_read_stopping(tcp->last, iov, n,
					       !!(flags & MSG_PEEK),
					       tcp->inlines);
	pthread_mutex_unlock(&s->reading);
	if (moves && rc > 0)
		homa_pl_tcp_peek_move(s, flags & MSG_PEEK ? rc : -rc);
	return rc == -EAGAIN && tcp->shut_read ? 0 : rc;
}

/* Returns the number of bytes behind the next one from which a call looks at bytes. */
static size_t offset_of(const struct homa_pl_sock *s, int flags)
{
	if (HOMA_PL_LIKELY(s->tcp->peek_off <= 0) ||
	    (flags & (MSG_PEEK | NEXT_BYTE)) != MSG_PEEK)
		return 0;
	return (size_t)s->tcp->peek_off;
}

/* Returns the number of bytes for which a call waits: all that it wants to look at, or
 * those of SO_RCVLOWAT, but not more than it has room for; and those before them. */
static size_t least_of(const struct homa_pl_sock *s, size_t wanted, int flags)
{
	size_t before = offset_of(s, flags);

	if (flags & MSG_WAITALL)
		return flags & MSG_PEEK ? before + wanted : 1;
	return before + (s->tcp->least < wanted ? s->tcp->least : wanted);
}

/* A look begins behind all that there is room for. The kernel waits until somebody reads. */
static int look_later(int64_t until)
{
	const struct timespec pause = { .tv_nsec = LATER_NS };

	if (until != INT64_MAX && homa_pl_now() >= until)
		return -EAGAIN;
	nanosleep(&pause, NULL);
	return 0;
}

/* Need a call that may wait not do so? */
static bool enough(const struct homa_pl_wanted *w)
{
	struct homa_stream *stream = w->s->tcp->last;

	if (HOMA_PL_LIKELY(w->least <= 1) || w->s->tcp->shut_read ||
	    (homa_stream_ready(stream) & (HOMA_STREAM_EOF | HOMA_STREAM_ERROR)))
		return true;
	return homa_pl_tcp_has(stream, w->least);
}

/* Read what is there, or wait for it. Of a wait that ends early, -HOMA_PL_RESTART is returned if
 * the call shall go on. */
static ssize_t read_some(struct homa_pl_sock *s, const struct iovec *iov, int n,
			 int flags, int64_t until)
{
	struct homa_pl_wanted w = { s, HOMA_STREAM_IN | HOMA_STREAM_EOF,
				    least_of(s, total(iov, n), flags) };
	bool waits = may_wait(s, flags);
	ssize_t rc;
	int wait;

	rc = !waits || enough(&w) ? read_once(s, iov, n, flags) : -EAGAIN;
	while (rc == -EAGAIN && waits) {
		wait = homa_pl_wait_once(&w, until);
		/* After a time limit or a signal, what has come until then is given, as the
		 * kernel does it. */
		rc = read_once(s, iov, n, flags);
		if (rc == -EAGAIN && !wait && offset_of(s, flags))
			wait = look_later(until);
		if (rc == -EAGAIN && wait)
			return wait;
	}
	return rc;
}

/* Do reads stop here, as the next byte is urgent? */
static bool at_mark(const struct homa_pl_sock *s)
{
	struct homa_stream_mark mark;

	return homa_stream_mark(s->tcp->last, &mark) && !mark.ahead;
}

/* Read until @iov is full (MSG_WAITALL). After a signal, a call that has read something
 * returns that. */
static ssize_t read_all(struct homa_pl_sock *s, const struct iovec *iov, int n,
			int flags, int64_t until, struct iovec *rest)
{
	size_t wanted = total(iov, n), done = 0;
	unsigned int ran = homa_pl_signals.ran;
	ssize_t rc = 0;

	while (done < wanted &&
	       (!done || (homa_pl_signals.ran == ran && !at_mark(s)))) {
		rc = read_some(s, rest, behind(iov, n, done, rest), flags, until);
		if (rc <= 0)
			break;
		done += (size_t)rc;
	}
	return done ? (ssize_t)done : rc;
}

static ssize_t read_many(struct homa_pl_sock *s, const struct iovec *iov, int n,
			 int flags, int64_t until)
{
	struct iovec *rest = malloc((size_t)n * sizeof(*rest));
	ssize_t rc;

	if (!rest)
		return -ENOMEM;
	pthread_cleanup_push(free, rest);
	rc = read_all(s, iov, n, flags, until, rest);
	pthread_cleanup_pop(1);
	return rc;
}

static ssize_t read_fully(struct homa_pl_sock *s, const struct iovec *iov,
			  int n, int flags, int64_t until)
{
	struct iovec few[FEW];

	return n <= FEW ? read_all(s, iov, n, flags, until, few) :
			  read_many(s, iov, n, flags, until);
}

/* Read, and go on after handlers with SA_RESTART unless there is a time limit. */
static ssize_t read_patiently(struct homa_pl_sock *s, const struct iovec *iov,
			      int n, int flags)
{
	bool all = (flags & MSG_WAITALL) && !(flags & MSG_PEEK) &&
		   may_wait(s, flags);
	int64_t until = homa_pl_until(s->rcvtimeo);
	ssize_t rc;

	do
		rc = (all ? read_fully : read_some)(s, iov, n, flags, until);
	while (rc == -HOMA_PL_RESTART && until == INT64_MAX);
	return rc == -HOMA_PL_RESTART ? -EINTR : rc;
}

/* Return the error of a failed connection once; later calls return @again. */
static ssize_t tell_once(struct homa_pl_sock *s, ssize_t rc, ssize_t again)
{
	if (HOMA_PL_LIKELY(rc >= 0) || rc != -homa_stream_error(s->tcp->last))
		return rc;
	if (s->tcp->error_told)
		return again;
	s->tcp->error_told = true;
	return rc;
}

/* What a read returns without looking at bytes; 0 if it shall look. */
static int refuses(const struct homa_pl_sock *s, const struct iovec *iov, int n,
		   int flags)
{
	int rc = check(iov, n);

	/* What is thrown away needs no place. */
	if (rc && (rc != -EFAULT || !iov || !(flags & MSG_TRUNC)))
		return rc;
	if (s->tcp->listens)
		return -ENOTCONN;
	/* The queue of errors is always empty, as homad tells of errors in another way. */
	return flags & MSG_ERRQUEUE ? -EAGAIN : 0;
}

ssize_t homa_pl_tcp_read(struct homa_pl_sock *s, const struct iovec *iov, int n,
			 int flags)
{
	int rc = refuses(s, iov, n, flags);

	if (rc)
		return rc;
	if (!total(iov, n))
		return 0;
	homa_pl_tcp_fetch(s);
	return tell_once(s, read_patiently(s, iov, n, flags), 0);
}

ssize_t homa_pl_tcp_recv(struct homa_pl_sock *s, const struct iovec *iov, int n,
			 int flags)
{
	char byte;
	struct iovec one = { &byte, 1 };
	ssize_t rc = refuses(s, iov, n, flags);

	if (!rc && (flags & MSG_OOB))
		return homa_pl_tcp_recv_urgent(s, iov, n, flags);
	if (rc || total(iov, n))
		return rc ? rc : homa_pl_tcp_read(s, iov, n, flags);
	rc = homa_pl_tcp_read(s, &one, 1,
			      (flags & MSG_DONTWAIT) | MSG_PEEK | NEXT_BYTE);
	return rc > 0 ? 0 : rc;
}

/* ---- writing ---- */

static ssize_t broken_pipe(int flags)
{
	if (!(flags & MSG_NOSIGNAL))
		pthread_kill(pthread_self(), SIGPIPE);
	return -EPIPE;
}

static ssize_t write_once(struct homa_pl_sock *s, const struct iovec *iov,
			  int n, int flags)
{
	ssize_t rc;

	pthread_mutex_lock(&s->writing);
	rc = (HOMA_PL_LIKELY(!(flags & MSG_OOB)) ?
		      homa_stream_write :
		      homa_stream_write_urgent)(s->tcp->last, iov, n);
	pthread_mutex_unlock(&s->writing);
	return rc;
}

/* Wait for room; a call that does not wait for the peer waits only for a larger buffer. */
static ssize_t await_room(struct homa_pl_wanted *w, int64_t until, bool waits)
{
	if (waits)
		return homa_pl_wait_once(w, until);
	return homa_pl_tcp_await_growth(w->s) ? 0 : -EAGAIN;
}

/* Write what is left behind @done bytes, and wait for room. After a signal, a call that waits and
 * has written something returns that. */
static ssize_t write_rest(struct homa_pl_sock *s, const struct iovec *iov,
			  int n, size_t done, struct iovec *rest, int flags)
{
	struct homa_pl_wanted w = { s, HOMA_STREAM_OUT, 0 };
	bool waits = may_wait(s, flags);
	int64_t until = homa_pl_until(s->sndtimeo);
	unsigned int ran = homa_pl_signals.ran;
	size_t wanted = total(iov, n);
	ssize_t rc = waits ? 0 : -EAGAIN;

	while (done < wanted && (!done || !waits || homa_pl_signals.ran == ran)) {
		rc = await_room(&w, until, waits);
		if (rc == -HOMA_PL_RESTART && !done && until == INT64_MAX)
			continue;
		if (rc)
			break;
		rc = write_once(s, rest, behind(iov, n, done, rest), flags);
		if (rc < 0 && rc != -EAGAIN)
			break;
		done += rc > 0 ? (size_t)rc : 0;
	}
	if (done)
		return (ssize_t)(homa_pl_tcp_had_room(s, wanted) ? wanted : done);
	return rc == -HOMA_PL_RESTART ? -EINTR : rc;
}

static ssize_t write_many(struct homa_pl_sock *s, const struct iovec *iov,
			  int n, size_t done, int flags)
{
	struct iovec *rest = malloc((size_t)n * sizeof(*rest));
	ssize_t rc;

	if (!rest)
		return done ? (ssize_t)done : -ENOMEM;
	pthread_cleanup_push(free, rest);
	rc = write_rest(s, iov, n, done, rest, flags);
	pthread_cleanup_pop(1);
	return rc;
}

static ssize_t write_on(struct homa_pl_sock *s, const struct iovec *iov, int n,
			size_t done, int flags)
{
	struct iovec few[FEW];

	return n <= FEW ? write_rest(s, iov, n, done, few, flags) :
			  write_many(s, iov, n, done, flags);
}

ssize_t homa_pl_tcp_write(struct homa_pl_sock *s, const struct iovec *iov,
			  int n, int flags)
{
	struct homa_pl_tcp *tcp = s->tcp;
	size_t wanted;
	ssize_t rc;

	rc = check(iov, n);
	if (rc)
		return rc;
	if (tcp->listens)
		return broken_pipe(flags);
	homa_pl_tcp_fetch(s);
	wanted = total(iov, n);
	rc = tell_once(s, write_once(s, iov, n, flags), -EPIPE);
	/* A reset after the peer's end means that the peer does not read any more. */
	if (rc == -ECONNRESET && (homa_stream_ready(tcp->last) & HOMA_STREAM_EOF))
		rc = -EPIPE;
	if (rc == -EPIPE)
		return broken_pipe(flags);
	if (HOMA_PL_LIKELY(rc == (ssize_t)wanted) || (rc < 0 && rc != -EAGAIN))
		return rc;
	rc = tell_once(s, write_on(s, iov, n, rc > 0 ? (size_t)rc : 0, flags),
		       -EPIPE);
	return rc == -EPIPE ? broken_pipe(flags) : rc;
}

ssize_t homa_pl_tcp_writev(struct homa_pl_sock *s, const struct iovec *iov,
			   int n, int flags)
{
	if (!check(iov, n) && !total(iov, n))
		return 0;
	return homa_pl_tcp_write(s, iov, n, flags);
}

/* ---- files ---- */

/* Is @in a file in which one can go about, and @offset a place there? */
static int check_file(int in, const off_t *offset)
{
	int flags = HOMA_PL_REAL(fcntl)(in, F_GETFL);
	struct stat file;

	if (flags < 0 || (flags & O_ACCMODE) == O_WRONLY || fstat(in, &file))
		return -EBADF;
	if (lseek(in, 0, SEEK_CUR) < 0)
		return offset ? -ESPIPE : -EINVAL;
	if (offset && *offset < 0)
		return -EINVAL;
	return S_ISREG(file.st_mode) || S_ISBLK(file.st_mode) ||
			       S_ISCHR(file.st_mode) ?
		       0 :
		       -EINVAL;
}

static ssize_t read_file(int in, char *bytes, size_t size, const off_t *offset)
{
	return offset ? pread(in, bytes, size, *offset) :
			HOMA_PL_REAL(read)(in, bytes, size);
}

/* Go back by @bytes that were read from the file and not sent. */
static void step_back(int in, const off_t *offset, ssize_t bytes)
{
	if (!offset && bytes && lseek(in, -bytes, SEEK_CUR) < 0)
		return;
}

static ssize_t send_file(struct homa_pl_sock *s, int in, off_t *offset,
			 size_t count)
{
	char bytes[SCRATCH];
	size_t done = 0;
	ssize_t got, sent = check_file(in, offset);

	if (sent || count > SSIZE_MAX)
		return sent ? sent : -EINVAL;
	/* It is the kernel's limit. */
	if (count > MOST)
		count = MOST;
	while (done < count) {
		struct iovec one = { bytes, 0 };
		size_t want = count - done < SCRATCH ? count - done : SCRATCH;

		got = read_file(in, bytes, want, offset);
		if (got <= 0)
			return done ? (ssize_t)done : got < 0 ? -errno : 0;
		one.iov_len = (size_t)got;
		sent = homa_pl_tcp_write(s, &one, 1, 0);
		step_back(in, offset, got - (sent > 0 ? sent : 0));
		if (sent < 0)
			break;
		if (offset)
			*offset += sent;
		done += (size_t)sent;
		if (sent < got)
			break;
	}
	return done ? (ssize_t)done : sent;
}

ssize_t homa_pl_tcp_sendfile(struct homa_pl_sock *s, int in, off_t *offset,
			     size_t count)
{
	int cancel = homa_pl_signals.cancel;
	ssize_t rc;

	/* It is no place to be cancelled at: the file would be read further than it is sent. */
	homa_pl_signals.cancel = PTHREAD_CANCEL_DISABLE;
	rc = send_file(s, in, offset, count);
	homa_pl_signals.cancel = cancel;
	return rc;
}
