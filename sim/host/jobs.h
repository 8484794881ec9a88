/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the files of a host's software share: its cores, their work, what work
 * costs. A job is counted and ends with its work; all are freed with the run.
 *
 * Written by: the one thread that runs the simulation.
 */
#ifndef SIM_JOBS_H
#define SIM_JOBS_H

#include "core.h"
#include "software.h"

/**
 * struct sim_job - work of a host's software
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
struct sim_job {
	struct sim_work work;
	struct sim_event later;
	struct sim_job *next, *all;
	u32 core;
	u64 cost[SIM_PARTS];
	struct sim_msg *msg;
	sim_msg_fn then;
	struct sim_pkt *head;
	bool again;
};

/**
 * struct sim_ring - a queue of the network card, one per core
 * @head: first packet that waits.
 * @tail: last packet that waits.
 * @polled: a pass of NAPI is under way or has been asked for.
 */
struct sim_ring {
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
	struct sim_ring *ring;
	struct sim_job *free_jobs, *all_jobs;
	u64 used[SIM_PARTS];
	u64 passes, packets;
};

static inline u64 sim_cost_of(const struct sim *sim, enum sim_cost cost)
{
	return sim->cfg.software.cost[cost];
}

/* Returns the time of @insns instructions, ps. */
static inline u64 sim_time_of(const struct sim *sim, u64 insns)
{
	return insns * SIM_US / sim_cost_of(sim, SIM_COST_MIPS);
}

static inline u64 sim_time_for(const struct sim *sim, enum sim_cost cost)
{
	return sim_time_of(sim, sim_cost_of(sim, cost));
}

static inline u64 sim_copy_time(const struct sim *sim, u64 bytes)
{
	return sim_time_of(sim, bytes / sim_cost_of(sim, SIM_COST_COPY));
}

static inline u32 sim_core_by_hash(const struct sim *sim, u32 host, u64 word)
{
	const u32 cores = sim->cfg.software.cores;
	u64 h = (word ^ (u64)host << 48) * 0x9e3779b97f4a7c15ull;

	h = (h ^ h >> 32) * 0xd6e8feb86659fd93ull;
	return host * cores + (u32)((h >> 32) * cores >> 32);
}

/* Returns whether hosts run the kernel's TCP. */
static inline bool sim_is_tcp(const struct sim *sim)
{
	return sim->cfg.software.stack == SIM_STACK_TCP;
}

/** sim_job_new() - return a job for @core; NULL: no memory, and the run stops */
struct sim_job *sim_job_new(struct sim *sim, u32 core);
/** sim_job_free() - @job may be used again */
void sim_job_free(struct sim *sim, struct sim_job *job);
/** sim_job_time() - return the time that @job takes, ps */
u64 sim_job_time(const struct sim_job *job);
/** sim_job_count() - count what @job took, if the window is open */
void sim_job_count(struct sim *sim, const struct sim_job *job);
/** sim_job_start() - have the core of @job do it, now or after what waits there */
void sim_job_start(struct sim *sim, struct sim_job *job);
/** sim_job_done() - count and free the job of @work: what is called when nobody waits for it */
void sim_job_done(struct sim *sim, struct sim_work *work);

/* ---- software.c ---- */

/** sim_software_read() - have the reader of @msg take @bytes that came and did not complete it */
void sim_software_read(struct sim *sim, const struct sim_msg *msg, u64 bytes);

#endif
