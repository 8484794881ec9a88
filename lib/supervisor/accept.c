// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Connections that come. The program's listener is one end of a pair; its TCP socket is ours, and
 * listens, too, for connections that homad does not bring. The pair has one byte for each
 * connection that has come, so the program waits as for a TCP socket, in whatever way and in
 * however many processes. accept() takes a byte and the connection. Who waits in accept() gets it
 * without one.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "homa_clock.h"
#include "supervisor.h"

/* How long after the end of a listener bind() may wait for its port, in ns. */
#define BIND_NS 200000000u
/* How long the kernel's connections wait if there was no descriptor for one, in ns. */
#define PAUSE_NS 50000000u
#define TYPE_FLAGS (SOCK_CLOEXEC | SOCK_NONBLOCK)

/* ---- listen() ---- */

/* homad may not have heard yet that the socket which had the port has ended. */
static int listen_patiently(struct homa_supervisor *sv, int fd, int backlog,
			    struct homa_stream **listener)
{
	const struct timespec pause = { .tv_nsec = 2000000 };
	int rc, tries = 50;

	for (;;) {
		rc = homa_stream_listen(sv->streams, fd, backlog, listener);
		if (rc != -EADDRINUSE || !tries--)
			return rc;
		nanosleep(&pause, NULL);
	}
}

static u32 most_waiting(u64 backlog)
{
	return (u32)backlog > 4096 ? 4096 : (u32)backlog < 1 ? 1 : (u32)backlog;
}

/* Watch the kernel's listener while there is room for what it brings. */
static void watch_kernel(struct homa_supervisor *sv, struct homa_sv_sock *s)
{
	bool wanted = !s->stopped && !s->resumes_at && s->num_came < s->backlog;

	if (wanted == s->watches_kernel)
		return;
	if (!wanted)
		epoll_ctl(sv->epoll, EPOLL_CTL_DEL, s->kernel, NULL);
	s->watches_kernel = wanted && !homa_sv_watch(sv, s, s->kernel, true);
}

void homa_sv_listen(struct homa_supervisor *sv, struct homa_sv_call *call,
		    struct homa_sv_sock *s)
{
	int fd = call->fd, family = homa_sv_is_tcp(fd),
	    backlog = (int)call->args[1], rc;
	struct homa_stream *stream;
	u64 cookie;

	if (s) {
		if (s->kind == HOMA_SV_LISTENER)
			s->backlog = most_waiting(call->args[1]);
		homa_sv_answer(sv, call,
			       s->kind == HOMA_SV_LISTENER && !s->stopped ?
				       0 :
				       -EINVAL);
		return;
	}
	if (!sv->streams || !family || homa_sv_is_full(sv) ||
	    !homa_sv_has_name(fd) ||
	    homa_sv_number(fd, SOL_SOCKET, SO_ACCEPTCONN, 0) ||
	    homa_sv_is_special(sv, fd))
		goto pass;
	rc = listen_patiently(sv, fd, backlog, &stream);
	if (rc) {
		homa_sv_debug("the kernel listens: errno %d", -rc);
		if (rc != -EACCES)
			goto pass;
		homa_sv_answer(sv, call, rc);
		return;
	}
	cookie = homa_sv_cookie(fd);
	s = homa_sv_new(sv, family, HOMA_SV_LISTENER, cookie);
	if (!s) {
		homa_stream_close(stream);
		goto pass;
	}
	s->stream = stream;
	s->kernel = fd;
	s->kernel_flags = fcntl(fd, F_GETFL);
	call->fd = -1;
	s->backlog = most_waiting(call->args[1]);
	homa_stream_set_user(stream, s);
	homa_sv_read_options(s, fd);
	rc = listen(fd, backlog) ? -errno : 0;
	/* A TCP socket that listens cannot be written to. */
	if (!rc)
		rc = homa_sv_replace(sv, s, call, (int)call->args[0], fd, true);
	if (rc) {
		homa_sv_answer(sv, call, rc);
		homa_sv_drop(sv, s);
		return;
	}
	s->kernel_cookie = cookie;
	fcntl(fd, F_SETFL, s->kernel_flags | O_NONBLOCK);
	watch_kernel(sv, s);
	homa_sv_debug("listen() through homad, beside the kernel");
	homa_sv_answer(sv, call, 0);
	return;
pass:
	homa_sv_pass(sv, call);
}

/* ---- handing a connection to accept() ---- */

/* The peer's address; 0 or a negative errno. */
static int tell_peer(const struct homa_sv_sock *s,
		     const struct homa_sv_call *call,
		     const struct homa_sv_came *one)
{
	struct homa_stream_facts facts = { .size = sizeof(facts) };
	socklen_t size = sizeof(facts.remote);

	if (!call->args[1])
		return 0;
	if (one->stream)
		homa_stream_facts(one->stream, &facts);
	else
		getpeername(one->fd, (struct sockaddr *)&facts.remote, &size);
	return homa_sv_store_address(call, s->family, &facts.remote,
				     call->args[1], call->args[2]);
}

/* Give the program a connection that homad has brought. The descriptor or a negative errno. */
static int give_stream(struct homa_supervisor *sv, const struct homa_sv_sock *l,
		       struct homa_sv_call *call, int flags,
		       struct homa_sv_came *one)
{
	struct homa_stream *stream = one->stream;

	struct homa_sv_sock *s =
		homa_sv_new(sv, l->family, HOMA_SV_CONNECTING, 0);
	u64 cookie = 0;
	int theirs, rc;

	if (!s)
		return -ENOMEM;
	theirs = homa_sv_pair(s, flags & SOCK_NONBLOCK);
	rc = theirs;
	if (theirs >= 0)
		rc = homa_sv_watch(sv, s, s->end, false);
	if (rc >= 0) {
		cookie = homa_sv_cookie(theirs);
		rc = homa_sv_give(sv, call, theirs, flags & SOCK_CLOEXEC);
	}
	if (theirs >= 0)
		close(theirs);
	if (rc < 0) {
		homa_sv_drop(sv, s);
		return rc;
	}
	homa_sv_rename(sv, s, cookie);
	s->owner = call->thread;
	s->owner_fd = rc;
	one->cookie = cookie;
	s->stream = stream;
	s->listener = l->cookie;
	s->options = l->options;
	s->resets = l->resets;
	s->told_open = true;
	homa_stream_set_user(stream, s);
	if (s->options)
		homa_stream_options(stream, s->options);
	homa_sv_opened(sv, s);
	return rc;
}

static int give_kernels(struct homa_supervisor *sv, struct homa_sv_call *call,
			int flags, struct homa_sv_came *one)
{
	int fd = one->fd, rc;

	one->cookie = homa_sv_cookie(fd);
	fcntl(fd, F_SETFL, flags & SOCK_NONBLOCK ? O_NONBLOCK : 0);
	rc = homa_sv_give(sv, call, fd, flags & SOCK_CLOEXEC);
	if (rc >= 0)
		close(fd);
	return rc;
}

static int flags_of(const struct homa_sv_call *call, int without_flags)
{
	return call->number == without_flags ? 0 : (int)call->args[3];
}

/* The program has the connection already, and calls again. */
static bool give_again(struct homa_supervisor *sv, const struct homa_sv_sock *s,
		       struct homa_sv_call *call, struct homa_sv_came *one)
{
	struct sockaddr_storage peer = { .ss_family = AF_UNSPEC };
	struct homa_sv_sock *given = homa_sv_find(sv, one->cookie);
	struct homa_stream_facts facts = { .size = sizeof(facts) };
	int rc = 0;

	if (call->args[1]) {
		if (given && given->stream)
			homa_stream_facts(given->stream, &facts);
		peer = facts.remote;
		if (!peer.ss_family)
			peer.ss_family = (sa_family_t)s->family;
		rc = homa_sv_store_address(call, s->family, &peer,
					   call->args[1], call->args[2]);
	}
	if (!homa_sv_answer(sv, call, rc ? rc : one->given))
		return false;
	free(one);
	return true;
}

/* Does the caller have it, or has it been closed meanwhile? */
static bool has_given(const struct homa_sv_call *call,
		      const struct homa_sv_came *one)
{
	int fd = homa_sv_fetch_from(call->thread, one->given);
	bool has = fd >= 0 && homa_sv_cookie(fd) == one->cookie;

	if (fd >= 0)
		close(fd);
	return has;
}

/* Returns false if the call does not wait any more; then the connection is still there. In any
 * other case the call is answered. */
static bool give(struct homa_supervisor *sv, struct homa_sv_sock *s,
		 struct homa_sv_call *call, struct homa_sv_came *one, int flags)
{
	int rc;

	if (!homa_sv_valid(sv, call))
		return false;
	if (one->given >= 0)
		return give_again(sv, s, call, one);
	rc = tell_peer(s, call, one);
	/* As in the kernel the connection is closed if its name cannot be told. */
	if (rc) {
		homa_sv_answer(sv, call, rc);
		if (one->stream)
			homa_stream_close(one->stream);
		else
			close(one->fd);
		free(one);
		return true;
	}
	rc = one->stream ? give_stream(sv, s, call, flags, one) :
			   give_kernels(sv, call, flags, one);
	if (rc == -ENOENT)
		return false;
	if (rc >= 0) {
		one->stream = NULL;
		one->fd = -1;
		one->given = rc;
		if (!homa_sv_answer(sv, call, rc))
			return false;
		free(one);
		return true;
	}
	/* No descriptor is free, for instance: the connection waits on. */
	homa_sv_answer(sv, call, rc);
	homa_list_add_head(&s->came, &one->link);
	s->num_came++;
	send(s->end, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	return true;
}

/* ---- taking them ---- */

/* A connection has come: the first call that waits gets it, else it waits. */
static void came(struct homa_supervisor *sv, struct homa_sv_sock *s,
		 struct homa_stream *stream, int fd)
{
	struct homa_sv_came *one = calloc(1, sizeof(*one));
	struct homa_list *node;

	if (!one) {
		if (stream)
			homa_stream_abort(stream);
		else
			close(fd);
		return;
	}
	one->stream = stream;
	one->fd = fd;
	one->given = -1;
	while ((node = homa_list_pop(&s->calls))) {
		struct homa_sv_call *call =
			homa_container_of(node, struct homa_sv_call, link);
		bool done = give(sv, s, call, one, flags_of(call, SYS_accept));

		free(call);
		if (done)
			return;
	}
	homa_list_add_tail(&s->came, &one->link);
	s->num_came++;
	send(s->end, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void homa_sv_take(struct homa_supervisor *sv, struct homa_sv_sock *s)
{
	struct homa_stream *stream;
	int fd = -1;

	while (s->stream && s->num_came < s->backlog &&
	       !homa_stream_accept(s->stream, &stream))
		came(sv, s, stream, -1);
	errno = 0;
	while (!s->stopped && s->num_came < s->backlog &&
	       (fd = accept4(s->kernel, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		came(sv, s, NULL, fd);
	/* The kernel would tell of the connection again and again. */
	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
		       errno == ENOBUFS))
		s->resumes_at = homa_clock_ns() + PAUSE_NS;
	watch_kernel(sv, s);
}

/* A connection less waits. A UNIX socket takes some hundred bytes, so more connections may have
 * come than there are bytes; the last bytes go with the last connections. Who has the TCP socket
 * still takes no byte; then there is one too many. */
static void take_byte(const struct homa_sv_sock *s, int fd)
{
	int bytes = 0;
	char byte;

	if (!ioctl(fd, SIOCINQ, &bytes) && (u32)bytes > s->num_came)
		recv(fd, &byte, 1, MSG_DONTWAIT);
}

void homa_sv_accept(struct homa_supervisor *sv, struct homa_sv_call *call,
		    struct homa_sv_sock *s)
{
	int fd = call->fd;
	bool is_kernels = homa_sv_cookie(fd) == s->kernel_cookie;
	int flags = flags_of(call, SYS_accept);
	int status = is_kernels ? s->kernel_flags : fcntl(fd, F_GETFL);
	struct homa_list *node;
	char bytes[256];

	if (s->kind != HOMA_SV_LISTENER || s->stopped || (flags & ~TYPE_FLAGS)) {
		homa_sv_answer(sv, call, -EINVAL);
		return;
	}
	while ((node = homa_list_pop(&s->came))) {
		struct homa_sv_came *one =
			homa_container_of(node, struct homa_sv_came, link);

		s->num_came--;
		if (one->given >= 0 && !has_given(call, one)) {
			free(one);
			continue;
		}
		if (!is_kernels)
			take_byte(s, fd);
		if (!give(sv, s, call, one, flags)) {
			homa_list_add_head(&s->came, &one->link);
			s->num_came++;
			send(s->end, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
		}
		homa_sv_take(sv, s);
		return;
	}
	while (!is_kernels && recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	if (status >= 0 && (status & O_NONBLOCK)) {
		homa_sv_answer(sv, call, -EAGAIN);
	} else if (homa_sv_keep_call(sv, s, call,
				     homa_sv_timeout(fd, SO_RCVTIMEO))) {
		homa_sv_answer(sv, call, -ENOMEM);
	}
}

/* ---- bind() ---- */

/* homad has a copy of a listening socket, and so its port, until it hears that it was closed. So
 * bind() waits a little if one was just now. */
void homa_sv_bind(struct homa_supervisor *sv, struct homa_sv_call *call)
{
	const struct timespec pause = { .tv_nsec = 2000000 };
	struct sockaddr_storage address;
	int fd = call->fd, rc, tries = 50;

	if (!homa_sv_is_tcp(fd) ||
	    !homa_sv_load_address(call, call->args[1], call->args[2], &address)) {
		homa_sv_pass(sv, call);
		return;
	}
	for (;;) {
		rc = bind(fd, (struct sockaddr *)&address,
			  (socklen_t)call->args[2]) ?
			     -errno :
			     0;
		if (rc != -EADDRINUSE || !tries-- ||
		    homa_clock_ns() - sv->listened_at > BIND_NS)
			break;
		nanosleep(&pause, NULL);
	}
	/* The program may have a right that we do not have. */
	if (rc == -EACCES || rc == -EPERM)
		homa_sv_pass(sv, call);
	else
		homa_sv_answer(sv, call, rc);
}

/* ---- the end ---- */

void homa_sv_stop(struct homa_sv_sock *s, struct homa_supervisor *sv)
{
	struct homa_list *node;

	s->stopped = true;
	watch_kernel(sv, s);
	shutdown(s->kernel, SHUT_RD);
	if (s->stream)
		homa_stream_shutdown(s->stream);
	shutdown(s->end, SHUT_WR);
	while ((node = homa_list_pop(&s->calls))) {
		struct homa_sv_call *call =
			homa_container_of(node, struct homa_sv_call, link);

		homa_sv_answer(sv, call, -EINVAL);
		free(call);
	}
}

/* Forget calls that were interrupted, and answer those whose time is over. */
static u64 late_calls(struct homa_supervisor *sv, struct homa_sv_sock *s, u64 now)
{
	struct homa_list *node, *next;
	u64 first = ~(u64)0;

	for (node = s->calls.next; node != &s->calls; node = next) {
		struct homa_sv_call *call =
			homa_container_of(node, struct homa_sv_call, link);

		next = node->next;
		if (call->until > now) {
			first = call->until < first ? call->until : first;
			continue;
		}
		homa_list_del(node);
		homa_sv_answer(sv, call, -EAGAIN);
		free(call);
	}
	return first;
}

u64 homa_sv_accept_late(struct homa_supervisor *sv, u64 now)
{
	struct homa_list *node;
	u64 first = ~(u64)0, one;

	for (node = sv->listeners.next; node != &sv->listeners;
	     node = node->next) {
		struct homa_sv_sock *s =
			homa_container_of(node, struct homa_sv_sock, kin);

		if (s->resumes_at && s->resumes_at <= now) {
			s->resumes_at = 0;
			homa_sv_take(sv, s);
		}
		if (s->resumes_at && s->resumes_at < first)
			first = s->resumes_at;
		one = late_calls(sv, s, now);
		first = one < first ? one : first;
	}
	return first;
}
