// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Packets in: a batch from a nic through the engine, payload copied once,
 * from the packet into the receiver's own pool.
 */
#include "fast.h"
#include "homad_tcp.h"
#include "homad_trace.h"
#include "tcp_steer.h"

void homad_copy_payload(const struct homa_rx_pkt *pkt, const u8 *payload)
{
	const struct homad_app *app =
		*(struct homad_app **)homa_sock_priv(homa_rpc_sock(pkt->rpc));

	homa_payload_in(pkt, payload, app->pool, app->pool_bytes);
}

int homad_rx(struct homad_thread *t, struct homad_port *port)
{
	int i, n, all = 0;

	n = nic_rx(port->nic, t->rx, HOMAD_BATCH);
	if (n <= 0)
		return 0;
	if (unlikely(t->steering) && !port->encap) {
		all = n;
		n = homad_tcp_steer(t, port, n);
		if (!n)
			return all;
	} else if (unlikely(t->tcp) && !port->encap) {
		all = n;
		n = homad_tcp_take(t, port, n);
		if (!n)
			return all;
	}
	for (i = 0; i < n; i++) {
		struct homa_rx_pkt *pkt = &t->pkts[i];

		homa_prefetch(t->rx[i].data);
		pkt->data = t->rx[i].data;
		pkt->len = t->rx[i].len;
		pkt->src = &t->rx[i].src;
		pkt->prio = t->rx[i].prio;
		homad_trace_rx(t, port, &t->rx[i]);
	}
	homad_refill(t);
	homa_rx(&t->ctx, port->link, t->pkts, (u32)n);
	for (i = 0; i < n; i++) {
		struct homa_rx_pkt *pkt = &t->pkts[i];

		if (likely(pkt->verdict == HOMA_RX_MESSAGE)) {
			homad_message(t, port, pkt,
				      (const u8 *)pkt->data + pkt->skip);
		} else if (likely(pkt->verdict == HOMA_RX_DATA)) {
			homad_copy_payload(pkt,
					   (const u8 *)pkt->data + pkt->skip);
			homa_rx_copied(&t->ctx, pkt);
		} else if (unlikely(pkt->verdict == HOMA_RX_NO_LISTENER)) {
			nic_port_unreachable(port->nic, &t->rx[i]);
		} else {
			homad_bulk_heard(t, port, &t->rx[i]);
		}
	}
	nic_rx_release(port->nic, t->rx, n);
	homa_rx_flush(&t->ctx);
	return all ? all : n;
}

void homad_icmp(struct homad_thread *t, struct homad_port *port)
{
	struct nic_error errors[8];
	int i, n;

	n = nic_errors(port->nic, errors, 8);
	for (i = 0; i < n; i++) {
		if (errors[i].proto == NIC_TCP) {
			if (t->tcp)
				homad_tcp_icmp(t, port, &errors[i]);
			continue;
		}
		homa_packets_icmp(&t->ctx, port->nic, &errors[i]);
	}
}
