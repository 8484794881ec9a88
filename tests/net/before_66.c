// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* Preloaded, it lets bind() of an AF_XDP socket fail as before Linux 6.6, if packets are to come
 * in several frames. */
#include <dlfcn.h>
#include <errno.h>
#include <linux/if_xdp.h>
#include <sys/socket.h>

#ifndef XDP_USE_SG
#define XDP_USE_SG (1 << 4)
#endif

int bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	int (*next)(int, const struct sockaddr *, socklen_t) =
		(int (*)(int, const struct sockaddr *,
			 socklen_t))dlsym(RTLD_NEXT, "bind");

	if (addr->sa_family == AF_XDP &&
	    ((const struct sockaddr_xdp *)addr)->sxdp_flags & XDP_USE_SG) {
		errno = EINVAL;
		return -1;
	}
	return next(fd, addr, len);
}
