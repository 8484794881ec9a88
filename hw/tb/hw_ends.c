// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Two hosts with engines, whose network is the hardware under test.
 */
#include "hw_ends.h"

#include <stdlib.h>
#include <string.h>

#include "harness.h"

/* DATA with all its segments in one, or a control packet, that a host has handed to its
 * device. */
struct hw_queued {
	struct hw_queued *next;
	struct hw_out head;
	u8 bytes[];
};

struct hw_ends {
	struct pair_world *world;
	struct hw_queued *first, **last;
};

static void device(struct pair_host *h, const struct homa_tx_desc *desc, u8 dst)
{
	struct hw_ends *ends = h->world->user;
	u32 payload = desc->rpc ? desc->length : 0;
	struct hw_queued *out = malloc(sizeof(*out) + desc->hdr_len + payload);

	if (!out)
		abort();
	out->next = NULL;
	out->head = (struct hw_out){ .src = h->index,
				     .dst = dst,
				     .prio = desc->prio,
				     .data = desc->rpc != NULL,
				     .seg = desc->rpc ? desc->seg_size : 0,
				     .length = desc->hdr_len + payload };
	memcpy(out->bytes, desc->hdr, desc->hdr_len);
	if (desc->rpc) {
		struct pair_priv *priv = homa_rpc_priv(desc->rpc);

		pair_pattern(out->bytes + desc->hdr_len, priv->out_key,
			     desc->offset, payload);
	}
	*ends->last = out;
	ends->last = &out->next;
}

struct hw_ends *hw_ends_new(uint64_t seed, uint32_t rate_mbps, uint32_t mtu,
			    bool v6, uint32_t encap)
{
	struct hw_ends *ends = calloc(1, sizeof(*ends));
	struct pair_config cfg;

	if (!ends)
		abort();
	pair_config_default(&cfg);
	cfg.seed = seed;
	cfg.rate_mbps = rate_mbps;
	cfg.mtu = mtu;
	cfg.v6 = v6;
	cfg.encap = (u16)encap;
	cfg.max_segs = 45;
	ends->last = &ends->first;
	ends->world = pair_world_new(&cfg);
	ends->world->user = ends;
	ends->world->device = device;
	return ends;
}

int hw_ends_start(struct hw_ends *ends, uint32_t client, uint32_t request,
		  uint32_t response)
{
	int err = 0;

	pair_rpc_start(ends->world, client & 1, 1, ~client & 1,
		       PAIR_SERVER_PORT, request, response, &err);
	return err;
}

bool hw_ends_quiet(struct hw_ends *ends)
{
	return pair_quiet(ends->world);
}

uint32_t hw_ends_answered(struct hw_ends *ends)
{
	return pair_count_state(ends->world, PAIR_OK);
}

void hw_ends_run(struct hw_ends *ends, uint64_t now)
{
	pair_run(ends->world, now);
}

uint64_t hw_ends_now(struct hw_ends *ends)
{
	return ends->world->now;
}

uint64_t hw_ends_next(struct hw_ends *ends)
{
	return ends->world->heap_len ? ends->world->heap[0].at : HOMA_NEVER;
}

void hw_ends_queued(struct hw_ends *ends, uint32_t host, uint64_t bytes)
{
	struct pair_world *w = ends->world;

	w->hosts[host & 1].nic_free_at = w->now + bytes * 8000 / w->cfg.rate_mbps;
}

bool hw_ends_get(struct hw_ends *ends, struct hw_out *out, void *buf)
{
	struct hw_queued *first = ends->first;

	if (!first)
		return false;
	ends->first = first->next;
	if (!ends->first)
		ends->last = &ends->first;
	*out = first->head;
	memcpy(buf, first->bytes, first->head.length);
	free(first);
	return true;
}

void hw_ends_put(struct hw_ends *ends, uint32_t src, uint32_t dst,
		 uint32_t prio, const void *packet, uint32_t length)
{
	struct pair_world *w = ends->world;
	struct pair_pkt *pkt = pair_pkt_new(src & 1, dst & 1, (u8)prio, length);

	memcpy(pkt->data, packet, length);
	pkt->born = w->now;
	pkt->born_clock = pair_now(&w->hosts[dst & 1]);
	pair_net_deliver(w, pkt);
}

uint64_t hw_ends_again(struct hw_ends *ends)
{
	return pair_metric(ends->world, HOMA_M_tx_retransmits);
}

void hw_ends_finish(struct hw_ends *ends)
{
	ends->world->device = NULL;
	pair_finish(ends->world);
	free(ends);
}
