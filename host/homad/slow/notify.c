// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The service manager's protocol is a datagram of text to the socket that an
 * environment variable names; a library for that would be larger than this.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "notify.h"

void homad_notify(const char *text)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const char *path = getenv("NOTIFY_SOCKET");
	size_t length = path ? strlen(path) : 0;
	int fd;

	if ((length < 2) || length >= sizeof(addr.sun_path) ||
	    (path[0] != '/' && path[0] != '@'))
		return;
	memcpy(addr.sun_path, path, length);
	if (path[0] == '@')
		addr.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	/* A manager that does not listen is no reason not to work. */
	if (sendto(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
		   (struct sockaddr *)&addr,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) <
	    0) {
		close(fd);
		return;
	}
	close(fd);
}

u64 homad_watchdog_ns(void)
{
	const char *usec = getenv("WATCHDOG_USEC");
	const char *pid = getenv("WATCHDOG_PID");

	if (!usec || (pid && atol(pid) != (long)getpid()))
		return 0;
	return strtoull(usec, NULL, 10) * 1000;
}
