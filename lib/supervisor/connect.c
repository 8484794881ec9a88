// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Connections that the program opens. If connect() waits, the program keeps the kernel's socket
 * until the connection is open, so a failure leaves it as it was. If the socket is non-blocking,
 * the program has its end of the pair at once, which is full until then, so that it waits as for a
 * TCP socket.
 *
 * A call that waits may be interrupted by a signal, and comes again unless the program gives up. So
 * a connection that nobody waits for lives on for a while.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <unistd.h>
#include "homa_clock.h"
#include "supervisor.h"

/* How long such a connection lives, in ns. */
#define ORPHAN_NS 5000000000u

/* ---- what becomes of one that is being opened ---- */

static struct homa_sv_call *next_call(struct homa_sv_sock *s)
{
	struct homa_list *node = homa_list_pop(&s->calls);

	return node ? homa_container_of(node, struct homa_sv_call, link) : NULL;
}

/* The connection is homad's no more, and the program's socket the kernel's again, with @call, or
 * with all calls that wait. */
static void let_go(struct homa_supervisor *sv, struct homa_sv_sock *s)
{
	struct homa_sv_call *call;

	while ((call = next_call(s))) {
		homa_sv_pass(sv, call);
		free(call);
	}
	homa_sv_drop(sv, s);
}

static void keep_failed(struct homa_supervisor *sv, struct homa_sv_sock *s,
			int error)
{
	struct homa_list *oldest;

	homa_list_del(&s->kin);
	s->kind = HOMA_SV_FAILED_TO_CONNECT;
	s->error = error;
	if (s->stream) {
		homa_stream_set_user(s->stream, NULL);
		homa_stream_abort(s->stream);
		s->stream = NULL;
	}
	/* The program's end has an error then, because of what we have not read. */
	close(s->end);
	s->end = -1;
	homa_list_add_tail(&sv->failed, &s->fail);
	if (++sv->num_failed > HOMA_SV_FAILED) {
		oldest = homa_list_first(&sv->failed);
		homa_sv_drop(sv, homa_container_of(oldest, struct homa_sv_sock,
						   fail));
	}
}

void homa_sv_connect_fail(struct homa_supervisor *sv, struct homa_sv_sock *s,
			  int error)
{
	struct homa_sv_call *call;

	homa_sv_debug("connect() through homad: errno %d", error);
	while ((call = next_call(s))) {
		homa_sv_answer(sv, call, -error);
		free(call);
	}
	if (s->end >= 0)
		keep_failed(sv, s, error);
	else
		homa_sv_drop(sv, s);
}

static bool is_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & O_NONBLOCK);
}

/* The first call that still waits gets the program's end, or all fail. */
static void tell_open(struct homa_supervisor *sv, struct homa_sv_sock *s)
{
	bool nonblocking = is_nonblocking(s->kernel);
	struct homa_sv_call *call;
	int rc = 0;

	while ((call = next_call(s))) {
		if (s->end < 0)
			rc = homa_sv_replace(sv, s, call, (int)call->args[0],
					     s->kernel, false);
		if (s->end >= 0 &&
		    homa_sv_answer(sv, call, nonblocking ? -EINPROGRESS : 0))
			s->told_open = !nonblocking;
		else if (s->end < 0 && rc != -ENOENT)
			homa_sv_answer(sv, call, rc);
		free(call);
	}
}

void homa_sv_connect_news(struct homa_supervisor *sv, struct homa_sv_sock *s)
{
	unsigned int ready = homa_stream_ready(s->stream);
	int error = homa_stream_error(s->stream);

	if (error == EOPNOTSUPP && s->end < 0) {
		/* It stays in this host, and homad does not serve the other end. */
		let_go(sv, s);
	} else if (ready & HOMA_STREAM_ERROR) {
		homa_sv_connect_fail(sv, s, error ? error : ECONNRESET);
	} else if (ready & HOMA_STREAM_OUT) {
		homa_sv_debug("connect() goes through homad");
		tell_open(sv, s);
		if (s->end >= 0)
			homa_sv_opened(sv, s);
		else
			s->until = homa_clock_ns() + ORPHAN_NS;
	}
}

/* ---- connect() ---- */

/* The call waits, or hears that the connection is under way. */
static void go_on(struct homa_supervisor *sv, struct homa_sv_call *call,
		  struct homa_sv_sock *s)
{
	int rc;

	if (is_nonblocking(s->kernel) && !s->is_local) {
		rc = s->end < 0 ?
			     homa_sv_replace(sv, s, call, (int)call->args[0],
					     s->kernel, true) :
			     0;
		/* The call comes again if it was interrupted. */
		if (rc == -ENOENT)
			return;
		if (rc) {
			homa_sv_answer(sv, call, rc);
			homa_sv_drop(sv, s);
			return;
		}
		if (homa_sv_answer(sv, call,
				   s->told_progress ? -EALREADY : -EINPROGRESS))
			s->told_progress = true;
		return;
	}
	if (homa_sv_keep_call(sv, s, call,
			      homa_sv_timeout(s->kernel, SO_SNDTIMEO)))
		homa_sv_answer(sv, call, -ENOMEM);
}

/* Ask homad for a connection of the socket @fd. -EOPNOTSUPP: the kernel shall open it. A call that
 * does not wait for the connection hears that here, as nobody could hand the socket over later. */
static int ask_homad(struct homa_supervisor *sv, int fd,
		     const struct sockaddr *local, const struct sockaddr *addr,
		     socklen_t len, struct homa_stream **stream)
{
	int rc = homa_stream_connect(sv->streams, local, addr, len, stream);

	if (rc || local || !is_nonblocking(fd) ||
	    homa_stream_await_way(*stream) != -EOPNOTSUPP)
		return rc;
	homa_stream_abort(*stream);
	return -EOPNOTSUPP;
}

static void connect_first(struct homa_supervisor *sv, struct homa_sv_call *call,
			  const struct sockaddr_storage *to)
{
	const struct sockaddr *addr = (const struct sockaddr *)to;
	struct sockaddr_storage from = { 0 };
	socklen_t len = (socklen_t)call->args[2];
	int fd = call->fd, family = homa_sv_is_tcp(fd), here, rc;
	struct homa_stream *stream;
	struct homa_sv_sock *s;

	if (!sv->streams || family != to->ss_family || homa_sv_is_full(sv) ||
	    len < (family == AF_INET ? sizeof(struct sockaddr_in) :
				       sizeof(struct sockaddr_in6)) ||
	    homa_streams_takes(sv->streams, addr, len) <= 0 ||
	    homa_sv_has_name(fd) || homa_sv_is_special(sv, fd) ||
	    (here = homa_sv_is_this_host(addr, len, &from)) < 0)
		goto pass;
	if (family == AF_INET6 &&
	    IN6_IS_ADDR_V4MAPPED(&((const struct sockaddr_in6 *)to)->sin6_addr) &&
	    homa_sv_number(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0))
		goto pass;
	rc = ask_homad(sv, fd, here ? (struct sockaddr *)&from : NULL, addr,
		       len, &stream);
	if (rc == -EOPNOTSUPP)
		goto pass;
	s = rc ? NULL :
		 homa_sv_new(sv, family, HOMA_SV_CONNECTING, homa_sv_cookie(fd));
	if (!s) {
		if (!rc)
			homa_stream_abort(stream);
		homa_sv_answer(sv, call, rc ? rc : -ENOMEM);
		return;
	}
	s->stream = stream;
	s->kernel = fd;
	call->fd = -1;
	s->is_local = here;
	homa_stream_set_user(stream, s);
	homa_sv_read_options(s, fd);
	go_on(sv, call, s);
	return;
pass:
	homa_sv_pass(sv, call);
}

/* The program's descriptor is the kernel's socket again, and may connect anew. */
static bool give_back(struct homa_supervisor *sv,
		      const struct homa_sv_call *call, struct homa_sv_sock *s)
{
	bool done =
		!homa_sv_put(sv, call, s->kernel, (int)call->args[0], s->cookie);

	if (done)
		homa_sv_drop(sv, s);
	return done;
}

static void connect_after_failure(struct homa_supervisor *sv,
				  struct homa_sv_call *call,
				  struct homa_sv_sock *s,
				  const struct sockaddr_storage *to)
{
	int error = s->error;

	homa_sv_done(call);
	call->fd = fcntl(s->kernel, F_DUPFD_CLOEXEC, 0);
	if (call->fd < 0 || !give_back(sv, call, s))
		homa_sv_answer(sv, call, -ENOMEM);
	else if (error)
		homa_sv_answer(sv, call, -error);
	else
		connect_first(sv, call, to);
}

/* The connection is open. */
static void connect_again(struct homa_supervisor *sv, struct homa_sv_call *call,
			  struct homa_sv_sock *s,
			  const struct sockaddr_storage *to)
{
	int fd;

	homa_sv_done(call);
	if (to->ss_family == AF_UNSPEC && s->kernel >= 0) {
		homa_sv_answer(sv, call, give_back(sv, call, s) ? 0 : -ENOMEM);
		return;
	}
	if (to->ss_family == AF_UNSPEC) {
		fd = socket(s->family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
		s->kernel = fd;
		homa_sv_answer(sv, call,
			       fd >= 0 && give_back(sv, call, s) ? 0 : -ENOMEM);
		return;
	}
	if (homa_sv_answer(sv, call, s->told_open ? -EISCONN : 0))
		s->told_open = true;
}

void homa_sv_connect(struct homa_supervisor *sv, struct homa_sv_call *call,
		     struct homa_sv_sock *s, const struct sockaddr_storage *to)
{
	if (!s) {
		connect_first(sv, call, to);
		return;
	}
	if (s->kind == HOMA_SV_LISTENER) {
		homa_sv_answer(sv, call, -EISCONN);
	} else if (s->kind == HOMA_SV_FAILED_TO_CONNECT) {
		connect_after_failure(sv, call, s, to);
	} else if (s->kind == HOMA_SV_OPEN) {
		connect_again(sv, call, s, to);
	} else if (to->ss_family == AF_UNSPEC) {
		homa_sv_done(call);
		if (s->end < 0 || give_back(sv, call, s))
			homa_sv_drop(sv, s);
		homa_sv_answer(sv, call, 0);
	} else {
		s->until = ~(u64)0;
		go_on(sv, call, s);
		/* It may be open already, and the call that waited for it was interrupted. */
		if (!s->dead && !homa_list_empty(&s->calls))
			homa_sv_connect_news(sv, s);
	}
}

/* ---- time ---- */

/* Answer the calls of @s whose time is over; returns when the next one's is. */
static u64 late_calls(struct homa_supervisor *sv, struct homa_sv_sock *s, u64 now)
{
	struct homa_list *node, *next;
	u64 first = ~(u64)0;
	int rc;

	for (node = s->calls.next; node != &s->calls; node = next) {
		struct homa_sv_call *call =
			homa_container_of(node, struct homa_sv_call, link);

		next = node->next;
		if (call->until > now) {
			first = call->until < first ? call->until : first;
			continue;
		}
		homa_list_del(node);
		rc = s->end >= 0 ?
			     0 :
			     homa_sv_replace(sv, s, call, (int)call->args[0],
					     s->kernel, true);
		homa_sv_answer(sv, call, rc ? rc : -EINPROGRESS);
		free(call);
	}
	return first;
}

u64 homa_sv_connect_late(struct homa_supervisor *sv, u64 now)
{
	struct homa_list *node, *next;
	u64 first = ~(u64)0, one;

	for (node = sv->connecting.next; node != &sv->connecting; node = next) {
		struct homa_sv_sock *s =
			homa_container_of(node, struct homa_sv_sock, kin);

		next = node->next;
		one = late_calls(sv, s, now);
		first = one < first ? one : first;
		if (s->until <= now)
			homa_sv_drop(sv, s);
		else
			first = s->until < first ? s->until : first;
	}
	return first;
}
