/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Whose is this processor's memory? The module keeps some of it per processor: the engine's
 * contexts, work space, pages at hand, input routes. A task that has turned bottom halves
 * off owns all that, because neither a softirq nor another task comes in between.
 *
 * With PREEMPT_RT both do: then homak_own() is a lock of the processor besides, which its
 * owner may take again. There is one lock for all namespaces, since a packet may walk from
 * one into the other in one go. An owner that is stopped inherits the priority of the task
 * that waits for the lock.
 */
#ifndef HOMA_OWN_H
#define HOMA_OWN_H

#include <linux/rcupdate.h>

#include "homa_compat.h"

#if HOMAK_OWN_LOCK
#include <linux/local_lock.h>
#include <linux/percpu.h>
#include <linux/sched.h>

/*
 * struct homak_cpu_owner - who owns one processor's memory, with PREEMPT_RT
 * @task: the task that has @lock and so writes this; another that reads it learns only that
 *	it is not the owner.
 * @depth: the number of times that the owner has taken @lock and not given it back.
 *
 * Guarded by: @lock.
 */
struct homak_cpu_owner {
	local_lock_t lock;
	struct task_struct *task;
	u32 depth;
};

DECLARE_PER_CPU(struct homak_cpu_owner, homak_cpu_owner);

/** homak_own() - makes the caller the owner of this processor's memory, until homak_disown().
 *  Bottom halves are off and stay off meanwhile. */
static inline void homak_own(void)
{
	if (this_cpu_read(homak_cpu_owner.task) != current) {
		local_lock_nested_bh(&homak_cpu_owner.lock);
		this_cpu_write(homak_cpu_owner.task, current);
	}
	this_cpu_inc(homak_cpu_owner.depth);
}

static inline void homak_disown(void)
{
	if (this_cpu_dec_return(homak_cpu_owner.depth))
		return;
	this_cpu_write(homak_cpu_owner.task, NULL);
	local_unlock_nested_bh(&homak_cpu_owner.lock);
}
#else
static inline void homak_own(void)
{
}

static inline void homak_disown(void)
{
}
#endif

/** homak_own_bh() - turns bottom halves off and does the same. */
static inline void homak_own_bh(void)
{
	local_bh_disable();
	homak_own();
}

static inline void homak_disown_bh(void)
{
	homak_disown();
	local_bh_enable();
}

/**
 * homak_rcu_begin() - begins an RCU read side where bottom halves are off, until homak_rcu_end().
 * That is one already, also with PREEMPT_RT, where turning them off begins one; but not all that
 * looks under lockdep whether it is in one takes it for that.
 */
static inline void homak_rcu_begin(void)
{
	if (IS_ENABLED(CONFIG_PROVE_RCU))
		rcu_read_lock();
}

static inline void homak_rcu_end(void)
{
	if (IS_ENABLED(CONFIG_PROVE_RCU))
		rcu_read_unlock();
}

#endif
