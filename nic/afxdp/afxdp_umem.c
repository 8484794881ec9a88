// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Packet buffers and the sockets' rings. All queues of a nic draw from one
 * UMEM, so a frame received on one can be reused on another; receiving and
 * sending each have a share that the other cannot take.
 */
#include "afxdp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE (2UL << 20)
/* The time that opening waits for the kernel to free the queue of a closed socket, in ms. */
#define CLOSING_MS 2000
#define CLAIM_TRIES 10 /* tries to claim a queue, 10 ms apart */

static int allocate(struct afxdp *x)
{
	x->area_len = ((size_t)x->frames * x->frame_size + HUGE_PAGE - 1) &
		      ~(HUGE_PAGE - 1);
	x->area = mmap(NULL, x->area_len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (x->area == MAP_FAILED) {
		x->area = NULL;
		return -ENOMEM;
	}
	/* A shared buffer must not be split by fork(). */
	madvise(x->area, x->area_len, MADV_DONTFORK);
	madvise(x->area, x->area_len, MADV_HUGEPAGE);
	x->free = malloc(x->frames * sizeof(*x->free));
	if (!x->free)
		return -ENOMEM;
	for (u32 i = 0; i < x->frames; i++)
		x->free[i] = (u64)(x->frames - 1 - i) * x->frame_size;
	x->n_free = x->frames;
	return 0;
}

void afxdp_size_frames(struct afxdp *x)
{
	u32 wire = x->eth.netif.mtu + NIC_ETH_HLEN;

	/* Units of 64 KB in frames of 2 KB would be twice as many frames. */
	x->frame_size = !x->units && wire + AFXDP_HEADROOM <= 2048 ? 2048 : 4096;
	/* The kernel puts up to 342 bytes behind a packet (skb_shared_info). */
	x->multi_buffer = wire + AFXDP_HEADROOM + 342 > 4096;
	x->homa_max = x->multi_buffer || x->units ?
			      wire :
			      x->frame_size - AFXDP_HEADROOM;
}

static int allocate_jumbo(struct afxdp *x)
{
	if (!x->multi_buffer && !x->units)
		return 0;
	x->jumbo_size = x->eth.netif.mtu + NIC_ETH_HLEN;
	if (x->units)
		x->jumbo_size = homa_max_u32(x->jumbo_size, AFXDP_UNIT_MAX);
	/* This is so large that malloc() maps it, so slots that are never used cost no memory. */
	x->jumbo_area = malloc((size_t)x->jumbo_size * AFXDP_JUMBO_SLOTS);
	x->jumbo = calloc(AFXDP_JUMBO_SLOTS, sizeof(*x->jumbo));
	if (!x->jumbo || !x->jumbo_area)
		return -ENOMEM;
	for (u32 i = 0; i < AFXDP_JUMBO_SLOTS; i++)
		x->jumbo_free[i] = (u16)i;
	x->n_jumbo_free = AFXDP_JUMBO_SLOTS;
	return 0;
}

static int explain(struct afxdp *x, int rc, u32 queue, u32 flags, char *err,
		   size_t errlen)
{
	const char *name = x->eth.netif.name;

	switch (rc) {
	case -EPERM:
	case -EACCES:
		return nic_fail(err, errlen, -EPERM,
				"AF_XDP sockets need root (CAP_NET_RAW); run as root or use UDP (HOMA_VIA=udp)");
	case -EBUSY:
		return nic_fail(err, errlen, -EBUSY,
				"queue %u of %s is in use by another AF_XDP socket; use another queue, UDP (HOMA_VIA=udp), or end the other process",
				queue, name);
	case -EAFNOSUPPORT:
		return nic_fail(err, errlen, -EOPNOTSUPP,
				"this kernel has no AF_XDP (CONFIG_XDP_SOCKETS); use UDP (HOMA_VIA=udp)");
	case -EOPNOTSUPP:
		return nic_fail(err, errlen, -EOPNOTSUPP,
				"%s does not support %s AF_XDP; use generic mode or UDP (HOMA_VIA=udp)",
				name,
				flags & XDP_ZEROCOPY ? "zero-copy" :
						       "this kind of");
	case -EINVAL:
		if (x->multi_buffer)
			return nic_fail(err, errlen, -EOPNOTSUPP,
					"packets of %u bytes need AF_XDP multi-buffer support (Linux 6.6); set the MTU of %s to %u or less, or use UDP",
					x->eth.netif.mtu, name,
					4096 - AFXDP_HEADROOM - NIC_ETH_HLEN -
						342);
		return nic_fail(err, errlen, -EINVAL,
				"%s has no queue %u (it has %u)", name, queue,
				x->eth.netif.rx_queues);
	case -ENOBUFS:
	case -ENOMEM:
		return nic_fail(err, errlen, -ENOMEM,
				"not enough locked memory for %zu bytes of packet buffers; raise `ulimit -l`",
				x->area_len);
	default:
		return nic_fail(err, errlen, rc,
				"cannot open an AF_XDP socket on queue %u of %s: %s",
				queue, name, strerror(-rc));
	}
}

/* Claim a queue; false if another process has it. It tries for a while, as a process that was
 * just killed may still be on its way out. */
static bool claim(struct afxdp *x, u32 i, u32 id)
{
	for (int tries = 0; x->q[i].claim < 0; tries++) {
		x->q[i].claim = afxdp_queue_claim(x->eth.netif.index, id);
		if (x->q[i].claim != -EBUSY)
			break;
		if (tries == CLAIM_TRIES)
			return false;
		usleep(10000);
	}
	return true;
}

static int open_queue(struct afxdp *x, u32 i, u32 id, u32 bind_flags)
{
	struct afxdp_queue *q = &x->q[i];
	struct xsk_socket_config config = {
		.rx_size = AFXDP_RING,
		.tx_size = AFXDP_TX_RING,
		.libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD,
		.bind_flags = (u16)bind_flags,
	};
	int rc;

	q->id = id;
	q->jumbo = -1;
	q->fill_target = x->fill_most;
	rc = xsk_socket__create_shared(&q->xsk, x->eth.netif.name, id, x->umem,
				       &q->rx, &q->tx, &q->fill, &q->comp,
				       &config);
	if (rc)
		return rc;
	q->fd = xsk_socket__fd(q->xsk);
	return 0;
}

static void busy_poll(struct afxdp_queue *q)
{
#ifdef SO_PREFER_BUSY_POLL
	int one = 1, micros = 20, budget = 64;

	setsockopt(q->fd, SOL_SOCKET, SO_PREFER_BUSY_POLL, &one, sizeof(one));
	setsockopt(q->fd, SOL_SOCKET, SO_BUSY_POLL, &micros, sizeof(micros));
	setsockopt(q->fd, SOL_SOCKET, SO_BUSY_POLL_BUDGET, &budget,
		   sizeof(budget));
#else
	(void)q;
#endif
}

/* Try once to open all queues; @queue receives the number of the queue that failed. */
static int open_all(struct afxdp *x, const struct nic_config *config,
		    u32 bind_flags, u32 *queue)
{
	struct xsk_umem_config umem = {
		.fill_size = AFXDP_RING,
		.comp_size = AFXDP_TX_RING,
		.frame_size = x->frame_size,
	};
	int rc = allocate(x);

	*queue = config->queue;
	if (!rc)
		rc = allocate_jumbo(x);
	/* libxdp keeps these two rings for the first socket of the UMEM. */
	if (!rc)
		rc = xsk_umem__create(&x->umem, x->area, x->area_len,
				      &x->q[0].fill, &x->q[0].comp, &umem);
	if (x->multi_buffer || x->units)
		bind_flags |= XDP_USE_SG;
	for (u32 i = 0; !rc && i < x->n_queues; i++) {
		*queue = config->queue + i;
		rc = open_queue(x, i, *queue, bind_flags | XDP_USE_NEED_WAKEUP);
	}
	if (rc)
		afxdp_umem_close(x);
	return rc;
}

int afxdp_umem_open(struct afxdp *x, const struct nic_config *config,
		    u32 bind_flags, char *err, size_t errlen)
{
	u64 deadline = nic_now_ms() + CLOSING_MS;
	bool ours = true;
	u32 queue;
	int rc;

	for (u32 i = 0; ours && i < x->n_queues; i++)
		ours = claim(x, i, config->queue + i);
	for (;;) {
		rc = open_all(x, config, bind_flags, &queue);
		/* Before Linux 6.6 packets cannot span frames. Those of the MTU need not. */
		if (rc == -EINVAL && x->units && !x->multi_buffer) {
			x->units = false;
			afxdp_size_frames(x);
			rc = open_all(x, config, bind_flags, &queue);
		}
		/* The kernel decides. Waiting makes sense only for a queue that no
		 * process claims. */
		if (rc != -EBUSY || !ours || nic_now_ms() > deadline)
			break;
		if (afxdp_queue_taken(x->eth.netif.index, queue) > 0)
			break;
		usleep(10000);
	}
	if (rc)
		return explain(x, rc, queue, bind_flags, err, errlen);
	for (u32 i = 0; i < x->n_queues; i++) {
		if (config->busy_poll)
			busy_poll(&x->q[i]);
		afxdp_fill(x, &x->q[i]);
	}
	return 0;
}

void afxdp_umem_close(struct afxdp *x)
{
	for (u32 i = 0; i < x->n_queues; i++) {
		if (x->q[i].xsk)
			xsk_socket__delete(x->q[i].xsk);
		x->q[i].xsk = NULL;
	}
	if (x->umem)
		xsk_umem__delete(x->umem);
	x->umem = NULL;
	if (x->area)
		munmap(x->area, x->area_len);
	x->area = NULL;
	free(x->free);
	x->free = NULL;
	free(x->jumbo);
	x->jumbo = NULL;
	free(x->jumbo_area);
	x->jumbo_area = NULL;
	x->n_jumbo_free = 0;
}

/*
 * Every frame in the fill ring is used in turn, so a full ring walks through
 * megabytes and misses the cache with each packet (10 % of the rate of small
 * packets on veth). It is therefore only filled with eight times as many frames as
 * the largest recent burst had packets, and with twice that when a larger burst comes.
 */
void afxdp_fill(struct afxdp *x, struct afxdp_queue *q)
{
	u32 free = xsk_prod_nb_free(&q->fill, AFXDP_RING);
	u32 filled = AFXDP_RING - free;
	u32 want, idx;

	if (filled >= q->fill_target)
		return;
	want = homa_min_u32(q->fill_target - filled, x->n_free);
	want = homa_min_u32(want, x->rx_max - x->rx_owned);
	if (!want || !xsk_ring_prod__reserve(&q->fill, want, &idx))
		return;
	for (u32 i = 0; i < want; i++)
		*xsk_ring_prod__fill_addr(&q->fill, idx + i) =
			x->free[--x->n_free];
	xsk_ring_prod__submit(&q->fill, want);
	x->rx_owned += want;
}

void afxdp_fill_adapt(struct afxdp *x, struct afxdp_queue *q)
{
	u32 least = x->eth.netif.virtual_device ? AFXDP_FILL : 2 * AFXDP_FILL;
	u32 want = homa_max_u32(q->burst * AFXDP_BURSTS, least);

	q->fill_target = homa_min_u32(want, x->fill_most);
	q->burst = 0;
}
