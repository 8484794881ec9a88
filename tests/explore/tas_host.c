// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* A host's round, as tas_engine.h describes it, and its segments. */
#include "tas_world.h"

#include <string.h>

#define EXCEPTIONS 64u
#define NEAR 65536u /* what is so near to an initial number counts from it */
#define MTU 1500u
#define SHIFT 12u /* receive buffers of 4 KiB */

const struct xt_what *xt_what;

size_t xt_size(const struct xp_scenario *s)
{
	xt_what = s->what;
	return sizeof(struct xt_world) + 64;
}

void xt_extents(struct xp_world *w, u32 host, struct xp_extent extent[XP_EXTENTS])
{
	extent[0].from = (u32)((char *)&xt_of(w)->host[host] - (char *)w);
	extent[0].to = extent[0].from + (u32)sizeof(struct xt_host);
	extent[1].from = extent[1].to = extent[0].to;
}

struct xt_host *xt_clock(struct xp_world *w, u32 host)
{
	struct xt_host *h = &xt_of(w)->host[host];

	xp_touch(host);
	tas_set_now(&h->engine, w->now, EXCEPTIONS);
	return h;
}

/* ---- beginning ---- */

static void settings(struct tas_engine *engine)
{
	/* No world has so many ACKs that one of them would wait longer. */
	tas_set(engine, "delack_most_ms", 0);
	tas_set(engine, "syn_retries", 3);
	tas_set(engine, "synack_retries", 3);
	tas_set(engine, "retries", 5);
	tas_set(engine, "orphan_retries", 4);
	tas_set(engine, "rto_max_ms", 4000);
	tas_set(engine, "time_wait_ms", 20000);
	tas_set(engine, "fin_wait_ms", 20000);
	tas_set(engine, "syn_cookies", 0);
	tas_set(engine, "timestamps", xt_what->timestamps);
}

void xt_start(struct xp_world *w, u32 host, bool deaf)
{
	struct xt_host *h = &xt_of(w)->host[host];
	u64 seed[6];
	u32 i;

	memset(h, 0, sizeof(*h));
	for (i = 0; i < 6; i++)
		seed[i] = homa_hash_mix(1000 * (host + 1) +
					10u * w->life[host] + i);
	tas_engine_init(&h->engine, seed, w->now, MTU);
	settings(&h->engine);
	for (i = 0; i < XT_CONNS; i++)
		tas_add_spare(&h->engine, &h->conns[i]);
	if (xt_what->ended)
		tas_add_ended(&h->engine, &h->ended);
	h->listener = (struct tas_listener){ .port = XT_PORT,
					     .backlog = 2,
					     .rx_shift = SHIFT,
					     .rx_max = 1 << SHIFT };
	if (!deaf && !xt_what->both && tas_listen(&h->engine, &h->listener))
		xp_fail("host %u cannot listen", host);
	xt_of(w)->excused |= w->life[host] > 1;
}

static struct tas_pair pair_of(u32 host)
{
	struct tas_pair pair = {
		.local = { [10] = 0xff, [11] = 0xff, 10, 0, 0, (u8)(1 + host) },
		.remote = { [10] = 0xff, [11] = 0xff, 10, 0, 0, (u8)(2 - host) },
		.local_port = host ? XT_PORT : XT_FROM,
		.remote_port = host ? XT_FROM : XT_PORT
	};

	return pair;
}

/* ---- numbers ---- */

/* New connections have new initial numbers. */
static void learn_bases(struct xp_world *w, u32 host)
{
	struct xt_world *x = xt_of(w);
	u32 i, relative;

	for (i = 0; i < XT_CONNS; i++) {
		const struct tas_conn *conn = &x->host[host].conns[i];

		if (conn->f.state == TAS_CLOSED ||
		    xt_base_of(w, host, conn->iss, &relative) != XT_RAW)
			continue;
		if (x->bases[host] == XT_BASES) {
			xp_fail("host %u begins more than %u connections", host,
				XT_BASES);
			return;
		}
		x->base[host][x->bases[host]++] = conn->iss;
	}
}

u8 xt_base_of(struct xp_world *w, u32 host, u32 seq, u32 *relative)
{
	const struct xt_world *x = xt_of(w);
	u8 i;

	for (i = x->bases[host]; i--;) {
		*relative = seq - x->base[host][i];
		if (*relative + NEAR < 2 * NEAR)
			return i;
	}
	*relative = seq;
	return XT_RAW;
}

static u32 absolute(struct xp_world *w, u32 host, u8 base, u32 relative)
{
	return base == XT_RAW ? relative : xt_of(w)->base[host][base] + relative;
}

/* @p.kind is what its sequence number counts from, @p.link the same of its ACK. */
static void to_relative(struct xp_world *w, struct xp_packet *p)
{
	u32 seq, ack;

	p->kind = xt_base_of(w, p->src, homa_get_be32(p->data + 4), &seq);
	p->link = xt_base_of(w, p->dst, homa_get_be32(p->data + 8), &ack);
	homa_put_be32(p->data + 4, seq);
	homa_put_be32(p->data + 8, ack);
}

static void to_absolute(struct xp_world *w, struct xp_packet *p)
{
	homa_put_be32(p->data + 4,
		      absolute(w, p->src, p->kind, homa_get_be32(p->data + 4)));
	homa_put_be32(p->data + 8,
		      absolute(w, p->dst, p->link, homa_get_be32(p->data + 8)));
}

/* ---- out ---- */

static void send_segment(struct xp_world *w, u32 host, const struct tas_out *out)
{
	struct xp_packet p = { .src = (u8)host, .dst = (u8)!host };

	memcpy(p.data, out->header, out->header_length);
	p.len = (u16)(out->header_length + out->length);
	/* Where in the stream its payload is. */
	p.note = out->length ? out->from + 1 : 0;
	to_relative(w, &p);
	xp_send(w, &p);
}

void xt_poll(struct xp_world *w, u32 host)
{
	struct xt_host *h = xt_clock(w, host);
	struct tas_out out;
	u32 turns;
	bool more;

	for (turns = 0; turns < 64; turns++) {
		more = xt_events(w, host);
		learn_bases(w, host);
		while (!xp_full && !xp_why[0] && tas_next_out(&h->engine, &out)) {
			send_segment(w, host, &out);
			more = true;
		}
		if (!more || xp_full || xp_why[0])
			return;
	}
	xp_fail("host %u sends and sends without being asked", host);
}

void xt_connect(struct xp_world *w, u32 host)
{
	struct xt_host *h = xt_clock(w, host);
	struct tas_pair pair = pair_of(host);

	if (tas_connect(&h->engine, &pair, SHIFT, 1 << SHIFT, &h->conn))
		xp_fail("host %u cannot connect", host);
	h->had = true;
	xt_poll(w, host);
}

/* ---- in ---- */

static void take(struct xp_world *w, const struct xp_packet *p, bool forged)
{
	struct xt_host *h = xt_clock(w, p->dst);
	struct tas_pair pair = pair_of(p->dst);
	struct tas_copy copy;
	u32 header, i, at;

	if (tas_rx_packet(&h->engine, &pair, p->data, p->len, 0, &copy)) {
		xp_fail("a segment of host %u cannot be read", p->src);
		return;
	}
	header = (u32)(p->data[12] >> 4) * 4;
	if (copy.conn && forged)
		xp_fail("bytes of a stranger are taken");
	if (!copy.conn || forged)
		return;
	at = p->note - 1 + copy.from - header;
	if (copy.from < header || copy.from + copy.length > p->len ||
	    at != copy.to)
		xp_fail("byte %u of the stream is put at %u", at, copy.to);
	/* Bytes may come before the application has accepted. */
	for (i = 0;
	     i < copy.length && (copy.conn == h->conn || !h->had) && at + i < 64;
	     i++)
		h->placed |= 1ull << (at + i);
}

void xt_deliver(struct xp_world *w, const struct xp_packet *p)
{
	struct xp_packet copy = *p;

	to_absolute(w, &copy);
	take(w, &copy, false);
	xt_poll(w, p->dst);
}

void xt_forge(struct xp_world *w, u32 host, enum xt_forged what)
{
	const struct tas_conn *conn = xt_of(w)->host[host].conn;
	struct tas_segment seg = { .flags = TAS_ACK,
				   .seq = conn->f.rcv_nxt,
				   .ack = conn->f.snd_una,
				   .window = 500,
				   .sport = conn->f.pair.remote_port,
				   .dport = conn->f.pair.local_port };
	struct xp_packet p = { .src = (u8)!host, .dst = (u8)host };
	u32 payload = 0;

	if (conn->f.flags & TAS_F_TS) {
		seg.options = TAS_OPT_TS;
		seg.ts = conn->f.ts_recent;
	}
	switch (what) {
	case XT_RESET:
		seg.flags = TAS_RST;
		seg.seq++;
		break;
	case XT_SYN:
		seg.flags = TAS_SYN;
		break;
	case XT_AHEAD:
		seg.ack = conn->f.snd_nxt + 1;
		break;
	case XT_BEHIND:
		seg.ack = conn->f.snd_una - 0x10000000;
		payload = 1;
		break;
	default:
		seg.seq = conn->irs + 1;
		payload = conn->f.rcv_nxt - seg.seq;
		break;
	}
	p.len = (u16)(tas_encode(&seg, p.data) + payload);
	take(w, &p, true);
	xt_poll(w, host);
}

/* ---- time ---- */

u64 xt_next_timer(struct xp_world *w, u32 host)
{
	struct tas_engine *engine = &xt_of(w)->host[host].engine;
	u64 at = homa_min_u64(homa_wheel_next(&engine->wheel),
			      tas_next_ended(engine));

	return at == TAS_NEVER ? XP_NEVER : homa_max_u64(at, w->now);
}

bool xt_timer(struct xp_world *w, u32 host)
{
	struct xt_host *h = xt_clock(w, host);
	u32 sent = w->sent, there = h->engine.table.count + h->engine.ended.count;
	u32 state = h->conn ? h->conn->f.state : 0;

	tas_timers(&h->engine, XT_CONNS + 1);
	xt_poll(w, host);
	return w->sent != sent ||
	       there != h->engine.table.count + h->engine.ended.count ||
	       state != (h->conn ? h->conn->f.state : 0u);
}

void xt_describe(const struct xp_packet *p, char *text, size_t size)
{
	struct tas_segment seg;
	char flags[9];
	u32 i;

	if (tas_decode(&seg, p->data, p->len)) {
		snprintf(text, size, "what cannot be read");
		return;
	}
	for (i = 0; i < 8; i++)
		flags[i] = seg.flags >> i & 1 ? "FSRPAUEC"[i] : '.';
	flags[8] = 0;
	snprintf(text, size,
		 "%s seq %u:%u ack %u:%u length %u window %u sacks %u", flags,
		 p->kind, seg.seq, p->link, seg.ack, seg.length, seg.window,
		 seg.options & TAS_OPT_SACK ? seg.num_sacks : 0u);
}
