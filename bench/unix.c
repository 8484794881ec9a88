/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * UNIX sockets for the stream transports; see unix.h. They are the yardstick
 * for RPCs between two programs of one machine: no network stack, one copy into
 * the kernel, one out, a wake-up.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "unix.h"

bool bench_is_unix(const struct bench_config *config)
{
	return strncmp(config->transport, "unix", 4) == 0;
}

int bench_unix_type(const struct bench_config *config)
{
	return strcmp(config->transport, "unix-packet") == 0 ? SOCK_SEQPACKET :
							       SOCK_STREAM;
}

int bench_unix_resolve(const char *text, struct sockaddr_storage *addr,
		       uint32_t *addrlen)
{
	struct sockaddr_un *un = (struct sockaddr_un *)addr;
	size_t n = strlen(text);

	if (text[0] != '@' || n < 2 || n > sizeof(un->sun_path))
		return -EINVAL;
	memset(addr, 0, sizeof(*addr));
	un->sun_family = AF_UNIX;
	/* A leading zero byte in place of the @ makes the address abstract. */
	memcpy(un->sun_path + 1, text + 1, n - 1);
	*addrlen = (uint32_t)(offsetof(struct sockaddr_un, sun_path) + n);
	return 0;
}
