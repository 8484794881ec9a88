// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Hooks of the calls that make, name and set up sockets. socket() asks the
 * kernel first: where Homa's module is loaded, programs use that and nothing
 * here touches their sockets.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "hook.h"
#include "preload_sock.h"
#include "pl_signals.h"
#include "tcp.h"

int homa_pl_begin(struct homa_pl_sock *s, int *cancel)
{
	int rc = homa_pl_enter();

	if (rc)
		return rc;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, cancel);
	rc = homa_pl_ready(s);
	if (rc)
		homa_pl_end(*cancel);
	return rc;
}

void homa_pl_end(int cancel)
{
	pthread_setcancelstate(cancel, NULL);
	homa_pl_leave();
}

static bool switched_off(void)
{
	const char *value = getenv("HOMA_PRELOAD");

	return value && (!strcmp(value, "off") || !strcmp(value, "0"));
}

static bool ours(int family, int type, int protocol)
{
	return protocol == IPPROTO_HOMA &&
	       (family == AF_INET || family == AF_INET6) &&
	       (type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK)) == SOCK_DGRAM;
}

HOMA_PL_HOOK int socket(int family, int type, int protocol)
{
	/* True once the kernel had no Homa, as each attempt makes it look for a module on disk. */
	static bool no_module;
	int fd, rc, cancel;

	if (HOMA_PL_LIKELY(!ours(family, type, protocol)) || switched_off()) {
		fd = HOMA_PL_REAL(socket)(family, type, protocol);
		if (fd >= 0 && homa_pl_tcp_wanted(family, type, protocol)) {
			homa_pl_hold();
			homa_pl_tcp_track(fd, family, type);
			homa_pl_unhold();
		}
		return fd;
	}
	if (!__atomic_load_n(&no_module, __ATOMIC_RELAXED)) {
		fd = HOMA_PL_REAL(socket)(family, type, protocol);
		if (fd >= 0 || errno == EMFILE || errno == ENFILE)
			return fd;
		__atomic_store_n(&no_module, true, __ATOMIC_RELAXED);
	}
	rc = homa_pl_enter();
	if (!rc) {
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
		rc = homa_pl_socket(family, type);
		homa_pl_end(cancel);
	}
	if (rc >= 0)
		return rc;
	errno = -rc;
	return -1;
}

HOMA_PL_HOOK int bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct homa_pl_sock *s = homa_pl_find(fd);
	int rc, cancel;

	if (!s)
		return HOMA_PL_REAL(bind)(fd, addr, len);
	if (s->tcp) {
		rc = s->tcp->stream ? -EINVAL : homa_pl_tcp_bind(fd, addr, len);
		return (int)homa_pl_result(s, rc);
	}
	rc = homa_pl_begin(s, &cancel);
	if (!rc) {
		rc = homa_pl_bind(s, addr, len);
		homa_pl_end(cancel);
	}
	return (int)homa_pl_result(s, rc);
}

HOMA_PL_HOOK int getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct homa_pl_sock *s = homa_pl_find(fd);
	int rc, cancel;

	if (!s)
		return HOMA_PL_REAL(getsockname)(fd, addr, len);
	if (s->tcp) {
		rc = homa_pl_tcp_stream(s->tcp) && !s->tcp->listens ?
			     homa_pl_tcp_name(s, false, addr, len) :
			     -ENOTCONN;
		if (rc == -ENOTCONN)
			rc = HOMA_PL_REAL(getsockname)(fd, addr, len) ? -errno :
									0;
		return (int)homa_pl_result(s, rc);
	}
	rc = homa_pl_begin(s, &cancel);
	if (!rc) {
		rc = homa_pl_getsockname(s, addr, len);
		homa_pl_end(cancel);
	}
	return (int)homa_pl_result(s, rc);
}

HOMA_PL_HOOK int shutdown(int fd, int how)
{
	struct homa_pl_sock *s = homa_pl_find(fd);
	int rc, cancel;

	if (!s)
		return HOMA_PL_REAL(shutdown)(fd, how);
	if (s->tcp) {
		rc = homa_pl_tcp_stream(s->tcp) ? homa_pl_tcp_shutdown(s, how) :
		     HOMA_PL_REAL(shutdown)(fd, how) ? -errno :
						       0;
		return (int)homa_pl_result(s, rc);
	}
	rc = homa_pl_begin(s, &cancel);
	if (!rc) {
		rc = homa_pl_shutdown(s);
		homa_pl_end(cancel);
	}
	return (int)homa_pl_result(s, rc);
}

HOMA_PL_HOOK int setsockopt(int fd, int level, int name, const void *value,
			    socklen_t len)
{
	struct homa_pl_sock *s = homa_pl_find(fd);
	int rc, cancel;

	if (!s)
		return HOMA_PL_REAL(setsockopt)(fd, level, name, value, len);
	if (s->tcp)
		return (int)homa_pl_result(s, homa_pl_tcp_setsockopt(s, fd,
								     level, name,
								     value, len));
	rc = homa_pl_begin(s, &cancel);
	if (!rc) {
		rc = homa_pl_setsockopt(s, level, name, value, len);
		homa_pl_end(cancel);
	}
	return (int)homa_pl_result(s, rc);
}

HOMA_PL_HOOK int getsockopt(int fd, int level, int name, void *value,
			    socklen_t *len)
{
	struct homa_pl_sock *s = homa_pl_find(fd);

	if (!s)
		return HOMA_PL_REAL(getsockopt)(fd, level, name, value, len);
	if (s->tcp)
		return (int)homa_pl_result(s, homa_pl_tcp_getsockopt(s, fd,
								     level, name,
								     value, len));
	return (int)homa_pl_result(s, homa_pl_getsockopt(s, level, name, value,
							 len));
}

/* Homa has no connections, so listen() and accept() fail; connect() names the peer of messages
 * that name none. */

HOMA_PL_HOOK int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct homa_pl_sock *s = homa_pl_find_or_cancel(fd);

	if (!s)
		return HOMA_PL_REAL(connect)(fd, addr, len);
	if (s->tcp)
		return (int)homa_pl_result(s, homa_pl_tcp_connect(s, fd, addr,
								  len));
	return (int)homa_pl_result(s, homa_pl_connect(s, addr, len));
}

HOMA_PL_HOOK int listen(int fd, int backlog)
{
	struct homa_pl_sock *s = homa_pl_find(fd);

	if (!s)
		return HOMA_PL_REAL(listen)(fd, backlog);
	if (s->tcp)
		return (int)homa_pl_result(s, homa_pl_tcp_listen(s, fd, backlog));
	return (int)homa_pl_result(s, -EOPNOTSUPP);
}

HOMA_PL_HOOK int accept(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct homa_pl_sock *s = homa_pl_find_or_cancel(fd);

	if (!s)
		return HOMA_PL_REAL(accept)(fd, addr, len);
	if (s->tcp)
		return (int)homa_pl_result(s, homa_pl_tcp_accept(s, fd, addr,
								 len, 0));
	return (int)homa_pl_result(s, -EOPNOTSUPP);
}

HOMA_PL_HOOK int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	struct homa_pl_sock *s = homa_pl_find_or_cancel(fd);

	if (!s)
		return HOMA_PL_REAL(accept4)(fd, addr, len, flags);
	if (s->tcp)
		return (int)homa_pl_result(s, homa_pl_tcp_accept(s, fd, addr,
								 len, flags));
	return (int)homa_pl_result(s, -EOPNOTSUPP);
}

HOMA_PL_HOOK int getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
	struct homa_pl_sock *s = homa_pl_find(fd);

	if (!s)
		return HOMA_PL_REAL(getpeername)(fd, addr, len);
	if (s->tcp && homa_pl_tcp_stream(s->tcp) && !s->tcp->listens)
		return (int)homa_pl_result(s,
					   homa_pl_tcp_name(s, true, addr, len));
	if (s->tcp)
		return (int)homa_pl_result(s, HOMA_PL_REAL(getpeername)(fd, addr,
									len) ?
						      -errno :
						      0);
	return (int)homa_pl_result(s, homa_pl_getpeername(s, addr, len));
}
