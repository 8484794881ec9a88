/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * At most once, as docs/protocol.md promises it and no more: a request that was given
 * to an application is not given to one again by a packet that was up to tombstone_ms
 * on its way; after a server's restart, not by one that says for which life it is, nor by
 * one that was sent again (and came within restart_guard_us, if nobody speaks of lives).
 * Time is that of the server's clock, for it has no other. So each packet of a request
 * that ran already is looked at when it reaches the server, and the book remembers whether
 * one of them was later than that. A second execution without such a packet is the
 * engine's fault.
 *
 * Where nobody speaks of lives, clients count from the last sign of the server, and its
 * guard is longer than they go on by a quarter of the timeout: a sign of its former life
 * and a packet that is sent again may be late by that together.
 */
#include "harness.h"
#include "homa_impl.h"

/* What a server's former life said of one of @h's requests arrives. */
static void sign_arrived(struct pair_host *h, const struct pair_pkt *pkt,
			 u64 client_id)
{
	struct pair_rpc *rpc =
		pair_book_find(h->world, (u8)(h - h->world->hosts), client_id);

	if (rpc && pkt->born <= h->world->hosts[pkt->src].born)
		rpc->sign_late =
			homa_max_u64(rpc->sign_late, h->world->now - pkt->born);
}

void pair_once_arrived(struct pair_host *h, const struct pair_pkt *pkt)
{
	const struct homa_params *params = homa_engine_params(h->engine);
	u64 now = pair_now(h), trusts;
	struct pair_rpc *rpc;
	struct homa_packet p;

	if (pkt->stranger || pkt->len < 12 ||
	    homa_packet_decode(&p, pkt->data, pkt->len))
		return;
	if (p.hdr.sender_id & 1)
		sign_arrived(h, pkt, p.hdr.sender_id ^ 1);
	if (p.hdr.type != HOMA_DATA || p.hdr.sender_id & 1)
		return;
	rpc = pair_book_find(h->world, pkt->src, p.hdr.sender_id);
	if (!rpc || !rpc->executed)
		return;
	if (now - pkt->born_clock > params->tombstone_ms * PAIR_MS)
		rpc->may |= PAIR_MAY_LATE;
	trusts = h->engine->guard_until;
	if (!params->restart_guard_us)
		trusts = homa_max_u64(trusts,
				      h->engine->start +
					      h->link->derived.restart_ns);
	/* Who says for which life it is cannot be taken for a new one by another. */
	if (homa_wire_life(pkt->data))
		return;
	if (!p.data.retransmit && rpc->server_life != h->life &&
	    pkt->born <= h->born)
		rpc->may |= PAIR_MAY_COPY;
	/* Late: it was sent before the server trusted anybody, and came after. */
	if (h->world->cfg.no_lives && p.data.retransmit &&
	    rpc->server_life != h->life && now >= trusts &&
	    (pkt->born_clock < trusts ||
	     h->world->now - pkt->born + rpc->sign_late >
		     h->link->derived.timeout_ns / 4))
		rpc->may |= PAIR_MAY_GUARD;
}

void pair_once_executed(struct pair_host *h, struct pair_rpc *rpc)
{
	struct pair_world *w = h->world;

	rpc->executed_at = w->now;
	if (++rpc->executed > 1 && pair_judged(w, rpc)) {
		if (rpc->server_leaps != h->clock.leaps)
			rpc->may |= PAIR_MAY_LEAP;
		pair_check(w, rpc->may || w->corrupting,
			   "rpc %u (id %llx) executed twice", rpc->index,
			   (unsigned long long)rpc->handle.id);
		w->did[PAIR_DID_AGAIN]++;
	}
	rpc->server_leaps = h->clock.leaps;
	rpc->server_life = h->life;
}
