// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Network namespaces: each has its own engine, settings, peers and ports. The
 * engine takes about a megabyte, so it is made when the first Homa socket of a
 * namespace is, and containers that never use Homa pay a few hundred bytes. In
 * namespaces but the initial one it is charged to who makes that socket, as are later
 * the peers and what is remembered about them (enter.c).
 *
 * Settings are read everywhere in the engine without a lock. Who changes them,
 * or ends the namespace, pauses it: nobody enters from then on, those inside
 * (bottom halves off, which is an RCU read side) leave within a grace period.
 * Packets that come in that time are dropped and asked for again.
 */
#include <linux/memcontrol.h>
#include <linux/vmalloc.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "homa_net.h"
#include "homa_sysctl.h"

unsigned int homa_net_id;

/* What is remembered of executed requests takes memory as they come, at most 256 Ki
 * ranges or 16 MiB (docs/protocol.md, "At most once"). Shards follow from the CPUs. */
struct homa_limits homa_limits __ro_after_init = {
	.buckets = 64,
	.tombstones = 1 << 18,
	.peer_buckets = 64,
	.sock_buckets = 4096,
	.tell_gone = 1,
	.sock_priv = sizeof(void *),
	.rpc_priv = sizeof(struct homa_krpc),
};

struct homa_net *homa_net(const struct net *net)
{
	return net_generic(net, homa_net_id);
}

static struct homa_engine *homa_engine_make(struct homa_net *hnet)
{
	struct homa_engine *engine = __vmalloc(homa_engine_size(&homa_limits),
					       homa_net_gfp(hnet) | __GFP_ZERO);
	struct homa_seeds seeds;

	if (!engine)
		return NULL;
	get_random_bytes(&seeds, sizeof(seeds));
	if (homa_engine_init(engine, &homa_limits, &hnet->params, &seeds,
			     ktime_get_ns())) {
		vfree(engine);
		return NULL;
	}
	return engine;
}

int homa_net_start(struct homa_net *hnet)
{
	struct homa_engine *engine;
	bool made = false;
	int err = 0;

	if (homa_net_engine(hnet))
		return 0;
	mutex_lock(&hnet->lock);
	if (hnet->engine)
		goto out;
	err = -ENOMEM;
	if (hnet->net != &init_net && !hnet->memcg)
		hnet->memcg = get_mem_cgroup_from_mm(current->mm);
	engine = homa_engine_make(hnet);
	if (!engine)
		goto out;
	err = homa_cpus_alloc(hnet, engine);
	if (err) {
		vfree(engine);
		goto out;
	}
	smp_store_release(&hnet->engine, engine);
	made = true;
out:
	mutex_unlock(&hnet->lock);
	if (!err && made) {
		homa_sysctl_started(hnet);
		/* Faster, no more; without it packets take the usual way. */
		if (READ_ONCE(hnet->settings.early_path))
			homa_early_set(hnet, true);
	}
	return err;
}

int homa_net_set_cutoffs(struct homa_net *hnet, u32 levels, const u32 *sizes)
{
	struct homa_cpu *cpu;
	int err;

	mutex_lock(&hnet->lock);
	if (!hnet->engine) {
		err = -EAGAIN;
	} else {
		cpu = homa_enter(hnet);
		err = cpu ? homa_engine_fix_cutoffs(&cpu->ctx, levels, sizes) :
			    -EBUSY;
		if (cpu)
			homa_leave(cpu);
	}
	mutex_unlock(&hnet->lock);
	return err;
}

int homa_net_set_params(struct homa_net *hnet, const struct homa_params *params)
{
	struct homa_ctx *ctx;
	int err = 0;

	mutex_lock(&hnet->lock);
	if (hnet->engine) {
		WRITE_ONCE(hnet->paused, true);
		synchronize_rcu();
		/* Alone in the engine now: any context will do. */
		homa_own_bh();
		ctx = &this_cpu_ptr(hnet->cpus)->ctx;
		ctx->now = ktime_get_ns();
		err = homa_engine_set_params(ctx, params);
		if (!err)
			homa_devs_derive(hnet);
		homa_disown_bh();
		smp_store_release(&hnet->paused, false);
	} else {
		/* Checked by an engine, which there is not; a small one will do. */
		err = homa_params_valid(params) ? 0 : -EINVAL;
	}
	if (!err)
		hnet->params = *params;
	mutex_unlock(&hnet->lock);
	return err;
}

/* ---- coming and going of namespaces ---- */

static int __net_init homa_net_init(struct net *net)
{
	struct homa_net *hnet = homa_net(net);
	int i, err;

	hnet->net = net;
	mutex_init(&hnet->lock);
	spin_lock_init(&hnet->dev_lock);
	spin_lock_init(&hnet->sock_lock);
	INIT_LIST_HEAD(&hnet->socks);
	for (i = 0; i < HOMA_DEV_BUCKETS; i++)
		INIT_HLIST_HEAD(&hnet->devs[i]);
	homa_params_default(&hnet->params);
	hnet->params.max_message_length = HOMA_MAX_MESSAGE_LENGTH;
	homa_settings_default(&hnet->settings);
	homa_timers_init(hnet);
	err = homa_routes_init(hnet);
	if (err)
		return err;
	err = homa_encap_init(hnet);
	if (err)
		goto routes;
	err = homa_sysctl_init(hnet);
	if (err)
		goto encap;
	err = homa_proc_init(hnet);
	if (err)
		goto sysctl;
	return 0;
sysctl:
	homa_sysctl_free(hnet);
encap:
	homa_encap_free(hnet);
routes:
	homa_routes_free(hnet);
	return err;
}

/* Before the grace period that comes with the end of a namespace. */
static void __net_exit homa_net_pre_exit(struct net *net)
{
	WRITE_ONCE(homa_net(net)->paused, true);
}

static void __net_exit homa_net_exit(struct net *net)
{
	struct homa_net *hnet = homa_net(net);

	homa_proc_free(hnet);
	homa_sysctl_free(hnet);
	homa_encap_free(hnet);
	homa_timers_stop(hnet);
	homa_devs_stop(hnet);
	homa_routes_free(hnet);
	if (hnet->engine) {
		homa_cpus_free(hnet);
		homa_devs_free(hnet);
		vfree(hnet->engine);
	}
	mem_cgroup_put(hnet->memcg);
	mutex_destroy(&hnet->lock);
}

static struct pernet_operations homa_net_ops = {
	.init = homa_net_init,
	.pre_exit = homa_net_pre_exit,
	.exit = homa_net_exit,
	.id = &homa_net_id,
	.size = sizeof(struct homa_net),
};

int __init homa_nets_init(void)
{
	homa_limits.shards = clamp_t(u32, roundup_pow_of_two(16 * nr_cpu_ids),
				     32, 1024);
	return register_pernet_subsys(&homa_net_ops);
}

void homa_nets_exit(void)
{
	unregister_pernet_subsys(&homa_net_ops);
}
