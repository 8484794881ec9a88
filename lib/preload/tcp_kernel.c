// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The kernel's socket behind a descriptor: what it knows, and calls that it does because the
 * socket is not homad's.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include "pl_signals.h"
#include "tcp.h"
#include "tcp_common.h"
#include "real.h"

/* Headers of the C library may be older. */
#ifndef TCP_AO_ADD_KEY
#define TCP_AO_ADD_KEY 38
#endif
#ifndef SO_BINDTOIFINDEX
#define SO_BINDTOIFINDEX 62
#endif

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

/* Has bind() given the socket a port or an address? With IP_BIND_ADDRESS_NO_PORT it gives an
 * address alone. */
static bool has_name(int fd)
{
	static const uint8_t none[16];
	struct sockaddr_in6 name = { 0 };
	socklen_t size = sizeof(name);

	if (HOMA_PL_REAL(getsockname)(fd, (struct sockaddr *)&name, &size) ||
	    name.sin6_port)
		return true;
	if (name.sin6_family == AF_INET)
		return ((struct sockaddr_in *)&name)->sin_addr.s_addr != 0;
	return memcmp(&name.sin6_addr, none, sizeof(none)) != 0;
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

/* ---- options that only the kernel knows ---- */

static const struct {
	/* The option, as for setsockopt(). */
	int level, name;
} options[] = {
	/* They decide which packets are of the socket at all. */
	{ SOL_SOCKET, SO_ATTACH_FILTER },
	{ SOL_SOCKET, SO_ATTACH_BPF },
	{ IPPROTO_IP, IP_MINTTL },
	{ IPPROTO_IPV6, IPV6_MINHOPCOUNT },
	{ IPPROTO_TCP, TCP_MD5SIG },
	{ IPPROTO_TCP, TCP_MD5SIG_EXT },
	{ IPPROTO_TCP, TCP_AO_ADD_KEY },
	/* They decide on the way that packets take. */
	{ SOL_SOCKET, SO_BINDTODEVICE },
	{ SOL_SOCKET, SO_BINDTOIFINDEX },
	{ SOL_SOCKET, SO_MARK },
	{ IPPROTO_IP, IP_OPTIONS },
	{ IPPROTO_IP, IP_TRANSPARENT },
	{ IPPROTO_IP, IP_IPSEC_POLICY },
	{ IPPROTO_IP, IP_XFRM_POLICY },
	{ IPPROTO_IPV6, IPV6_TRANSPARENT },
	{ IPPROTO_IPV6, IPV6_IPSEC_POLICY },
	{ IPPROTO_IPV6, IPV6_XFRM_POLICY },
	/* They change what is read and written. */
	{ IPPROTO_TCP, TCP_REPAIR },
	{ IPPROTO_TCP, TCP_ULP },
};

/* Is any byte of the value not 0? If all are, the option is as it was at the begin. */
static bool says_something(const char *value, socklen_t len)
{
	socklen_t i;

	for (i = 0; value && i < len; i++)
		if (value[i])
			return true;
	return false;
}

bool homa_pl_tcp_kernel_knows(int level, int name, const void *value,
			      socklen_t len)
{
	size_t i;

	for (i = 0; i < sizeof(options) / sizeof(*options); i++)
		if (options[i].level == level && options[i].name == name)
			return says_something(value, len);
	return false;
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
