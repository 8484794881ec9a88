// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Sending: headers from the path's template, then the Homa packet, gathered by the kernel from
 * where they are; several frames go in one sendmmsg().
 */
#include "packet.h"

#include <errno.h>
#include <string.h>

/* The most packets that nic_tx_room() tells; the socket buffer limits what is sent. */
#define ROOM 1024

int packet_tx_room(struct nic *nic)
{
	(void)nic;
	return ROOM;
}

/* Describes the frame of a packet, whose headers up to IP's are written to @head. */
static void describe(struct msghdr *mh, struct iovec *iov, u8 *head,
		     const struct nic_path *path, const struct nic_tx *pkt)
{
	nic_frame_build(&path->frame, head, pkt->hdr_len + pkt->payload_len,
			pkt->prio, pkt->hdr);
	iov[0] = (struct iovec){ head, path->frame.len };
	iov[1] = (struct iovec){ (void *)(uintptr_t)pkt->hdr, pkt->hdr_len };
	iov[2] = (struct iovec){ (void *)(uintptr_t)pkt->payload,
				 pkt->payload_len };
	memset(mh, 0, sizeof(*mh));
	mh->msg_iov = iov;
	mh->msg_iovlen = pkt->payload_len ? 3 : 2;
}

static void add(struct packet_nic *p, const struct nic_path *path,
		const struct nic_tx *pkt, int index)
{
	struct packet_batch *b = &p->batch;

	describe(&b->hdrs[b->n].msg_hdr, b->iovs[b->n], b->heads[b->n], path,
		 pkt);
	b->bytes[b->n] = pkt->hdr_len + pkt->payload_len;
	b->index[b->n++] = index;
}

/* Sends what is in the batch; returns -1, or the index of the first packet that was not taken. */
static int send_batch(struct packet_nic *p)
{
	struct nic_stats *stats = &p->eth.nic.stats;
	struct packet_batch *b = &p->batch;
	int at = 0, all = b->n;

	b->n = 0;
	while (at < all) {
		int sent = sendmmsg(p->fd, b->hdrs + at,
				    (unsigned int)(all - at), MSG_DONTWAIT);
		int error = sent < 0 ? errno : 0;

		stats->syscalls++;
		for (; sent > 0; sent--, at++) {
			stats->tx_packets++;
			stats->tx_bytes += b->bytes[at];
		}
		if (error == EAGAIN) {
			p->blocked = true;
			return b->index[at];
		}
		/* The device is down or gone, or its MTU has just become smaller. ENOBUFS: a full
		 * queue, or a rule for what leaves, has dropped the packet; that may last. */
		if (error && error != EINTR) {
			stats->tx_errors++;
			at++;
		}
	}
	return -1;
}

/* Sends a packet that was held. A path may settle while a batch is being filled, so this one does
 * not go into the batch. */
static void send_held(struct packet_nic *p, const struct nic_path *path,
		      const struct nic_tx *pkt)
{
	struct nic_stats *stats = &p->eth.nic.stats;
	u8 head[NIC_FRAME_HLEN_MAX];
	struct iovec iov[3];
	struct msghdr mh;

	describe(&mh, iov, head, path, pkt);
	stats->syscalls++;
	if (sendmsg(p->fd, &mh, MSG_DONTWAIT) < 0) {
		stats->tx_errors++;
		return;
	}
	stats->tx_packets++;
	stats->tx_bytes += pkt->hdr_len + pkt->payload_len;
}

void packet_tx_held(void *arg, struct nic_path *path, const struct nic_tx *pkt,
		    int error)
{
	struct nic_ether *e = arg;

	if (error)
		nic_ether_refuse(e, path, pkt, error, 0);
	else if (nic_ether_too_large(path, pkt))
		nic_ether_refuse(e, path, pkt, EMSGSIZE, path->mtu);
	else if (path->state == NIC_PATH_READY)
		send_held(packet_of(&e->nic), path, pkt);
	else
		e->nic.stats.tx_no_neighbour++;
}

/* Handles a packet that does not go into the batch; false: it cannot be taken now. */
static bool not_now(struct packet_nic *p, struct nic_path *path,
		    const struct nic_tx *pkt, int index)
{
	if (pkt->proto != NIC_HOMA) {
		p->eth.nic.stats.tx_errors++;
		return true;
	}
	if (!path || path->state != NIC_PATH_READY)
		return nic_ether_tx_slow(&p->eth, path, pkt, index);
	nic_ether_refuse(&p->eth, path, pkt, EMSGSIZE, path->mtu);
	return true;
}

int packet_tx(struct nic *nic, const struct nic_tx *pkts, int n)
{
	struct packet_nic *p = packet_of(nic);
	int i, left;

	p->blocked = false;
	for (i = 0; i < n; i++) {
		struct nic_path *path =
			nic_path_find(&p->eth.paths, &pkts[i].dst);
		bool ready = path && path->state == NIC_PATH_READY &&
			     pkts[i].proto == NIC_HOMA &&
			     !nic_ether_too_large(path, &pkts[i]);

		/* What is taken in another way is taken behind what comes before it. */
		if (p->batch.n == PACKET_BATCH || !ready) {
			left = send_batch(p);
			if (left >= 0)
				return left;
		}
		if (likely(ready)) {
			path->used = true;
			add(p, path, &pkts[i], i);
		} else if (!not_now(p, path, &pkts[i], i)) {
			return i;
		}
	}
	left = send_batch(p);
	return left >= 0 ? left : n;
}
