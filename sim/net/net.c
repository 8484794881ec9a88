// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Packets on their way. This and the agenda are where a run spends its time,
 * so a hop is meant to cost one event: the packet's own, which is its arrival
 * at the next node. A port needs an event of its own ("free") only when
 * something waits for it; a port that falls idle is found to be so, by its
 * busy_until, when the next packet comes. Such a packet does not see a queue
 * at all. A host's port asks its transport for the next packet when it is
 * free, and goes to sleep when there is none until somebody kicks it.
 *
 * Which port a packet takes at the next node is settled when it is sent, and
 * again only if links have failed meanwhile: so the agenda can prefetch that
 * port, which in a large network is in no cache, before the packet is there.
 *
 * Delays. delay_ps of a port is what passes between the wire and the next
 * node's decision: propagation, then a switch's fixed delay or a host's
 * receive delay; for a host's port also its send delay, which is latency and
 * keeps nothing busy.
 *
 * Cut through. A switch decides when 64 bytes are there. It begins to send at
 * once if its output is not faster than the link the packet comes from, else
 * when the whole packet is there, for otherwise the output would run dry in
 * the middle of it. Hosts always wait for the last bit.
 *
 * Shaped. A token bucket, as Linux' HTB: it may send when it owes nothing, and a
 * pause saves up a burst at most. So after a pause the second packet begins up to
 * a burst before the time of the first is over; in a row none does.
 *
 * Blame. A packet that finds the port sending something that would be served
 * later if both were waiting, loses the rest of that transmission to it: the
 * preemption lag. All other waiting is queueing.
 *
 * Failures. A link that fails takes what is being sent on it and what waits
 * for it with it; switches find new ways at once. A link that loses packets
 * does so independently for each, and it has used the wire.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net_impl.h"
#include "software.h"

void sim_net_stats_reset(struct sim *sim)
{
	u32 i;

	for (i = 0; i < sim->num_ports; i++) {
		struct sim_port *port = &sim->ports[i];

		memset(&port->stats, 0, sizeof(port->stats));
		port->stats.peak = port->bytes;
		port->account_at = sim_ns(sim->now);
	}
}

/* ---- sending ---- */

static void pkt_at_host(struct sim *sim, struct sim_event *ev);
static void pkt_at_switch(struct sim *sim, struct sim_event *ev);

static void port_lose(struct sim *sim, struct sim_port *port, struct sim_pkt *pkt)
{
	port->stats.lost++;
	sim_drop(sim, port, pkt);
}

/* Returns when the switch that @pkt goes to can begin to send it on. */
static inline u64 pkt_ready_at(const struct sim *sim, const struct sim_port *port,
			       const struct sim_pkt *pkt)
{
	if (likely(!sim->cfg.cut_through) || sim->cfg.shaped || !pkt->to ||
	    pkt->to->ps_per_byte < port->ps_per_byte)
		return pkt->tail_at;
	return pkt->head_at + SIM_CUT_BYTES * port->ps_per_byte;
}

/* Returns when the link of @port may take another packet after one of @wire bytes from now on. */
static inline u64 port_busy_until(const struct sim *sim, const struct sim_port *port,
				  u32 wire)
{
	u64 from = sim->now, saved;

	if (unlikely(sim->cfg.shaped) && sim->cfg.burst_ps) {
		saved = from > sim->cfg.burst_ps ? from - sim->cfg.burst_ps : 0;
		from = port->busy_until > saved ? port->busy_until : saved;
	}
	return from + (u64)wire * port->ps_per_byte;
}

/* Has @port look again for what is to be sent when the link takes another packet. */
static inline void port_free_later(struct sim *sim, struct sim_port *port)
{
	u64 at = port->busy_until > sim->now ? port->busy_until : sim->now;

	sim_event_add(sim->agenda, &port->free, at);
}

/* Starts to send @pkt on the link of @port. */
static inline void port_transmit(struct sim *sim, struct sim_port *port, struct sim_pkt *pkt)
{
	const u64 now = sim->now;
	const u64 done = port_busy_until(sim, port, pkt->wire);
	const u64 there = unlikely(sim->cfg.shaped) ? now : done;

	if (port->level == SIM_HOST_DOWN && sim->hosts[port->peer].withheld &&
	    now > port->busy_until)
		sim_downlink_starts(sim, &sim->hosts[port->peer]);
	port->busy_until = done;
	port->sending_prio = pkt->prio;
	if (sim->cfg.queue == SIM_QUEUE_RANK)
		port->sending_rank = pkt->rank;
	port->stats.tx_packets++;
	port->stats.tx_bytes += pkt->wire;
	port->stats.prio_bytes[pkt->prio] += pkt->wire;
	sim->counts.hops++;
	pkt->hops++;
	pkt->via = port;
	pkt->head_at = now + port->delay_ps;
	pkt->tail_at = there + port->delay_ps;
	if (unlikely(sim->cfg.loss_ppm) &&
	    homa_prng_below(&sim->rng_net, 1000000) < sim->cfg.loss_ppm) {
		port_lose(sim, port, pkt);
		return;
	}
	if (port->level == SIM_HOST_DOWN) {
		pkt->ev.fn = pkt_at_host;
		pkt->ev.soon = NULL;
		sim_event_add(sim->agenda, &pkt->ev, pkt->tail_at);
		return;
	}
	/* The next port is chosen now, so that it can be prefetched. */
	pkt->to = sim_route(sim, port->peer, pkt);
	pkt->ev.fn = pkt_at_switch;
	pkt->ev.soon = pkt->to;
	sim_event_add(sim->agenda, &pkt->ev, pkt_ready_at(sim, port, pkt));
}

/* ---- ports of switches ---- */

/* Has the port look again for packets that wait when the one under way is out. */
static inline void port_wait(struct sim *sim, struct sim_port *port)
{
	if (port->busy_levels)
		port->free.soon = port->fifo[sim_port_level(port)].head;
	port_free_later(sim, port);
}

static void port_next(struct sim *sim, struct sim_port *port)
{
	struct sim_pkt *pkt = port->queue->get(sim, port);

	if (!pkt)
		return;
	pkt->wait_ps += sim->now - pkt->queued_at;
	port_transmit(sim, port, pkt);
	if (port->packets)
		port_wait(sim, port);
}

static void port_free(struct sim *sim, struct sim_event *ev)
{
	struct sim_port *port = homa_container_of(ev, struct sim_port, free);

	if (!port->packets || port->down)
		return;
	/* A link that failed and came up again may already be sending. */
	if (unlikely(sim->now < port->busy_until))
		sim_event_add(sim->agenda, &port->free, port->busy_until);
	else
		port_next(sim, port);
}

/* Would the packet under way be served after @pkt if both were waiting? */
static inline bool port_lags(const struct sim *sim, const struct sim_port *port,
			     const struct sim_pkt *pkt)
{
	if (sim->cfg.queue == SIM_QUEUE_RANK)
		return port->sending_rank > pkt->rank;
	return port->sending_prio < pkt->prio;
}

void sim_port_put(struct sim *sim, struct sim_port *port, struct sim_pkt *pkt)
{
	const u64 now = sim->now;

	if (unlikely(port->down)) {
		port_lose(sim, port, pkt);
		return;
	}
	if (!port->packets && now >= port->busy_until) {
		port_transmit(sim, port, pkt);
		return;
	}
	pkt->queued_at = now;
	if (port->busy_until > now && port_lags(sim, port, pkt))
		pkt->lag_ps += port->busy_until - now;
	port->queue->put(sim, port, pkt);
	if (!sim_event_pending(&port->free) && port->packets)
		port_free_later(sim, port);
}

/* ---- ports of hosts ---- */

static void host_pull(struct sim *sim, struct sim_port *port)
{
	struct sim_pkt *pkt;
	struct sim_tap *tap;

	sim->net->pulling = port;
	pkt = port->queue->get(sim, port);
	sim->net->pulling = NULL;
	if (!pkt)
		return;
	pkt->sent_at = sim->now;
	sim->counts.pkts_sent++;
	sim->counts.wire_sent += pkt->wire;
	for (tap = sim->taps; tap; tap = tap->next)
		if (tap->sent)
			tap->sent(tap->arg, sim, pkt);
	if (unlikely(sim->cores))
		sim_software_tx(sim, pkt);
	port_transmit(sim, port, pkt);
	port_free_later(sim, port);
}

static void host_free(struct sim *sim, struct sim_event *ev)
{
	struct sim_port *port = homa_container_of(ev, struct sim_port, free);

	if (!port->down)
		host_pull(sim, port);
}

void sim_port_kick(struct sim *sim, struct sim_port *port)
{
	/* A pending free event will pull the next packet when it runs. */
	if (sim_event_pending(&port->free) || port->down || sim->net->pulling == port)
		return;
	if (sim->now < port->busy_until)
		sim_event_add(sim->agenda, &port->free, port->busy_until);
	else if (port->level == SIM_HOST_UP)
		host_pull(sim, port);
	else if (port->packets)
		port_next(sim, port);
}

static void host_put(struct sim *sim, struct sim_port *port, struct sim_pkt *pkt)
{
	/* No code hands packets to a host's port, which pulls them. */
	sim_drop(sim, port, pkt);
}

static struct sim_pkt *host_get(struct sim *sim, struct sim_port *port)
{
	return sim->cfg.transport->tx(sim, &sim->hosts[port->node]);
}

const struct sim_queue sim_queue_host = { "host", host_put, host_get };

/* ---- arriving ---- */

/* Did the link fail while @pkt was being sent on it? */
static bool pkt_was_cut(const struct sim *sim, const struct sim_pkt *pkt)
{
	const struct sim_port *via = pkt->via;
	u64 failed = sim->net->failed_at[via->index];

	return failed != SIM_NEVER && failed >= pkt->head_at - via->delay_ps &&
	       failed < pkt->tail_at - via->delay_ps;
}

static void pkt_at_host(struct sim *sim, struct sim_event *ev)
{
	struct sim_pkt *pkt = homa_container_of(ev, struct sim_pkt, ev);
	struct sim_host *host = &sim->hosts[pkt->dst];
	struct sim_tap *tap;

	if (unlikely(sim->cfg.num_failures) && pkt_was_cut(sim, pkt)) {
		port_lose(sim, pkt->via, pkt);
		return;
	}
	sim->counts.pkts_received++;
	sim->counts.wire_received += pkt->wire;
	for (tap = sim->taps; tap; tap = tap->next)
		if (tap->received)
			tap->received(tap->arg, sim, pkt);
	if (unlikely(sim->cores))
		sim_software_rx(sim, pkt);
	else
		sim->cfg.transport->rx(sim, host, pkt);
}

static void pkt_at_switch(struct sim *sim, struct sim_event *ev)
{
	struct sim_pkt *pkt = homa_container_of(ev, struct sim_pkt, ev);

	if (unlikely(sim->cfg.num_failures)) {
		if (pkt_was_cut(sim, pkt)) {
			port_lose(sim, pkt->via, pkt);
			return;
		}
		if (!pkt->to || pkt->to->down)
			pkt->to = sim_route(sim, pkt->via->peer, pkt);
		if (!pkt->to) {
			port_lose(sim, pkt->via, pkt);
			return;
		}
	}
	sim_port_put(sim, pkt->to, pkt);
}

/* ---- failures ---- */

static void routes_again(struct sim *sim)
{
	if (sim_routes_build(sim))
		sim->stop = true; /* out of memory: better no result than a wrong one */
}

static void link_begin(struct sim *sim, struct sim_event *ev)
{
	struct sim_link_failure *fail =
		homa_container_of(ev, struct sim_link_failure, begin);
	struct sim_pkt *pkt;
	u32 i;

	for (i = 0; i < 2; i++) {
		struct sim_port *port = &sim->ports[fail->ports[i]];

		sim->net->failed_at[port->index] = sim->now;
		sim->net->failures_now[port->index]++;
		port->down = true;
		if (port->level == SIM_HOST_UP)
			continue;
		while ((pkt = port->queue->get(sim, port)) != NULL)
			port_lose(sim, port, pkt);
	}
	routes_again(sim);
}

static void link_end(struct sim *sim, struct sim_event *ev)
{
	struct sim_link_failure *fail = homa_container_of(ev, struct sim_link_failure, end);
	u32 i;

	for (i = 0; i < 2; i++) {
		struct sim_port *port = &sim->ports[fail->ports[i]];

		if (--sim->net->failures_now[port->index] == 0)
			port->down = false;
	}
	routes_again(sim);
	for (i = 0; i < 2; i++)
		sim_port_kick(sim, &sim->ports[fail->ports[i]]);
}

static int failures_plan(struct sim *sim, char *err, size_t errlen)
{
	u32 i;

	for (i = 0; i < sim->cfg.num_failures; i++) {
		const struct sim_failure *f = &sim->cfg.failures[i];
		struct sim_link_failure *fail = &sim->net->failures[i];

		fail->ports[0] = sim_port_between(sim, f->node, f->peer);
		fail->ports[1] = sim_port_between(sim, f->peer, f->node);
		if (fail->ports[0] == SIM_NO_PORT || fail->ports[1] == SIM_NO_PORT) {
			snprintf(err, errlen,
				 "nodes %u and %u, whose link is to fail, have no link: hosts are 0 to %u, switches %u to %u",
				 f->node, f->peer, sim->net->hosts - 1, sim->net->hosts,
				 sim->num_nodes - 1);
			return -EINVAL;
		}
		if (f->until <= f->from) {
			snprintf(err, errlen,
				 "the failure of link %u-%u ends before it begins",
				 f->node, f->peer);
			return -EINVAL;
		}
		fail->begin.fn = link_begin;
		fail->end.fn = link_end;
		sim_event_add(sim->agenda, &fail->begin, f->from);
		if (f->until != SIM_NEVER)
			sim_event_add(sim->agenda, &fail->end, f->until);
	}
	return 0;
}

/* ---- building ---- */

int sim_queue_init(struct sim *sim, struct sim_port *port)
{
	u32 i;

	for (i = 0; i < SIM_PRIORITIES; i++)
		sim_fifo_init(&port->fifo[i]);
	if (port->queue == &sim_queue_rank)
		return sim_rank_init(sim, port);
	return 0;
}

void sim_queue_free(struct sim_port *port)
{
	if (port->queue == &sim_queue_rank)
		sim_rank_free(port);
}

static int ports_prepare(struct sim *sim)
{
	static const struct sim_queue *const queues[] = {
		[SIM_QUEUE_PRIORITY] = &sim_queue_priority,
		[SIM_QUEUE_RANK] = &sim_queue_rank,
		[SIM_QUEUE_TRIM] = &sim_queue_trim,
	};
	u32 i;

	for (i = 0; i < sim->num_ports; i++) {
		struct sim_port *port = &sim->ports[i];

		if (port->level == SIM_HOST_UP) {
			port->queue = &sim_queue_host;
			port->free.fn = host_free;
		} else {
			port->queue = queues[sim->cfg.queue];
			port->free.fn = port_free;
			port->limit = sim->cfg.port_bytes;
		}
		if (sim_queue_init(sim, port))
			return -ENOMEM;
		sim->net->failed_at[i] = SIM_NEVER;
	}
	return 0;
}

int sim_net_build(struct sim *sim, char *err, size_t errlen)
{
	int res;

	sim->net = calloc(1, sizeof(*sim->net));
	if (!sim->net) {
		snprintf(err, errlen, "out of memory");
		return -ENOMEM;
	}
	res = sim_topology_build(sim, err, errlen);
	if (res)
		return res;
	if (ports_prepare(sim) || sim_routes_build(sim)) {
		snprintf(err, errlen, "out of memory");
		return -ENOMEM;
	}
	return failures_plan(sim, err, errlen);
}

void sim_net_free(struct sim *sim)
{
	struct sim_net *net = sim->net;
	u32 i;

	if (!net)
		return;
	for (i = 0; i < sim->num_ports; i++)
		sim_queue_free(&sim->ports[i]);
	sim_pkts_free(net);
	sim_routes_free(net);
	free(net->host_edge);
	free(net->host_down);
	free(net->sw);
	free(net->first_port);
	free(net->adjacent);
	free(net->failed_at);
	free(net->failures_now);
	free(net->headers_in_row);
	free(net);
	free(sim->ports);
	free(sim->hosts);
	sim->net = NULL;
	sim->ports = NULL;
	sim->hosts = NULL;
}
