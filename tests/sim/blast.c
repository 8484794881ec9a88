// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "blast.h"

struct blast_host {
	struct sim_event tick;
	struct blast *blast;
	u32 index;
	struct sim_fifo fifo;
};

struct blast {
	blast_fn on_rx;
	void *arg;
	u32 percent;
	u64 until;
	struct homa_prng rng;
	struct blast_host hosts[];
};

static int blast_start(struct sim *sim)
{
	const u32 n = sim->cfg.hosts;
	struct blast *blast =
		calloc(1, sizeof(*blast) + n * sizeof(*blast->hosts));
	u32 i;

	if (!blast)
		return -ENOMEM;
	homa_prng_seed(&blast->rng, sim->cfg.seed, 99);
	for (i = 0; i < n; i++) {
		blast->hosts[i].blast = blast;
		blast->hosts[i].index = i;
		blast->hosts[i].fifo.tail = &blast->hosts[i].fifo.head;
		sim->hosts[i].proto = &blast->hosts[i];
	}
	sim->proto = blast;
	return 0;
}

static void blast_stop(struct sim *sim)
{
	free(sim->proto);
}

static struct sim_pkt *blast_tx(struct sim *sim, struct sim_host *host)
{
	struct blast_host *bh = host->proto;
	struct sim_pkt *pkt = bh->fifo.head;

	if (!pkt)
		return NULL;
	/* A transport may kick its port at any time. */
	sim_port_kick(sim, host->up);
	bh->fifo.head = pkt->next;
	if (!pkt->next)
		bh->fifo.tail = &bh->fifo.head;
	bh->fifo.packets--;
	pkt->next = NULL;
	return pkt;
}

static void blast_rx(struct sim *sim, struct sim_host *host, struct sim_pkt *pkt)
{
	struct blast *blast = sim->proto;

	(void)host;
	if (blast->on_rx)
		blast->on_rx(sim, pkt, blast->arg);
	sim_pkt_free(sim, pkt);
}

static void blast_msg(struct sim *sim, struct sim_host *host, struct sim_msg *msg)
{
	(void)sim;
	(void)host;
	(void)msg;
}

const struct sim_transport sim_blast = {
	.name = "blast",
	.title = "Blast",
	.text = "sends what it is told to",
	.start = blast_start,
	.stop = blast_stop,
	.send = blast_msg,
	.tx = blast_tx,
	.rx = blast_rx,
};

struct sim *blast_new(struct sim_config *cfg)
{
	char err[256] = "";
	struct sim *sim;

	cfg->transport = &sim_blast;
	sim = sim_new(cfg, err, sizeof(err));
	if (!sim)
		fprintf(stderr, "%s\n", err);
	return sim;
}

void blast_on_rx(struct sim *sim, blast_fn fn, void *arg)
{
	struct blast *blast = sim->proto;

	blast->on_rx = fn;
	blast->arg = arg;
}

struct sim_pkt *blast_pkt(struct sim *sim, u32 src, u32 dst, u32 wire, u8 prio)
{
	struct sim_pkt *pkt = sim_pkt_new(sim);

	pkt->src = (u16)src;
	pkt->dst = (u16)dst;
	pkt->wire = wire;
	pkt->payload = wire - SIM_MIN_WIRE;
	pkt->prio = prio;
	return pkt;
}

void blast_send(struct sim *sim, struct sim_pkt *pkt)
{
	struct sim_host *host = &sim->hosts[pkt->src];
	struct blast_host *bh = host->proto;

	*bh->fifo.tail = pkt;
	bh->fifo.tail = &pkt->next;
	bh->fifo.packets++;
	sim_port_kick(sim, host->up);
}

static void blast_now(struct sim *sim, struct sim_event *ev)
{
	blast_send(sim, homa_container_of(ev, struct sim_pkt, ev));
}

void blast_send_at(struct sim *sim, struct sim_pkt *pkt, u64 at)
{
	pkt->ev.fn = blast_now;
	sim_event_add(sim->agenda, &pkt->ev, at);
}

struct sim_pkt *blast_random(struct sim *sim, u32 src)
{
	struct blast *blast = sim->proto;
	const u64 word = homa_prng_next(&blast->rng);
	u32 dst = homa_prng_below(&blast->rng, sim->cfg.hosts - 1);
	u32 wire = word & 1 ? 1538 : SIM_MIN_WIRE + (word >> 8) % 1455;
	struct sim_pkt *pkt;

	if (dst >= src)
		dst++;
	pkt = blast_pkt(sim, src, dst, wire, (word >> 24) % SIM_PRIORITIES);
	pkt->rank = (word >> 32) % 1000000;
	pkt->msg_serial = (word >> 52) % 16;
	pkt->flow = (u32)(word >> 48);
	if (word & 2)
		pkt->flags |= SIM_ECN_CAPABLE;
	return pkt;
}

static void blast_tick(struct sim *sim, struct sim_event *ev)
{
	struct blast_host *bh = homa_container_of(ev, struct blast_host, tick);
	struct blast *blast = bh->blast;
	struct sim_pkt *pkt = blast_random(sim, bh->index);
	/* Uniform in 0 .. 2 * mean, in units of 1/1024 of the packet's time. */
	const u64 mean = (u64)pkt->wire * sim->hosts[0].up->ps_per_byte * 100 /
			 blast->percent;
	const u64 gap = mean * homa_prng_below(&blast->rng, 2048) / 1024;

	blast_send(sim, pkt);
	if (sim->now + gap < blast->until)
		sim_event_add(sim->agenda, &bh->tick, sim->now + gap);
}

void blast_load(struct sim *sim, u32 percent, u64 until)
{
	struct blast *blast = sim->proto;
	u32 i;

	blast->percent = percent;
	blast->until = until;
	for (i = 0; i < sim->cfg.hosts; i++) {
		blast->hosts[i].tick.fn = blast_tick;
		sim_event_add(sim->agenda, &blast->hosts[i].tick,
			      sim->now + homa_prng_below(&blast->rng, SIM_US));
	}
}

u64 blast_waiting(const struct sim *sim)
{
	const struct blast *blast = sim->proto;
	u64 sum = 0;
	u32 i;

	for (i = 0; i < sim->cfg.hosts; i++)
		sum += blast->hosts[i].fifo.packets;
	return sum;
}
