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
#include "tcp_listener.h"
#include "tcp_slow.h"
#include "tcp_steer.h"

#define FIRST_PORTS 256u

void homad_tcp_take_port(struct homad *d, u16 port)
{
	struct homad_tcp_ports *ports = homad_slow(d)->tcp;
	u32 i;

	if (ports->users[port]++)
		return;
	for (i = 0; i < d->num_ports; i++)
		if (homad_port_tcp(&d->ports[i]))
			nic_tcp_port(d->ports[i].nic, port, true);
}

void homad_tcp_leave_port(struct homad *d, u16 port)
{
	struct homad_tcp_ports *ports = homad_slow(d)->tcp;
	u32 i;

	if (--ports->users[port])
		return;
	for (i = 0; i < d->num_ports; i++)
		if (homad_port_tcp(&d->ports[i]))
			nic_tcp_port(d->ports[i].nic, port, false);
}

/* Binds @fd to @port at all addresses of its family, or of both; 0: to one that the kernel
 * chooses. Returns 0 or the error. */
static int bind_at(int fd, int family, u16 port)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6,
				    .sin6_port = htons(port) };
	struct sockaddr_in four = { .sin_family = AF_INET,
				    .sin_port = htons(port) };
	int rc = family == AF_INET6 ?
			 bind(fd, (struct sockaddr *)&six, sizeof(six)) :
			 bind(fd, (struct sockaddr *)&four, sizeof(four));

	return rc ? -errno : 0;
}

/* Binds @fd to a port that nobody has. */
static int bind_free(int fd, int family, struct homad_port_choice *choice)
{
	u32 i;
	u16 port;
	int rc;

	for (i = 0; i < HOMAD_PORT_DRAWS; i++) {
		port = homad_port_choice_draw(choice);
		if (!port)
			break;
		rc = bind_at(fd, family, port);
		if (rc != -EADDRINUSE && rc != -EACCES)
			return rc;
	}
	return bind_at(fd, family, 0);
}

/* Returns a socket of @family that has a port, and the port, or the error. */
static int bind_family(int family, struct homad_port_choice *choice, u16 *port)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
	struct sockaddr_storage name = { 0 };
	socklen_t size = sizeof(name);
	int off = 0, rc = 0;

	if (fd < 0)
		return -errno;
	if (family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)))
		rc = -errno;
	if (!rc)
		rc = bind_free(fd, family, choice);
	if (!rc && getsockname(fd, (struct sockaddr *)&name, &size))
		rc = -errno;
	if (rc) {
		close(fd);
		return rc;
	}
	/* The port is in the same place for both families. */
	*port = ntohs(((struct sockaddr_in *)&name)->sin_port);
	return fd;
}

/* Binds a socket to a free port, at all addresses of both families. */
static int bind_any(struct homad_port_choice *choice, u16 *port)
{
	int fd = bind_family(AF_INET6, choice, port);

	/* The host may have no IPv6. */
	return fd >= 0 ? fd : bind_family(AF_INET, choice, port);
}

/* Takes ports from the kernel; this runs on the worker's thread, because the kernel may
 * need long to find free ports. */
static bool get_ports(struct homad_work *work)
{
	struct homad_tcp_ports *ports =
		homa_container_of(work, struct homad_tcp_ports, more);
	int fd;

	homad_port_choice_read(&ports->choice);
	ports->rc = 0;
	for (ports->num_got = 0; ports->num_got < ports->wanted;
	     ports->num_got++) {
		fd = bind_any(&ports->choice, &ports->got[ports->num_got]);
		if (fd >= 0 && homad_fd_is_for_others(fd)) {
			close(fd);
			fd = -EMFILE;
		}
		if (fd < 0) {
			ports->rc = fd;
			break;
		}
		ports->got_fds[ports->num_got] = fd;
	}
	return false;
}

static int hand_over(struct homad_thread *t, void *arg)
{
	const struct homad_tcp_ports *ports = arg;

	homad_tcp_enter(t, ports->taker);
	homad_tcp_use_ports(t, ports->got, ports->num_got);
	return 0;
}

/* Does a listener, which may have ended, still have the port? */
static bool has_listener(struct homad_tcp_ports *ports, u16 port)
{
	struct homa_list *head = homad_tcp_held(ports, port), *node;

	homa_list_for_each(node, head)
		if (homa_container_of(node, struct homad_tcp_listener, held)->l.port ==
		    port)
			return true;
	return false;
}

/* Gives back ports whose listeners have ended while connections that came to them go on: these may
 * be another instance's. */
static void drop_listened(struct homad_tcp_ports *ports)
{
	u32 i, n = 0;

	for (i = 0; i < ports->num_got; i++) {
		if (has_listener(ports, ports->got[i])) {
			close(ports->got_fds[i]);
			continue;
		}
		ports->got[n] = ports->got[i];
		ports->got_fds[n++] = ports->got_fds[i];
	}
	ports->num_got = n;
}

static void have_ports(struct homad *d, struct homad_tcp_ports *ports)
{
	struct homad_tcp *tcp = ports->taker;
	u32 i;

	ports->growing = false;
	drop_listened(ports);
	for (i = 0; i < ports->num_got; i++) {
		ports->fds[ports->num_fds++] = ports->got_fds[i];
		/* The port is taken before the first SYN from it is sent. */
		homad_steering_set(d->steering, ports->got[i], tcp->index, true);
		homad_tcp_take_port(d, ports->got[i]);
	}
	tcp->kept_ports += ports->num_got;
	if (ports->rc)
		homad_log(HOMAD_WARNING,
			  "fewer ports than tcp.ports for TCP connections\tports=%u wanted=%u error=\"%s\"",
			  ports->num_fds, d->config.tcp_ports,
			  strerror(-ports->rc));
	homad_call(tcp->thread, hand_over, ports);
}

static void got_ports(struct homad *d, struct homad_work *work)
{
	have_ports(d, homa_container_of(work, struct homad_tcp_ports, more));
	/* Another instance may have asked meanwhile. */
	homad_tcp_more_ports(d);
}

/* Returns how many ports an instance may have: each gets an equal part, so that programs of one
 * instance cannot take the ports of the others. */
static u32 part_of(const struct homad *d)
{
	return homa_max_u32(d->config.tcp_ports / d->steering->num, 1);
}

void homad_tcp_more_ports(struct homad *d)
{
	struct homad_tcp_ports *ports = homad_slow(d)->tcp;
	struct homad_tcp *tcp = NULL;
	u32 i;

	for (i = 0; !tcp && i < d->steering->num; i++)
		if (__atomic_load_n(&d->steering->tcp[i]->asked_ports,
				    __ATOMIC_ACQUIRE))
			tcp = d->steering->tcp[i];
	if (ports->growing || !tcp)
		return;
	ports->growing = true;
	ports->taker = tcp;
	ports->wanted =
		homa_min_u32(part_of(d) - tcp->kept_ports,
			     homa_min_u32(HOMAD_PORT_STEP,
					  homa_max_u32(tcp->kept_ports, 1)));
	ports->more = (struct homad_work){ .run = get_ports, .done = got_ports };
	homad_work(d, NULL, &ports->more);
}

int homad_tcp_keep_ports(struct homad *d, char *err, size_t errlen)
{
	struct homad_tcp_ports *ports = homad_slow(d)->tcp;
	u32 i;

	for (i = 0; i < d->steering->num; i++) {
		ports->taker = d->steering->tcp[i];
		ports->wanted = homa_min_u32(part_of(d), FIRST_PORTS);
		get_ports(&ports->more);
		if (!ports->num_got) {
			snprintf(err, errlen, "no port for TCP connections: %s",
				 strerror(-ports->rc));
			return ports->rc;
		}
		have_ports(d, ports);
	}
	return 0;
}
