/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * A host that lies. It runs an engine like the others, so it has RPCs with them; it sees
 * what is sent to it, knows the protocol, and may send under any address. It does not see
 * what others say to each other: their ids are secrets to it. What it makes an honest
 * host believe about their RPCs with itself is its own affair; RPCs between honest hosts
 * must not notice. Requests that it makes under other names are executed like all that
 * come, so each of them is written down, and one that it did not make is still a fault.
 */
#include "world.h"

#include <stdlib.h>
#include <string.h>

#define MOST_LIES 2000 /* packets of one fault */
#define MTU 1400

static u8 liar_of(const struct world *world, const struct world_fault *f)
{
	u32 liars = world->plan->liars;

	return (u8)(world_honest(world) + (liars ? f->mask % liars : 0));
}

/* ---- who made what ---- */

static u64 name_of(const struct homa_addr *src, u64 id)
{
	u64 v = id & ~1ull;
	u32 i;

	for (i = 0; i < 16; i++)
		v = pair_mix(v ^ src->ip[i]);
	return v | 1;
}

static struct homa_addr address(const struct pair_world *w,
				const struct pair_pkt *pkt)
{
	struct homa_addr addr = w->hosts[pkt->src].addr;

	if (pkt->stranger) {
		addr.ip[13] = (u8)(pkt->stranger >> 8);
		addr.ip[14] = (u8)pkt->stranger;
	}
	return addr;
}

/* A full table forgets nothing: the lie is not told. */
static bool note(struct world *world, const struct pair_pkt *pkt, u64 id)
{
	struct homa_addr addr = address(world->w, pkt);
	u64 name = name_of(&addr, id);
	u32 at = (u32)name % WORLD_FORGED, i;

	for (i = 0; i < 64; i++, at = (at + 1) % WORLD_FORGED) {
		if (world->forged[at] == name)
			return true;
		if (!world->forged[at]) {
			world->forged[at] = name;
			return true;
		}
	}
	return false;
}

bool world_forged(struct pair_world *w, const struct homa_addr *src, u64 id)
{
	struct world *world = world_of(w);
	int host = pair_host_of(w, src);
	u64 name = name_of(src, id);
	u32 at = (u32)name % WORLD_FORGED, i;

	if (host >= 0 && w->hosts[host].hostile)
		return true;
	for (i = 0; i < 64; i++, at = (at + 1) % WORLD_FORGED)
		if (world->forged[at] == name)
			return true;
	return false;
}

/* ---- packets ---- */

struct lie {
	struct world *world;
	struct world_fault *f;
	struct pair_host *liar;
	u8 to;
};

static void leave(struct lie *l, struct pair_pkt *pkt)
{
	l->world->lying = true;
	pair_net_send(l->liar, pkt);
	l->world->lying = false;
}

/* A packet in the name of @from, or of an address that is nobody's. */
static void say(struct lie *l, u8 from, u16 stranger,
		const struct homa_packet *p, u32 payload)
{
	struct pair_pkt *pkt =
		pair_pkt_new(from, l->to, 7, HOMA_MAX_HDR + payload);
	u32 i, n;

	memset(pkt->data, 0, pkt->len);
	n = homa_packet_encode(pkt->data, p);
	for (i = 0; i < payload; i++)
		pkt->data[n + i] = (u8)(pair_mix(i / 64) >> 8 * (i % 8));
	pkt->len = n + payload;
	pkt->stranger = stranger;
	if (p->hdr.type == HOMA_DATA && from < world_honest(l->world) &&
	    !note(l->world, pkt, p->hdr.sender_id))
		free(pkt);
	else
		leave(l, pkt);
}

static struct world_seen *heard(struct lie *l)
{
	struct world *world = l->world;
	u32 n = world->num_seen < WORLD_SEEN ? world->num_seen : WORLD_SEEN, i;

	for (i = 0; n && i < 8; i++) {
		struct world_seen *s = &world->seen[pair_below(&l->f->rng, n)];

		if (s->to == l->liar->index && s->len >= HOMA_COMMON_HDR)
			return s;
	}
	return NULL;
}

/* A packet about an RPC that the liar has with somebody, or about one of nobody. */
static struct homa_packet about(struct lie *l, u8 type)
{
	struct pair_rng *r = &l->f->rng;
	struct world_seen *s = pair_chance(r, 900) ? heard(l) : NULL;
	struct homa_packet p, got;

	memset(&p, 0, sizeof(p));
	p.hdr.type = type;
	p.hdr.sport = PAIR_SERVER_PORT;
	p.hdr.dport = 0x8000;
	p.hdr.sender_id = pair_rand(r);
	if (s && !homa_packet_decode(&got, s->data, s->len)) {
		l->to = s->from;
		p.hdr.sport = got.hdr.dport;
		p.hdr.dport = got.hdr.sport;
		p.hdr.sender_id = got.hdr.sender_id ^ 1;
	}
	return p;
}

/* Mostly itself; a peer believes some things from any address. */
static u8 some_name(struct lie *l)
{
	return pair_chance(&l->f->rng, 800) ?
		       l->liar->index :
		       (u8)pair_below(&l->f->rng, l->world->plan->cfg.hosts);
}

static struct homa_packet first_data(struct lie *l, u32 length, u32 incoming)
{
	struct pair_rng *r = &l->f->rng;
	struct homa_packet p;

	memset(&p, 0, sizeof(p));
	p.hdr.type = HOMA_DATA;
	p.hdr.sport = (u16)(0x8000 | pair_rand(r));
	p.hdr.dport = PAIR_SERVER_PORT;
	p.hdr.sender_id = pair_rand(r) & ~1ull;
	p.data.length = length;
	p.data.incoming = incoming;
	p.data.retransmit = pair_chance(r, 100);
	return p;
}

static void control(struct lie *l)
{
	struct pair_rng *r = &l->f->rng;
	struct homa_packet p;
	u32 i;

	switch (l->f->kind) {
	case WORLD_lie_grant:
		p = about(l, HOMA_GRANT);
		p.grant.offset = (u32)pair_rand(r) >> pair_below(r, 32);
		p.grant.priority = (u8)pair_rand(r) & 7;
		break;
	case WORLD_lie_busy:
		p = about(l, HOMA_BUSY);
		break;
	case WORLD_lie_need_ack:
		p = about(l, HOMA_NEED_ACK);
		break;
	case WORLD_lie_unknown:
		p = about(l, HOMA_RPC_UNKNOWN);
		break;
	case WORLD_lie_resend:
		p = about(l, HOMA_RESEND);
		p.resend.offset = (u32)pair_rand(r) >> (1 + pair_below(r, 31));
		p.resend.length = (u32)pair_rand(r) >> (1 + pair_below(r, 31));
		if (pair_chance(r, 300))
			p.resend.length = HOMA_RESEND_ALL;
		break;
	case WORLD_lie_ack:
		p = about(l, HOMA_ACK);
		p.ack.num = (u16)pair_below(r, HOMA_MAX_ACKS + 1);
		for (i = 0; i < p.ack.num; i++)
			p.ack.ack[i] =
				(struct homa_ack){ (p.hdr.sender_id & ~1ull) +
							   2 * pair_below(r, 4),
						   PAIR_SERVER_PORT };
		break;
	default:
		p = about(l, HOMA_CUTOFFS);
		for (i = 0; i < HOMA_PRIORITIES; i++)
			p.cutoffs.cutoff[i] =
				(u32)pair_rand(r) >> (1 + pair_below(r, 31));
		p.cutoffs.version = (u16)pair_rand(r);
		break;
	}
	say(l, some_name(l), 0, &p, 0);
}

/* ---- messages ---- */

static void flood(struct lie *l)
{
	struct pair_rng *r = &l->f->rng;
	u32 length = world_length(r, 20) + MTU;
	struct homa_packet p = first_data(l, length, length);

	say(l, l->liar->index, (u16)(1 + pair_below(r, 60000)), &p,
	    1 + pair_below(r, MTU));
}

/* A request in pieces that do not fit together, or the answer to one that it got. */
static void overlap(struct lie *l)
{
	struct pair_rng *r = &l->f->rng;
	struct homa_packet p =
		pair_chance(r, 500) ? about(l, HOMA_DATA) : first_data(l, 1, 1);
	u32 length = world_length(r, 15), i, n = 1 + pair_below(r, 6);

	for (i = 0; i < n; i++) {
		p.data.length =
			pair_chance(r, 100) ? world_length(r, 15) : length;
		p.data.incoming = pair_below(r, p.data.length + 1);
		p.data.offset = pair_below(r, p.data.length);
		p.data.payload_len = p.data.length - p.data.offset;
		if (p.data.payload_len > MTU)
			p.data.payload_len = MTU;
		say(l, l->liar->index, 0, &p, p.data.payload_len);
	}
}

static void forge_whole(struct lie *l)
{
	struct pair_rng *r = &l->f->rng;
	u32 length = 1 + pair_below(r, MTU), times = 1 + pair_chance(r, 300);
	struct homa_packet p = first_data(l, length, length);
	u16 stranger = pair_chance(r, 500) ? (u16)(1 + pair_below(r, 60000)) : 0;
	u8 from = (u8)pair_below(r, world_honest(l->world));

	while (times--)
		say(l, from, stranger, &p, length);
}

/* ---- what is no conversation at all ---- */

static void replay(struct lie *l)
{
	struct pair_rng *r = &l->f->rng;
	struct world_seen *s = heard(l);
	struct pair_pkt *pkt;
	struct homa_packet p;

	if (!s || homa_packet_decode(&p, s->data, s->len))
		return;
	if (p.hdr.type == HOMA_DATA) {
		say(l, pair_chance(r, 500) ? s->from : l->liar->index, 0, &p,
		    p.data.payload_len);
		return;
	}
	pkt = pair_pkt_new(s->from, l->to, 7, s->len);
	memcpy(pkt->data, s->data, s->len);
	leave(l, pkt);
}

static void rubbish(struct lie *l)
{
	struct pair_rng *r = &l->f->rng;
	struct pair_pkt *pkt =
		pair_pkt_new(l->liar->index, l->to, (u8)pair_below(r, 8), 200);
	struct homa_packet p =
		about(l, (u8)(HOMA_TYPE_FIRST + pair_below(r, HOMA_TYPES)));
	u32 i, n = pair_below(r, 20);

	for (i = 0; i < pkt->len; i++)
		pkt->data[i] = (u8)pair_rand(r);
	if (pair_chance(r, 700)) {
		p.hdr.type = HOMA_NEED_ACK; /* has no body that must be right */
		homa_packet_encode(pkt->data, &p);
		pkt->data[11] = (u8)(HOMA_TYPE_FIRST + pair_below(r, HOMA_TYPES));
	}
	for (i = 0; i < n; i++)
		pkt->data[pair_below(r, 60)] = (u8)pair_rand(r);
	pkt->len = pair_below(r, pkt->len + 1);
	leave(l, pkt);
}

static void icmp(struct lie *l)
{
	struct homa_packet p = about(l, HOMA_NEED_ACK);
	u32 whom = pair_below(&l->f->rng, l->world->plan->cfg.hosts);

	/* A host quotes what it was sent: our packet's ports, the other way round. */
	pair_icmp(&l->world->w->hosts[l->to], &l->world->w->hosts[whom].addr,
		  p.hdr.dport, p.hdr.sport, p.hdr.sender_id ^ 1);
}

static void tell(struct lie *l)
{
	switch (l->f->kind) {
	case WORLD_lie_flood:
		flood(l);
		break;
	case WORLD_lie_overlap:
		overlap(l);
		break;
	case WORLD_lie_forge:
		forge_whole(l);
		break;
	case WORLD_lie_replay:
		replay(l);
		break;
	case WORLD_lie_rubbish:
		rubbish(l);
		break;
	case WORLD_lie_icmp:
		icmp(l);
		break;
	default:
		control(l);
		break;
	}
}

static void lie_due(struct pair_host *h, void *arg, bool stale)
{
	struct world *world = world_of(h->world);
	struct world_fault *f = arg;
	struct lie l = { world, f, h, f->a };

	(void)stale; /* it lies whatever its engine does */
	if (world->calm || world->over || !f->active || f->amount++ > MOST_LIES)
		return;
	/* Mostly to one, now and then to others. */
	if (pair_chance(&f->rng, 200))
		l.to = (u8)pair_below(&f->rng, world_honest(world));
	tell(&l);
	pair_event_wire(h, world->w->now + 1 + pair_rand(&f->rng) % (2 * f->ns),
			lie_due, f);
}

void world_lie_begin(struct world *world, struct world_fault *f)
{
	struct pair_host *h = &world->w->hosts[liar_of(world, f)];

	f->amount = 0;
	if (f->kind != WORLD_lie_change)
		pair_event_wire(h, world->w->now, lie_due, f);
}

/* ---- on the liar's own cable ---- */

static void remember(struct world *world, const struct pair_pkt *pkt)
{
	struct world_seen *s = &world->seen[world->num_seen++ % WORLD_SEEN];

	s->from = pkt->src;
	s->to = pkt->dst;
	s->len = (u16)pkt->len;
	memcpy(s->data, pkt->data,
	       pkt->len < sizeof(s->data) ? pkt->len : sizeof(s->data));
}

/* Some of what its engine sends is changed, some lost. */
static bool change(struct world_fault *f, struct pair_pkt *pkt)
{
	u32 span = pkt->len < HOMA_DATA_HDR ? pkt->len : HOMA_DATA_HDR, n;

	if (pair_chance(&f->rng, 50))
		return true;
	if (pair_chance(&f->rng, 300))
		for (n = 1 + pair_below(&f->rng, 3); n; n--)
			pkt->data[pair_below(&f->rng, span)] ^=
				(u8)(1u << pair_below(&f->rng, 8));
	if (pair_chance(&f->rng, 50))
		pkt->len = pair_below(&f->rng, pkt->len + 1);
	return false;
}

bool world_tap(struct pair_world *w, struct pair_pkt *pkt, void *arg)
{
	struct world *world = world_of(w);
	u32 i;

	(void)arg;
	if (world->lying)
		return false;
	if (w->hosts[pkt->dst].hostile)
		remember(world, pkt);
	for (i = 0; w->hosts[pkt->src].hostile && i < world->plan->num_faults;
	     i++) {
		struct world_fault *f = &world->plan->faults[i];

		if (f->active && f->kind == WORLD_lie_change &&
		    liar_of(world, f) == pkt->src && change(f, pkt))
			return true;
	}
	return false;
}
