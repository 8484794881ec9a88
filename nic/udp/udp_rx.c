// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Receiving UDP: recvmmsg() into large buffers, where GRO may have put up to 64
 * packets of one sender together. The caller gets pointers into the buffer; it
 * is reused when the last of its packets is released. When the caller holds all
 * buffers, packets wait in the socket and the kernel drops what does not fit.
 */
#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "udp.h"

int udp_rx_open(struct udp *u, u32 bufs)
{
	/* A buffer has room for a GRO bundle, or for the longest datagram. */
	u->buf_size = UDP_BUF_GRO;
	u->n_bufs = bufs ? bufs : UDP_BUFS;
	u->n_bufs = homa_max_u32(u->n_bufs, 2);
	u->bufs = mmap(NULL, (size_t)u->n_bufs * u->buf_size,
		       PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	if (u->bufs == MAP_FAILED) {
		u->bufs = NULL;
		return -ENOMEM;
	}
	u->refs = calloc(u->n_bufs, sizeof(*u->refs));
	u->free = malloc(u->n_bufs * sizeof(*u->free));
	if (!u->refs || !u->free)
		return -ENOMEM;
	for (u32 i = 0; i < u->n_bufs; i++)
		u->free[i] = u->n_bufs - 1 - i;
	u->n_free = u->n_bufs;
	u->rx_vlen = 1;
	return 0;
}

void udp_rx_close(struct udp *u)
{
	if (u->bufs)
		munmap(u->bufs, (size_t)u->n_bufs * u->buf_size);
	free(u->refs);
	free(u->free);
}

static void unref(struct udp *u, u32 buf)
{
	if (!--u->refs[buf])
		u->free[u->n_free++] = buf;
}

static void read_control(struct udp *u, struct msghdr *mh, struct udp_bundle *b)
{
	u8 tos = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
		const u8 *data = CMSG_DATA(c);

		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
			tos = data[0];
		} else if (c->cmsg_level == IPPROTO_IPV6 &&
			   c->cmsg_type == IPV6_TCLASS) {
			int v;

			memcpy(&v, data, sizeof(v));
			tos = (u8)v;
		} else if (c->cmsg_level == IPPROTO_IP &&
			   c->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo info;

			memcpy(&info, data, sizeof(info));
			memset(b->dst.ip, 0, 10);
			b->dst.ip[10] = b->dst.ip[11] = 0xff;
			memcpy(b->dst.ip + 12, &info.ipi_addr, 4);
		} else if (c->cmsg_level == IPPROTO_IPV6 &&
			   c->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo info;

			memcpy(&info, data, sizeof(info));
			memcpy(b->dst.ip, &info.ipi6_addr, 16);
			if (b->dst.ip[0] == 0xfe)
				u->scope = info.ipi6_ifindex;
		} else if (c->cmsg_level == IPPROTO_UDP &&
			   c->cmsg_type == UDP_GRO) {
			int seg;

			memcpy(&seg, data, sizeof(seg));
			if (seg > 0)
				b->seg = (u32)seg;
		} else if (c->cmsg_level == SOL_SOCKET &&
			   c->cmsg_type == SO_RXQ_OVFL) {
			u32 drops;

			memcpy(&drops, data, sizeof(drops));
			u->nic.stats.rx_dropped += drops - u->kernel_drops;
			u->kernel_drops = drops;
		}
	}
	b->prio = tos >> 5;
	b->ecn = tos & 3;
}

/* Make a bundle of message @i in buffer @buf; an empty or truncated message is dropped. */
static void take_message(struct udp *u, u32 i, u32 buf)
{
	struct msghdr *mh = &u->rx_hdrs[i].msg_hdr;
	u32 len = u->rx_hdrs[i].msg_len;
	struct udp_bundle *b = &u->bundles[u->b_tail % UDP_BATCH];

	memset(b, 0, sizeof(*b));
	b->buf = buf;
	b->end = len;
	b->seg = len;
	b->dst.encap = u->port;
	if (!len || mh->msg_flags & MSG_TRUNC) {
		u->nic.stats.rx_malformed++;
		u->free[u->n_free++] = buf;
		return;
	}
	udp_from_sockaddr(&u->rx_names[i], &b->src);
	read_control(u, mh, b);
	if (b->seg < len)
		u->nic.stats.rx_gro += (len + b->seg - 1) / b->seg;
	if (!homa_addr_equal(&b->src, &u->last_src) ||
	    !homa_addr_equal(&b->dst, &u->last_dst))
		udp_route_heard(u, &b->src, &b->dst);
	u->refs[buf] = 1;
	u->b_tail++;
}

static int receive(struct udp *u, u32 vlen)
{
	u32 bufs[UDP_BATCH];
	int got;

	for (u32 i = 0; i < vlen; i++) {
		struct msghdr *mh = &u->rx_hdrs[i].msg_hdr;

		bufs[i] = u->free[--u->n_free];
		u->rx_iovs[i].iov_base = u->bufs + (size_t)bufs[i] * u->buf_size;
		u->rx_iovs[i].iov_len = u->buf_size;
		mh->msg_name = &u->rx_names[i];
		mh->msg_namelen = sizeof(u->rx_names[i]);
		mh->msg_iov = &u->rx_iovs[i];
		mh->msg_iovlen = 1;
		mh->msg_control = u->rx_control[i];
		mh->msg_controllen = UDP_RX_CONTROL;
		mh->msg_flags = 0;
	}
	got = recvmmsg(u->fd, u->rx_hdrs, vlen, MSG_DONTWAIT, NULL);
	u->nic.stats.syscalls++;
	if (got < 0) {
		int error = errno;

		for (u32 i = vlen; i > 0; i--)
			u->free[u->n_free++] = bufs[i - 1];
		return -error;
	}
	for (u32 i = vlen; i > (u32)got; i--)
		u->free[u->n_free++] = bufs[i - 1];
	for (u32 i = 0; i < (u32)got; i++)
		take_message(u, i, bufs[i]);
	return got;
}

static int hand_out(struct udp *u, struct nic_rx *pkts, int n)
{
	int got = 0;

	while (got < n && u->b_head != u->b_tail) {
		struct udp_bundle *b = &u->bundles[u->b_head % UDP_BATCH];
		struct nic_rx *pkt = &pkts[got++];

		pkt->data = u->bufs + (size_t)b->buf * u->buf_size + b->at;
		pkt->len = homa_min_u32(b->seg, b->end - b->at);
		pkt->prio = b->prio;
		pkt->proto = NIC_HOMA;
		pkt->ecn = b->ecn;
		pkt->src = b->src;
		pkt->dst = b->dst;
		pkt->token = b->buf;
		u->refs[b->buf]++;
		u->nic.stats.rx_packets++;
		u->nic.stats.rx_bytes += pkt->len;
		b->at += pkt->len;
		if (b->at == b->end) {
			unref(u, b->buf);
			u->b_head++;
		}
	}
	return got;
}

/* Asking for more messages than there are costs one empty look-up in the
 * kernel; asking for fewer costs a system call more. So the number follows the
 * traffic. But bundles are few at a time: what the kernel has just copied
 * should still be in the cache when it is copied on. */
static void adapt(struct udp *u, u32 asked, int got)
{
	u32 i, bytes = 0, most = UDP_BATCH;

	for (i = 0; (int)i < got; i++)
		bytes += u->rx_hdrs[i].msg_len;
	if (got > 0 && bytes / (u32)got > UDP_BUNDLE_LARGE)
		most = UDP_BUNDLE_BATCH;
	if (got == (int)asked)
		u->rx_vlen = homa_min_u32(asked * 2, most);
	else
		u->rx_vlen = got > 0 ? homa_min_u32((u32)got, most) : 1;
}

int udp_rx(struct nic *nic, struct nic_rx *pkts, int n)
{
	struct udp *u = udp_of(nic);
	int got = hand_out(u, pkts, n);
	u32 vlen;
	int rc;

	if (got)
		return got;
	vlen = homa_min_u32(u->rx_vlen, u->n_free);
	vlen = homa_min_u32(vlen, (u32)n);
	if (!vlen)
		return 0;
	rc = receive(u, vlen);
	/* The kernel reports a pending ICMP error once, in place of a packet. */
	if (rc < 0 && rc != -EAGAIN && rc != -EINTR) {
		udp_take_errors(u);
		rc = receive(u, vlen);
	}
	adapt(u, vlen, rc);
	if (rc > 0)
		u->sleeps = 0;
	return rc > 0 ? hand_out(u, pkts, n) : 0;
}

void udp_rx_release(struct nic *nic, const struct nic_rx *pkts, int n)
{
	struct udp *u = udp_of(nic);

	for (int i = 0; i < n; i++)
		unref(u, (u32)pkts[i].token);
}
