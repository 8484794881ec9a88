// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The slow side of a message NIC: netlink notifications, ICMP errors, refreshing neighbours,
 * sleeping, and a device that goes away and comes again.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "message.h"

/* The least time between two looks at the slow side, in ms. */
#define CTL_MS 1
/* The time after which a device is looked for again, in ms. */
#define RETRY_MS 100

static int watch(struct message *m, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	if (fd < 0)
		return 0;
	return epoll_ctl(m->epfd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

static bool touch(void *arg, const struct homa_addr *hop)
{
	struct message *m = arg;

	return nic_icmp_touch(&m->icmp, hop, (u32)m->netif.index);
}

int message_ctl_open(struct message *m, char *err, size_t errlen)
{
	int rc;

	m->epfd = epoll_create1(EPOLL_CLOEXEC);
	m->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (m->epfd < 0 || m->timer < 0)
		return nic_fail(err, errlen, -errno,
				"cannot create an epoll set and a timer: %s",
				strerror(errno));
	rc = nic_icmp_open(&m->icmp, true);
	if (rc)
		return nic_fail(err, errlen, rc,
				"cannot open a raw ICMP socket: %s",
				strerror(-rc));
	rc = nic_paths_init(&m->paths, &m->rtnl, &m->netif,
			    m->has_bound ? &m->bound : NULL, message_tx_held,
			    touch, m);
	if (!rc)
		rc = watch(m, m->rtnl.events_fd);
	if (!rc)
		rc = watch(m, m->icmp.fd4);
	if (!rc)
		rc = watch(m, m->icmp.fd6);
	if (!rc)
		rc = watch(m, m->timer);
	if (rc)
		return nic_fail(err, errlen, rc, "cannot watch the sockets: %s",
				strerror(-rc));
	m->ctl_calls = MESSAGE_CTL_CALLS;
	return 0;
}

void message_ctl_close(struct message *m)
{
	nic_paths_fini(&m->paths);
	nic_icmp_close(&m->icmp);
	nic_rtnl_close(&m->rtnl);
	nic_loop_fini(&m->loop);
	if (m->timer >= 0)
		close(m->timer);
	if (m->epfd >= 0)
		close(m->epfd);
}

/* Look for a device again after RETRY_MS. */
static void try_later(struct message *m)
{
	struct itimerspec at = { .it_value.tv_nsec = RETRY_MS * 1000000L };

	timerfd_settime(m->timer, 0, &at, NULL);
}

/* Leave the device, which has gone or breaks the rules, and look for it again later. */
static void leave(struct message *m)
{
	message_disconnect(m);
	try_later(m);
}

static bool ours(void *arg, const struct nic_error *error)
{
	struct message *m = arg;

	return error->proto == NIC_HOMA && nic_netif_has(&m->netif, &error->src);
}

static void take_errors(struct message *m)
{
	u32 at = m->nic.errq.tail;

	nic_icmp_receive(&m->icmp, &m->nic.errq, ours, m);
	m->nic.stats.icmp_errors += m->nic.errq.tail - at;
}

static void drain(int fd)
{
	u64 count;

	if (read(fd, &count, sizeof(count)) < 0)
		return; /* It was read already. */
}

static void happened(struct message *m, int fd)
{
	if (fd == m->rtnl.events_fd) {
		nic_paths_events(&m->paths);
	} else if (fd == m->icmp.fd4 || fd == m->icmp.fd6) {
		take_errors(m);
	} else if (fd == m->timer) {
		drain(fd);
		if (!message_connected(m) && message_connect(m, NULL, 0))
			try_later(m);
	} else if (message_connected(m) && fd == m->device.fd) {
		/* It says nothing after its greeting, so this is its end. */
		leave(m);
	} else {
		for (u32 i = 0;
		     message_connected(m) && i < m->device.hello.queues; i++)
			if (fd == m->device.q[i].call)
				drain(fd);
	}
}

static void slow_side(struct message *m)
{
	u64 now = nic_now_ms();
	struct epoll_event ev[8];
	int n;

	m->ctl_calls = m->paths.held ? 8 : MESSAGE_CTL_CALLS;
	if (m->device.broken)
		leave(m);
	if (m->armed)
		m->armed = false;
	else if (now - m->ctl_ms < CTL_MS && !m->paths.held)
		return;
	m->ctl_ms = now;
	n = epoll_wait(m->epfd, ev, HOMA_ARRAY_SIZE(ev), 0);
	m->nic.stats.syscalls++;
	for (int i = 0; i < n; i++)
		happened(m, ev[i].data.fd);
	if (m->paths.changed) {
		m->paths.changed = false;
		m->nic.info.mtu = m->netif.mtu;
	}
	nic_paths_tick(&m->paths, now);
}

int message_rx(struct nic *nic, struct nic_rx *pkts, int n)
{
	struct message *m = message_of(nic);

	if (unlikely(!--m->ctl_calls || m->armed || m->device.broken))
		slow_side(m);
	return message_take(m, pkts, n);
}

void message_port_unreachable(struct nic *nic, const struct nic_rx *pkt)
{
	struct message *m = message_of(nic);
	struct nic_path *path = nic_path_find(&m->paths, &pkt->src);
	struct nic_error e;

	if (path && path->state == NIC_PATH_LOCAL) {
		e = nic_error_for(&pkt->dst, pkt->data, pkt->len, ECONNREFUSED,
				  0);
		nic_errq_push(&nic->errq, &e);
		return;
	}
	nic_icmp_unreachable(&m->icmp, pkt, 0, (u32)m->netif.index);
}

bool message_arm(struct nic *nic)
{
	struct message *m = message_of(nic);

	m->armed = true;
	slow_side(m);
	m->armed = true;
	return message_rx_waiting(m) || nic->errq.head != nic->errq.tail;
}

int message_route(struct nic *nic, const struct homa_addr *dst, u32 *mtu)
{
	struct message *m = message_of(nic);
	struct nic_path *path;

	if (dst->encap)
		return -EHOSTUNREACH; /* That peer is reached by UDP, which we do not speak. */
	path = nic_path_find(&m->paths, dst);
	if (!path)
		return -ENOMEM;
	if (path->state == NIC_PATH_FAILED)
		return -path->error;
	*mtu = homa_min_u32(path->mtu, m->nic.info.mtu);
	return 0;
}
