// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/* See homa_grant_quiet.h. */
#include "homa_grant_quiet.h"

u32 homa_grant_quiet(const struct homa_ctx *ctx,
		     const struct homa_grants *grants, u32 most)
{
	u64 quiet_ns = ctx->engine->params.quiet_us * 1000ull;
	u64 sum = 0;
	u32 i;

	if (likely(!quiet_ns))
		return 0;
	for (i = 0; i < grants->num_active; i++) {
		const struct homa_rpc *rpc = grants->active[i];
		u32 received = HOMA_READ_ONCE(rpc->in.received);
		u64 since = HOMA_READ_ONCE(rpc->peer->active_at);

		if (rpc->in.granted > received &&
		    homa_since(ctx->now, since) > quiet_ns)
			sum += rpc->in.granted - received;
	}
	return (u32)homa_min_u64(sum, most);
}
