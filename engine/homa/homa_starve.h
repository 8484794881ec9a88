/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Messages that wait for pages; see homa_starve.c.
 */
#ifndef HOMA_STARVE_H
#define HOMA_STARVE_H

#include "homa_rpc.h"

/* Time at which a request that waits for pages is given up unless its client is heard, in
 * ns. */
u64 homa_starving_until(const struct homa_rpc *rpc);
/* Gives pages that came back to messages that wait. Sock lock not held. */
void homa_sock_feed(struct homa_ctx *ctx, struct homa_sock *sock);

#endif
