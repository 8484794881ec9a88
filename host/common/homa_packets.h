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

/* most bytes of a header, as in struct homa_tx_desc */
#define HOMA_HEADER_ROOM 96

/**
 * homa_packets_out() - turn a descriptor of one or several segments into packets
 * @message: first byte of the outgoing message; NULL: nothing but headers.
 * @owner: the value of nic_tx.owner in all packets.
 * @tx: receives the packets; it has room for @most.
 * @headers: receives the headers of all packets but the first, whose header is @desc's;
 *	it has room for @most.
 * Returns how many packets were made.
 */
static inline int homa_packets_out(const struct homa_tx_desc *desc,
				   const u8 *message, u32 owner,
				   struct nic_tx *tx,
				   u8 (*headers)[HOMA_HEADER_ROOM], int most)
{
	u32 skip = 0;
	int n = 0;

	do {
		u32 left = desc->length - skip;

		tx[n].dst = desc->dst;
		tx[n].prio = desc->prio;
		tx[n].owner = owner;
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

/* Tells the engine which packets of the @count descriptors have not been sent. The other
 * parameters are those of homa_packets_done(). */
HOMA_RARE static void homa_packets_failed(struct homa_ctx *ctx,
					  struct homa_tx_desc *descs,
					  const u8 *packets, int count,
					  const struct nic_tx *tx, int taken,
					  u64 unsent)
{
	int i, at = 0, end = 0;

	for (i = 0; i < count; i++) {
		int err = 0;

		for (end += packets[i]; at < end && !err; at++) {
			if (at >= taken) {
				err = -HOMA_ENOBUFS;
			} else if (unsent >> at & 1) {
				err = -HOMA_EHOSTUNREACH;
			} else {
				/* Descriptors describe only what has not been sent. */
				descs[i].offset += tx[at].payload_len;
				descs[i].length -= tx[at].payload_len;
			}
		}
		at = end;
		homa_tx_done(ctx, &descs[i], err);
	}
}

/**
 * homa_packets_done() - tell the engine what became of a batch
 * @descs: the descriptors, @count of them.
 * @packets: how many packets of @tx each descriptor was made into.
 * @tx: the packets, @n of them in all.
 * @taken: how many of them nic_tx() took.
 * @unsent: which of those were not sent after all, a bit for each; from nic_tx_unsent().
 */
static inline void homa_packets_done(struct homa_ctx *ctx,
				     struct homa_tx_desc *descs,
				     const u8 *packets, int count,
				     const struct nic_tx *tx, int n, int taken,
				     u64 unsent)
{
	int i;

	if (unlikely(taken < n || unsent)) {
		homa_packets_failed(ctx, descs, packets, count, tx, taken,
				    unsent);
		return;
	}
	for (i = 0; i < count; i++)
		homa_tx_done(ctx, &descs[i], 0);
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
		/* A mistake of the engine must not write outside of the region. */
		if (unlikely(n == 0 || place + n > size))
			return;
		memcpy(region + place, payload, n);
		payload += n;
		offset += n;
		left -= n;
	}
}

/** homa_icmp_errno() - the engine's errno for what an ICMP message reports as @error. */
static inline int homa_icmp_errno(int error)
{
	return error == ECONNREFUSED	? HOMA_ENOTCONN :
	       error == EPROTONOSUPPORT ? HOMA_EPROTONOSUPPORT :
	       error == EMSGSIZE	? EMSGSIZE :
					  HOMA_EHOSTUNREACH;
}

/**
 * homa_packets_icmp() - tell the engine of an error that @nic has heard of one of its packets
 *
 * A path that is too narrow also changes what @nic believes about the path, if the engine has
 * such a message under way. Messages under way keep their packet size, so this one ends too;
 * the next one fits.
 */
static inline void homa_packets_icmp(struct homa_ctx *ctx, struct nic *nic,
				     const struct nic_error *error)
{
	if (error->error == EMSGSIZE && error->mtu &&
	    homa_icmp_mtu(ctx, &error->dst, error->sport, error->dport,
			  error->sender_id, error->mtu))
		nic_believe_mtu(nic, &error->dst, error->mtu);
	homa_icmp(ctx, &error->dst, error->sport, error->dport,
		  error->sender_id, homa_icmp_errno(error->error));
}

#endif
