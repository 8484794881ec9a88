// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * See hw_grant.h. RPCs and peers are plain arrays, and no packet is decoded: what is asked is
 * homa_grant.c and homa_grant_queue.c.
 */
#include "hw_grant.h"

#include <stdlib.h>
#include <string.h>

#include "homa_impl.h"

#define HW_NUM 2048u
#define HW_CTRL 4096u
/* IP and DATA headers of a packet over IPv4. */
#define HW_HEADERS 76u
#define HW_MBPS 100000u

struct hw_grants {
	struct homa_engine *engine;
	struct homa_link *link;
	struct homa_shard shard;
	struct homa_sock sock;
	struct homa_ctx ctx;
	struct homa_peer peers[HW_NUM];
	struct homa_rpc rpcs[HW_NUM];
};

struct hw_grants *hw_grants_new(uint32_t rtt, uint32_t seg, uint32_t overcommit,
				uint32_t priorities, uint32_t unsched,
				struct hw_grant_settings *out)
{
	struct hw_grants *g = calloc(1, sizeof(*g));
	struct homa_params *params;
	u32 i;

	if (!g)
		abort();
	g->engine = calloc(1, sizeof(*g->engine));
	g->link = calloc(1, homa_link_size(HW_CTRL));
	if (!g->engine || !g->link)
		abort();
	params = &g->engine->params;
	homa_params_sigcomm(params);
	params->max_incoming = 0x7fffffff;
	params->unsched_bytes = rtt;
	params->max_overcommit = overcommit;
	params->num_priorities = priorities;
	params->unsched_levels = unsched;
	homa_prio_init(g->engine);
	homa_link_init(g->link, g->engine, HW_MBPS, seg + HW_HEADERS, HW_CTRL);
	homa_lock_init(&g->shard.lock, HOMA_LOCK_SHARD);
	homa_ctx_init(&g->ctx, g->engine, 0);
	g->ctx.now = 1000000000;
	for (i = 0; i < HW_NUM; i++) {
		struct homa_peer *peer = &g->peers[i];

		peer->addr.ip[10] = 0xff;
		peer->addr.ip[11] = 0xff;
		peer->addr.ip[14] = (u8)(i >> 8);
		peer->addr.ip[15] = (u8)i;
		peer->mtu_seg = (u16)seg;
		homa_lock_init(&peer->lock, HOMA_LOCK_PEER);
		homa_ref_init(&peer->refs, 1);
		homa_heap_init(&peer->waiting);
		homa_heap_node_init(&peer->grant_node);
	}
	/* A run with nothing to do would not measure. */
	hw_grants_announce(g, 0, 0, 1000000, 0);
	hw_grants_end(g, 0);
	while (hw_grants_next(g, &i, &i, &i))
		;
	out->step = g->link->grants.step;
	out->levels = g->engine->prio.sched_levels;
	memcpy(out->cutoffs, g->engine->prio.cutoffs, sizeof(out->cutoffs));
	return g;
}

void hw_grants_free(struct hw_grants *g)
{
	free(g->link);
	free(g->engine);
	free(g);
}

/* What a host does at the end of a batch. */
static void flush(struct hw_grants *g)
{
	if (g->ctx.grant_link)
		homa_grant_run(&g->ctx, g->link);
	homa_ctrl_flush(&g->ctx);
}

void hw_grants_announce(struct hw_grants *g, uint32_t id, uint32_t peer,
			uint32_t length, uint32_t unsched)
{
	struct homa_rpc *rpc = &g->rpcs[id % HW_NUM];

	memset(rpc, 0, sizeof(*rpc));
	rpc->id = id;
	rpc->peer = &g->peers[peer % HW_NUM];
	rpc->link = g->link;
	rpc->shard = &g->shard;
	rpc->sock = &g->sock;
	rpc->birth = g->ctx.now;
	homa_ref_init(&rpc->refs, 1);
	homa_heap_node_init(&rpc->in.node);
	homa_list_init(&rpc->in.age);
	homa_sendable_init(&rpc->out.send);
	rpc->in.length = length;
	rpc->in.granted = homa_min_u32(unsched, length);
	homa_grant_add(&g->ctx, rpc);
	flush(g);
}

void hw_grants_data(struct hw_grants *g, uint32_t id, uint32_t bytes)
{
	struct homa_rpc *rpc = &g->rpcs[id % HW_NUM];

	homa_grant_received(&g->ctx, rpc, bytes);
	if (rpc->in.received == rpc->in.length)
		homa_grant_remove(&g->ctx, rpc);
	flush(g);
}

void hw_grants_end(struct hw_grants *g, uint32_t id)
{
	homa_grant_remove(&g->ctx, &g->rpcs[id % HW_NUM]);
	flush(g);
}

bool hw_grants_next(struct hw_grants *g, uint32_t *id, uint32_t *offset,
		    uint32_t *level)
{
	struct homa_link *link = g->link;
	const struct homa_ctrl *ctrl;

	if (link->ctrl_head == link->ctrl_tail)
		return false;
	ctrl = &link->ctrl[link->ctrl_head++ & link->ctrl_mask];
	*id = (u32)ctrl->sender_id;
	*offset = ctrl->offset;
	*level = ctrl->priority;
	return true;
}

uint32_t hw_grants_waiting(const struct hw_grants *g)
{
	return g->link->grants.num_waiting;
}

uint32_t hw_grants_granting(const struct hw_grants *g)
{
	return g->link->grants.num_active;
}
