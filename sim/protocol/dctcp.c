// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * DCTCP (Alizadeh et al., "Data Center TCP", SIGCOMM'10; RFC 8257): switches
 * mark packets that find more than K in the queue, the receiver echoes every
 * mark, and the sender keeps the moving average alpha of the marked share and
 * takes away alpha / 2 of its window, once per window of data. All else is
 * TCP, also after a loss; see window.h and tcp.c, whose parameters it shares.
 *
 * Parameters: g = 1/16 and alpha = 1 at the start (RFC 8257); K = 65 packets
 * at 10 Gbit/s (SIGCOMM'10), in proportion at other rates of the host links.
 * One K holds for all ports: a faster core link then marks earlier than the
 * paper would have it, which matters little as long as it is not the
 * bottleneck. Marking looks at the queue when a packet is put into it. The
 * window is never made smaller than two segments by a mark. No growth comes
 * from an ack that echoes one.
 */
#include "window.h"

#define ALPHA_ONE (1u << 20)

static const struct sim_option dctcp_options[] = {
	WINDOW_OPTIONS(10, 10000, 2, WINDOW_STREAMS_OPTION),
	WINDOW_ECN_OPTIONS,
	{ NULL, 0, 0, 0, NULL, NULL },
};

static void dctcp_average(const struct window *w, struct window_flow *f)
{
	u64 share;

	if (f->snd_una < f->alpha_end || !f->alpha_acked)
		return;
	share = f->alpha_marked * ALPHA_ONE / f->alpha_acked;
	f->alpha += (u32)(share >> w->gain) - (f->alpha >> w->gain);
	/* Shifts alone never quite reach 0, so a negligible value becomes 0. */
	if (!share && f->alpha < ALPHA_ONE >> 10)
		f->alpha = 0;
	f->alpha_acked = 0;
	f->alpha_marked = 0;
	f->alpha_end = f->snd_nxt;
}

static void dctcp_cut(struct window *w, struct window_flow *f)
{
	u64 cut = f->cwnd * f->alpha / (2ull * ALPHA_ONE);

	if (f->recovering || f->snd_una <= f->cwr_end)
		return;
	f->cwr_end = f->snd_nxt;
	f->cwnd -= cut;
	if (f->cwnd < 2ull * w->mss)
		f->cwnd = 2ull * w->mss;
	f->ssthresh = f->cwnd;
	f->ca_bytes = 0;
	w->counts.cuts++;
}

bool dctcp_acked(struct window *w, struct window_flow *f, u32 bytes, bool ce)
{
	f->alpha_acked += bytes;
	if (ce)
		f->alpha_marked += bytes;
	dctcp_average(w, f);
	if (ce)
		dctcp_cut(w, f);
	return !ce;
}

static const struct window_policy dctcp_policy = {
	.ecn = true,
	.acked = dctcp_acked,
};

static int dctcp_defaults(struct sim_config *cfg)
{
	window_defaults(cfg, dctcp_options);
	cfg->shared_bytes = WINDOW_SWITCH_BYTES;
	cfg->shared_alpha = 256;
	sim_costs_default(&cfg->software, SIM_STACK_TCP);
	cfg->ecn_bytes = WINDOW_ECN_AUTO;
	return 0;
}

static int dctcp_start(struct sim *sim)
{
	return window_start(sim, &dctcp_policy);
}

const struct sim_transport sim_dctcp = {
	.name = "dctcp",
	.title = "DCTCP",
	.text = "DCTCP over lasting connections (SIGCOMM'10, RFC 8257)",
	.options = dctcp_options,
	.defaults = dctcp_defaults,
	.start = dctcp_start,
	.stop = window_stop,
	.send = window_send,
	.tx = window_tx,
	.rx = window_rx,
	.metrics = window_metrics,
};
