// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Packets, and what a port counts about them. They come from slabs that only the end
 * of the run gives back. A packet is dropped here, whichever queue does it, so that
 * the run, the port and whoever listens are told.
 */
#include <stdlib.h>
#include <string.h>

#include "net_impl.h"

#define PKTS_PER_SLAB 256
#define PKT_ALIGN 64

struct pkt_slab {
	/* The slab that was made before this one; NULL: none was. */
	struct pkt_slab *next;
	char pad[PKT_ALIGN - sizeof(void *)];
	/* Memory for packets. */
	struct pkt_room {
		/* The packet, or a free one in sim->free_pkts. */
		struct sim_pkt pkt;
	} __attribute__((aligned(PKT_ALIGN))) rooms[PKTS_PER_SLAB];
};

static bool pkts_grow(struct sim *sim)
{
	struct pkt_slab *slab = aligned_alloc(PKT_ALIGN, sizeof(*slab));
	u32 i;

	if (!slab)
		return false;
	slab->next = sim->net->slabs;
	sim->net->slabs = slab;
	for (i = PKTS_PER_SLAB; i-- > 0;) {
		slab->rooms[i].pkt.via = NULL;
		slab->rooms[i].pkt.next = sim->free_pkts;
		sim->free_pkts = &slab->rooms[i].pkt;
	}
	return true;
}

/* Zeroes all but the header bytes, in whole cache lines: a plain memset() becomes a slow
 * string instruction. */
static inline void pkt_clear(struct sim_pkt *pkt)
{
	char *p = (char *)pkt;
	size_t i;

	for (i = 0; i < (offsetof(struct sim_pkt, hdr) & ~63ul); i += 64)
		memset(p + i, 0, 64);
	memset(p + i, 0, offsetof(struct sim_pkt, hdr) % 64);
}

struct sim_pkt *sim_pkt_new(struct sim *sim)
{
	struct sim_pkt *pkt;

	if (unlikely(!sim->free_pkts) && !pkts_grow(sim))
		return NULL;
	pkt = sim->free_pkts;
	sim->free_pkts = pkt->next;
	pkt_clear(pkt);
	sim->counts.pkts_live++;
	return pkt;
}

void sim_pkt_free(struct sim *sim, struct sim_pkt *pkt)
{
	pkt->via = NULL;
	pkt->next = sim->free_pkts;
	sim->free_pkts = pkt;
	sim->counts.pkts_live--;
}

u64 sim_pkts_on_their_way(const struct sim *sim)
{
	const struct pkt_slab *slab;
	u64 n = 0;
	u32 i;

	for (slab = sim->net->slabs; slab; slab = slab->next)
		for (i = 0; i < PKTS_PER_SLAB; i++)
			n += slab->rooms[i].pkt.via != NULL;
	return n;
}

void sim_drop(struct sim *sim, struct sim_port *port, struct sim_pkt *pkt)
{
	struct sim_tap *tap;

	sim->counts.pkts_dropped++;
	sim->counts.wire_dropped += pkt->wire;
	port->stats.drops++;
	port->stats.drop_bytes += pkt->wire;
	for (tap = sim->taps; tap; tap = tap->next)
		if (tap->dropped)
			tap->dropped(tap->arg, sim, port, pkt);
	sim_pkt_free(sim, pkt);
}

/* account_at is in ns, so that the integral neither overflows nor drifts. */
void sim_port_account(struct sim *sim, struct sim_port *port, s64 bytes, s32 packets)
{
	u64 now_ns = sim_ns(sim->now);
	struct sim_tap *tap;

	port->stats.byte_ns += port->bytes * (now_ns - port->account_at);
	port->account_at = now_ns;
	port->bytes += (u64)bytes;
	port->packets += (u32)packets;
	if (port->bytes > port->stats.peak)
		port->stats.peak = port->bytes;
	if (sim->cfg.shared_bytes)
		sim->net->sw[port->node - sim->net->hosts].buffered += (u64)bytes;
	for (tap = sim->taps; tap; tap = tap->next)
		if (tap->queued)
			tap->queued(tap->arg, sim, port);
}

void sim_pkts_free(struct sim_net *net)
{
	while (net->slabs) {
		struct pkt_slab *slab = net->slabs;

		net->slabs = slab->next;
		free(slab);
	}
}
