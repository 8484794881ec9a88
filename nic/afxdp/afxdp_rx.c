// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Receiving: descriptors from the ring become packets in place; the caller
 * gets pointers into the UMEM and gives them back. A TCP segment that spans several
 * frames (MTU above a frame, or TCP of a kernel on the same machine, which leaves 64 KB
 * uncut on virtual devices) goes up in pieces. Any other such packet is copied together,
 * because everything above expects contiguous bytes.
 */
#include "afxdp.h"
#include "tcp_sum.h"

#include <string.h>
#include <sys/socket.h>

/* The least number of frames by which the fill ring is refilled, because each refill
 * touches a cache line shared with the kernel. */
#define FILL_BATCH 64

static void put_frame(struct afxdp *x, u64 addr)
{
	x->free[x->n_free++] = addr & ~(u64)(x->frame_size - 1);
	x->rx_owned--;
}

/* Is @dst our address: the one we are bound to, or else any of the interface? It usually is that
 * of the last packet. */
static bool for_us(struct afxdp *x, const struct homa_addr *dst)
{
	if (likely(homa_addr_equal(dst, &x->last_dst)))
		return true;
	memset(&x->last_src, 0, sizeof(x->last_src));
	if (x->eth.has_bound ? !homa_addr_equal(dst, &x->eth.bound) :
			       !nic_netif_has(&x->eth.netif, dst))
		return false;
	x->last_dst = *dst;
	return true;
}

/* If we have several addresses, remember the one that the peer sent to, because answers must come
 * from there. */
static void note_pair(struct afxdp *x, const struct nic_rx *pkt)
{
	if (homa_addr_equal(&pkt->src, &x->last_src))
		return;
	x->last_src = pkt->src;
	if (!x->eth.has_bound && x->several)
		nic_path_heard(&x->eth.paths, &pkt->src, &pkt->dst);
}

/* Is the TCP segment wanted and sound? Another thread may just call nic_tcp_port(). */
static bool tcp_wanted(struct afxdp *x, const struct nic_rx *pkt)
{
	if (!__atomic_load_n(&x->takes_tcp, __ATOMIC_RELAXED)) {
		x->eth.nic.stats.rx_malformed++;
		return false;
	}
	if (nic_tcp_sound(pkt, x->eth.netif.virtual_device))
		return true;
	x->eth.nic.stats.rx_checksum++;
	return false;
}

static bool malformed(struct afxdp *x)
{
	x->eth.nic.stats.rx_malformed++;
	return false;
}

/* Is @pkt, which has been parsed, one for us? */
static bool accept_packet(struct afxdp *x, const struct nic_rx *pkt)
{
	if (unlikely(!for_us(x, &pkt->dst)))
		return malformed(x);
	if (unlikely(pkt->proto == NIC_TCP) && !tcp_wanted(x, pkt))
		return false;
	note_pair(x, pkt);
	x->eth.nic.stats.rx_packets++;
	x->eth.nic.stats.rx_bytes += pkt->len;
	return true;
}

static bool parse(struct afxdp *x, const u8 *frame, u32 len, struct nic_rx *pkt)
{
	if (unlikely(nic_frame_parse(frame, len, pkt)))
		return malformed(x);
	return accept_packet(x, pkt);
}

static void put_pieces(struct afxdp *x, struct afxdp_jumbo *jumbo)
{
	for (u32 i = 0; i < jumbo->num_pieces; i++)
		put_frame(x, (u64)(jumbo->pieces[i].data - x->area));
	jumbo->num_pieces = 0;
}

static void put_jumbo(struct afxdp *x, u32 slot)
{
	put_pieces(x, &x->jumbo[slot]);
	x->jumbo_free[x->n_jumbo_free++] = (u16)slot;
}

/* Bytes at the front of a frame in which all headers of a TCP segment are. */
#define HEADERS_MAX (NIC_ETH_HLEN + 60u + 60u)

/* Parse a TCP segment whose headers are in its first piece; false: it is none. */
static bool parse_pieces(struct afxdp_jumbo *jumbo, u32 len, struct nic_rx *pkt)
{
	struct nic_piece *first = jumbo->pieces;

	if (first->len < HEADERS_MAX ||
	    nic_frame_parse(first->data, len, pkt) || pkt->proto != NIC_TCP)
		return false;
	first->len -= (u32)(pkt->data - first->data);
	first->data = pkt->data;
	pkt->pieces = first;
	return true;
}

static u8 *copy_together(struct afxdp *x, u32 slot)
{
	struct afxdp_jumbo *jumbo = &x->jumbo[slot];
	u8 *all = x->jumbo_area + (size_t)slot * x->jumbo_size, *to = all;

	for (u32 i = 0; i < jumbo->num_pieces; i++) {
		memcpy(to, jumbo->pieces[i].data, jumbo->pieces[i].len);
		to += jumbo->pieces[i].len;
	}
	put_pieces(x, jumbo);
	return all;
}

/* Parse a packet that is complete. One that is longer than the MTU goes up as one segment if it is
 * TCP. Only homa.ko sends such frames of Homa, by mistake, and they contain several packets, so
 * they are dropped. */
static bool parse_jumbo(struct afxdp *x, u32 slot, u32 len, struct nic_rx *pkt)
{
	if (unlikely(!parse_pieces(&x->jumbo[slot], len, pkt)) &&
	    nic_frame_parse(copy_together(x, slot), len, pkt))
		return malformed(x);
	if (len > x->homa_max && pkt->proto == NIC_HOMA) {
		x->eth.nic.stats.rx_dropped++;
		return false;
	}
	x->eth.nic.stats.rx_gro += len > x->homa_max;
	return accept_packet(x, pkt);
}

/* The end of a multi-buffer packet has come; true when @pkt is one. */
static bool jumbo_end(struct afxdp *x, struct afxdp_queue *q, struct nic_rx *pkt)
{
	u32 slot = (u32)q->jumbo, len = q->jumbo_len;
	bool skipped = q->jumbo < 0;

	q->jumbo = -1;
	q->jumbo_len = 0;
	if (skipped) {
		x->eth.nic.stats.rx_dropped++;
		return false;
	}
	if (!parse_jumbo(x, slot, len, pkt)) {
		put_jumbo(x, slot);
		return false;
	}
	/* The caller has the slot now. */
	pkt->token = AFXDP_TOKEN_JUMBO | slot;
	return true;
}

/* Take in one piece of a packet of several frames or beyond the MTU; true when @pkt is complete. */
static bool jumbo_piece(struct afxdp *x, struct afxdp_queue *q, const u8 *data,
			u32 len, bool more, struct nic_rx *pkt)
{
	struct afxdp_jumbo *jumbo;

	if (q->jumbo < 0 && !q->jumbo_len && x->n_jumbo_free)
		q->jumbo = x->jumbo_free[--x->n_jumbo_free];
	jumbo = q->jumbo < 0 ? NULL : &x->jumbo[q->jumbo];
	if (likely(jumbo && jumbo->num_pieces < AFXDP_PIECES &&
		   len <= x->jumbo_size - q->jumbo_len)) {
		jumbo->pieces[jumbo->num_pieces++] =
			(struct nic_piece){ data, len };
		q->jumbo_len += len;
	} else {
		/* There is no room, so the packet is skipped up to its end. */
		if (jumbo)
			put_jumbo(x, (u32)q->jumbo);
		q->jumbo = -1;
		q->jumbo_len = x->jumbo_size;
		put_frame(x, (u64)(data - x->area));
	}
	return !more && jumbo_end(x, q, pkt);
}

static int rx_queue(struct afxdp *x, struct afxdp_queue *q, struct nic_rx *pkts,
		    int n)
{
	u32 idx = 0;
	u32 waiting = xsk_cons_nb_avail(&q->rx, AFXDP_RING);
	u32 got = xsk_ring_cons__peek(&q->rx, (u32)n, &idx);
	int out = 0;

	if (!got)
		return 0;
	if (waiting > q->burst) {
		q->burst = waiting;
		if (waiting * AFXDP_BURSTS > q->fill_target)
			q->fill_target = homa_min_u32(2 * waiting * AFXDP_BURSTS,
						      x->fill_most);
	}
	/* Headers were written by another core or a device: fetch them all at
	 * once rather than wait for one after the other. */
	for (u32 i = 0; i < got; i++) {
		const u8 *data =
			x->area + xsk_ring_cons__rx_desc(&q->rx, idx + i)->addr;

		homa_prefetch(data);
		homa_prefetch(data + 64);
	}
	for (u32 i = 0; i < got; i++) {
		const struct xdp_desc *desc =
			xsk_ring_cons__rx_desc(&q->rx, idx + i);
		const u8 *data = x->area + desc->addr;
		bool more = desc->options & XDP_PKT_CONTD;

		if (unlikely(more || q->jumbo_len || desc->len > x->homa_max)) {
			out += jumbo_piece(x, q, data, desc->len, more,
					   &pkts[out]);
		} else if (parse(x, data, desc->len, &pkts[out])) {
			pkts[out++].token = desc->addr;
		} else {
			put_frame(x, desc->addr);
		}
	}
	xsk_ring_cons__release(&q->rx, got);
	return out;
}

static void refill(struct afxdp *x, struct afxdp_queue *q)
{
	if (xsk_prod_nb_free(&q->fill, AFXDP_RING) >=
	    AFXDP_RING - q->fill_target + FILL_BATCH)
		afxdp_fill(x, q);
	if (xsk_ring_prod__needs_wakeup(&q->fill)) {
		recvfrom(q->fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
		x->eth.nic.stats.syscalls++;
	}
}

/* The slow side costs a system call, so it is looked at once in a millisecond, and the
 * clock is read only once in AFXDP_CTL_CALLS calls. While packets are held, both happen
 * more often. */
static void look_at_slow_side(struct afxdp *x)
{
	if (unlikely(!--x->eth.ctl_calls || x->slept))
		afxdp_ctl_poll(x);
}

/* The number of packets between two sleeps with which a thread has much to do. */
#define MANY_PACKETS 64u

/* An AF_XDP socket in the epoll set costs some work for each packet, and two system calls
 * when it goes and comes back. So it stays there if the thread sleeps again soon. */
static void note_packets(struct afxdp *x, u32 packets)
{
	x->armed_packets += packets;
	if (unlikely(x->armed) &&
	    (x->armed_for_room || x->armed_packets > MANY_PACKETS))
		afxdp_disarm(x);
}

int afxdp_rx(struct nic *nic, struct nic_rx *pkts, int n)
{
	struct afxdp *x = afxdp_of(nic);
	int got = 0;

	look_at_slow_side(x);
	if (unlikely(nic_loop_waiting(&x->eth.loop))) {
		got = nic_loop_rx(&x->eth.loop, pkts, n);
		for (int i = 0; i < got; i++) {
			pkts[i].token |= AFXDP_TOKEN_LOOP;
			nic->stats.rx_packets++;
			nic->stats.rx_bytes += pkts[i].len;
		}
	}
	for (u32 i = 0; i < x->n_queues && got < n; i++) {
		struct afxdp_queue *q = &x->q[x->next_queue];

		if (++x->next_queue == x->n_queues)
			x->next_queue = 0;
		if (x->busy_poll) {
			recvfrom(q->fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
			nic->stats.syscalls++;
		}
		got += rx_queue(x, q, pkts + got, n - got);
		refill(x, q);
	}
	note_packets(x, (u32)got);
	return got;
}

void afxdp_rx_release(struct nic *nic, const struct nic_rx *pkts, int n)
{
	struct afxdp *x = afxdp_of(nic);

	for (int i = 0; i < n; i++) {
		u64 token = pkts[i].token;

		if (likely(!(token & (AFXDP_TOKEN_LOOP | AFXDP_TOKEN_JUMBO))))
			put_frame(x, token);
		else if (token & AFXDP_TOKEN_LOOP)
			nic_loop_release(&x->eth.loop, (u32)token);
		else
			put_jumbo(x, (u32)token);
	}
}
