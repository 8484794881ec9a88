// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Entering and leaving the engine. A context belongs to a CPU and is used by the owner of
 * the CPU's memory (homa_own.h), so a system call and the softirq that interrupts it never
 * meet in one. The objects the engine needs are kept at hand before it is
 * called, for it allocates nothing; what it retires comes back here.
 *
 * RPCs are paid for by their sockets (room.c). Peers and records belong to the namespace:
 * those of the initial one to the machine, those of another to the memory cgroup
 * of who made its first socket, whoever's packet it is for which they are made.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "homa_net.h"
#include "homa_transmit.h"

#define HOMAK_FILL (HOMAK_SPARES + 4u)
/* most peers and records that are freed in a turn, at the end */
#define HOMAK_DRAIN 256u
/* most turns, because events make packets and packets make events */
#define HOMAK_LEAVE_TURNS 8

static struct kmem_cache *homak_rpc_cache;
static struct kmem_cache *homak_peer_cache;
static struct kmem_cache *homak_range_cache;

#if HOMAK_OWN_LOCK
DEFINE_PER_CPU(struct homak_cpu_owner, homak_cpu_owner) = {
	.lock = INIT_LOCAL_LOCK(lock),
};
#endif

/* ---- spares ---- */

static void homak_give_rpc(struct homa_ctx *ctx, void *mem)
{
	struct homak_rpc *krpc = homa_rpc_priv(mem);

	memset(krpc, 0, sizeof(*krpc));
	krpc->rpc = mem;
	INIT_LIST_HEAD(&krpc->list);
	homa_ctx_give_rpc(ctx, mem);
}

static bool homak_stocked(const struct homa_ctx *ctx)
{
	return ctx->spare_rpcs >= HOMAK_SPARES &&
	       ctx->spare_peers >= HOMAK_SPARES &&
	       ctx->spare_ranges >= HOMAK_SPARES && ctx->spare_segment;
}

/* Gives an RPC again that was retired (homak_rpc_retired()). */
static void homak_reuse_rpc(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	struct homak_rpc *krpc = homak_rpc(rpc);

	krpc->rx_head = NULL;
	krpc->rx_tail = NULL;
	krpc->rx_bytes = 0;
	krpc->on = HOMAK_LIST_NONE;
	krpc->whole = false;
	krpc->over = false;
	krpc->gone = false;
	krpc->is_private = false;
	krpc->waiter = NULL;
	homa_ctx_reuse_rpc(ctx, rpc);
}

void homak_refill(struct homak_cpu *cpu)
{
	struct homa_ctx *ctx = &cpu->ctx;
	gfp_t gfp = GFP_ATOMIC | __GFP_NOWARN;
	gfp_t account = gfp | (cpu->hnet->memcg ? __GFP_ACCOUNT : 0);
	struct mem_cgroup *memcg;
	void *mem;

	if (homak_stocked(ctx))
		return;
	memcg = set_active_memcg(cpu->hnet->memcg);
	while (ctx->spare_rpcs < HOMAK_FILL) {
		mem = kmem_cache_alloc(homak_rpc_cache, gfp);
		if (!mem)
			goto none;
		homak_give_rpc(ctx, mem);
	}
	while (ctx->spare_peers < HOMAK_FILL) {
		mem = kmem_cache_alloc(homak_peer_cache, account);
		if (!mem)
			goto none;
		homa_ctx_give_peer(ctx, mem);
	}
	while (ctx->spare_ranges < HOMAK_FILL) {
		mem = kmem_cache_alloc(homak_range_cache, account);
		if (!mem)
			goto none;
		homa_ctx_give_range(ctx, mem);
	}
	while (!ctx->spare_segment) {
		mem = kmalloc(homa_segment_size(), account);
		if (!mem)
			goto none;
		homa_ctx_give_segment(ctx, mem);
	}
	set_active_memcg(memcg);
	return;
none:
	set_active_memcg(memcg);
	homak_host_count(cpu, HOMAK_H_host_spares_failed, 1);
}

/* Frees the objects that nothing refers to any more. */
static HOMAK_HOT void homak_reap(struct homak_cpu *cpu)
{
	struct homa_ctx *ctx = &cpu->ctx;
	struct homa_peer *peer;
	struct homa_rpc *rpc;

	while ((rpc = homa_retired_rpc(ctx))) {
		homak_rpc_retired(homak_rpc(rpc));
		if (ctx->spare_rpcs < 2 * HOMAK_FILL)
			homak_reuse_rpc(ctx, rpc);
		else
			kmem_cache_free(homak_rpc_cache, rpc);
	}
	while ((peer = homa_retired_peer(ctx)))
		kmem_cache_free(homak_peer_cache, peer);
	/* Ranges are spare now, because messages with gaps have ended or requests need not
	 * be remembered. */
	while (unlikely(ctx->spare_ranges > 8 * HOMAK_FILL))
		kmem_cache_free(homak_range_cache, homa_ctx_take_range(ctx));
}

/* ---- in and out ---- */

HOMAK_HOT struct homak_cpu *homak_enter_inside(struct homak_net *hnet)
{
	struct homak_cpu *cpu;

	if (unlikely(!homak_net_engine(hnet)))
		return NULL;
	homak_own();
	cpu = this_cpu_ptr(hnet->cpus);
	/* This CPU is inside already: IP has given back at once what we sent (tc's mirred
	 * can). */
	if (unlikely(READ_ONCE(hnet->paused) || cpu->in)) {
		homak_host_count(cpu, HOMAK_H_host_paused, 1);
		homak_disown();
		return NULL;
	}
	cpu->in = true;
	cpu->ctx.now = ktime_get_ns();
	if (unlikely(!homak_stocked(&cpu->ctx)))
		homak_refill(cpu);
	return cpu;
}

HOMAK_HOT struct homak_cpu *homak_enter_here(struct homak_net *hnet)
{
	struct homak_cpu *cpu;

	local_bh_disable();
	cpu = homak_enter_inside(hnet);
	if (unlikely(!cpu))
		local_bh_enable();
	return cpu;
}

struct homak_cpu *homak_enter(struct homak_net *hnet)
{
	return homak_enter_here(hnet);
}

noinline struct homak_cpu *homak_enter_paused(struct homak_net *hnet)
{
	struct homak_cpu *cpu = NULL;

	while (!cpu && homak_net_engine(hnet)) {
		/* The holder of the lock is changing settings, so this waits for it. */
		mutex_lock(&hnet->lock);
		mutex_unlock(&hnet->lock);
		cond_resched();
		cpu = homak_enter(hnet);
	}
	return cpu;
}

HOMAK_HOT struct homak_cpu *homak_enter_wait(struct homak_net *hnet)
{
	struct homak_cpu *cpu = homak_enter(hnet);

	return likely(cpu) ? cpu : homak_enter_paused(hnet);
}

static noinline void homak_events(struct homak_cpu *cpu)
{
	struct homa_event event;

	while (homa_event_hold(&cpu->ctx, &event))
		homak_inbox_event(cpu, &event);
}

static noinline void homak_transmit(struct homak_cpu *cpu)
{
	struct homa_ctx *ctx = &cpu->ctx;
	struct homa_link *link = ctx->tx_link;
	bool more = ctx->tx_more;

	ctx->tx_link = NULL;
	ctx->tx_more = false;
	if (more)
		homak_xmit_all(cpu);
	else
		homak_xmit(cpu, homak_dev_of(link));
}

/* Have calls of the engine left anything to work off? */
static bool homak_left(const struct homa_ctx *ctx)
{
	return (uintptr_t)ctx->event_head | (uintptr_t)ctx->tx_link |
	       (uintptr_t)ctx->retired_rpc | ctx->num_acks |
	       (uintptr_t)ctx->retired_peer;
}

/* Works it off; there is some. */
static noinline void homak_work_off(struct homak_cpu *cpu)
{
	struct homa_ctx *ctx = &cpu->ctx;
	int turn = HOMAK_LEAVE_TURNS;

	do {
		if (unlikely(ctx->event_head))
			homak_events(cpu);
		if (unlikely(ctx->tx_link))
			homak_transmit(cpu);
		homak_reap(cpu);
	} while (--turn && homak_left(ctx));
	if (unlikely(ctx->tx_link))
		homak_later_queue(&homak_dev_of(ctx->tx_link)->again);
}

/* Has the timer run, because there are RPCs; in any context. */
static noinline void homak_timer_want(struct homak_net *hnet)
{
	struct homa_counts counts;

	homa_engine_counts(hnet->engine, &counts);
	if (!counts.rpcs || READ_ONCE(hnet->paused) ||
	    !xchg(&hnet->timer_rests, false))
		return;
	hrtimer_start(&hnet->timer,
		      ns_to_ktime(ktime_get_ns() + 2 * HOMAK_TICK_NS),
		      HRTIMER_MODE_ABS_SOFT);
}

HOMAK_HOT void homak_leave_inside(struct homak_cpu *cpu)
{
	if (homak_left(&cpu->ctx))
		homak_work_off(cpu);
	if (unlikely(READ_ONCE(cpu->hnet->timer_rests)))
		homak_timer_want(cpu->hnet);
	cpu->in = false;
	homak_disown();
}

void homak_leave(struct homak_cpu *cpu)
{
	homak_leave_inside(cpu);
	local_bh_enable();
}

/* ---- set-up ---- */

int homak_cpus_alloc(struct homak_net *hnet, struct homa_engine *engine)
{
	int i;

	hnet->cpus = alloc_percpu_gfp(struct homak_cpu, homak_net_gfp(hnet));
	if (!hnet->cpus)
		return -ENOMEM;
	for_each_possible_cpu(i) {
		struct homak_cpu *cpu = per_cpu_ptr(hnet->cpus, i);

		homa_ctx_init(&cpu->ctx, engine, i);
		cpu->hnet = hnet;
	}
	return 0;
}

static void homak_cpu_drain(struct homak_cpu *cpu)
{
	struct homa_ctx *ctx = &cpu->ctx;

	/* The engine keeps its spares in lists of its own kind. */
	while (ctx->spare_rpc)
		kmem_cache_free(homak_rpc_cache, homa_ctx_take_rpc(ctx));
	while (ctx->spare_peer)
		kmem_cache_free(homak_peer_cache, homa_ctx_take_peer(ctx));
	while (ctx->spare_range)
		kmem_cache_free(homak_range_cache, homa_ctx_take_range(ctx));
	while (ctx->spare_segment)
		kfree(homa_ctx_take_segment(ctx));
}

void homak_cpus_free(struct homak_net *hnet)
{
	struct homak_cpu *cpu;
	struct homa_counts counts;
	void *segment;
	bool more;
	int i;

	do {
		homak_own_bh();
		cpu = this_cpu_ptr(hnet->cpus);
		more = homa_peers_drain(&cpu->ctx, HOMAK_DRAIN);
		homak_reap(cpu);
		homak_disown_bh();
		cond_resched();
	} while (more);
	for_each_possible_cpu(i) {
		local_bh_disable();
		cpu = per_cpu_ptr(hnet->cpus, i);
		homak_reap(cpu);
		homak_cpu_drain(cpu);
		local_bh_enable();
	}
	homa_engine_counts(hnet->engine, &counts);
	WARN_ONCE(counts.rpcs || counts.socks || counts.peers,
		  "homa: namespace ends with %u RPCs, %u sockets, %u peers\n",
		  counts.rpcs, counts.socks, counts.peers);
	while ((segment = homa_engine_segment(hnet->engine))) {
		kfree(segment);
		cond_resched();
	}
	free_percpu(hnet->cpus);
}

int __init homak_memory_init(void)
{
	homak_rpc_cache =
		kmem_cache_create("homa_rpc", homa_rpc_size(&homak_limits), 0,
				  SLAB_HWCACHE_ALIGN, NULL);
	homak_peer_cache =
		kmem_cache_create("homa_peer", homa_peer_size(&homak_limits), 0,
				  SLAB_HWCACHE_ALIGN | SLAB_TYPESAFE_BY_RCU,
				  NULL);
	homak_range_cache =
		kmem_cache_create("homa_range", homa_range_size(), 0, 0, NULL);
	if (homak_rpc_cache && homak_peer_cache && homak_range_cache)
		return 0;
	homak_memory_exit();
	return -ENOMEM;
}

void homak_memory_exit(void)
{
	homak_msgs_exit();
	kmem_cache_destroy(homak_rpc_cache);
	kmem_cache_destroy(homak_peer_cache);
	kmem_cache_destroy(homak_range_cache);
}
