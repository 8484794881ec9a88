// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#include <stdlib.h>

#include "jobs.h"

struct sim_job *sim_job_new(struct sim *sim, u32 core)
{
	struct sim_cores *cores = sim->cores;
	struct sim_job *job = cores->free_jobs, *all;

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
	*job = (struct sim_job){ .all = all, .core = core };
	return job;
}

void sim_job_free(struct sim *sim, struct sim_job *job)
{
	job->next = sim->cores->free_jobs;
	sim->cores->free_jobs = job;
}

u64 sim_job_time(const struct sim_job *job)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < SIM_PARTS; i++)
		sum += job->cost[i];
	return sum;
}

void sim_job_count(struct sim *sim, const struct sim_job *job)
{
	const u64 from = sim->cfg.warmup_ps;
	u32 i;

	if (sim->now < from || sim->now - from >= sim->cfg.measure_ps)
		return;
	for (i = 0; i < SIM_PARTS; i++)
		sim->cores->used[i] += job->cost[i];
}

void sim_job_start(struct sim *sim, struct sim_job *job)
{
	job->work.left = sim_job_time(job);
	sim_core_add(sim, &sim->cores->core[job->core], &job->work);
}

void sim_job_done(struct sim *sim, struct sim_work *work)
{
	struct sim_job *job = homa_container_of(work, struct sim_job, work);

	sim_job_count(sim, job);
	sim_job_free(sim, job);
}
