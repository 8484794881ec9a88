/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What must hold in every state, and at the end of each way. That a request runs once
 * and that outcomes are of what was begun is checked where applications are told
 * (homa_app.c); that every way comes to an end, by the search itself.
 */
#include "homa_busy.h"
#include "homa_world.h"

#include <string.h>

/* ---- bytes of messages ---- */

/* Bytes in one of the parts that messages are accounted for in. Whole packets have whole parts,
 * so that each part comes in one packet but for the last of a message. */
static u32 unit(void)
{
	u32 most = 1, size, i;

	for (i = 0; i < xh_what->num; i++) {
		most = homa_max_u32(most, xh_what->rpc[i].request);
		most = homa_max_u32(most, xh_what->rpc[i].response);
	}
	size = (most + XH_BITS - 1) / XH_BITS;
	while (size < xh_what->seg && xh_what->seg % size)
		size++;
	return size;
}

void xh_copy(struct xp_world *w, u32 host, const struct homa_rx_pkt *rx, u32 note)
{
	u32 size = unit(), from, to, room, i;
	struct xh_priv *priv;

	(void)w;
	if (rx->verdict == HOMA_RX_MESSAGE) {
		if (rx->length != xh_length(note) || rx->offset)
			xp_fail("host %u is given %u bytes of %u", host,
				rx->length, xh_length(note));
		return;
	}
	priv = homa_rpc_priv(rx->rpc);
	/* It begins, or begins again. */
	if (priv->generation != rx->rpc->generation ||
	    rx->rpc->in.received == rx->fresh) {
		memset(priv->have, 0, sizeof(priv->have));
		priv->generation = rx->rpc->generation;
		priv->in = note;
	}
	if (priv->in != note)
		xp_fail("host %u: bytes of two messages in one", host);
	if ((u64)rx->offset + rx->length > xh_length(note))
		xp_fail("host %u: bytes beyond the message", host);
	if (rx->rpc->sock->pool)
		for (i = 0; i < rx->length; i += room)
			if (homa_rx_place(rx->rpc, rx->offset + i, &room) >=
				    xh_what->pages * HOMA_BPAGE_SIZE ||
			    !room) {
				xp_fail("host %u: bytes without a page", host);
				return;
			}
	from = (rx->offset + size - 1) / size;
	to = rx->offset + rx->length == xh_length(note) ?
		     (xh_length(note) + size - 1) / size :
		     (rx->offset + rx->length) / size;
	for (i = from; i < to; i++)
		priv->have[i / 64] |= 1ull << i % 64;
}

void xh_check_message(struct xp_world *w, const struct xh_priv *priv, u32 note,
		      u32 length)
{
	u32 i, parts;

	(void)w;
	if (!note || length != xh_length(note)) {
		xp_fail("a message of %u bytes is delivered that was sent with another length",
			length);
		return;
	}
	parts = (length + unit() - 1) / unit();
	/* Strangers make packets shorter: then two may meet in one part, which nobody saw whole. */
	if (unit() > 1 && xh_what->hostile)
		return;
	for (i = 0; i < parts; i++)
		if (!(priv->have[i / 64] & 1ull << i % 64))
			xp_fail("byte %u of a message of %u was never received",
				i * unit(), length);
}

/* Which message does this RPC wait for? 0: of nobody's. */
static u32 note_of(struct xp_world *w, const struct homa_rpc *rpc)
{
	struct xh_rpc *line =
		xh_book_find(w, rpc->peer->addr.ip[15] - 1u, rpc->id ^ 1);

	return homa_rpc_is_client(rpc) || !line ?
		       0 :
		       xh_note((u32)(line - xh_of(w)->book), false);
}

/* There is room for a message unless all that wait are shorter, or pages are too few. */
void xh_check_refused(struct xp_world *w, u32 host, u32 note)
{
	struct xh_host *h = &xh_of(w)->host[host];
	u32 sock = (note - 1) % 2, length = xh_length(note);
	const struct homa_heap_node *first =
		homa_heap_min(&h->sock[sock]->starving);

	if (h->closed & 1u << sock || length > HOMA_BPAGE_SIZE ||
	    !h->pool[sock]->num_free)
		return;
	/* If it waits first itself, nobody who waits needs the page. */
	if (first && ((u32)first->key > length ||
		      note_of(w, homa_container_of(first, struct homa_rpc,
						   in.node)) == note))
		xp_fail("host %u has free pages and refuses a message of %u bytes",
			host, length);
}

/* ---- packets ---- */

/* A grant that ends inside a packet is one for all of it. */
static u32 whole_packets(u32 granted, u32 packet)
{
	return (granted + packet - 1) / packet * packet;
}

static void check_data(struct xp_world *w, u32 host,
		       const struct homa_packet *q, u32 note)
{
	struct xh_rpc *line = &xh_of(w)->book[(note - 1) / 2];
	u32 dir = (note - 1) % 2;
	u32 end = q->data.offset + q->data.payload_len;

	if (q->data.length != xh_length(note))
		xp_fail("host %u sends a message of %u bytes as one of %u",
			host, xh_length(note), q->data.length);
	/* Packets may be smaller than at first: each begins with what was granted. */
	if (end > whole_packets(line->granted[dir], xh_what->seg) &&
	    q->data.offset >= line->granted[dir])
		xp_fail("host %u sends up to byte %u, granted are %u", host,
			end, line->granted[dir]);
	if (!dir && line->cutoffs && q->data.cutoff_version != line->cutoffs &&
	    q->data.cutoff_version !=
		    xh_of(w)->host[host].told[xh_what->rpc[(note - 1) / 2].server])
		xp_fail("host %u was told of priorities and does not use them",
			host);
	/* What is sent again was sent before; the rest is still to come in its turn. Who
	 * begins anew may say so of all. */
	if (q->data.retransmit && end > line->sent[dir] && !line->anew)
		xp_fail("host %u sends byte %u again, and has sent %u", host,
			end, line->sent[dir]);
	if (end > line->sent[dir] && !dir)
		line->sign_at = w->now;
	if (q->data.retransmit && !dir)
		line->repeated_at = w->now;
	line->sent[dir] = homa_max_u32(line->sent[dir], end);
}

/* Which message does a receiver's control packet ask for? */
static struct xh_rpc *asked_for(struct xp_world *w, u32 host,
				const struct homa_packet *q, u32 *dir)
{
	struct xh_rpc *line;
	u32 other;

	*dir = !(q->hdr.sender_id & 1); /* a client asks for the response */
	if (*dir)
		return xh_book_find(w, host, q->hdr.sender_id);
	for (other = 0; other < w->hosts; other++) {
		line = other == host ?
			       NULL :
			       xh_book_find(w, other, q->hdr.sender_id ^ 1);
		if (line)
			return line;
	}
	return NULL;
}

/*
 * No more is granted and has not come than max_incoming and the share of the oldest
 * message, which gets another part while it lacks less than two beyond its window; those
 * that were the oldest keep theirs. But a message of which all has come may have one
 * packet more, or it would stand still behind others.
 */
static void check_incoming(struct xp_world *w, u32 host)
{
	struct xh_host *h = &xh_of(w)->host[host];
	const struct homa_link *link = h->link[0];
	const struct homa_derived *d = &link->derived;
	u32 share = d->fifo_increment;
	u32 granted = 0, unasked = 0, messages = 0, most, i;
	struct homa_list *pos;

	for (i = 0; i < XH_SOCKS; i++) {
		if (h->closed & 1u << i)
			continue;
		homa_list_for_each(pos, &h->sock[i]->rpcs) {
			struct homa_rpc *rpc =
				homa_list_entry(pos, struct homa_rpc, sock_rpcs);
			u32 own = homa_min_u32(rpc->in.length, xh_burst());

			if (rpc->state != HOMA_RPC_INCOMING)
				continue;
			messages++;
			share += xh_what->rate ? 3 * d->fifo_increment : 0;
			granted +=
				rpc->in.granted -
				homa_min_u32(rpc->in.received, rpc->in.granted);
			unasked += own - homa_min_u32(rpc->in.received, own);
		}
	}
	most = d->max_incoming + messages * xh_what->seg + share;
	/* What comes unasked is counted, but nobody can keep it from coming. */
	if (granted > most + unasked)
		xp_fail("host %u has granted %u bytes that have not come, the limit is %u",
			host, granted, most);
	if ((s64)link->grants.incoming > (s64)(most + unasked))
		xp_fail("host %u counts %lld bytes granted that have not come, the limit is %u",
			host, (long long)link->grants.incoming, most);
}

void xh_check_packet(struct xp_world *w, u32 host, const struct xp_packet *p)
{
	struct xh_rpc *line;
	struct homa_packet q;
	u32 dir;

	if (homa_packet_decode(&q, p->data, p->len)) {
		xp_fail("host %u sends what is no packet", host);
		return;
	}
	if (q.hdr.type == HOMA_DATA) {
		if (p->note)
			check_data(w, host, &q, p->note);
		return;
	}
	if (q.hdr.type != HOMA_GRANT && q.hdr.type != HOMA_RESEND)
		return;
	line = asked_for(w, host, &q, &dir);
	if (!line)
		return;
	if (q.hdr.type == HOMA_GRANT) {
		if (dir ? line->state != XH_PENDING :
			  line->executed && line->life == w->life[host])
			xp_fail("host %u grants bytes of a message that it has",
				host);
		line->granted[dir] =
			homa_max_u32(line->granted[dir], q.grant.offset);
		check_incoming(w, host);
		xh_check_fifo(w, host, q.hdr.sender_id);
		return;
	}
	xh_check_question(w, host, &q, line, dir);
	if (q.resend.length != HOMA_RESEND_ALL)
		line->granted[dir] =
			homa_max_u32(line->granted[dir],
				     q.resend.offset + q.resend.length);
	if (!xh_what->pages && line->fresh_at[dir] == w->now &&
	    line->state == XH_PENDING && w->life[host] == 1)
		xp_fail("host %u asks again for what has only just begun to come",
			host);
}

/* ---- every state ---- */

static void check_rpc(struct xp_world *w, u32 host, struct homa_rpc *rpc,
		      s64 *incoming)
{
	const struct homa_grantee *in = &rpc->in;
	const struct homa_out *out = &rpc->out;
	struct homa_ranges_iter iter;
	u32 start, end, missing = 0;

	(void)w;
	if (in->counted)
		*incoming += (s64)in->granted - in->accounted;
	if (in->state != HOMA_GRANTEE_IDLE && rpc->state != HOMA_RPC_INCOMING)
		xp_fail("host %u may grant to a message that is not coming in",
			host);
	if (in->granted > in->length)
		xp_fail("host %u grants %u bytes of %u", host, in->granted,
			in->length);
	/* At most RTTbytes of what a sender says that it may send are believed. */
	if (in->counted && in->granted > in->received &&
	    in->granted - in->accounted <
		    homa_min_u32(in->granted - in->received,
				 rpc->link->derived.rtt_bytes))
		xp_fail("host %u has granted %u bytes of which %u came, and counts %u as missing",
			host, in->granted, in->received,
			in->granted - in->accounted);
	if (out->active &&
	    (out->next > whole_packets(out->limit, out->send.packet) ||
	     out->limit > out->length || out->next > out->available))
		xp_fail("host %u has sent %u of %u granted bytes of %u", host,
			out->next, out->limit, out->length);
	if (rpc->state != HOMA_RPC_INCOMING || rpc->flags & HOMA_RPC_NO_BUFFER)
		return;
	homa_ranges_iter_init(&iter, &rpc->ranges);
	while (homa_ranges_missing(&iter, in->length, &start, &end))
		missing += end - start;
	if (in->received + missing != in->length)
		xp_fail("host %u: %u bytes came and %u are missing of %u", host,
			in->received, missing, in->length);
}

/* Does a timer come out of its wheel in time, to within a tick? */
static void check_timer(u32 host, const struct homa_rpc *rpc)
{
	struct homa_wheel *wheel = &rpc->shard->wheel;
	u64 next = homa_wheel_next(wheel);

	if (homa_wheel_linked(&rpc->timer) && next > rpc->timer.deadline &&
	    next - rpc->timer.deadline > 2ull << wheel->shift)
		xp_fail("host %u has a timer %llu us later than was asked for",
			host,
			(unsigned long long)(next - rpc->timer.deadline) / 1000);
}

/* A request without pages stays as long as its client speaks; about others a round longer. */
static void check_starving(struct xp_world *w, u32 host,
			   const struct homa_rpc *rpc)
{
	const struct homa_derived *d = &rpc->link->derived;
	u64 most = d->timeout_ns + (2ull << rpc->shard->wheel.shift);

	if (rpc->peer->heard_at > rpc->heard_at)
		most += 2 * homa_busy_round(XH_RPCS, d->resend_ns);
	if (rpc->state == HOMA_RPC_INCOMING && rpc->flags & HOMA_RPC_NO_BUFFER &&
	    !homa_rpc_is_client(rpc) && w->now > rpc->heard_at + most)
		xp_fail("host %u keeps a request that waits for pages, of a client silent for %llu us",
			host,
			(unsigned long long)(w->now - rpc->heard_at) / 1000);
}

/* Within a peer no message that waits has fewer bytes to come than one that may be granted. */
static void check_order(u32 host, struct homa_sock *sock,
			const struct homa_rpc *active)
{
	u32 left = active->in.length - active->in.received;
	struct homa_list *pos;

	homa_list_for_each(pos, &sock->rpcs) {
		const struct homa_rpc *rpc =
			homa_list_entry(pos, struct homa_rpc, sock_rpcs);
		const struct homa_grantee *in = &rpc->in;

		if (in->state != HOMA_GRANTEE_WAITING ||
		    rpc->peer != active->peer || rpc->link != active->link)
			continue;
		if (in->node.key < left ||
		    (in->node.key == left && in->node.tie < active->in.birth))
			xp_fail("host %u grants to a message that lacks %u bytes before one with %llu",
				host, left, (unsigned long long)in->node.key);
	}
}

static void check_sock(struct xp_world *w, u32 host, struct homa_sock *sock,
		       s64 *incoming)
{
	struct homa_list *pos;
	u32 untaken = 0;

	homa_list_for_each(pos, &sock->rpcs) {
		struct homa_rpc *rpc =
			homa_list_entry(pos, struct homa_rpc, sock_rpcs);

		check_rpc(w, host, rpc, incoming);
		check_timer(host, rpc);
		check_starving(w, host, rpc);
		if (rpc->in.state == HOMA_GRANTEE_ACTIVE)
			check_order(host, sock, rpc);
		untaken += !homa_rpc_is_client(rpc) &&
			   !(rpc->flags & HOMA_RPC_EXECUTED);
	}
	if (sock->backlog != untaken)
		xp_fail("host %u counts %llu requests that wait for its application, %u do",
			host, (unsigned long long)sock->backlog, untaken);
}

/* Nobody is woken for nothing: not at a time that has passed, if no deadline has. */
static void check_wheel(struct xp_world *w, struct xh_host *h, u32 host)
{
	struct homa_wheel *wheel = &h->engine->shards[0].wheel;
	u64 first = HOMA_NEVER, now = w->now + xh_what->behind_ns;
	struct homa_list *pos;
	u32 k;

	for (k = 0; k < XH_SOCKS; k++) {
		if (h->closed & 1u << k)
			return;
		homa_list_for_each(pos, &h->sock[k]->rpcs) {
			struct homa_rpc *rpc =
				homa_list_entry(pos, struct homa_rpc, sock_rpcs);

			if (homa_wheel_linked(&rpc->timer))
				first = homa_min_u64(first, rpc->timer.deadline);
		}
	}
	if (first != HOMA_NEVER && first > now &&
	    homa_wheel_next(wheel) + (1ull << wheel->shift) < w->now)
		xp_fail("host %u is woken for %llu us ago, and its first timer is in %llu us",
			host,
			(unsigned long long)(w->now - homa_wheel_next(wheel)) /
				1000,
			(unsigned long long)(first - now) / 1000);
}

/* While payload is copied to a page, the page is that message's. */
static void check_late(struct xh_host *h, u32 host)
{
	u32 room;

	if (h->is_late && h->late.rpc->state == HOMA_RPC_INCOMING &&
	    h->late.rpc->sock->pool &&
	    homa_rx_place(h->late.rpc, h->late.offset, &room) != h->late_page)
		xp_fail("host %u takes a page away to which payload is being copied",
			host);
}

void xh_check(struct xp_world *w)
{
	struct xh_world *x = xh_of(w);
	u32 i, k;

	for (i = 0; i < w->hosts; i++) {
		struct xh_host *h = &x->host[i];
		s64 incoming = 0;

		if (xh_what->look)
			xh_look(w, i);
		check_wheel(w, h, i);
		check_late(h, i);
		xh_check_awaited(w, i);
		for (k = 0; k < XH_SOCKS; k++)
			if (!(h->closed & 1u << k))
				check_sock(w, i, h->sock[k], &incoming);
		if (!h->closed && (s64)h->link[0]->grants.incoming != incoming)
			xp_fail("host %u counts %lld bytes as granted and not come, it is %lld",
				i, (long long)h->link[0]->grants.incoming,
				(long long)incoming);
		if (h->engine->num_rpcs > XH_SPARE_RPCS)
			xp_fail("host %u counts %llu RPCs", i,
				(unsigned long long)h->engine->num_rpcs);
	}
	for (i = 0; i < xh_what->num; i++)
		xh_check_refusals(w, i);
}

/* ---- the end ---- */

/* Records that remember requests that ran. */
static u32 remembered(struct xh_host *h)
{
	struct homa_counts counts;

	homa_engine_counts(h->engine, &counts);
	return counts.once;
}

static void check_pool(struct xh_host *h, u32 host, u32 i)
{
	const struct homa_pool *pool = h->pool[i];
	u32 k, leased = 0;

	if (!xh_what->pages || h->closed & 1u << i)
		return;
	for (k = 0; k < HOMA_LEASES; k++)
		leased += pool->lease[k].used != HOMA_BPAGE_SIZE;
	if (pool->num_free + leased < pool->num_backed)
		xp_fail("host %u: %u of %u pages are lost", host,
			pool->num_backed - pool->num_free - leased,
			pool->num_backed);
	if (h->sock[i]->owed || h->sock[i]->num_long || h->sock[i]->starving.count)
		xp_fail("host %u: pages are promised to nobody", host);
}

static void check_link(const struct homa_link *link, u32 host)
{
	const struct homa_grants *g = &link->grants;

	if (g->incoming || g->num_active || g->num_waiting || g->num_tails)
		xp_fail("host %u: %lld bytes granted, %u messages in the grant scheduler",
			host, (long long)g->incoming,
			g->num_active + g->num_waiting);
	if (link->sched.heap.count || link->sched.fifo.count)
		xp_fail("host %u: something is still to be sent", host);
}

static void check_peers(struct xh_host *h, u32 host)
{
	struct homa_list *pos;
	u32 i;

	for (i = 0; i < HOMA_PEER_STRIPES; i++) {
		homa_list_for_each(pos, &h->engine->peers[i].turns) {
			struct homa_peer *peer =
				homa_list_entry(pos, struct homa_peer, turn);

			if (peer->server_rpcs || peer->num_busy || peer->slots)
				xp_fail("host %u counts %u requests and %u busy RPCs of a peer",
					host, peer->server_rpcs, peer->num_busy);
		}
	}
}

void xh_check_end(struct xp_world *w)
{
	struct xh_world *x = xh_of(w);
	u32 i, k;

	for (i = 0; i < w->hosts; i++) {
		struct xh_host *h = &x->host[i];

		if (h->ctx.spare_rpcs != XH_SPARE_RPCS)
			xp_fail("host %u has lost %d RPCs", i,
				(int)(XH_SPARE_RPCS - h->ctx.spare_rpcs));
		if (h->ctx.spare_ranges + remembered(h) != XH_SPARE_RANGES)
			xp_fail("host %u has lost %d records", i,
				(int)(XH_SPARE_RANGES - h->ctx.spare_ranges -
				      remembered(h)));
		if (h->ctx.spare_peers + h->engine->num_peers != XH_SPARE_PEERS)
			xp_fail("host %u has lost peers", i);
		if (h->engine->own.rpcs || h->engine->own.client_rpcs ||
		    h->owner[0].rpcs || h->owner[1].rpcs ||
		    h->owner[1].client_rpcs || h->engine->own.backlog ||
		    h->owner[0].backlog || h->owner[1].backlog)
			xp_fail("host %u counts RPCs of owners: %llu", i,
				(unsigned long long)h->engine->own.rpcs);
		for (k = 0; k < XH_LINKS; k++)
			check_link(h->link[k], i);
		for (k = 0; k < XH_SOCKS; k++)
			check_pool(h, i, k);
		check_peers(h, i);
	}
}
