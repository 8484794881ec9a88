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

#include "jobs.h"

const char *const sim_part_names[SIM_PARTS] = { "send", "reply",   "recv", "wake",
						"napi", "softirq", "pacer" };

static void job_arrives(struct sim *sim, struct sim_event *ev)
{
	sim_job_start(sim, homa_container_of(ev, struct sim_job, later));
}

/* ---- system calls ---- */

/* Returns the core of the thread at @host that sends or receives @msg. */
static u32 app_core(const struct sim *sim, u32 host, const struct sim_msg *msg)
{
	return sim_core_by_hash(sim, host,
				msg->request ? msg->request->serial : msg->serial);
}

static void call_done(struct sim *sim, struct sim_work *work)
{
	struct sim_job *job = homa_container_of(work, struct sim_job, work);
	struct sim_msg *msg = job->msg;
	sim_msg_fn then = job->then;

	sim_job_count(sim, job);
	sim_job_free(sim, job);
	then(sim, msg);
}

static struct sim_job *call_new(struct sim *sim, u32 host, struct sim_msg *msg,
				sim_msg_fn then)
{
	struct sim_job *job = sim_job_new(sim, app_core(sim, host, msg));

	if (!job)
		return NULL;
	job->msg = msg;
	job->then = then;
	job->work.done = call_done;
	return job;
}

void sim_software_send(struct sim *sim, struct sim_msg *msg, sim_msg_fn then)
{
	struct sim_job *job = call_new(sim, msg->src, msg, then);

	if (!job)
		return;
	job->cost[msg->request ? SIM_PART_REPLY : SIM_PART_SEND] =
		sim_time_for(sim, SIM_COST_SEND) + sim_time_for(sim, SIM_COST_UNIT_OUT) +
		sim_copy_time(sim, msg->length);
	sim_job_start(sim, job);
}

/* Does the thread on @core sleep? A busy thread sees its next message by itself. */
static bool asleep(const struct sim *sim, const struct sim_core *core)
{
	if (core->head[0] || (core->running && !core->running->irq))
		return false;
	return sim->now - core->app_at >= sim_cost_of(sim, SIM_COST_POLL) * SIM_NS;
}

void sim_software_recv(struct sim *sim, struct sim_msg *msg, sim_msg_fn then)
{
	struct sim_job *job = call_new(sim, msg->dst, msg, then);

	if (!job)
		return;
	job->cost[SIM_PART_RECV] =
		sim_time_for(sim, SIM_COST_RECV) + sim_copy_time(sim, msg->length);
	if (!asleep(sim, &sim->cores->core[job->core])) {
		sim_job_start(sim, job);
		return;
	}
	job->cost[SIM_PART_WAKE] = sim_time_for(sim, SIM_COST_WAKE);
	job->later.fn = job_arrives;
	sim_event_add(sim->agenda, &job->later,
		      sim->now + sim_cost_of(sim, SIM_COST_SLEEP) * SIM_NS);
}

/* ---- packets out ---- */

static u64 tx_insns(const struct sim *sim, const struct sim_pkt *pkt)
{
	const u64 unit = sim_cost_of(sim, SIM_COST_UNIT_OUT);
	u64 insns = 0;

	if (!pkt->payload)
		return unit; /* control packets are units of their own */
	if (!(sim->cfg.software.offload & SIM_OFFLOAD_LSO))
		insns = sim_cost_of(sim, SIM_COST_SEGMENT);
	/* The system call has paid for the first unit's way. */
	if (pkt->offset)
		insns += unit * pkt->payload / sim_cost_of(sim, SIM_COST_UNIT);
	return insns;
}

void sim_software_tx(struct sim *sim, const struct sim_pkt *pkt)
{
	const u64 flow = pkt->msg ? pkt->msg_serial : pkt->flow;
	struct sim_job *job = sim_job_new(sim, sim_core_by_hash(sim, pkt->src, flow));

	if (!job)
		return;
	job->cost[SIM_PART_PACER] = sim_time_of(sim, tx_insns(sim, pkt));
	job->work.irq = true;
	job->work.done = sim_job_done;
	sim_job_start(sim, job);
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
	struct sim_job *job, *next;

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
