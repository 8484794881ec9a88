// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The UDP backend: Homa packets as datagrams on one socket, no privileges
 * needed. A peer is its IP address and the UDP port it was seen to send from,
 * so several processes on one machine are several peers. The usual port is
 * 54321; a second process takes an ephemeral one and can be a client at once,
 * and a server for those who are told its port.
 */
#include <errno.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "frame.h"
#include "netif.h"
#include "udp.h"

#define SOCKET_BUFFER (8 << 20)
/* The number of sleeps without a datagram after which errors are taken from the socket. */
#define SLEEPS_IN_VAIN 16u

static void udp_close(struct nic *nic)
{
	struct udp *u = udp_of(nic);

	if (u->fd >= 0)
		close(u->fd);
	if (u->epfd >= 0)
		close(u->epfd);
	nic_icmp_close(&u->icmp);
	nic_rtnl_close(&u->rtnl);
	udp_watch_end(u);
	udp_rx_close(u);
	free(u);
}

static void udp_flush(struct nic *nic)
{
	(void)nic; /* nic_tx() has handed everything to the kernel */
}

static int udp_fd(const struct nic *nic)
{
	return homa_container_of(nic, const struct udp, nic)->epfd;
}

/*
 * The descriptor is readable as long as a datagram or an error waits, so nobody need ask for
 * them here: who goes to sleep is woken at once. But an error may be queued that no call has
 * returned, and would wake a sleeper for ever; so after some sleeps without a datagram the
 * errors are taken before the next one.
 */
static bool udp_arm(struct nic *nic)
{
	struct udp *u = udp_of(nic);
	bool for_room = u->blocked;

	if (++u->sleeps >= SLEEPS_IN_VAIN) {
		udp_take_errors(u);
		u->sleeps = 0;
	}
	/* If the socket buffer is full, the descriptor wakes when there is room again. Who has
	 * still something to send then tries before the next sleep, and else need not be woken. */
	u->blocked = false;
	if (for_room != u->awaits_room) {
		struct epoll_event ev = { .events = EPOLLIN };

		if (for_room)
			ev.events |= EPOLLOUT;
		epoll_ctl(u->epfd, EPOLL_CTL_MOD, u->fd, &ev);
		nic->stats.syscalls++;
		u->awaits_room = for_room;
	}
	return u->b_head != u->b_tail || nic->errq.head != nic->errq.tail;
}

static const struct nic_ops udp_ops = {
	.close = udp_close,
	.rx = udp_rx,
	.rx_release = udp_rx_release,
	.tx_room = udp_tx_room,
	.tx = udp_tx,
	.flush = udp_flush,
	.errors = udp_errors,
	.port_unreachable = udp_port_unreachable,
	.fd = udp_fd,
	.arm = udp_arm,
	.watch = udp_watch,
	.route = udp_route,
};

static void set_int(int fd, int level, int option, int value)
{
	/* A failure does not matter: no such option is necessary. */
	setsockopt(fd, level, option, &value, sizeof(value));
}

static void set_options(struct udp *u, bool no_offload)
{
	int one = 1;

	/* The options with FORCE pass the administrator's limit, and need a privilege. */
	set_int(u->fd, SOL_SOCKET, SO_RCVBUF, SOCKET_BUFFER);
	set_int(u->fd, SOL_SOCKET, SO_RCVBUFFORCE, SOCKET_BUFFER);
	set_int(u->fd, SOL_SOCKET, SO_SNDBUF, SOCKET_BUFFER);
	set_int(u->fd, SOL_SOCKET, SO_SNDBUFFORCE, SOCKET_BUFFER);
	set_int(u->fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
	set_int(u->fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
	set_int(u->fd, IPPROTO_IP, IP_RECVTOS, 1);
	set_int(u->fd, IPPROTO_IP, IP_RECVERR, 1);
	if (u->v6) {
		set_int(u->fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO);
		set_int(u->fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
		set_int(u->fd, IPPROTO_IPV6, IPV6_RECVERR, 1);
		set_int(u->fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
		set_int(u->fd, IPPROTO_IPV6, IPV6_DONTFRAG, 1);
	} else {
		set_int(u->fd, IPPROTO_IP, IP_PKTINFO, 1);
	}
	if (no_offload)
		return;
	u->gro = !setsockopt(u->fd, IPPROTO_UDP, UDP_GRO, &one, sizeof(one));
	/* Asking for a segment size of 0 changes nothing but tells whether the
	 * kernel knows the option. */
	one = 0;
	u->gso = !setsockopt(u->fd, IPPROTO_UDP, UDP_SEGMENT, &one, sizeof(one));
}

static int open_socket(struct udp *u)
{
	u->v6 = !u->has_bound || !homa_addr_is_v4(&u->bound);
	if (u->v6) {
		u->fd = socket(AF_INET6,
			       SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (u->fd >= 0) {
			set_int(u->fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
			return 0;
		}
		if (u->has_bound)
			return -errno;
	}
	u->v6 = false;
	u->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return u->fd < 0 ? -errno : 0;
}

static int try_bind(struct udp *u, u16 port)
{
	struct homa_addr addr = u->bound;
	struct sockaddr_storage ss;
	socklen_t len = udp_to_sockaddr(u, &addr, &ss);

	if (ss.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&ss)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)&ss)->sin_port = htons(port);
	return bind(u->fd, (struct sockaddr *)&ss, len) < 0 ? -errno : 0;
}

static int bind_socket(struct udp *u, const struct nic_config *config,
		       char *err, size_t errlen)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	struct homa_addr addr;
	int rc = try_bind(u, config->udp_port ? config->udp_port : UDP_PORT);

	if (rc == -EADDRINUSE && !config->udp_port) {
		u->nic.info.ephemeral = true;
		rc = try_bind(u, 0);
	}
	switch (rc) {
	case 0:
		break;
	case -EADDRINUSE:
		return nic_fail(err, errlen, rc,
				"UDP port %u is taken by another process; choose another one, or none to get a free one",
				config->udp_port);
	case -EADDRNOTAVAIL:
		return nic_fail(err, errlen, rc,
				"this machine does not have the address %s",
				config->address);
	case -EACCES:
		return nic_fail(err, errlen, -EPERM,
				"UDP port %u needs root; choose one above 1023",
				config->udp_port);
	default:
		return nic_fail(err, errlen, rc, "cannot bind a UDP socket: %s",
				strerror(-rc));
	}
	if (getsockname(u->fd, (struct sockaddr *)&ss, &len) < 0)
		return nic_fail(err, errlen, -errno,
				"cannot read the UDP port: %s", strerror(errno));
	udp_from_sockaddr(&ss, &addr);
	u->port = addr.encap;
	return 0;
}

/* Read MTU and rate of the interface that was named or has our address. This MTU is only a first
 * guess, because nic_route() knows the one that counts. Without an interface it is Ethernet's. */
static int find_device(struct udp *u, const struct nic_config *config,
		       char *err, size_t errlen)
{
	struct nic_info *info = &u->nic.info;
	const char *name = config->interface;
	struct nic_netif netif;
	char owner[IF_NAMESIZE];
	int rc;

	info->mtu = 1500 - NIC_UDP_HLEN;
	if (!name && u->has_bound && !nic_netif_of(&u->rtnl, &u->bound, owner))
		name = owner;
	if (!name)
		return 0;
	rc = nic_netif_get(&u->rtnl, name, &netif, err, errlen);
	if (rc)
		return rc;
	if (netif.mtu < NIC_MIN_MTU)
		return nic_fail(err, errlen, -EINVAL,
				"the MTU of %s is %u, Homa over UDP needs at least %u; raise it with: ip link set %s mtu 1500",
				netif.name, netif.mtu, NIC_MIN_MTU, netif.name);
	info->mtu = homa_min_u32(netif.mtu, 65535) - NIC_UDP_HLEN;
	info->link_mbps = netif.mbps;
	u->scope = (u32)netif.index;
	return 0;
}

static void describe(struct udp *u)
{
	struct nic_info *info = &u->nic.info;
	char text[48];

	info->name = "udp";
	if (u->has_bound)
		info->address = u->bound;
	info->address.encap = u->port;
	info->max_segs = u->gso ? UDP_GSO_SEGS : 1;
	snprintf(info->detail, sizeof(info->detail), "%s port %u, %s%s%s",
		 u->has_bound ? nic_addr_text(&u->bound, text, sizeof(text)) :
		 u->v6	      ? "IPv4 and IPv6" :
				"IPv4",
		 u->port, u->gso ? "GSO" : "no GSO",
		 u->gro ? ", GRO" : ", no GRO",
		 info->ephemeral ? " (54321 is taken)" : "");
}

int nic_udp_open(struct nic **out, const struct nic_config *config, char *err,
		 size_t errlen)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct udp *u = calloc(1, sizeof(*u));
	int rc;

	if (!u)
		return nic_fail(err, errlen, -ENOMEM, "out of memory");
	u->nic.ops = &udp_ops;
	u->fd = u->epfd = u->icmp.fd4 = u->icmp.fd6 = -1;
	/* Without netlink (a sandbox may forbid it) path MTUs are guessed. */
	if (nic_rtnl_open(&u->rtnl, 0))
		u->rtnl.fd = -1;
	rc = -EIO;
	if (getrandom(u->route_key, sizeof(u->route_key), 0) !=
	    (ssize_t)sizeof(u->route_key)) {
		nic_fail(err, errlen, rc, "no random numbers");
		goto fail;
	}
	rc = -EINVAL;
	if (config->address) {
		if (nic_addr_parse(config->address, &u->bound)) {
			nic_fail(err, errlen, rc,
				 "\"%s\" is not a numeric IPv4 or IPv6 address",
				 config->address);
			goto fail;
		}
		u->has_bound = true;
	}
	rc = open_socket(u);
	if (rc) {
		nic_fail(err, errlen, rc, "cannot open a UDP socket: %s",
			 strerror(-rc));
		goto fail;
	}
	rc = find_device(u, config, err, errlen);
	if (!rc)
		rc = bind_socket(u, config, err, errlen);
	if (rc)
		goto fail;
	set_options(u, config->no_offload);
	rc = udp_rx_open(u, config->frames);
	if (rc) {
		nic_fail(err, errlen, rc,
			 "not enough memory for receive buffers");
		goto fail;
	}
	u->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (u->epfd < 0 || epoll_ctl(u->epfd, EPOLL_CTL_ADD, u->fd, &ev) < 0) {
		rc = nic_fail(err, errlen, -errno,
			      "cannot create an epoll set: %s", strerror(errno));
		goto fail;
	}
	nic_icmp_open(&u->icmp, false);
	describe(u);
	*out = &u->nic;
	return 0;
fail:
	udp_close(&u->nic);
	return rc;
}
