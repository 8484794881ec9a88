// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Receiving: a frame is copied out of its slot, which is empty again at once, and only the copy
 * is believed. A unit becomes, while it is copied, the packets that it was made of, each with its
 * whole header, as those of a bundle of UDP's GRO are handed out.
 */
#include <errno.h>
#include <string.h>

#include "homa_wire.h"
#include "message.h"

/* The DATA header up to its offset. */
#define HEADER (HOMA_DATA_HDR - 4u)

void message_post(struct message *m, struct message_queue *q)
{
	struct mnic_queue *shared = q->shared;
	int room = mnic_room(&shared->post_ring, q->posted);

	for (u32 slot = 0; slot < m->device->hello.slots && room > 0; slot++) {
		struct mnic_post post = { .slot = slot };

		if (q->theirs[slot])
			continue;
		q->theirs[slot] = true;
		shared->post[q->posted++ % MNIC_ENTRIES] = post;
		room--;
	}
	if (mnic_publish(&shared->post_ring, q->posted))
		message_ring_bell(q->bell);
}

static void release(struct message *m, u32 buf)
{
	if (!--m->refs[buf])
		m->free[m->n_free++] = buf;
}

/* Hand out packets of the current unit; returns how many. */
static int hand_out(struct message *m, struct nic_rx *pkts, int n)
{
	struct message_unit *unit = &m->unit;
	u8 *bytes = m->bufs + (size_t)unit->buf * MESSAGE_BUF_BYTES;
	int got = 0;

	while (got < n && unit->at < unit->end) {
		struct nic_rx *pkt = &pkts[got++];

		*pkt = unit->first;
		pkt->data = bytes + unit->at;
		pkt->len = homa_min_u32(unit->seg, unit->end - unit->at);
		pkt->token = unit->buf;
		unit->at += pkt->len;
		m->refs[unit->buf]++;
		m->eth.nic.stats.rx_packets++;
		m->eth.nic.stats.rx_bytes += pkt->len;
		if (unit->seg < unit->end - (u32)(unit->first.data - bytes))
			m->eth.nic.stats.rx_gro++;
		if (unit->at == unit->end)
			release(m, unit->buf);
	}
	return got;
}

/* Write the packets of a unit, one behind the other, to @to; returns the number of bytes. @head is
 * the header of each, @from what is behind it in the slot. Of that only payload is copied: the
 * device could change the offsets meanwhile. */
static u32 expand(const u8 *head, const u8 *from, const struct mnic_piece *list,
		  u32 pieces, u8 *to)
{
	u8 *at = to;

	for (u32 i = 0; i < pieces; i++) {
		memcpy(at, head, HEADER);
		homa_put_be32(at + offsetof(struct homa_wire_common, sequence),
			      list[i].offset);
		at[offsetof(struct homa_wire_common, doff)] = HOMA_DOFF_DATA << 4;
		homa_put_be32(at + HEADER, list[i].offset);
		memcpy(at + HOMA_DATA_HDR, from + 4, list[i].length);
		from += 4 + list[i].length;
		at += HOMA_DATA_HDR + list[i].length;
	}
	return (u32)(at - to);
}

/* Take the unit in @slot apart, into the buffer @buf. */
static bool take_unit(struct message *m, const struct mnic_got *got,
		      const u8 *slot, u32 buf)
{
	struct mnic_piece list[MNIC_PIECES_MAX];
	struct message_unit *unit = &m->unit;
	u8 *out = m->bufs + (size_t)buf * MESSAGE_BUF_BYTES;
	const u8 *homa = out + got->at;
	u8 head[HEADER];

	memcpy(list, slot + MNIC_LIST_AT, got->pieces * sizeof(*list));
	memcpy(out, slot, homa_min_u32(got->len, got->at + HEADER));
	if (nic_frame_parse(out, got->len, &unit->first) ||
	    unit->first.data != homa || unit->first.proto != NIC_HOMA ||
	    homa[offsetof(struct homa_wire_common, type)] != HOMA_DATA ||
	    !mnic_unit_ok(slot + got->at, got->len - got->at, list, got->pieces) ||
	    unit->first.len != HOMA_DATA_HDR + list[0].length ||
	    !nic_ether_for_us(&m->eth, &unit->first))
		return false;
	memcpy(head, homa, HEADER);
	unit->buf = buf;
	unit->first.data = out;
	unit->seg = HOMA_DATA_HDR + list[0].length;
	unit->at = 0;
	unit->end = expand(head, slot + got->at + HEADER, list, got->pieces, out);
	return true;
}

static bool take_frame(struct message *m, const struct mnic_got *got,
		       const u8 *slot, u32 buf)
{
	struct message_unit *unit = &m->unit;
	u8 *copy = m->bufs + (size_t)buf * MESSAGE_BUF_BYTES;

	memcpy(copy, slot, got->len);
	if (nic_frame_parse(copy, got->len, &unit->first) ||
	    unit->first.proto != NIC_HOMA ||
	    !nic_ether_for_us(&m->eth, &unit->first))
		return false;
	unit->buf = buf;
	unit->at = (u32)(unit->first.data - copy);
	unit->seg = unit->first.len;
	unit->end = unit->at + unit->first.len;
	return true;
}

/* Copy what the device says it received to a buffer of ours, and make it the current unit. */
static void take(struct message *m, const struct message_queue *q,
		 const struct mnic_got *got)
{
	const struct message_device *d = m->device;
	const u8 *slot = d->memory + mnic_slot_at(&d->hello, (u32)(q - d->q),
						  true, got->slot);
	u32 buf = m->free[--m->n_free];
	bool ok;

	m->unit.at = m->unit.end = 0;
	m->refs[buf] = 1;
	ok = got->pieces > 1 ? take_unit(m, got, slot, buf) :
			       take_frame(m, got, slot, buf);
	if (!ok) {
		m->eth.nic.stats.rx_malformed++;
		m->unit.at = m->unit.end = 0;
		release(m, buf);
	}
}

/* Receive of one queue up to @n packets. Returns how many, or -1 if the device breaks the rules. */
static int rx_queue(struct message *m, struct message_queue *q,
		    struct nic_rx *pkts, int n)
{
	struct mnic_queue *shared = q->shared;
	int out = 0, waiting = mnic_waiting(&shared->got_ring, q->got);

	if (waiting <= 0)
		return waiting;
	while (waiting-- > 0 && out < n && m->n_free) {
		struct mnic_got got = shared->got[q->got % MNIC_ENTRIES];

		if (!mnic_got_ok(&got, m->device->hello.slots) ||
		    !q->theirs[got.slot])
			return -1;
		take(m, q, &got);
		q->got++;
		q->theirs[got.slot] = false;
		out += hand_out(m, pkts + out, n - out);
	}
	mnic_consumed(&shared->got_ring, q->got);
	message_post(m, q);
	return out;
}

int message_take(struct message *m, struct nic_rx *pkts, int n)
{
	int got = 0;

	if (unlikely(nic_loop_waiting(&m->eth.loop))) {
		got = nic_loop_rx(&m->eth.loop, pkts, n);
		for (int i = 0; i < got; i++) {
			pkts[i].token |= MESSAGE_TOKEN_LOOP;
			m->eth.nic.stats.rx_packets++;
			m->eth.nic.stats.rx_bytes += pkts[i].len;
		}
	}
	got += hand_out(m, pkts + got, n - got);
	for (u32 i = 0; message_connected(m) && i < m->n_queues; i++) {
		struct message_queue *q = &m->q[m->next_queue];
		int more = 0;

		m->next_queue = (m->next_queue + 1) % m->n_queues;
		message_reap(m, q);
		if (got < n && message_connected(m))
			more = rx_queue(m, q, pkts + got, n - got);
		if (more < 0)
			message_break(m);
		else
			got += more;
	}
	return got;
}

void message_rx_release(struct nic *nic, const struct nic_rx *pkts, int n)
{
	struct message *m = message_of(nic);

	for (int i = 0; i < n; i++) {
		if (pkts[i].token & MESSAGE_TOKEN_LOOP)
			nic_loop_release(&m->eth.loop, (u32)pkts[i].token);
		else
			release(m, (u32)pkts[i].token);
	}
}

bool message_rx_waiting(struct message *m)
{
	bool waiting = nic_loop_waiting(&m->eth.loop) || m->unit.at < m->unit.end;

	for (u32 i = 0; message_connected(m) && i < m->n_queues; i++) {
		struct message_queue *q = &m->q[i];

		if (!mnic_sleep(&q->shared->got_ring, q->got))
			waiting = true;
		/* Completions matter only if somebody may wait for room. */
		if (q->n_free < m->device->hello.slots &&
		    !mnic_sleep(&q->shared->done_ring, q->done))
			waiting = true;
	}
	return waiting;
}
