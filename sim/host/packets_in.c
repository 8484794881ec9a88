// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The way of packets in: the card's queue, NAPI, softirq; software.c has the
 * picture.
 */
#include "jobs.h"
#include "sim_transport.h"

#define NEXT_CORES 4u /* ATC'21: "the next few cores" */

/* May @pkt be in a unit with @last, the packet before it? */
static bool joins(const struct sim *sim, const struct sim_pkt *last,
		  const struct sim_pkt *pkt)
{
	if (sim_is_tcp(sim))
		return pkt->payload && last->payload && pkt->flow == last->flow;
	return pkt->msg && last->msg && pkt->msg_serial == last->msg_serial;
}

/* Returns the number of units of @job's packets: those that follow each other are one if @join. */
static u32 units_of(const struct sim *sim, const struct sim_job *job, bool join)
{
	const struct sim_pkt *pkt, *last = NULL;
	u64 bytes = 0;
	u32 units = 0;

	for (pkt = job->head; pkt; last = pkt, pkt = pkt->next) {
		bool joined = join && last && joins(sim, last, pkt) &&
			      bytes + pkt->payload <= sim_cost_of(sim, SIM_COST_UNIT);

		bytes = joined ? bytes + pkt->payload : pkt->payload;
		units += !joined;
	}
	return units;
}

/* Gives @pkt of a stream to the transport, and to the reader what it brings of a message that
 * is not complete then. */
static void stream_rx(struct sim *sim, struct sim_pkt *pkt)
{
	const struct sim_msg *msg = pkt->msg;
	const u64 serial = pkt->msg_serial;
	const u32 bytes = pkt->payload;

	sim->cfg.transport->rx(sim, &sim->hosts[pkt->dst], pkt);
	if (bytes && msg && msg->serial == serial && !msg->delivered)
		sim_software_read(sim, msg, bytes);
}

static void softirq_done(struct sim *sim, struct sim_work *work)
{
	struct sim_job *job = homa_container_of(work, struct sim_job, work);
	struct sim_pkt *pkt = job->head, *next;

	sim_job_count(sim, job);
	sim_job_free(sim, job);
	for (; pkt; pkt = next) {
		next = pkt->next;
		pkt->next = NULL;
		if (sim_is_tcp(sim))
			stream_rx(sim, pkt);
		else
			sim->cfg.transport->rx(sim, &sim->hosts[pkt->dst], pkt);
	}
}

/* Returns the core for a batch that NAPI made on @core. */
static u32 softirq_core(const struct sim *sim, u32 core)
{
	const u32 cores = sim->cfg.software.cores, first = core - core % cores;
	u32 i, best = core;

	for (i = 1; i <= NEXT_CORES && i < cores; i++) {
		u32 other = first + (core - first + i) % cores;

		if (best == core ||
		    sim->cores->core[other].irq_at < sim->cores->core[best].irq_at)
			best = other;
	}
	return best;
}

/* Has @core take in the packets from @head on, which a pass of NAPI on core @from took. */
static void softirq_start(struct sim *sim, struct sim_pkt *head, u32 core, u32 from)
{
	const bool join = sim_is_tcp(sim) || sim->cfg.software.offload & SIM_OFFLOAD_LRO;
	struct sim_job *job = sim_job_new(sim, core);

	if (!job)
		return;
	job->head = head;
	job->work.irq = true;
	job->work.done = softirq_done;
	job->cost[SIM_PART_SOFTIRQ] =
		units_of(sim, job, join) * sim_time_for(sim, SIM_COST_SOFTIRQ);
	if (job->core != from)
		job->cost[SIM_PART_SOFTIRQ] += sim_cost_of(sim, SIM_COST_HANDOFF) * SIM_NS;
	sim_job_start(sim, job);
}

/* Takes the packets of the first one's flow out of @head and returns them. */
static struct sim_pkt *flow_take(struct sim_pkt **head)
{
	struct sim_pkt *first = *head, **tail = &first, **rest = head, *pkt = *head;
	const u32 flow = first->flow;

	for (; pkt; pkt = pkt->next) {
		struct sim_pkt ***to = pkt->flow == flow ? &tail : &rest;

		**to = pkt;
		*to = &pkt->next;
	}
	*tail = NULL;
	*rest = NULL;
	return first;
}

/* Makes batches for the softirq of what a pass of NAPI on @core took: one, or one for each
 * flow. */
static void batches_start(struct sim *sim, struct sim_pkt *head, u32 core)
{
	if (!sim_is_tcp(sim)) {
		softirq_start(sim, head, softirq_core(sim, core), core);
		return;
	}
	while (head) {
		struct sim_pkt *some = flow_take(&head);

		softirq_start(sim, some,
			      sim_core_by_hash(sim, some->dst, ~(u64)some->flow), core);
	}
}

static void napi_ask(struct sim *sim, u32 core, bool again);

static void napi_done(struct sim *sim, struct sim_work *work)
{
	struct sim_job *job = homa_container_of(work, struct sim_job, work);
	struct sim_ring *ring = &sim->cores->ring[job->core];
	struct sim_pkt *head = job->head;
	const u32 core = job->core;

	sim_job_count(sim, job);
	sim_job_free(sim, job);
	ring->polled = false;
	if (ring->head)
		napi_ask(sim, core, true);
	batches_start(sim, head, core);
}

/* Takes what waits in the card's queue and returns how long that takes. */
static u64 napi_begin(struct sim *sim, struct sim_work *work)
{
	struct sim_job *job = homa_container_of(work, struct sim_job, work);
	struct sim_ring *ring = &sim->cores->ring[job->core];
	const u64 budget = sim_cost_of(sim, SIM_COST_BUDGET);
	struct sim_pkt *last = ring->head;
	u64 n = 1;

	job->head = ring->head;
	for (; n < budget && last->next; n++)
		last = last->next;
	ring->head = last->next;
	last->next = NULL;
	sim->cores->passes++;
	sim->cores->packets += n;
	job->cost[SIM_PART_NAPI] =
		sim_time_for(sim, SIM_COST_PASS) +
		units_of(sim, job, sim->cfg.software.offload & SIM_OFFLOAD_LRO) *
			sim_time_for(sim, SIM_COST_NAPI);
	if (!job->again)
		job->cost[SIM_PART_NAPI] += sim_cost_of(sim, SIM_COST_INTERRUPT) * SIM_NS;
	return sim_job_time(job);
}

static void napi_ask(struct sim *sim, u32 core, bool again)
{
	struct sim_job *job = sim_job_new(sim, core);

	if (!job)
		return;
	sim->cores->ring[core].polled = true;
	job->again = again;
	job->work.irq = true;
	job->work.begin = napi_begin;
	job->work.done = napi_done;
	sim_job_start(sim, job);
}

void sim_software_rx(struct sim *sim, struct sim_pkt *pkt)
{
	bool rss = sim->cfg.software.offload & SIM_OFFLOAD_RSS;
	u32 core = sim_core_by_hash(sim, pkt->dst, rss ? (u64)pkt->flow << 16 : pkt->src);
	struct sim_ring *ring = &sim->cores->ring[core];

	pkt->next = NULL;
	if (ring->head)
		ring->tail->next = pkt;
	else
		ring->head = pkt;
	ring->tail = pkt;
	if (!ring->polled)
		napi_ask(sim, core, false);
}
