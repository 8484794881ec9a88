// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * From a load to a rate. The SIGCOMM'18 study counts all bytes on the wire:
 * a message's DATA packets with headers and framing, and the GRANTs that allow
 * those beyond the first 9,328 bytes, one each. They go the other way, but as
 * every host is as often sender as receiver each link carries both on average.
 * The rate that follows is that of Homa and is used for all protocols, because
 * they are compared at equal application load.
 *
 * The means are exact. A message of more than x bytes has probability 1 - F(x),
 * so the mean number of packets is the sum of 1 - F(k * segment) over all k,
 * and of scheduled packets the same without the first few terms.
 *
 * In RPC runs (ATC'21) each direction of a host's link carries its requests
 * and the responses that it gives, which are as long.
 */

#include "samemath.h"
#include "software.h"
#include "traffic_impl.h"

#define GRANT_WIRE SIM_MIN_WIRE

/* Returns the probability of a message of more than @x whole bytes, before the cut. */
static double tail(const struct homa_workload *w, double x)
{
	const struct homa_quantile *a, *b;
	u32 i = 0;

	if (w->shape == HOMA_WORKLOAD_STEP) {
		double p = 0;

		for (i = 0; i < w->count && w->points[i].bytes <= x; i++)
			p = w->points[i].probability;
		return 1 - p;
	}
	/* Sizes are rounded, so those above x are at least x + 0.5 before rounding. */
	x += 0.5;
	if (x <= w->points[0].bytes)
		return 1;
	while (i < w->count && w->points[i].bytes < x)
		i++;
	if (i == w->count)
		return 0;
	a = &w->points[i - 1];
	b = &w->points[i];
	return 1 - a->probability -
	       (b->probability - a->probability) * homa_log(x / a->bytes) /
		       homa_log(b->bytes / a->bytes);
}

static u32 unscheduled_packets(u32 segment)
{
	return (SIM_UNSCHEDULED_BYTES + segment - 1) / segment;
}

u64 sim_load_wire(const struct sim_config *cfg, u32 length)
{
	const u32 segment = sim_homa_segment(cfg);
	const u32 packets = length ? (length - 1) / segment + 1 : 1;
	const u32 free = unscheduled_packets(segment);
	u64 wire = (u64)(packets - 1) * sim_wire(sim_homa_data_ip(cfg, segment));

	wire += sim_wire(sim_homa_data_ip(cfg, length - (packets - 1) * segment));
	return wire + (packets > free ? (u64)(packets - free) * GRANT_WIRE : 0);
}

static void means(const struct sim_config *cfg, const struct homa_workload *workload,
		  struct sim_load *load)
{
	const u32 segment = sim_homa_segment(cfg);
	const u32 free = unscheduled_packets(segment);
	/* A frame with one byte of payload is longer than the shortest frame, so no frame
	 * is padded. */
	const double headers = sim_homa_data_ip(cfg, 0) + SIM_FRAMING;
	double packets = 0, scheduled = 0;
	u64 k;

	for (k = 0; k * segment < workload->cut; k++) {
		double p = tail(workload, (double)(k * segment));

		if (p <= 0)
			break;
		packets += p;
		if (k >= free)
			scheduled += p;
	}
	load->payload = homa_workload_mean(workload);
	load->packets = packets;
	load->wire = load->payload + headers * packets + GRANT_WIRE * scheduled;
}

void sim_load_compute(const struct sim_config *cfg, const struct homa_workload *workload,
		      struct sim_load *load)
{
	const double ns_per_byte = 8000.0 / cfg->host_mbps;
	const double ways = cfg->rpc ? 2 : 1;
	double bytes;

	*load = (struct sim_load){ 0 };
	means(cfg, workload, load);
	bytes = cfg->load_kind == SIM_LOAD_WIRE ? load->wire : load->payload;
	if (cfg->load <= 0 || cfg->closed)
		return;
	load->gap_ns = bytes * ways * ns_per_byte / cfg->load;
	load->payload_load = load->payload * ways * ns_per_byte / load->gap_ns;
	load->wire_load = load->wire * ways * ns_per_byte / load->gap_ns;
}

u64 sim_alone_ps(const struct sim *sim, u32 src, u32 dst, u32 length)
{
	return sim_ideal_ps(sim, src, dst, length) +
	       (sim->cores ? sim_software_alone(sim, length) : 0);
}

u64 sim_alone_rpc_ps(const struct sim *sim, const struct sim_msg *first)
{
	if (!sim->cfg.rpc)
		return first->ideal_ps;
	return first->ideal_ps + sim_alone_ps(sim, first->dst, first->src,
					      sim_response_bytes(&sim->cfg, first->length));
}
