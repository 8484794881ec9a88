// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * See homa_grant_tail.h. How much of a message is still on a lower level is
 * known roughly: one border, below which bytes were granted on a lower level
 * than now, and the lowest such level. The border is passed when everything
 * before it has arrived.
 */
#include "homa_grant_tail.h"

static bool homa_tail_waits(const struct homa_grantee *in)
{
	return HOMA_READ_ONCE(in->in_order) < in->low_until;
}

void homa_grant_tail_note(struct homa_grantee *in, u8 level)
{
	if (level <= in->wire_prio || HOMA_READ_ONCE(in->in_order) >= in->granted)
		return;
	if (!homa_tail_waits(in) || in->low_level > in->wire_prio)
		in->low_level = in->wire_prio;
	HOMA_WRITE_ONCE(in->low_until, in->granted); /* homa_repair.c reads it */
}

void homa_grant_tail_add(struct homa_grants *grants, struct homa_rpc *rpc)
{
	if (grants->num_tails == HOMA_MAX_TAILS || !homa_tail_waits(&rpc->in))
		return;
	grants->tails[grants->num_tails++] = rpc;
	rpc->in.tail = true;
}

void homa_grant_tail_remove(struct homa_grants *grants, struct homa_rpc *rpc)
{
	u32 i = 0;

	if (!rpc->in.tail)
		return;
	while (grants->tails[i] != rpc)
		i++;
	grants->tails[i] = grants->tails[--grants->num_tails];
	rpc->in.tail = false;
}

void homa_grant_tail_expire(struct homa_grants *grants)
{
	u32 i;

	for (i = grants->num_tails; i-- > 0;)
		if (!homa_tail_waits(&grants->tails[i]->in))
			homa_grant_tail_remove(grants, grants->tails[i]);
}

u8 homa_grant_tail_level(const struct homa_grants *grants,
			 const struct homa_grantee *in, u8 level)
{
	u32 i;

	for (i = 0; i < grants->num_tails; i++) {
		const struct homa_grantee *tail = &grants->tails[i]->in;

		if (tail->length <= in->length && level > tail->low_level)
			level = tail->low_level;
	}
	return level;
}
