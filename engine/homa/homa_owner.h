/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Whose an RPC is, and who may have more. See homa_owner.c.
 */
#ifndef HOMA_OWNER_H
#define HOMA_OWNER_H

#include "homa_rpc.h"

/* Number of RPCs that may still begin in the engine; no lock. */
static inline u32 homa_rpcs_left(const struct homa_engine *engine)
{
	u64 have = HOMA_READ_ONCE(engine->num_rpcs);

	return have < engine->params.max_rpcs ?
		       (u32)(engine->params.max_rpcs - have) :
		       0;
}

/* Counts @requests more that wait for the application of @sock, for the socket and for its
 * owner. */
static inline void homa_backlog_add(struct homa_sock *sock, u64 requests)
{
	homa_counter_add(&sock->backlog, requests);
	homa_counter_add(&sock->owner->backlog, requests);
}

/* Charge an RPC that begins to its socket's owner, and discharge it when it ends. All
 * fields of the RPC are set; shard locked. */
static inline void homa_owner_begin(struct homa_rpc *rpc)
{
	struct homa_sock *sock = rpc->sock;

	homa_counter_add(&sock->owner->rpcs, 1);
	if (homa_rpc_is_client(rpc))
		homa_counter_add(&sock->owner->client_rpcs, 1);
	else
		homa_backlog_add(sock, 1);
}

static inline void homa_owner_end(struct homa_rpc *rpc)
{
	struct homa_sock *sock = rpc->sock;

	homa_counter_add(&sock->owner->rpcs, (u64)-1);
	if (homa_rpc_is_client(rpc))
		homa_counter_add(&sock->owner->client_rpcs, (u64)-1);
	else if (!(rpc->flags & HOMA_RPC_EXECUTED))
		homa_backlog_add(sock, (u64)-1);
}

/* Does the owner of @sock have as many RPCs as it may? */
bool homa_owner_full(const struct homa_engine *engine,
		     const struct homa_sock *sock);
/* Most requests that one peer may have open if the next one is to @sock. */
u32 homa_peer_share(const struct homa_engine *engine,
		    const struct homa_sock *sock);
/* May a request to @sock begin? Returns 0, or the counter (enum homa_metric) of the reason
 * to drop it. */
u16 homa_owner_admit(const struct homa_engine *engine,
		     const struct homa_sock *sock);

#endif
