/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * How applications hand in the bytes of what they send: all at once, or bit by bit.
 */
#include "harness.h"

#include <stdlib.h>

/* Bytes handed in bit by bit; @priv: the RPC's, NULL once it is retired. */
struct pair_supply {
	struct homa_handle handle;
	struct pair_priv *priv;
	u32 available, length;
};

static void supply_end(struct pair_supply *s)
{
	if (s->priv)
		s->priv->supply = NULL;
	free(s);
}

void pair_priv_retire(struct pair_priv *priv)
{
	free(priv->in);
	if (priv->supply)
		priv->supply->priv = NULL;
}

static u64 supply_at(struct pair_world *w)
{
	return w->now + (w->cfg.supply_ns ? w->cfg.supply_ns :
					    pair_below(&w->rng_app, 20000));
}

static void supply_due(struct pair_host *h, void *arg, bool stale)
{
	struct pair_world *w = h->world;
	struct pair_supply *s = arg;

	if (stale) {
		free(s);
		return;
	}
	s->available += w->cfg.supply_step;
	if (s->available > s->length)
		s->available = s->length;
	if (s->priv)
		s->priv->out_available = s->available;
	h->ctx.now = pair_now(h);
	homa_msg_supply(&h->ctx, s->handle, s->available);
	pair_poll(h);
	if (s->available < s->length)
		pair_event_add(h, supply_at(w), supply_due, s);
	else
		supply_end(s);
}

u32 pair_first_supply(struct pair_world *w, u32 length)
{
	u32 step = w->cfg.supply_step;

	return step && step < length ? pair_below(&w->rng_app, 2) * step : length;
}

void pair_set_out(struct pair_host *h, struct homa_rpc *rpc,
		  struct homa_handle handle, u64 key, u32 length, u32 available)
{
	struct pair_priv *priv = homa_rpc_priv(rpc);
	struct pair_supply *s;

	priv->has_out = true;
	priv->out_key = key;
	priv->out_length = length;
	priv->out_available = available;
	if (available == length)
		return;
	s = malloc(sizeof(*s));
	if (!s)
		abort();
	*s = (struct pair_supply){ handle, priv, available, length };
	priv->supply = s;
	pair_event_add(h, h->world->now, supply_due, s);
}
