// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * /proc/net/homa_metrics: every counter of a network namespace, summed over the
 * CPUs, then what there is now. A line is
 *
 *	name value # what it means
 *
 * The names are those of homad's metrics (homa_metrics.def) and, for what only
 * this host does, HOMAK_HOST_METRICS, so a new counter appears by itself. "time_ns"
 * comes first, for those who compute rates from two readings. At the end the counters
 * that the existing module has as well stand once more under its names, for its
 * scripts: as those of one core, in cycles of a nanosecond.
 *
 * Each CPU counts for itself without a lock; a reader sees each counter as it
 * stood at some moment while it read. Sums never go back.
 */
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <net/net_namespace.h>

#include "homa_net.h"

static const struct homa_metric_info homak_host_metric_table[HOMAK_H_COUNT] = {
#define M(metric, what) { #metric, what },
	HOMAK_HOST_METRICS(M)
#undef M
};

/* Counters of the existing module that have the same meaning here. */
static const struct {
	/* The name in the existing module. */
	const char *name;
	/* Our counter. */
	enum homa_metric metric;
} homak_metric_aliases[] = {
	{ "packets_sent_DATA", HOMA_M_tx_data },
	{ "packets_sent_GRANT", HOMA_M_tx_grant },
	{ "packets_sent_RESEND", HOMA_M_tx_resend },
	{ "packets_sent_RPC_UNKNOWN", HOMA_M_tx_unknown },
	{ "packets_sent_BUSY", HOMA_M_tx_busy },
	{ "packets_sent_CUTOFFS", HOMA_M_tx_cutoffs },
	{ "packets_sent_NEED_ACK", HOMA_M_tx_need_ack },
	{ "packets_sent_ACK", HOMA_M_tx_ack },
	{ "packets_rcvd_DATA", HOMA_M_rx_data },
	{ "packets_rcvd_GRANT", HOMA_M_rx_grant },
	{ "packets_rcvd_RESEND", HOMA_M_rx_resend },
	{ "packets_rcvd_RPC_UNKNOWN", HOMA_M_rx_unknown },
	{ "packets_rcvd_BUSY", HOMA_M_rx_busy },
	{ "packets_rcvd_CUTOFFS", HOMA_M_rx_cutoffs },
	{ "packets_rcvd_FREEZE", HOMA_M_rx_freeze },
	{ "packets_rcvd_NEED_ACK", HOMA_M_rx_need_ack },
	{ "packets_rcvd_ACK", HOMA_M_rx_ack },
	{ "responses_received", HOMA_M_responses_taken },
	{ "resent_packets", HOMA_M_tx_retransmits },
	{ "resent_discards", HOMA_M_rx_duplicates },
	{ "unknown_rpcs", HOMA_M_drop_unknown_rpc },
	{ "server_cant_create_rpcs", HOMA_M_drop_no_rpc },
	{ "unknown_packet_types", HOMA_M_drop_type },
	{ "short_packets", HOMA_M_drop_short },
	{ "server_rpc_discards", HOMA_M_server_discards },
	{ "fifo_grants", HOMA_M_grant_fifo },
	{ "buffer_alloc_failures", HOMA_M_buffer_waits },
};

u64 homak_metric_sum(struct homak_net *hnet, enum homa_metric metric)
{
	u64 sum = 0;
	int cpu;

	if (!homak_net_engine(hnet))
		return 0;
	for_each_possible_cpu(cpu)
		sum += READ_ONCE(
			per_cpu_ptr(hnet->cpus, cpu)->ctx.metrics[metric]);
	return sum;
}

u64 homak_host_metric_sum(struct homak_net *hnet, enum homak_host_metric metric)
{
	u64 sum = 0;
	int cpu;

	if (!homak_net_engine(hnet))
		return 0;
	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(hnet->cpus, cpu)->metrics[metric]);
	return sum;
}

static void homak_metric_line(struct seq_file *m, const char *name, u64 value,
			      const char *text)
{
	seq_printf(m, "%-28s %20llu # %s\n", name, value, text);
}

/* Returns the number of links, and the number of these that have a device. */
static u32 homak_links_count(struct homak_net *hnet, u32 *devs)
{
	struct homak_dev *hdev;
	u32 i, n = 0;

	*devs = 0;
	rcu_read_lock();
	for (i = 0; i < HOMAK_DEV_BUCKETS; i++)
		hlist_for_each_entry_rcu(hdev, &hnet->devs[i], node) {
			*devs += !!rcu_access_pointer(hdev->dev);
			n++;
		}
	rcu_read_unlock();
	return n;
}

static void homak_metrics_now(struct seq_file *m, struct homak_net *hnet)
{
	const struct homa_engine *engine = homak_net_engine(hnet);
	struct homa_counts counts = {};
	u32 links, devs;

	if (engine)
		homa_engine_counts(engine, &counts);
	homak_metric_line(m, "rpcs", counts.rpcs, "now: RPCs alive");
	homak_metric_line(m, "peers", counts.peers, "now: peers remembered");
	homak_metric_line(m, "socks", counts.socks, "now: sockets open");
	links = homak_links_count(hnet, &devs);
	homak_metric_line(m, "devs", devs, "now: devices that Homa has used");
	homak_metric_line(m, "links", links,
			  "now: these, and places of former ones, for new ones");
}

/* Writes the same counters in the form that the existing module's scripts read. */
static void homak_metrics_there(struct seq_file *m, struct homak_net *hnet)
{
	u32 i;

	homak_metric_line(m, "time_cycles", ktime_get_ns(),
			  "time_ns, for scripts");
	homak_metric_line(m, "cpu_khz", 1000000,
			  "cycles per millisecond: one is a nanosecond");
	homak_metric_line(m, "core", 0, "what follows is the sum over all cores");
	for (i = 0; i < ARRAY_SIZE(homak_metric_aliases); i++)
		homak_metric_line(
			m, homak_metric_aliases[i].name,
			homak_metric_sum(hnet, homak_metric_aliases[i].metric),
			homa_metric_table[homak_metric_aliases[i].metric].text);
}

static int homak_metrics_show(struct seq_file *m, void *v)
{
	struct homak_net *hnet = homak_net(seq_file_single_net(m));
	u32 i;

	homak_metric_line(m, "time_ns", ktime_get_ns(),
			  "when this was read, CLOCK_MONOTONIC");
	for (i = 0; i < HOMA_M_COUNT; i++)
		homak_metric_line(m, homa_metric_table[i].name,
				  homak_metric_sum(hnet, i),
				  homa_metric_table[i].text);
	for (i = 0; i < HOMAK_H_COUNT; i++)
		homak_metric_line(m, homak_host_metric_table[i].name,
				  homak_host_metric_sum(hnet, i),
				  homak_host_metric_table[i].text);
	homak_metrics_now(m, hnet);
	homak_metrics_there(m, hnet);
	return 0;
}

int homak_proc_init(struct homak_net *hnet)
{
	/* Without /proc the file cannot be made, which is no error. */
	if (!IS_ENABLED(CONFIG_PROC_FS))
		return 0;
	if (!proc_create_net_single("homa_metrics", 0444, hnet->net->proc_net,
				    homak_metrics_show, NULL))
		return -ENOMEM;
	return 0;
}

void homak_proc_free(struct homak_net *hnet)
{
	remove_proc_entry("homa_metrics", hnet->net->proc_net);
}
