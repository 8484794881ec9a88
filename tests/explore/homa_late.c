/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What is owed within a time, or not before: its share of grants to the oldest message,
 * the memory that a request ran, and that nobody asks again before he can know.
 */
#include "homa_once.h"
#include "homa_world.h"

#include <string.h>

/* The oldest message of @host that wants grants; 0: none. */
static u64 oldest(struct xh_host *h, u64 *waits_for)
{
	struct homa_list *pos;
	u64 birth = HOMA_NEVER, id = 0;
	u32 i;

	for (i = 0; i < XH_SOCKS; i++)
		homa_list_for_each(pos, &h->sock[i]->rpcs) {
			const struct homa_rpc *rpc =
				homa_list_entry(pos, struct homa_rpc, sock_rpcs);

			if (rpc->in.state == HOMA_GRANTEE_IDLE ||
			    rpc->in.birth >= birth)
				continue;
			birth = rpc->in.birth;
			id = rpc->id;
			*waits_for =
				rpc->in.granted -
				homa_min_u32(rpc->in.granted, rpc->in.received);
		}
	return id;
}

/*
 * While grants are wanted without a break, the oldest message gets one in every two
 * intervals of its share, unless it has more outstanding than it may.
 */
void xh_check_fifo(struct xp_world *w, u32 host, u64 id)
{
	struct xh_host *h = &xh_of(w)->host[host];
	const struct homa_params *params = &h->engine->params;
	u64 share = h->link[0]->derived.fifo_increment, interval, now_oldest,
	    waits_for = 0;
	struct xh_fifo *f = &h->fifo;

	if (!xh_what->rate || !params->grant_fifo_fraction || h->closed)
		return;
	interval = share * 8000000 /
		   ((u64)xh_what->rate * params->grant_fifo_fraction);
	if (w->now - f->granted_at > interval)
		f->since = w->now;
	f->granted_at = w->now;
	now_oldest = oldest(h, &waits_for);
	if (now_oldest != f->oldest || id == now_oldest ||
	    waits_for >= params->window + 2 * share)
		f->oldest_at = w->now;
	f->oldest = now_oldest;
	if (now_oldest &&
	    w->now - homa_max_u64(f->oldest_at, f->since) > 2 * interval)
		xp_fail("host %u grants for %llu us and nothing to its oldest message",
			host,
			(unsigned long long)(w->now - homa_max_u64(f->oldest_at,
								   f->since)) /
				1000);
}

/* ---- what is remembered ---- */

static const struct homa_peer *peer_of(const struct xh_host *h, u32 other)
{
	struct homa_list *pos;
	u32 i;

	for (i = 0; i < HOMA_PEER_STRIPES; i++)
		homa_list_for_each(pos, &h->engine->peers[i].turns) {
			const struct homa_peer *peer =
				homa_list_entry(pos, struct homa_peer, turn);

			if (peer->addr.ip[15] == 1 + other)
				return peer;
		}
	return NULL;
}

/* Until when @h remembers that request @id of @peer ran, ms; HOMA_NEVER: it is not over. */
static u64 remembers_until(const struct xh_host *h,
			   const struct homa_peer *peer, u64 id)
{
	u64 key = homa_hash_mix(peer->key ^ (id >> 1) / HOMA_ONCE_IDS);
	u32 bit = (u32)(id >> 1) % HOMA_ONCE_IDS;
	const struct homa_once *once;
	u32 i, k;

	for (i = 0; i < HOMA_ONCE_STRIPES; i++)
		for (k = 0; k <= h->engine->once[i].mask; k++)
			for (once = h->engine->once[i].buckets[k]; once;
			     once = once->next)
				if (once->key == key &&
				    once->bits[bit / 64] >> bit % 64 & 1)
					return once->open ? HOMA_NEVER :
							    once->until_ms;
	return 0;
}

/*
 * A host that has just refused a copy of a request will refuse another one for as long
 * as after the request's end: for a client that goes on may have sent it again.
 */
void xh_check_refusals(struct xp_world *w, u32 i)
{
	const struct xh_rpc *line = &xh_of(w)->book[i];
	const struct xh_plan *plan = &xh_what->rpc[i];
	const struct xh_host *h = &xh_of(w)->host[plan->server];
	const struct homa_peer *peer = peer_of(h, plan->client);
	u64 promised = line->refused_at / XP_MS + h->engine->params.tombstone_ms +
		       h->link[0]->derived.restart_ns / XP_MS;

	if (!peer || !line->refused_at ||
	    line->refused_life != w->life[plan->server] ||
	    w->now / XP_MS >= promised)
		return;
	if (remembers_until(h, peer, line->handle.id) < promised)
		xp_fail("host %u will forget RPC %u too early after a copy of it",
			plan->server, i);
}

/* ---- answers ---- */

/*
 * An application that works on a request may ask whether its client still waits. It does
 * unless it has said otherwise; an error of the network's may have been as good as its word.
 */
void xh_check_awaited(struct xp_world *w, u32 host)
{
	struct xh_host *h = &xh_of(w)->host[host];
	u32 i, k;

	for (k = 0; k < h->num_held; k++) {
		const struct xh_rpc *line;
		bool awaited;

		if (!h->held[k].taken)
			continue;
		i = (h->held[k].note - 1u) / 2;
		line = &xh_of(w)->book[i];
		awaited = homa_rpc_awaited(&h->ctx, h->held[k].handle);
		if (awaited && line->unwanted_life == w->life[host])
			xp_fail("host %u is told that RPC %u is awaited, which is given up",
				host, i);
		if (!awaited && line->state == XH_PENDING && !line->given_up &&
		    xh_all_is_well(w))
			xp_fail("host %u is told that nobody awaits RPC %u, and its client does",
				host, i);
	}
}

void xh_check_rejected(struct xp_world *w, const struct xp_packet *p)
{
	const struct xh_host *h = &xh_of(w)->host[p->dst];
	struct homa_packet q;
	struct xh_rpc *line;

	if (homa_packet_decode(&q, p->data, p->len) ||
	    q.hdr.type != HOMA_DATA || !q.data.error)
		return;
	line = xh_book_find(w, p->dst, q.hdr.sender_id ^ 1);
	if (line && line->state == XH_PENDING && xh_all_is_well(w) && !h->slow)
		xp_fail("host %u is not told that a request was rejected",
			p->dst);
}

/* ---- questions ---- */

/* Its receiver lives anew, and knows nothing of what was asked for. */
static void begins(struct xh_rpc *line, u32 dir, u8 life)
{
	if (line->asker_life[dir] == life)
		return;
	line->asker_life[dir] = life;
	line->seen_to[dir] = 0;
	memset(line->asked_at[dir], 0, sizeof(line->asked_at[dir]));
}

void xh_came(struct xp_world *w, const struct xp_packet *p, u32 end)
{
	struct xh_rpc *line = &xh_of(w)->book[(p->note - 1) / 2];
	u32 dir = (p->note - 1) % 2;
	struct homa_packet q;

	begins(line, dir, w->life[p->dst]);
	line->seen_to[dir] = homa_max_u32(line->seen_to[dir], end);
	/* Who asked may ask about those that he lacks still. */
	if (!homa_packet_decode(&q, p->data, p->len) && q.data.retransmit)
		memset(line->asked_at[dir], 0, sizeof(line->asked_at[dir]));
}

/*
 * Who has asked for bytes that others have overtaken waits for an interval before he asks for
 * them again, unless bytes that were sent again came meanwhile. And he asks for what he has
 * granted, and no more.
 */
void xh_check_question(struct xp_world *w, u32 host,
		       const struct homa_packet *q, struct xh_rpc *line, u32 dir)
{
	u64 interval = xh_of(w)->host[host].link[0]->derived.resend_ns;
	u32 end = q->resend.offset + q->resend.length, seg, i;

	if (q->resend.length == HOMA_RESEND_ALL || !q->resend.length ||
	    line->state != XH_PENDING)
		return;
	begins(line, dir, w->life[host]);
	/* A GRANT that found no room in the link's queue was given, too. */
	if (w->life[0] == 1 && w->life[1] == 1 && !line->anew &&
	    !xh_what->ctrl && end > line->granted[dir])
		xp_fail("host %u asks for bytes up to %u, and has granted %u",
			host, end, line->granted[dir]);
	seg = (xh_length(xh_note((u32)(line - xh_of(w)->book), dir)) +
	       XH_PARTS - 1) /
	      XH_PARTS;
	for (i = (q->resend.offset + seg - 1) / seg;
	     i < XH_PARTS && i * seg < end; i++) {
		if (line->asked_at[dir][i] &&
		    w->now - line->asked_at[dir][i] < interval && !xh_what->pages)
			xp_fail("host %u asks for byte %u again after %llu us",
				host, i * seg,
				(unsigned long long)(w->now -
						     line->asked_at[dir][i]) /
					1000);
		if (i * seg < line->seen_to[dir])
			line->asked_at[dir][i] = w->now;
	}
}
