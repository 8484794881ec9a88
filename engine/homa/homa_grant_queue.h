/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Which incoming messages are active, i.e. being granted to. The set is defined
 * by: until max_overcommit slots are filled, choose among the messages not yet
 * chosen that need grants the one with the smallest
 *
 *	(slots its peer has by now, bytes not yet received, birth).
 *
 * So each peer gets one slot before any gets a second: a sender that is slow or
 * busy elsewhere cannot hold more than its share of the slots. All functions
 * want the grant lock; @max is max_overcommit, at most HOMA_MAX_ACTIVE.
 */
#ifndef HOMA_GRANT_QUEUE_H
#define HOMA_GRANT_QUEUE_H

#include "homa_rpc.h"

/** homa_grant_queue_add() - a message that needs grants joins, as the youngest */
void homa_grant_queue_add(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 max);

/** homa_grant_queue_remove() - a waiting or active message leaves */
void homa_grant_queue_remove(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 max);

/** homa_grant_queue_update() - bytes of a waiting message arrived; did the set change? */
bool homa_grant_queue_update(struct homa_ctx *ctx, struct homa_rpc *rpc, u32 max);

/** homa_grant_queue_settle() - fit the set to @max, which may have changed */
void homa_grant_queue_settle(struct homa_ctx *ctx, struct homa_grants *grants,
			     u32 max);

/** homa_grant_queue_sort() - order the active messages by rank */
void homa_grant_queue_sort(struct homa_grants *grants);

/** homa_grant_queue_retire() - active messages that are wholly granted leave */
void homa_grant_queue_retire(struct homa_ctx *ctx, struct homa_grants *grants,
			     u32 max);

/** homa_grant_queue_oldest() - first to have joined; there must be one */
struct homa_rpc *homa_grant_queue_oldest(struct homa_grants *grants);

#endif
