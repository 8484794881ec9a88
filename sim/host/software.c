// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The ways of messages and packets through a host's cores, as ATC'21 (Sections
 * 4.1 and 4.2) describes Homa/Linux.
 *
 *	send	application core: system call, copy, first unit to the card
 *	later	the message's core, as an interrupt: packets that grants release
 *	in	card -> NAPI core (by hash) -> softirq core (the one of the next
 *		four that was not used for longest) -> transport
 *	recv	application core: wake-up if its thread sleeps, system call, copy
 *
 * All messages of an RPC belong to one thread at each end, and so to one core,
 * by hash. Nothing knows whether that core is busy with packets of others: such
 * hot spots are what the model is for.
 */
#include <errno.h>
#include <stdlib.h>

#include "core.h"
#include "sim_transport.h"
#include "software.h"

#define NEXT_CORES 4u /* ATC'21: "the next few cores" */

const char *const sim_part_names[SIM_PARTS] = { "send", "reply",   "recv", "wake",
						"napi", "softirq", "pacer" };

/**
 * struct job - work of a host's software
 * @work: what a core does.
 * @later: event at which the work reaches its core, if that takes time.
 * @next: links a free job into sim_cores.free_jobs.
 * @all: links all jobs for the end of the run.
 * @core: index of its core among all.
 * @cost: time that it takes, by part, ps.
 * @msg: message, with a reference; NULL: it is packets' work.
 * @then: what is called with @msg when the work is done.
 * @head: packets.
 * @again: the pass follows another one, without an interrupt.
 */
struct job {
	struct sim_work work;
	struct sim_event later;
	struct job *next, *all;
	u32 core;
	u64 cost[SIM_PARTS];
	struct sim_msg *msg;
	sim_msg_fn then;
	struct sim_pkt *head;
	bool again;
};

/**
 * struct ring - a queue of the network card, one per core
 * @head: first packet that waits.
 * @tail: last packet that waits.
 * @polled: a pass of NAPI is under way or has been asked for.
 */
struct ring {
	struct sim_pkt *head, *tail;
	bool polled;
};

/**
 * struct sim_cores - the cores of all hosts
 * @core: cores, host by host.
 * @ring: the queue of each core.
 * @free_jobs: jobs that are free.
 * @all_jobs: all jobs.
 * @used: time in the measured window, by part, ps.
 * @passes: number of passes of NAPI.
 * @packets: number of packets that they took.
 */
struct sim_cores {
	struct sim_core *core;
	struct ring *ring;
	struct job *free_jobs, *all_jobs;
	u64 used[SIM_PARTS];
	u64 passes, packets;
};

static inline u64 cost_of(const struct sim *sim, enum sim_cost cost)
{
	return sim->cfg.software.cost[cost];
}

/* Returns the time of @insns instructions, ps. */
static u64 time_of(const struct sim *sim, u64 insns)
{
	return insns * SIM_US / cost_of(sim, SIM_COST_MIPS);
}

static u64 time_for(const struct sim *sim, enum sim_cost cost)
{
	return time_of(sim, cost_of(sim, cost));
}

static u64 copy_time(const struct sim *sim, u64 bytes)
{
	return time_of(sim, bytes / cost_of(sim, SIM_COST_COPY));
}

static u32 core_by_hash(const struct sim *sim, u32 host, u64 word)
{
	const u32 cores = sim->cfg.software.cores;
	u64 h = (word ^ (u64)host << 48) * 0x9e3779b97f4a7c15ull;

	h = (h ^ h >> 32) * 0xd6e8feb86659fd93ull;
	return host * cores + (u32)((h >> 32) * cores >> 32);
}

/* ---- jobs ---- */

static struct job *job_new(struct sim *sim, u32 core)
{
	struct sim_cores *cores = sim->cores;
	struct job *job = cores->free_jobs, *all;

	if (job) {
		cores->free_jobs = job->next;
	} else {
		job = malloc(sizeof(*job));
		if (!job) {
			sim->stop = true; /* better no result than a wrong one */
			return NULL;
		}
		job->all = cores->all_jobs;
		cores->all_jobs = job;
	}
	all = job->all;
	*job = (struct job){ .all = all, .core = core };
	return job;
}

static void job_free(struct sim *sim, struct job *job)
{
	job->next = sim->cores->free_jobs;
	sim->cores->free_jobs = job;
}

static u64 job_time(const struct job *job)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < SIM_PARTS; i++)
		sum += job->cost[i];
	return sum;
}

/* Counts what @job took, if the window is open. */
static void job_count(struct sim *sim, const struct job *job)
{
	const u64 from = sim->cfg.warmup_ps;
	u32 i;

	if (sim->now < from || sim->now - from >= sim->cfg.measure_ps)
		return;
	for (i = 0; i < SIM_PARTS; i++)
		sim->cores->used[i] += job->cost[i];
}

static void job_start(struct sim *sim, struct job *job)
{
	job->work.left = job_time(job);
	sim_core_add(sim, &sim->cores->core[job->core], &job->work);
}

static void job_arrives(struct sim *sim, struct sim_event *ev)
{
	job_start(sim, homa_container_of(ev, struct job, later));
}

/* ---- system calls ---- */

/* Returns the core of the thread at @host that sends or receives @msg. */
static u32 app_core(const struct sim *sim, u32 host, const struct sim_msg *msg)
{
	return core_by_hash(sim, host, msg->request ? msg->request->serial : msg->serial);
}

static void call_done(struct sim *sim, struct sim_work *work)
{
	struct job *job = homa_container_of(work, struct job, work);
	struct sim_msg *msg = job->msg;
	sim_msg_fn then = job->then;

	job_count(sim, job);
	job_free(sim, job);
	then(sim, msg);
}

static struct job *call_new(struct sim *sim, u32 host, struct sim_msg *msg, sim_msg_fn then)
{
	struct job *job = job_new(sim, app_core(sim, host, msg));

	if (!job)
		return NULL;
	job->msg = msg;
	job->then = then;
	job->work.done = call_done;
	return job;
}

void sim_software_send(struct sim *sim, struct sim_msg *msg, sim_msg_fn then)
{
	struct job *job = call_new(sim, msg->src, msg, then);

	if (!job)
		return;
	job->cost[msg->request ? SIM_PART_REPLY : SIM_PART_SEND] =
		time_for(sim, SIM_COST_SEND) + time_for(sim, SIM_COST_UNIT_OUT) +
		copy_time(sim, msg->length);
	job_start(sim, job);
}

/* Does the thread on @core sleep? A busy thread sees its next message by itself. */
static bool asleep(const struct sim *sim, const struct sim_core *core)
{
	if (core->head[0] || (core->running && !core->running->irq))
		return false;
	return sim->now - core->app_at >= cost_of(sim, SIM_COST_POLL) * SIM_NS;
}

void sim_software_recv(struct sim *sim, struct sim_msg *msg, sim_msg_fn then)
{
	struct job *job = call_new(sim, msg->dst, msg, then);

	if (!job)
		return;
	job->cost[SIM_PART_RECV] =
		time_for(sim, SIM_COST_RECV) + copy_time(sim, msg->length);
	if (!asleep(sim, &sim->cores->core[job->core])) {
		job_start(sim, job);
		return;
	}
	job->cost[SIM_PART_WAKE] = time_for(sim, SIM_COST_WAKE);
	job->later.fn = job_arrives;
	sim_event_add(sim->agenda, &job->later,
		      sim->now + cost_of(sim, SIM_COST_SLEEP) * SIM_NS);
}

/* ---- packets out ---- */

static void packets_done(struct sim *sim, struct sim_work *work)
{
	struct job *job = homa_container_of(work, struct job, work);

	job_count(sim, job);
	job_free(sim, job);
}

static u64 tx_insns(const struct sim *sim, const struct sim_pkt *pkt)
{
	const u64 unit = cost_of(sim, SIM_COST_UNIT_OUT);
	u64 insns = 0;

	if (!pkt->payload)
		return unit; /* control packets are units of their own */
	if (!(sim->cfg.software.offload & SIM_OFFLOAD_LSO))
		insns = cost_of(sim, SIM_COST_SEGMENT);
	/* The system call has paid for the first unit's way. */
	if (pkt->offset)
		insns += unit * pkt->payload / cost_of(sim, SIM_COST_UNIT);
	return insns;
}

void sim_software_tx(struct sim *sim, const struct sim_pkt *pkt)
{
	const u64 flow = pkt->msg ? pkt->msg_serial : pkt->flow;
	struct job *job = job_new(sim, core_by_hash(sim, pkt->src, flow));

	if (!job)
		return;
	job->cost[SIM_PART_PACER] = time_of(sim, tx_insns(sim, pkt));
	job->work.irq = true;
	job->work.done = packets_done;
	job_start(sim, job);
}

/* ---- packets in ---- */

/* Returns the number of units of @job's packets: with lro one of an RPC's packets in a row. */
static u32 units_of(const struct sim *sim, const struct job *job)
{
	const struct sim_pkt *pkt, *last = NULL;
	u64 bytes = 0;
	u32 units = 0;

	for (pkt = job->head; pkt; last = pkt, pkt = pkt->next) {
		bool joined = sim->cfg.software.offload & SIM_OFFLOAD_LRO && last &&
			      pkt->msg && last->msg &&
			      pkt->msg_serial == last->msg_serial &&
			      bytes + pkt->payload <= cost_of(sim, SIM_COST_UNIT);

		bytes = joined ? bytes + pkt->payload : pkt->payload;
		units += !joined;
	}
	return units;
}

static void softirq_done(struct sim *sim, struct sim_work *work)
{
	struct job *job = homa_container_of(work, struct job, work);
	struct sim_pkt *pkt = job->head, *next;

	job_count(sim, job);
	job_free(sim, job);
	for (; pkt; pkt = next) {
		next = pkt->next;
		pkt->next = NULL;
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

static void softirq_start(struct sim *sim, struct sim_pkt *head, u32 from)
{
	struct job *job = job_new(sim, softirq_core(sim, from));

	if (!job)
		return;
	job->head = head;
	job->work.irq = true;
	job->work.done = softirq_done;
	job->cost[SIM_PART_SOFTIRQ] = units_of(sim, job) * time_for(sim, SIM_COST_SOFTIRQ);
	if (job->core != from)
		job->cost[SIM_PART_SOFTIRQ] += cost_of(sim, SIM_COST_HANDOFF) * SIM_NS;
	job_start(sim, job);
}

static void napi_ask(struct sim *sim, u32 core, bool again);

static void napi_done(struct sim *sim, struct sim_work *work)
{
	struct job *job = homa_container_of(work, struct job, work);
	struct ring *ring = &sim->cores->ring[job->core];
	struct sim_pkt *head = job->head;
	const u32 core = job->core;

	job_count(sim, job);
	job_free(sim, job);
	ring->polled = false;
	if (ring->head)
		napi_ask(sim, core, true);
	softirq_start(sim, head, core);
}

/* Takes what waits in the card's queue and returns how long that takes. */
static u64 napi_begin(struct sim *sim, struct sim_work *work)
{
	struct job *job = homa_container_of(work, struct job, work);
	struct ring *ring = &sim->cores->ring[job->core];
	const u64 budget = cost_of(sim, SIM_COST_BUDGET);
	struct sim_pkt *last = ring->head;
	u64 n = 1;

	job->head = ring->head;
	for (; n < budget && last->next; n++)
		last = last->next;
	ring->head = last->next;
	last->next = NULL;
	sim->cores->passes++;
	sim->cores->packets += n;
	job->cost[SIM_PART_NAPI] = time_for(sim, SIM_COST_PASS) +
				   units_of(sim, job) * time_for(sim, SIM_COST_NAPI);
	if (!job->again)
		job->cost[SIM_PART_NAPI] += cost_of(sim, SIM_COST_INTERRUPT) * SIM_NS;
	return job_time(job);
}

static void napi_ask(struct sim *sim, u32 core, bool again)
{
	struct job *job = job_new(sim, core);

	if (!job)
		return;
	sim->cores->ring[core].polled = true;
	job->again = again;
	job->work.irq = true;
	job->work.begin = napi_begin;
	job->work.done = napi_done;
	job_start(sim, job);
}

void sim_software_rx(struct sim *sim, struct sim_pkt *pkt)
{
	bool rss = sim->cfg.software.offload & SIM_OFFLOAD_RSS;
	u32 core = core_by_hash(sim, pkt->dst, rss ? (u64)pkt->flow << 16 : pkt->src);
	struct ring *ring = &sim->cores->ring[core];

	pkt->next = NULL;
	if (ring->head)
		ring->tail->next = pkt;
	else
		ring->head = pkt;
	ring->tail = pkt;
	if (!ring->polled)
		napi_ask(sim, core, false);
}

/* ---- the run ---- */

int sim_software_new(struct sim *sim)
{
	const size_t n = (size_t)sim->cfg.hosts * sim->cfg.software.cores;
	struct sim_cores *cores = calloc(1, sizeof(*cores));

	sim->cores = cores;
	if (!cores)
		return -ENOMEM;
	cores->core = calloc(n, sizeof(*cores->core));
	cores->ring = calloc(n, sizeof(*cores->ring));
	return cores->core && cores->ring ? 0 : -ENOMEM;
}

void sim_software_free(struct sim *sim)
{
	struct sim_cores *cores = sim->cores;
	struct job *job, *next;

	if (!cores)
		return;
	for (job = cores->all_jobs; job; job = next) {
		next = job->all;
		free(job);
	}
	free(cores->core);
	free(cores->ring);
	free(cores);
	sim->cores = NULL;
}

double sim_software_use(const struct sim *sim, enum sim_part part)
{
	const double whole = (double)sim->cfg.measure_ps * sim->cfg.hosts;

	return whole > 0 ? (double)sim->cores->used[part] / whole : 0;
}

double sim_software_batch(const struct sim *sim)
{
	const struct sim_cores *cores = sim->cores;

	return cores->passes ? (double)cores->packets / (double)cores->passes : 0;
}
