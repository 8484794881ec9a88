/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The oracle's matching: which messages are being sent, one at a time per
 * sending and per receiving side. See oracle_match.c.
 */
#ifndef SIM_ORACLE_MATCH_H
#define SIM_ORACLE_MATCH_H

#include "event.h"
#include "homa_plat.h"

/**
 * struct oracle_job - a message in the matching
 * @left: what is left to send, in ps of its rate: while it waits, now; while
 *	it is matched, at @since.
 * @serial: unique; decides between equals.
 * @tx, @rx: its two sides, numbered 0 .. 2 * hosts - 1 (receiving ones after
 *	all sending ones).
 */
struct oracle_job {
	u64 left, since, serial;
	u32 tx, rx;
	bool matched;
};

/** struct oracle_entry - a waiting job in the list of one of its sides */
struct oracle_entry {
	u64 left;
	struct oracle_job *job;
};

/**
 * struct oracle_side - one direction of one host's link
 * @current: what occupies it. @waiting: longest first, so that what matters
 *	is at the end, where a change moves little.
 * @jobs: waiting and current, for which there is room in @waiting.
 * @queued: it is in the list of sides that have become free.
 */
struct oracle_side {
	struct oracle_job *current;
	struct oracle_entry *waiting;
	u32 num, cap, jobs;
	bool queued;
};

/**
 * struct oracle_match - all of it
 * @started, @stopped: told of every job that enters and leaves the matching
 *	before it is complete.
 * @steps: entries looked at (what it costs).
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
/** oracle_match_add() - a job arrives at @now, @left set; -ENOMEM */
int oracle_match_add(struct oracle_match *match, struct oracle_job *job, u64 now);
/** oracle_match_done() - a matched job has nothing left at @now */
void oracle_match_done(struct oracle_match *match, struct oracle_job *job, u64 now);

#endif
