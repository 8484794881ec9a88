/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* Where homad says that the rings of an attachment are, and a check of that. Written by: who
 * attaches, before the attachment is the handle's; constant after that. */
#ifndef HOMA_SVC_PLACES_H
#define HOMA_SVC_PLACES_H

#include "homa_plat.h"
#include "shm.h"

struct homa_svc_att;

/**
 * struct homa_svc_place - a ring in homad's memory
 * @index: its head and tail.
 * @first: its first entry.
 * @entries: the number of its entries, a power of two.
 */
struct homa_svc_place {
	struct homa_shm_ring *index;
	void *first;
	u32 entries;
};

/** homa_svc_same_major() - can this library understand a homad of this version? */
static inline bool homa_svc_same_major(u32 version)
{
	return HOMA_SHM_MAJOR(version) == HOMA_SHM_MAJOR(HOMA_SHM_VERSION);
}

/** homa_svc_find_rings() - find @att's rings in @att->queues; 0, or -EPROTO if homad is wrong. */
int homa_svc_find_rings(struct homa_svc_att *att);

/** homa_svc_ring_bell() - ring the bell at @bell after a ring's tail was stored; see abi/shm.h. */
static inline void homa_svc_ring_bell(u32 *bell)
{
	if (!__atomic_load_n(bell, __ATOMIC_SEQ_CST))
		__atomic_store_n(bell, 1, __ATOMIC_RELEASE);
}

#endif
