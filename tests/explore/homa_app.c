/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Applications, and the book in which every RPC has a line. Applications do all that
 * they have to do at once, unless they are slow: then they go on some time later, which
 * is a choice of its own (homa_choice.c).
 */
#include "homa_world.h"

#include <string.h>

const struct xh_what *xh_what;

/* ---- the book ---- */

struct xh_rpc *xh_book_find(struct xp_world *w, u32 client, u64 id)
{
	struct xh_world *x = xh_of(w);
	u32 i;

	for (i = 0; i < xh_what->num; i++)
		if (x->book[i].state && xh_what->rpc[i].client == client &&
		    x->book[i].handle.id == id)
			return &x->book[i];
	return NULL;
}

static u32 index_of(struct xp_world *w, const struct xh_rpc *line)
{
	return (u32)(line - xh_of(w)->book);
}

/* The packet of a message that had only one left with the call. */
static void sent_at_once(struct xp_world *w, u32 host, struct homa_tx_desc *desc)
{
	struct homa_ctx *ctx = &xh_of(w)->host[host].ctx;

	if (xh_what->at_once && !ctx->tx_now)
		xh_transmit(w, host, desc);
	ctx->tx_now = NULL;
}

u32 xh_unasked(u32 length)
{
	return length < xh_burst() + xh_what->seg ? length : xh_burst();
}

void xh_begin(struct xp_world *w, u32 i)
{
	const struct xh_plan *plan = &xh_what->rpc[i];
	struct xh_host *h = xh_clock(w, plan->client);
	struct xh_rpc *line = &xh_of(w)->book[i];
	struct homa_send send = { .port = XH_PORT,
				  .length = plan->request,
				  .available = plan->request,
				  .cookie = 7000 + i };
	struct homa_tx_desc desc;
	struct homa_rpc *rpc;
	struct xh_priv *priv;

	xp_time_is(w, w->now + plan->after_ns);
	h->ctx.now += plan->after_ns;
	xh_address(&send.dst, plan->server);
	h->ctx.tx_now = xh_what->at_once ? &desc : NULL;
	if (xh_what->own_ids) {
		send.flags = HOMA_SEND_PRIVATE;
		send.id = 0x1000002 + 2 * i + 0x1000ull * w->life[plan->client];
	}
	send.available = xh_supply(line, false, plan->request);
	if (homa_rpc_send(&h->ctx, h->sock[1], h->link[0], &send, &line->handle,
			  &rpc)) {
		if (!xh_what->owned || !h->engine->num_rpcs)
			xp_fail("RPC %u cannot begin", i);
		line->state = XH_GONE; /* its owner has too many */
		return;
	}
	priv = homa_rpc_priv(rpc);
	memset(priv, 0, sizeof(*priv));
	priv->out = xh_note(i, false);
	line->state = XH_PENDING;
	line->client_life = w->life[plan->client];
	line->granted[0] = xh_unasked(plan->request);
	line->granted[1] = xh_unasked(plan->response);
	line->cutoffs = h->told[plan->server];
	sent_at_once(w, plan->client, &desc);
}

void xh_begin_all(struct xp_world *w)
{
	u32 i;

	for (i = 0; i < xh_what->num; i++) {
		xh_begin(w, i);
		xh_poll(w, xh_what->rpc[i].client);
	}
}

void xh_gone(struct xp_world *w, u32 host, u32 sock)
{
	u32 i;

	for (i = 0; i < xh_what->num; i++) {
		struct xh_rpc *line = &xh_of(w)->book[i];

		if (xh_what->rpc[i].client == host &&
		    line->state == XH_PENDING && sock)
			line->state = XH_GONE;
	}
}

bool xh_ended(struct xp_world *w)
{
	struct xh_world *x = xh_of(w);
	u32 i;

	for (i = 0; i < xh_what->num; i++)
		if (x->book[i].state <= XH_PENDING)
			return false;
	for (i = 0; i < w->hosts; i++)
		if (x->host[i].engine->num_rpcs || x->host[i].num_held ||
		    x->host[i].is_late || x->host[i].num_kept ||
		    x->host[i].refusing == 2)
			return false;
	return true;
}

/* Devices that hold up what is sent again are not slow for longer than the RPC is patient
 * with a silent peer: its clock goes on, or a peer that asks for ever kept it alive. */
static u32 most_waits(void)
{
	return xh_what->by_room ? XH_ROOM_WAITS : XH_WAITS;
}

bool xh_may_wait(struct xp_world *w)
{
	u32 i;

	for (i = 0; i < w->hosts; i++)
		if (xh_of(w)->host[i].waits >= most_waits() && xh_owes(w, i))
			return false;
	return true;
}

/* ---- messages ---- */

void xh_answer(struct xp_world *w, u32 host, struct homa_handle handle, u32 note)
{
	struct xh_host *h = xh_clock(w, host);
	u32 i = (note - 1) / 2;
	struct xh_rpc *line = &xh_of(w)->book[i];
	struct homa_rpc *rpc = NULL;
	struct homa_tx_desc desc;
	struct xh_priv *priv;
	int err;

	h->ctx.tx_now = xh_what->at_once ? &desc : NULL;
	line->served = handle;
	if (xh_what->rpc[i].reject)
		err = homa_rpc_reject(&h->ctx, handle, xh_what->rpc[i].reject,
				      1, &rpc);
	else
		err = homa_rpc_reply(&h->ctx, handle, xh_what->rpc[i].response,
				     xh_supply(line, true,
					       xh_what->rpc[i].response),
				     &rpc);
	if (err)
		xp_fail("the answer to RPC %u is refused: %d", i, err);
	if (rpc && line->unwanted_life == w->life[host])
		xp_fail("RPC %u is answered, and its client has given it up", i);
	if (rpc && xh_what->rpc[i].reject && xh_what->no_rejects)
		xp_fail("RPC %u is rejected, which its client does not understand",
			i);
	if (homa_rpc_awaited(&h->ctx, handle))
		xp_fail("host %u: RPC %u waits for an answer that it has", host,
			i);
	if (rpc) {
		priv = homa_rpc_priv(rpc);
		priv->out = xh_note(i, true);
		xh_of(w)->book[i].answered++;
		sent_at_once(w, host, &desc);
	}
	h->ctx.tx_now = NULL;
	/* An application that answers twice is told so. */
	if (rpc && ((!homa_rpc_reply(&h->ctx, handle, 1, 1, &rpc) && rpc) ||
		    (!homa_rpc_reject(&h->ctx, handle, 1, 1, &rpc) && rpc)))
		xp_fail("a second answer to RPC %u is accepted", i);
}

static void got_request(struct xp_world *w, u32 host, struct homa_handle handle,
			u32 note, const struct homa_addr *peer)
{
	struct xh_host *h = &xh_of(w)->host[host];
	struct xh_rpc *line = xh_book_find(w, peer->ip[15] - 1u, handle.id ^ 1);
	u32 i;

	if (!line) {
		xp_fail("host %u is given a request that nobody sent", host);
		return;
	}
	i = index_of(w, line);
	if (note != xh_note(i, false))
		xp_fail("host %u is given the bytes of another message for RPC %u",
			host, i);
	if (xh_what->rpc[i].server != host)
		xp_fail("RPC %u reaches host %u", i, host);
	line->executed++;
	/* What a life of the server has done itself it knows. */
	if (line->executed > 1 && (line->life == w->life[host] || !line->excused))
		xp_fail("RPC %u is executed twice", i);
	line->life = w->life[host];
	xp_tell("                   host %u executes RPC %u\n", host, i);
	if (h->slow == 2 && h->num_held < XH_HOLD)
		h->held[h->num_held++] = (struct xh_held){ handle, 1, (u8)note };
	else
		xh_answer(w, host, handle, note);
}

bool xh_all_is_well(struct xp_world *w)
{
	u32 i;

	for (i = 0; i < w->hosts; i++)
		if (w->life[i] > 1 || xh_of(w)->host[i].closed ||
		    xh_of(w)->host[i].slept || xh_of(w)->host[i].halted)
			return false;
	return true;
}

/* An RPC of which a client is told that it failed. */
static void check_failure(struct xp_world *w, u32 i, int error)
{
	const struct xh_rpc *line = &xh_of(w)->book[i];
	int reject = (int)xh_what->rpc[i].reject;

	if (error == reject && !line->answered)
		xp_fail("RPC %u fails as if its server had rejected it", i);
	if (!xh_all_is_well(w))
		return;
	if (reject && xh_what->no_rejects ? error != HOMA_ETIMEDOUT :
					    error != reject)
		xp_fail("RPC %u fails (%d) although both ends lived all the time",
			i, error);
	/* Of one that is rejected nobody hears but who understands it; it ran all the same. */
	if (line->executed != 1)
		xp_fail("RPC %u fails, and was executed %u times", i,
			line->executed);
}

static void got_outcome(struct xp_world *w, u32 host, u64 id,
			enum homa_event_kind kind, int error, u32 note,
			u64 cookie)
{
	struct xh_rpc *line = xh_book_find(w, host, id);
	u32 i;

	if (!line || line->client_life != w->life[host]) {
		xp_fail("host %u is given the outcome of an RPC that it did not begin",
			host);
		return;
	}
	i = index_of(w, line);
	if (line->state != XH_PENDING)
		xp_fail("RPC %u ends twice", i);
	if (cookie != 7000 + i)
		xp_fail("RPC %u has another's cookie", i);
	if (kind == HOMA_EV_FAILED && line->given_up && error == XH_GIVEN_UP) {
		line->state = XH_ABORTED;
		return;
	}
	if (kind == HOMA_EV_FAILED) {
		line->state = XH_FAILED;
		line->error = error;
		check_failure(w, i, error);
		xp_tell("                   RPC %u fails: %d\n", i, error);
		return;
	}
	if (note != xh_note(i, true))
		xp_fail("RPC %u is given the bytes of another message", i);
	if (xh_what->rpc[i].reject)
		xp_fail("RPC %u is rejected, and its client given a response", i);
	if (!line->executed || !line->answered)
		xp_fail("RPC %u has a response that nobody gave", i);
	line->state = XH_OK;
	xp_tell("                   RPC %u ends\n", i);
}

static void pages_back(struct xp_world *w, u32 host, u32 sock, const u32 *pages,
		       u32 num)
{
	struct xh_host *h = xh_clock(w, host);

	if (num && homa_pool_release(&h->ctx, h->sock[sock], pages, num))
		xp_fail("host %u: pages of a message are not the application's",
			host);
}

void xh_delivered(struct xp_world *w, u32 host, struct homa_handle handle,
		  const struct xh_priv *priv, const struct homa_msg_info *info)
{
	if (info->kind != HOMA_EV_FAILED)
		xh_check_message(w, priv, priv->in, info->length);
	if (info->kind == HOMA_EV_REQUEST)
		got_request(w, host, handle, priv->in, &info->peer);
	else
		got_outcome(w, host, info->id, info->kind, info->error,
			    priv->in, info->cookie);
	if (info->kind != HOMA_EV_FAILED)
		pages_back(w, host, info->kind != HOMA_EV_REQUEST, info->pages,
			   info->num_pages);
}

/* A whole message that the engine has kept. */
void xh_take(struct xp_world *w, u32 host, struct homa_handle handle)
{
	struct xh_host *h = xh_clock(w, host);
	struct homa_rpc *rpc = homa_rpc_hold(&h->ctx, handle.id, NULL);
	struct homa_msg_info info;
	struct xh_priv priv = { 0 };

	if (!rpc)
		rpc = homa_rpc_find_handle(&h->engine->shards[0], handle);
	else
		homa_rpc_release(&h->ctx, rpc);
	if (rpc)
		priv = *(struct xh_priv *)homa_rpc_priv(rpc);
	if (!homa_rx_take(&h->ctx, handle, &info)) /* else it ended meanwhile */
		xh_delivered(w, host, handle, &priv, &info);
}

void xh_message(struct xp_world *w, u32 host, const struct homa_rx_pkt *rx,
		u32 note)
{
	const struct homa_rx_message *m = &rx->message;
	bool request = m->kind == HOMA_EV_REQUEST;
	u32 page = m->page;

	if (request) {
		homa_sock_taken(m->sock, 1);
		got_request(w, host, m->handle, note, rx->src);
	} else {
		got_outcome(w, host, m->handle.id, m->kind, 0, note, m->cookie);
	}
	pages_back(w, host, request ? 0 : 1, &page, 1);
}

void xh_events(struct xp_world *w, u32 host)
{
	struct xh_host *h = xh_clock(w, host);
	struct homa_event ev;

	while (homa_event_next(&h->ctx, &ev)) {
		if (ev.kind == HOMA_EV_GONE)
			continue;
		if ((ev.kind == HOMA_EV_REQUEST || xh_what->untaken) &&
		    h->slow == 1 && h->num_held < XH_HOLD)
			h->held[h->num_held++] =
				(struct xh_held){ ev.handle, 0, 0 };
		else
			xh_take(w, host, ev.handle);
	}
}
