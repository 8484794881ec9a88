// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * NDP's port (Handley et al., SIGCOMM 2017, section 3.1): a very short queue
 * of data packets and a queue of headers. A data packet that finds the first
 * one full loses its payload: a coin decides between the arriving packet and
 * the one at the tail, which breaks the phase effects of many synchronised
 * senders. What is left, 64 bytes, joins the headers, together with acks,
 * nacks and pulls. Headers go first, but after ten of them in a row one
 * waiting data packet is sent, so that a storm of headers cannot starve all
 * data.
 *
 * fifo[DATA] and fifo[HEADERS] hold them. A trimmed packet gets the highest
 * priority, as what it now is. If the port has a byte limit a header that does
 * not fit is dropped (the paper would return it to its sender).
 */
#include <errno.h>
#include <stdlib.h>

#include "net_impl.h"

#define DATA 0
#define HEADERS 1
#define HEADERS_IN_A_ROW 10

static void trim_header(struct sim *sim, struct sim_port *port, struct sim_pkt *pkt)
{
	if (!sim_port_room(sim, port, pkt->wire)) {
		sim_drop(sim, port, pkt);
		return;
	}
	sim_fifo_put(&port->fifo[HEADERS], pkt);
	sim_port_account(sim, port, pkt->wire, 1);
}

static void trim(struct sim *sim, struct sim_port *port, struct sim_pkt *pkt)
{
	sim->counts.wire_trimmed += pkt->wire - SIM_MIN_WIRE;
	port->stats.trims++;
	pkt->wire = SIM_MIN_WIRE;
	pkt->flags |= SIM_TRIMMED;
	pkt->prio = SIM_PRIORITIES - 1;
	trim_header(sim, port, pkt);
}

/* A search from the head is cheap, because the queue has few packets. */
static struct sim_pkt *trim_take_tail(struct sim *sim, struct sim_port *port)
{
	struct sim_fifo *fifo = &port->fifo[DATA];
	struct sim_pkt **link = &fifo->head, *pkt;

	while ((*link)->next)
		link = &(*link)->next;
	pkt = *link;
	*link = NULL;
	fifo->tail = link;
	fifo->bytes -= pkt->wire;
	fifo->packets--;
	sim_port_account(sim, port, -(s64)pkt->wire, -1);
	return pkt;
}

static void trim_put(struct sim *sim, struct sim_port *port, struct sim_pkt *pkt)
{
	struct sim_fifo *data = &port->fifo[DATA];

	if (pkt->flags & (SIM_CONTROL | SIM_TRIMMED)) {
		trim_header(sim, port, pkt);
		return;
	}
	if (data->packets && data->packets >= sim->cfg.trim_packets &&
	    homa_prng_next(&sim->rng_net) >> 63) {
		struct sim_pkt *tail = trim_take_tail(sim, port);

		sim_fifo_put(data, pkt);
		sim_port_account(sim, port, pkt->wire, 1);
		trim(sim, port, tail);
		return;
	}
	if (data->packets >= sim->cfg.trim_packets || !sim_port_room(sim, port, pkt->wire)) {
		trim(sim, port, pkt);
		return;
	}
	sim_fifo_put(data, pkt);
	sim_port_account(sim, port, pkt->wire, 1);
}

static struct sim_pkt *trim_get(struct sim *sim, struct sim_port *port)
{
	struct sim_fifo *data = &port->fifo[DATA], *headers = &port->fifo[HEADERS];
	u8 *row = &sim->net->headers_in_row[port->index];
	struct sim_pkt *pkt;

	if (headers->head && (!data->head || *row < HEADERS_IN_A_ROW)) {
		*row = data->head ? *row + 1 : 0;
		pkt = sim_fifo_get(headers);
	} else if (data->head) {
		*row = 0;
		pkt = sim_fifo_get(data);
	} else {
		return NULL;
	}
	sim_port_account(sim, port, -(s64)pkt->wire, -1);
	return pkt;
}

const struct sim_queue sim_queue_trim = { "trim", trim_put, trim_get };
