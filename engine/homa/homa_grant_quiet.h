/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * What senders were granted and do not send.
 *
 * A sender that has shorter messages for others answers none of our grants for
 * a while. With a max_incoming of many RTTbytes that does not matter: others
 * fill the link, and that is what overcommitment is for. Its price is the
 * queue that builds in the switch when they all send after all. With a
 * max_incoming of little more than one RTTbytes, which bounds that queue, one
 * or two such senders hold all of it, and the link idles.
 *
 * So with quiet_us set, what is outstanding from a sender that has been silent
 * for so long does not count against max_incoming until it sends again: it is
 * not in the switch, nor will it be before the others have noticed. As several
 * may wake at the same time, all of them together make room for one message's
 * window at most. That is also the most by which the queue may exceed what
 * max_incoming promises.
 *
 * SIRD (NSDI'25) has the same aim and lets senders say in every packet that
 * they hold credit of several receivers. A receiver can tell by itself, sooner
 * if the sender sends it nothing at all, and from every peer that speaks Homa.
 */
#ifndef HOMA_GRANT_QUIET_H
#define HOMA_GRANT_QUIET_H

#include "homa_rpc.h"

/**
 * homa_grant_quiet() - bytes that active messages of quiet senders were granted
 * and that have not come, at most @most; 0 if quiet_us is 0. Grant lock held.
 */
u32 homa_grant_quiet(const struct homa_ctx *ctx,
		     const struct homa_grants *grants, u32 most);

#endif
