// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Memory for messages that the application writes where homad reads them (homa_alloc()): a block
 * of a data segment, and a reference to its attachment. So it stays readable when homad ends, and
 * what is written there is then copied into the next one's memory.
 */
#include "client.h"
#include "svc_att.h"
#include "svc_memory.h"
#include "svc_ring.h"

int homa_svc_alloc(void *host, size_t length, struct homa_room *room)
{
	struct homa_svc *c = host;
	struct homa_svc_att *att;
	u32 segment, offset;
	int rc;

	__atomic_fetch_add(&c->inside, 1, __ATOMIC_SEQ_CST);
	rc = homa_svc_long_keep(c, (u32)length, &att, &segment, &offset);
	__atomic_fetch_sub(&c->inside, 1, __ATOMIC_SEQ_CST);
	if (rc)
		return rc;
	*room = (struct homa_room){ .at = att->seg[segment] + offset,
				    .size = length,
				    .owner = att,
				    .segment = segment,
				    .offset = offset };
	return 0;
}

int homa_svc_sends_from(void *host, const void *at)
{
	struct homa_svc *c = host;
	struct homa_svc_ring *ring = homa_svc_my_ring(c);
	bool has;

	homa_gate_lock(&ring->lock);
	has = homa_svc_long_has(c->att, at);
	homa_gate_unlock(&ring->lock);
	return has;
}
