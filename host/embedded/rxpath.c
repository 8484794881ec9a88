// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Packets in: a batch from the nic through the engine, payload copied once,
 * straight from the packet to the receive region where the application will
 * read it.
 */
#include "embedded.h"

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
			homa_payload_in(pkt, (const u8 *)pkt->data + pkt->skip,
					e->region, e->region_size);
			homa_rx_copied(&e->ctx, pkt);
		} else if (unlikely(pkt->verdict == HOMA_RX_NO_LISTENER)) {
			nic_port_unreachable(e->nic, &e->rx[i]);
		}
	}
	nic_rx_release(e->nic, e->rx, n);
	homa_rx_flush(&e->ctx);
	return n;
}

void homa_emb_icmp(struct homa_emb *e)
{
	struct nic_error errors[8];
	int i, n;

	n = nic_errors(e->nic, errors, 8);
	for (i = 0; i < n; i++)
		homa_packets_icmp(&e->ctx, e->nic, &errors[i]);
}
