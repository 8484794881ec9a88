/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A core of a host: a server that does one piece of work after another.
 *
 * Work of interrupts (NAPI, softirq) goes first and interrupts an application,
 * which goes on afterwards where it was. Within each of the two, first come is
 * first served. A core knows nothing of packets and messages.
 *
 * Written by: the one thread that runs the simulation.
 */
#ifndef SIM_CORE_H
#define SIM_CORE_H

#include "event.h"
#include "homa_plat.h"

struct sim;

/**
 * struct sim_work - a piece of work for a core; its owner keeps it until @done is called
 * @next: links the work into a core's queue.
 * @begin: returns how long the work takes, ps, when it is about to begin; NULL: @left says so.
 * @done: the work is done.
 * @left: time that it still takes, ps.
 * @irq: the work is an interrupt's.
 */
struct sim_work {
	struct sim_work *next;
	u64 (*begin)(struct sim *sim, struct sim_work *work);
	void (*done)(struct sim *sim, struct sim_work *work);
	u64 left;
	bool irq;
};

/**
 * struct sim_core - a core; zeroed before first use
 * @end: event at which @running is done.
 * @running: work that is being done; NULL: the core is idle.
 * @head: first work that waits, by sim_work.irq.
 * @tail: last work that waits, by sim_work.irq.
 * @since: time at which @running was begun or continued, ps.
 * @irq_at: time at which an interrupt's work was last begun or done, ps.
 * @app_at: time at which an application's work was last done, ps.
 * @wake_at: time at which its application's thread is or was awake after its last wake-up, ps.
 * @busy: time in which the core worked, ps.
 */
struct sim_core {
	struct sim_event end;
	struct sim_work *running;
	struct sim_work *head[2], *tail[2];
	u64 since;
	u64 irq_at, app_at, wake_at;
	u64 busy;
};

/** sim_core_add() - have @core do @work, now or after what waits there */
void sim_core_add(struct sim *sim, struct sim_core *core, struct sim_work *work);

#endif
