// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Packets in: a batch from the nic through the engine, payload copied once,
 * straight from the packet to the receive region where the application will
 * read it.
 */
#include <errno.h>
#include "embedded.h"

static void copy_payload(struct homa_emb *e, struct homa_rx_pkt *pkt)
{
	const u8 *src = (const u8 *)pkt->data + pkt->skip;
	u32 offset = pkt->offset, left = pkt->length;

	while (left) {
		u32 room, n;
		size_t place = homa_rx_place(pkt->rpc, offset, &room);

		n = homa_min_u32(left, room);
		/* The engine's arithmetic, checked where it would hurt. */
		if (unlikely(n == 0 || place + n > e->region_size))
			return;
		memcpy(e->region + place, src, n);
		src += n;
		offset += n;
		left -= n;
	}
}

int homa_emb_rx(struct homa_emb *e)
{
	int i, n;

	n = nic_rx(e->nic, e->rx, HOMA_EMB_BATCH);
	if (n <= 0)
		return 0;
	for (i = 0; i < n; i++) {
		struct homa_rx_pkt *pkt = &e->pkts[i];

		homa_prefetch(e->rx[i].data);
		pkt->data = e->rx[i].data;
		pkt->len = e->rx[i].len;
		pkt->src = &e->rx[i].src;
		pkt->prio = e->rx[i].prio;
	}
	homa_emb_refill(e);
	homa_rx(&e->ctx, e->link, e->pkts, (u32)n);
	for (i = 0; i < n; i++) {
		struct homa_rx_pkt *pkt = &e->pkts[i];

		if (likely(pkt->verdict == HOMA_RX_DATA)) {
			copy_payload(e, pkt);
			homa_rx_copied(&e->ctx, pkt);
		} else if (unlikely(pkt->verdict == HOMA_RX_NO_LISTENER)) {
			nic_port_unreachable(e->nic, &e->rx[i]);
		}
	}
	nic_rx_release(e->nic, e->rx, n);
	homa_rx_flush(&e->ctx);
	return n;
}

/* How the engine calls what an ICMP message reports. */
static int verdict_of(int error)
{
	return error == ECONNREFUSED	? HOMA_ENOTCONN :
	       error == EPROTONOSUPPORT ? HOMA_EPROTONOSUPPORT :
	       error == EMSGSIZE	? EMSGSIZE :
					  HOMA_EHOSTUNREACH;
}

void homa_emb_icmp(struct homa_emb *e)
{
	struct nic_error errors[8];
	int i, n;

	n = nic_errors(e->nic, errors, 8);
	for (i = 0; i < n; i++) {
		/* Messages under way keep their packet size, so this one ends
		 * too; the next one fits. */
		if (errors[i].error == EMSGSIZE && errors[i].mtu)
			homa_path_mtu(&e->ctx, e->link, &errors[i].dst,
				      errors[i].mtu);
		homa_icmp(&e->ctx, &errors[i].dst, errors[i].sport,
			  errors[i].dport, errors[i].sender_id,
			  verdict_of(errors[i].error));
	}
}
