// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Messages between applications of this host. They take the same way through
 * the engine as all others, so that they have the same semantics, over a link
 * whose wire is this function: a "packet" of up to 64 KiB is a header and a
 * pointer, and its payload is copied once, from the sender's memory into the
 * receiver's pool.
 */
#include "fast.h"
#include "homad_trace.h"

/* The most batches that are moved before other work gets its turn. */
#define ROUNDS 8

static void record(struct homad_thread *t, struct homad_port *port,
		   const struct homa_tx_desc *desc, const u8 *payload)
{
	struct nic_tx tx = {
		.dst = desc->dst,
		.prio = desc->prio,
		.hdr = desc->hdr,
		.hdr_len = desc->hdr_len,
		.payload = payload,
		.payload_len = desc->length,
	};

	homad_trace_tx(t, port, HOMAD_TRACE_LOCAL, &tx);
}

static const u8 *payload_of(const struct homa_tx_desc *desc)
{
	const struct homad_rpc *priv =
		desc->rpc ? homa_rpc_priv(desc->rpc) : NULL;

	return priv && priv->out ? priv->out + desc->offset : NULL;
}

static int batch(struct homad_thread *t, struct homad_port *port)
{
	int i, n = 0;

	while (n < HOMAD_BATCH &&
	       homa_tx(&t->ctx, port->link, 1, &t->descs[n]) == HOMA_TX_PACKET)
		n++;
	if (n == 0)
		return 0;
	for (i = 0; i < n; i++) {
		struct homa_tx_desc *desc = &t->descs[i];
		struct homa_rx_pkt *pkt = &t->pkts[i];

		pkt->data = desc->hdr;
		pkt->len = desc->hdr_len + desc->length;
		pkt->src = &desc->dst; /* both ends have the same address */
		pkt->prio = desc->prio;
		if (unlikely(t->trace))
			record(t, port, desc, payload_of(desc));
	}
	homad_refill(t);
	homa_rx(&t->ctx, port->link, t->pkts, (u32)n);
	for (i = 0; i < n; i++) {
		struct homa_tx_desc *desc = &t->descs[i];
		struct homa_rx_pkt *pkt = &t->pkts[i];

		if (likely(pkt->verdict == HOMA_RX_MESSAGE)) {
			homad_message(t, port, pkt,
				      payload_of(desc) + pkt->skip -
					      desc->hdr_len);
		} else if (likely(pkt->verdict == HOMA_RX_DATA)) {
			homad_copy_payload(pkt, payload_of(desc) + pkt->skip -
							desc->hdr_len);
			homa_rx_copied(&t->ctx, pkt);
		}
		homa_tx_done(&t->ctx, desc, 0);
	}
	homa_rx_flush(&t->ctx);
	for (i = 0; i < n; i++)
		if (unlikely(t->pkts[i].verdict == HOMA_RX_NO_LISTENER)) {
			const u8 *hdr = t->descs[i].hdr;

			homa_icmp(&t->ctx, &t->descs[i].dst, homa_get_be16(hdr),
				  homa_get_be16(hdr + 2),
				  homa_get_be64(hdr + 20), HOMA_ENOTCONN);
		}
	return n;
}

int homad_local(struct homad_thread *t, struct homad_port *port)
{
	int i, n, total = 0;

	for (i = 0; i < ROUNDS; i++) {
		n = batch(t, port);
		if (!n)
			break;
		total += n;
	}
	t->counters.local_packets += (u64)total;
	return total;
}
