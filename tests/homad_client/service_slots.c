// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * lib/backend/homad/slots.c: no two open requests have the same place, a name is never
 * used twice, each is found by its id, and a homad that allows fewer is obeyed.
 */
#include "unit.h"

#include <pthread.h>
#include "client.h"
#include "svc_slot.h"

#define PLACES 50u
#define THREADS 4
#define ROUNDS 20000u
#define HASH 0x123456789abcdef1ull

static struct homa_svc *c;
static u32 owner[PLACES];

static int setup(void **state)
{
	(void)state;
	c = aligned_alloc(64, sizeof(*c));
	memset(c, 0, sizeof(*c));
	memset(owner, 0, sizeof(owner));
	c->max_rpcs = PLACES;
	if (homa_svc_slots_init(c))
		return -1;
	c->numbering = HOMA_SQE_NUMBERED;
	c->numbers = 1;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	homa_svc_slots_free(c);
	free(c);
	return 0;
}

static struct homa_svc_slot *get(u64 *token)
{
	struct homa_svc_slot *slot = homa_svc_slot_get(c, HASH, token);

	if (slot)
		homa_svc_slot_open(slot, *token);
	return slot;
}

static void get__names_once(void **state)
{
	struct homa_svc_slot *slot[PLACES];
	u64 token, before;
	u32 i;

	(void)state;
	for (i = 0; i < PLACES; i++) {
		slot[i] = get(&token);
		assert_non_null(slot[i]);
		assert_true((token & 0xffff) < PLACES);
		assert_ptr_equal(homa_svc_slot(c, token), slot[i]);
	}
	assert_null(get(&token));
	before = slot[3]->token;
	homa_svc_slot_put(c, slot[3]);
	assert_null(homa_svc_slot(c, before));
	assert_ptr_equal(get(&token), slot[3]);
	assert_int_equal(token & 0xffff, before & 0xffff);
	assert_true(token != before);
	assert_null(homa_svc_slot(c, before));
}

static void get__ids_of_numbers(void **state)
{
	struct homa_svc_slot *a, *b;
	u64 token, id;

	(void)state;
	a = get(&token);
	assert_int_equal(token, 1u << 16);
	assert_true(a->id == (HASH << 18) + 2);
	assert_true(homa_svc_token(c, a->id) == token);
	/* More bits than an id shows as they are count where the hash is. */
	c->numbers = (5u << 17) + 2;
	b = get(&token);
	assert_true(b->id == ((HASH + 5) << 18) + 4);
	assert_true(homa_svc_token(c, b->id) == token);
	assert_true(homa_svc_token(c, a->id) == a->token);
	/* What is not open has no token. */
	id = b->id;
	assert_true(homa_svc_token(c, id + 2) == HOMA_SVC_NO_TOKEN);
	assert_true(homa_svc_token(c, id + (1u << 18)) == HOMA_SVC_NO_TOKEN);
	homa_svc_slot_put(c, b);
	assert_true(homa_svc_token(c, id) == HOMA_SVC_NO_TOKEN);
	assert_null(homa_svc_slot(c, HOMA_SVC_NO_TOKEN));
}

/* Its number comes round again: the next one is taken. */
static void get__passes_over_what_is_open(void **state)
{
	struct homa_svc_slot *a, *b, *again;
	u64 token;

	(void)state;
	a = get(&token);
	c->numbers = (1u << 17) + 1;
	b = get(&token);
	assert_true(b->id == ((HASH + 1) << 18) + 4);
	assert_true(homa_svc_token(c, a->id) == a->token);
	assert_true(homa_svc_token(c, b->id) == b->token);
	homa_svc_slot_put(c, a);
	c->numbers = (2u << 17) + 1;
	again = get(&token);
	assert_true(again->id == ((HASH + 2) << 18) + 2);
	assert_true(homa_svc_token(c, again->id) == again->token);
	/* 2 is taken, 3 and the like come later. */
	assert_true(get(&token)->id == ((HASH + 2) << 18) + 6);
}

/* No id is 0: that is how a receive asks for any. */
static void get__no_id_is_zero(void **state)
{
	struct homa_svc_slot *slot;
	u64 token;

	(void)state;
	c->numbers = 0;
	slot = homa_svc_slot_get(c, 0, &token);
	assert_true(slot->id == 2 && token >> 16 == 1);
}

static void limit__fewer_and_more(void **state)
{
	struct homa_svc_slot *slot[PLACES];
	u64 token;
	u32 i;

	(void)state;
	for (i = 0; i < 40; i++)
		slot[i] = get(&token);
	homa_svc_slots_limit(c, 10);
	assert_null(get(&token));
	/* Those over the limit end, and are not used again. */
	for (i = 0; i < 40; i++)
		if (slot[i] - c->slots >= 10)
			homa_svc_slot_put(c, slot[i]);
	assert_null(get(&token));
	for (i = 0; i < 40; i++)
		if (slot[i] - c->slots < 10)
			homa_svc_slot_put(c, slot[i]);
	for (i = 0; i < 10; i++)
		assert_true(get(&token) - c->slots < 10);
	assert_null(get(&token));
	homa_svc_slots_limit(c, PLACES);
	for (i = 10; i < PLACES; i++)
		assert_non_null(get(&token));
	assert_null(get(&token));
}

static void *hammer(void *arg)
{
	struct homa_svc_slot *held[16];
	struct homa_rng rng;
	u32 i, n = 0;
	u64 token;

	homa_rng_init(&rng, unit_seed() + (uintptr_t)arg);
	for (i = 0; i < ROUNDS; i++) {
		if (n < 16 && homa_rng_below(&rng, 2)) {
			struct homa_svc_slot *slot = get(&token);

			if (!slot)
				continue;
			if (__atomic_exchange_n(&owner[slot - c->slots], 1,
						__ATOMIC_SEQ_CST))
				return c;
			if (homa_svc_token(c, slot->id) != token)
				return c;
			held[n++] = slot;
		} else if (n) {
			u32 k = homa_rng_below(&rng, n);

			if (homa_svc_token(c, held[k]->id) != held[k]->token)
				return c;
			__atomic_store_n(&owner[held[k] - c->slots], 0,
					 __ATOMIC_SEQ_CST);
			homa_svc_slot_put(c, held[k]);
			held[k] = held[--n];
		}
	}
	while (n--) {
		__atomic_store_n(&owner[held[n] - c->slots], 0, __ATOMIC_SEQ_CST);
		homa_svc_slot_put(c, held[n]);
	}
	return NULL;
}

static void threads__never_the_same_place(void **state)
{
	pthread_t threads[THREADS];
	void *failed;
	u64 token;
	uintptr_t i;

	(void)state;
	for (i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, hammer, (void *)i);
	for (i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
	for (i = 0; i < PLACES; i++)
		assert_non_null(get(&token));
	assert_null(get(&token));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(get__names_once),
		T(get__ids_of_numbers),
		T(get__passes_over_what_is_open),
		T(get__no_id_is_zero),
		T(limit__fewer_and_more),
		T(threads__never_the_same_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
