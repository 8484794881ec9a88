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

int message_ctl_open(struct message *m, char *err, size_t errlen)
{
	int rc = nic_ether_open(&m->eth, message_tx_held, err, errlen);

	if (rc)
		return rc;
	m->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (m->timer < 0 || nic_ether_watch(&m->eth, m->timer, EPOLLIN))
		return nic_fail(err, errlen, -errno,
				"cannot make and watch a timer: %s",
				strerror(errno));
	m->eth.ctl_calls = MESSAGE_CTL_CALLS;
	return 0;
}

void message_ctl_close(struct message *m)
{
	nic_ether_close(&m->eth);
	if (m->timer >= 0)
		close(m->timer);
}

/* Look for a device again after RETRY_MS. */
static void try_later(struct message *m)
{
	struct itimerspec at = { .it_value.tv_nsec = RETRY_MS * 1000000L };

	timerfd_settime(m->timer, 0, &at, NULL);
}

/* Leave the device, which has gone or breaks the rules, and look for one again later. */
static void leave(struct message *m)
{
	message_disconnect(m);
	try_later(m);
}

static void drain(int fd)
{
	u64 count;

	if (read(fd, &count, sizeof(count)) < 0)
		return; /* It was read already. */
}

static void happened(struct message *m, int fd)
{
	int rc;

	nic_ether_event(&m->eth, fd, nic_ether_ours);
	if (fd == m->timer) {
		drain(fd);
		if (!m->device && m->calling < 0 && message_look(m))
			try_later(m);
	} else if (fd == m->calling) {
		rc = message_greeted(m, NULL, 0);
		if (rc && rc != -EAGAIN)
			try_later(m);
	} else if (m->device && fd == m->device->fd) {
		/* It says nothing after its greeting, so this is its end. */
		leave(m);
	} else {
		for (u32 i = 0; i < m->n_queues; i++)
			if (fd == m->q[i].call)
				drain(fd);
	}
}

static void slow_side(struct message *m)
{
	u64 now = nic_now_ms();
	struct epoll_event ev[8];
	int n;

	m->eth.ctl_calls = m->eth.paths.held ? 8 : MESSAGE_CTL_CALLS;
	if (m->device && !message_connected(m))
		leave(m);
	if (m->armed)
		m->armed = false;
	else if (now - m->eth.ctl_ms < CTL_MS && !m->eth.paths.held)
		return;
	m->eth.ctl_ms = now;
	n = epoll_wait(m->eth.epfd, ev, HOMA_ARRAY_SIZE(ev), 0);
	m->eth.nic.stats.syscalls++;
	for (int i = 0; i < n; i++)
		happened(m, ev[i].data.fd);
	if (m->eth.paths.changed) {
		m->eth.paths.changed = false;
		m->eth.nic.info.mtu = m->eth.netif.mtu;
	}
	nic_paths_tick(&m->eth.paths, now);
}

int message_rx(struct nic *nic, struct nic_rx *pkts, int n)
{
	struct message *m = message_of(nic);

	if (unlikely(!--m->eth.ctl_calls || m->armed ||
		     (m->device && !message_connected(m))))
		slow_side(m);
	return message_take(m, pkts, n);
}

bool message_arm(struct nic *nic)
{
	struct message *m = message_of(nic);

	m->armed = true;
	slow_side(m);
	m->armed = true;
	return message_rx_waiting(m) || nic->errq.head != nic->errq.tail;
}
