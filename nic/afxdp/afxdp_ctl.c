// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The slow side of AF_XDP: netlink notifications, ICMP errors, refreshing
 * neighbours, and sleeping. The packet sockets join the epoll set only while
 * somebody is about to sleep: a socket that is always watched makes the kernel
 * run the wake-up path for each packet.
 */
#include "afxdp.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* The least time between two looks at the slow side, in ms. */
#define CTL_MS 1
/* The time after which the fill rings are adapted again, in ms. */
#define ADAPT_MS 64

static int watch(struct afxdp *x, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	if (fd < 0)
		return 0;
	return epoll_ctl(x->epfd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static bool touch(void *arg, const struct homa_addr *hop)
{
	struct afxdp *x = arg;

	return nic_icmp_touch(&x->icmp, hop, (u32)x->netif.index);
}

int afxdp_ctl_open(struct afxdp *x, char *err, size_t errlen)
{
	int rc;

	x->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (x->epfd < 0)
		return nic_fail(err, errlen, -errno,
				"cannot create an epoll set: %s",
				strerror(errno));
	rc = nic_icmp_open(&x->icmp, true);
	if (rc)
		return nic_fail(err, errlen, rc,
				"cannot open a raw ICMP socket: %s",
				strerror(-rc));
	rc = nic_paths_init(&x->paths, &x->rtnl, &x->netif,
			    x->has_bound ? &x->bound : NULL, afxdp_tx_held,
			    touch, x);
	if (!x->multi_buffer)
		x->paths.mtu_max = x->frame_size - AFXDP_HEADROOM - NIC_ETH_HLEN;
	if (!rc)
		rc = watch(x, x->rtnl.events_fd);
	if (!rc)
		rc = watch(x, x->icmp.fd4);
	if (!rc)
		rc = watch(x, x->icmp.fd6);
	if (rc)
		return nic_fail(err, errlen, rc, "cannot watch the sockets: %s",
				strerror(-rc));
	x->ctl_calls = AFXDP_CTL_CALLS;
	return 0;
}

void afxdp_ctl_close(struct afxdp *x)
{
	nic_paths_fini(&x->paths);
	nic_icmp_close(&x->icmp);
	nic_rtnl_close(&x->rtnl);
	nic_loop_fini(&x->loop);
	if (x->epfd >= 0)
		close(x->epfd);
	x->epfd = -1;
}

/* Is the error about a packet of ours? All our queues have the same TCP ports; others are the
 * kernel's. */
static bool ours(void *arg, const struct nic_error *error)
{
	struct afxdp *x = arg;

	return nic_netif_has(&x->netif, &error->src) &&
	       (error->proto == NIC_HOMA ||
		afxdp_prog_has_port(&x->prog, x->q[0].id, error->sport));
}

static void take_errors(struct afxdp *x)
{
	u32 at = x->nic.errq.tail;

	nic_icmp_receive(&x->icmp, &x->nic.errq, ours, x);
	x->nic.stats.icmp_errors += x->nic.errq.tail - at;
}

void afxdp_ctl_addresses(struct afxdp *x)
{
	const struct nic_netif *netif = &x->netif;

	memset(&x->last_dst, 0, sizeof(x->last_dst));
	x->several = false;
	for (u32 i = 0; i < netif->n_addrs; i++)
		if (nic_netif_source(netif, &netif->addrs[i]) != &netif->addrs[i])
			x->several = true;
}

static void slow_side(struct afxdp *x)
{
	struct epoll_event ev[8];
	int n = epoll_wait(x->epfd, ev, HOMA_ARRAY_SIZE(ev), 0);

	x->nic.stats.syscalls++;
	for (int i = 0; i < n; i++) {
		if (ev[i].data.fd == x->rtnl.events_fd)
			nic_paths_events(&x->paths);
		else if (ev[i].data.fd == x->icmp.fd4 ||
			 ev[i].data.fd == x->icmp.fd6)
			take_errors(x);
	}
	if (x->paths.changed) {
		x->paths.changed = false;
		x->nic.info.mtu = x->netif.mtu;
		afxdp_ctl_addresses(x);
		afxdp_prog_addresses(&x->prog, &x->netif);
	}
	afxdp_flush(&x->nic);
}

void afxdp_ctl_poll(struct afxdp *x)
{
	u64 now = nic_now_ms();

	/* While packets wait for a neighbour, look every few calls. */
	x->ctl_calls = x->paths.held ? 8 : AFXDP_CTL_CALLS;
	x->slept = false;
	if (now - x->ctl_ms < CTL_MS && !x->paths.held)
		return;
	x->ctl_ms = now;
	slow_side(x);
	nic_paths_tick(&x->paths, now);
	if (now - x->adapt_ms >= ADAPT_MS) {
		x->adapt_ms = now;
		for (u32 i = 0; i < x->n_queues; i++)
			afxdp_fill_adapt(x, &x->q[i]);
	}
}

void afxdp_believe_mtu(struct nic *nic, const struct homa_addr *dst, u32 mtu)
{
	nic_path_set_pmtu(&afxdp_of(nic)->paths, dst, mtu);
}

int afxdp_errors(struct nic *nic, struct nic_error *errors, int n)
{
	return nic_errq_take(&nic->errq, errors, n);
}

void afxdp_port_unreachable(struct nic *nic, const struct nic_rx *pkt)
{
	struct afxdp *x = afxdp_of(nic);
	struct nic_path *path = nic_path_find(&x->paths, &pkt->src);
	struct nic_error e;

	if (path && path->state == NIC_PATH_LOCAL) {
		e = nic_error_for(&pkt->dst, pkt->data, pkt->len, ECONNREFUSED,
				  0);
		nic_errq_push(&nic->errq, &e);
		return;
	}
	nic_icmp_unreachable(&x->icmp, pkt, 0, (u32)x->netif.index);
}

/* Puts the sockets into the epoll set; if frames are still to be sent, the descriptor wakes
 * for room, too. */
static void put_into_set(struct afxdp *x, bool for_room)
{
	for (u32 i = 0; i < x->n_queues; i++) {
		struct epoll_event ev = { .events = EPOLLIN, .data.fd = -1 };

		if (for_room)
			ev.events |= EPOLLOUT;
		epoll_ctl(x->epfd, EPOLL_CTL_ADD, x->q[i].fd, &ev);
		x->nic.stats.syscalls++;
	}
	x->armed = true;
	x->armed_for_room = for_room;
}

static bool rx_waiting(struct afxdp *x)
{
	if (nic_loop_waiting(&x->loop))
		return true;
	for (u32 i = 0; i < x->n_queues; i++)
		if (xsk_cons_nb_avail(&x->q[i].rx, 1))
			return true;
	return false;
}

/* The descriptors of the slow side are always in the set. While something waits there the
 * thread does not sleep; so it is looked at if the last sleep has brought no packet. */
bool afxdp_arm(struct nic *nic)
{
	struct afxdp *x = afxdp_of(nic);
	bool for_room = false;

	afxdp_flush(nic);
	if (x->paths.changed || !x->armed_packets)
		slow_side(x);
	for (u32 i = 0; i < x->n_queues; i++) {
		struct afxdp_queue *q = &x->q[i];

		for_room |= q->tx.producer && *q->tx.producer != *q->tx.consumer;
		afxdp_fill(x, q);
	}
	if (x->armed && x->armed_for_room != for_room)
		afxdp_disarm(x);
	if (!x->armed)
		put_into_set(x, for_room);
	x->armed_packets = 0;
	x->slept = true;
	return rx_waiting(x) || nic->errq.head != nic->errq.tail;
}

void afxdp_disarm(struct afxdp *x)
{
	for (u32 i = 0; i < x->n_queues; i++) {
		epoll_ctl(x->epfd, EPOLL_CTL_DEL, x->q[i].fd, NULL);
		x->nic.stats.syscalls++;
	}
	x->armed = false;
}

int afxdp_fd(const struct nic *nic)
{
	return homa_container_of(nic, const struct afxdp, nic)->epfd;
}

int afxdp_route(struct nic *nic, const struct homa_addr *dst, u32 *mtu)
{
	struct afxdp *x = afxdp_of(nic);
	struct nic_path *path;

	if (dst->encap)
		return -EHOSTUNREACH; /* That peer is reached by UDP, which we do not speak. */
	path = nic_path_find(&x->paths, dst);
	if (!path)
		return -ENOMEM;
	if (path->state == NIC_PATH_FAILED)
		return -path->error;
	*mtu = path->mtu;
	return 0;
}
