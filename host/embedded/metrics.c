// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* All counters of a handle: the engine's, the nic's and the host's own. */
#include "embedded.h"
#include "homa_look.h"

typedef void visitor(void *arg, const char *name, const char *description,
		     uint64_t value);

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
#define X(name, text) visit(arg, "nic_" #name, text, stats.name);
	NIC_STATS(X)
#undef X
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
	      "unscheduled bytes a message may have (RTTbytes)", link.rtt_bytes);
	visit(arg, "link_max_incoming",
	      "bytes granted at most over all messages", link.max_incoming);
	visit(arg, "link_resend_us", "silence before a RESEND, us",
	      link.resend_us);
	visit(arg, "link_timeout_us", "silence after which an RPC fails, us",
	      link.timeout_us);
}
