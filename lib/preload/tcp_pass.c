// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Sockets that go to other processes through UNIX sockets (SCM_RIGHTS). Who sends a socket of
 * homad's sends another one in its place, which stands for the stream (lib/stream/pass.c). Who
 * receives such a socket takes the stream, and puts a socket of TCP at its descriptor, as after
 * accept(), before the program sees it. If that cannot be, the socket stays what it is, and all
 * that is done with it fails.
 *
 * A listener's socket is the kernel's, which all processes have that have the listener. homad,
 * which has one for the port's sake, hands it on.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "internal.h"
#include "pl_signals.h"
#include "real.h"
#include "stream_pass.h"
#include "tcp.h"
#include "tcp_common.h"

/* The most bytes of control messages that are looked at. The kernel takes 253 descriptors. */
#define CONTROL_MOST 65536
/* The most times that a stream is asked for whose socket is just ending in this process. */
#define TRIES 100

/* ---- messages ---- */

/* Call @call with @arg for each descriptor that the message has, and put what it returns there; a
 * negative errno ends it, and is returned. */
static int each_descriptor(const struct msghdr *msg,
			   int (*call)(int fd, void *arg), void *arg)
{
	struct msghdr *walked = (struct msghdr *)(uintptr_t)msg;
	struct cmsghdr *part;
	size_t i, num;
	int fd, rc;

	if (!msg || !msg->msg_control)
		return 0;
	for (part = CMSG_FIRSTHDR(msg); part; part = CMSG_NXTHDR(walked, part)) {
		if (part->cmsg_level != SOL_SOCKET ||
		    part->cmsg_type != SCM_RIGHTS ||
		    part->cmsg_len < CMSG_LEN(0) ||
		    part->cmsg_len > msg->msg_controllen -
					     (size_t)((char *)part -
						      (char *)msg->msg_control))
			continue;
		num = (part->cmsg_len - CMSG_LEN(0)) / sizeof(fd);
		for (i = 0; i < num; i++) {
			unsigned char *at = CMSG_DATA(part) + i * sizeof(fd);

			memcpy(&fd, at, sizeof(fd));
			rc = call(fd, arg);
			if (rc < 0)
				return rc;
			if (rc != fd)
				memcpy(at, &rc, sizeof(rc));
		}
	}
	return 0;
}

/* ---- sending ---- */

/* struct passing - a message with which sockets of homad's go, as the kernel gets it */
struct passing {
	/* The message. */
	struct msghdr msg;
	/* A copy of the control messages, with other descriptors. */
	void *control;
	/* @num sockets that stand for streams. There is room for as many as descriptors fit. */
	int *stands;
	unsigned int num;
};

/* Is the socket homad's, so that its kernel's socket means nothing to others? */
static bool is_homads(const struct homa_pl_sock *s)
{
	return s->tcp && s->tcp->stream && !s->tcp->stopped;
}

static int find_homads(int fd, void *arg)
{
	struct homa_pl_sock *s = homa_pl_find(fd);
	bool is = s && is_homads(s);

	(void)arg;
	if (s)
		homa_pl_put(s);
	/* It ends the search. */
	return is ? -EEXIST : fd;
}

bool homa_pl_tcp_passes(const struct msghdr *msg)
{
	if (HOMA_PL_LIKELY(!homa_pl_live))
		return false;
	return each_descriptor(msg, find_homads, NULL) == -EEXIST;
}

/* Have homad hold the stream of @s; returns a socket that stands for it, or a negative errno. */
static int pass(struct homa_pl_sock *s)
{
	int stands, rc;

	if (homa_pl_inside())
		return -EOPNOTSUPP;
	rc = homa_stream_pass(s->tcp->last, &stands);
	if (rc)
		return rc;
	/* Wait until every read and write has ended that began before the stream was shared and so
	 * takes no lock there. */
	pthread_mutex_lock(&s->reading);
	pthread_mutex_unlock(&s->reading);
	pthread_mutex_lock(&s->writing);
	pthread_mutex_unlock(&s->writing);
	homa_pl_tcp_lock();
	homa_pl_tcp_share(s->tcp->last);
	homa_pl_tcp_unlock();
	return stands;
}

/* What the program hears, as far as the kernel has a word for that. */
static int error_of(int rc)
{
	switch (rc) {
	case -EDQUOT:
		return -ETOOMANYREFS;
	/* A blocking sendmsg() never says EAGAIN, and to poll() the socket is writable. */
	case -EAGAIN:
		return -ENOBUFS;
	case -ENOTCONN:
	case -ENOENT:
		return -EOPNOTSUPP;
	default:
		return rc;
	}
}

static int replace(int fd, void *arg)
{
	struct homa_pl_sock *s = homa_pl_find(fd);
	struct passing *passing = arg;
	int rc = fd;

	if (s && is_homads(s)) {
		rc = pass(s);
		if (rc >= 0)
			passing->stands[passing->num++] = rc;
		else
			homa_pl_debug("a TCP socket of homad's cannot be passed on: %s",
				      strerror(-rc));
	}
	if (s)
		homa_pl_put(s);
	return rc < 0 ? error_of(rc) : rc;
}

static void finish(void *arg)
{
	const struct passing *passing = arg;
	unsigned int i;

	for (i = 0; i < passing->num; i++)
		HOMA_PL_REAL(close)(passing->stands[i]);
	free(passing->stands);
	free(passing->control);
}

static int prepare(struct passing *passing, const struct msghdr *msg)
{
	size_t size = msg->msg_controllen;

	*passing = (struct passing){ .msg = *msg };
	if (size > CONTROL_MOST)
		return -ENOBUFS;
	passing->control = malloc(size);
	passing->stands = malloc(size);
	if (!passing->control || !passing->stands)
		return -ENOMEM;
	memcpy(passing->control, msg->msg_control, size);
	passing->msg.msg_control = passing->control;
	return each_descriptor(&passing->msg, replace, passing);
}

ssize_t homa_pl_tcp_pass(int fd, const struct msghdr *msg, int flags)
{
	struct passing passing;
	ssize_t n;
	int error, rc = prepare(&passing, msg);

	if (rc) {
		finish(&passing);
		errno = -rc;
		return -1;
	}
	pthread_cleanup_push(finish, &passing);
	n = HOMA_PL_REAL(sendmsg)(fd, &passing.msg, flags);
	error = errno;
	pthread_cleanup_pop(1);
	errno = error;
	return n;
}

/* ---- receiving ---- */

/* Options that a socket of the kernel tells, and what tells them. */
static const struct {
	/* The option, as for setsockopt(). */
	int level, name;
	/* The HOMA_STREAM_* that a connection has if it is on, or 0. */
	unsigned int bit;
} options[] = {
	{ IPPROTO_TCP, TCP_NODELAY, HOMA_STREAM_NODELAY },
	{ IPPROTO_TCP, TCP_CORK, HOMA_STREAM_CORK },
	{ SOL_SOCKET, SO_KEEPALIVE, HOMA_STREAM_KEEPALIVE },
	{ SOL_SOCKET, SO_LINGER, 0 },
	{ SOL_SOCKET, SO_RCVLOWAT, 0 },
	{ SOL_SOCKET, SO_RCVTIMEO, 0 },
	{ SOL_SOCKET, SO_SNDTIMEO, 0 },
	{ IPPROTO_TCP, TCP_USER_TIMEOUT, 0 },
	{ IPPROTO_TCP, TCP_KEEPIDLE, 0 },
	{ IPPROTO_TCP, TCP_KEEPINTVL, 0 },
	{ IPPROTO_TCP, TCP_KEEPCNT, 0 },
};

#define NUM_OPTIONS (sizeof(options) / sizeof(*options))

/* Note the options of a listener, which its kernel's socket has. */
static void note_options(struct homa_pl_sock *s, int fd)
{
	char value[32];
	size_t i;

	for (i = 0; i < NUM_OPTIONS; i++) {
		socklen_t size = sizeof(value);

		if (!HOMA_PL_REAL(getsockopt)(fd, options[i].level,
					      options[i].name, value, &size))
			homa_pl_tcp_setsockopt(s, fd, options[i].level,
					       options[i].name, value, size);
	}
}

/* Let the new kernel's socket of a connection tell the options that the connection has. */
static void show_options(const struct homa_pl_sock *s, int fd)
{
	int one = 1, half = (int)(s->tcp->send_most / 2);
	size_t i;

	for (i = 0; i < NUM_OPTIONS; i++)
		if (s->tcp->options & options[i].bit)
			HOMA_PL_REAL(setsockopt)(fd, options[i].level,
						 options[i].name, &one,
						 sizeof(one));
	/* The kernel tells twice what is set. */
	if (half)
		HOMA_PL_REAL(setsockopt)(fd, SOL_SOCKET, SO_SNDBUF, &half,
					 sizeof(half));
}

static int family_of(int fd)
{
	socklen_t size = sizeof(int);
	int family = AF_INET;

	HOMA_PL_REAL(getsockopt)(fd, SOL_SOCKET, SO_DOMAIN, &family, &size);
	return family;
}

/* Put another socket at the descriptor @fd, which stays inherited or not. */
static int put_at(int fd, int other)
{
	int flags = HOMA_PL_REAL(fcntl)(fd, F_GETFD) & FD_CLOEXEC;

	return HOMA_PL_REAL(dup3)(other, fd, flags ? O_CLOEXEC : 0) < 0 ? -errno :
									  0;
}

static int begin_listener(int fd, const struct homa_stream_taken *taken)
{
	struct homa_pl_sock *s;
	int rc = put_at(fd, taken->fd);

	if (rc)
		return rc;
	s = homa_pl_tcp_adopt(fd, family_of(fd), 0, taken->stream);
	if (!s)
		return -ENOMEM;
	s->tcp->open = false;
	s->tcp->listens = true;
	s->tcp->fd = homa_pl_own_fd(taken->fd);
	note_options(s, fd);
	s->tcp->send_most = homa_pl_tcp_send_buffer(fd);
	homa_pl_tcp_fetch_listener(s);
	return 0;
}

static int begin_connection(int fd, struct homa_stream *stream)
{
	int family = homa_pl_tcp_family(stream), rc;
	int own = HOMA_PL_REAL(socket)(family, SOCK_STREAM | SOCK_CLOEXEC,
				       IPPROTO_TCP);
	struct homa_pl_sock *s;

	if (own < 0)
		return -errno;
	rc = put_at(fd, own);
	HOMA_PL_REAL(close)(own);
	if (rc)
		return rc;
	s = homa_pl_tcp_adopt(fd, family, 0, stream);
	if (!s)
		return -ENOMEM;
	s->tcp->common = true;
	homa_pl_tcp_fetch(s);
	show_options(s, fd);
	return 0;
}

/* Make a socket of what was taken at the descriptor @fd. If that fails, the caller closes @fd, at
 * which something else may be by then. */
static int begin(int fd, const struct homa_stream_taken *taken)
{
	bool listens = taken->fd >= 0;
	int rc = listens ? begin_listener(fd, taken) :
			   begin_connection(fd, taken->stream);

	if (!rc)
		return 0;
	homa_stream_close(taken->stream);
	if (listens)
		HOMA_PL_REAL(close)(taken->fd);
	return rc == -EMFILE || rc == -ENFILE ? rc : -ENOMEM;
}

/* The socket of a stream that this process has, with a reference; NULL if it is ending. */
static struct homa_pl_sock *keep(struct homa_stream *stream)
{
	struct homa_pl_sock *s;

	homa_pl_tcp_lock();
	s = homa_stream_user(stream);
	if (s && !homa_pl_table_keep(s))
		s = NULL;
	homa_pl_tcp_unlock();
	return s;
}

/* Make @fd one more descriptor of a socket that this process has. */
static int duplicate(int fd, struct homa_stream *stream)
{
	int flags = HOMA_PL_REAL(fcntl)(fd, F_GETFD) & FD_CLOEXEC;
	struct homa_pl_sock *s = keep(stream);
	int old = -1, rc = -EAGAIN;

	if (!s)
		return rc;
	while ((old = homa_pl_table_next(old + 1)) >= 0)
		if (homa_pl_table_get(old) == s)
			break;
	if (old >= 0)
		rc = homa_pl_dup_to(s, old, fd, flags ? O_CLOEXEC : 0);
	homa_pl_drop(s);
	/* Another thread has closed that descriptor; there may be more of them. */
	if (rc == -EBADF)
		rc = -EAGAIN;
	return rc < 0 ? rc : 0;
}

static int take(int fd)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	struct homa_streams *ctx = homa_pl_streams();
	struct homa_stream_taken taken;
	int rc, tries = TRIES;

	if (!ctx)
		return -ENOTCONN;
	rc = homa_pl_sleeper_fd();
	if (rc < 0)
		return rc;
	for (;;) {
		rc = homa_streams_take(ctx, fd, &taken);
		if (!rc)
			rc = taken.before ? duplicate(fd, taken.stream) :
					    begin(fd, &taken);
		if (rc != -EAGAIN || !--tries)
			return rc;
		nanosleep(&pause, NULL);
	}
}

static const char *why_not(int rc)
{
	return rc == -EBUSY ?
		       "this process has TCP sockets at another thread of homad than that one" :
		       strerror(-rc);
}

/* Make a socket of homad's of the descriptor, if it stands for one. Returns 0 or a negative errno;
 * -EMFILE, -ENFILE and -ENOMEM say that there is no room for it in this process. */
static int receive(int fd)
{
	int rc;

	if (!homa_stream_is_passed(fd))
		return 0;
	rc = homa_pl_tcp_is_on() ? -EDEADLK : -EOPNOTSUPP;
	if (rc == -EDEADLK && !homa_pl_inside()) {
		homa_pl_hold();
		rc = take(fd);
		homa_pl_unhold();
	}
	if (rc)
		homa_pl_debug("a TCP socket that was received cannot be used: %s",
			      why_not(rc));
	return rc;
}

static bool no_room(int rc)
{
	return rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM;
}

/* Close the descriptors of @part from the @keep-th on, and take them out of the message, as the
 * kernel does it when the process can have no more of them. @whole: the size of @part with the
 * bytes up to the next one. */
static void cut(struct msghdr *msg, struct cmsghdr *part, size_t whole,
		size_t keep)
{
	size_t num = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	char *control = msg->msg_control, *at = (char *)part;
	size_t left = keep ? CMSG_SPACE(keep * sizeof(int)) : 0;
	char *end = control + msg->msg_controllen;
	size_t i;
	int fd;

	for (i = keep; i < num; i++) {
		memcpy(&fd, CMSG_DATA(part) + i * sizeof(fd), sizeof(fd));
		homa_pl_close(fd);
	}
	msg->msg_flags |= MSG_CTRUNC;
	if (left > whole)
		left = whole;
	if (keep)
		part->cmsg_len = CMSG_LEN(keep * sizeof(int));
	memmove(at + left, at + whole, (size_t)(end - (at + whole)));
	msg->msg_controllen -= whole - left;
}

/* Make sockets of homad's of the descriptors of @part. Returns how many of them the program can
 * have. */
static size_t receive_part(const struct cmsghdr *part)
{
	size_t num = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int), i;
	int fd;

	for (i = 0; i < num; i++) {
		memcpy(&fd, CMSG_DATA(part) + i * sizeof(fd), sizeof(fd));
		if (no_room(receive(fd)))
			break;
	}
	return i;
}

static void received(struct msghdr *msg)
{
	struct cmsghdr *part = msg->msg_control ? CMSG_FIRSTHDR(msg) : NULL;
	const char *end = (const char *)msg->msg_control + msg->msg_controllen;

	for (; part; part = CMSG_NXTHDR(msg, part)) {
		size_t left = (size_t)(end - (const char *)part);
		size_t whole = CMSG_ALIGN(part->cmsg_len), keep;

		if (part->cmsg_level != SOL_SOCKET ||
		    part->cmsg_type != SCM_RIGHTS ||
		    part->cmsg_len < CMSG_LEN(0) || part->cmsg_len > left)
			continue;
		keep = receive_part(part);
		if (keep == (part->cmsg_len - CMSG_LEN(0)) / sizeof(int))
			continue;
		cut(msg, part, whole < left ? whole : left, keep);
		/* The kernel puts all descriptors into one part. */
		return;
	}
}

void homa_pl_tcp_received(struct msghdr *msg)
{
	int error = errno;

	if (msg)
		received(msg);
	errno = error;
}
