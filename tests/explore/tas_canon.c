// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What makes a state of TCP what it is: sequence numbers count from the initial ones,
 * times from now, and counters that are only told do not count. `--compare` finds what is
 * left out and should not be.
 */
#include "tas_world.h"

#define OLD (10000 * XP_MS) /* longer ago: how long makes no difference */

static void put_time(struct xp_world *w, struct xp_sink *s, u64 t)
{
	s64 ago = (s64)(w->now - t);

	xp_put(s, !t || t == TAS_NEVER ? t :
		  ago > (s64)OLD       ? OLD :
					 (u64)ago + 2);
}

static void put2(struct xp_sink *s, u64 a, u64 b)
{
	xp_put(s, a << 32 ^ (u32)b);
}

static void put_ranges(struct xp_sink *s, const struct tas_range *r, u32 n,
		       u32 from)
{
	while (n--) {
		put2(s, r->start - from, r->end - from);
		r++;
	}
}

static void put_sender(struct xp_world *w, struct xp_sink *s,
		       const struct tas_conn *c)
{
	const struct tas_flow *f = &c->f;
	u32 iss = c->iss;

	put2(s, f->snd_una - iss, f->snd_nxt - iss);
	put2(s, f->snd_end - iss, f->snd_edge - iss);
	put2(s, f->cwnd, c->ssthresh);
	put2(s, c->cwnd_acked, c->snd_most);
	put2(s, c->recover - iss, c->rtx_edge - iss);
	put2(s, c->rtx_nxt - iss, c->rtx_end - iss);
	put2(s, c->rtt_seq - iss, c->snd_small - iss);
	put2(s, c->undo_cwnd, c->undo_ssthresh);
	put2(s, f->mss, (u32)c->peer_mss << 16 | c->path_mtu);
	xp_put(s, (u64)f->dupacks << 48 | (u64)f->sacks << 40 |
			  (u64)c->backoff << 32 | (u64)c->probes << 24 |
			  (u64)c->keep_probes << 16 | (u64)c->tail_probes << 8 |
			  f->snd_wscale | (u64)c->overtaken << 7);
	put_ranges(s, c->sacked, f->sacks, iss);
	xp_put(s, c->srtt);
	xp_put(s, c->rttvar);
	xp_put(s, c->rto);
	put_time(w, s, c->rtt_at);
	put_time(w, s, c->measure_at);
	put_time(w, s, c->sent_at);
	put_time(w, s, c->stalled_at);
}

static void put_receiver(struct xp_world *w, struct xp_sink *s,
			 const struct tas_conn *c)
{
	const struct tas_flow *f = &c->f;
	u32 irs = c->irs;

	put2(s, f->rcv_nxt - irs, f->rcv_edge - irs);
	put2(s, f->rcv_acked - irs, f->rcv_read - irs);
	put2(s, c->fin_at - irs, f->flags & TAS_F_TS ? f->ts_recent : 0);
	put2(s, (u32)c->rcv_mss << 16 | (u32)f->rcv_wscale << 8 | f->rx_shift,
	     (u32)f->gaps << 16 | f->quick);
	put_ranges(s, c->interval, f->gaps, irs);
	put_time(w, s, c->heard_at);
	put_time(w, s, c->data_at);
	put_time(w, s, c->owed_at);
	put_time(w, s, c->challenged_at);
}

/* Which initial number of @host @seq counts from, and how far. */
static void put_seq(struct xp_world *w, struct xp_sink *s, u32 host, u32 seq)
{
	u32 relative;
	u8 base = xt_base_of(w, host, seq, &relative);

	put2(s, base, relative);
}

static void put_conn(struct xp_world *w, u32 host, struct xp_sink *s,
		     const struct tas_conn *c)
{
	const struct xt_host *h = &xt_of(w)->host[host];
	u32 i;

	xp_put(s, (u64)(c == h->conn) << 33 | (u64)!!c->listener << 32 |
			  c->f.flags);
	put2(s, (u32)c->f.state << 8 | c->wscale_ok, (u32)c->error);
	put_seq(w, s, host, c->iss);
	put_seq(w, s, !host, c->irs);
	put_sender(w, s, c);
	put_receiver(w, s, c);
	for (i = 0; i < TAS_TIMERS; i++)
		put_time(w, s, tas_deadline(&h->engine, c, i));
	put_time(w, s, homa_wheel_linked(&c->wheel) ? c->wheel.deadline : 0);
}

static void put_ended(struct xp_world *w, u32 host, struct xp_sink *s)
{
	const struct tas_engine *engine = &xt_of(w)->host[host].engine;
	const struct homa_list *node;

	homa_list_for_each(node, &engine->ended_order) {
		const struct tas_ended *e =
			homa_container_of(node, struct tas_ended, order);

		put_seq(w, s, host, e->snd_nxt);
		put_seq(w, s, !host, e->rcv_nxt);
		put2(s, e->window, e->ts ? e->ts_recent : 0);
		put_time(w, s, e->deadline);
	}
}

/* When a wheel looks into a slot depends on where now lies between two of its coarse ticks,
 * also for what will be put there later. */
static void put_phase(struct xp_world *w, struct xp_sink *s,
		      const struct homa_wheel *wheel)
{
	xp_put(s, w->now & ((1ull << (wheel->shift + 6)) - 1));
}

void xt_canon_host(struct xp_world *w, u32 host, struct xp_sink *sink)
{
	const struct xt_host *h = &xt_of(w)->host[host];
	const struct tas_engine *engine = &h->engine;
	u32 i;

	xp_put(sink, (u64)h->had << 60 | (u64)h->shut << 52 |
			     (u64)h->closed << 51 | (u64)h->end << 50 |
			     (u64)h->freed << 49 | (u64)!!h->conn << 48 |
			     (u64)h->written << 32 | (u64)h->got << 16 |
			     w->life[host]);
	put2(sink, (u32)h->error, engine->ended.count);
	xp_put(sink, h->placed);
	for (i = 0; i < XT_CONNS; i++)
		if (h->conns[i].f.state != TAS_CLOSED || &h->conns[i] == h->conn)
			put_conn(w, host, sink, &h->conns[i]);
	put_phase(w, sink, &engine->wheel);
	put_ended(w, host, sink);
	put_time(w, sink, engine->challenges.at);
	put2(sink, engine->challenges.used, engine->challenges.most);
	put_time(w, sink, engine->resets.at);
	put2(sink, engine->resets.used, engine->resets.most);
	xp_put(sink, engine->rng.state);
}

void xt_canon(struct xp_world *w, struct xp_sink *sink)
{
	const struct xt_world *x = xt_of(w);
	u32 host, i;

	xp_put(sink, (u64)x->excused << 16 | (u64)x->bases[0] << 8 | x->bases[1]);
	/* What a segment of a former life is worth depends on how far apart they are. */
	for (host = 0; host < 2; host++)
		for (i = 1; i < x->bases[host]; i++)
			xp_put(sink, x->base[host][i] - x->base[host][0]);
}
