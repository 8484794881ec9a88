// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Packets out: the engine is asked for packets only as long as the nic has
 * room, so that the shortest message wins at the last moment, and a batch
 * goes to the nic in one call. Payload is copied by the nic, from the
 * message's private copy.
 */
#include "embedded.h"

static int segments(struct homa_emb *e, const struct homa_tx_desc *desc, int at)
{
	const struct homa_emb_rpc *priv =
		desc->rpc ? homa_rpc_priv(desc->rpc) : NULL;

	return homa_packets_out(desc, priv ? priv->out : NULL, 0, &e->tx[at],
				&e->headers[at], HOMA_EMB_TX_BATCH - at);
}

/* Gives the nic @n packets of @count descriptors. Returns how many it took. */
static int transmit(struct homa_emb *e, const u8 *packets, int count, int n)
{
	int sent = nic_tx(e->nic, e->tx, n);

	homa_packets_done(&e->ctx, e->descs, packets, count, e->tx, n, sent,
			  nic_tx_unsent(e->nic));
	return sent;
}

int homa_emb_tx(struct homa_emb *e)
{
	u8 packets[HOMA_EMB_TX_BATCH];
	enum homa_tx_result result = HOMA_TX_PACKET;
	int total = 0, sent;

	e->deferred = 0;
	e->ctx.tx_link = NULL;
	e->tx_at = HOMA_NEVER;
	e->tx_blocked = false;
	while (result == HOMA_TX_PACKET) {
		int count = 0, n = 0;
		int room = nic_tx_room(e->nic);

		if (room > HOMA_EMB_TX_BATCH)
			room = HOMA_EMB_TX_BATCH;
		if (room <= 0) {
			e->tx_blocked = true;
			break;
		}
		while (n < room) {
			struct homa_tx_desc *desc = &e->descs[count];
			u32 segs =
				homa_min_u32(e->info->max_segs, (u32)(room - n));

			result = homa_tx(&e->ctx, e->link, segs, desc);
			if (result != HOMA_TX_PACKET)
				break;
			packets[count] = (u8)segments(e, desc, n);
			n += packets[count++];
		}
		if (result == HOMA_TX_WAIT)
			e->tx_at = e->descs[count].not_before;
		/* What a full nic did not take is no work, or nobody would ever sleep. */
		sent = n ? transmit(e, packets, count, n) : 0;
		total += sent;
		if (sent < n) {
			e->tx_blocked = true;
			break;
		}
	}
	if (total)
		nic_flush(e->nic);
	return total;
}
