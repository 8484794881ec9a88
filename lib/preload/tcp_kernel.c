// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The kernel's socket behind a descriptor: what it knows, and calls that it does because the
 * socket is not homad's.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include "homa_kernel_only.h"
#include "pl_signals.h"
#include "tcp.h"
#include "tcp_common.h"
#include "real.h"

bool homa_pl_tcp_is_bound(int fd)
{
	struct sockaddr_in6 name = { 0 };
	socklen_t size = sizeof(name);

	/* The port is in the same place in both families. */
	return HOMA_PL_REAL(getsockname)(fd, (struct sockaddr *)&name, &size) ||
	       name.sin6_port;
}

/* Is it an IPv4 address in the form of IPv6? */
static bool is_mapped(const struct sockaddr *addr)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return addr->sa_family == AF_INET6 &&
	       !memcmp(&((const struct sockaddr_in6 *)addr)->sin6_addr, mapped,
		       sizeof(mapped));
}

/* Has bind() given the socket a port or an address? */
static bool has_name(int fd)
{
	struct sockaddr_in6 name = { 0 };
	socklen_t size = sizeof(name);

	return HOMA_PL_REAL(getsockname)(fd, (struct sockaddr *)&name, &size) ||
	       homa_name_is_set(&name);
}

static bool is_v6_only(int fd)
{
	int only = 0;
	socklen_t size = sizeof(only);

	return !HOMA_PL_REAL(getsockopt)(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only,
					 &size) &&
	       only;
}

bool homa_pl_tcp_connects_itself(const struct homa_pl_sock *s, int fd,
				 const struct sockaddr *addr)
{
	return s->tcp->kernels || s->tcp->forked || has_name(fd) ||
	       homa_pl_tcp_in_place(fd) || (is_mapped(addr) && is_v6_only(fd));
}

int homa_pl_tcp_is_this_host(const struct sockaddr *to, socklen_t len,
			     struct sockaddr_storage *from)
{
	struct sockaddr *name = (struct sockaddr *)from;
	socklen_t size = sizeof(*from);
	int fd = HOMA_PL_REAL(socket)(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC,
				      0);
	int rc;

	if (fd < 0)
		return -errno;
	rc = HOMA_PL_REAL(connect)(fd, to, len) ||
	     HOMA_PL_REAL(getsockname)(fd, name, &size);
	HOMA_PL_REAL(close)(fd);
	if (rc)
		return -EOPNOTSUPP;
	/* The port is in the same place in both families. */
	((struct sockaddr_in *)from)->sin_port = 0;
	return homa_name_same_ip(to, name) || homa_name_is_loopback(to);
}

int homa_pl_tcp_path_mtu(const struct sockaddr_storage *local,
			 const struct sockaddr_storage *remote)
{
	bool four = remote->ss_family == AF_INET;
	socklen_t size =
		four ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	struct sockaddr_storage from = *local;
	socklen_t length = sizeof(int);
	int fd = HOMA_PL_REAL(socket)(remote->ss_family,
				      SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int mtu = 0, rc;

	if (fd < 0)
		return -ENOTCONN;
	/* The port is in the same place in both families. */
	((struct sockaddr_in *)&from)->sin_port = 0;
	rc = HOMA_PL_REAL(bind)(fd, (struct sockaddr *)&from, size) ||
	     HOMA_PL_REAL(connect)(fd, (const struct sockaddr *)remote, size) ||
	     HOMA_PL_REAL(getsockopt)(fd, four ? IPPROTO_IP : IPPROTO_IPV6,
				      four ? IP_MTU : IPV6_MTU, &mtu, &length);
	HOMA_PL_REAL(close)(fd);
	return rc || mtu <= 0 ? -ENOTCONN : mtu;
}

/* ---- options that only the kernel knows ---- */

bool homa_pl_tcp_kernel_knows(int level, int name, const void *value,
			      socklen_t len)
{
	return homa_option_is_kernels(level, name) &&
	       homa_option_says_something(value, len);
}

bool homa_pl_tcp_in_place(int fd)
{
	int on = 0;
	socklen_t size = sizeof(on);

	return !HOMA_PL_REAL(getsockopt)(fd, SOL_SOCKET, SO_ZEROCOPY, &on, &size) &&
	       on;
}

/** struct in_kernel - a call of a socket in the kernel, where handlers may run */
struct in_kernel {
	/* The socket, of which the call has a reference. */
	struct homa_pl_sock *s;
	/* The depth in which signals were held before. */
	unsigned int depth;
};

/* The thread was cancelled in the call. */
static void is_cancelled(void *arg)
{
	const struct in_kernel *call = arg;

	homa_pl_hold_again(call->depth);
	homa_pl_put(call->s);
}

int homa_pl_kernel_connect(struct homa_pl_sock *s, int fd,
			   const struct sockaddr *addr, socklen_t len)
{
	struct in_kernel call = { s, homa_pl_signals.depth };
	int rc;

	pthread_cleanup_push(is_cancelled, &call);
	homa_pl_let_signals(NULL);
	rc = HOMA_PL_REAL(connect)(fd, addr, len) ? -errno : 0;
	homa_pl_hold_again(call.depth);
	pthread_cleanup_pop(0);
	return rc;
}

/* Accept a connection. The socket may be one that another process, which has it, too, listens at by
 * homad: then the kernel's never waits, so this does. */
static int accept_now(struct homa_pl_sock *s, int fd, struct sockaddr *addr,
		      socklen_t *len, int flags)
{
	int64_t until = s->rcvtimeo < 0 ? INT64_MAX : homa_pl_now() + s->rcvtimeo;
	int64_t left;
	unsigned int hard = homa_pl_signals.ran_hard;
	struct pollfd fds = { .fd = fd, .events = POLLIN };
	struct timespec wait;
	int rc;

	for (;;) {
		rc = HOMA_PL_REAL(accept4)(fd, addr, len, flags);
		rc = rc < 0 ? -errno : rc;
		if (HOMA_PL_LIKELY(rc != -EAGAIN) ||
		    !homa_pl_tcp_seems_nonblocking(s, fd))
			return rc;
		left = until - homa_pl_now();
		if (until != INT64_MAX && left <= 0)
			return -EAGAIN;
		wait.tv_sec = left / 1000000000;
		wait.tv_nsec = left % 1000000000;
		if (HOMA_PL_REAL(ppoll)(&fds, 1, until == INT64_MAX ? NULL : &wait,
					NULL) < 0 &&
		    (errno != EINTR || until != INT64_MAX ||
		     homa_pl_signals.ran_hard != hard))
			return -errno;
	}
}

int homa_pl_kernel_accept(struct homa_pl_sock *s, int fd, struct sockaddr *addr,
			  socklen_t *len, int flags)
{
	struct in_kernel call = { s, homa_pl_signals.depth };
	int rc;

	pthread_cleanup_push(is_cancelled, &call);
	homa_pl_let_signals(NULL);
	rc = accept_now(s, fd, addr, len, flags);
	homa_pl_hold_again(call.depth);
	pthread_cleanup_pop(0);
	return rc;
}
