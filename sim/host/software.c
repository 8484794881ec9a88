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
 *
 * With the kernel's TCP (SIM_STACK_TCP) a pass is one batch for each flow, and
 * a flow's softirq core is always the same, by hash; packets of a flow in a row
 * are joined there (GRO). The sender copies a message unit by unit, so only the
 * first unit delays its first packet, and the reader copies what has come, so a
 * long message's copy is over soon after its last packet.
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

/* Has @core copy @bytes for an application, with nothing that waits for it. */
static struct sim_job *copy_new(struct sim *sim, u32 core, enum sim_part part, u64 bytes)
{
	struct sim_job *job = sim_job_new(sim, core);

	if (!job)
		return NULL;
	job->cost[part] = sim_copy_time(sim, bytes);
	job->work.done = sim_job_done;
	return job;
}

void sim_software_send(struct sim *sim, struct sim_msg *msg, sim_msg_fn then)
{
	const enum sim_part part = msg->request ? SIM_PART_REPLY : SIM_PART_SEND;
	struct sim_job *job = call_new(sim, msg->src, msg, then), *rest;
	u64 bytes = msg->length;

	if (!job)
		return;
	if (sim_is_tcp(sim))
		bytes = homa_min_u64(bytes, sim_cost_of(sim, SIM_COST_UNIT));
	job->cost[part] = sim_time_for(sim, SIM_COST_SEND) +
			  sim_time_for(sim, SIM_COST_UNIT_OUT) + sim_copy_time(sim, bytes);
	sim_job_start(sim, job);
	if (bytes == msg->length)
		return;
	rest = copy_new(sim, job->core, part, msg->length - bytes);
	if (rest)
		sim_job_start(sim, rest);
}

/* Does the thread on @core sleep? A busy thread sees its next message by itself. */
static bool asleep(const struct sim *sim, const struct sim_core *core)
{
	if (core->head[0] || (core->running && !core->running->irq))
		return false;
	return sim->now - core->app_at >= sim_cost_of(sim, SIM_COST_POLL) * SIM_NS;
}

/* Has an application's thread begin @job. If it sleeps, it is woken for it; if another job has
 * woken it just now, that wake-up serves this one, too. */
static void thread_starts(struct sim *sim, struct sim_job *job)
{
	struct sim_core *core = &sim->cores->core[job->core];

	if (sim->now >= core->wake_at) {
		if (!asleep(sim, core)) {
			sim_job_start(sim, job);
			return;
		}
		job->cost[SIM_PART_WAKE] = sim_time_for(sim, SIM_COST_WAKE);
		core->wake_at = sim->now + sim_cost_of(sim, SIM_COST_SLEEP) * SIM_NS;
	}
	job->later.fn = job_arrives;
	sim_event_add(sim->agenda, &job->later, core->wake_at);
}

void sim_software_recv(struct sim *sim, struct sim_msg *msg, sim_msg_fn then)
{
	struct sim_job *job = call_new(sim, msg->dst, msg, then);
	u64 bytes = msg->length;

	if (!job)
		return;
	/* What came before the last packet was read when it came. */
	if (sim_is_tcp(sim))
		bytes = homa_min_u64(bytes, sim->cfg.mtu);
	job->cost[SIM_PART_RECV] =
		sim_time_for(sim, SIM_COST_RECV) + sim_copy_time(sim, bytes);
	thread_starts(sim, job);
}

void sim_software_read(struct sim *sim, const struct sim_msg *msg, u64 bytes)
{
	struct sim_job *job =
		copy_new(sim, app_core(sim, msg->dst, msg), SIM_PART_RECV, bytes);

	if (job)
		thread_starts(sim, job);
}

u64 sim_software_alone(const struct sim *sim, u32 length)
{
	static const enum sim_cost once[] = { SIM_COST_SEND,	SIM_COST_UNIT_OUT,
					      SIM_COST_PASS,	SIM_COST_NAPI,
					      SIM_COST_SOFTIRQ, SIM_COST_RECV };
	const struct sim_software *soft = &sim->cfg.software;
	u64 insns = 0, ns = sim_cost_of(sim, SIM_COST_INTERRUPT);
	u32 i;

	for (i = 0; i < HOMA_ARRAY_SIZE(once); i++)
		insns += sim_is_tcp(sim) ? sim_costs[once[i]].value[SIM_STACK_HOMA] :
					   soft->cost[once[i]];
	if (soft->cores > 1)
		ns += sim_cost_of(sim, SIM_COST_HANDOFF);
	return sim_time_of(sim, insns) + 2 * sim_copy_time(sim, length) + ns * SIM_NS;
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
	const struct sim_msg *msg = pkt->msg;
	struct sim_job *job;
	u32 core;

	if (msg && msg->serial == pkt->msg_serial)
		core = app_core(sim, pkt->src, msg);
	else
		core = sim_core_by_hash(sim, pkt->src, pkt->flow);
	job = sim_job_new(sim, core);
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
