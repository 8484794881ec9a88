// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* All counters of a handle: the engine's, the nic's and the host's own. */
#include "embedded.h"

typedef void visitor(void *arg, const char *name, const char *description,
		     uint64_t value);

static void visit_nic(const struct nic_stats *s, visitor *visit, void *arg)
{
	visit(arg, "nic_rx_packets", "packets received by the packet interface",
	      s->rx_packets);
	visit(arg, "nic_rx_bytes", "bytes in them, Homa header and payload",
	      s->rx_bytes);
	visit(arg, "nic_tx_packets", "packets sent by the packet interface",
	      s->tx_packets);
	visit(arg, "nic_tx_bytes", "bytes in them, Homa header and payload",
	      s->tx_bytes);
	visit(arg, "nic_rx_dropped",
	      "packets lost before us, for lack of buffers", s->rx_dropped);
	visit(arg, "nic_rx_malformed", "packets that were not Homa in valid IP",
	      s->rx_malformed);
	visit(arg, "nic_tx_full",
	      "times the device took fewer packets than offered", s->tx_full);
	visit(arg, "nic_tx_no_neighbour",
	      "packets without a link address to send to", s->tx_no_neighbour);
	visit(arg, "nic_tx_errors", "packets the kernel refused", s->tx_errors);
	visit(arg, "nic_icmp_errors", "ICMP errors that came back",
	      s->icmp_errors);
	visit(arg, "nic_syscalls", "system calls made for packets",
	      s->syscalls);
}

void homa_emb_metrics(void *host, visitor *visit, void *arg)
{
	struct homa_emb *e = host;
	struct homa_emb_counters counters;
	struct homa_link_state link;
	struct homa_counts counts;
	struct nic_stats stats;
	u64 engine[HOMA_M_COUNT], out_bytes;
	u32 i;

	homa_emb_lock(e);
	memcpy(engine, e->ctx.metrics, sizeof(engine));
	counters = e->counters;
	out_bytes = e->bufs.used;
	nic_stats(e->nic, &stats);
	homa_link_state(&e->ctx, e->link, &link);
	homa_engine_counts(e->engine, &counts);
	homa_emb_unlock(e, false);

	for (i = 0; i < HOMA_M_COUNT; i++)
		visit(arg, homa_metric_table[i].name, homa_metric_table[i].text,
		      engine[i]);
	visit_nic(&stats, visit, arg);
#define X(name, text) visit(arg, "host_" #name, text, counters.name);
	HOMA_EMB_COUNTERS(X)
#undef X
	visit(arg, "host_out_bytes", "memory of outgoing messages now, bytes",
	      out_bytes);
	visit(arg, "rpcs", "RPCs alive now", counts.rpcs);
	visit(arg, "peers", "peers remembered now", counts.peers);
	visit(arg, "link_rtt_us", "measured round trip of short messages, us",
	      link.rtt_us);
	visit(arg, "link_rtt_bytes",
	      "unscheduled bytes a message may have (RTTbytes)",
	      link.rtt_bytes);
	visit(arg, "link_max_incoming",
	      "bytes granted at most over all messages", link.max_incoming);
	visit(arg, "link_resend_us", "silence before a RESEND, us",
	      link.resend_us);
	visit(arg, "link_timeout_us", "silence after which an RPC fails, us",
	      link.timeout_us);
}
