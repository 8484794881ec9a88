// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The end of a call or of a batch: what calls have left in the context because they held
 * a lock is done here, where none is held. Messages that wait get pages, grants that are
 * due are made, and control packets move to their link.
 */
#include "homa_impl.h"

static HOMA_RARE void homa_hungry_feed(struct homa_ctx *ctx)
{
	struct homa_sock *sock = ctx->hungry;

	ctx->hungry = NULL;
	homa_sock_feed(ctx, sock);
	homa_sock_put(sock);
}

HOMA_HOT void homa_rx_flush(struct homa_ctx *ctx)
{
	struct homa_link *link;

	if (unlikely(ctx->hungry))
		homa_hungry_feed(ctx);
	link = ctx->grant_link;
	if (link) {
		ctx->grant_link = NULL;
		homa_grant_run(ctx, link);
	}
	if (ctx->num_ctrl)
		homa_ctrl_flush(ctx);
}

/* ---- pages that applications give back ---- */

void homa_pool_feed(struct homa_ctx *ctx, struct homa_sock *sock)
{
	homa_sock_feed(ctx, sock);
	homa_rx_flush(ctx);
}

u32 homa_pool_back(struct homa_ctx *ctx, struct homa_sock *sock, u32 pages)
{
	u32 before, now;

	homa_lock(&sock->lock);
	before = sock->pool->num_backed;
	now = homa_pool_limit(sock->pool, pages);
	homa_unlock(&sock->lock);
	if (now > before)
		homa_pool_feed(ctx, sock);
	return now;
}

int homa_pool_release(struct homa_ctx *ctx, struct homa_sock *sock,
		      const u32 *pages, u32 num)
{
	int rc = homa_pool_return(sock, pages, num);

	if (rc <= 0)
		return rc;
	homa_pool_feed(ctx, sock);
	return 0;
}
