/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Whose is this processor's memory? The module keeps some of it per processor: the engine's
 * contexts, work space, pages at hand, input routes. Who has turned bottom halves off owns
 * all that, because neither a softirq nor another task comes in between.
 *
 * With PREEMPT_RT both do: then homa_own() is a lock of the processor besides, which its
 * owner may take again. One for all namespaces, since a packet may walk from one into the
 * other in one go. An owner who is stopped inherits the priority of who waits for it.
 */
#ifndef HOMA_OWN_H
#define HOMA_OWN_H

#include "homa_compat.h"

#if HOMA_OWN_LOCK
#include <linux/local_lock.h>
#include <linux/percpu.h>
#include <linux/sched.h>

/*
 * struct homa_cpu_owner - of one processor's memory
 * @task: who has @lock; others read of it only that it is not they.
 * @depth: how often it has taken it.
 */
struct homa_cpu_owner {
	local_lock_t lock;
	struct task_struct *task;
	u32 depth;
};

DECLARE_PER_CPU(struct homa_cpu_owner, homa_cpu_owner);

/** homa_own() - bottom halves are off, and stay off until homa_disown(). */
static inline void homa_own(void)
{
	if (this_cpu_read(homa_cpu_owner.task) != current) {
		local_lock_nested_bh(&homa_cpu_owner.lock);
		this_cpu_write(homa_cpu_owner.task, current);
	}
	this_cpu_inc(homa_cpu_owner.depth);
}

static inline void homa_disown(void)
{
	if (this_cpu_dec_return(homa_cpu_owner.depth))
		return;
	this_cpu_write(homa_cpu_owner.task, NULL);
	local_unlock_nested_bh(&homa_cpu_owner.lock);
}
#else
static inline void homa_own(void)
{
}

static inline void homa_disown(void)
{
}
#endif

/** homa_own_bh() - the same for who has not turned them off. */
static inline void homa_own_bh(void)
{
	local_bh_disable();
	homa_own();
}

static inline void homa_disown_bh(void)
{
	homa_disown();
	local_bh_enable();
}

#endif
