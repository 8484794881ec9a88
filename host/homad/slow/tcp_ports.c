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
#include "homad_tcp.h"
#include "log.h"
#include "tcp_slow.h"

#define FIRST_PORTS 256u

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

/* Binds a socket to a port of the kernel's choice, at all addresses of both families. */
static int bind_any(u16 *port)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	struct sockaddr_in four = { .sin_family = AF_INET };
	socklen_t size = sizeof(six);
	int off = 0, fd;

	fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
	if (fd >= 0 &&
	    !setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) &&
	    !bind(fd, (struct sockaddr *)&six, sizeof(six)) &&
	    !getsockname(fd, (struct sockaddr *)&six, &size)) {
		*port = ntohs(six.sin6_port);
		return fd;
	}
	if (fd >= 0)
		close(fd);
	/* The host has no IPv6. */
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

/* Takes ports from the kernel; this runs on the worker's thread, because the kernel may
 * need long to find free ports. */
static void get_ports(struct homad_work *work)
{
	struct homad_tcp_ports *ports =
		homa_container_of(work, struct homad_tcp_ports, more);
	int fd;

	ports->rc = 0;
	for (ports->num_got = 0; ports->num_got < ports->wanted;
	     ports->num_got++) {
		fd = bind_any(&ports->got[ports->num_got]);
		if (fd < 0) {
			ports->rc = fd;
			return;
		}
		ports->got_fds[ports->num_got] = fd;
	}
}

static int hand_over(struct homad_thread *t, void *arg)
{
	const struct homad_tcp_ports *ports = arg;

	homad_tcp_use_ports(t, ports->got, ports->num_got);
	return 0;
}

static void have_ports(struct homad *d, struct homad_tcp_ports *ports)
{
	u32 i;

	ports->growing = false;
	for (i = 0; i < ports->num_got; i++) {
		ports->fds[ports->num_fds++] = ports->got_fds[i];
		/* The port is taken before the first SYN from it is sent. */
		homad_tcp_take_port(d, ports->got[i]);
	}
	if (ports->rc)
		homad_log(HOMAD_WARNING,
			  "fewer ports than tcp.ports for TCP connections\tports=%u wanted=%u error=\"%s\"",
			  ports->num_fds, d->config.tcp_ports,
			  strerror(-ports->rc));
	homad_call(d->threads[0], hand_over, ports);
}

static void got_ports(struct homad *d, struct homad_work *work)
{
	have_ports(d, homa_container_of(work, struct homad_tcp_ports, more));
}

void homad_tcp_more_ports(struct homad *d)
{
	struct homad_tcp_ports *ports = homad_slow(d)->tcp;

	if (ports->growing ||
	    !__atomic_load_n(&d->threads[0]->tcp->asked_ports, __ATOMIC_ACQUIRE))
		return;
	ports->growing = true;
	ports->wanted =
		homa_min_u32(d->config.tcp_ports - ports->num_fds,
			     homa_min_u32(HOMAD_PORT_STEP, ports->num_fds));
	ports->more = (struct homad_work){ .run = get_ports, .done = got_ports };
	homad_work(d, &ports->more);
}

int homad_tcp_keep_ports(struct homad *d, char *err, size_t errlen)
{
	struct homad_tcp_ports *ports = homad_slow(d)->tcp;

	ports->wanted = homa_min_u32(d->config.tcp_ports, FIRST_PORTS);
	get_ports(&ports->more);
	if (!ports->num_got) {
		snprintf(err, errlen, "no port for TCP connections: %s",
			 strerror(-ports->rc));
		return ports->rc;
	}
	have_ports(d, ports);
	return 0;
}
