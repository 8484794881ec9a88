/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Who pays for a peer; see homa_payer.c.
 */
#ifndef HOMA_PAYER_H
#define HOMA_PAYER_H

#include "homa_core.h"

/* Returns the peer to which a socket of @owner sends, with a reference for the caller; if nobody
 * pays for it, @owner does from now on. NULL: *@err is -EDQUOT if he has as many peers as he may
 * and no idle one, else -ENOBUFS. */
HOMA_HOT struct homa_peer *homa_peer_to(struct homa_ctx *ctx,
					struct homa_link *link,
					const struct homa_addr *addr,
					struct homa_owner *owner, int *err);

#endif
