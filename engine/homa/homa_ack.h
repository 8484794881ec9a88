/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * How long a server waits for the ack of a response; see homa_ack.c.
 */
#ifndef HOMA_ACK_H
#define HOMA_ACK_H

#include "homa_rpc.h"

/* homa_peer.ack_delay counts in units of 2^17 ns, which is 131 us. */
#define HOMA_ACK_SHIFT 17u

/* Notes how long the client took to acknowledge the response of @rpc; shard locked. */
void homa_ack_came(struct homa_ctx *ctx, const struct homa_rpc *rpc);
/* Time that the server of @rpc waits for an ack before it asks, in ns, without the
 * doublings of further questions. */
HOMA_HOT u64 homa_ack_wait(const struct homa_ctx *ctx,
			   const struct homa_rpc *rpc);

#endif
