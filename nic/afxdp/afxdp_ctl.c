// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The slow side of AF_XDP: netlink notifications, ICMP errors, refreshing
 * neighbours, and sleeping. The AF_XDP sockets join the epoll set when somebody is
 * about to sleep, and stay there unless many packets come before the next sleep
 * (afxdp_rx.c): a socket in the set makes the kernel run the wake-up path for each
 * packet, and to join and to leave it are system calls.
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

int afxdp_ctl_open(struct afxdp *x, char *err, size_t errlen)
{
	int rc = nic_ether_open(&x->eth, afxdp_tx_held, err, errlen);

	if (rc)
		return rc;
	if (!x->multi_buffer)
		x->eth.paths.mtu_max =
			x->frame_size - AFXDP_HEADROOM - NIC_ETH_HLEN;
	x->eth.ctl_calls = AFXDP_CTL_CALLS;
	return 0;
}

/* Is the error about a packet of ours? All our queues have the same TCP ports; others are the
 * kernel's. */
static bool ours(void *arg, const struct nic_error *error)
{
	struct nic_ether *e = arg;
	struct afxdp *x = afxdp_of(&e->nic);

	return nic_netif_has(&e->netif, &error->src) &&
	       (error->proto == NIC_HOMA ||
		afxdp_prog_has_port(&x->prog, x->q[0].id, error->sport));
}

void afxdp_ctl_addresses(struct afxdp *x)
{
	const struct nic_netif *netif = &x->eth.netif;

	memset(&x->last_dst, 0, sizeof(x->last_dst));
	x->several = false;
	for (u32 i = 0; i < netif->n_addrs; i++)
		if (nic_netif_source(netif, &netif->addrs[i]) != &netif->addrs[i])
			x->several = true;
}

static void slow_side(struct afxdp *x)
{
	struct epoll_event ev[8];
	int n = epoll_wait(x->eth.epfd, ev, HOMA_ARRAY_SIZE(ev), 0);

	x->eth.nic.stats.syscalls++;
	for (int i = 0; i < n; i++)
		nic_ether_event(&x->eth, ev[i].data.fd, ours);
	if (x->eth.paths.changed) {
		x->eth.paths.changed = false;
		x->eth.nic.info.mtu = x->eth.netif.mtu;
		x->homa_max = homa_max_u32(x->homa_max,
					   x->eth.netif.mtu + NIC_ETH_HLEN);
		afxdp_ctl_addresses(x);
		afxdp_prog_addresses(&x->prog, &x->eth.netif);
	}
	afxdp_flush(&x->eth.nic);
}

void afxdp_ctl_poll(struct afxdp *x)
{
	u64 now = nic_now_ms();

	/* While packets wait for a neighbour, look every few calls. */
	x->eth.ctl_calls = x->eth.paths.held ? 8 : AFXDP_CTL_CALLS;
	x->slept = false;
	if (now - x->eth.ctl_ms < CTL_MS && !x->eth.paths.held)
		return;
	x->eth.ctl_ms = now;
	slow_side(x);
	nic_paths_tick(&x->eth.paths, now);
	if (now - x->adapt_ms >= ADAPT_MS) {
		x->adapt_ms = now;
		for (u32 i = 0; i < x->n_queues; i++)
			afxdp_fill_adapt(x, &x->q[i]);
	}
}

/* Puts the sockets into the epoll set; if frames are still to be sent, the descriptor wakes
 * for room, too. */
static void put_into_set(struct afxdp *x, bool for_room)
{
	for (u32 i = 0; i < x->n_queues; i++) {
		struct epoll_event ev = { .events = EPOLLIN, .data.fd = -1 };

		if (for_room)
			ev.events |= EPOLLOUT;
		epoll_ctl(x->eth.epfd, EPOLL_CTL_ADD, x->q[i].fd, &ev);
		x->eth.nic.stats.syscalls++;
	}
	x->armed = true;
	x->armed_for_room = for_room;
}

static bool rx_waiting(struct afxdp *x)
{
	if (nic_loop_waiting(&x->eth.loop))
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
	if (x->eth.paths.changed || !x->armed_packets)
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
		epoll_ctl(x->eth.epfd, EPOLL_CTL_DEL, x->q[i].fd, NULL);
		x->eth.nic.stats.syscalls++;
	}
	x->armed = false;
}
