// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Messages of one packet that leave with the call that begins them, which most messages
 * are. Where nothing waits on the link, its scheduler would choose such a message at once:
 * so it need not know of it, and no lock of the link is taken. What a message
 * needs only to be queued - the header that its packets have in common - is not made until it
 * has to be sent again (homa_out_queue()).
 */
#include "homa_out_impl.h"

HOMA_RARE void homa_tx_left(const struct homa_ctx *ctx,
			    const struct homa_rpc *rpc, u8 *hdr)
{
	u64 deadline = rpc->birth + ((u64)rpc->within << HOMA_LEFT_SHIFT);

	homa_wire_set_left(hdr, homa_left_code(homa_since(deadline, ctx->now)));
}

/* Counts the packet of @out on the link's clock, if it may go now. Without the lock: it may not
 * if somebody else counts one at the same moment. */
static HOMA_HOT bool homa_out_claim(struct homa_link *link,
				    const struct homa_rpc *rpc, u64 now)
{
	const struct homa_sched *sched = &link->sched;

	if (unlikely(HOMA_READ_ONCE(sched->turns.quantum[HOMA_TURN_OWN])))
		return false;
	if (!HOMA_READ_ONCE(sched->ps_per_byte))
		return true;
	return homa_sched_claim(&link->sched, now,
				rpc->out.length +
					homa_cable_bytes(&rpc->peer->addr,
							 HOMA_DATA_HDR));
}

/* Does the same with the lock. */
static HOMA_RARE bool homa_out_claim_locked(struct homa_link *link,
					    const struct homa_rpc *rpc, u64 now)
{
	const struct homa_out *out = &rpc->out;
	u64 later;
	bool ok;

	homa_lock(&link->lock);
	ok = link->open && homa_out_ready(link, out, now, &later);
	if (ok)
		homa_sched_charge(&link->sched, now,
				  out->length + homa_cable_bytes(&rpc->peer->addr,
								 HOMA_DATA_HDR));
	homa_unlock(&link->lock);
	return ok;
}

/* Writes the DATA header of the message's only packet. */
static HOMA_HOT void homa_out_only_header(const struct homa_ctx *ctx,
					  struct homa_rpc *rpc, u8 *hdr)
{
	struct homa_wire_data *w = (struct homa_wire_data *)hdr;
	const bool asks = homa_rpc_is_client(rpc);

	homa_out_begin(ctx->engine, rpc, hdr);
	homa_put_be16(&w->cutoff_version,
		      HOMA_READ_ONCE(rpc->peer->cutoff_version));
	if (asks) {
		w->ext |= HOMA_EXT_REJECT;
		if (unlikely(rpc->within))
			homa_tx_left(ctx, rpc, hdr);
	}
	if (rpc->out.ack.client_id)
		homa_data_set_ack(hdr, &rpc->out.ack);
}

HOMA_HOT bool homa_out_at_once(struct homa_ctx *ctx, struct homa_rpc *rpc,
			       struct homa_tx_desc *desc)
{
	struct homa_link *link = rpc->link;
	struct homa_out *out = &rpc->out;

	if (!HOMA_READ_ONCE(link->open) ||
	    (!homa_out_claim(link, rpc, ctx->now) &&
	     !homa_out_claim_locked(link, rpc, ctx->now)))
		return false;
	out->active = 1;
	out->send.overhead = 0;
	HOMA_WRITE_ONCE(out->first_at, ctx->now);
	HOMA_WRITE_ONCE(out->next, out->length);
	homa_out_only_header(ctx, rpc, desc->hdr);
	desc->hdr_len = HOMA_DATA_HDR;
	desc->dst = rpc->peer->addr;
	desc->retransmit = false;
	desc->more = false;
	desc->offset = 0;
	desc->length = out->length;
	desc->seg_size = out->send.packet;
	desc->prio = out->unsched_prio;
	desc->rpc = rpc;
	desc->link = link;
	homa_ref_get(&rpc->refs);
	homa_count(ctx, HOMA_M_tx_data, 1);
	homa_count(ctx, HOMA_M_tx_bytes, out->length);
	return true;
}
