/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * An engine with one link and nothing else, for tests of one scheduler: RPCs
 * and peers are plain arrays that the test fills in, no packet is decoded. What
 * the scheduler wants to say comes out of the link's ring of control packets.
 */
#ifndef HOMA_ENGINE_WORLD_H
#define HOMA_ENGINE_WORLD_H

#include "unit.h"

#include "homa_impl.h"

#define WORLD_CTRL 4096u

struct world {
	struct homa_engine *engine;
	struct homa_link *link;
	struct homa_shard shard;
	struct homa_sock sock;
	struct homa_ctx ctx;
};

/* All settings at their defaults; time begins at one second. */
static inline void world_init(struct world *w, u32 rate_mbps, u32 mtu)
{
	memset(w, 0, sizeof(*w));
	w->engine = calloc(1, sizeof(*w->engine));
	w->link = calloc(1, homa_link_size(WORLD_CTRL));
	assert_non_null(w->engine);
	assert_non_null(w->link);
	homa_params_default(&w->engine->params);
	homa_prio_init(w->engine);
	homa_link_init(w->link, w->engine, rate_mbps, mtu, WORLD_CTRL);
	homa_lock_init(&w->shard.lock, HOMA_LOCK_SHARD);
	homa_ctx_init(&w->ctx, w->engine, 0);
	w->ctx.now = 1000000000;
}

static inline void world_free(struct world *w)
{
	free(w->link);
	free(w->engine);
}

static inline void world_peer(struct homa_peer *peer, u32 index, u32 seg_size)
{
	memset(peer, 0, sizeof(*peer));
	peer->addr.ip[10] = 0xff;
	peer->addr.ip[11] = 0xff;
	peer->addr.ip[15] = (u8)(index + 1);
	peer->mtu_seg = (u16)seg_size;
	homa_lock_init(&peer->lock, HOMA_LOCK_PEER);
	homa_ref_init(&peer->refs, 1);
	homa_heap_init(&peer->waiting);
	homa_heap_node_init(&peer->grant_node);
}

static inline void world_rpc(struct world *w, struct homa_rpc *rpc,
			     struct homa_peer *peer, u64 id)
{
	memset(rpc, 0, sizeof(*rpc));
	rpc->id = id;
	rpc->peer = peer;
	rpc->link = w->link;
	rpc->shard = &w->shard;
	rpc->sock = &w->sock;
	rpc->birth = w->ctx.now;
	homa_ref_init(&rpc->refs, 1);
	homa_heap_node_init(&rpc->in.node);
	homa_list_init(&rpc->in.age);
	homa_sendable_init(&rpc->out.send);
}

/* The next control packet on the link, in the order they were made, or NULL. */
static inline const struct homa_ctrl *world_ctrl(struct world *w)
{
	struct homa_link *link = w->link;

	homa_ctrl_flush(&w->ctx);
	if (link->ctrl_head == link->ctrl_tail)
		return NULL;
	return &link->ctrl[link->ctrl_head++ & link->ctrl_mask];
}

#endif
