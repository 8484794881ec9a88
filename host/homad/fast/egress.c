// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Both transports on one link. While TCP has something to send by a device, its link says
 * before each packet of Homa's and each unit of TCP's whose turn it is (homa_link_turn());
 * its pacer counts the bytes of both, so the queue of the device stays short for both.
 * While TCP has nothing, Homa's packets go as ever.
 */
#include "fast.h"
#include "homad_tcp.h"

int homad_egress(struct homad_thread *t, struct homad_port *port)
{
	bool others = port->others;
	int n, total = 0;

	for (;;) {
		enum homa_sender turn;
		u64 later = HOMA_NEVER;

		port->others = homad_tcp_waits(t, port);
		/* When TCP has ceased to wait, homa_link_turn() is told so once. */
		if (!port->others && !others)
			return total + homad_tx(t, port);
		others = port->others;
		turn = homa_link_turn(&t->ctx, port->link, others, &later);
		if (turn == HOMA_TURN_WAIT || turn == HOMA_TURN_IDLE) {
			port->tx_at = later;
			port->tx_blocked = false;
			return total;
		}
		if (turn == HOMA_TURN_OWN) {
			n = homad_tx(t, port);
			total += n;
			if (!n || port->tx_blocked || port->tx_at != HOMA_NEVER)
				return total;
			continue;
		}
		port->tx_at = HOMA_NEVER;
		port->tx_blocked = false;
		total += homad_tcp_tx(t, port);
		if (port->tx_blocked)
			return total;
	}
}

void homad_egress_leave(struct homad_thread *t, struct homad_port *port)
{
	u64 later;

	if (port->others)
		homa_link_turn(&t->ctx, port->link, false, &later);
	port->others = false;
}

int homad_egress_share(struct homad_thread *t, void *arg)
{
	u32 i;

	(void)arg;
	for (i = 0; t->d->steering && i < t->num_ports; i++)
		if (!t->ports[i]->encap)
			homa_link_share(t->ports[i]->link,
					t->d->config.tcp_share);
	return 0;
}
