// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Which call is whose: those about sockets that are not homad's are the kernel's. */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "supervisor.h"

/* getsockname() and getpeername() */
static void name(struct homa_supervisor *sv, struct homa_sv_call *call,
		 struct homa_sv_sock *s, bool peer)
{
	struct homa_stream_facts facts = { .size = sizeof(facts) };
	struct sockaddr_storage *address = &facts.local;
	socklen_t size = sizeof(*address);
	int rc = 0;

	if (peer && s->kind != HOMA_SV_OPEN)
		rc = -ENOTCONN;
	else if (s->kind == HOMA_SV_LISTENER ||
		 s->kind == HOMA_SV_FAILED_TO_CONNECT)
		rc = getsockname(s->kernel, (struct sockaddr *)address, &size) ?
			     -errno :
			     0;
	else if (homa_stream_facts(s->stream, &facts) && peer)
		rc = -ENOTCONN;
	if (peer)
		address = &facts.remote;
	if (!address->ss_family)
		address->ss_family = (sa_family_t)s->family;
	if (!rc)
		rc = homa_sv_store_address(call, s->family, address,
					   call->args[1], call->args[2]);
	homa_sv_answer(sv, call, rc);
}

static void stop(struct homa_supervisor *sv, struct homa_sv_call *call,
		 struct homa_sv_sock *s)
{
	int how = (int)call->args[1];

	if (how < SHUT_RD || how > SHUT_RDWR) {
		homa_sv_pass(sv, call);
	} else if (s->kind == HOMA_SV_OPEN) {
		homa_sv_answer(sv, call, homa_sv_shut(s, call->fd, how));
	} else if (s->kind == HOMA_SV_LISTENER) {
		if (how != SHUT_WR)
			homa_sv_stop(s, sv);
		homa_sv_answer(sv, call, 0);
	} else {
		/* It ends a connection that is being opened, in whatever direction. */
		homa_sv_answer(sv, call,
			       s->kind == HOMA_SV_CONNECTING ? 0 : -ENOTCONN);
		if (s->kind == HOMA_SV_CONNECTING)
			homa_sv_connect_fail(sv, s, ECONNRESET);
	}
}

static void serve_connect(struct homa_supervisor *sv, struct homa_sv_call *call)
{
	struct sockaddr_storage to;

	if (!homa_sv_load_address(call, call->args[1], call->args[2], &to) ||
	    (to.ss_family != AF_INET && to.ss_family != AF_INET6 &&
	     to.ss_family != AF_UNSPEC)) {
		homa_sv_pass(sv, call);
		return;
	}
	if (!homa_sv_fetch(sv, call))
		homa_sv_pass(sv, call);
	else
		homa_sv_connect(sv, call,
				homa_sv_find(sv, homa_sv_cookie(call->fd)), &to);
}

/* A call about a socket of homad's. */
static void serve_ours(struct homa_supervisor *sv, struct homa_sv_call *call,
		       struct homa_sv_sock *s)
{
	switch (call->number) {
	case SYS_accept4:
#ifdef SYS_accept
	case SYS_accept:
#endif
		homa_sv_accept(sv, call, s);
		break;
	case SYS_shutdown:
		stop(sv, call, s);
		break;
	case SYS_getsockname:
		name(sv, call, s, false);
		break;
	case SYS_getpeername:
		name(sv, call, s, true);
		break;
	case SYS_getsockopt:
		homa_sv_getsockopt(sv, call, s);
		break;
	case SYS_bind:
		homa_sv_answer(sv, call, -EINVAL);
		break;
	default:
		homa_sv_pass(sv, call);
	}
}

/* A connection that is over, so that the supervisor has nothing of it any more. The program shall
 * not find a UNIX socket there, but a TCP socket whose connection has ended. */
static bool serve_ended(struct homa_supervisor *sv, struct homa_sv_call *call)
{
	struct homa_sv_sock ended = { .kind = HOMA_SV_FAILED_TO_CONNECT,
				      .end = -1 };

	if (call->number != SYS_getsockname && call->number != SYS_getpeername &&
	    call->number != SYS_getsockopt && call->number != SYS_setsockopt)
		return false;
	ended.family = homa_sv_pair_family(call->fd);
	if (!ended.family)
		return false;
	ended.kernel =
		socket(ended.family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
	if (call->number == SYS_setsockopt) {
		homa_sv_setsockopt(sv, call, &ended);
	} else {
		/* The pair knows of the reset, until the program has asked. */
		if (call->number == SYS_getsockopt &&
		    (int)call->args[1] == SOL_SOCKET &&
		    (int)call->args[2] == SO_ERROR)
			ended.error = homa_sv_number(call->fd, SOL_SOCKET,
						     SO_ERROR, 0);
		serve_ours(sv, call, &ended);
	}
	if (ended.kernel >= 0)
		close(ended.kernel);
	return true;
}

static void serve(struct homa_supervisor *sv, struct homa_sv_call *call)
{
	struct homa_sv_sock *s;

	if (call->number == SYS_connect) {
		serve_connect(sv, call);
		return;
	}
	if (!homa_sv_fetch(sv, call)) {
		homa_sv_pass(sv, call);
		return;
	}
	s = homa_sv_find(sv, homa_sv_cookie(call->fd));
	if (s) {
		/* Who uses it last is asked first for its end. */
		s->owner = call->thread;
		s->owner_fd = (int)call->args[0];
	} else {
		s = homa_sv_find_listener(sv, homa_sv_cookie(call->fd));
	}
	if (!s && serve_ended(sv, call))
		return;
	if (call->number == SYS_listen)
		homa_sv_listen(sv, call, s);
	else if (call->number == SYS_bind && !s)
		homa_sv_bind(sv, call);
	else if (call->number == SYS_setsockopt)
		homa_sv_setsockopt(sv, call, s);
	else if (s)
		serve_ours(sv, call, s);
	else
		homa_sv_pass(sv, call);
}

void homa_sv_serve(struct homa_supervisor *sv, struct homa_sv_call *call)
{
	serve(sv, call);
	homa_sv_done(call);
	homa_sv_keep_spare(sv);
}
