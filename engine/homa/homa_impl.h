/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What the engine's files ask of each other, by object. Lock order, at most one of each
 * class at a time:
 *
 *	shard -> sock table -> sock -> peer table -> peer -> grant -> link -> once
 *
 * An RPC is found and changed under its shard's lock. The two schedulers see
 * only the parts of an RPC that are theirs: struct homa_out (link lock) and
 * struct homa_grantee (grant lock). Who keeps a pointer to an RPC beyond a
 * lock holds a reference (homa_rpc.refs); the last one to let go retires it.
 *
 * "Read without the lock" at a field means: by HOMA_READ_ONCE(). A "counter" is changed by
 * homa_counter_add(), without any lock.
 */
#ifndef HOMA_IMPL_H
#define HOMA_IMPL_H

#include "homa_core.h"
#include "homa_ctrl.h"
#include "homa_grant.h"
#include "homa_link.h"
#include "homa_once.h"
#include "homa_out.h"
#include "homa_pages.h"
#include "homa_peer.h"
#include "homa_pool.h"
#include "homa_prio.h"
#include "homa_repair.h"
#include "homa_rng.h"
#include "homa_rpc.h"
#include "homa_sock.h"
#include "homa_starve.h"

/* As homa_grant_leave(), but harmless if the message is not in the grant scheduler, which the
 * shortest ones never are. */
static inline void homa_grant_remove(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	if (unlikely(rpc->in.counted))
		homa_grant_leave(ctx, rpc);
}

#endif
