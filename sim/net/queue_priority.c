// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What commodity switches have at a port: eight queues, served strictly by
 * priority and each in order of arrival. What does not fit the buffer is
 * dropped on arrival, whatever its priority. A packet that allows it is marked
 * when the port holds cfg.ecn_bytes or more as it arrives (DCTCP, SIGCOMM
 * 2010: the length at this instant, not an average).
 */
#include "net_impl.h"

static void priority_put(struct sim *sim, struct sim_port *port, struct sim_pkt *pkt)
{
	if (unlikely(port->limit || sim->cfg.shared_bytes) &&
	    !sim_port_room(sim, port, pkt->wire)) {
		sim_drop(sim, port, pkt);
		return;
	}
	if (sim->cfg.ecn_bytes && port->bytes >= sim->cfg.ecn_bytes &&
	    pkt->flags & SIM_ECN_CAPABLE) {
		pkt->flags |= SIM_ECN_CE;
		port->stats.marks++;
	}
	sim_fifo_put(&port->fifo[pkt->prio], pkt);
	port->busy_levels |= (u8)(1u << pkt->prio);
	sim_port_account(sim, port, pkt->wire, 1);
}

static struct sim_pkt *priority_get(struct sim *sim, struct sim_port *port)
{
	struct sim_pkt *pkt;
	u32 level;

	if (!port->busy_levels)
		return NULL;
	level = sim_port_level(port);
	pkt = sim_fifo_get(&port->fifo[level]);
	if (!port->fifo[level].head)
		port->busy_levels &= (u8)~(1u << level);
	sim_port_account(sim, port, -(s64)pkt->wire, -1);
	return pkt;
}

const struct sim_queue sim_queue_priority = { "priority", priority_put, priority_get };
