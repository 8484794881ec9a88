/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The network: an up-link that serialises, a path that may lose, duplicate,
 * delay or damage, and a switch port toward the receiver with eight strict
 * priorities. A packet is one malloc(), so reading beyond it is seen.
 */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAMING 38u /* preamble, Ethernet header, FCS, gap */

struct pair_pkt *pair_pkt_new(u8 src, u8 dst, u8 prio, u32 len)
{
	struct pair_pkt *pkt = malloc(sizeof(*pkt) + len);

	if (!pkt)
		abort();
	memset(pkt, 0, sizeof(*pkt));
	pkt->src = src;
	pkt->dst = dst;
	pkt->prio = prio;
	pkt->len = len;
	return pkt;
}

static struct pair_pkt *pkt_copy(const struct pair_pkt *pkt)
{
	struct pair_pkt *copy =
		pair_pkt_new(pkt->src, pkt->dst, pkt->prio, pkt->len);

	copy->damaged = pkt->damaged;
	copy->stranger = pkt->stranger;
	copy->born = pkt->born;
	copy->born_clock = pkt->born_clock;
	memcpy(copy->data, pkt->data, pkt->len);
	return copy;
}

void pair_queue_init(struct pair_queue *q)
{
	q->head = NULL;
	q->tail = &q->head;
	q->count = 0;
}

void pair_queue_put(struct pair_queue *q, struct pair_pkt *pkt)
{
	pkt->next = NULL;
	*q->tail = pkt;
	q->tail = &pkt->next;
	q->count++;
}

struct pair_pkt *pair_queue_get(struct pair_queue *q)
{
	struct pair_pkt *pkt = q->head;

	if (!pkt)
		return NULL;
	q->head = pkt->next;
	if (!q->head)
		q->tail = &q->head;
	q->count--;
	return pkt;
}

int pair_host_of(const struct pair_world *w, const struct homa_addr *addr)
{
	u32 i;

	for (i = 0; i < w->cfg.hosts; i++)
		if (homa_addr_equal(&w->hosts[i].addr, addr))
			return (int)i;
	return -1;
}

u64 pair_wire_ns(const struct pair_world *w, u32 homa_len)
{
	u64 bytes = homa_len + FRAMING + (w->cfg.v6 ? 40 : 20) +
		    (w->cfg.encap ? 8 : 0);

	if (!w->cfg.rate_mbps)
		return 0;
	if (bytes < 84)
		bytes = 84;
	return bytes * 8000 / w->cfg.rate_mbps;
}

void pair_faults_all(struct pair_world *w, const struct pair_faults *faults)
{
	u32 i, j;

	for (i = 0; i < w->cfg.hosts; i++)
		for (j = 0; j < w->cfg.hosts; j++)
			w->paths[i][j] = *faults;
	if (faults->corrupt)
		w->corrupting = true;
}

struct pair_filter *pair_filter_add(struct pair_world *w, u8 type, u8 src,
				    u8 dst, u32 skip, u32 count)
{
	struct pair_filter *f;

	pair_check(w, w->num_filters < PAIR_MAX_FILTERS, "too many filters");
	f = &w->filters[w->num_filters++];
	*f = (struct pair_filter){
		.type = type, .src = src, .dst = dst, .skip = skip, .count = count
	};
	return f;
}

void pair_cut(struct pair_world *w, u8 a, u8 b, bool cut)
{
	w->paths[a][b].cut = cut;
	w->paths[b][a].cut = cut;
}

static bool filtered(struct pair_world *w, const struct pair_pkt *pkt)
{
	u32 i;

	for (i = 0; i < w->num_filters; i++) {
		struct pair_filter *f = &w->filters[i];

		if ((f->type && f->type != homa_peek_type(pkt->data)) ||
		    (f->src != PAIR_ANY && f->src != pkt->src) ||
		    (f->dst != PAIR_ANY && f->dst != pkt->dst))
			continue;
		if (f->skip) {
			f->skip--;
			continue;
		}
		if (f->hits < f->count) {
			f->hits++;
			return true;
		}
	}
	return false;
}

/* ---- the switch's port toward a host ---- */

static void port_next(struct pair_host *host);

static void port_done(struct pair_host *host, void *arg, bool stale)
{
	struct pair_pkt *pkt = arg;

	(void)stale;
	host->port.busy = false;
	if (!host->up) {
		free(pkt);
		return;
	}
	pair_rx_arrived(host, pkt);
	port_next(host);
}

static void port_next(struct pair_host *host)
{
	struct pair_port *port = &host->port;
	struct pair_pkt *pkt = NULL;
	int i;

	if (port->busy || !host->up)
		return;
	for (i = 7; i >= 0 && !pkt; i--)
		pkt = pair_queue_get(&port->queue[i]);
	if (!pkt)
		return;
	port->bytes -= pkt->len;
	port->busy = true;
	pair_event_wire(host,
			host->world->now + pair_wire_ns(host->world, pkt->len),
			port_done, pkt);
}

static void port_arrive(struct pair_host *host, void *arg, bool stale)
{
	struct pair_world *w = host->world;
	struct pair_port *port = &host->port;
	struct pair_pkt *pkt = arg;

	/* A packet on its way to a former life reaches the new one. */
	(void)stale;
	if (!host->up || w->paths[pkt->src][pkt->dst].cut) {
		w->did[PAIR_DID_CUT] += host->up;
		free(pkt);
		return;
	}
	if (w->cfg.port_limit && port->bytes + pkt->len > w->cfg.port_limit) {
		port->drops++;
		w->did[PAIR_DID_PORT_FULL]++;
		free(pkt);
		return;
	}
	pair_queue_put(&port->queue[pkt->prio & 7], pkt);
	port->bytes += pkt->len;
	if (port->bytes > port->peak)
		port->peak = port->bytes;
	port_next(host);
}

void pair_net_deliver(struct pair_world *w, struct pair_pkt *pkt)
{
	struct pair_host *host = &w->hosts[pkt->dst];

	if (!host->up)
		free(pkt);
	else
		pair_rx_arrived(host, pkt);
}

/* ---- the sender's side ---- */

static void damage(struct pair_world *w, struct pair_pkt *pkt)
{
	u32 flips = 1 + pair_below(&w->rng_net, 4);
	u32 span = pair_chance(&w->rng_net, 700) && pkt->len > 56 ? 56 : pkt->len;

	pkt->damaged = true;
	if (pair_chance(&w->rng_net, 200))
		pkt->len = pair_below(&w->rng_net, pkt->len + 1);
	while (flips-- && pkt->len) {
		u32 at = pair_below(&w->rng_net, span);

		if (at < pkt->len)
			pkt->data[at] ^= (u8)(1u << pair_below(&w->rng_net, 8));
	}
}

static void travel(struct pair_world *w, struct pair_pkt *pkt, u64 left_at,
		   bool again)
{
	struct pair_faults *f = &w->paths[pkt->src][pkt->dst];
	u64 at = left_at + w->cfg.latency_ns + pkt->src * w->cfg.latency_step_ns;

	if (pair_chance(&w->rng_net, f->loss)) {
		w->did[PAIR_DID_LOSE]++;
		free(pkt);
		return;
	}
	if (!again && pair_chance(&w->rng_net, f->dup)) {
		u64 late = f->dup_max_ns ?
				   pair_rand(&w->rng_net) % f->dup_max_ns :
				   0;

		w->did[PAIR_DID_COPY]++;
		w->did[PAIR_DID_COPY_LATE] += late > PAIR_S;
		travel(w, pkt_copy(pkt), left_at + late, true);
	}
	if (f->reorder_max_ns && pair_chance(&w->rng_net, f->reorder)) {
		w->did[PAIR_DID_REORDER]++;
		at += pair_rand(&w->rng_net) % f->reorder_max_ns;
	}
	if (pair_chance(&w->rng_net, f->corrupt)) {
		w->did[PAIR_DID_DAMAGE]++;
		damage(w, pkt);
	}
	pair_event_wire(&w->hosts[pkt->dst], at, port_arrive, pkt);
}

static void digest(struct pair_world *w, const struct pair_pkt *pkt)
{
	u32 i, n = pkt->len < HOMA_MAX_HDR ? pkt->len : HOMA_MAX_HDR;
	u64 d = w->digest;

	d = (d ^ w->now) * 0x100000001b3ull;
	d = (d ^ (pkt->src | pkt->dst << 8 | pkt->prio << 16 |
		  (u64)pkt->len << 32)) *
	    0x100000001b3ull;
	for (i = 0; i < n; i++)
		d = (d ^ pkt->data[i]) * 0x100000001b3ull;
	w->digest = d;
}

/* PAIR_TRACE: every packet; PAIR_TRACE=id: those of one RPC (client's id, hex). */
void pair_trace(struct pair_world *w, const char *what, const struct pair_pkt *pkt)
{
	static const char *only;
	static int on = -1;
	struct homa_packet p;

	if (on < 0) {
		only = getenv("PAIR_TRACE");
		on = only != NULL;
	}
	if (!on)
		return;
	if (homa_packet_decode(&p, pkt->data, pkt->len)) {
		fprintf(stderr, "%.6f %s %u->%u damaged\n",
			(double)w->now / 1e9, what, pkt->src, pkt->dst);
		return;
	}
	if (*only && (p.hdr.sender_id & ~1ull) != strtoull(only, NULL, 16))
		return;
	fprintf(stderr, "%.6f %s %u->%u %s id %llx prio %u", (double)w->now / 1e9,
		what, pkt->src, pkt->dst, homa_type_name(p.hdr.type),
		(unsigned long long)p.hdr.sender_id, pkt->prio);
	if (p.hdr.type == HOMA_DATA)
		fprintf(stderr, " %u+%u of %u incoming %u%s", p.data.offset,
			p.data.payload_len, p.data.length, p.data.incoming,
			p.data.retransmit ? " again" : "");
	else if (p.hdr.type == HOMA_RESEND)
		fprintf(stderr, " %u+%u", p.resend.offset, p.resend.length);
	else if (p.hdr.type == HOMA_GRANT)
		fprintf(stderr, " %u prio %u", p.grant.offset, p.grant.priority);
	fputc('\n', stderr);
}

void pair_net_send(struct pair_host *from, struct pair_pkt *pkt)
{
	struct pair_world *w = from->world;
	u64 start = w->now > from->nic_free_at ? w->now : from->nic_free_at;
	u8 type = homa_peek_type(pkt->data);

	from->nic_free_at = start + pair_wire_ns(w, pkt->len);
	from->tx_packets++;
	from->tx_bytes += pkt->len;
	w->packets++;
	if (type >= HOMA_TYPE_FIRST && type <= HOMA_TYPE_LAST)
		w->by_type[type - HOMA_TYPE_FIRST]++;
	digest(w, pkt);
	pair_trace(w, "sends", pkt);
	pair_check(w, w->packets <= w->cfg.max_packets,
		   "livelock? %llu packets", (unsigned long long)w->packets);
	pkt->born = w->now;
	pkt->born_clock = pair_now(&w->hosts[pkt->dst]);
	if (w->intercept && w->intercept(w, pkt))
		return;
	if ((w->tap && w->tap(w, pkt, w->tap_arg)) || filtered(w, pkt) ||
	    w->paths[pkt->src][pkt->dst].cut) {
		w->did[PAIR_DID_CUT] += w->paths[pkt->src][pkt->dst].cut;
		free(pkt);
		return;
	}
	travel(w, pkt, from->nic_free_at, false);
}
