// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The kernel's socket behind a descriptor: what it knows, and calls that it does because the
 * socket is not homad's.
 */
#include <errno.h>
#include <netinet/in.h>
#include "pl_signals.h"
#include "tcp.h"
#include "real.h"

bool homa_pl_tcp_is_bound(int fd)
{
	struct sockaddr_in6 name = { 0 };
	socklen_t size = sizeof(name);

	/* The port is in the same place in both families. */
	return HOMA_PL_REAL(getsockname)(fd, (struct sockaddr *)&name, &size) ||
	       name.sin6_port;
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
	homa_pl_let_signals(-1);
	rc = HOMA_PL_REAL(connect)(fd, addr, len) ? -errno : 0;
	homa_pl_hold_again(call.depth);
	pthread_cleanup_pop(0);
	return rc;
}

int homa_pl_kernel_accept(struct homa_pl_sock *s, int fd, struct sockaddr *addr,
			  socklen_t *len, int flags)
{
	struct in_kernel call = { s, homa_pl_signals.depth };
	int rc;

	pthread_cleanup_push(is_cancelled, &call);
	homa_pl_let_signals(-1);
	rc = HOMA_PL_REAL(accept4)(fd, addr, len, flags);
	rc = rc < 0 ? -errno : rc;
	homa_pl_hold_again(call.depth);
	pthread_cleanup_pop(0);
	return rc;
}
