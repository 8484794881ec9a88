// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
/*
 * lib/backend/homad/heap.c: blocks never overlap, what is given back is there again as
 * one piece, and what was not given out cannot be given back.
 */
#include "unit.h"

#include <errno.h>
#include "heap.h"

#define UNITS 1024u
#define BLOCKS 200

static void get__all_of_it(void **state)
{
	struct homa_svc_heap heap;

	(void)state;
	assert_int_equal(homa_svc_heap_init(&heap, UNITS * HOMA_SVC_UNIT + 100),
			 0);
	assert_int_equal(homa_svc_heap_get(&heap, UNITS * HOMA_SVC_UNIT), 0);
	assert_int_equal(homa_svc_heap_get(&heap, 1), -ENOBUFS);
	assert_int_equal(homa_svc_heap_put(&heap, 0), 0);
	assert_int_equal(homa_svc_heap_get(&heap, UNITS * HOMA_SVC_UNIT + 1),
			 -ENOBUFS);
	assert_int_equal(heap.used, 0);
	homa_svc_heap_free(&heap);
	assert_int_equal(homa_svc_heap_init(&heap, 0), 0);
	assert_int_equal(homa_svc_heap_get(&heap, 1), -ENOBUFS);
	homa_svc_heap_free(&heap);
}

static void put__only_what_is_out(void **state)
{
	struct homa_svc_heap heap;
	s64 a, b;

	(void)state;
	homa_svc_heap_init(&heap, UNITS * HOMA_SVC_UNIT);
	a = homa_svc_heap_get(&heap, 3 * HOMA_SVC_UNIT);
	b = homa_svc_heap_get(&heap, 1);
	assert_int_equal(homa_svc_heap_put(&heap, (u32)a + HOMA_SVC_UNIT),
			 -EINVAL);
	assert_int_equal(homa_svc_heap_put(&heap, (u32)a + 1), -EINVAL);
	assert_int_equal(homa_svc_heap_put(&heap, 0x7ffff000), -EINVAL);
	assert_int_equal(homa_svc_heap_put(&heap, (u32)a), 0);
	assert_int_equal(homa_svc_heap_put(&heap, (u32)a), -EINVAL);
	assert_int_equal(homa_svc_heap_put(&heap, (u32)b), 0);
	assert_int_equal(homa_svc_heap_get(&heap, UNITS * HOMA_SVC_UNIT), 0);
	homa_svc_heap_free(&heap);
}

/* A model of who owns each unit. */
static void random__no_overlap(void **state)
{
	static u8 owner[UNITS];
	struct {
		u32 at, units;
	} block[BLOCKS];
	u64 seed = unit_seed();
	struct homa_svc_heap heap;
	u32 i, j, k, n = 0;
	struct homa_rng rng;

	(void)state;
	homa_rng_init(&rng, seed);
	homa_svc_heap_init(&heap, UNITS * HOMA_SVC_UNIT);
	for (i = 0; i < 20000; i++) {
		u32 bytes = 1 + homa_rng_below(&rng, 20 * HOMA_SVC_UNIT);
		s64 at = -1;

		if (n < BLOCKS && homa_rng_below(&rng, 2))
			at = homa_svc_heap_get(&heap, bytes);
		if (at >= 0) {
			block[n].at = (u32)at / HOMA_SVC_UNIT;
			block[n].units = (bytes - 1) / HOMA_SVC_UNIT + 1;
			for (j = 0; j < block[n].units; j++) {
				unit_assert(seed, !owner[block[n].at + j]);
				owner[block[n].at + j] = 1;
			}
			n++;
		} else if (n) {
			k = homa_rng_below(&rng, n);
			unit_assert(seed,
				    !homa_svc_heap_put(&heap,
						       block[k].at *
							       HOMA_SVC_UNIT));
			memset(owner + block[k].at, 0, block[k].units);
			block[k] = block[--n];
		}
	}
	while (n--)
		unit_assert(seed,
			    !homa_svc_heap_put(&heap,
					       block[n].at * HOMA_SVC_UNIT));
	unit_assert(seed, homa_svc_heap_get(&heap, UNITS * HOMA_SVC_UNIT) == 0);
	homa_svc_heap_free(&heap);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(get__all_of_it),
		cmocka_unit_test(put__only_what_is_out),
		cmocka_unit_test(random__no_overlap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
