// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Options that an accepted connection has from its listener. With the kernel it has all of them.
 * A connection that homad has accepted gets a new socket of the kernel, so what the listener has
 * otherwise than a new socket is set there. Which options these are is found out once, and again
 * after this process has set an option of the listener: most programs set none of them, and then
 * accepting takes no system call for this.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include "real.h"
#include "tcp.h"

/* In homa_pl_tcp.inherited: it has been found out. The other bits are places in @options. */
#define KNOWN (1u << 31)

static const struct {
	/* The option, as for setsockopt(). */
	int level, name;
	/* The kernel tells twice the value that was set. */
	bool doubled;
} options[] = {
	{ SOL_SOCKET, SO_LINGER, false },
	{ SOL_SOCKET, SO_KEEPALIVE, false },
	{ SOL_SOCKET, SO_REUSEADDR, false },
	{ SOL_SOCKET, SO_REUSEPORT, false },
	{ SOL_SOCKET, SO_RCVTIMEO, false },
	{ SOL_SOCKET, SO_SNDTIMEO, false },
	{ SOL_SOCKET, SO_RCVLOWAT, false },
	{ SOL_SOCKET, SO_RCVBUF, true },
	{ SOL_SOCKET, SO_SNDBUF, true },
	{ SOL_SOCKET, SO_PRIORITY, false },
	{ SOL_SOCKET, SO_MARK, false },
	{ SOL_SOCKET, SO_OOBINLINE, false },
	{ SOL_SOCKET, SO_PEEK_OFF, false },
	{ IPPROTO_TCP, TCP_NODELAY, false },
	{ IPPROTO_TCP, TCP_KEEPIDLE, false },
	{ IPPROTO_TCP, TCP_KEEPINTVL, false },
	{ IPPROTO_TCP, TCP_KEEPCNT, false },
	{ IPPROTO_TCP, TCP_USER_TIMEOUT, false },
	{ IPPROTO_TCP, TCP_DEFER_ACCEPT, false },
	{ IPPROTO_TCP, TCP_LINGER2, false },
	{ IPPROTO_TCP, TCP_SYNCNT, false },
	{ IPPROTO_TCP, TCP_NOTSENT_LOWAT, false },
	{ IPPROTO_IP, IP_TOS, false },
	{ IPPROTO_IP, IP_TTL, false },
	{ IPPROTO_IPV6, IPV6_TCLASS, false },
	{ IPPROTO_IPV6, IPV6_UNICAST_HOPS, false },
	{ IPPROTO_IPV6, IPV6_V6ONLY, false },
};

#define NUM_OPTIONS (sizeof(options) / sizeof(*options))

_Static_assert(NUM_OPTIONS < 31, "a bit for each, beside KNOWN");

/* An option's value. All values have the size of one of these. */
union value {
	/* Of most options. */
	int number;
	/* Of SO_LINGER. */
	struct linger linger;
	/* Of SO_RCVTIMEO and SO_SNDTIMEO. */
	struct timeval time;
};

/* Read an option; returns its size, 0 if the socket has none. */
static socklen_t get(int fd, size_t which, union value *value)
{
	socklen_t size = sizeof(*value);

	memset(value, 0, sizeof(*value));
	if (HOMA_PL_REAL(getsockopt)(fd, options[which].level,
				     options[which].name, value, &size))
		return 0;
	return size;
}

/* Find out in which options @listener differs from the new socket @fd. */
static uint32_t find_out(int listener, int fd)
{
	union value mine, theirs;
	uint32_t found = KNOWN;
	size_t i;

	for (i = 0; i < NUM_OPTIONS; i++) {
		socklen_t size = get(listener, i, &mine);

		if (size && get(fd, i, &theirs) == size &&
		    memcmp(&mine, &theirs, size) != 0)
			found |= 1u << i;
	}
	return found;
}

static void copy(int from, int to, size_t which)
{
	union value value;
	socklen_t size = get(from, which, &value);

	if (!size)
		return;
	if (options[which].doubled)
		value.number /= 2;
	HOMA_PL_REAL(setsockopt)(to, options[which].level, options[which].name,
				 &value, size);
}

void homa_pl_tcp_inherit(struct homa_pl_tcp *listener, int fd)
{
	uint32_t known = __atomic_load_n(&listener->inherited, __ATOMIC_ACQUIRE);
	size_t i;

	if (!known) {
		/* A change meanwhile makes what was found out void, as it takes the lock, too. */
		homa_pl_tcp_lock();
		known = find_out(listener->fd, fd);
		__atomic_store_n(&listener->inherited, known, __ATOMIC_RELEASE);
		homa_pl_tcp_unlock();
	}
	if (HOMA_PL_LIKELY(known == KNOWN))
		return;
	for (i = 0; i < NUM_OPTIONS; i++)
		if (known >> i & 1)
			copy(listener->fd, fd, i);
}

void homa_pl_tcp_heirs_change(struct homa_pl_tcp *tcp)
{
	homa_pl_tcp_lock();
	__atomic_store_n(&tcp->inherited, 0, __ATOMIC_RELEASE);
	homa_pl_tcp_unlock();
}
