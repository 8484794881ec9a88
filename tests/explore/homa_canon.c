/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What makes a state of Homa what it is, in an order that does not depend on how it
 * came about: not where an object lies in memory, not what counters say, times only as
 * seen from now. What is left out must not change what happens later:
 * `explore --compare` compares what follows from states that look the same.
 */
#include "homa_once.h"
#include "homa_world.h"

#include <string.h>

#define OLD (1000 * XP_MS) /* longer ago: how long makes no difference */

static void put_time(struct xp_world *w, struct xp_sink *s, u64 t)
{
	s64 ago = (s64)(w->now - t);

	xp_put(s, !t || t == HOMA_NEVER ? t :
		  ago > (s64)OLD	? OLD :
					  (u64)ago + 2);
}

static void put2(struct xp_sink *s, u64 a, u64 b)
{
	xp_put(s, a << 32 ^ b);
}

static void put_out(struct xp_world *w, struct xp_sink *s,
		    const struct homa_out *out)
{
	const struct homa_rtx *r;

	xp_put(s, (u64)out->active << 32 | (u64)out->send.queued << 24 |
			  (u64)out->resent << 16 | (u64)out->may_reject << 9 |
			  (u64)out->anew << 8 | out->num_rtx);
	if (!out->active)
		return;
	put2(s, out->length, out->next);
	put2(s, out->limit, out->unsent);
	put2(s, out->available, out->unsched);
	put2(s, (u32)out->sched_prio << 8 | out->unsched_prio,
	     out->ack.server_port);
	xp_put(s, out->ack.client_id);
	/* of when it began, maybe; not written while the scheduler has not had the message */
	xp_put(s, out->send.overhead ? homa_wire_life(out->hdr) : 0);
	put_time(w, s, out->sent_at);
	put_time(w, s, out->first_at);
	for (r = out->rtx; r; r = r->next) {
		put2(s, r->start, r->end);
		xp_put(s, r->prio);
	}
}

static void put_in(struct xp_sink *s, const struct homa_rpc *rpc)
{
	const struct homa_grantee *in = &rpc->in;
	struct homa_ranges_iter iter;
	u32 start, end, i;
	u64 have = 0;

	xp_put(s, (u64)in->state << 40 | (u64)in->counted << 32 |
			  (u64)in->joined << 24 | (u64)in->tail << 16 |
			  (u64)in->wire_prio << 8 | in->low_level);
	if (!in->length)
		return;
	put2(s, in->length, in->received);
	put2(s, in->granted, in->accounted);
	put2(s, in->in_order, in->low_until);
	put2(s, in->again, rpc->ranges.end);
	homa_ranges_iter_init(&iter, &rpc->ranges);
	while (homa_ranges_missing(&iter, in->length, &start, &end))
		put2(s, start, end);
	for (i = 0; i < rpc->num_pages; i++)
		have |= (u64)(rpc->pages[i] != HOMA_NO_PAGE) << i;
	xp_put(s, have << 32 | (u64)rpc->num_pages << 16 | (u64)rpc->held << 8 |
			  rpc->owed);
	xp_put(s, homa_heap_linked(&in->node) ? in->node.key : 0);
}

static void put_rpc(struct xp_world *w, struct xp_sink *s, struct homa_rpc *rpc)
{
	const struct xh_priv *priv = homa_rpc_priv(rpc);
	/* Not while the first of its payload is still to be copied. */
	bool begun = rpc->ranges.end && priv->generation == rpc->generation;
	u32 i;

	xp_put(s, rpc->id);
	xp_put(s, (u64)rpc->state << 56 | (u64)rpc->flags << 48 |
			  (u64)rpc->probes << 40 | (u64)rpc->event_queued << 32 |
			  (u64)rpc->repaired << 24 | (u64)(u16)rpc->error << 8 |
			  homa_ref_read(&rpc->refs));
	put2(s, rpc->copied, rpc->repaired_to);
	xp_put(s, homa_rpc_is_client(rpc) ? rpc->life : 0);
	put2(s, rpc->overtaken_to, rpc->asked_to);
	xp_put(s, rpc->overtaken_to ? (u8)((u8)(w->now >> HOMA_TICK_SHIFT) -
					   rpc->overtaken_at) :
				      ~0ull);
	put2(s, (u32)rpc->slept << 16 | rpc->resp_limit_kib,
	     (u32)rpc->sport << 16 | rpc->dport);
	put2(s, begun ? priv->in : 0, rpc->out.active ? priv->out : 0);
	for (i = 0; i < HOMA_ARRAY_SIZE(priv->have); i++)
		xp_put(s, begun ? priv->have[i] : 0);
	put_time(w, s, rpc->birth);
	put_time(w, s, rpc->in.birth);
	put_time(w, s, rpc->heard_at);
	put_time(w, s, rpc->state == HOMA_RPC_INCOMING ? rpc->fresh_at : 0);
	put_time(w, s, rpc->probe_at);
	put_time(w, s, rpc->held ? rpc->held_at : 0);
	put_time(w, s, homa_wheel_linked(&rpc->timer) ? rpc->timer.deadline : 0);
	put_in(s, rpc);
	put_out(w, s, &rpc->out);
}

/* By id, for the order in a socket's list says only which was there first. */
static void put_sock(struct xp_world *w, struct xp_sink *s, struct homa_sock *sock)
{
	struct homa_list *pos;
	u64 last = 0;
	bool more;

	put2(s, sock->backlog, (u32)sock->gaps);
	put2(s, sock->num_long, sock->owed);
	xp_put(s, sock->server);
	if (sock->pool)
		put_time(w, s, sock->reclaim_at);
	do {
		struct homa_rpc *next = NULL;

		homa_list_for_each(pos, &sock->rpcs) {
			struct homa_rpc *rpc =
				homa_list_entry(pos, struct homa_rpc, sock_rpcs);

			if (rpc->id > last && (!next || rpc->id < next->id))
				next = rpc;
		}
		more = next != NULL;
		if (more) {
			last = next->id;
			put_rpc(w, s, next);
		}
	} while (more);
	homa_list_for_each(pos, &sock->holders)
		xp_put(s, homa_list_entry(pos, struct homa_rpc, holding)->id);
}

static void put_pool(struct xp_world *w, struct xp_sink *s,
		     const struct homa_pool *pool)
{
	u32 i;

	put2(s, pool->num_backed, pool->num_free);
	for (i = 0; i < HOMA_LEASES; i++)
		if (pool->lease[i].used != HOMA_BPAGE_SIZE) {
			put2(s, i, pool->lease[i].used);
			put_time(w, s, pool->lease[i].until);
		}
}

static void put_peer(struct xp_world *w, struct xp_sink *s,
		     const struct homa_peer *peer)
{
	u32 i;

	xp_put(s, peer->addr.ip[15]);
	xp_put(s, (u64)peer->mtu_seg << 48 | (u64)peer->cutoff_version << 32 |
			  (u64)peer->probes << 24 | (u64)peer->marks << 16 |
			  peer->slots);
	put2(s, peer->server_rpcs, peer->num_busy);
	put2(s, peer->link_mtu, peer->ack_delay);
	put2(s, peer->late, peer->life);
	put2(s,
	     peer->cutoffs_sent_ms ?
		     (u32)(w->now / XP_MS) - peer->cutoffs_sent_ms :
		     ~0u,
	     0);
	put_time(w, s, peer->heard_at);
	put_time(w, s, peer->resend_at);
	put2(s, peer->cutoffs[0], peer->cutoffs[HOMA_PRIORITIES - 1]);
	for (i = 0; i < peer->num_acks; i++) {
		xp_put(s, peer->ack_ids[i]);
		xp_put(s, peer->ack_ports[i]);
	}
}

static u64 mixed(u64 a, u64 b)
{
	return (a ^ b * 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull;
}

/* Requests that ran; the order of their records says nothing. */
static void put_once(struct xp_world *w, struct xp_sink *s,
		     const struct homa_engine *engine)
{
	u64 now_ms = w->now / XP_MS, sum = 0;
	const struct homa_once *once;
	u32 i, k;

	for (i = 0; i < HOMA_ONCE_STRIPES; i++) {
		const struct homa_once_stripe *stripe = &engine->once[i];

		for (k = 0; k <= stripe->mask; k++)
			for (once = stripe->buckets[k]; once; once = once->next) {
				u64 h = mixed(once->key, once->bits[0]);

				h = mixed(h, once->bits[1]);
				h = mixed(h, once->open);
				if (!once->open)
					h = mixed(h, once->until_ms - now_ms);
				sum += h;
			}
	}
	xp_put(s, sum);
}

static void put_link(struct xp_world *w, struct xp_sink *s,
		     const struct homa_link *link)
{
	const struct homa_grants *g = &link->grants;
	const struct homa_list *pos;
	u32 i;

	put2(s, g->num_active, g->num_waiting);
	xp_put(s, g->incoming);
	put2(s, g->window, g->low_water);
	put2(s, g->step, (u32)g->num_tails << 8 | (u32)g->limited);
	put_time(w, s, g->fifo_at);
	put_time(w, s, g->last_birth >= w->now ? g->last_birth : 0);
	xp_put(s, (u64)link->sched.credit);
	put2(s, xh_what->by_room ? (u32)link->sched.room : 0,
	     link->derived.window);
	if (xh_what->rate) {
		put_time(w, s,
			 link->sched.idle_at <= w->now ? 0 : link->sched.idle_at);
		xp_put(s, link->rtt_ns);
		put2(s, link->rtt_next_ns, link->rtt_prev_ns);
		put_time(w, s, link->rtt_epoch_at);
	}
	for (i = 0; i < g->num_active; i++)
		xp_put(s, g->active[i]->id);
	for (pos = g->ages.next; pos != &g->ages; pos = pos->next)
		xp_put(s, homa_list_entry(pos, struct homa_rpc, in.age)->id);
}

/* A coarse slot may be marked that nothing waits in any more: homa_wheel_leave(). */
static bool has_coarse(const struct homa_wheel *wheel)
{
	u32 slot;

	for (slot = 0; slot < HOMA_WHEEL_SLOTS; slot++)
		if (wheel->occupied[1] >> slot & 1 &&
		    !homa_list_empty(&wheel->slot[1][slot]))
			return true;
	return false;
}

/*
 * Timers of one tick run in the order in which they were set, and when a tick begins does
 * not depend on when they were set.
 */
static void put_wheel(struct xp_world *w, struct xp_sink *s,
		      const struct homa_wheel *wheel)
{
	u32 fine = wheel->shift, coarse = fine + 6;
	const struct homa_list *pos, *head;
	u32 level, slot;

	if (wheel->count)
		xp_put(s, w->now & ((1ull << (has_coarse(wheel) ? coarse : fine)) -
				    1));
	for (level = 0; level < HOMA_WHEEL_LEVELS; level++)
		for (slot = 0; slot < HOMA_WHEEL_SLOTS; slot++) {
			head = &wheel->slot[level][slot];
			if (!(wheel->occupied[level] >> slot & 1) ||
			    head->next == head->prev)
				continue;
			for (pos = head->next; pos != head; pos = pos->next)
				xp_put(s, homa_list_entry(pos, struct homa_rpc,
							  timer.list)
						  ->id);
		}
}

void xh_canon_host(struct xp_world *w, u32 host, struct xp_sink *s)
{
	struct xh_host *h = &xh_of(w)->host[host];
	struct homa_list *pos;
	u32 i;

	xp_put(s, (u64)h->slow << 32 | (u64)h->deaf << 24 | (u64)h->closed << 16 |
			  (u64)h->waits << 8 | h->num_held);
	for (i = 0; i < h->num_held; i++) {
		xp_put(s, h->held[i].handle.id);
		put2(s, h->held[i].taken, h->held[i].note);
	}
	if (h->is_late) {
		xp_put(s, h->late.rpc->id);
		put2(s, h->late.offset, h->late.length);
		put2(s, h->late_note, h->late_page);
	}
	put2(s, h->refusing, h->num_kept);
	put2(s, (u32)h->slept << 1 | h->halted, h->changed);
	put_time(w, s, h->tx_at);
	if (xh_what->rate) {
		put_time(w, s, h->fifo.granted_at);
		put_time(w, s, h->fifo.since);
		put_time(w, s, h->fifo.oldest_at);
		xp_put(s, h->fifo.oldest);
	}
	if (h->refusing == 2) {
		xp_put(s, h->refused.rpc->id);
		put2(s, h->refused.offset, h->refused.length);
		put2(s, h->refused.retransmit, h->refused.prio);
	}
	for (i = 0; i < w->hosts; i++)
		xp_put(s, h->told[i]);
	put_time(w, s,
		 h->engine->guard_until <= w->now ? 0 : h->engine->guard_until);
	put_time(w, s, h->engine->start);
	put_time(w, s,
		 h->engine->maintain_at <= w->now ? 0 : h->engine->maintain_at);
	xp_put(s, h->engine->num_rpcs);
	xp_put(s, h->ctx.num_acks);
	for (i = 0; i < XH_SOCKS; i++) {
		if (h->closed & 1u << i)
			continue;
		put_sock(w, s, h->sock[i]);
		if (xh_what->pages)
			put_pool(w, s, h->pool[i]);
	}
	for (i = 0; i < HOMA_PEER_STRIPES; i++)
		homa_list_for_each(pos, &h->engine->peers[i].turns)
			put_peer(w, s,
				 homa_list_entry(pos, struct homa_peer, turn));
	put_once(w, s, h->engine);
	put_wheel(w, s, &h->engine->shards[0].wheel);
	put_link(w, s, h->link[0]);
}

/* Only what was asked for within an interval says something. */
static void put_asked(struct xp_world *w, struct xp_sink *s,
		      const struct xh_rpc *r)
{
	u64 recent = xh_of(w)->host[0].link[0]->derived.resend_ns;
	u32 dir, i;

	for (dir = 0; dir < 2; dir++)
		for (i = 0; i < XH_PARTS; i++)
			if (r->asked_at[dir][i] &&
			    w->now - r->asked_at[dir][i] < recent)
				xp_put(s, (w->now - r->asked_at[dir][i]) << 4 |
						  i << 1 | dir);
	put2(s, r->asker_life[0], r->asker_life[1]);
	put2(s, r->seen_to[0], r->seen_to[1]);
}

void xh_canon(struct xp_world *w, struct xp_sink *s)
{
	struct xh_world *x = xh_of(w);
	u32 i;

	for (i = 0; i < xh_what->num; i++) {
		const struct xh_rpc *r = &x->book[i];

		xp_put(s, (u64)r->state << 56 | (u64)r->executed << 48 |
				  (u64)r->answered << 40 |
				  (u64)r->excused << 32 | (u32)r->error);
		put2(s, r->granted[0], r->granted[1]);
		put2(s, r->sent[0], r->sent[1]);
		put2(s, r->supplied[0], r->supplied[1]);
		xp_put(s, r->sign_late);
		put_asked(w, s, r);
		put_time(w, s, r->state == XH_PENDING ? r->sign_at : 0);
		put_time(w, s, r->repeated_at == w->now ? w->now : 0);
		put_time(w, s,
			 r->refused_life == w->life[xh_what->rpc[i].server] ?
				 r->refused_at :
				 0);
		put2(s,
		     (u32)r->life << 24 | (u32)r->unwanted_life << 16 | r->cutoffs,
		     (u32)r->given_up << 4 | (u32)r->anew << 3 |
			     (u32)(r->fresh_at[0] == w->now) << 2 |
			     (u32)(r->fresh_at[1] == w->now) << 1 |
			     (r->fresh_at[1] != 0));
	}
	for (i = 0; i < w->hosts; i++)
		xp_put(s, w->life[i]);
}
