// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Receiving: recvmmsg() into buffers of one frame each, of which the caller gets the packets and
 * gives them back; the slow side, which is looked at now and then; and sleeping.
 */
#include "packet.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>

/* The least time between two looks at the slow side, in ms. */
#define CTL_MS 1

static size_t area(const struct packet_nic *p)
{
	return (size_t)PACKET_BUFS * p->buf_size;
}

int packet_rx_open(struct packet_nic *p)
{
	p->buf_size =
		(homa_max_u32(p->eth.netif.mtu, PACKET_MTU) + NIC_ETH_HLEN + 63) /
		64 * 64;
	p->bufs = mmap(NULL, area(p), PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p->bufs == MAP_FAILED) {
		p->bufs = NULL;
		return -ENOMEM;
	}
	for (u32 i = 0; i < PACKET_BUFS; i++)
		p->free[i] = PACKET_BUFS - 1 - i;
	p->n_free = PACKET_BUFS;
	return 0;
}

void packet_rx_close(struct packet_nic *p)
{
	if (p->bufs)
		munmap(p->bufs, area(p));
}

static void slow_side(struct packet_nic *p)
{
	u64 now = nic_now_ms();
	struct epoll_event ev[8];
	int n;

	p->eth.ctl_calls = p->eth.paths.held ? 8 : PACKET_CTL_CALLS;
	if (!p->armed && now - p->eth.ctl_ms < CTL_MS && !p->eth.paths.held)
		return;
	p->armed = false;
	p->eth.ctl_ms = now;
	n = epoll_wait(p->eth.epfd, ev, HOMA_ARRAY_SIZE(ev), 0);
	p->eth.nic.stats.syscalls++;
	for (int i = 0; i < n; i++) {
		/* There is room, also if what was to be sent is no more. */
		if (ev[i].data.fd == p->fd && ev[i].events & EPOLLOUT)
			p->blocked = false;
		nic_ether_event(&p->eth, ev[i].data.fd, nic_ether_ours);
	}
	if (p->eth.paths.changed) {
		p->eth.nic.info.mtu = p->eth.netif.mtu;
		/* Without memory for the filter it is tried again at the next look. */
		p->eth.paths.changed = packet_filter(p) != 0;
	}
	nic_paths_tick(&p->eth.paths, now);
}

/* Makes a packet of the frame in buffer @buf; false: it is none for us, and the buffer is free. */
static bool take(struct packet_nic *p, const struct mmsghdr *got, u32 buf,
		 struct nic_rx *pkt)
{
	struct nic_stats *stats = &p->eth.nic.stats;

	if (got->msg_hdr.msg_flags & MSG_TRUNC ||
	    nic_frame_parse(p->bufs + (size_t)buf * p->buf_size, got->msg_len,
			    pkt) ||
	    pkt->proto != NIC_HOMA || !nic_ether_for_us(&p->eth, pkt)) {
		stats->rx_malformed++;
		p->free[p->n_free++] = buf;
		return false;
	}
	pkt->token = buf;
	stats->rx_packets++;
	stats->rx_bytes += pkt->len;
	return true;
}

static int receive(struct packet_nic *p, struct nic_rx *pkts, u32 most)
{
	u32 bufs[PACKET_BATCH], got, i;
	int rc, out = 0;

	for (i = 0; i < most; i++) {
		struct msghdr *mh = &p->rx_hdrs[i].msg_hdr;

		bufs[i] = p->free[--p->n_free];
		p->rx_iovs[i].iov_base = p->bufs + (size_t)bufs[i] * p->buf_size;
		p->rx_iovs[i].iov_len = p->buf_size;
		memset(mh, 0, sizeof(*mh));
		mh->msg_iov = &p->rx_iovs[i];
		mh->msg_iovlen = 1;
	}
	/* An error says that the device went down, or away, and is said once. */
	rc = recvmmsg(p->fd, p->rx_hdrs, most, MSG_DONTWAIT, NULL);
	got = rc > 0 ? (u32)rc : 0;
	p->eth.nic.stats.syscalls++;
	for (i = most; i > got; i--)
		p->free[p->n_free++] = bufs[i - 1];
	for (i = 0; i < got; i++)
		out += take(p, &p->rx_hdrs[i], bufs[i], &pkts[out]);
	return out;
}

/* Takes packets to ourselves out of memory. */
static int receive_own(struct packet_nic *p, struct nic_rx *pkts, int n)
{
	int got = nic_loop_rx(&p->eth.loop, pkts, n);

	for (int i = 0; i < got; i++) {
		pkts[i].token |= PACKET_TOKEN_LOOP;
		p->eth.nic.stats.rx_packets++;
		p->eth.nic.stats.rx_bytes += pkts[i].len;
	}
	return got;
}

int packet_rx(struct nic *nic, struct nic_rx *pkts, int n)
{
	struct packet_nic *p = packet_of(nic);
	int got = 0;
	u32 most;

	if (unlikely(!--p->eth.ctl_calls || p->armed))
		slow_side(p);
	if (unlikely(nic_loop_waiting(&p->eth.loop)))
		got = receive_own(p, pkts, n);
	most = homa_min_u32((u32)(n - got), PACKET_BATCH);
	most = homa_min_u32(most, p->n_free);
	return most ? got + receive(p, pkts + got, most) : got;
}

void packet_rx_release(struct nic *nic, const struct nic_rx *pkts, int n)
{
	struct packet_nic *p = packet_of(nic);

	for (int i = 0; i < n; i++) {
		if (pkts[i].token & PACKET_TOKEN_LOOP)
			nic_loop_release(&p->eth.loop, (u32)pkts[i].token);
		else
			p->free[p->n_free++] = (u32)pkts[i].token;
	}
}

/* The socket is always in the epoll set, so what waits there wakes who sleeps. */
bool packet_arm(struct nic *nic)
{
	struct packet_nic *p = packet_of(nic);

	p->armed = true;
	slow_side(p);
	p->armed = true;
	if (p->blocked != p->awaits_room) {
		struct epoll_event ev = { .events = EPOLLIN, .data.fd = p->fd };

		if (p->blocked)
			ev.events |= EPOLLOUT;
		epoll_ctl(p->eth.epfd, EPOLL_CTL_MOD, p->fd, &ev);
		nic->stats.syscalls++;
		p->awaits_room = p->blocked;
	}
	return nic_loop_waiting(&p->eth.loop) || nic->errq.head != nic->errq.tail;
}
