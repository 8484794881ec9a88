// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Packets out: the engine is asked for packets only as long as the nic has
 * room, so that the shortest message of all applications wins at the last
 * moment, and a batch goes to the nic in one call. Payload of long messages is
 * read from the application's memory now: what it changes there in between is
 * what the receiver gets, and no more than that.
 *
 * A message of one packet before which nothing waits need not go through the engine's
 * queue: its packet comes with it (homa_ctx.tx_now), and joins a batch that is sent when
 * the round's commands have been taken. So it is with one fast-path thread and without TCP,
 * which wants its share of the link.
 */
#include "fast.h"
#include "homad_trace.h"

static int segments(struct homad_thread *t, const struct homa_tx_desc *desc,
		    int at)
{
	const struct homad_rpc *priv =
		desc->rpc ? homa_rpc_priv(desc->rpc) : NULL;
	const u8 *message = NULL;
	u32 owner =
		/* no user: some answers go to peers whose packets were for nobody here */
		0;

	if (priv) {
		message = priv->out;
		owner = priv->app ? priv->app->uid + 1 : 0;
	}
	return homa_packets_out(desc, message, owner, &t->tx[at],
				&t->headers[at], HOMAD_TX_BATCH - at);
}

/* Hands @n packets of @count descriptors to the nic; returns how many it took. */
static int transmit(struct homad_thread *t, struct homad_port *port,
		    const u8 *packets, int count, int n)
{
	int i, sent = nic_tx(port->nic, t->tx, n);

	for (i = 0; i < sent; i++)
		homad_trace_tx(t, port, HOMAD_TRACE_TX, &t->tx[i]);
	homa_packets_done(&t->ctx, t->descs, packets, count, t->tx, n, sent,
			  nic_tx_unsent(port->nic));
	return sent;
}

/* Is it still Homa's turn to send, while TCP waits, too? */
static bool own_turn(struct homad_thread *t, struct homad_port *port)
{
	u64 later;

	return homa_link_turn(&t->ctx, port->link, true, &later) == HOMA_TURN_OWN;
}

/* ---- packets that the engine hands out with their message ---- */

struct homa_tx_desc *homad_tx_early(struct homad_thread *t,
				    struct homad_port *port)
{
	int room;

	if (!homa_plat_alone || unlikely(t->tcp) || !port->nic)
		return NULL;
	if (unlikely(t->early_port != port)) {
		homad_tx_early_end(t);
		room = port->tx_blocked ? 0 : nic_tx_room(port->nic);
		if (room <= 0)
			return NULL;
		t->early_port = port;
		t->early_room = room < HOMAD_TX_BATCH ? room : HOMAD_TX_BATCH;
	}
	return &t->descs[t->num_early];
}

void homad_tx_early_taken(struct homad_thread *t)
{
	t->counters.whole_out++;
	t->early[t->num_early] =
		(u8)segments(t, &t->descs[t->num_early], t->num_early);
	if (++t->num_early == t->early_room)
		homad_tx_early_end(t);
}

void homad_tx_early_end(struct homad_thread *t)
{
	struct homad_port *port = t->early_port;
	int n = t->num_early;

	t->early_port = NULL;
	t->num_early = 0;
	if (!n)
		return;
	port->unflushed = true;
	if (transmit(t, port, t->early, n, n) < n)
		port->tx_blocked = true;
}

/* ---- packets that wait in the engine ---- */

int homad_tx(struct homad_thread *t, struct homad_port *port)
{
	u8 packets[HOMAD_TX_BATCH];
	enum homa_tx_result result = HOMA_TX_PACKET;
	int total = 0, sent;

	port->tx_at = HOMA_NEVER;
	port->tx_blocked = false;
	while (result == HOMA_TX_PACKET) {
		int count = 0, n = 0;
		int room = nic_tx_room(port->nic);

		if (room > HOMAD_TX_BATCH)
			room = HOMAD_TX_BATCH;
		if (room <= 0) {
			port->tx_blocked = true;
			break;
		}
		while (n < room) {
			struct homa_tx_desc *desc = &t->descs[count];
			u32 segs = homa_min_u32(port->info->max_segs,
						(u32)(room - n));

			if (unlikely(port->others) && !own_turn(t, port)) {
				result = HOMA_TX_IDLE;
				break;
			}
			result = homa_tx(&t->ctx, port->link, segs, desc);
			if (result != HOMA_TX_PACKET)
				break;
			packets[count] = (u8)segments(t, desc, n);
			n += packets[count++];
		}
		if (result == HOMA_TX_WAIT)
			port->tx_at = t->descs[count].not_before;
		/* What a full nic did not take is no work, or the thread would never sleep. */
		sent = n ? transmit(t, port, packets, count, n) : 0;
		total += sent;
		if (sent < n) {
			port->tx_blocked = true;
			break;
		}
	}
	if (total || port->unflushed) {
		port->unflushed = false;
		nic_flush(port->nic);
	}
	return total;
}
