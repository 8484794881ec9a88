// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The denominator of every slowdown, and how many bytes Homa's packets have.
 *
 * sim_ideal_ps() is the time from sim_send() to delivery of a message that is
 * alone in the network, sent without a pause in Homa's packets of the chosen
 * header model. It is computed, not simulated, and exact to the picosecond.
 * All packets but the last are alike. A row of like packets through a chain of
 * links never waits for anything but the slowest link so far:
 *
 *	start(i, h) = sum of latencies before h + i * wire * slowest rate up to h
 *
 * The last packet may be shorter. It follows the one before it, link by link:
 * it starts when it is there and the other one has left. So the whole takes as
 * many steps as there are links, however long the message is.
 *
 * The latency of a link is how long after the start on it the next link may
 * start: the packet's time and the delay with store and forward, 64 bytes'
 * time and the delay where the next switch cuts through (see net.c).
 *
 * Packets are taken to stay in order. Where each takes its own path, a last
 * packet that is short may overtake the only one before it; then a message of
 * two packets is complete a little earlier than this, by a few percent at most.
 *
 * Header models. True: IPv4 and what the engine writes. SIGCOMM'18: UDP/IP 28
 * bytes, Homa 30 in DATA and 16 in all other packets; so a full packet carries
 * 1,442 bytes at MTU 1500. That study had 16-byte headers in scheduled DATA
 * too, hence 1,456 bytes; the engine has one kind of DATA and 1,442 in all.
 */
#include "net_impl.h"
#include "homa_wire.h"

#define IP_HDR 20u
#define UDP_IP_HDR 28u
#define STUDY_DATA_HDR 30u
#define STUDY_CTRL_HDR 16u
#define MAX_HOPS 8

struct chain {
	/* Number of links from sender to receiver. */
	u32 hops;
	u32 rate[MAX_HOPS]; /* time that each link needs for a byte, ps */
	/* Time of the way over each link and of what is at its end, ps. */
	u64 delay[MAX_HOPS];
};

u32 sim_homa_segment(const struct sim_config *cfg)
{
	return cfg->mtu - sim_homa_data_ip(cfg, 0);
}

u32 sim_homa_data_ip(const struct sim_config *cfg, u32 payload)
{
	if (cfg->sigcomm_headers)
		return UDP_IP_HDR + STUDY_DATA_HDR + payload;
	return IP_HDR + HOMA_DATA_HDR + payload;
}

u32 sim_homa_ctrl_ip(const struct sim_config *cfg, u32 hdr_len)
{
	if (cfg->sigcomm_headers)
		return UDP_IP_HDR + STUDY_CTRL_HDR;
	return IP_HDR + hdr_len;
}

/* Returns the number of links between two hosts when all links are up. */
static u32 chain_hops(const struct sim *sim, u32 src, u32 dst)
{
	const u32 *edge = sim->net->host_edge;
	u32 pod;

	if (edge[src] == edge[dst])
		return 2;
	if (sim->cfg.topology != SIM_FAT_TREE)
		return 4;
	pod = sim->cfg.k / 2; /* edge switches in a pod */
	return (edge[src] - sim->net->hosts) / pod == (edge[dst] - sim->net->hosts) / pod ?
		       4 :
		       6;
}

static void chain_of(const struct sim *sim, u32 src, u32 dst, struct chain *chain)
{
	const struct sim_config *cfg = &sim->cfg;
	const u32 host_rate = sim->hosts[src].up->ps_per_byte;
	u32 i, last;

	chain->hops = chain_hops(sim, src, dst);
	last = chain->hops - 1;
	chain->rate[0] = host_rate;
	chain->delay[0] = cfg->send_ps + cfg->host_prop_ps + cfg->switch_ps;
	for (i = 1; i < last; i++) {
		chain->rate[i] = 8000000u / cfg->fabric_mbps;
		chain->delay[i] = cfg->fabric_prop_ps + cfg->switch_ps;
	}
	chain->rate[last] = host_rate;
	chain->delay[last] = cfg->host_prop_ps + cfg->recv_ps;
}

/* Returns the time from the start of a packet on link @h to its earliest start on the next link,
 * or to its end on the last one. */
static u64 chain_latency(const struct chain *chain, u32 h, u32 wire,
			 const struct sim_config *cfg)
{
	if (cfg->shaped)
		return chain->delay[h];
	if (cfg->cut_through && h + 1 < chain->hops && chain->rate[h + 1] >= chain->rate[h])
		wire = SIM_CUT_BYTES;
	return (u64)wire * chain->rate[h] + chain->delay[h];
}

u64 sim_ideal_ps(const struct sim *sim, u32 src, u32 dst, u32 length)
{
	const struct sim_config *cfg = &sim->cfg;
	const u32 segment = sim_homa_segment(cfg);
	const u32 full = sim_wire(sim_homa_data_ip(cfg, segment));
	const u32 before = length ? (length - 1) / segment : 0; /* packets before the last */
	const u32 last = sim_wire(sim_homa_data_ip(cfg, length - before * segment));
	u64 lead = 0, at = 0, left;
	struct chain chain;
	u32 h, slowest = 0;

	chain_of(sim, src, dst, &chain);
	for (h = 0; h < chain.hops; h++) {
		if (before) {
			/* @lead: start of the first packet on this link; @left: end of the
			 * last full packet on it. */
			if (chain.rate[h] > slowest)
				slowest = chain.rate[h];
			left = lead + (u64)(before - 1) * full * slowest +
			       (u64)full * chain.rate[h];
			if (at < left)
				at = left;
			lead += chain_latency(&chain, h, full, cfg);
		}
		at += chain_latency(&chain, h, last, cfg);
	}
	return at;
}
