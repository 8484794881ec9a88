// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Two tables, whose memory comes with use. Our open requests: a token is a place
 * (low 16 bits) and how often the place was used, so that a stale one is noticed;
 * the kernel knows it as the completion cookie. The other table has the requests of
 * peers that we may answer, since the socket would silently take a second answer. Each
 * has a word, which is odd while the request may be answered, and says later where the
 * next free word is. Its upper bits number the requests that came, so that an old token
 * says nothing of a later request in the same place.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/random.h>
#include "backend_kernel.h"

#define COUNT_SHIFT 22 /* the lowest bit of the request's number in a word */

static void *reserve(size_t bytes)
{
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return mem == MAP_FAILED ? NULL : mem;
}

int homa_ksock_slots_init(struct homa_ksock *c)
{
	u32 seed;

	c->slots = reserve(HOMA_KSOCK_SLOTS * sizeof(*c->slots));
	c->items = reserve(HOMA_KSOCK_SLOTS * sizeof(*c->items));
	c->asked = reserve(HOMA_KSOCK_ASKED * sizeof(*c->asked));
	if (!c->slots || !c->items || !c->asked)
		return -ENOMEM;
	/* Another program's or another run's id should mean nothing here. */
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return -errno;
	c->uses0 = 1 + (u64)(seed & 0x3fffffff);
	return 0;
}

void homa_ksock_slots_free(struct homa_ksock *c)
{
	if (c->slots)
		munmap(c->slots, HOMA_KSOCK_SLOTS * sizeof(*c->slots));
	if (c->items)
		munmap(c->items, HOMA_KSOCK_SLOTS * sizeof(*c->items));
	if (c->asked)
		munmap(c->asked, HOMA_KSOCK_ASKED * sizeof(*c->asked));
}

struct homa_ksock_slot *homa_ksock_slot_get(struct homa_ksock *c)
{
	struct homa_ksock_slot *slot;
	u32 index;

	if (c->free) {
		index = c->free - 1;
		c->free = c->slots[index].next;
	} else if (c->fresh < HOMA_KSOCK_SLOTS) {
		index = c->fresh++;
	} else {
		return NULL;
	}
	slot = &c->slots[index];
	slot->token = (c->uses0 + slot->uses++) << 16 | index;
	slot->id = 0;
	slot->is_private = slot->done = slot->gone = false;
	homa_list_init(&c->items[index].list);
	return slot;
}

void homa_ksock_slot_put(struct homa_ksock *c, struct homa_ksock_slot *slot)
{
	slot->token = 0;
	slot->next = c->free;
	c->free = (u32)(slot - c->slots) + 1;
}

/* A token has the request's number, then its place, then a bit 1. */
u64 homa_ksock_asked(struct homa_ksock *c)
{
	u64 token;
	u32 index;

	if (c->asked_free) {
		index = c->asked_free - 1;
		c->asked_free = (u32)(c->asked[index] >> 1) &
				(2 * HOMA_KSOCK_ASKED - 1);
	} else if (c->asked_fresh < HOMA_KSOCK_ASKED) {
		index = c->asked_fresh++;
	} else {
		/* A million requests are not answered, so the oldest are forgotten. */
		index = (u32)(c->asked_count % HOMA_KSOCK_ASKED);
		c->asked_lost = true;
	}
	token = ++c->asked_count << COUNT_SHIFT | (u64)index << 1 | 1;
	c->asked[index] = token;
	return token;
}

static u64 *place(struct homa_ksock *c, u64 token)
{
	return &c->asked[(token >> 1) % HOMA_KSOCK_ASKED];
}

/* The number of the request in a token or word. */
static u64 count_of(u64 word)
{
	return word >> COUNT_SHIFT << COUNT_SHIFT;
}

bool homa_ksock_answer(struct homa_ksock *c, u64 token)
{
	u64 *word = place(c, token);

	if (!(token & 1))
		return false;
	/* Its place was used again, so it was answered. Only if requests had to be forgotten it
	 * may be one of them, and the kernel knows. */
	if (count_of(*word) != count_of(token))
		return c->asked_lost;
	if (!(*word & 1))
		return false;
	*word = count_of(token);
	return true;
}

bool homa_ksock_asked_open(struct homa_ksock *c, u64 token)
{
	u64 word = *place(c, token);

	return (token & 1) &&
	       (count_of(word) == count_of(token) ? word & 1 : c->asked_lost);
}

void homa_ksock_answered(struct homa_ksock *c, u64 token, bool again)
{
	u64 *word = place(c, token);

	if (count_of(*word) != count_of(token))
		return;
	if (again) {
		*word = token;
		return;
	}
	*word = count_of(token) | (u64)c->asked_free << 1;
	c->asked_free = (u32)((token >> 1) % HOMA_KSOCK_ASKED) + 1;
}
