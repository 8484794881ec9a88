// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Messages that are whole in one packet, which most are. Where an application's completion
 * ring and its table of requests have room for a whole batch, such a message is the
 * application's as the engine receives it (homa_sock_deliver_whole()), and its completion
 * is written here and now: there is no event, no waiting in a list, and the RPC is not
 * looked for again. Only with one fast-path thread, for then nobody else can end the RPC
 * or use up the room.
 *
 * homad_next_cqe() and homad_slot_new() stop this before the room may not suffice, and
 * homad_deliver() begins it again.
 */
#include "fast.h"
#include "homad_trace.h"
#include "probes.h"

/* The attachment ends, so it hears of nothing. Its RPCs end with it. */
static bool is_gone(const struct homad_app *app)
{
	return app->phase != HOMAD_APP_OPEN || HOMA_READ_ONCE(app->evicted);
}

static void copy(const struct homad_app *app, const struct homa_rx_pkt *pkt,
		 const u8 *payload)
{
	size_t page = pkt->message.page;

	/* A mistake of the engine must not write outside of the pool. */
	if (likely(page + pkt->length <= app->pool_bytes))
		memcpy(app->pool + page, payload, pkt->length);
}

static void complete(struct homad_app *app, const struct homa_rx_pkt *pkt,
		     const struct homad_rpc *priv)
{
	const struct homa_rx_message *m = &pkt->message;
	struct homa_cqe *cqe = homad_next_cqe(app);

	cqe->kind = m->kind;
	cqe->flags = priv->is_private ? HOMA_CQE_PRIVATE : 0;
	cqe->port = m->peer_port;
	cqe->error = 0;
	cqe->length = pkt->length;
	cqe->num_pages = 1;
	cqe->id = priv->seen_id ? priv->seen_id : m->handle.id;
	cqe->cookie = m->cookie; /* or the deadline */
	cqe->token = priv->token;
	memcpy(cqe->ip, pkt->src->ip, sizeof(cqe->ip));
	cqe->encap = pkt->src->encap;
	cqe->pages[0] = m->page;
	app->counters.delivered++;
	app->counters.rx_bytes += pkt->length;
}

void homad_message(struct homad_thread *t, const struct homad_port *port,
		   const struct homa_rx_pkt *pkt, const u8 *payload)
{
	const struct homa_rx_message *m = &pkt->message;
	struct homad_rpc *priv = homa_rpc_priv(m->rpc);
	struct homad_app *app = *(struct homad_app **)homa_sock_priv(m->sock);
	bool request = m->kind == HOMA_EV_REQUEST;

	t->counters.whole_in++;
	copy(app, pkt, payload);
	if (request) {
		homa_sock_taken(m->sock, 1);
		priv->app = app;
		priv->handle = m->handle;
		app->rpcs++;
	}
	if (unlikely(is_gone(app)))
		return;
	if (request) {
		if (unlikely(!port->nic))
			priv->seen_id = homad_seen_id(t, m->handle.id);
		priv->token = homad_slot_new(app, m->handle);
		app->server_slots[priv->token & 0xffff].port =
			(u8)(port->index + 1);
	}
	complete(app, pkt, priv);
	homad_trace_rpc(t, HOMAD_TRACE_DELIVER, priv, pkt->length, 0);
	HOMAD_PROBE4(deliver, app->id, m->handle.id, pkt->length, 0);
	if (!request) {
		homa_hist_record(&t->rtt, homa_since(t->ctx.now, priv->sent_ns));
		app->client_slots[priv->token & 0xffff].token = 0;
		priv->token = 0;
	}
	homad_touch(t, app, homad_want_of(priv));
}
