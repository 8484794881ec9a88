// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * The destinations that a submission ring's threads know to be reachable. A hash of the
 * address says the place of each; a later destination takes the place of an earlier one.
 */
#include "client.h"
#include "homa_hash.h"
#include "svc_ring.h"

struct homa_svc_way *homa_svc_way(struct homa_svc_ring *ring,
				  const struct homa_addr *to)
{
	u32 mix = homa_get_be32(to->ip + 12) ^ homa_get_be32(to->ip + 8);

	return &ring->routes[((mix ^ to->encap) * 2654435761u) >> 24];
}

HOMA_STATIC_ASSERT(HOMA_SVC_ROUTES == 1u << (32 - 24), "homa_svc_way() fits");

void homa_svc_unlearn(struct homa_svc_ring *ring, const struct homa_addr *to)
{
	u32 i;

	if (to) {
		if (homa_addr_equal(&homa_svc_way(ring, to)->addr, to))
			homa_svc_way(ring, to)->addr.zero = 1;
		return;
	}
	/* A flag marks a free place, because even the unspecified address can be a destination. */
	for (i = 0; i < HOMA_SVC_ROUTES; i++)
		ring->routes[i].addr.zero = 1;
}

void homa_svc_learn(struct homa_svc *c, struct homa_svc_way *way,
		    const struct homa_addr *to)
{
	const u64 *key = c->att->queues->id_key;

	way->addr = *to;
	way->hash = homa_siphash_addr(to, key[0], key[1]);
}
