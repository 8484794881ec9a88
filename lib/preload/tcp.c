// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* The life of a TCP socket: whether it is homad's or the kernel's, how it listens, and how it ends.
 * tcp_connect.c has how it connects. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "internal.h"
#include "preload_sock.h"
#include "pl_signals.h"
#include "stream_fork.h"
#include "tcp.h"
#include "tcp_common.h"
#include "real.h"

#define TYPE_FLAGS (SOCK_CLOEXEC | SOCK_NONBLOCK)

bool homa_pl_tcp_wanted(int family, int type, int protocol)
{
	if ((type & ~TYPE_FLAGS) != SOCK_STREAM ||
	    (family != AF_INET && family != AF_INET6) ||
	    (protocol && protocol != IPPROTO_TCP))
		return false;
	return homa_pl_tcp_is_on();
}

/* The time at which a listening socket was closed last, in ns. It is atomic. */
static int64_t listened_at;

/* homad has a copy of a listening socket, and so its port, until it hears that it was closed. */
int homa_pl_tcp_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	const struct timespec pause = { .tv_nsec = 2000000 };
	int tries = 50;

	for (;;) {
		if (!HOMA_PL_REAL(bind)(fd, addr, len))
			return 0;
		if (errno != EADDRINUSE || !tries-- ||
		    homa_pl_now() - __atomic_load_n(&listened_at,
						    __ATOMIC_RELAXED) >
			    200000000)
			return -errno;
		nanosleep(&pause, NULL);
	}
}

/* ---- begin and end ---- */

/* After a listener was closed, reset the connections that were not accepted now. A child that has
 * nothing of its parent's does not do that. */
static void settle(const struct homa_pl_sock *s)
{
	if (s->generation == homa_pl_generation && homa_pl_streams())
		homa_streams_settle(homa_pl_streams());
}

static bool peer_has_all(void *arg)
{
	struct homa_stream_facts facts = { .size = sizeof(facts) };
	struct homa_stream *stream = arg;

	return homa_stream_error(stream) || homa_stream_facts(stream, &facts) ||
	       !facts.unsent;
}

/* Wait for SO_LINGER until the peer has everything, the time is over, or a signal comes. If bytes
 * were not read, closing resets the connection, and nobody waits. */
static void linger(struct homa_pl_tcp *tcp)
{
	int64_t until = tcp->linger < 0 ? INT64_MAX : homa_pl_now() + tcp->linger;
	struct homa_stream_facts facts = { .size = sizeof(facts) };
	struct homa_pl_waits waits = { .ready = peer_has_all, .arg = tcp->stream };
	int cancel = homa_pl_signals.cancel;
	struct pollfd fds[1];

	if (!tcp->linger || tcp->listens || tcp->stopped ||
	    homa_stream_is_shared(tcp->stream) ||
	    homa_stream_facts(tcp->stream, &facts) || facts.unread ||
	    homa_stream_shutdown(tcp->stream))
		return;
	/* A thread that is cancelled would leave the socket half closed. */
	homa_pl_signals.cancel = PTHREAD_CANCEL_DISABLE;
	do
		homa_pl_pump();
	while (!peer_has_all(tcp->stream) && homa_pl_now() < until &&
	       homa_pl_sleep(fds, 0, until, NULL, &waits) > 0);
	homa_pl_signals.cancel = cancel;
}

static void drop(struct homa_pl_sock *s)
{
	struct homa_pl_tcp *tcp = s->tcp;

	homa_pl_tcp_unwatch(s);
	homa_pl_tcp_fetch(s);
	homa_pl_tcp_lock();
	if (tcp->stream)
		homa_stream_set_user(tcp->stream, NULL);
	/* The thread that sends signals looks at all sockets that there are under this lock. */
	s->tcp = NULL;
	homa_pl_tcp_unlock();
	if (tcp->listens)
		__atomic_store_n(&listened_at, homa_pl_now(), __ATOMIC_RELAXED);
	if (tcp->stream && (tcp->options & HOMA_STREAM_RESET)) {
		homa_stream_abort(tcp->stream);
	} else if (tcp->stream) {
		linger(tcp);
		homa_stream_close(tcp->stream);
	}
	if (tcp->listens)
		settle(s);
	homa_pl_close_own_fd(tcp->fd);
	homa_pl_tcp_free_formers(tcp);
	free(tcp);
}

static void fill(struct homa_pl_sock *s, void *arg)
{
	struct homa_pl_tcp *tcp = arg;

	s->tcp = tcp;
	s->drop = drop;
	if (tcp->stream)
		homa_stream_set_user(tcp->stream, s);
}

struct homa_pl_sock *homa_pl_tcp_adopt(int fd, int family, int status,
				       struct homa_stream *stream)
{
	struct homa_pl_tcp *tcp = calloc(1, sizeof(*tcp));
	struct homa_pl_sock *s;

	if (!tcp)
		return NULL;
	tcp->stream = tcp->last = stream;
	tcp->open = stream != NULL;
	tcp->fd = -1;
	tcp->least = 1;
	tcp->peek_off = -1;
	s = homa_pl_adopt(fd, family, status, fill, tcp);
	if (!s)
		free(tcp);
	return s;
}

void homa_pl_tcp_track(int fd, int family, int type)
{
	/* A thread needs a descriptor to sleep, so it is made now, while there are some. */
	if (homa_pl_streams() && homa_pl_sleeper_fd() >= 0)
		homa_pl_tcp_adopt(fd, family, type & SOCK_NONBLOCK, NULL);
}

/* ---- listen and accept ---- */

/* Listen by homad, and try again while the port is in use: homad may not have heard yet that the
 * socket which had it has ended. */
static int listen_patiently(int fd, int backlog, struct homa_stream **listener)
{
	const struct timespec pause = { .tv_nsec = 2000000 };
	int rc, tries = 50;

	for (;;) {
		rc = homa_stream_listen(homa_pl_streams(), fd, backlog, listener);
		if (rc != -EADDRINUSE || !tries--)
			return rc;
		nanosleep(&pause, NULL);
	}
}

static void tell_patience(struct homa_stream *listener,
			  const struct homa_patience *patience)
{
	unsigned int which;

	for (which = 0; patience->set >> which; which++)
		if (patience->set >> which & 1)
			homa_stream_patience(listener, which,
					     patience->value[which]);
}

static int listen_by_homad(struct homa_pl_sock *s, int fd, int backlog)
{
	struct homa_stream *listener, *before = s->tcp->stream;
	int own, rc;

	own = homa_pl_own_fd(HOMA_PL_REAL(fcntl)(fd, F_DUPFD_CLOEXEC, 0));
	if (own < 0)
		return -errno;
	rc = listen_patiently(fd, backlog, &listener);
	if (rc) {
		homa_pl_debug("the kernel listens: %s", strerror(-rc));
		homa_pl_close_own_fd(own);
		return rc;
	}
	homa_pl_debug("listen() through homad, beside the kernel");
	homa_stream_options(listener, s->tcp->options);
	tell_patience(listener, &s->tcp->patience);
	homa_stream_set_user(listener, s);
	if (s->tcp->stopped) {
		homa_pl_close_own_fd(s->tcp->fd);
		homa_stream_set_user(before, NULL);
		s->tcp->stopped = false;
	}
	s->tcp->fd = own;
	s->tcp->listens = true;
	s->tcp->last = listener;
	__atomic_store_n(&s->tcp->stream, listener, __ATOMIC_RELEASE);
	/* A thread that the shutdown() has woken may be looking at it. */
	if (before)
		homa_pl_tcp_retire(s, before);
	return 0;
}

int homa_pl_tcp_listen(struct homa_pl_sock *s, int fd, int backlog)
{
	struct homa_pl_tcp *tcp = s->tcp;
	bool listened = tcp->listens && !tcp->stopped, fresh;
	int rc = 0;

	if (tcp->stream && !tcp->listens)
		return -EINVAL;
	if ((!tcp->stream || tcp->stopped) && homa_pl_streams() && !tcp->kernels &&
	    homa_pl_tcp_is_bound(fd) && !homa_pl_tcp_in_place(fd))
		rc = listen_by_homad(s, fd, backlog);
	fresh = tcp->listens && !listened;
	/* -EACCES means that a rule forbids it. After any other error the kernel listens alone. */
	if (rc == -EACCES)
		return rc;
	rc = HOMA_PL_REAL(listen)(fd, backlog) ? -errno : 0;
	if (rc || !tcp->listens)
		return rc;
	/* A socket that listens already gets another backlog. */
	if (!fresh)
		homa_stream_backlog(tcp->last, backlog);
	/* The next connection may come from homad or the kernel, so no call may block in one. */
	if (fresh)
		homa_pl_tcp_store_listener(s);
	homa_pl_tcp_moved(s);
	return 0;
}

/* Make @fd the descriptor of a connection that homad has accepted; false if there is no memory. */
static bool stand_in(struct homa_pl_sock *s, struct homa_stream *stream, int fd,
		     int flags)
{
	struct homa_pl_sock *own;

	homa_pl_tcp_inherit(s->tcp, fd);
	own = homa_pl_tcp_adopt(fd, s->family, flags & SOCK_NONBLOCK, stream);
	if (!own)
		return false;
	own->rcvtimeo = s->rcvtimeo;
	own->sndtimeo = s->sndtimeo;
	own->tcp->options = s->tcp->options;
	own->tcp->patience = s->tcp->patience;
	own->tcp->least = s->tcp->least;
	own->tcp->peek_off = s->tcp->peek_off;
	own->tcp->inlines = s->tcp->inlines;
	own->tcp->send_most = s->tcp->send_most;
	own->tcp->unsent_most = s->tcp->unsent_most;
	homa_pl_tcp_limit(own);
	own->tcp->linger = s->tcp->linger;
	return true;
}

/* Accept a connection from homad; -EAGAIN if there is none. If no descriptor is free, the
 * connection waits on, as in the kernel. */
static int accept_from_homad(struct homa_pl_sock *s, struct sockaddr *addr,
			     socklen_t *len, int flags)
{
	struct homa_stream *stream;
	int fd, rc;

	if (!(homa_stream_ready(s->tcp->last) & HOMA_STREAM_IN))
		return -EAGAIN;
	fd = HOMA_PL_REAL(socket)(s->family, SOCK_STREAM | flags, IPPROTO_TCP);
	if (fd < 0)
		return -errno;
	/* Another thread may have been quicker. */
	if (homa_stream_accept(s->tcp->last, &stream)) {
		HOMA_PL_REAL(close)(fd);
		return -EAGAIN;
	}
	if (!stand_in(s, stream, fd, flags)) {
		homa_stream_abort(stream);
		HOMA_PL_REAL(close)(fd);
		return -ENOMEM;
	}
	if (!addr)
		return fd;
	rc = len ? homa_pl_tcp_peer(stream, s->family, addr, len) : -EFAULT;
	/* As in the kernel the connection is lost if its name cannot be told. */
	if (rc)
		homa_pl_close(fd);
	return rc ? rc : fd;
}

static int accept_now(struct homa_pl_sock *s, int fd, struct sockaddr *addr,
		      socklen_t *len, int flags)
{
	int error = errno, rc = accept_from_homad(s, addr, len, flags);

	if (rc == -EAGAIN) {
		rc = HOMA_PL_REAL(accept4)(fd, addr, len, flags);
		rc = rc < 0 ? -errno : rc;
	}
	/* The call goes on, or succeeds, unless it returns another one. */
	errno = error;
	return rc;
}

int homa_pl_tcp_accept(struct homa_pl_sock *s, int fd, struct sockaddr *addr,
		       socklen_t *len, int flags)
{
	int64_t until;
	int rc;

	if (!s->tcp->listens)
		return homa_pl_kernel_accept(s, fd, addr, len, flags);
	if (flags & ~TYPE_FLAGS)
		return -EINVAL;
	rc = accept_now(s, fd, addr, len, flags);
	if (rc != -EAGAIN)
		return rc;
	homa_pl_tcp_fetch_listener(s);
	if (s->status & O_NONBLOCK)
		return rc;
	until = homa_pl_until(s->rcvtimeo);
	for (;;) {
		rc = accept_now(s, fd, addr, len, flags);
		if (rc != -EAGAIN)
			return rc;
		rc = homa_pl_wait_for(s, HOMA_STREAM_IN, until);
		/* Another thread has ended the listening by connect(). */
		if (rc)
			return rc == -ECONNABORTED ? -EINVAL : rc;
	}
}

/* ---- the rest ---- */

/* Stop listening. The shutdown of the kernel's socket wakes threads that wait in accept(). */
static int stop_listening(struct homa_pl_sock *s, int how)
{
	struct homa_pl_tcp *tcp = s->tcp;

	if (how != SHUT_WR) {
		homa_stream_shutdown(tcp->last);
		settle(s);
		tcp->stopped = true;
	}
	return HOMA_PL_REAL(shutdown)(tcp->fd, how) ? -errno : 0;
}

/* End the listener at homad and in the kernel, which nobody else does meanwhile. */
static int end_listener(struct homa_pl_sock *s)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };
	int rc = s->tcp->stopped ? 0 : stop_listening(s, SHUT_RDWR);

	if (rc)
		return rc;
	homa_pl_tcp_leave_listener(s);
	return HOMA_PL_REAL(connect)(s->tcp->fd, &none, sizeof(none)) ? -errno :
									0;
}

int homa_pl_tcp_unlisten(struct homa_pl_sock *s)
{
	struct homa_pl_tcp *tcp = s->tcp;
	struct homa_stream *listener;
	int rc, fd = -1;
	bool mine;

	homa_pl_tcp_lock();
	listener = tcp->stream;
	mine = listener && tcp->listens && !tcp->begins;
	if (mine)
		__atomic_store_n(&tcp->begins, true, __ATOMIC_RELEASE);
	homa_pl_tcp_unlock();
	/* Another thread does the same. */
	if (!mine) {
		homa_pl_tcp_await_begin(tcp);
		return 0;
	}
	rc = end_listener(s);
	homa_pl_tcp_lock();
	if (!rc) {
		fd = tcp->fd;
		homa_stream_set_user(listener, NULL);
		__atomic_store_n(&tcp->stream, NULL, __ATOMIC_RELEASE);
		tcp->listens = tcp->stopped = false;
		tcp->fd = -1;
	}
	__atomic_store_n(&tcp->begins, false, __ATOMIC_RELEASE);
	homa_pl_tcp_unlock();
	if (rc)
		return rc;
	homa_pl_close_own_fd(fd);
	__atomic_store_n(&listened_at, homa_pl_now(), __ATOMIC_RELAXED);
	homa_pl_tell(s);
	homa_pl_tcp_retire(s, listener);
	homa_pl_tcp_moved(s);
	return 0;
}

int homa_pl_tcp_shutdown(struct homa_pl_sock *s, int how)
{
	struct homa_pl_tcp *tcp = s->tcp;
	bool ends;
	int rc;

	if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR)
		return -EINVAL;
	if (tcp->listens)
		return stop_listening(s, how);
	/* It ends a connection that is being opened, in whatever direction. */
	if (!homa_pl_tcp_is_open(tcp->last)) {
		rc = homa_stream_give_up(tcp->last);
		homa_pl_tell(s);
		return rc == -ECONNRESET ? -ENOTCONN : rc;
	}
	rc = homa_pl_tcp_state(s) == TCP_CLOSE ? -ENOTCONN : 0;
	ends = how != SHUT_RD && !tcp->shut_write;
	if (ends)
		tcp->peer_first = homa_stream_ready(tcp->last) & HOMA_STREAM_EOF;
	homa_pl_tcp_change(s);
	tcp->shut_read |= how != SHUT_WR;
	tcp->shut_write |= how != SHUT_RD;
	homa_pl_tcp_changed(s);
	if (ends && !rc)
		rc = homa_stream_shutdown(tcp->last);
	/* Wake other threads, which may wait for what will not come now, and other processes, which
	 * homad tells of every option that is set. */
	homa_pl_tell(s);
	if (tcp->common && !ends)
		homa_stream_options(tcp->last, tcp->options);
	return rc;
}
