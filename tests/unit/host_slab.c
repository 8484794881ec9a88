/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later */
/* host/common/slab.c: aligned, zeroed once, recycled, limited. */
#include "unit.h"

#include "homa_slab.h"

static void get__aligned_and_zero(void **state)
{
	static const u8 zeros[200];
	struct homa_slab slab;
	int i;

	(void)state;
	homa_slab_init(&slab, 200, 1000);
	assert_int_equal(slab.size, 256);
	for (i = 0; i < 300; i++) {
		u8 *object = homa_slab_get(&slab);

		assert_non_null(object);
		assert_int_equal((uintptr_t)object % 64, 0);
		assert_memory_equal(object, zeros, 200);
		memset(object, 0xff, 200);
	}
	homa_slab_drain(&slab);
}

static void get__limit(void **state)
{
	struct homa_slab slab;
	void *last = NULL;
	int i;

	(void)state;
	homa_slab_init(&slab, 64, 150);
	for (i = 0; i < 150; i++)
		assert_non_null(last = homa_slab_get(&slab));
	assert_null(homa_slab_get(&slab));
	homa_slab_put(&slab, last);
	assert_ptr_equal(homa_slab_get(&slab), last);
	assert_null(homa_slab_get(&slab));
	homa_slab_drain(&slab);
}

static void get__distinct(void **state)
{
	struct homa_slab slab;
	u8 *objects[260];
	int i;

	(void)state;
	homa_slab_init(&slab, 100, 1000);
	for (i = 0; i < 260; i++) {
		objects[i] = homa_slab_get(&slab);
		memset(objects[i], i & 0xff, 128);
	}
	for (i = 0; i < 260; i++) {
		assert_int_equal(objects[i][0], i & 0xff);
		assert_int_equal(objects[i][127], i & 0xff);
	}
	homa_slab_drain(&slab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(get__aligned_and_zero),
		cmocka_unit_test(get__limit),
		cmocka_unit_test(get__distinct),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
