// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * Our open requests. We name them ourselves: a token is a place in this table
 * (low 16 bits) and a number that is used once, so that a stale one is noticed.
 * Free places form a stack with a tag against reuse in the middle of a pop;
 * senders pop without any lock but their ring's. The last place given back is the
 * next one taken, so few cache lines are in use.
 *
 * An id is the one in the packets: the same number, and a hash of the address that
 * homad computes, too (abi/shm.h). So that a place is found by it, @names has a word
 * for each of its low bits; a number whose word belongs to an open request is passed
 * over. There are twice as many words as places, so that is every second at most.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/random.h>
#include "transfer.h"

static void *reserve(size_t bytes)
{
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return mem == MAP_FAILED ? NULL : mem;
}

int homa_svc_slots_init(struct homa_svc *c)
{
	u32 seed;

	/* The kernel adds memory with use, because most programs need few slots. */
	c->slots = reserve(HOMA_SVC_SLOTS * sizeof(*c->slots));
	c->slot_items = reserve(HOMA_SVC_SLOTS * sizeof(*c->slot_items));
	c->requests = reserve(HOMA_SVC_SLOTS * sizeof(*c->requests));
	c->names = reserve(HOMA_SVC_NAMES * sizeof(*c->names));
	if (!c->slots || !c->slot_items || !c->requests || !c->names)
		return -ENOMEM;
	/* Another program's or another run's id should mean nothing here. */
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return -errno;
	c->numbers = 1 + (u64)(seed & 0x3fffffff);
	return 0;
}

void homa_svc_slots_free(struct homa_svc *c)
{
	if (c->slots)
		munmap(c->slots, HOMA_SVC_SLOTS * sizeof(*c->slots));
	if (c->slot_items)
		munmap(c->slot_items, HOMA_SVC_SLOTS * sizeof(*c->slot_items));
	if (c->requests)
		munmap(c->requests, HOMA_SVC_SLOTS * sizeof(*c->requests));
	if (c->names)
		munmap(c->names, HOMA_SVC_NAMES * sizeof(*c->names));
}

static void push(struct homa_svc *c, u32 index)
{
	u64 old = __atomic_load_n(&c->free, __ATOMIC_RELAXED), new;

	do {
		__atomic_store_n(&c->slots[index].next, (u32)old,
				 __ATOMIC_RELAXED);
		new = ((old >> 32) + 1) << 32 | (index + 1);
	} while (!__atomic_compare_exchange_n(&c->free, &old, new, false,
					      __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

/* Take a free place; returns 1 + its index, 0 if there is none. */
static u32 pop(struct homa_svc *c)
{
	u64 old = __atomic_load_n(&c->free, __ATOMIC_ACQUIRE), new;
	u32 fresh;

	while ((u32)old) {
		u32 next = __atomic_load_n(&c->slots[(u32)old - 1].next,
					   __ATOMIC_RELAXED);

		new = ((old >> 32) + 1) << 32 | next;
		if (__atomic_compare_exchange_n(&c->free, &old, new, false,
						__ATOMIC_ACQUIRE,
						__ATOMIC_ACQUIRE))
			return (u32)old;
	}
	fresh = __atomic_load_n(&c->fresh, __ATOMIC_RELAXED);
	while (fresh < c->max_rpcs)
		if (__atomic_compare_exchange_n(&c->fresh, &fresh, fresh + 1,
						false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			return fresh + 1;
	return 0;
}

/* Rebuild the free list for @max_rpcs places. The caller has all locks. */
void homa_svc_slots_limit(struct homa_svc *c, u32 max_rpcs)
{
	u32 i, top;

	c->max_rpcs = homa_min_u32(max_rpcs, HOMA_SVC_SLOTS);
	top = homa_min_u32(c->fresh, c->max_rpcs);
	__atomic_store_n(&c->free, c->free & ~0xffffffffull, __ATOMIC_RELAXED);
	for (i = top; i > 0; i--)
		if (!c->slots[i - 1].token)
			push(c, i - 1);
}

static u32 *name_of(struct homa_svc *c, u64 id)
{
	return &c->names[(id >> 1) % HOMA_SVC_NAMES];
}

static u64 id_in(const struct homa_svc_slot *slot)
{
	return __atomic_load_n(&slot->id, __ATOMIC_ACQUIRE);
}

/* The word in @names for the place @index and the request's number. */
static u32 word_of(u32 index, u64 number)
{
	return index | (u32)(number >> HOMA_SHM_NUMBER_BITS) << 16;
}

void homa_svc_slot_name(struct homa_svc *c, u32 index)
{
	const struct homa_svc_slot *slot = &c->slots[index];

	*name_of(c, slot->id) = word_of(index, slot->token >> 16);
}

/* Give the slot an id, unless an open request has the id's word. The slot gets the id before the
 * word, so whoever finds the word sees that it is in use. */
static bool try_id(struct homa_svc *c, u32 index, u64 id, u64 number)
{
	u32 *name = name_of(c, id), old, new;
	u64 other;

	old = __atomic_load_n(name, __ATOMIC_RELAXED);
	other = id_in(&c->slots[old & 0xffff]);
	if (unlikely(id < 2 || (other && name_of(c, other) == name)))
		return false;
	__atomic_store_n(&c->slots[index].id, id, __ATOMIC_SEQ_CST);
	new = word_of(index, number);
	if (likely(__atomic_compare_exchange_n(name, &old, new, false,
					       __ATOMIC_SEQ_CST,
					       __ATOMIC_RELAXED)))
		return true;
	__atomic_store_n(&c->slots[index].id, 0, __ATOMIC_RELAXED);
	return false;
}

struct homa_svc_slot *homa_svc_slot_get(struct homa_svc *c, u64 hash, u64 *token)
{
	u32 found = pop(c), index = found - 1;
	u64 number, id;

	if (unlikely(!found))
		return NULL;
	do {
		number = __atomic_fetch_add(&c->numbers, 1, __ATOMIC_RELAXED);
		*token = number << 16 | index;
		id = likely(c->numbering) ?
			     (hash << (HOMA_SHM_NUMBER_BITS + 1)) + (number << 1) :
			     *token << 1;
	} while (unlikely(!try_id(c, index, id, number)));
	return &c->slots[index];
}

u64 homa_svc_token(struct homa_svc *c, u64 id)
{
	u32 name = __atomic_load_n(name_of(c, id), __ATOMIC_RELAXED);
	struct homa_svc_slot *slot = &c->slots[name & 0xffff];
	u64 token = __atomic_load_n(&slot->token, __ATOMIC_ACQUIRE);

	return token && id_in(slot) == id ? token : HOMA_SVC_NO_TOKEN;
}

void homa_svc_slot_put(struct homa_svc *c, struct homa_svc_slot *slot)
{
	u32 index = (u32)(slot - c->slots);

	slot->state = HOMA_SVC_OPEN;
	slot->gone = 0;
	slot->waits = 0;
	__atomic_store_n(&slot->token, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->id, 0, __ATOMIC_RELEASE);
	if (likely(index < c->max_rpcs))
		push(c, index);
}
