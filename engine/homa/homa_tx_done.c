// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * What became of packets that the host pulled: a message that was held for its packet is
 * released, and what the device refused is sent again.
 */
#include "homa_impl.h"

HOMA_HOT void homa_tx_done(struct homa_ctx *ctx, struct homa_tx_desc *desc,
			   int err)
{
	struct homa_rpc *rpc = desc->rpc;

	if (unlikely(err))
		homa_count(ctx, HOMA_M_tx_failed, 1);
	if (!rpc) {
		if (unlikely(err) && err != -HOMA_EHOSTUNREACH)
			homa_ctrl_again(ctx, desc);
		return;
	}
	if (unlikely(err))
		homa_out_unsent(ctx, rpc, desc, err == -HOMA_EHOSTUNREACH);
	desc->rpc = NULL;
	homa_rpc_put(ctx, rpc);
}
