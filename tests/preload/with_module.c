// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Preloaded after libhoma-preload.so, it looks like a kernel that has Homa: its
 * socket() succeeds for protocol 146, with a socket that is really UDP's.
 */
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

int socket(int family, int type, int protocol)
{
	return (int)syscall(SYS_socket, family, type,
			    protocol == 146 ? 0 : protocol);
}
