// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Lives of servers, see homa_life.h. A client knows by two ways that no former life of a
 * server ran its request: it was begun for the life that there is now; or that life is
 * older than the first packet of the request, by its own clock and the client's. The
 * answer that says how old was made before it came, so lateness makes the client more
 * careful. Clocks may differ by a 512th.
 */
#include "homa_life.h"
#include "homa_rpc.h"

u32 homa_life_drawn(const struct homa_engine *engine)
{
	u32 life = (u32)engine->seeds.life & HOMA_WIRE_LIFE;

	return !engine->guard_until ? 0 : life ? life : 1;
}

u32 homa_life_up(const struct homa_ctx *ctx)
{
	u64 up = homa_since(ctx->now, ctx->engine->start) >> HOMA_WIRE_UP_SHIFT;

	return (u32)homa_min_u64(up, HOMA_WIRE_UP_MAX);
}

bool homa_life_doubts(const struct homa_ctx *ctx, const struct homa_link *link,
		      const void *data)
{
	const struct homa_engine *engine = ctx->engine;

	if (!engine->guard_until ||
	    (engine->life && homa_wire_life(data) == engine->life))
		return false;
	/* Clients of a slow link wait longer than the engine's default. */
	return ctx->now < engine->guard_until ||
	       (!engine->params.restart_guard_us &&
		ctx->now < engine->start +
				   HOMA_READ_ONCE(link->derived.restart_ns));
}

void homa_life_begin(struct homa_rpc *rpc)
{
	rpc->life = HOMA_READ_ONCE(rpc->peer->life);
}

/* Notes that @rpc, and the next RPCs with its peer, belong to this life of the server. */
static void homa_life_is(struct homa_rpc *rpc, u32 life)
{
	HOMA_WRITE_ONCE(rpc->life, life);
	HOMA_WRITE_ONCE(rpc->peer->life, life);
}

bool homa_life_same(struct homa_rpc *rpc, const void *data)
{
	u32 life = homa_wire_life(data);

	if (likely(life == rpc->life) || !life)
		return true;
	if (rpc->life)
		return false;
	homa_life_is(rpc, life);
	return true;
}

bool homa_life_again(const struct homa_ctx *ctx, struct homa_rpc *rpc,
		     const void *data)
{
	u64 first = HOMA_READ_ONCE(rpc->out.first_at),
	    age = homa_since(ctx->now, first);
	u64 up = (u64)homa_wire_up(data) << HOMA_WIRE_UP_SHIFT;
	u32 life = homa_wire_life(data);

	if (!life || life == rpc->life)
		return true;
	/* If this host slept, a packet that waited meanwhile is older than it looks. */
	if (!homa_out_never_left(&rpc->out) &&
	    (rpc->slept || age + age / 512 >= up)) {
		HOMA_WRITE_ONCE(rpc->peer->life, life);
		return false;
	}
	homa_life_is(rpc, life);
	return true;
}
