/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The loop of a host, as homa_engine.h describes it, with everything that a
 * real one may do late: confirming transmissions, refilling spares, and copying
 * payload (input.c). Every packet that leaves is decoded and compared with the descriptor
 * it was made from.
 */
#include "harness.h"

#include <stdlib.h>
#include <string.h>

#define SPARE_RPCS 4
#define SPARE_PEERS 2
#define SPARE_RANGES 8
/* One poll in so many looks at who has which receive page, and fewer while there are more RPCs,
 * so that the checks cost a run no more than a part of its time. */
#define CHECK_POLLS 256u
#define CHECK_RPCS_PER_POLL 8u

#define USED_MEMORY 6 /* as the state of an RPC: dead (homa_impl.h) */

static void host_refill(struct pair_host *h, bool always)
{
	struct pair_world *w = h->world;
	struct homa_limits *l = &w->limits;

	if (!always && pair_chance(&w->rng_host, w->cfg.starve))
		return;
	while (h->ctx.spare_rpcs < SPARE_RPCS) {
		void *rpc = pair_alloc(h, homa_rpc_size(l), PAIR_MEM_RPC);

		/* As hosts do that use it again: whatever was in it. */
		memset(rpc, USED_MEMORY, homa_rpc_size(l) - l->rpc_priv);
		homa_ctx_give_rpc(&h->ctx, rpc);
	}
	while (h->ctx.spare_peers < SPARE_PEERS)
		homa_ctx_give_peer(&h->ctx, pair_alloc(h, homa_peer_size(l),
						       PAIR_MEM_PEER));
	while (h->ctx.spare_ranges < SPARE_RANGES)
		homa_ctx_give_range(&h->ctx, pair_alloc(h, homa_range_size(),
							PAIR_MEM_RANGE));
	if (!h->ctx.spare_segments)
		homa_ctx_give_segment(&h->ctx, pair_alloc(h, homa_segment_size(),
							  PAIR_MEM_MISC));
}

static void host_retire(struct pair_host *h)
{
	struct homa_rpc *rpc;
	struct homa_peer *peer;

	while ((rpc = homa_retired_rpc(&h->ctx))) {
		pair_priv_retire(homa_rpc_priv(rpc));
		pair_free(h, rpc);
	}
	while ((peer = homa_retired_peer(&h->ctx)))
		pair_free(h, peer);
}

/* ---- payload out ---- */

static void late_done_due(struct pair_host *h, void *arg, bool stale)
{
	if (!stale) {
		h->pins--;
		h->ctx.now = pair_now(h);
		homa_tx_done(&h->ctx, arg, 0);
		pair_poll(h);
	}
	free(arg);
}

static void tx_segment(struct pair_host *h, struct homa_tx_desc *desc, int dst,
		       u32 skip)
{
	struct pair_world *w = h->world;
	u32 payload = desc->rpc ? desc->length - skip : 0;
	u8 hdr[96];
	u32 hdr_len = desc->hdr_len;
	struct pair_pkt *pkt;
	struct homa_packet p;
	struct pair_priv *priv = NULL;
	u32 limit = w->cfg.mtu - (w->cfg.v6 ? 40 : 20) - (w->cfg.encap ? 8 : 0);
	int err;

	if (payload > desc->seg_size && desc->rpc)
		payload = desc->seg_size;
	if (skip)
		hdr_len = homa_tx_segment(desc, skip, hdr);
	else
		memcpy(hdr, desc->hdr, hdr_len);
	pkt = pair_pkt_new(h->index, (u8)dst, desc->prio, hdr_len + payload);
	memcpy(pkt->data, hdr, hdr_len);
	if (w->cfg.no_lives) {
		homa_wire_set_life(pkt->data, 0);
		if (!desc->rpc)
			homa_wire_set_up(pkt->data, 0);
	}
	if (desc->rpc) {
		priv = homa_rpc_priv(desc->rpc);
		pair_check(w,
			   priv->has_out && desc->offset + desc->length <=
						    priv->out_available,
			   "host %u sends %u + %u of %u bytes", h->index,
			   desc->offset, desc->length, priv->out_available);
		pair_pattern(pkt->data + hdr_len, priv->out_key,
			     desc->offset + skip, payload);
	}
	err = homa_packet_decode(&p, pkt->data, pkt->len);
	pair_check(w, !err,
		   "host %u sends a packet that does not decode: %d, type %x",
		   h->index, err, pkt->data[11]);
	pair_check(w, pkt->len <= limit, "host %u sends %u bytes, limit %u",
		   h->index, pkt->len, limit);
	pair_check(w, (p.hdr.type == HOMA_DATA) == (desc->rpc != NULL),
		   "descriptor and header disagree on the type");
	if (desc->rpc) {
		pair_check(w,
			   p.data.offset == desc->offset + skip &&
				   p.data.payload_len == payload &&
				   p.data.length == priv->out_length,
			   "header says %u + %u of %u, descriptor %u + %u of %u",
			   p.data.offset, p.data.payload_len, p.data.length,
			   desc->offset + skip, payload, priv->out_length);
		w->data_bytes += payload;
	}
	pair_net_send(h, pkt);
}

static void tx_desc(struct pair_host *h, struct homa_tx_desc *desc, u32 max_segs)
{
	struct pair_world *w = h->world;
	int dst = pair_host_of(w, &desc->dst);
	u32 skip = 0;

	pair_check(w, dst >= 0 || w->corrupting || w->strangers,
		   "packet to nobody");
	pair_check(w, desc->prio < 8 && desc->hdr_len <= sizeof(desc->hdr),
		   "descriptor: prio %u, header %u", desc->prio, desc->hdr_len);
	if (desc->rpc)
		pair_check(w,
			   desc->length && desc->seg_size &&
				   desc->length <= (u64)desc->seg_size * max_segs,
			   "descriptor: %u bytes in segments of %u, asked for %u",
			   desc->length, desc->seg_size, max_segs);
	if (dst < 0)
		return;
	if (w->device) {
		w->device(h, desc, (u8)dst);
		return;
	}
	do {
		tx_segment(h, desc, dst, skip);
		skip += desc->seg_size;
	} while (desc->rpc && skip < desc->length);
}

static void crash_due(struct pair_host *h, void *arg, bool stale)
{
	(void)arg;
	if (!stale)
		pair_crash(h);
}

/* Gives one descriptor to the device; false: it refused, try again later. */
static bool tx_one(struct pair_host *h, struct homa_tx_desc *desc, u32 segs)
{
	struct pair_world *w = h->world;
	struct homa_tx_desc *late;

	if (pair_chance(&w->rng_host, w->cfg.tx_fail)) {
		w->did[PAIR_DID_TX_FAIL]++;
		homa_tx_done(&h->ctx, desc, -HOMA_EAGAIN);
		return false;
	}
	if (h->no_way) {
		w->did[PAIR_DID_NO_WAY]++;
		homa_tx_done(&h->ctx, desc, -HOMA_EHOSTUNREACH);
		return true;
	}
	tx_desc(h, desc, segs);
	/* The packet leaves, and nobody says so any more. */
	if (pair_dies(h, &h->crash_tx, PAIR_DID_CRASH_TX)) {
		pair_event_add(h, w->now, crash_due, NULL);
		return false;
	}
	if (!w->cfg.done_delay_ns || pair_chance(&w->rng_host, 300)) {
		homa_tx_done(&h->ctx, desc, 0);
		return true;
	}
	late = malloc(sizeof(*late));
	if (!late)
		abort();
	*late = *desc;
	h->pins++;
	pair_event_add(h, w->now + pair_rand(&w->rng_host) % w->cfg.done_delay_ns,
		       late_done_due, late);
	return true;
}

static void wake_due(struct pair_host *h, void *arg, bool stale)
{
	(void)arg;
	if (stale || h->wake_at > h->world->now)
		return;
	h->wake_at = HOMA_NEVER;
	pair_poll(h);
}

static void wake(struct pair_host *h, u64 at)
{
	if (at <= h->world->now)
		at = h->world->now + 1;
	if (at >= h->wake_at)
		return;
	h->wake_at = at;
	pair_event_add(h, at, wake_due, NULL);
}

/* The device has room. What arrives at this very time is served first. */
static void nic_due(struct pair_host *h, void *arg, bool stale)
{
	if (stale)
		return;
	if (!arg)
		pair_event_add(h, h->world->now, nic_due, h);
	else
		pair_poll(h);
}

static void nic_wake(struct pair_host *h, u64 at)
{
	if (at == h->nic_wake_at)
		return;
	h->nic_wake_at = at;
	pair_event_add(h, at, nic_due, NULL);
}

static u64 nic_queued(const struct pair_host *h)
{
	return h->nic_free_at > h->world->now ? h->nic_free_at - h->world->now :
						0;
}

void pair_tx_now(struct pair_host *h, struct homa_tx_desc *desc)
{
	h->world->sent_at_once++;
	if (!tx_one(h, desc, 1))
		wake(h, h->world->now + 10 * PAIR_US);
}

/* How many bytes the device takes while packets of @queued ns wait in it. */
static u64 room_now(const struct pair_host *h, u64 queued)
{
	const struct pair_config *cfg = &h->world->cfg;

	if (h->no_room)
		return 0;
	if (!cfg->rate_mbps)
		return 1u << 20;
	return (cfg->nic_queue_ns - queued) * cfg->rate_mbps / 8000 + cfg->mtu;
}

static void tx_loop(struct pair_host *h)
{
	struct pair_world *w = h->world;
	struct homa_tx_desc desc;
	u32 segs;

	for (;;) {
		u64 queued = nic_queued(h);

		if (w->cfg.rate_mbps && queued > w->cfg.nic_queue_ns) {
			nic_wake(h, h->nic_free_at - w->cfg.nic_queue_ns);
			return;
		}
		h->ctx.now = pair_now(h);
		if (w->cfg.by_room)
			homa_link_room(h->link, room_now(h, queued));
		segs = 1 + pair_below(&w->rng_host, w->cfg.max_segs);
		memset(&desc, 0xa5, sizeof(desc));
		switch (homa_tx(&h->ctx, h->link, segs, &desc)) {
		case HOMA_TX_IDLE:
			return;
		case HOMA_TX_WAIT:
			pair_check(w, desc.not_before > pair_now(h),
				   "host %u: wait until now", h->index);
			wake(h, pair_when(h, desc.not_before));
			return;
		case HOMA_TX_PACKET:
			break;
		default:
			pair_fail(w, "bad homa_tx result");
		}
		if (!tx_one(h, &desc, segs)) {
			wake(h, w->now + 10 * PAIR_US);
			return;
		}
		host_retire(h);
	}
}

static void timers(struct pair_host *h)
{
	struct pair_world *w = h->world;
	u64 now = pair_now(h) - w->cfg.timer_behind_ns;
	struct homa_counts counts;
	u32 i;

	homa_engine_counts(h->engine, &counts);
	for (i = 0; i < w->cfg.shards; i++) {
		/* Work may have made an earlier deadline than was known. */
		if (h->deadline[i] > pair_now(h) + PAIR_MS && counts.rpcs)
			h->deadline[i] = pair_now(h) + PAIR_MS;
		if (h->deadline[i] <= now) {
			h->ctx.now = now;
			h->deadline[i] =
				homa_timer(&h->ctx, i, w->cfg.timer_budget);
			pair_check(w, h->deadline[i] >= now,
				   "host %u: next deadline has passed", h->index);
		}
		if (h->deadline[i] != HOMA_NEVER)
			wake(h, pair_when(h, h->deadline[i] +
						     w->cfg.timer_behind_ns));
	}
}

void pair_poll(struct pair_host *h)
{
	if (h->polling || !h->up || h->crashed)
		return;
	h->polling = true;
	h->ctx.now = pair_now(h);
	homa_rx_flush(&h->ctx);
	pair_app_events(h);
	timers(h);
	h->ctx.now = pair_now(h);
	homa_rx_flush(&h->ctx);
	pair_app_events(h);
	tx_loop(h);
	host_retire(h);
	host_refill(h, h->ctx.spare_rpcs == 0 && !h->world->cfg.starve);
	if (++h->polls >= h->check_polls) {
		u32 rpcs = pair_check_pages(h, false);

		h->check_polls =
			h->polls +
			homa_max_u32(CHECK_POLLS, rpcs / CHECK_RPCS_PER_POLL);
	}
	h->polling = false;
}
