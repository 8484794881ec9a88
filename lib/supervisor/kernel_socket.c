// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* What the kernel's socket knows: is it one that homad may have, and when do its calls give up? */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
#include "homa_clock.h"
#include "homa_kernel_only.h"
#include "supervisor.h"

u64 homa_sv_cookie(int fd)
{
	u64 cookie = 0;
	socklen_t size = sizeof(cookie);

	return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) ? 0 : cookie;
}

int homa_sv_number(int fd, int level, int name, int otherwise)
{
	int value = otherwise;
	socklen_t size = sizeof(value);

	return getsockopt(fd, level, name, &value, &size) ? otherwise : value;
}

int homa_sv_is_tcp(int fd)
{
	int family;

	if (homa_sv_number(fd, SOL_SOCKET, SO_PROTOCOL, 0) != IPPROTO_TCP ||
	    homa_sv_number(fd, SOL_SOCKET, SO_TYPE, 0) != SOCK_STREAM)
		return 0;
	family = homa_sv_number(fd, SOL_SOCKET, SO_DOMAIN, 0);
	return family == AF_INET || family == AF_INET6 ? family : 0;
}

bool homa_sv_has_name(int fd)
{
	struct sockaddr_in6 name = { 0 };
	socklen_t size = sizeof(name);

	return getsockname(fd, (struct sockaddr *)&name, &size) ||
	       homa_name_is_set(&name);
}

/* Options of the kernel's that can be asked for: they are 0 unless they were set. */
static const struct homa_kernel_option asked[] = {
	{ SOL_SOCKET, SO_MARK },
	{ SOL_SOCKET, SO_BINDTOIFINDEX },
	{ SOL_SOCKET, SO_ZEROCOPY },
	{ IPPROTO_IP, IP_MINTTL },
	{ IPPROTO_IP, IP_TRANSPARENT },
	{ IPPROTO_TCP, TCP_REPAIR },
	{ IPPROTO_IPV6, IPV6_MINHOPCOUNT },
	{ IPPROTO_IPV6, IPV6_TRANSPARENT },
};

bool homa_sv_option_is_special(int level, int name, const void *value,
			       socklen_t len)
{
	/* homad copies all bytes and would never say that it is done with them. */
	return (homa_option_is_kernels(level, name) ||
		(level == SOL_SOCKET && name == SO_ZEROCOPY)) &&
	       homa_option_says_something(value, len);
}

bool homa_sv_is_special(const struct homa_supervisor *sv, int fd)
{
	u64 cookie = homa_sv_cookie(fd);
	socklen_t size = 0;
	size_t i;

	for (i = 0; i < sizeof(asked) / sizeof(*asked); i++)
		if (homa_sv_number(fd, asked[i].level, asked[i].name, 0))
			return true;
	for (i = 0; i < sizeof(sv->kernels) / sizeof(*sv->kernels); i++)
		if (sv->kernels[i] == cookie)
			return true;
	/* How long a packet filter is; its last parameter says that nothing is copied. */
	return !getsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, NULL, &size) && size;
}

int homa_sv_is_this_host(const struct sockaddr *to, socklen_t len,
			 struct sockaddr_storage *from)
{
	struct sockaddr *name = (struct sockaddr *)from;
	socklen_t size = sizeof(*from);
	int fd = socket(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int rc;

	if (fd < 0)
		return -errno;
	rc = connect(fd, to, len) || getsockname(fd, name, &size);
	close(fd);
	if (rc)
		return -EOPNOTSUPP;
	/* The port is in the same place in both families. */
	((struct sockaddr_in *)from)->sin_port = 0;
	return homa_name_same_ip(to, name) || homa_name_is_loopback(to);
}

u64 homa_sv_timeout(int fd, int name)
{
	struct timeval limit = { 0 };
	socklen_t size = sizeof(limit);

	if (getsockopt(fd, SOL_SOCKET, name, &limit, &size) ||
	    (!limit.tv_sec && !limit.tv_usec))
		return ~(u64)0;
	return homa_clock_ns() + (u64)limit.tv_sec * 1000000000u +
	       (u64)limit.tv_usec * 1000u;
}
