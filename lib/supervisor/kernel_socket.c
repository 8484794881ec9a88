// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* What the kernel's socket knows: is it one that homad may have, and when do its calls give up? */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>
#include "homa_clock.h"
#include "supervisor.h"

/* Headers of the C library may be older. */
#ifndef TCP_AO_ADD_KEY
#define TCP_AO_ADD_KEY 38
#endif
#ifndef SO_BINDTOIFINDEX
#define SO_BINDTOIFINDEX 62
#endif

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
	static const u8 none[16];
	struct sockaddr_in6 name = { 0 };
	socklen_t size = sizeof(name);

	/* The port is in the same place in both families. */
	if (getsockname(fd, (struct sockaddr *)&name, &size) || name.sin6_port)
		return true;
	if (name.sin6_family == AF_INET)
		return ((struct sockaddr_in *)&name)->sin_addr.s_addr != 0;
	return memcmp(&name.sin6_addr, none, sizeof(none)) != 0;
}

/* Options that only the kernel knows: those that can be asked for, and others. */
static const struct {
	/* The option, as for setsockopt(). */
	int level, name;
	/* Can it be asked for? It is 0 unless it was set. */
	bool can_ask;
} options[] = {
	{ SOL_SOCKET, SO_MARK, true },
	{ SOL_SOCKET, SO_BINDTOIFINDEX, true },
	{ SOL_SOCKET, SO_ZEROCOPY, true },
	{ IPPROTO_IP, IP_MINTTL, true },
	{ IPPROTO_IP, IP_TRANSPARENT, true },
	{ IPPROTO_TCP, TCP_REPAIR, true },
	{ IPPROTO_IPV6, IPV6_MINHOPCOUNT, true },
	{ IPPROTO_IPV6, IPV6_TRANSPARENT, true },
	{ SOL_SOCKET, SO_ATTACH_FILTER, false },
	{ SOL_SOCKET, SO_ATTACH_BPF, false },
	{ SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, false },
	{ SOL_SOCKET, SO_ATTACH_REUSEPORT_EBPF, false },
	{ IPPROTO_IP, IP_OPTIONS, false },
	{ IPPROTO_IP, IP_IPSEC_POLICY, false },
	{ IPPROTO_IP, IP_XFRM_POLICY, false },
	{ IPPROTO_IPV6, IPV6_IPSEC_POLICY, false },
	{ IPPROTO_IPV6, IPV6_XFRM_POLICY, false },
	{ IPPROTO_TCP, TCP_MD5SIG, false },
	{ IPPROTO_TCP, TCP_MD5SIG_EXT, false },
	{ IPPROTO_TCP, TCP_AO_ADD_KEY, false },
	{ IPPROTO_TCP, TCP_ULP, false },
};

bool homa_sv_option_is_special(int level, int name, const void *value,
			       socklen_t len)
{
	const u8 *bytes = value;
	socklen_t j;
	size_t i;

	for (i = 0; i < sizeof(options) / sizeof(*options); i++) {
		if (options[i].level != level || options[i].name != name)
			continue;
		for (j = 0; j < len; j++)
			if (bytes[j])
				return true;
	}
	return false;
}

bool homa_sv_is_special(const struct homa_supervisor *sv, int fd)
{
	u64 cookie = homa_sv_cookie(fd);
	socklen_t size = 0;
	size_t i;

	for (i = 0; i < sizeof(options) / sizeof(*options); i++)
		if (options[i].can_ask &&
		    homa_sv_number(fd, options[i].level, options[i].name, 0))
			return true;
	for (i = 0; i < sizeof(sv->kernels) / sizeof(*sv->kernels); i++)
		if (sv->kernels[i] == cookie)
			return true;
	/* How long a packet filter is; its last parameter says that nothing is copied. */
	return !getsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, NULL, &size) && size;
}

static bool same_address(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return !memcmp(&((const struct sockaddr_in *)a)->sin_addr,
			       &((const struct sockaddr_in *)b)->sin_addr, 4);
	return !memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
		       &((const struct sockaddr_in6 *)b)->sin6_addr, 16);
}

static bool is_loopback(const struct sockaddr *name)
{
	static const u8 loopback[16] = { [15] = 1 };

	if (name->sa_family == AF_INET)
		return *(const u8 *)&((const struct sockaddr_in *)name)->sin_addr ==
		       127;
	return !memcmp(&((const struct sockaddr_in6 *)name)->sin6_addr,
		       loopback, 16);
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
	return same_address(to, name) || is_loopback(to);
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
