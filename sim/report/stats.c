// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Recording; see sim_stats.h. And the question whether a load can be sustained:
 * the backlog, bytes that were created and have not arrived, is sampled through
 * the window and a straight line is laid through the samples. If it rises by
 * more than SIM_STABLE_SHARE of what is created meanwhile, the network does not
 * carry the load.
 *
 * With messages of many megabytes a network takes longer than most runs last
 * until its backlog stops growing, whatever the protocol, and it fluctuates with
 * the messages that happen to come. Both are the same for the oracle, which
 * wastes nothing. So if its backlog is there as a reference, what is judged is
 * how much more the protocol leaves lying than the oracle.
 */
#include <errno.h>
#include <stdlib.h>

#include "sim_stats.h"
#include "traffic.h"

static bool stats_alloc(struct sim_stats *stats)
{
	u32 i;

	for (i = 0; i < SIM_BINS; i++) {
		stats->bin[i].min_bytes = UINT32_MAX;
		if (homa_hist_init(&stats->bin[i].slowdown))
			return false;
	}
	for (i = 0; i < HOMA_DECILES; i++)
		if (homa_hist_init(&stats->latency[i]))
			return false;
	stats->causes = sim_causes_new();
	return stats->causes && !homa_hist_init(&stats->one) &&
	       !homa_hist_init(&stats->more) && !homa_hist_init(&stats->incast) &&
	       !homa_hist_init(&stats->incast_latency) &&
	       !homa_hist_init(&stats->apart_latency) &&
	       !homa_hist_init(&stats->apart_error);
}

struct sim_stats *sim_stats_new(const struct sim *sim)
{
	struct sim_stats *stats = calloc(1, sizeof(*stats));

	if (!stats)
		return NULL;
	stats->segment = sim_homa_segment(&sim->cfg);
	stats->apart = sim->cfg.apart;
	if (!stats_alloc(stats)) {
		sim_stats_free(stats);
		return NULL;
	}
	return stats;
}

void sim_stats_free(struct sim_stats *stats)
{
	u32 i;

	if (!stats)
		return;
	for (i = 0; i < SIM_BINS; i++)
		homa_hist_free(&stats->bin[i].slowdown);
	for (i = 0; i < HOMA_DECILES; i++)
		homa_hist_free(&stats->latency[i]);
	homa_hist_free(&stats->one);
	homa_hist_free(&stats->more);
	homa_hist_free(&stats->incast);
	homa_hist_free(&stats->incast_latency);
	homa_hist_free(&stats->apart_latency);
	homa_hist_free(&stats->apart_error);
	sim_causes_free(stats->causes);
	free(stats);
}

/* ---- messages ---- */

static u32 bin_of(const struct sim_msg *msg)
{
	u32 bin = (u32)(msg->quantile * SIM_BINS);

	return bin < SIM_BINS ? bin : SIM_BINS - 1;
}

static u64 slowdown_of(u64 ps, u64 ideal)
{
	return ideal ? ps * SIM_SLOWDOWN_SCALE / ideal : 0;
}

static void record(struct sim_stats *stats, const struct sim_msg *msg, u64 ps, u64 slowdown)
{
	const u32 n = bin_of(msg);
	struct sim_bin *bin = &stats->bin[n];

	homa_hist_record(&bin->slowdown, slowdown);
	if (msg->length < bin->min_bytes)
		bin->min_bytes = msg->length;
	if (msg->length > bin->max_bytes)
		bin->max_bytes = msg->length;
	homa_hist_record(&stats->latency[n / SIM_BINS_PER_DECILE], sim_ns(ps));
	homa_hist_record(msg->length <= stats->segment ? &stats->one : &stats->more,
			 slowdown);
}

static bool is_apart(const struct sim_stats *stats, const struct sim_msg *msg)
{
	return stats->apart &&
	       (msg->src + 1u == stats->apart || msg->dst + 1u == stats->apart);
}

void sim_stats_record(struct sim_stats *stats, const struct sim_msg *msg,
		      const struct sim_msg *last, u64 ps, u64 ideal)
{
	const u64 slowdown = slowdown_of(ps, ideal);

	if (msg->incast) {
		homa_hist_record(&stats->incast, slowdown);
		homa_hist_record(&stats->incast_latency, sim_ns(ps));
		return;
	}
	if (is_apart(stats, msg)) {
		homa_hist_record(&stats->apart_latency, sim_ns(ps));
		return;
	}
	record(stats, msg, ps, slowdown);
	if (bin_of(msg) < SIM_BINS / 5 && msg->length <= stats->segment)
		sim_causes_add(stats->causes, slowdown, ps > ideal ? ps - ideal : 0, last);
}

void sim_stats_failed(struct sim_stats *stats, const struct sim_msg *msg, u64 ps,
		      u64 ideal, int error)
{
	const u32 decile = bin_of(msg) / SIM_BINS_PER_DECILE;
	u64 slowdown = slowdown_of(ps, ideal);

	if (error == ETIME)
		stats->unfinished++;
	else if (error == ETIMEDOUT)
		stats->timeouts++;
	else if (error == ENOMEM)
		stats->memory_errors++;
	else
		stats->other_errors++;
	if (is_apart(stats, msg)) {
		homa_hist_record(&stats->apart_error, sim_ns(ps));
		return;
	}
	if (msg->incast) {
		stats->incast_failed++;
	} else {
		stats->failed[decile]++;
		stats->censored[decile]++;
	}
	/* The message would have taken at least as long as its age, and as on the idle
	 * network. */
	if (slowdown < SIM_SLOWDOWN_SCALE) {
		slowdown = SIM_SLOWDOWN_SCALE;
		ps = ideal;
	}
	if (msg->incast) {
		homa_hist_record(&stats->incast, slowdown);
		homa_hist_record(&stats->incast_latency, sim_ns(ps));
	} else {
		record(stats, msg, ps, slowdown);
	}
}

/* ---- the window ---- */

static void ports_settle(struct sim *sim)
{
	u32 i;

	for (i = 0; i < sim->num_ports; i++)
		if (sim->ports[i].level != SIM_HOST_UP)
			sim_port_account(sim, &sim->ports[i], 0, 0);
	/* Counts wasted time until now. */
	for (i = 0; i < sim->cfg.hosts; i++)
		sim_downlink_starts(sim, &sim->hosts[i]);
}

void sim_stats_open(struct sim *sim)
{
	u32 i;

	ports_settle(sim);
	sim_net_stats_reset(sim);
	for (i = 0; i < sim->cfg.hosts; i++)
		sim->hosts[i].waste_ps = 0;
	sim->stats->at_open = sim->counts;
}

static void port_add(struct sim_net_stats *net, const struct sim_port *port, double ns)
{
	struct sim_level_stats *level = &net->level[port->level];
	double mean = (double)port->stats.byte_ns / ns;
	u32 i;

	level->ports++;
	level->mean += mean;
	if (mean > level->mean_worst)
		level->mean_worst = mean;
	if (port->stats.peak > level->max)
		level->max = port->stats.peak;
	net->drops += port->stats.drops;
	net->drop_bytes += port->stats.drop_bytes;
	net->marks += port->stats.marks;
	net->trims += port->stats.trims;
	net->lost += port->stats.lost;
	if (port->level == SIM_HOST_DOWN)
		net->down_bytes += port->stats.tx_bytes;
	if (port->level != SIM_HOST_UP)
		return;
	net->up_bytes += port->stats.tx_bytes;
	for (i = 0; i < SIM_PRIORITIES; i++)
		net->prio_bytes[i] += port->stats.prio_bytes[i];
}

void sim_stats_close(struct sim *sim)
{
	struct sim_stats *stats = sim->stats;
	struct sim_net_stats *net = &stats->net;
	double ns = (double)sim_ns(sim->now - sim->traffic->opened_at);
	u32 i;

	stats->at_close = sim->counts;
	if (ns <= 0)
		return;
	ports_settle(sim);
	for (i = 0; i < sim->num_ports; i++)
		port_add(net, &sim->ports[i], ns);
	for (i = 0; i < SIM_LEVELS; i++)
		if (net->level[i].ports)
			net->level[i].mean /= net->level[i].ports;
	for (i = 0; i < sim->cfg.hosts; i++)
		net->waste_ps += sim->hosts[i].waste_ps;
	sim_stats_trend(stats, NULL, &stats->trend);
	if (stats->reference)
		sim_stats_trend(stats, stats->reference, &stats->excess);
}

/* Ports of a node lie side by side. */
static u64 fullest_switch(const struct sim *sim)
{
	u64 sum = 0, most = 0;
	u32 i, node = 0;

	for (i = 0; i < sim->num_ports; i++) {
		const struct sim_port *port = &sim->ports[i];

		if (port->node != node) {
			node = port->node;
			sum = 0;
		}
		sum += port->bytes;
		if (sum > most)
			most = sum;
	}
	return most;
}

void sim_stats_sample(struct sim *sim, u64 bytes)
{
	struct sim_stats *stats = sim->stats;
	u64 fullest = fullest_switch(sim);

	if (fullest > stats->net.switch_peak)
		stats->net.switch_peak = fullest;
	if (stats->samples < SIM_SAMPLES)
		stats->backlog[stats->samples++] = (double)bytes;
}

/* Least squares. */
void sim_stats_trend(const struct sim_stats *stats, const struct sim_reference *reference,
		     struct sim_trend *trend)
{
	u32 i, samples = stats->samples;
	double n, mid, mean = 0, cross = 0, square = 0, slope;

	*trend = (struct sim_trend){ 0 };
	if (reference && reference->samples < samples)
		samples = reference->samples;
	if (samples < 3)
		return;
	n = samples;
	mid = (n - 1) / 2;
	for (i = 0; i < samples; i++) {
		double y = stats->backlog[i] - (reference ? reference->backlog[i] : 0);

		mean += y / n;
		cross += (i - mid) * y;
		square += (i - mid) * (i - mid);
	}
	slope = cross / square;
	trend->start = mean - slope * mid;
	trend->end = mean + slope * mid;
	trend->growth = slope * 1e12 / (double)stats->sample_ps;
}

double sim_stats_growth(const struct sim_stats *stats, double offered)
{
	const struct sim_trend *trend = stats->reference ? &stats->excess : &stats->trend;

	return offered > 0 ? trend->growth / offered : 0;
}
