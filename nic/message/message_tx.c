// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Sending: frames are written into slots. DATA packets of one message that follow each
 * other, as the send scheduler gives them, are written as one super-frame with one header if the
 * device cuts such: exactly if cutting it makes these packets again.
 */
#include <errno.h>
#include <string.h>

#include "homa_wire.h"
#include "message.h"

/* Where the DATA header says its offset: twice. */
#define SEQUENCE offsetof(struct homa_wire_common, sequence)
#define OFFSET offsetof(struct homa_wire_data, seg_offset)

void message_reap(struct message *m, struct message_queue *q)
{
	struct mnic_queue *shared = q->shared;
	int waiting = mnic_waiting(&shared->done_ring, q->done);

	if (!waiting)
		return;
	for (; waiting > 0; waiting--) {
		struct mnic_done done = shared->done[q->done++ % MNIC_ENTRIES];

		if (done.slot >= m->device->hello.slots || !q->flying[done.slot]) {
			waiting = -1;
			break;
		}
		q->flying[done.slot] = false;
		q->free[q->n_free++] = (u8)done.slot;
		if (done.status != MNIC_SENT)
			m->eth.nic.stats.tx_errors++;
	}
	if (waiting < 0)
		message_break(m);
	else
		mnic_consumed(&shared->done_ring, q->done);
}

static u32 queue_room(struct message *m, struct message_queue *q)
{
	if (!q->n_free)
		message_reap(m, q);
	return message_connected(m) ? q->n_free : 0;
}

int message_tx_room(struct nic *nic)
{
	struct message *m = message_of(nic);
	u32 room = MNIC_ENTRIES;

	/* Without a device packets are taken and lost. */
	for (u32 i = 0; i < m->n_queues; i++)
		room = homa_min_u32(room, queue_room(m, &m->q[i]));
	return message_connected(m) ? (int)room : (int)MNIC_ENTRIES;
}

/* May @next be behind @pkt, whose message it goes on with, in a super-frame? */
static bool follows(const struct nic_tx *pkt, const struct nic_tx *next, u32 step)
{
	const u8 *a = pkt->hdr, *b = next->hdr;

	return next->hdr_len == HOMA_DATA_HDR && next->payload_len &&
	       next->payload_len <= pkt->payload_len &&
	       next->prio == pkt->prio && next->proto == NIC_HOMA &&
	       homa_addr_equal(&next->dst, &pkt->dst) &&
	       homa_get_be32(b + OFFSET) == homa_get_be32(a + OFFSET) + step &&
	       homa_get_be32(b + SEQUENCE) == homa_get_be32(b + OFFSET) &&
	       !memcmp(a, b, SEQUENCE) &&
	       !memcmp(a + SEQUENCE + 4, b + SEQUENCE + 4, OFFSET - SEQUENCE - 4);
}

/* The number of packets from @pkts[0] on that one super-frame makes. */
static int together(const struct message *m, const struct nic_tx *pkts, int n,
		    u32 head)
{
	u32 seg = pkts[0].payload_len;
	u32 bytes = seg;
	int i;

	if (!(m->device->features & MNIC_FEATURE_LSO) || !seg ||
	    pkts[0].proto != NIC_HOMA || pkts[0].hdr_len != HOMA_DATA_HDR ||
	    pkts[0].hdr[offsetof(struct homa_wire_common, type)] != HOMA_DATA ||
	    homa_get_be32(pkts[0].hdr + SEQUENCE) !=
		    homa_get_be32(pkts[0].hdr + OFFSET))
		return 1;
	for (i = 1; i < n && i < (int)MNIC_PIECES_MAX; i++) {
		if (pkts[i - 1].payload_len < seg ||
		    head + HOMA_DATA_HDR + bytes + pkts[i].payload_len >
			    MNIC_FRAME_MAX ||
		    !follows(&pkts[0], &pkts[i], bytes))
			break;
		bytes += pkts[i].payload_len;
	}
	return i;
}

/* Write @count packets as one frame into a slot, and its descriptor. */
static void put(struct message *m, struct message_queue *q,
		const struct nic_path *path, const struct nic_tx *pkts, int count)
{
	u32 slot = q->free[--q->n_free];
	const struct message_device *d = m->device;
	u8 *out = d->memory +
		  mnic_slot_at(&d->hello, (u32)(q - d->q), false, slot);
	struct mnic_send send = { .slot = slot, .prio = pkts[0].prio & 7 };
	u32 payload = 0;
	u8 *at = out + path->frame.len;

	memcpy(at, pkts[0].hdr, pkts[0].hdr_len);
	at += pkts[0].hdr_len;
	for (int i = 0; i < count; i++) {
		u32 len = pkts[i].payload_len;

		if (len)
			memcpy(at + payload, pkts[i].payload, len);
		payload += len;
		m->eth.nic.stats.tx_packets++;
		m->eth.nic.stats.tx_bytes += pkts[i].hdr_len + len;
	}
	nic_frame_build(&path->frame, out, pkts[0].hdr_len + payload,
			pkts[0].prio, pkts[0].hdr);
	send.len = path->frame.len + pkts[0].hdr_len + payload;
	if (count > 1) {
		send.seg = (u16)pkts[0].payload_len;
		m->eth.nic.stats.tx_gso += (u32)count;
	}
	q->flying[slot] = true;
	q->shared->send[q->sent++ % MNIC_ENTRIES] = send;
	if (mnic_publish(&q->shared->send_ring, q->sent))
		message_ring_bell(q->bell);
}

static struct message_queue *queue_for(struct message *m,
				       const struct homa_addr *dst)
{
	u32 hash = homa_get_be32(dst->ip + 12) * 0x9e3779b1U >> 16;

	return &m->q[hash % m->n_queues];
}

void message_tx_held(void *arg, struct nic_path *path, const struct nic_tx *pkt,
		     int error)
{
	struct nic_ether *e = arg;
	struct message *m = message_of(&e->nic);
	struct message_queue *q;

	if (error)
		nic_ether_refuse(&m->eth, path, pkt, error, 0);
	else if (nic_ether_too_large(path, pkt))
		nic_ether_refuse(&m->eth, path, pkt, EMSGSIZE, path->mtu);
	else if (!message_connected(m))
		m->eth.nic.stats.tx_errors++;
	else if (q = queue_for(m, &pkt->dst),
		 path->state == NIC_PATH_READY && queue_room(m, q))
		put(m, q, path, pkt, 1);
	else
		m->eth.nic.stats.tx_no_neighbour++;
}

int message_tx(struct nic *nic, const struct nic_tx *pkts, int n)
{
	struct message *m = message_of(nic);
	int i, count;

	for (i = 0; i < n; i += count) {
		struct nic_path *path =
			nic_path_find(&m->eth.paths, &pkts[i].dst);
		struct message_queue *q;

		count = 1;
		if (unlikely(pkts[i].proto != NIC_HOMA)) {
			nic->stats.tx_errors++;
			continue;
		}
		if (unlikely(!path || path->state != NIC_PATH_READY)) {
			if (!nic_ether_tx_slow(&m->eth, path, &pkts[i], i))
				break;
			continue;
		}
		path->used = true;
		if (unlikely(nic_ether_too_large(path, &pkts[i]))) {
			nic_ether_refuse(&m->eth, path, &pkts[i], EMSGSIZE,
					 path->mtu);
			continue;
		}
		if (unlikely(!message_connected(m))) {
			nic->stats.tx_errors++;
			continue;
		}
		q = queue_for(m, &pkts[i].dst);
		if (!queue_room(m, q)) {
			if (!message_connected(m))
				continue;
			break;
		}
		count = together(m, &pkts[i], n - i, path->frame.len);
		put(m, q, path, &pkts[i], count);
	}
	return i;
}
