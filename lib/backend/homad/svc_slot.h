/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/*
 * The place of one request of a handle, and its names: the id of the application, homad's token.
 */
#ifndef HOMA_SVC_SLOT_H
#define HOMA_SVC_SLOT_H

#include "homa_addr.h"
#include "shm.h"

struct homa_svc;

#define HOMA_SVC_SLOTS 65536u
#define HOMA_SVC_ANSWERED ((u64)1 << 63) /* no token has this bit */
#define HOMA_SVC_NO_TOKEN HOMA_SVC_ANSWERED
#define HOMA_SVC_NAMES (1u << HOMA_SHM_NUMBER_BITS) /* twice as many as slots */

enum homa_svc_slot_state {
	HOMA_SVC_OPEN, /* homad has the request, or the place is free */
	HOMA_SVC_DONE, /* the outcome waits for the application to take it */
};

/* struct homa_svc_slot - the place of one request of this handle. Written by: the thread that sends
 * the request, and under the handle's lock by who ends it, as the members say. */
struct homa_svc_slot {
	/* homad's name of the request; 0 if none is open here. The sender writes it; whoever ends
	 * the request clears it under the handle's lock. It is atomic. */
	u64 token;
	/* The id that the application knows; 0 if the place is free. It is written before @token
	 * and cleared after it. It is atomic. */
	u64 id;
	/* The sender writes @cookie, @peer, @port, @length (bytes) and @is_private, as it was
	 * told, before @token. */
	u64 cookie;
	struct homa_addr peer;
	/* The next place of the free list. */
	u32 next;
	u32 length;
	u16 port;
	/* An enum homa_svc_slot_state; under the handle's lock. */
	u8 state;
	/* The application has aborted the request, and homad has not confirmed that yet, so the
	 * place is not free. Under the handle's lock. */
	u8 gone;
	u8 is_private;
	/* The threads that began to wait for this id; 2 means 2 or more. Under the same lock. */
	u8 waits;
};

/* slots.c */
int homa_svc_slots_init(struct homa_svc *c);
void homa_svc_slots_free(struct homa_svc *c);
void homa_svc_slots_limit(struct homa_svc *c, u32 max_rpcs);
/** homa_svc_slot_get() - name a request to an address with @hash; NULL if no slot is free. */
struct homa_svc_slot *homa_svc_slot_get(struct homa_svc *c, u64 hash, u64 *token);
/** homa_svc_token() - return the token of the open request @id, or HOMA_SVC_NO_TOKEN. */
u64 homa_svc_token(struct homa_svc *c, u64 id);
void homa_svc_slot_put(struct homa_svc *c, struct homa_svc_slot *slot);

/** homa_svc_slot_open() - make the slot known, after all else was written into it. */
static inline void homa_svc_slot_open(struct homa_svc_slot *slot, u64 token)
{
	__atomic_store_n(&slot->token, token, __ATOMIC_RELEASE);
}

#endif
