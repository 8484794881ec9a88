// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Network namespaces: each has its own engine, settings, peers and ports. The
 * engine takes about a megabyte, so it is made when the first Homa socket of a
 * namespace is, and containers that never use Homa pay a few hundred bytes. In
 * namespaces but the initial one it is charged to who makes that socket, as are later
 * the peers and what is remembered about them (enter.c).
 *
 * Who ends a namespace pauses it first, as params.c does.
 */
#include <linux/memcontrol.h>
#include <linux/vmalloc.h>
#include <net/net_namespace.h>

#include "homa_net.h"
#include "homa_sysctl.h"

unsigned int homak_net_id;

/* What is remembered of executed requests takes memory as they come, at most 256 Ki
 * ranges or 16 MiB (docs/protocol.md, "At most once"). Shards follow from the CPUs. */
struct homa_limits homak_limits __ro_after_init = {
	.buckets = 64,
	.tombstones = 1 << 18,
	.peer_buckets = 64,
	.sock_buckets = 4096,
	.tell_gone = 1,
	.sock_priv = sizeof(void *),
	.rpc_priv = sizeof(struct homak_rpc),
	.rpc_from = 1,
};

static struct homa_engine *homak_engine_make(struct homak_net *hnet)
{
	struct homa_engine *engine = __vmalloc(homa_engine_size(&homak_limits),
					       homak_net_gfp(hnet) | __GFP_ZERO);
	struct homa_seeds seeds;

	if (!engine)
		return NULL;
	get_random_bytes(&seeds, sizeof(seeds));
	if (homa_engine_init(engine, &homak_limits, &hnet->params, &seeds,
			     ktime_get_ns())) {
		vfree(engine);
		return NULL;
	}
	return engine;
}

int homak_net_start(struct homak_net *hnet)
{
	struct homa_engine *engine;
	bool made = false;
	int err = 0;

	if (homak_net_engine(hnet))
		return 0;
	mutex_lock(&hnet->lock);
	if (hnet->engine)
		goto out;
	err = -ENOMEM;
	if (hnet->net != &init_net && !hnet->memcg)
		hnet->memcg = get_mem_cgroup_from_mm(current->mm);
	engine = homak_engine_make(hnet);
	if (!engine)
		goto out;
	err = homak_cpus_alloc(hnet, engine);
	if (err) {
		vfree(engine);
		goto out;
	}
	smp_store_release(&hnet->engine, engine);
	made = true;
out:
	mutex_unlock(&hnet->lock);
	if (!err && made) {
		homak_sysctl_started(hnet);
		/* Without the early path packets take the usual way, which is slower. */
		if (READ_ONCE(hnet->settings.early_path))
			homak_prerouting_set(hnet, true);
	}
	return err;
}

/* ---- coming and going of namespaces ---- */

static int __net_init homak_net_init(struct net *net)
{
	struct homak_net *hnet = homak_net(net);
	int i, err;

	hnet->net = net;
	mutex_init(&hnet->lock);
	spin_lock_init(&hnet->dev_lock);
	spin_lock_init(&hnet->sock_lock);
	INIT_LIST_HEAD(&hnet->socks);
	INIT_LIST_HEAD(&hnet->devs_left);
	for (i = 0; i < HOMAK_DEV_BUCKETS; i++)
		INIT_HLIST_HEAD(&hnet->devs[i]);
	homa_params_default(&hnet->params);
	hnet->params.max_message_length = HOMA_MAX_MESSAGE_LENGTH;
	homak_settings_default(&hnet->settings);
	homak_timers_init(hnet);
	err = homak_routes_init(hnet);
	if (err)
		return err;
	err = homak_encap_init(hnet);
	if (err)
		goto routes;
	err = homak_sysctl_init(hnet);
	if (err)
		goto encap;
	err = homak_proc_init(hnet);
	if (err)
		goto sysctl;
	return 0;
sysctl:
	homak_sysctl_free(hnet);
encap:
	homak_encap_free(hnet);
routes:
	homak_routes_free(hnet);
	return err;
}

/* Runs before the grace period that comes with the end of a namespace. */
static void __net_exit homak_net_pre_exit(struct net *net)
{
	struct homak_net *hnet = homak_net(net);

	/* Who changes settings just now goes on for the last time. */
	mutex_lock(&hnet->lock);
	WRITE_ONCE(hnet->paused, true);
	mutex_unlock(&hnet->lock);
}

static void __net_exit homak_net_exit(struct net *net)
{
	struct homak_net *hnet = homak_net(net);

	homak_proc_free(hnet);
	homak_sysctl_free(hnet);
	homak_encap_free(hnet);
	WARN_ON_ONCE(!hnet->paused);
	homak_timers_stop(hnet);
	homak_devs_stop(hnet);
	homak_routes_free(hnet);
	if (hnet->engine) {
		homak_cpus_free(hnet);
		homak_devs_free(hnet);
		vfree(hnet->engine);
	}
	mem_cgroup_put(hnet->memcg);
	mutex_destroy(&hnet->lock);
}

static struct pernet_operations homak_net_ops = {
	.init = homak_net_init,
	.pre_exit = homak_net_pre_exit,
	.exit = homak_net_exit,
	.id = &homak_net_id,
	.size = sizeof(struct homak_net),
};

int __init homak_nets_init(void)
{
	homak_limits.shards =
		clamp_t(u32, roundup_pow_of_two(16 * nr_cpu_ids), 32, 1024);
	return register_pernet_subsys(&homak_net_ops);
}

void homak_nets_exit(void)
{
	unregister_pernet_subsys(&homak_net_ops);
}
