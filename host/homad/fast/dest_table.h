/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * Where a destination is remembered: in one of the four places of its set. A secret key
 * decides which set that is, so nobody outside knows which destinations share one.
 */
#ifndef HOMAD_DEST_TABLE_H
#define HOMAD_DEST_TABLE_H

#include "homa_hash.h"
#include "dest.h"

/** homad_dest_set() - return the HOMAD_DEST_WAYS places in which @addr may be. */
static inline struct homad_dest *homad_dest_set(struct homad_dests *dests,
						const struct homa_addr *addr)
{
	u64 hash = homa_hash_ip(addr->ip, dests->key[0],
				dests->key[1] ^ addr->encap);

	return dests->sets[hash % HOMAD_DEST_SETS];
}

/** homad_dest_find_in() - return the entry of @addr in @set, or NULL. */
static inline struct homad_dest *homad_dest_find_in(struct homad_dest *set,
						    const struct homa_addr *addr)
{
	u32 i;

	for (i = 0; i < HOMAD_DEST_WAYS; i++)
		if (likely(homa_addr_equal(&set[i].addr, addr)))
			return set[i].checked ? &set[i] : NULL;
	return NULL;
}

/** homad_dest_find() - return the entry of @addr, or NULL. */
static inline struct homad_dest *homad_dest_find(struct homad_dests *dests,
						 const struct homa_addr *addr)
{
	return homad_dest_find_in(homad_dest_set(dests, addr), addr);
}

#endif
