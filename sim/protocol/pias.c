// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * PIAS (Bai et al., "Information-Agnostic Flow Scheduling for Commodity Data
 * Centers", NSDI'15): a message begins at the highest of eight priorities and
 * falls a level whenever the bytes it has sent pass a threshold, so that short
 * messages go first although nobody knows sizes. Rate control is DCTCP; each
 * message is a stream with a window of its own.
 *
 * A second time-out in a row puts a stream back to the highest level (the
 * paper's remedy for starvation). Acks go at the highest priority. The sending
 * host serves its streams by level, in turn within one; its own queue is no
 * queue that marks, as it is in ns-2.
 *
 * Preset sigcomm18: what the Homa study ran, from its published ns-2 scripts:
 * initial window 7, K = 15 packets a port, least time-out 200 us, buffers of
 * 250 packets a port, windows below that, a random path for every packet and
 * therefore no fast retransmit, an ack per packet, g = 1/16; and for W1-W5 the
 * thresholds that its optimiser had found. Where we differ: there losses are
 * repaired with SACK, ten connections of a pair take turns and keep alpha from
 * one message to the next, and W1 and W2 had 150 packets of buffer. And ns-2
 * counts payload + 40 bytes per packet and 40 per ack, without Ethernet's
 * framing and least size, which makes short messages far cheaper than they are
 * (its W1 reaches 57 % of application load, with real frames it can not); the
 * setting ns2-sizes does the same, for comparison with its numbers only.
 *
 * Preset nsdi15: initial window 70, K = 65, least time-out 2 ms, a path per
 * stream; 267 packets of buffer as in the authors' ns-2 scripts.
 *
 * Thresholds. The paper chooses them for the least mean completion time of a
 * queueing model of one link. Where the study's are not to be had, we do that
 * with the exact mean response time of an M/G/1 multilevel queue, first come
 * first served within a level (Kleinrock, Queueing Systems II, 4.7): a message
 * of size x that ends in the level of (a, b] takes (W(b) + x) / (1 - rho(a)),
 * where rho(y) and W(y) are load and mean unfinished work if all messages were
 * cut off at y bytes. A level's cost depends on its two ends alone, so the best
 * thresholds on a grid of packet counts, 10 % apart, follow by dynamic
 * programming. They depend on workload and load only. (The paper bounds a
 * level's load from above and counts one waiting time per level, whatever its
 * length; that leads to thresholds close together near the largest messages.)
 * A packet is tagged by the bytes before it, so that messages of one packet
 * never meet a threshold, and thresholds below one differ in nothing.
 */
#include <errno.h>
#include <string.h>

#include "window.h"

#define PIAS_GRID 160
/* number of samples from each stretch of the distribution */
#define PIAS_SIZES 1000

#define PIAS_THRESHOLD(n)                                       \
	{ "threshold-" #n,                                      \
	  0,                                                    \
	  0,                                                    \
	  1ull << 32,                                           \
	  "bytes",                                              \
	  "sent bytes after which a message falls to level " #n \
	  " (0: the study's or the best, see pias.c)" }

static const struct sim_option pias_options[] = {
	WINDOW_OPTIONS(7, 200, 1,
		       { "ns2-sizes", 0, 0, 1, "",
			 "1: frames of payload + 40 bytes, acks of 40, as in the study's "
			 "ns-2 runs; only to compare with its numbers" }),
	WINDOW_ECN_OPTIONS,
	PIAS_THRESHOLD(1),
	PIAS_THRESHOLD(2),
	PIAS_THRESHOLD(3),
	PIAS_THRESHOLD(4),
	PIAS_THRESHOLD(5),
	PIAS_THRESHOLD(6),
	PIAS_THRESHOLD(7),
	{ NULL, 0, 0, 0, NULL, NULL },
};

/* ---- thresholds ---- */

/**
 * struct pias_model - the distribution of message sizes, cut at every grid point
 * @last: index of the last grid point.
 * @at: size of each grid point, in bytes, increasing; at[0] is 0, at[last] the largest
 *	message.
 * @share: share of the messages that have at most @at bytes, 0..1.
 * @sum: sum over these messages of share times size, in bytes.
 * @load: rho() of the heading at each grid point; a byte takes a unit of time.
 * @work: W() of the heading at each grid point; a byte takes a unit of time.
 */
struct pias_model {
	u32 last;
	double at[PIAS_GRID];
	double share[PIAS_GRID], sum[PIAS_GRID];
	double load[PIAS_GRID], work[PIAS_GRID];
};

/* Makes the grid: numbers of packets that are some 10 % apart, and the largest message at
 * the end. */
static void pias_grid(struct pias_model *m, double largest, u32 mss)
{
	double packets = 1;

	m->at[0] = 0;
	m->last = 1;
	while (m->last < PIAS_GRID - 1 && packets * mss < largest) {
		m->at[m->last++] = packets * mss;
		packets = (double)(u64)(packets * 1.1 + 1);
	}
	m->at[m->last] = largest;
}

/* Adds messages of @size bytes, whose share of all messages is @weight. */
static void pias_count(struct pias_model *m, double size, double weight)
{
	double part;
	u32 i;

	for (i = 1; i <= m->last; i++) {
		part = size < m->at[i] ? size : m->at[i];
		m->load[i] += weight * part;
		m->work[i] += weight * part * part;
		if (size > m->at[i])
			continue;
		m->share[i] += weight;
		m->sum[i] += weight * size;
	}
}

/* Adds samples of the whole distribution. The tail is a small share of the messages and
 * most of the bytes, so its stretches get more samples. */
static void pias_measure(struct pias_model *m, const struct homa_workload *workload)
{
	static const double edge[] = { 0, 0.99, 0.9999, 1 };
	double width;
	u32 i, j;

	for (i = 0; i + 1 < sizeof(edge) / sizeof(edge[0]); i++) {
		width = (edge[i + 1] - edge[i]) / PIAS_SIZES;
		for (j = 0; j < PIAS_SIZES; j++)
			pias_count(m,
				   homa_workload_size(workload, edge[i] + (j + 0.5) * width),
				   width);
	}
}

static void pias_model(struct pias_model *m, const struct homa_workload *workload,
		       double load, u32 mss)
{
	double rate;
	u32 i;

	*m = (struct pias_model){ 0 };
	pias_grid(m, homa_workload_size(workload, 0.999999999), mss);
	pias_measure(m, workload);
	rate = load / m->load[m->last];
	for (i = 1; i <= m->last; i++) {
		m->load[i] *= rate;
		m->work[i] *= rate / 2 / (1 - m->load[i]);
	}
}

/* Returns what the messages that end in the level from point @i to point @j add to the
 * mean. */
static double pias_cost(const struct pias_model *m, u32 i, u32 j)
{
	double share = m->share[j] - m->share[i];
	double sum = m->sum[j] - m->sum[i];

	return (m->work[j] * share + sum) / (1 - m->load[i]);
}

void pias_thresholds(const struct homa_workload *workload, double load, u32 mss,
		     u64 threshold[WINDOW_LEVELS - 1])
{
	u16 from[WINDOW_LEVELS][PIAS_GRID];
	double best[2][PIAS_GRID], cost;
	struct pias_model m;
	u32 level, i, j;

	load = load < 0.05 ? 0.05 : load > 0.95 ? 0.95 : load;
	pias_model(&m, workload, load, mss);
	for (j = 0; j <= m.last; j++)
		best[0][j] = pias_cost(&m, 0, j);
	for (level = 1; level < WINDOW_LEVELS; level++) {
		for (j = 0; j <= m.last; j++) {
			best[level & 1][j] = best[~level & 1][j];
			from[level][j] = (u16)j; /* the level is empty */
			for (i = 1; i < j; i++) {
				cost = best[~level & 1][i] + pias_cost(&m, i, j);
				if (cost >= best[level & 1][j])
					continue;
				best[level & 1][j] = cost;
				from[level][j] = (u16)i;
			}
		}
	}
	for (j = m.last, level = WINDOW_LEVELS - 1; level > 0; level--) {
		j = from[level][j];
		threshold[level - 1] = (u64)m.at[j];
	}
}

/* ---- protocol ---- */

static u8 pias_level(const struct window *w, const struct window_flow *f, u64 seq)
{
	u64 sent = seq > f->level_base ? seq - f->level_base : 0;
	u8 level = 0;

	while (level < WINDOW_LEVELS - 1 && sent >= w->threshold[level])
		level++;
	return level;
}

static const struct window_policy pias_policy = {
	.ecn = true,
	.per_message = true,
	.data_prio = SIM_PRIORITIES - 1,
	.ack_prio = SIM_PRIORITIES - 1,
	.acked = dctcp_acked,
	.level = pias_level,
};

static const char *const pias_presets[] = { "sigcomm18", "nsdi15", NULL };

static bool pias_is_study(const struct sim_config *cfg)
{
	return !cfg->preset[0] || !strcmp(cfg->preset, pias_presets[0]);
}

static int pias_defaults(struct sim_config *cfg)
{
	window_defaults(cfg, pias_options);
	cfg->ecn_bytes = WINDOW_ECN_AUTO;
	if (pias_is_study(cfg)) {
		cfg->balance = SIM_SPRAY;
		cfg->port_bytes = 250 * 1500;
		cfg->option[WINDOW_K] = 15;
		cfg->option[WINDOW_MAX] = 249 * 1460;
		cfg->option[WINDOW_DUPACKS] = WINDOW_NO_DUPACKS;
		return 0;
	}
	if (strcmp(cfg->preset, pias_presets[1]))
		return -EINVAL;
	cfg->port_bytes = 267 * 1500;
	cfg->option[WINDOW_INITIAL] = 70;
	cfg->option[WINDOW_RTO_MIN] = 2000;
	return 0;
}

/* The study's thresholds for its workloads at 80 and at 50 % load, in bytes. */
static const struct {
	/* Name of the workload. */
	const char *name;
	/* The thresholds at 80 % and at 50 % load. */
	u64 high[WINDOW_LEVELS - 1], low[WINDOW_LEVELS - 1];
} pias_study[] = {
	{ "w1", { 183, 259, 287, 314, 332, 352, 367 }, { 207, 268, 287, 306, 318, 329, 336 } },
	{ "w2", { 368, 410, 422, 435, 442, 451, 457 }, { 382, 414, 422, 431, 437, 441, 444 } },
	{ "w3", { 436, 554, 633, 720, 784, 865, 939 }, { 466, 579, 631, 693, 736, 774, 799 } },
	{ "w4",
	  { 38210, 48958, 50905, 68384, 73799, 76588, 78129 },
	  { 43898, 49621, 50878, 64461, 70549, 73131, 74788 } },
	{ "w5",
	  { 1327140, 1940340, 2406080, 2861600, 3128780, 3412020, 3626640 },
	  { 1546140, 2061520, 2398780, 2728740, 2931680, 3087900, 3188640 } },
};

static void pias_choose(struct sim *sim, struct window *w)
{
	u32 i;

	for (i = 0; i < sizeof(pias_study) / sizeof(pias_study[0]); i++) {
		if (!pias_is_study(&sim->cfg) ||
		    strcmp(pias_study[i].name, sim->workload.name))
			continue;
		memcpy(w->threshold,
		       sim->cfg.load > 0.65 ? pias_study[i].high : pias_study[i].low,
		       sizeof(w->threshold));
		return;
	}
	pias_thresholds(&sim->workload, sim->cfg.load, w->mss, w->threshold);
}

/* Starts the protocol with the user's thresholds where they are given, and the others as
 * computed; no level begins before the one above it. */
static int pias_start(struct sim *sim)
{
	int res = window_start(sim, &pias_policy);
	u64 least = 0, set;
	struct window *w;
	u32 i;

	if (res)
		return res;
	w = window_of(sim);
	if (sim->cfg.option[WINDOW_NS2_SIZES]) {
		w->extra = 0;
		w->least = 0;
	}
	pias_choose(sim, w);
	for (i = 0; i < WINDOW_LEVELS - 1; i++) {
		set = sim->cfg.option[WINDOW_THRESHOLD + i];
		if (set)
			w->threshold[i] = set;
		if (w->threshold[i] < least)
			w->threshold[i] = least;
		least = w->threshold[i];
	}
	return 0;
}

static void pias_metrics(struct sim *sim,
			 void (*put)(void *arg, const char *name, double value), void *arg)
{
	static const char *const name[WINDOW_LEVELS - 1] = {
		"threshold_1", "threshold_2", "threshold_3", "threshold_4",
		"threshold_5", "threshold_6", "threshold_7",
	};
	u32 i;

	window_metrics(sim, put, arg);
	for (i = 0; i < WINDOW_LEVELS - 1; i++)
		put(arg, name[i], (double)window_of(sim)->threshold[i]);
}

const struct sim_transport sim_pias = {
	.name = "pias",
	.title = "PIAS",
	.text = "PIAS: priority by bytes sent, on DCTCP, a stream per message (NSDI'15)",
	.options = pias_options,
	.presets = pias_presets,
	.defaults = pias_defaults,
	.start = pias_start,
	.stop = window_stop,
	.send = window_send,
	.tx = window_tx,
	.rx = window_rx,
	.metrics = pias_metrics,
};
