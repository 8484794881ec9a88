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

/* The page of 2 MiB in which an object lies. */
static uintptr_t page_of(const void *object)
{
	return (uintptr_t)object >> 21;
}

/* Of many objects those that come later lie in huge pages, as many as fit in each. */
static void get__many_in_huge_pages(void **state)
{
	struct homa_slab slab;
	u8 *object, *last = NULL;
	int i, pages = 0;

	(void)state;
	homa_slab_init(&slab, 1024, 10000);
	for (i = 0; i < 1024; i++)
		assert_non_null(homa_slab_get(&slab));
	assert_int_equal(slab.huge, 0);
	for (; i < 1024 + 4 * 2047; i++) {
		object = homa_slab_get(&slab);
		assert_non_null(object);
		assert_int_equal((uintptr_t)object % 64, 0);
		assert_int_equal(object[0] | object[1023], 0);
		memset(object, 0xff, 1024);
		pages += !last || page_of(object) != page_of(last);
		last = object;
	}
	assert_int_equal(pages, 4);
	assert_int_equal(slab.huge, 4);
	/* What is left to the limit is less than a page. */
	while (homa_slab_get(&slab))
		i++;
	assert_int_equal(i, 10000);
	assert_int_equal(slab.huge, 4);
	homa_slab_drain(&slab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(get__aligned_and_zero),
		cmocka_unit_test(get__limit),
		cmocka_unit_test(get__distinct),
		cmocka_unit_test(get__many_in_huge_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
