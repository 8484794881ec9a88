/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The oracle's matching: which messages are being sent, one at a time per
 * sending and per receiving side. See oracle_match.c.
 *
 * Written by: the one thread that runs the simulation.
 */
#ifndef SIM_ORACLE_MATCH_H
#define SIM_ORACLE_MATCH_H

#include "event.h"
#include "homa_plat.h"

/**
 * struct oracle_job - a message in the matching
 * @left: time that its transmission still takes, in ps; for a matched job at the time
 *	@since.
 * @since: time at which it was matched, ps.
 * @serial: unique number, which decides between jobs with equal @left.
 * @tx: number of its sending side, 0 .. hosts - 1.
 * @rx: number of its receiving side, hosts .. 2 * hosts - 1.
 * @matched: the job is being transmitted.
 */
struct oracle_job {
	u64 left, since, serial;
	u32 tx, rx;
	bool matched;
};

/**
 * struct oracle_entry - a waiting job in the list of one of its sides
 * @left: a copy of the job's @left, by which the list is sorted.
 * @job: the job.
 */
struct oracle_entry {
	u64 left;
	struct oracle_job *job;
};

/**
 * struct oracle_side - one direction of one host's link
 * @current: job that is being transmitted, or NULL.
 * @waiting: jobs that wait, longest first: the shortest ones, which change most, are at the
 *	end, where a change moves few entries.
 * @num: number of entries of @waiting that are used.
 * @cap: number of entries of @waiting for which there is memory.
 * @jobs: number of waiting jobs and the current one; @cap is at least this.
 * @queued: the side is in the list of sides that have become free.
 */
struct oracle_side {
	struct oracle_job *current;
	struct oracle_entry *waiting;
	u32 num, cap, jobs;
	bool queued;
};

/**
 * struct oracle_match - the matching of all jobs
 * @sides: both sides of all hosts.
 * @num_sides: number of entries of @sides, twice that of hosts.
 * @freed: numbers of the sides that have become free.
 * @num_freed: number of entries of @freed that are used.
 * @now: time of the last call, ps.
 * @steps: number of entries that were looked at, the cost of the matching.
 * @arg: what @started and @stopped are called with.
 * @started: called with @arg for every job that is matched.
 * @stopped: called with @arg for every matched job that has to wait again.
 */
struct oracle_match {
	struct oracle_side *sides;
	u32 num_sides;
	u32 *freed;
	u32 num_freed;
	u64 now;
	u64 steps;
	void *arg;
	void (*started)(void *arg, struct oracle_job *job);
	void (*stopped)(void *arg, struct oracle_job *job);
};

int oracle_match_init(struct oracle_match *match, u32 hosts);
void oracle_match_free(struct oracle_match *match);
/** oracle_match_add() - add a job at the time @now, with @left set; -ENOMEM */
int oracle_match_add(struct oracle_match *match, struct oracle_job *job, u64 now);
/** oracle_match_done() - remove a matched job, of which nothing is left at the time @now */
void oracle_match_done(struct oracle_match *match, struct oracle_job *job, u64 now);

#endif
