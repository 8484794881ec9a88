/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Control packets on their way out; see homa_ctrl.c.
 */
#ifndef HOMA_CTRL_H
#define HOMA_CTRL_H

#include "homa_ctx.h"

/* Returns room for a packet to @rpc's peer, with the ids filled in. */
struct homa_ctrl *homa_ctrl_rpc(struct homa_ctx *ctx, struct homa_rpc *rpc,
				u8 type);
/* Returns room for a packet to @dst; the caller fills in ids and ports. */
struct homa_ctrl *homa_ctrl_to(struct homa_ctx *ctx, struct homa_link *link,
			       const struct homa_addr *dst, u8 type);
/* Moves the context's control packets to their link. Takes the link lock. */
void homa_ctrl_flush(struct homa_ctx *ctx);
/* Writes the packet; returns its length. */
u32 homa_ctrl_encode(const struct homa_engine *engine,
		     const struct homa_ctrl *ctrl, void *hdr);
/* Queues again a control packet that the host took and could not send. */
void homa_ctrl_again(struct homa_ctx *ctx, const struct homa_tx_desc *desc);

#endif
