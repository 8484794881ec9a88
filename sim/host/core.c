// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#include "core.h"
#include "sim.h"

static void core_end(struct sim *sim, struct sim_event *ev);

static void core_queue(struct sim_core *core, struct sim_work *work)
{
	work->next = NULL;
	if (core->head[work->irq])
		core->tail[work->irq]->next = work;
	else
		core->head[work->irq] = work;
	core->tail[work->irq] = work;
}

static void core_run(struct sim *sim, struct sim_core *core, struct sim_work *work)
{
	if (work->begin) {
		work->left = work->begin(sim, work);
		work->begin = NULL;
	}
	core->running = work;
	core->since = sim->now;
	if (work->irq)
		core->irq_at = sim->now;
	core->end.fn = core_end;
	sim_event_add(sim->agenda, &core->end, sim->now + work->left);
}

static void core_next(struct sim *sim, struct sim_core *core)
{
	const u32 irq = core->head[1] ? 1 : 0;
	struct sim_work *work = core->head[irq];

	if (!work)
		return;
	core->head[irq] = work->next;
	core_run(sim, core, work);
}

static void core_end(struct sim *sim, struct sim_event *ev)
{
	struct sim_core *core = homa_container_of(ev, struct sim_core, end);
	struct sim_work *work = core->running;

	core->busy += sim->now - core->since;
	core->running = NULL;
	if (work->irq)
		core->irq_at = sim->now;
	else
		core->app_at = sim->now;
	core_next(sim, core);
	work->done(sim, work);
}

/* Takes the core from an application's work, which stays the first of its kind. */
static void core_interrupt(struct sim *sim, struct sim_core *core)
{
	struct sim_work *work = core->running;
	const u64 done = sim->now - core->since;

	sim_event_cancel(sim->agenda, &core->end);
	core->busy += done;
	core->running = NULL;
	work->left -= done;
	work->next = core->head[0];
	if (!core->head[0])
		core->tail[0] = work;
	core->head[0] = work;
}

void sim_core_add(struct sim *sim, struct sim_core *core, struct sim_work *work)
{
	if (core->running && work->irq && !core->running->irq)
		core_interrupt(sim, core);
	if (core->running)
		core_queue(core, work);
	else
		core_run(sim, core, work);
}
