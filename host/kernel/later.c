// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Work for a little later. Who has had a full turn lets others have theirs and then goes on, in
 * the softirq that works off received packets: each CPU has a NAPI context of a device that
 * exists for nothing else, as the kernel's GRO cells have. So the work is one among those of the
 * CPU's network cards, in turn with them, and like theirs goes to a thread when it is too much.
 *
 * Each poll runs one piece of work. One that is queued again while it runs comes after the others.
 */
#include <linux/netdevice.h>
#include <linux/percpu.h>
#include <linux/sched.h>

#include "homa_compat.h"
#include "homa_later.h"

/* struct homak_laters - what one CPU has to do. Written by: its NAPI context, unless a field says
 * otherwise. */
struct homak_laters {
	/* What the kernel polls. */
	struct napi_struct napi;
	/* Work that was queued, the last first. The CPU adds to it. */
	struct llist_head queued;
	/* Work that was taken from there, the first first. */
	struct llist_node *taken;
};

static struct homak_laters __percpu *homak_laters;
static struct net_device *homak_laters_dev;

static int homak_laters_poll(struct napi_struct *napi, int budget)
{
	struct homak_laters *laters =
		container_of(napi, struct homak_laters, napi);
	struct homak_later *later;

	if (!laters->taken)
		laters->taken =
			llist_reverse_order(llist_del_all(&laters->queued));
	if (laters->taken) {
		later = llist_entry(laters->taken, struct homak_later, node);
		laters->taken = laters->taken->next;
		rcu_read_lock();
		/* Who wants more from now on queues it again; what was wanted before is
		 * seen by what runs now. */
		smp_store_mb(later->waits, 0);
		later->run(later);
		rcu_read_unlock();
	}
	if (laters->taken || !llist_empty(&laters->queued))
		return budget;
	napi_complete_done(napi, 0);
	return 0;
}

void homak_later_init(struct homak_later *later,
		      void (*run)(struct homak_later *later))
{
	later->waits = 0;
	later->run = run;
}

void homak_later_queue(struct homak_later *later)
{
	struct homak_laters *laters;

	if (xchg(&later->waits, 1))
		return;
	laters = this_cpu_ptr(homak_laters);
	llist_add(&later->node, &laters->queued);
	napi_schedule(&laters->napi);
}

void homak_later_wait(const struct homak_later *later)
{
	while (READ_ONCE(later->waits))
		schedule_timeout_uninterruptible(1);
}

int __init homak_laters_init(void)
{
	struct homak_laters *laters;
	int cpu;

	homak_laters_dev = homak_dummy_netdev_alloc();
	if (!homak_laters_dev)
		return -ENOMEM;
	homak_laters = alloc_percpu(struct homak_laters);
	if (!homak_laters) {
		homak_dummy_netdev_free(homak_laters_dev);
		return -ENOMEM;
	}
	for_each_possible_cpu(cpu) {
		laters = per_cpu_ptr(homak_laters, cpu);
		init_llist_head(&laters->queued);
		/* No socket polls it. */
		set_bit(NAPI_STATE_NO_BUSY_POLL, &laters->napi.state);
		netif_napi_add(homak_laters_dev, &laters->napi,
			       homak_laters_poll);
		napi_enable(&laters->napi);
	}
	return 0;
}

void homak_laters_exit(void)
{
	struct homak_laters *laters;
	int cpu;

	for_each_possible_cpu(cpu) {
		laters = per_cpu_ptr(homak_laters, cpu);
		napi_disable(&laters->napi);
		__netif_napi_del(&laters->napi);
	}
	synchronize_net();
	free_percpu(homak_laters);
	homak_dummy_netdev_free(homak_laters_dev);
}
