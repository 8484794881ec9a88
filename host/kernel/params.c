// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The engine's settings are read everywhere in it without a lock. Who changes them,
 * or ends the namespace, pauses it: nobody enters from then on, those inside
 * (bottom halves off, which is an RCU read side) leave within a grace period.
 * Packets that come in that time are dropped and asked for again.
 */
#include "homa_net.h"

int homak_net_set_cutoffs(struct homak_net *hnet, u32 levels, const u32 *sizes)
{
	struct homak_cpu *cpu;
	int err;

	mutex_lock(&hnet->lock);
	if (!hnet->engine) {
		err = -EAGAIN;
	} else {
		cpu = homak_enter(hnet);
		err = cpu ? homa_engine_fix_cutoffs(&cpu->ctx, levels, sizes) :
			    -EBUSY;
		if (cpu)
			homak_leave(cpu);
	}
	mutex_unlock(&hnet->lock);
	return err;
}

/* Starts the timer of RPCs again if it ran out during the pause. Without a packet or a call nobody
 * else would. */
static void homak_wake_timer(struct homak_net *hnet)
{
	struct homak_cpu *cpu = homak_enter(hnet);

	if (cpu)
		homak_leave(cpu);
}

int homak_net_set_params(struct homak_net *hnet, const struct homa_params *params)
{
	struct homa_ctx *ctx;
	bool ends;
	int err = 0;

	mutex_lock(&hnet->lock);
	/* A file of settings may be open longer than there is a process in the namespace. One
	 * that ends stays paused. */
	ends = hnet->paused;
	if (hnet->engine) {
		WRITE_ONCE(hnet->paused, true);
		synchronize_rcu();
		/* No other thread is in the engine now, so any context will do. */
		homak_own_bh();
		ctx = &this_cpu_ptr(hnet->cpus)->ctx;
		ctx->now = ktime_get_ns();
		err = homa_engine_set_params(ctx, params);
		if (!err)
			homak_devs_derive(hnet);
		homak_disown_bh();
		smp_store_mb(hnet->paused, ends);
		homak_wake_timer(hnet);
	} else {
		/* The engine would check the settings. There is none yet, so they are
		 * checked here. */
		err = homa_params_valid(params) ? 0 : -EINVAL;
	}
	if (!err)
		hnet->params = *params;
	mutex_unlock(&hnet->lock);
	return err;
}
