// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What is due now and then, whoever passes by: idle peers are collected, memory of old
 * requests expires, priorities follow the traffic.
 */
#include "homa_impl.h"

#define HOMA_MAINTAIN_NS 100000000u

void homa_maintain(struct homa_ctx *ctx, struct homa_link *link)
{
	struct homa_engine *engine = ctx->engine;

	HOMA_WRITE_ONCE(engine->maintain_at, ctx->now + HOMA_MAINTAIN_NS);
	homa_peer_collect(ctx, 16);
	homa_once_collect(ctx, 64);
	homa_prio_recompute(ctx, link);
}
