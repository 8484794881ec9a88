// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The backend for a packet socket: opening it, and its list of calls.
 */
#include "packet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define SOCKET_BUFFER (8 << 20)

static void close_one(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void packet_close(struct nic *nic)
{
	struct packet_nic *p = packet_of(nic);

	nic_ether_close(&p->eth);
	close_one(p->fd);
	close_one(p->quiet4);
	close_one(p->quiet6);
	packet_rx_close(p);
	free(p);
}

static void packet_flush(struct nic *nic)
{
	(void)nic; /* nic_tx() has handed everything to the kernel. */
}

static void packet_learn(struct nic *nic, const struct nic_way *way)
{
	nic_path_learn(&nic_ether_of(nic)->paths, way);
}

static void packet_update_stats(struct nic *nic)
{
	const struct packet_nic *p = packet_of(nic);
	struct tpacket_stats stats = { 0 };
	socklen_t len = sizeof(stats);

	nic->stats.kernel_asked = p->eth.paths.asked;
	/* The kernel's counters begin anew with each question. */
	if (!getsockopt(p->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len))
		nic->stats.rx_dropped += stats.tp_drops;
}

static const struct nic_ops packet_ops = {
	.close = packet_close,
	.rx = packet_rx,
	.rx_release = packet_rx_release,
	.tx_room = packet_tx_room,
	.tx = packet_tx,
	.flush = packet_flush,
	.errors = nic_ether_errors,
	.port_unreachable = nic_ether_port_unreachable,
	.fd = nic_ether_fd,
	.arm = packet_arm,
	.believe_mtu = nic_ether_believe_mtu,
	.route = nic_ether_route,
	.ask_by = nic_ether_ask_by,
	.learn = packet_learn,
	.update_stats = packet_update_stats,
};

/* Opens a raw socket that gets nothing. @fd stays -1 if the kernel does not have the family.
 * Returns 0 or a negative errno. */
static int open_quiet(int family, int *fd)
{
	*fd = socket(family, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
		     IPPROTO_HOMA);
	if (*fd < 0)
		return errno == EAFNOSUPPORT || errno == EPROTONOSUPPORT ?
			       0 :
			       -errno;
	return packet_filter_nothing(*fd);
}

static int open_socket(struct packet_nic *p)
{
	const struct sockaddr_ll at = { .sll_family = AF_PACKET,
					.sll_protocol = htons(ETH_P_ALL),
					.sll_ifindex = p->eth.netif.index };
	int bytes = SOCKET_BUFFER, one = 1, rc;

	/* Protocol 0: it receives nothing before it has its filter and its device. */
	p->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p->fd < 0)
		return -errno;
	rc = packet_filter(p);
	if (rc)
		return rc;
	if (setsockopt(p->fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(p->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	/* Else the kernel would copy all that leaves by the device for the filter. Linux 4.20. */
	setsockopt(p->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one));
	rc = open_quiet(AF_INET, &p->quiet4);
	if (!rc)
		rc = open_quiet(AF_INET6, &p->quiet6);
	if (rc)
		return rc;
	return bind(p->fd, (const struct sockaddr *)&at, sizeof(at)) < 0 ?
		       -errno :
		       0;
}

static int open_sockets(struct packet_nic *p, char *err, size_t errlen)
{
	int rc = open_socket(p);

	if (rc == -EPERM || rc == -EACCES)
		return nic_fail(err, errlen, -EPERM,
				"packet sockets need root (CAP_NET_RAW); run as root or use UDP (HOMA_VIA=udp)");
	if (rc)
		return nic_fail(err, errlen, rc,
				"cannot open a packet socket on %s: %s",
				p->eth.netif.name, strerror(-rc));
	rc = nic_ether_open(&p->eth, packet_tx_held, err, errlen);
	if (rc)
		return rc;
	p->eth.ctl_calls = PACKET_CTL_CALLS;
	/* The MTU may be raised to what the buffers hold. */
	p->eth.paths.mtu_max = p->buf_size - NIC_ETH_HLEN;
	rc = nic_ether_watch(&p->eth, p->fd, EPOLLIN);
	return rc ? nic_fail(err, errlen, rc,
			     "cannot watch the packet socket: %s", strerror(-rc)) :
		    0;
}

static void describe(struct packet_nic *p)
{
	struct nic_info *info = &p->eth.nic.info;

	snprintf(info->detail, sizeof(info->detail), "%s packet socket",
		 p->eth.netif.name);
	info->name = "packet";
	info->mtu = p->eth.netif.mtu;
	info->link_mbps = p->eth.netif.mbps;
	info->max_segs = 1;
}

int nic_packet_open(struct nic **out, const struct nic_config *config,
		    char *err, size_t errlen)
{
	struct packet_nic *p;
	int rc;

	if (!config->interface)
		return nic_fail(err, errlen, -EINVAL,
				"a packet socket needs to know the network interface");
	p = calloc(1, sizeof(*p));
	if (!p)
		return nic_fail(err, errlen, -ENOMEM, "out of memory");
	nic_ether_init(&p->eth, &packet_ops);
	p->fd = p->quiet4 = p->quiet6 = -1;
	rc = nic_ether_find(&p->eth, config, err, errlen);
	if (!rc && p->eth.netif.has_xdp)
		rc = nic_fail(err, errlen, -EBUSY,
			      "an XDP program is on %s, and native packets may be another process's; use UDP (HOMA_VIA=udp)",
			      p->eth.netif.name);
	if (!rc && packet_rx_open(p))
		rc = nic_fail(err, errlen, -ENOMEM,
			      "not enough memory for receive buffers");
	if (!rc)
		rc = open_sockets(p, err, errlen);
	if (rc) {
		packet_close(&p->eth.nic);
		return rc;
	}
	describe(p);
	*out = &p->eth.nic;
	return 0;
}
