/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * How long clients wait, as they tell their servers: for some RPCs of each world a time is
 * drawn, and what a server's application sees must be neither earlier than what was meant
 * nor about another RPC. It may be later, by what the request was on its way.
 */
#include "harness.h"

/* Without drawing from what else is drawn from, so that all else stays as it is. */
static u64 draw_within(const struct pair_world *w, u32 index)
{
	u64 mix = pair_mix(w->cfg.seed + index + 0x77697468696e);

	if (mix % 1000 >= w->cfg.within)
		return 0;
	mix = pair_mix(mix);
	return 1 + (mix >> 8) % (1ull << (mix % 40));
}

u64 pair_within(struct pair_host *client, struct pair_rpc *rpc)
{
	struct pair_world *w = client->world;

	rpc->within = w->within ? w->within : draw_within(w, rpc->index);
	return rpc->within ? pair_now(client) + rpc->within : 0;
}

void pair_within_heard(struct pair_host *server, struct pair_rpc *rpc,
		       u64 deadline)
{
	struct pair_world *w = server->world;

	rpc->heard = deadline;
	if (w->corrupting || !pair_judged(w, rpc) || !deadline)
		return;
	pair_check(w, rpc->within,
		   "rpc %u: a deadline that its client did not give", rpc->index);
	if (server->clock.on || w->hosts[rpc->client].clock.on)
		return;
	pair_check(w,
		   deadline + w->cfg.timer_behind_ns >= rpc->start + rpc->within,
		   "rpc %u: the server believes in an end that is %llu ns too early",
		   rpc->index,
		   (unsigned long long)(rpc->start + rpc->within - deadline));
}
