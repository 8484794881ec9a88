// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Sending: headers from the path's template, then the Homa packet, copied into
 * a frame. The device is told once per batch ("kick"); in copy mode the kick is
 * where the kernel does the sending, at most 32 packets per call.
 */
#include "afxdp.h"
#include "tcp_sum.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* The number of packets after which the device is kicked: as many as the kernel sends in
 * one call. */
#define KICK_BATCH 32

static void reap(struct afxdp *x, struct afxdp_queue *q)
{
	u32 idx = 0;
	u32 done = xsk_ring_cons__peek(&q->comp, AFXDP_TX_RING, &idx);

	for (u32 i = 0; i < done; i++) {
		u64 addr = *xsk_ring_cons__comp_addr(&q->comp, idx + i);

		x->free[x->n_free++] = addr & ~(u64)(x->frame_size - 1);
	}
	if (done) {
		xsk_ring_cons__release(&q->comp, done);
		q->in_flight -= done;
	}
}

/* The number of frames that the kernel has not taken out of the send ring. */
static u32 unsent(const struct afxdp_queue *q)
{
	return *q->tx.producer -
	       __atomic_load_n(q->tx.consumer, __ATOMIC_ACQUIRE);
}

static void kick(struct afxdp *x, struct afxdp_queue *q)
{
	u32 tries = AFXDP_TX_RING / KICK_BATCH + 1;

	q->unkicked = 0;
	if (!xsk_ring_prod__needs_wakeup(&q->tx))
		return;
	do {
		int rc = (int)sendto(q->fd, NULL, 0, MSG_DONTWAIT, NULL, 0);

		x->eth.nic.stats.syscalls++;
		if (rc < 0 && errno != EAGAIN && errno != EINTR)
			break; /* The device is full or down; a later kick tries again. */
	} while (!x->zero_copy && unsent(q) && --tries);
}

/* The number of frames that a packet of the largest size takes. */
static u32 frames_per_packet(const struct afxdp *x)
{
	if (!x->multi_buffer)
		return 1;
	return (x->eth.netif.mtu + NIC_ETH_HLEN + x->frame_size - 1) /
	       x->frame_size;
}

static u32 queue_room(struct afxdp *x, struct afxdp_queue *q)
{
	u32 room = AFXDP_TX_RING - q->in_flight;

	if (room < AFXDP_TX_RING / 2) {
		reap(x, q);
		room = AFXDP_TX_RING - q->in_flight;
	}
	return homa_min_u32(room, x->n_free);
}

int afxdp_tx_room(struct nic *nic)
{
	struct afxdp *x = afxdp_of(nic);
	u32 room = AFXDP_TX_RING;

	for (u32 i = 0; i < x->n_queues; i++)
		room = homa_min_u32(room, queue_room(x, &x->q[i]));
	return (int)(room / frames_per_packet(x));
}

static void put_desc(struct afxdp *x, struct afxdp_queue *q, u64 addr, u32 len,
		     bool more)
{
	struct xdp_desc *desc;
	u32 idx = 0;

	xsk_ring_prod__reserve(&q->tx, 1, &idx);
	desc = xsk_ring_prod__tx_desc(&q->tx, idx);
	desc->addr = addr;
	desc->len = len;
	desc->options = more ? XDP_PKT_CONTD : 0;
	q->in_flight++;
	(void)x;
}

static void put_headers(const struct nic_path *path, const struct nic_tx *pkt,
			u8 *out)
{
	if (likely(pkt->proto == NIC_HOMA))
		nic_frame_build(&path->frame, out,
				pkt->hdr_len + pkt->payload_len, pkt->prio,
				pkt->hdr);
	else
		nic_frame_build_tcp(&path->frame, out, pkt);
	memcpy(out + path->frame.len, pkt->hdr, pkt->hdr_len);
}

/* Fill in the checksum of a TCP segment. @sum: the sum of header and payload in the frames. */
static void put_checksum(const struct nic_path *path, const struct nic_tx *pkt,
			 u8 *header, u64 sum)
{
	u64 pseudo = nic_sum_pseudo(pkt->src ? pkt->src : &path->src, &pkt->dst,
				    pkt->hdr_len + pkt->payload_len);
	u16 field;

	field = (u16)~nic_sum_fold((u64)nic_sum_fold(sum) + nic_sum_fold(pseudo));
	memcpy(header + NIC_TCP_CHECKSUM_AT, &field, sizeof(field));
}

/* Put a packet that fits one frame, which is the usual case, into the send ring. */
static void put_single(struct afxdp *x, struct afxdp_queue *q,
		       const struct nic_path *path, const struct nic_tx *pkt)
{
	u64 addr = x->free[--x->n_free];
	u8 *out = x->area + addr;
	u32 l4 = pkt->hdr_len + pkt->payload_len;

	put_headers(path, pkt, out);
	out += path->frame.len;
	if (pkt->payload_len)
		memcpy(out + pkt->hdr_len, pkt->payload, pkt->payload_len);
	if (pkt->proto == NIC_TCP)
		put_checksum(path, pkt, out, nic_sum(out, l4, 0));
	put_desc(x, q, addr, path->frame.len + l4, false);
	xsk_ring_prod__submit(&q->tx, 1);
}

/* Put a packet over several frames into the send ring; the first one has all headers. */
static void put_multi(struct afxdp *x, struct afxdp_queue *q,
		      const struct nic_path *path, const struct nic_tx *pkt)
{
	u32 used = path->frame.len + pkt->hdr_len;
	const u8 *from = pkt->payload;
	u32 left = pkt->payload_len;
	u32 descs = 0;
	u64 addr = x->free[--x->n_free], sum = 0;
	u8 *header = x->area + addr + path->frame.len;

	put_headers(path, pkt, x->area + addr);
	if (pkt->proto == NIC_TCP)
		sum = nic_sum(header, pkt->hdr_len, 0);
	for (;;) {
		u32 piece = homa_min_u32(left, x->frame_size - used);

		memcpy(x->area + addr + used, from, piece);
		/* Frames and headers have even lengths, so only the last piece may be odd. */
		if (pkt->proto == NIC_TCP)
			sum = nic_sum(x->area + addr + used, piece, sum);
		from += piece;
		left -= piece;
		put_desc(x, q, addr, used + piece, left > 0);
		descs++;
		if (!left)
			break;
		addr = x->free[--x->n_free];
		used = 0;
	}
	if (pkt->proto == NIC_TCP)
		put_checksum(path, pkt, header, sum);
	xsk_ring_prod__submit(&q->tx, descs);
}

static void put_packet(struct afxdp *x, const struct nic_path *path,
		       struct afxdp_queue *q, const struct nic_tx *pkt)
{
	u32 len = path->frame.len + pkt->hdr_len + pkt->payload_len;

	if (likely(len <= x->frame_size))
		put_single(x, q, path, pkt);
	else
		put_multi(x, q, path, pkt);
	q->unkicked++;
	x->eth.nic.stats.tx_packets++;
	x->eth.nic.stats.tx_bytes += pkt->hdr_len + pkt->payload_len;
}

static struct afxdp_queue *queue_for(struct afxdp *x, const struct homa_addr *dst)
{
	if (x->n_queues == 1)
		return &x->q[0];
	return &x->q[(homa_get_be32(dst->ip + 12) * 0x9e3779b1U >> 16) % x->n_queues];
}

void afxdp_tx_held(void *arg, struct nic_path *path, const struct nic_tx *pkt,
		   int error)
{
	struct nic_ether *e = arg;
	struct afxdp *x = afxdp_of(&e->nic);
	struct afxdp_queue *q = queue_for(x, &pkt->dst);

	if (error)
		nic_ether_refuse(&x->eth, path, pkt, error, 0);
	else if (nic_ether_too_large(path, pkt))
		nic_ether_refuse(&x->eth, path, pkt, EMSGSIZE, path->mtu);
	else if (path->state == NIC_PATH_READY &&
		 queue_room(x, q) >= frames_per_packet(x))
		put_packet(x, path, q, pkt);
	else
		x->eth.nic.stats.tx_no_neighbour++;
}

int afxdp_tx(struct nic *nic, const struct nic_tx *pkts, int n)
{
	struct afxdp *x = afxdp_of(nic);
	u32 need = frames_per_packet(x);
	struct nic_path *path = NULL;
	int i;

	/* Sent frames are taken back early, so that few are in use and stay in the cache. */
	for (u32 k = 0; k < x->n_queues; k++)
		if (x->q[k].in_flight >= KICK_BATCH)
			reap(x, &x->q[k]);
	for (i = 0; i < n; i++) {
		const struct nic_tx *pkt = &pkts[i];
		struct afxdp_queue *q = queue_for(x, &pkt->dst);

		if (!path || memcmp(path->dst.ip, pkt->dst.ip, 16))
			path = nic_path_find(&x->eth.paths, &pkt->dst);
		if (unlikely(!path || path->state != NIC_PATH_READY)) {
			if (!nic_ether_tx_slow(&x->eth, path, pkt, i))
				break;
			continue;
		}
		path->used = true;
		if (unlikely(nic_ether_too_large(path, pkt))) {
			nic_ether_refuse(&x->eth, path, pkt, EMSGSIZE, path->mtu);
			continue;
		}
		if (x->unit_fd >= 0 && afxdp_unit_begins(pkt, n - i)) {
			int sent;

			/* What was given before leaves before. */
			if (q->unkicked)
				kick(x, q);
			sent = afxdp_unit(x, path, pkt, n - i);
			i += sent ? sent - 1 : 0;
			if (sent)
				continue;
		}
		if (unlikely(queue_room(x, q) < need)) {
			kick(x, q);
			if (queue_room(x, q) < need)
				break;
		}
		put_packet(x, path, q, pkt);
		if (q->unkicked >= KICK_BATCH)
			kick(x, q);
	}
	return i;
}

void afxdp_flush(struct nic *nic)
{
	struct afxdp *x = afxdp_of(nic);

	for (u32 i = 0; i < x->n_queues; i++)
		if (x->q[i].unkicked || (!x->zero_copy && unsent(&x->q[i])))
			kick(x, &x->q[i]);
}
