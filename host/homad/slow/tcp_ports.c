// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * TCP ports that homad has: those that it keeps for connections of applications, and those
 * at which they listen. Each is held by a socket of the kernel that is bound, so that no
 * other program gets it, and segments to it come to homad.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "attach.h"
#include "log.h"
#include "streams.h"
#include "tcp_slow.h"

void homad_tcp_take_port(struct homad *d, u16 port)
{
	struct homad_tcp_ports *ports = homad_slow(d)->tcp;
	u32 i;

	if (ports->users[port]++)
		return;
	for (i = 0; i < d->num_ports; i++)
		if (d->ports[i].nic && !d->ports[i].encap)
			nic_tcp_port(d->ports[i].nic, port, true);
}

void homad_tcp_leave_port(struct homad *d, u16 port)
{
	struct homad_tcp_ports *ports = homad_slow(d)->tcp;
	u32 i;

	if (--ports->users[port])
		return;
	for (i = 0; i < d->num_ports; i++)
		if (d->ports[i].nic && !d->ports[i].encap)
			nic_tcp_port(d->ports[i].nic, port, false);
}

/* Bound to a port of the kernel's choice, at all addresses of both families. */
static int bind_any(u16 *port)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	struct sockaddr_in four = { .sin_family = AF_INET };
	socklen_t size = sizeof(six);
	int off = 0, fd;

	fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
	if (fd >= 0 && !setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) &&
	    !bind(fd, (struct sockaddr *)&six, sizeof(six)) &&
	    !getsockname(fd, (struct sockaddr *)&six, &size)) {
		*port = ntohs(six.sin6_port);
		return fd;
	}
	if (fd >= 0)
		close(fd);
	/* A host without IPv6. */
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
	size = sizeof(four);
	if (fd >= 0 && !bind(fd, (struct sockaddr *)&four, sizeof(four)) &&
	    !getsockname(fd, (struct sockaddr *)&four, &size)) {
		*port = ntohs(four.sin_port);
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -errno;
}

struct handed {
	u16 ports[HOMAD_TCP_PORTS];
	u32 num;
};

static int hand_over(struct homad_thread *t, void *arg)
{
	const struct handed *handed = arg;

	return homad_tcp_use_ports(t, handed->ports, handed->num);
}

int homad_tcp_keep_ports(struct homad *d, char *err, size_t errlen)
{
	struct homad_tcp_ports *ports = homad_slow(d)->tcp;
	struct handed *handed = calloc(1, sizeof(*handed));
	u32 want = homa_min_u32(d->config.tcp_ports, HOMAD_TCP_PORTS);
	int fd = 0;

	if (!handed)
		return -ENOMEM;
	while (handed->num < want) {
		fd = bind_any(&handed->ports[handed->num]);
		if (fd < 0)
			break;
		ports->fds[ports->num_fds++] = fd;
		homad_tcp_take_port(d, handed->ports[handed->num++]);
	}
	if (handed->num < want)
		homad_log(HOMAD_WARNING,
			  "fewer ports than tcp.ports for TCP connections\tports=%u wanted=%u error=\"%s\"",
			  handed->num, want, strerror(-fd));
	if (handed->num)
		homad_call(d->threads[0], hand_over, handed);
	else
		snprintf(err, errlen, "no port for TCP connections: %s", strerror(-fd));
	fd = handed->num ? 0 : fd;
	free(handed);
	return fd;
}
