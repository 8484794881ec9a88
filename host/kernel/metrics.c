// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * /proc/net/homa_metrics: every counter of a network namespace, summed over the
 * CPUs, then what there is now. A line is
 *
 *	name value # what it means
 *
 * The names are those of homad's metrics (homa_metrics.def) and, for what only
 * this host does, HOMA_HOST_METRICS, so a new counter appears by itself. "time_ns"
 * comes first, for those who compute rates from two readings.
 *
 * Each CPU counts for itself without a lock; a reader sees each counter as it
 * stood at some moment while it read. Sums never go back.
 */
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <net/net_namespace.h>

#include "homa_kernel.h"

static const struct homa_metric_info homa_host_metric_table[HOMA_H_COUNT] = {
#define M(metric, what) { #metric, what },
	HOMA_HOST_METRICS(M)
#undef M
};

u64 homa_metric_sum(struct homa_net *hnet, enum homa_metric metric)
{
	u64 sum = 0;
	int cpu;

	if (!homa_net_engine(hnet))
		return 0;
	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(hnet->cpus, cpu)->ctx.metrics[metric]);
	return sum;
}

u64 homa_host_metric_sum(struct homa_net *hnet, enum homa_host_metric metric)
{
	u64 sum = 0;
	int cpu;

	if (!homa_net_engine(hnet))
		return 0;
	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(hnet->cpus, cpu)->metrics[metric]);
	return sum;
}

static void homa_metric_line(struct seq_file *m, const char *name, u64 value,
			     const char *text)
{
	seq_printf(m, "%-28s %20llu # %s\n", name, value, text);
}

/* Links; of these, how many have a device. */
static u32 homa_links_count(struct homa_net *hnet, u32 *devs)
{
	struct homa_dev *hdev;
	u32 i, n = 0;

	*devs = 0;
	rcu_read_lock();
	for (i = 0; i < HOMA_DEV_BUCKETS; i++)
		hlist_for_each_entry_rcu(hdev, &hnet->devs[i], node) {
			*devs += !!rcu_access_pointer(hdev->dev);
			n++;
		}
	rcu_read_unlock();
	return n;
}

static void homa_metrics_now(struct seq_file *m, struct homa_net *hnet)
{
	const struct homa_engine *engine = homa_net_engine(hnet);
	struct homa_counts counts = {};
	u32 links, devs;

	if (engine)
		homa_engine_counts(engine, &counts);
	homa_metric_line(m, "rpcs", counts.rpcs, "now: RPCs alive");
	homa_metric_line(m, "peers", counts.peers, "now: peers remembered");
	homa_metric_line(m, "socks", counts.socks, "now: sockets open");
	links = homa_links_count(hnet, &devs);
	homa_metric_line(m, "devs", devs, "now: devices that Homa has used");
	homa_metric_line(m, "links", links,
			 "now: these, and places of former ones, for new ones");
}

static int homa_metrics_show(struct seq_file *m, void *v)
{
	struct homa_net *hnet = homa_net(seq_file_single_net(m));
	u32 i;

	homa_metric_line(m, "time_ns", ktime_get_ns(),
			 "when this was read, CLOCK_MONOTONIC");
	for (i = 0; i < HOMA_M_COUNT; i++)
		homa_metric_line(m, homa_metric_table[i].name,
				 homa_metric_sum(hnet, i),
				 homa_metric_table[i].text);
	for (i = 0; i < HOMA_H_COUNT; i++)
		homa_metric_line(m, homa_host_metric_table[i].name,
				 homa_host_metric_sum(hnet, i),
				 homa_host_metric_table[i].text);
	homa_metrics_now(m, hnet);
	return 0;
}

int homa_proc_init(struct homa_net *hnet)
{
	/* Without /proc there is none to make, and nothing to fail for. */
	if (!IS_ENABLED(CONFIG_PROC_FS))
		return 0;
	if (!proc_create_net_single("homa_metrics", 0444, hnet->net->proc_net,
				    homa_metrics_show, NULL))
		return -ENOMEM;
	return 0;
}

void homa_proc_free(struct homa_net *hnet)
{
	remove_proc_entry("homa_metrics", hnet->net->proc_net);
}
