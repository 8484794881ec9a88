// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What a message sends again, before anything new: ranges that its receiver misses or
 * that the device refused. They are kept in spare records, as many as a receiver asks
 * for at a time, so that one question repairs whatever was lost. What finds no record
 * is forgotten: it will be asked for again.
 */
#include "homa_impl.h"

/* Number of message bytes for each of which there may be one more range to send again. */
#define HOMA_RTX_STRIDE 512u

/* ---- the list; link locked ---- */

static void homa_rtx_free(struct homa_ctx *ctx, struct homa_rtx *rtx)
{
	struct homa_range *record = (struct homa_range *)rtx;

	record->next = ctx->spare_range;
	ctx->spare_range = record;
	ctx->spare_ranges++;
}

static struct homa_rtx *homa_rtx_new(struct homa_ctx *ctx)
{
	struct homa_range *record = ctx->spare_range;

	if (record) {
		ctx->spare_range = record->next;
		ctx->spare_ranges--;
	}
	return (struct homa_rtx *)record;
}

/* Returns the most ranges of the message that are kept. Packets are not so short that it
 * could lack more. */
static u32 homa_rtx_most(const struct homa_out *out)
{
	return homa_min_u32(HOMA_OUT_RTX, 2 + out->next / HOMA_RTX_STRIDE);
}

/* Puts a range behind the others, joined with all that it touches, at the highest of their
 * levels. */
static void homa_rtx_add(struct homa_ctx *ctx, struct homa_out *out, u32 start,
			 u32 end, u8 prio)
{
	struct homa_rtx **link = &out->rtx, *r;
	u32 n = out->num_rtx;

	while ((r = *link)) {
		if (start > r->end || end < r->start) {
			link = &r->next;
			continue;
		}
		start = homa_min_u32(r->start, start);
		end = homa_max_u32(r->end, end);
		prio = prio > r->prio ? prio : r->prio;
		*link = r->next;
		homa_rtx_free(ctx, r);
		n--;
	}
	if (n < homa_rtx_most(out))
		r = homa_rtx_new(ctx);
	if (r) {
		r->next = NULL;
		r->start = start;
		r->end = end;
		r->prio = prio;
		*link = r;
		n++;
	}
	HOMA_WRITE_ONCE(out->num_rtx, (u8)n);
}

void homa_rtx_clear(struct homa_ctx *ctx, struct homa_out *out)
{
	struct homa_rtx *r;

	while ((r = out->rtx)) {
		out->rtx = r->next;
		homa_rtx_free(ctx, r);
	}
	HOMA_WRITE_ONCE(out->num_rtx, 0);
}

void homa_rtx_take(struct homa_ctx *ctx, struct homa_out *out, u32 room,
		   struct homa_tx_desc *desc)
{
	struct homa_rtx *r = out->rtx;

	/* If the message has never left, the peer has not executed it, so this is no
	 * retransmission. */
	desc->retransmit = !homa_out_never_left(out);
	out->resent |= desc->retransmit;
	desc->prio = r->prio;
	desc->offset = r->start;
	desc->length = homa_min_u32(r->end - r->start, room);
	HOMA_WRITE_ONCE(out->unsent,
			out->unsent - homa_min_u32(out->unsent, desc->length));
	r->start += desc->length;
	if (r->start < r->end)
		return;
	out->rtx = r->next;
	homa_rtx_free(ctx, r);
	HOMA_WRITE_ONCE(out->num_rtx, (u8)(out->num_rtx - 1));
}

/* ---- why something is sent again ---- */

/* Do all bytes [@start, @end) wait to be sent again already? */
static bool homa_rtx_has(const struct homa_out *out, u32 start, u32 end)
{
	const struct homa_rtx *r;

	for (r = out->rtx; r; r = r->next)
		if (r->start <= start && end <= r->end)
			return true;
	return false;
}

HOMA_RARE bool homa_out_resend(struct homa_ctx *ctx, struct homa_rpc *rpc,
			       u32 start, u32 end, u8 prio)
{
	struct homa_link *link = rpc->link;
	struct homa_out *out = &rpc->out;
	bool anew;

	homa_lock(&link->lock);
	end = homa_min_u32(end, out->next);
	anew = !homa_rtx_has(out, start, end);
	if (out->active && start < end) {
		homa_rtx_add(ctx, out, start, end, prio);
		homa_out_queue(link, rpc);
	}
	homa_unlock(&link->lock);
	homa_tx_wanted(ctx, link);
	return anew;
}

HOMA_RARE void homa_out_unsent(struct homa_ctx *ctx, struct homa_rpc *rpc,
			       const struct homa_tx_desc *desc, bool later)
{
	struct homa_shard *shard = rpc->shard;
	struct homa_link *link = rpc->link;
	u32 end = desc->offset + desc->length;

	/* homa_out_cancel() need not know that this message may be queued in a moment. */
	homa_lock(&shard->lock);
	homa_lock(&link->lock);
	if (rpc->out.active && !desc->retransmit && end <= rpc->out.next)
		HOMA_WRITE_ONCE(rpc->out.unsent, rpc->out.unsent + desc->length);
	homa_unlock(&link->lock);
	if (!later)
		homa_out_resend(ctx, rpc, desc->offset, end, desc->prio);
	homa_unlock(&shard->lock);
}

HOMA_RARE void homa_out_restart(struct homa_ctx *ctx, struct homa_rpc *rpc)
{
	struct homa_link *link = rpc->link;
	struct homa_out *out = &rpc->out;

	homa_lock(&link->lock);
	/* Grants were given by a life of the peer that has ended, so they are void. */
	if (out->active && out->limit > out->unsched) {
		homa_rtx_clear(ctx, out);
		out->limit = out->next;
		/* the message's place is about to change */
		homa_out_queue(link, rpc);
		if (out->next > out->unsched) {
			/* When these bytes are granted again, perhaps by a late packet of
			 * that life, they go as retransmissions, because they would look
			 * new to a peer that has forgotten. */
			out->anew = 1;
			HOMA_WRITE_ONCE(out->next, out->unsched);
			HOMA_WRITE_ONCE(out->unsent,
					/* a peer that granted has got something */
					0);
		}
		out->limit = out->unsched;
	}
	if (out->active) {
		if (out->next)
			homa_rtx_add(ctx, out, 0, out->next, out->unsched_prio);
		homa_out_queue(link, rpc);
	}
	homa_unlock(&link->lock);
	homa_tx_wanted(ctx, link);
}
