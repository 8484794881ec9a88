/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Between the engine's descriptors and verdicts and a nic's packets: what the
 * hosts in user space do alike. Inline, because it is on the way of each packet.
 */
#ifndef HOMA_PACKETS_H
#define HOMA_PACKETS_H

#include <errno.h>
#include "homa_engine.h"
#include "nic.h"

#define HOMA_HEADER_ROOM 96 /* as in struct homa_tx_desc */

/**
 * homa_packets_out() - turn a descriptor of one or several segments into packets
 * @message: first byte of the outgoing message; NULL: nothing but headers.
 * @tx, @headers: room for @most of them; the first packet's header stays in @desc.
 * Returns how many were made.
 */
static inline int homa_packets_out(const struct homa_tx_desc *desc,
				   const u8 *message, struct nic_tx *tx,
				   u8 (*headers)[HOMA_HEADER_ROOM], int most)
{
	u32 skip = 0;
	int n = 0;

	do {
		u32 left = desc->length - skip;

		tx[n].dst = desc->dst;
		tx[n].prio = desc->prio;
		if (skip == 0) {
			tx[n].hdr = desc->hdr;
			tx[n].hdr_len = desc->hdr_len;
		} else {
			tx[n].hdr = headers[n];
			tx[n].hdr_len = homa_tx_segment(desc, skip, headers[n]);
		}
		tx[n].payload = NULL;
		tx[n].payload_len = 0;
		if (message && left) {
			tx[n].payload = message + desc->offset + skip;
			tx[n].payload_len = homa_min_u32(left, desc->seg_size);
		}
		skip += tx[n++].payload_len;
	} while (skip < desc->length && n < most);
	return n;
}

/**
 * homa_packets_done() - tell the engine what became of @desc
 * @tx: its packets, from @first on, below @end, in the batch of which the nic took @taken.
 * @unsent: nic_tx_unsent().
 */
static inline void homa_packets_done(struct homa_ctx *ctx,
				     struct homa_tx_desc *desc,
				     const struct nic_tx *tx, int first, int end,
				     int taken, u64 unsent)
{
	int err = 0;

	if (likely(end <= taken && !unsent)) {
		homa_tx_done(ctx, desc, 0);
		return;
	}
	for (; first < end; first++) {
		if (first >= taken)
			err = -HOMA_ENOBUFS;
		else if (unsent >> first & 1)
			err = -HOMA_EHOSTUNREACH;
		if (err)
			break;
		/* What has been sent is done. */
		desc->offset += tx[first].payload_len;
		desc->length -= tx[first].payload_len;
	}
	homa_tx_done(ctx, desc, err);
}

/** homa_payload_in() - copy a HOMA_RX_DATA packet's @payload to where the receiver
 *  will read it, in its region of @size bytes. */
static inline void homa_payload_in(const struct homa_rx_pkt *pkt,
				   const u8 *payload, u8 *region, size_t size)
{
	u32 offset = pkt->offset, left = pkt->length;

	while (left) {
		u32 room, n;
		size_t place = homa_rx_place(pkt->rpc, offset, &room);

		n = homa_min_u32(left, room);
		/* The engine's arithmetic, checked where it would hurt. */
		if (unlikely(n == 0 || place + n > size))
			return;
		memcpy(region + place, payload, n);
		payload += n;
		offset += n;
		left -= n;
	}
}

/** homa_icmp_errno() - how the engine calls what an ICMP message reports. */
static inline int homa_icmp_errno(int error)
{
	return error == ECONNREFUSED	? HOMA_ENOTCONN :
	       error == EPROTONOSUPPORT ? HOMA_EPROTONOSUPPORT :
	       error == EMSGSIZE	? EMSGSIZE :
					  HOMA_EHOSTUNREACH;
}

#endif
