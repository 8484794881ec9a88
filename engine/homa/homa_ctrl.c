// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Control packets on their way out. They are values without any pointer: made
 * wherever something is noticed (under the shard or grant lock), collected in
 * the context, moved to the link's ring in one go, encoded when pulled. None
 * of them must arrive; a full ring drops and counts.
 */
#include "homa_from.h"
#include "homa_impl.h"
#include "homa_link_open.h"

struct homa_ctrl *homa_ctrl_to(struct homa_ctx *ctx, struct homa_link *link,
			       const struct homa_addr *dst, u8 type)
{
	struct homa_ctrl *ctrl;

	if (ctx->num_ctrl == HOMA_CTX_CTRL ||
	    (ctx->num_ctrl && ctx->ctrl_link != link))
		homa_ctrl_flush(ctx);
	ctx->ctrl_link = link;
	ctrl = &ctx->ctrl[ctx->num_ctrl++];
	ctrl->dst = *dst;
	ctrl->type = type;
	ctrl->num = 0;
	ctrl->from = (struct homa_from){ { 0, 0 } };
	return ctrl;
}

struct homa_ctrl *homa_ctrl_rpc(struct homa_ctx *ctx, struct homa_rpc *rpc,
				u8 type)
{
	struct homa_ctrl *ctrl =
		homa_ctrl_to(ctx, rpc->link, &rpc->peer->addr, type);

	ctrl->sport = rpc->sport;
	ctrl->dport = rpc->dport;
	ctrl->sender_id = rpc->id;
	if (ctx->engine->limits.rpc_from)
		ctrl->from = *homa_rpc_from(rpc);
	return ctrl;
}

void homa_say(struct homa_ctx *ctx, struct homa_link *link,
	      const struct homa_addr *dst, u8 type, u16 sport, u16 dport, u64 id)
{
	struct homa_ctrl *ctrl = homa_ctrl_to(ctx, link, dst, type);

	ctrl->sport = sport;
	ctrl->dport = dport;
	ctrl->sender_id = id;
	ctrl->offset = 0;
	ctrl->length = 0;
	ctrl->priority = 7;
	homa_ctrl_flush(ctx);
}

void homa_ctrl_flush(struct homa_ctx *ctx)
{
	struct homa_link *link = ctx->ctrl_link;
	u32 i, lost = 0;

	if (!ctx->num_ctrl)
		return;
	homa_lock(&link->lock);
	for (i = 0; i < ctx->num_ctrl; i++) {
		if (link->ctrl_tail - link->ctrl_head > link->ctrl_mask) {
			lost = ctx->num_ctrl - i;
			break;
		}
		link->ctrl[link->ctrl_tail++ & link->ctrl_mask] = ctx->ctrl[i];
	}
	homa_link_look(link);
	homa_unlock(&link->lock);
	ctx->num_ctrl = 0;
	homa_tx_wanted(ctx, link);
	if (unlikely(lost))
		homa_count(ctx, HOMA_M_tx_ctrl_full, lost);
}

u32 homa_ctrl_encode(const struct homa_engine *engine,
		     const struct homa_ctrl *ctrl, void *hdr)
{
	struct homa_packet p HOMA_NOINIT;
	u32 i, len;

	p.hdr.sport = ctrl->sport;
	p.hdr.dport = ctrl->dport;
	p.hdr.sender_id = ctrl->sender_id;
	p.hdr.type = ctrl->type;
	switch (ctrl->type) {
	case HOMA_GRANT:
		p.grant.offset = ctrl->offset;
		p.grant.priority = ctrl->priority;
		break;
	case HOMA_RESEND:
		p.resend.offset = ctrl->offset;
		p.resend.length = ctrl->length;
		p.resend.priority = ctrl->priority;
		break;
	case HOMA_CUTOFFS:
		memcpy(p.cutoffs.cutoff, ctrl->cutoffs, sizeof(p.cutoffs.cutoff));
		p.cutoffs.version = ctrl->num;
		break;
	case HOMA_ACK:
		p.ack.num = ctrl->num;
		for (i = 0; i < ctrl->num; i++) {
			p.ack.ack[i].client_id = ctrl->acks.ids[i];
			p.ack.ack[i].server_port = ctrl->acks.ports[i];
		}
		break;
	}
	len = homa_packet_encode(hdr, &p);
	if (ctrl->sender_id & 1) {
		homa_wire_set_life(hdr, engine->life);
		if (ctrl->type == HOMA_RPC_UNKNOWN && engine->life)
			homa_wire_set_up(hdr, ctrl->offset);
	}
	return len;
}

void homa_ctrl_again(struct homa_ctx *ctx, const struct homa_tx_desc *desc)
{
	struct homa_ctrl *ctrl;
	struct homa_packet p;
	u32 i;

	/* These are bytes that this host has written, so decoding cannot fail. */
	if (homa_packet_decode(&p, desc->hdr, desc->hdr_len))
		return;
	ctrl = homa_ctrl_to(ctx, desc->link, &desc->dst, p.hdr.type);
	ctrl->sport = p.hdr.sport;
	ctrl->dport = p.hdr.dport;
	ctrl->sender_id = p.hdr.sender_id;
	ctrl->from = desc->from;
	switch (p.hdr.type) {
	case HOMA_RPC_UNKNOWN:
		ctrl->offset = homa_wire_up(desc->hdr);
		break;
	case HOMA_GRANT:
		ctrl->offset = p.grant.offset;
		ctrl->priority = p.grant.priority;
		break;
	case HOMA_RESEND:
		ctrl->offset = p.resend.offset;
		ctrl->length = p.resend.length;
		ctrl->priority = p.resend.priority;
		break;
	case HOMA_CUTOFFS:
		memcpy(ctrl->cutoffs, p.cutoffs.cutoff, sizeof(ctrl->cutoffs));
		ctrl->num = p.cutoffs.version;
		break;
	case HOMA_ACK:
		ctrl->num = p.ack.num;
		for (i = 0; i < p.ack.num; i++) {
			ctrl->acks.ids[i] = p.ack.ack[i].client_id;
			ctrl->acks.ports[i] = p.ack.ack[i].server_port;
		}
		break;
	}
	homa_ctrl_flush(ctx);
}
