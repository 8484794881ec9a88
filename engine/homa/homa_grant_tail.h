/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Bytes that wait in the switch on a lower level than their message has now.
 *
 * A message that rises in rank is granted on a higher level, and what comes
 * then overtakes what was granted before. That does it no harm while it is
 * active. But once it is granted to its end, those few early bytes lie on their
 * low level while the next messages flow on higher ones, and the message that
 * should have been complete first waits for all of them (or for its RESEND).
 * Eight messages of 0.55 to 3 MB that arrive at once complete in any order so,
 * at a multiple of the time.
 *
 * So such tails are remembered until their bytes have come, and messages that
 * are longer than theirs are granted on no higher level than they wait on.
 * Shorter messages may still overtake them: else one megabyte's tail would
 * delay many small messages. None of this is in the published algorithms; with
 * the window of the SIGCOMM'18 rule, one RTTbytes, too little can be overtaken
 * to matter, and it is not applied there.
 *
 * All functions want the grant lock.
 */
#ifndef HOMA_GRANT_TAIL_H
#define HOMA_GRANT_TAIL_H

#include "homa_rpc.h"

/** homa_grant_tail_note() - @in will be granted on @level from @in->granted on */
void homa_grant_tail_note(struct homa_grantee *in, u8 level);

/** homa_grant_tail_add() - @rpc was granted to its end; remember it if needed */
void homa_grant_tail_add(struct homa_grants *grants, struct homa_rpc *rpc);

/** homa_grant_tail_remove() - forget @rpc, if remembered */
void homa_grant_tail_remove(struct homa_grants *grants, struct homa_rpc *rpc);

/** homa_grant_tail_expire() - forget those whose early bytes have come */
void homa_grant_tail_expire(struct homa_grants *grants);

/** homa_grant_tail_level() - @level, or less for the sake of a shorter tail */
u8 homa_grant_tail_level(const struct homa_grants *grants,
			 const struct homa_grantee *in, u8 level);

#endif
