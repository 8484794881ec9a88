/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the engine does with a caller's context: it counts, notes which links have work,
 * and takes spare memory. struct homa_ctx itself is in homa_types.h.
 */
#ifndef HOMA_CTX_H
#define HOMA_CTX_H

#include "homa_engine.h"
#include "homa_table.h"

/* Bytes of a spare range, whatever it is used for. */
#define HOMA_RECORD_SIZE 64u

static inline void homa_count(struct homa_ctx *ctx, enum homa_metric metric, u64 n)
{
	ctx->metrics[metric] += n;
}

/* @link has something to send. */
static inline void homa_tx_wanted(struct homa_ctx *ctx, struct homa_link *link)
{
	if (ctx->tx_link && ctx->tx_link != link)
		ctx->tx_more = true;
	ctx->tx_link = link;
}

/* A table that is full gets more buckets if the context has some; its lock held. */
HOMA_RARE void homa_ctx_grow(struct homa_ctx *ctx, struct homa_table *table,
			     u32 (*hash_of)(const struct homa_list *node));

#endif
