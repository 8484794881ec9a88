// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Time for the engine. A high-resolution timer starts a work item, which walks
 * the shards with a budget each and may be preempted now and then, so that
 * bottom halves are never off for long. Nothing ticks while no RPC waits for
 * anything: the work notes that it rests, and whoever leaves the engine with
 * RPCs open starts the timer again.
 */
#include "homa_kernel.h"

/* An interval that is shorter than any deadline of a new RPC, in ns. */
#define HOMAK_SOON_NS (4 * HOMAK_TICK_NS)
#define HOMAK_SHARD_BUDGET 32
/* time with bottom halves off, before the next shard's turn */
#define HOMAK_TURN_NS 10000u

/* Runs shards from *@shard on, for a moment. Returns when the first of them is due again, ns. */
static u64 homak_timer_some(struct homak_net *hnet, u32 *shard, u32 shards)
{
	struct homak_cpu *cpu = homak_enter(hnet);
	u64 first = HOMA_NEVER, begun;

	if (!cpu) {
		*shard = shards;
		return ktime_get_ns() + HOMAK_TICK_NS;
	}
	begun = cpu->ctx.now;
	do {
		first = min(first, homa_timer(&cpu->ctx, (*shard)++,
					      HOMAK_SHARD_BUDGET));
		cpu->ctx.now = ktime_get_ns();
	} while (*shard < shards && cpu->ctx.now - begun < HOMAK_TURN_NS);
	homak_leave(cpu);
	return first;
}

/* Runs every shard once. Returns when the first of them is due again, ns. */
static u64 homak_timer_round(struct homak_net *hnet)
{
	u32 shard = 0, shards = homa_engine_shards(hnet->engine);
	u64 first = HOMA_NEVER;

	while (shard < shards) {
		first = min(first, homak_timer_some(hnet, &shard, shards));
		cond_resched();
	}
	return first;
}

static void homak_timer_work(struct work_struct *work)
{
	struct homak_net *hnet = container_of(work, struct homak_net, timer_work);
	u64 now, next;

	/* This is stored before the shards are looked at: a thread that opens an RPC
	 * meanwhile arms the timer. */
	smp_store_mb(hnet->timer_rests, true);
	next = homak_timer_round(hnet);
	if (next == HOMA_NEVER || READ_ONCE(hnet->paused))
		return;
	now = ktime_get_ns();
	next = max(next, now + HOMAK_TICK_NS);
	if (next > now + HOMAK_SOON_NS || xchg(&hnet->timer_rests, false))
		hrtimer_start(&hnet->timer, ns_to_ktime(next),
			      HRTIMER_MODE_ABS_SOFT);
}

static enum hrtimer_restart homak_timer_fired(struct hrtimer *timer)
{
	struct homak_net *hnet = container_of(timer, struct homak_net, timer);

	queue_work(system_wq, &hnet->timer_work);
	return HRTIMER_NORESTART;
}

void homak_timers_init(struct homak_net *hnet)
{
	hnet->timer_rests = true;
	homak_hrtimer_setup(&hnet->timer, homak_timer_fired,
			    HRTIMER_MODE_ABS_SOFT);
	INIT_WORK(&hnet->timer_work, homak_timer_work);
}

/* Stops the timers of a namespace that is paused, so that nobody starts them again. */
void homak_timers_stop(struct homak_net *hnet)
{
	hrtimer_cancel(&hnet->timer);
	cancel_work_sync(&hnet->timer_work);
	/* That may have started the timer, as its last deed, if it had not seen the pause yet; it
	 * sees it now. */
	hrtimer_cancel(&hnet->timer);
	cancel_work_sync(&hnet->timer_work);
}
